"""Requests for hosts that are not this application's, refused.

Links, redirects and caches are made of the host that a client names. A server that answers for any name lets a client
choose what they say. https://owasp.org/www-project-web-security-testing-guide/ (testing for host header injection)
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from typing_extensions import TypeForm, TypeVar

from core.errors import CoreError
from core.handlers import declare
from core.http.url import URL
from core.middleware import options
from core.request import AnyRequest, Request
from core.response import Response
from core.types import Middleware, Next

__all__ = ["trusted_hosts"]

E = TypeVar("E", default=Any)

_is_host = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:]+\]").fullmatch


def trusted_hosts(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    hosts: Iterable[str] | Callable[[Request[E, Any, Any]], Iterable[str] | Awaitable[Iterable[str]]],
    message: str = "Unknown host",
    status: int = 400,
) -> Middleware[E, object]:
    """Answer requests for `hosts` alone; for every other name 400 `{"error": "Unknown host"}`.

        app.use(trusted_hosts(hosts=["example.com", "*.example.com"]))

    `hosts`: names without scheme and port, in lower case: a list, or a function of the request that gives one.
    `*.example.com` is every name below `example.com`, and not `example.com` itself. Names that are not ASCII are
    written in Punycode (`xn--…`). The name is that of `req.url`: of the header `Host`, or the one that the platform
    passes on.

    Register it first, before middleware that makes links. Health checks that ask by address need their address in the
    list. Raises OptionError.
    """
    options.named_env("trusted_hosts", env)
    fixed = () if callable(hosts) else _patterns(hosts)
    options.text("trusted_hosts", "message", message)
    options.status("trusted_hosts", status)

    async def guard(req: AnyRequest, res: Response, next: Next, /) -> None:
        allowed = _patterns(await options.awaited(hosts(req))) if callable(hosts) else fixed
        host = URL(req.url).hostname
        if not any(_is_below(host, name[1:]) if name[0] == "*" else host == name for name in allowed):
            raise CoreError(status, message)
        await next()

    return declare(guard, name="trusted_hosts")


def _is_below(host: str, end: str) -> bool:
    # A URL may have empty labels, which no name in the DNS has: ".example.com" is below nothing.
    return host.endswith(end) and "" not in host.removesuffix(end).split(".")


def _patterns(hosts: object) -> tuple[str, ...]:
    if isinstance(hosts, str) or not isinstance(hosts, Iterable):
        raise options.refuse("trusted_hosts", "hosts", hosts, 'must be a list, for example ["example.com"]')
    names: list[Any] = [*hosts]
    for name in names:
        if not isinstance(name, str) or _is_host(name) is None:
            raise options.refuse(
                "trusted_hosts", "hosts", name, "must be a name in lower case without scheme and port: example.com"
            )
    if not names:
        raise options.refuse("trusted_hosts", "hosts", [], "lets nobody in. Name the hosts of the application")
    return tuple(names)
