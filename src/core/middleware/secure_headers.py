"""Headers that tell browsers to be careful, on every response.

The values are fixed when the middleware is built; only a Content-Security-Policy with a nonce is
written anew for every request. Defaults are those of the specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from core.handlers import before
from core.http.header_block import HeaderBlock
from core.middleware import options
from core.request import AnyRequest
from core.response import Response

if TYPE_CHECKING:
    from core.types import Middleware

    Value: TypeAlias = str | Literal[False]

__all__ = ["Directives", "NONCE", "secure_hdrs", "secure_headers"]

NONCE: Final = "{nonce}"
"""Stands in a directive for `'nonce-…'`, a new random one per request, which handlers find in `req.state["csp_nonce"]`.
"""

Directives: TypeAlias = Mapping[str, str | Iterable[str] | bool]
"""Directives of a Content-Security-Policy by name: their sources, or True for one that has none.

    {"default_src": "'self'", "script_src": ["'self'", NONCE], "upgrade_insecure_requests": True}
"""


def secure_hdrs(
    *,
    content_security_policy: Value | Directives = "default-src 'self'",
    strict_transport_security: Value = "max-age=31536000; includeSubDomains",
    x_frame_options: Value = "DENY",
    x_content_type_options: Value = "nosniff",
    referrer_policy: Value = "strict-origin-when-cross-origin",
    x_xss_protection: Value = "0",
    permissions_policy: Value = "geolocation=(), camera=(), microphone=()",
    cross_origin_embedder_policy: Value = False,
    cross_origin_opener_policy: Value = False,
    cross_origin_resource_policy: Value = False,
    content_security_policy_report_only: Value | Directives = False,
    origin_agent_cluster: Value = False,
    x_dns_prefetch_control: Value = False,
    x_download_options: Value = False,
    x_permitted_cross_domain_policies: Value = False,
    reporting_endpoints: Value | Mapping[str, str] = False,
    override: bool = False,
) -> Middleware[object, object]:
    """Set the security headers on every response: errors, 404s, preflights and 304s too, upgrades not.

    Each option is the header's value, or False for none. The two policies also take `Directives`, with `NONCE` among
    the sources for a nonce per request; `reporting_endpoints` also takes names to URLs.
    A header that a handler sets itself is kept; `override=True` puts these values back when the response leaves.
    Of two of these on one chain, the inner one's values count.

    Raises OptionError for a value that is neither a string nor False, and for a value that no header can carry.
    """
    # The options by their names, which are those of the headers.
    given: dict[str, str | bool | Mapping[str, object]] = {**locals()}
    del given["override"]
    pairs: dict[str, str] = {}
    with_nonce: dict[str, str] = {}
    for option, value in given.items():
        name = option.replace("_", "-")
        if value is False:
            continue
        if isinstance(value, Mapping):
            if option == "reporting_endpoints":
                written = ", ".join(_endpoint(endpoint, url) for endpoint, url in value.items())
            else:
                written = _policy(option, value)
                if NONCE in written:
                    with_nonce[name] = options.header_value("secure_hdrs", option, written)
                    continue
            pairs[name] = options.header_value("secure_hdrs", option, written)
        elif isinstance(value, str):
            pairs[name] = options.header_value("secure_hdrs", option, value)
        else:
            raise options.refuse("secure_hdrs", option, value, "must be the header's value as a str, or False for none")

    if not with_nonce and not override:
        block = HeaderBlock(pairs)

        def secure(req: AnyRequest, res: Response) -> None:
            # Put before the rest of the chain runs, so that a handler's own header replaces the one here.
            res.put(block)

        return before(secure, name="secure_hdrs")

    def secure_each(req: AnyRequest, res: Response) -> None:
        values = pairs
        if with_nonce:
            nonce = req.state.get("csp_nonce")
            if nonce is None:
                nonce = req.state["csp_nonce"] = _new_nonce()
            quoted = f"'nonce-{nonce}'"
            values = pairs | {name: policy.replace(NONCE, quoted) for name, policy in with_nonce.items()}
        res.staged = values.copy() if res.staged is None else res.staged | values
        if override:

            def put_back(status: int, duration_ms: float) -> None:
                # The hooks run before the host reads the headers, and after everyone who could change them.
                if status != 101:
                    res.staged = values.copy() if res.staged is None else res.staged | values

            res.on_send(put_back)

    return before(secure_each, name="secure_hdrs")


secure_headers = secure_hdrs
"""The same under its longer name."""


def _policy(option: str, directives: Mapping[Any, Any]) -> str:
    written: list[str] = []
    for name, sources in directives.items():
        directive = str(name).replace("_", "-").lower()
        if not options.word(directive):
            raise options.refuse(
                "secure_hdrs", option, {name: sources}, f"has {name!r}, which is not the name of a directive"
            )
        if sources is False:
            continue
        if sources is True:
            written.append(directive)
            continue
        parts: list[Any] = [sources] if isinstance(sources, str) else list(sources)
        for part in parts:
            # A semicolon would begin another directive, a comma another policy.
            if not isinstance(part, str) or not part.strip() or ";" in part or "," in part:
                raise options.refuse("secure_hdrs", option, {name: part}, "must be a source without ; and ,")
        written.append(" ".join([directive, *parts]))
    if not written:
        raise options.refuse("secure_hdrs", option, directives, "has no directives. Use False for no policy")
    return "; ".join(written)


def _endpoint(name: object, url: object) -> str:
    if not options.word(name) or not isinstance(url, str) or '"' in url or "\\" in url:
        raise options.refuse("secure_hdrs", "reporting_endpoints", {name: url}, "must be names to URLs")
    return f'{name}="{url}"'


def _new_nonce() -> str:
    from base64 import b64encode
    from os import urandom

    return b64encode(urandom(16)).decode()
