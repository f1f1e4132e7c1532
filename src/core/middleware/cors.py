"""Cross-origin requests: which origins a browser lets read the answers (the Fetch standard's CORS protocol).

Decided here: how an origin is compared (whole, never by a part), the answer to a preflight, and that
a cache never mixes the answers of two origins up (`Vary`). A refused origin is told nothing at all.
https://fetch.spec.whatwg.org/#http-cors-protocol
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from typing_extensions import TypeForm, TypeVar

from core.errors import OptionError
from core.handlers import PREFLIGHTS, arguments_of, before, declare
from core.http.header_block import HeaderBlock
from core.middleware import options
from core.request import AnyRequest, Request
from core.response import Response

if TYPE_CHECKING:
    from core.types import Middleware, Next

    E = TypeVar("E", default=Any)

__all__ = ["Origins", "cors", "normalised_origins"]


Origins: TypeAlias = str | Iterable[str] | bool | None
"""The result of a function of the request: origins, `"*"`, or whether the one that asks is allowed."""

_OTHER_SCHEME = r"[a-z][a-z0-9+.\-]*://[a-z0-9._\-]+(:[0-9]{1,5})?"

# The names in a preflight: far more than any page does, and too little to make work with.
_MOST_HEADERS = 64
_MOST_HEADER_CHARACTERS = 4096

_METHODS = ("GET", "HEAD", "PUT", "PATCH", "POST", "DELETE")
_KEPT_LISTS = 64

_ALLOWED = "access-control-allow-origin"
_NOBODY: frozenset[str] = frozenset()
# The headers that allow an origin, all of which an inner `cors()` takes back of an outer one's.
_GRANTS = (_ALLOWED, "access-control-allow-credentials", "access-control-expose-headers")


def cors(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    origins: str
    | Iterable[str]
    | Callable[[Request[E, Any, Any]], Origins | Awaitable[Origins]]
    | Callable[[str, Request[E, Any, Any]], bool | Awaitable[bool]],
    methods: Iterable[str] = _METHODS,
    headers: Iterable[str] | None = None,
    expose_headers: Iterable[str] = (),
    credentials: bool = False,
    max_age: int | None = None,
    allow_private_network: bool = False,
) -> Middleware[E, object]:
    """Answer preflights, and let the pages of `origins` read the answers.

    `origins`: a list; `"*"` for all; a function of the request that returns either (`lambda req:
    req.env.ALLOWED_ORIGINS.split(",")`) or whether to allow; or a predicate of `(origin, req)`. Functions may be
    async. An origin is `https://example.com`, compared whole; `"null"` is matched only where it is listed, and not by
    a predicate; empty texts are none, so that an empty variable allows nobody.
    `methods`: the methods that a preflight's answer allows. `headers`: likewise; None takes those that it asks for.
    `expose_headers`: the headers of an answer that scripts may read, beyond the safelisted.
    `credentials`: whether cookies go along; not with `"*"`.
    `max_age`: seconds that a browser may keep a preflight's answer.
    `allow_private_network`: whether pages of the public internet may reach this server on a private network.

    Register it before the routes, and before middleware that refuses requests: a preflight carries no credentials. Of
    two before a route the inner one decides alone, but for preflights, which the outer one answers. Raises OptionError
    for a bad option, an origin with a path or a slash at its end included.
    """
    options.named_env("cors", env)
    allow_methods = ", ".join(_words("methods", methods)) if methods != "*" else "*"
    allow_headers = None if headers is None else ", ".join(_words("headers", headers))
    if credentials and (allow_methods == "*" or allow_headers == "*"):
        raise OptionError('cors(credentials=True) takes no "*" for methods or headers. List them, or leave headers out')
    exposed = ", ".join(_words("expose_headers", expose_headers))
    if max_age is not None:
        options.integer("cors", "max_age", max_age, least=0, unit="seconds")
    granted = {"access-control-allow-methods": allow_methods}
    simple: dict[str, str] = {}
    if credentials:
        granted["access-control-allow-credentials"] = simple["access-control-allow-credentials"] = "true"
    if exposed:
        simple["access-control-expose-headers"] = exposed
    if max_age is not None:
        granted["access-control-max-age"] = str(max_age)
    fixed = None if callable(origins) else normalised_origins("cors", origins, credentials=credentials)
    ask = _asking(origins) if callable(origins) else None
    everyone = fixed is not None and "*" in fixed
    cached: dict[tuple[str, ...], frozenset[str]] = {}

    def listed(answer: Any, origin: str | None) -> frozenset[str]:
        """The origins that the application's function allows; kept, since it mostly gives the same list."""
        if answer is None or answer is False:
            return _NOBODY
        if answer is True:
            # Any site can have the origin "null", in a sandboxed frame: a yes to whoever asks does not mean it.
            return frozenset((origin,)) if origin is not None and _is_wire_origin(origin) else _NOBODY
        key = (answer,) if isinstance(answer, str) else tuple(answer)
        allowed = cached.get(key)
        if allowed is None:
            allowed = normalised_origins("cors", key, credentials=credentials)
            if len(cached) < _KEPT_LISTS:
                cached[key] = allowed
        return allowed

    # The headers for an allowed origin, where they are known beforehand.
    blocks: dict[str | None, HeaderBlock] = {
        origin: HeaderBlock({"vary": "Origin", _ALLOWED: origin, **simple}, ("Origin",), _GRANTS)
        for origin in (() if everyone else fixed or ())
    }

    def share(req: AnyRequest, res: Response, matching: frozenset[str] = fixed or _NOBODY) -> Awaitable[None] | None:
        origin = req.header("origin")
        if req.method != "OPTIONS" and (block := blocks.get(origin)) is not None:
            res.put(block)
            return None
        if not everyone:
            res.vary("Origin")
        allowed = "*" if "*" in matching else origin if origin in matching else None
        if req.method == "OPTIONS" and req.header("access-control-request-method") is not None:
            return preflight(req, res, None if origin is None else allowed)
        if allowed is None:
            if res.staged is not None:
                _withdraw(res.unblocked())
            return None
        staged, block = res.staged, res.block
        if staged is None:
            res.staged = {_ALLOWED: allowed, **simple}
            return None
        if _ALLOWED in staged or (block is not None and _ALLOWED in block.values):
            staged = res.unblocked()
            _withdraw(staged)
        staged[_ALLOWED] = allowed
        if simple:
            staged.update(simple)
        return None

    async def preflight(req: AnyRequest, res: Response, allowed: str | None) -> None:
        res.vary("Access-Control-Request-Headers")
        if allow_private_network:
            res.vary("Access-Control-Request-Private-Network")
        staged = res.unblocked()
        _withdraw(staged)
        if allowed is not None:
            staged.update({_ALLOWED: allowed, **granted})
            names = allow_headers
            if names is None:
                names = _asked_for(req.header("access-control-request-headers"))
            if names:
                staged["access-control-allow-headers"] = names
            if allow_private_network and req.header("access-control-request-private-network") == "true":
                staged["access-control-allow-private-network"] = "true"
        res.status(204).send()

    if ask is None:
        return before(share, name="cors", provides=(PREFLIGHTS,))

    def share_chosen(req: AnyRequest, res: Response, next: Next, /) -> Awaitable[None]:
        origin = req.header("origin")
        answer = ask(origin, req)
        if answer.__class__ is not list and answer.__class__ is not str and options.is_awaitable(answer):
            return share_later(req, res, next, origin, answer)
        instead = share(req, res, listed(answer, origin))
        return next() if instead is None else instead

    async def share_later(
        req: AnyRequest, res: Response, next: Next, origin: str | None, answer: Awaitable[object]
    ) -> None:
        instead = share(req, res, listed(await answer, origin))
        await (next() if instead is None else instead)

    return declare(share_chosen, name="cors", provides=(PREFLIGHTS,))


def _withdraw(staged: dict[str, str]) -> None:
    """Take back the headers of an outer `cors()`: a refused origin gets none."""
    for name in [name for name in staged if name.startswith("access-control-")]:
        del staged[name]


def _asked_for(header: str | None) -> str:
    """The header names of a preflight, cleaned. Split once at the commas; none at all when there are too many."""
    if header is None or len(header) > _MOST_HEADER_CHARACTERS:
        return ""
    names = [name for part in header.split(",") if (name := part.strip(" \t"))]
    if len(names) > _MOST_HEADERS or not all(map(options.word, names)):
        return ""
    return ", ".join(names)


def _asking(function: Callable[..., object]) -> Callable[[str | None, AnyRequest], object]:
    """A function of the origin and the request, of one that wants either or both."""
    takes = arguments_of(function)
    if takes == 2:
        return lambda origin, req: False if origin is None else function(origin, req)
    if takes != 1:
        raise options.refuse(
            "cors", "origins", function, "must be a function of the request, or of the origin and the request"
        )
    code = getattr(function, "__code__", None)
    if code is not None and code.co_varnames[:1] == ("origin",):
        # Type checkers refuse it, but its parameter shows the intention: a request is not an origin.
        return lambda origin, req: False if origin is None else function(origin)
    return lambda origin, req: function(req)


def _words(option: str, values: object) -> list[str]:
    given: Any = values  # not narrowed by what follows
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise options.refuse("cors", option, values, "must be a list of names")
    words = [options.text("cors", option, value) for value in given]
    for word in words:
        if not options.word(word):
            raise options.refuse("cors", option, word, "is not a name that HTTP allows")
    return [word.upper() for word in words] if option == "methods" else words


def normalised_origins(call: str, origins: object, *, credentials: bool = False) -> frozenset[str]:
    """Configured origins as browsers write them. Raises OptionError of `call` for one that could never match."""
    if isinstance(origins, str):
        given: Iterable[object] = (origins,)
    elif isinstance(origins, Iterable):
        given = cast("Iterable[object]", origins)
    else:
        raise options.refuse(
            call, "origins", origins, 'must be origins such as "https://example.com", "*" or a function'
        )
    normalised = {_origin(call, one) for one in given if not (isinstance(one, str) and not one.strip())}
    if "*" in normalised and credentials:
        raise OptionError(
            'cors(origins="*", credentials=True) would let every site act as its visitor. '
            "List the origins, or leave credentials out"
        )
    return frozenset(normalised)


def _is_plain_host(host: str) -> bool:
    """Return True if a host certainly is as a URL parser would write it, which a start then need not load."""
    last = host.rpartition(".")[2]
    return host.isascii() and last.isalpha() and "xn--" not in host and host.replace("-", "").replace(".", "").isalnum()


def _is_wire_origin(origin: str) -> bool:
    return (
        0 < len(origin) <= 1024 and origin.isascii() and origin.isprintable() and " " not in origin and origin != "null"
    )


def _origin(call: str, value: object) -> str:
    if not isinstance(value, str):
        raise options.refuse(call, "origins", value, 'must be a str such as "https://example.com"')
    text = value.strip()
    if text in ("*", "null"):
        return text
    scheme, separator, rest = text.partition("://")
    if separator and scheme.lower() not in ("http", "https"):
        if re.fullmatch(_OTHER_SCHEME, text.lower()):
            return text.lower()
    elif separator and rest and not any(char in rest for char in "/\\?#@"):
        if _is_plain_host(rest) and text.islower():
            return text
        from core.http.url import URL

        with suppress(TypeError):
            return URL(text).origin
    why = 'is not an origin. Write scheme, host and port alone, for example "https://example.com", without a path or a slash'
    raise options.refuse(call, "origins", value, why)
