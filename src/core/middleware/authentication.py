"""The base of middleware that authenticate: one value that is an authenticator and a middleware.

As an authenticator (`router.authenticated(…)`) it returns the user; as plain middleware it puts the
user on the request. Either way it asks once per request. The answer to a refusal is always
the same; the reason goes to the log.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, cast, overload

from typing_extensions import TypeVar

from core.errors import AuthenticationError, DeveloperError
from core.handlers import MiddlewareInfo
from core.request import AnyRequest, Request
from core.response import Response
from core.signing import Secrets, keys_of
from core.types import Authenticator, Middleware, Next

if TYPE_CHECKING:
    from core.middleware.token_source import TokenSource

__all__ = ["Authentication", "SecretGiver", "binding_of", "refused", "same", "secrets_of"]

E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True, default=Any)
A_co = TypeVar("A_co", covariant=True, default=Any)

log: logging.Logger = logging.getLogger("core")

SecretGiver = Callable[[Request[E, Any, Any]], Secrets | Awaitable[Secrets]]
"""A function of the request that gives the secret that its credentials are checked with:
`lambda req: req.env.JWT_SECRET`, or `lambda req: [req.env.JWT_SECRET, req.env.OLD_JWT_SECRET]` while a secret is being
replaced.
"""


class Authentication(Middleware[E_contra, object], Authenticator[E_contra, A_co, object], Generic[E_contra, A_co]):
    """An authenticator that may stand as middleware too.

    In either place:

        admin = app.authenticated(jwt_auth(secret=…))     # handlers see req.user, typed
        app.use("/admin", jwt_auth(secret=…))             # the same, untyped
    """

    def __init__(
        self, name: str, authenticate: Callable[[AnyRequest], Awaitable[A_co]], *, varies: str | None = None
    ) -> None:
        self._authenticate = authenticate
        self.source: TokenSource | None = None
        """The place of the token, for one that takes tokens."""
        self.__core_info__: MiddlewareInfo = MiddlewareInfo(
            name, provides=("req.user",), authenticates=True, varies=() if varies is None else (varies,)
        )

    @overload
    def __call__(self, req: Request[E_contra, object, Any], /) -> Awaitable[A_co]: ...
    @overload
    def __call__(self, req: Request[E_contra, object, Any], res: Response, next: Next, /) -> Awaitable[None]: ...
    def __call__(
        self, req: Request[E_contra, object, Any], res: Response | None = None, next: Next | None = None, /
    ) -> Awaitable[Any]:
        """Return the user, or raise AuthenticationError; as middleware set `req.user` and go on."""
        if next is None:
            return self._authenticate(req)
        for name in self.__core_info__.varies:
            cast("Response", res).vary(name)
        return self._stand_before(req, next)

    async def _stand_before(self, req: Request[E_contra, object, Any], next: Next) -> None:
        users = req.users
        if self not in users:
            users[self] = await self._authenticate(req)
        req.user = users[self]
        await next()


def refused(name: str, challenge: str, reason: str, req: AnyRequest, *, missing: bool = False) -> AuthenticationError:
    """The one answer to every failed authentication. The reason is for the log alone."""
    log.info("%s() refused %s %s: %s", name, req.method, req.path, reason)
    return AuthenticationError(challenge, missing=missing)


def secrets_of(call: str, option: str, function: object, value: object) -> list[bytes]:
    """The secrets that an option's function gave, the newest first.

    Raises DeveloperError, which names the binding, where there is none or an empty one.
    """
    try:
        return keys_of(value)
    except TypeError as error:
        raise DeveloperError(f"{call}({option}=…): {error}") from None
    except ValueError:
        raise DeveloperError(
            f"{call}({option}=…): {binding_of(function)} is empty or missing. Set it with a value that nobody can "
            "guess, for example of `openssl rand -base64 32`"
        ) from None


def binding_of(function: object) -> str:
    """Return the binding that a function such as `lambda req: req.env.JWT_SECRET` reads, for a message."""
    names: tuple[str, ...] = getattr(getattr(function, "__code__", None), "co_names", ())
    read = [name for name in names if name not in ("env", "reveal", "encode")]
    if "env" not in names or not read:
        return "the secret"
    bindings = [name for name in read if name.isupper()] or read[-1:]
    return f"the binding {bindings[0]}" if len(bindings) == 1 else f"one of the bindings {', '.join(bindings)}"


def same(one: str | bytes, other: str | bytes) -> bool:
    """Return True if two secrets are equal, in a time that depends neither on where they differ nor on how long they
    are.
    """
    # Imported here, because a worker pays for every module that it loads at start.
    from hashlib import sha256
    from hmac import compare_digest

    digests = [
        sha256(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value).digest()
        for value in (one, other)
    ]
    return compare_digest(*digests)
