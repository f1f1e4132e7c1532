"""The types of the callables that an application gives to the framework.

All are Protocols with positional-only parameters, so that any parameter names fit. They return None
or the response they sent, so that `return res.status(401).json(…)` reads the same everywhere.

Programs take them from `core`. A running worker does without this file.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import TypeVar

from core.request import Request
from core.response import Response

__all__ = ["Authenticator", "ErrorHandler", "Handler", "Middleware", "Next", "WebSocketHandler"]

E_contra = TypeVar("E_contra", contravariant=True, default=Any)
U_contra = TypeVar("U_contra", contravariant=True, default=object)
A_co = TypeVar("A_co", covariant=True, default=Any)


class Next(Protocol):
    """The rest of the chain. `await next()` runs it; `await next(err)` goes to the error handler, as raising does."""

    def __call__(self, err: BaseException | None = None, /) -> Awaitable[None]:
        """Run the rest of the chain, once."""
        ...


class Handler(Protocol[E_contra, U_contra]):
    """`async (req, res)`: answers a request."""

    def __call__(self, req: Request[E_contra, U_contra, Any], res: Response, /) -> Awaitable[Response | None]:
        """Send something on `res`."""
        ...


class Middleware(Protocol[E_contra, U_contra]):
    """`async (req, res, next)`: runs before handlers."""

    def __call__(
        self, req: Request[E_contra, U_contra, Any], res: Response, next: Next, /
    ) -> Awaitable[Response | None]:
        """Send something on `res`, or `await next()`."""
        ...


if TYPE_CHECKING:
    from core.http.websocket import WebSocket

    N_co = TypeVar("N_co", bound=str, covariant=True, default=str)

    class BoundMiddleware(Middleware[E_contra, U_contra], Protocol[E_contra, U_contra, N_co]):
        """A middleware that finds a binding by the name `N`, for the mypy plugin: it carries the name to the router."""


class ErrorHandler(Protocol[E_contra]):
    """`async (err, req, res, next)`: answers a request that failed."""

    def __call__(
        self, err: Exception, req: Request[E_contra, object, Any], res: Response, next: Next, /
    ) -> Awaitable[Response | None]:
        """Send something on `res`; raising or `await next(err)` falls back to the default answer."""
        ...


class WebSocketHandler(Protocol[E_contra, U_contra]):
    """`async (req, socket)`: talks on an open WebSocket, which is closed when it returns."""

    def __call__(self, req: Request[E_contra, U_contra, Any], socket: WebSocket, /) -> Awaitable[None]:
        """Receive and send until either side has enough."""
        ...


class Authenticator(Protocol[E_contra, A_co, U_contra]):
    """`async (req)`: finds out who is asking, or raises CoreError to refuse.

    `Authenticator[Env, User]` reads no user. `Authenticator[Env, Admin, User]` comes behind another authenticator
    and reads the `User` that it found.
    """

    def __call__(self, req: Request[E_contra, U_contra, Any], /) -> Awaitable[A_co]:
        """Return the user."""
        ...
