"""Fixed tokens, as `Authorization: Bearer <token>` or where else they are brought, compared in constant time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, overload

from typing_extensions import TypeForm, TypeVar

from core.errors import OptionError
from core.middleware import options
from core.middleware.authentication import Authentication, Refusal, SecretGiver, TokenSource, same, secrets_of
from core.request import AnyRequest, Request

__all__ = ["bearer_auth"]

E = TypeVar("E")
T = TypeVar("T")


@overload
def bearer_auth(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    token: SecretGiver[E],
    scheme: str | None = "Bearer",
    header: str = "Authorization",
    cookie: str | None = None,
    max_length: int = 4096,
) -> Authentication[E, None]: ...
@overload
def bearer_auth(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    verify: Callable[[str, Request[E, Any, Any]], Awaitable[T | None]],
    scheme: str | None = "Bearer",
    header: str = "Authorization",
    cookie: str | None = None,
    max_length: int = 4096,
) -> Authentication[E, T]: ...
def bearer_auth(
    env: object = options.UNNAMED,
    /,
    *,
    token: SecretGiver[Any] | None = None,
    verify: Callable[[str, AnyRequest], Awaitable[object]] | None = None,
    scheme: str | None = "Bearer",
    header: str = "Authorization",
    cookie: str | None = None,
    max_length: int = 4096,
) -> Authentication[Any, Any]:
    """Let in who brings the right token; everyone else gets 401 `{"error": "Unauthorized"}`.

    `token`: a function of the request that gives the token, for example `lambda req: req.env.API_TOKEN`, or a list of
    tokens while one takes over from another. Or `verify`: an async function of the token and the request that gives the
    user, or None (or False) to refuse.
    `scheme`, `header`, `cookie`: where the token is, as in `jwt_auth`: `header="X-API-Key"`, or `scheme="Token"`.
    `max_length`: characters of a token; a longer one is refused unread.

    An authenticator and a middleware, as `jwt_auth`. Raises OptionError; an empty token is a 500.
    """
    options.named_env("bearer_auth", env)
    if (token is None) == (verify is None):
        raise OptionError(
            "bearer_auth() needs either token, for example token=lambda req: req.env.API_TOKEN, or verify"
        )
    options.function_of_request("bearer_auth", "token", token, "API_TOKEN")
    if verify is not None and not callable(verify):
        raise options.refuse("bearer_auth", "verify", "…", "must be a function: async def verify(token, req)")
    source = TokenSource("bearer_auth", scheme, header, cookie, max_length)

    async def authenticate(req: AnyRequest) -> object:
        wanted: list[bytes] = []
        if token is not None:
            # Asked for before the header is looked at, so that a missing secret is reported by the first request of
            # all.
            wanted = secrets_of("bearer_auth", "token", token, await options.awaited(token(req)))
        given = source.read(req)
        if verify is None:
            if True not in [same(given, each) for each in wanted]:
                raise Refusal("the token is wrong")
            return None
        user = await options.awaited(verify(given, req))
        if user is None or user is False:
            raise Refusal("verify() refused the token")
        return user

    return Authentication("bearer_auth", authenticate, source=source)
