"""The base of middleware that authenticate: one value that is an authenticator and a middleware.

As an authenticator (`router.authenticated(…)`) it returns the user; as plain middleware it puts the
user on the request. Either way it asks once per request. What a client is told of a refusal is always
the same; the reason goes to the log.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Generic, overload

from typing_extensions import TypeVar

from core.bindings.secret import Secret
from core.errors import CoreError, DeveloperError
from core.handlers import Authenticator, Middleware, MiddlewareInfo, Next
from core.request import AnyRequest, Request
from core.response import Response

__all__ = ["Authentication", "binding_of", "refused", "same", "secret_bytes"]

E_contra = TypeVar("E_contra", contravariant=True, default=Any)
A_co = TypeVar("A_co", covariant=True, default=Any)

log: logging.Logger = logging.getLogger("core")


class Authentication(Middleware[E_contra, object], Authenticator[E_contra, A_co, object], Generic[E_contra, A_co]):
    """An authenticator that may stand as middleware too.

    admin = app.authenticated(jwt_auth(secret=…))     # handlers see req.user, typed
    app.use("/admin", jwt_auth(secret=…))             # the same, untyped
    """

    def __init__(self, name: str, authenticate: Callable[[AnyRequest], Awaitable[A_co]]) -> None:
        self._authenticate = authenticate
        self.__core_info__: MiddlewareInfo = MiddlewareInfo(name, provides=("req.user",), authenticates=True)

    @overload
    def __call__(self, req: Request[E_contra, object, Any], /) -> Awaitable[A_co]: ...
    @overload
    def __call__(self, req: Request[E_contra, object, Any], res: Response, next: Next, /) -> Awaitable[None]: ...
    def __call__(
        self, req: Request[E_contra, object, Any], res: Response | None = None, next: Next | None = None, /
    ) -> Awaitable[Any]:
        """Return the user, or raise CoreError; as middleware set `req.user` and go on."""
        return self._authenticate(req) if next is None else self._stand_before(req, next)

    async def _stand_before(self, req: Request[E_contra, object, Any], next: Next) -> None:
        users = req.users
        if self not in users:
            users[self] = await self._authenticate(req)
        req.user = users[self]
        await next()


def refused(name: str, challenge: str, reason: str, req: AnyRequest) -> CoreError:
    """The one answer to every failed authentication. The reason is for the log alone."""
    log.info("%s() refused %s %s: %s", name, req.method, req.path, reason)
    return CoreError(401, "Unauthorized", headers={"WWW-Authenticate": challenge})


def secret_bytes(call: str, option: str, function: object, value: object) -> bytes:
    """A secret that an option's function gave. Raises DeveloperError, which names its binding, for none."""
    text = value.reveal() if isinstance(value, Secret) else value
    if isinstance(text, str):
        text = text.encode()
    if not isinstance(text, bytes | None):
        raise DeveloperError(f"{call}({option}=…) must give a str, bytes or Secret, not {type(text).__name__}")
    if not text or not text.strip():
        raise DeveloperError(
            f"{call}({option}=…): {binding_of(function)} is empty or missing. Set it with a value that nobody can "
            "guess, for example of `openssl rand -base64 32`"
        )
    return text


def binding_of(function: object) -> str:
    """Return the binding that a function such as `lambda req: req.env.JWT_SECRET` reads, for a message."""
    names: tuple[str, ...] = getattr(getattr(function, "__code__", None), "co_names", ())
    read = [name for name in names if name not in ("env", "reveal", "encode")]
    return f"the binding {read[-1]}" if "env" in names and read else "the secret"


def same(one: str | bytes, other: str | bytes) -> bool:
    """Return True if two secrets are equal, in a time that tells neither where they differ nor how long they are."""
    # Imported here, because a worker pays for every module that it loads at start.
    from hashlib import sha256
    from hmac import compare_digest

    digests = [
        sha256(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value).digest()
        for value in (one, other)
    ]
    return compare_digest(*digests)
