"""The base of middleware that authenticate: one value that is an authenticator and a middleware.

As an authenticator (`router.authenticated(…)`) it returns the user; as plain middleware it puts the
user on the request. Either way it asks once per request. The answer to a refusal is always
the same; the reason goes to the log. Where a token is in a request (behind a scheme in a header, alone in a header,
or in a cookie) is decided here too, for `jwt_auth` and `bearer_auth`: there is one or none, and its length is looked at
before anything else. RFC 6750, section 2.1, for the header.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any, Generic, cast, overload

from typing_extensions import TypeVar

from core.errors import AuthenticationError, DeveloperError, OptionError
from core.handlers import PREFLIGHTS, MiddlewareInfo
from core.middleware import options
from core.request import AnyRequest, Request
from core.response import Response
from core.router import guard_of
from core.signing import Secrets, keys_of
from core.types import Authenticator, Middleware, Next

__all__ = ["Authentication", "Refusal", "SecretGiver", "TokenSource", "binding_of", "same", "secrets_of"]

E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True, default=Any)
A_co = TypeVar("A_co", covariant=True, default=Any)

log: logging.Logger = logging.getLogger("core")

SecretGiver = Callable[[Request[E, Any, Any]], Secrets | Awaitable[Secrets]]
"""A function of the request that gives the secret that its credentials are checked with:
`lambda req: req.env.JWT_SECRET`, or `lambda req: [req.env.JWT_SECRET, req.env.OLD_JWT_SECRET]` while a secret is being
replaced.
"""

# Beside a scheme a token is one of RFC 6750; a key that is alone may be anything that is visible.
_TOKEN = "[A-Za-z0-9._~+/-]+=*"
_ALONE = "[!-~]+"


class Refusal(Exception):
    """The reason why a token is not accepted, for the log alone; `missing` where the request brings none."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing


class TokenSource:
    """Finds the token of a request.

    Raises OptionError, in the words of the middleware `call`, for options that cannot be.
    """

    def __init__(
        self, call: str, scheme: str | None, header: str, cookie: str | None, max_length: int, *, least: int = 1
    ) -> None:
        options.integer(call, "max_length", max_length, least=least, most=65_536, unit="characters")
        if scheme is not None and not options.word(scheme):
            raise options.refuse(call, "scheme", scheme, 'must be a word such as "Token", or None for a token alone')
        self.header: str = options.header_name(call, "header", header).lower()
        self.scheme: str | None = scheme
        self.cookie: str | None = cookie
        if cookie is not None:
            if not options.word(cookie):
                raise options.refuse(call, "cookie", cookie, "must be the name of a cookie")
            if self.header != "authorization" or scheme != "Bearer":
                raise OptionError(f"{call}(cookie={cookie!r}) goes without header and scheme. Remove them")
            self.scheme = None
        elif self.header != "authorization" and scheme == "Bearer":
            self.scheme = None  # the scheme belongs to Authorization; in a header of its own a token is alone
        self._most = max_length
        form = _ALONE if self.scheme is None else f"{re.escape(self.scheme)} +({_TOKEN})"
        self._match = re.compile(form, re.IGNORECASE | re.ASCII).fullmatch

    @property
    def varies(self) -> tuple[str, ...]:
        """The header that `Vary` has to name: caches know of `Authorization` alone (RFC 9111, section 3.5)."""
        if self.cookie is not None:
            return ("Cookie",)
        return () if self.header == "authorization" else (self.header,)

    def read(self, req: AnyRequest) -> str:
        """The token. Raises Refusal where there is none, where it is too long, and where there is more than one."""
        given = req.header(self.header) if self.cookie is None else req.cookies.get(self.cookie)
        if given is None:
            raise Refusal(f"there is no {self.cookie or self.header}", missing=True)
        return self.token_in(given)

    def token_in(self, given: str) -> str:
        """The token in the value of the header or the cookie. Raises Refusal as `read` does."""
        if len(given) > self._most + len(self.scheme or "") + 10:
            raise Refusal("the token is too long")
        # Two headers come joined by a comma and a blank, which no token has.
        match = self._match(given)
        if match is None:
            raise Refusal(f"{self.cookie or self.header} has not one {self.scheme or ''} token".replace("  ", " "))
        token = match[match.re.groups]
        if len(token) > self._most:
            raise Refusal("the token is too long")
        return token


class Authentication(Middleware[E_contra, object], Authenticator[E_contra, A_co, object], Generic[E_contra, A_co]):
    """An authenticator that may stand as middleware too.

    In either place:

        admin = app.authenticated(jwt_auth(secret=…))     # handlers see req.user, typed
        app.use("/admin", jwt_auth(secret=…))             # the same, untyped
    """

    def __init__(
        self,
        name: str,
        authenticate: Callable[[AnyRequest], Awaitable[A_co]],
        *,
        source: TokenSource | None = None,
        challenge: str = "Bearer",
        info: MiddlewareInfo | None = None,
    ) -> None:
        self._authenticate = authenticate
        self.source: TokenSource | None = source
        """The place of the token, for one that takes tokens."""
        self._challenge = challenge if source is None else source.scheme or challenge
        self.__core_info__: MiddlewareInfo = info or MiddlewareInfo(
            name,
            provides=("req.user",),
            reads=() if source is None or source.cookie is not None else (PREFLIGHTS,),
            authenticates=True,
            varies=() if source is None else source.varies,
        )
        self._guard = guard_of(self)

    @overload
    def __call__(self, req: Request[E_contra, object, Any], /) -> Awaitable[A_co]: ...
    @overload
    def __call__(self, req: Request[E_contra, object, Any], res: Response, next: Next, /) -> Awaitable[None]: ...
    def __call__(
        self, req: Request[E_contra, object, Any], res: Response | None = None, next: Next | None = None, /
    ) -> Awaitable[object]:
        """Return the user, or raise AuthenticationError; as middleware set `req.user` and go on."""
        return self._ask(req) if next is None else self._guard(req, cast("Response", res), next)

    async def _ask(self, req: Request[E_contra, object, Any]) -> A_co:
        try:
            return await self._authenticate(req)
        except Refusal as refusal:
            log.info("%s() refused %s %s: %s", self.__core_info__.name, req.method, req.path, refusal)
            raise AuthenticationError(self._challenge, missing=refusal.missing) from None


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
    """Return True if two secrets are equal, in a time that tells neither where they differ nor how long they are."""
    from hashlib import sha256
    from hmac import compare_digest

    digests = [
        sha256(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value).digest()
        for value in (one, other)
    ]
    return compare_digest(*digests)
