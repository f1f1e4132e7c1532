"""Requests that another site made a browser send, refused (cross-site request forgery).

Decided by the headers that browsers send by themselves, `Sec-Fetch-Site` and `Origin`, neither of which a page can
forge; no tokens are needed. A client that sends neither is not a browser, and carries no one's cookies.
https://www.w3.org/TR/fetch-metadata/
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from typing_extensions import TypeForm, TypeVar

from core.errors import CoreError
from core.handlers import declare
from core.http.url import is_same_origin
from core.middleware import options
from core.middleware.cors import normalised_origins
from core.request import AnyRequest, Request
from core.response import Response
from core.types import Middleware, Next

__all__ = ["csrf"]

E = TypeVar("E", default=Any)

_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))


def csrf(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    origins: Iterable[str] | Callable[[Request[E, Any, Any]], Iterable[str] | Awaitable[Iterable[str]]] = (),
    allow_same_site: bool = False,
    message: str = "Forbidden",
    status: int = 403,
) -> Middleware[E, object]:
    """Refuse POST, PUT, PATCH, DELETE and all but GET, HEAD and OPTIONS when another site's page sends them.

    `origins`: pages of other origins that may, as in `cors`: a list, or a function of the request.
    `allow_same_site`: whether subdomains and other ports of the same site may.
    The answer is 403 with the code `CROSS_SITE_REQUEST`. GET must not change anything: it is never refused.

    Raises OptionError.
    """
    options.named_env("csrf", env)
    fixed = normalised_origins("csrf", () if callable(origins) else origins)
    if "*" in fixed:
        raise options.refuse("csrf", "origins", "*", "would let everyone in. List the origins, or leave csrf() out")
    options.text("csrf", "message", message)
    options.status("csrf", status)

    async def guard(req: AnyRequest, res: Response, next: Next, /) -> None:
        if req.method not in _SAFE:
            site = req.header("sec-fetch-site")
            origin = req.header("origin")
            if not _own(req, site, origin, allow_same_site):
                listed = fixed
                if callable(origins):
                    listed = normalised_origins("csrf", await options.awaited(origins(req)))
                if origin is None or origin == "null" or origin not in listed:
                    raise CoreError(status, message, code="CROSS_SITE_REQUEST")
        await next()

    return declare(guard, name="csrf")


def _own(req: AnyRequest, site: str | None, origin: str | None, allow_same_site: bool) -> bool:
    """Return True if a browser says that the page is this server's own, or that there is no browser."""
    if site is not None:
        # `none`: the user typed or clicked it. Anything unknown, and two values at once, do not count.
        return site in ("same-origin", "none") or (allow_same_site and site == "same-site")
    if origin is None:
        return True
    return is_same_origin(origin, req.url)
