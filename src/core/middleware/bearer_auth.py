"""Fixed bearer tokens: `Authorization: Bearer <token>`, compared in constant time."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, overload

from typing_extensions import TypeForm, TypeVar

from core.bindings.secret import Secret
from core.errors import OptionError
from core.middleware import options
from core.middleware.authentication import Authentication, refused, same, secret_bytes
from core.request import AnyRequest, Request

__all__ = ["bearer_auth"]

E = TypeVar("E")
T = TypeVar("T")

_bearer = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*)").fullmatch


@overload
def bearer_auth(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    token: Callable[[Request[E, Any, Any]], str | bytes | Secret | Awaitable[str | bytes | Secret]],
    max_length: int = 4096,
) -> Authentication[E, None]: ...
@overload
def bearer_auth(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    verify: Callable[[str, Request[E, Any, Any]], Awaitable[T | None]],
    max_length: int = 4096,
) -> Authentication[E, T]: ...
def bearer_auth(
    env: object = options.UNNAMED,
    /,
    *,
    token: Callable[[AnyRequest], Any] | None = None,
    verify: Callable[[str, AnyRequest], Awaitable[Any]] | None = None,
    max_length: int = 4096,
) -> Authentication[Any, Any]:
    """Let in who brings the right bearer token; everyone else gets 401 `{"error": "Unauthorized"}`.

    `token`: a function of the request that gives the token, for example `lambda req: req.env.API_TOKEN`. Or `verify`:
    an async function of the token and the request that gives the user, or None (or False) to refuse.
    `max_length`: characters of a token; a longer one is refused unread.

    An authenticator and a middleware, as `jwt_auth`. Raises OptionError; an empty token is a 500.
    """
    options.named_env("bearer_auth", env)
    if (token is None) == (verify is None):
        raise OptionError(
            "bearer_auth() needs either token, for example token=lambda req: req.env.API_TOKEN, or verify"
        )
    for option, function in (("token", token), ("verify", verify)):
        if function is not None and not callable(function):
            raise options.refuse("bearer_auth", option, "…", "must be a function of the request")
    options.integer("bearer_auth", "max_length", max_length, least=1, unit="characters")

    async def authenticate(req: AnyRequest) -> Any:
        wanted = None
        if token is not None:
            # Asked for before the header is looked at, so that a missing secret is told by the first request of all.
            wanted = secret_bytes("bearer_auth", "token", token, await options.awaited(token(req)))
        header = req.header("authorization")
        if header is None or len(header) > max_length + 16:
            raise refused("bearer_auth", "Bearer", "there is no token, or it is too long", req)
        match = _bearer(header)
        if match is None or len(match[1]) > max_length:
            raise refused("bearer_auth", "Bearer", "the Authorization header is not one Bearer token", req)
        if wanted is not None:
            if not same(match[1], wanted):
                raise refused("bearer_auth", "Bearer", "the token is wrong", req)
            return None
        assert verify is not None
        user = await options.awaited(verify(match[1], req))
        if user is None or user is False:
            raise refused("bearer_auth", "Bearer", "verify() refused the token", req)
        return user

    return Authentication("bearer_auth", authenticate)
