"""HTTP Basic authentication (RFC 7617): a name and a password, compared in constant time.

Only over https: the password goes along with every request.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, overload

from typing_extensions import TypeForm, TypeVar

from core.errors import OptionError
from core.middleware import options
from core.middleware.authentication import Authentication, Refusal, SecretGiver, same, secrets_of
from core.request import AnyRequest, Request

__all__ = ["basic_auth"]

E = TypeVar("E")
T = TypeVar("T")

_basic = re.compile(r"[Bb][Aa][Ss][Ii][Cc] +([A-Za-z0-9+/]+={0,2})").fullmatch
_MOST_CHARACTERS = 4096


@overload
def basic_auth(
    env: TypeForm[E] = options.UNNAMED, /, *, username: str, password: SecretGiver[E], realm: str = "Restricted"
) -> Authentication[E, str]: ...
@overload
def basic_auth(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    verify: Callable[[str, str, Request[E, Any, Any]], Awaitable[T | None]],
    realm: str = "Restricted",
) -> Authentication[E, T]: ...
def basic_auth(
    env: object = options.UNNAMED,
    /,
    *,
    username: str | None = None,
    password: SecretGiver[Any] | None = None,
    verify: Callable[[str, str, AnyRequest], Awaitable[object]] | None = None,
    realm: str = "Restricted",
) -> Authentication[Any, Any]:
    """Let in who knows the password; everyone else gets 401 `{"error": "Unauthorized"}` and is asked for it.

    `username` and `password`: one account, the password by a function of the request
    (`lambda req: req.env.ADMIN_PASSWORD`), or several of them as a list; `req.user` is then the name. Or `verify`: an
    async function of name, password and request that gives the user, or None (or False) to refuse. `realm`: the name
    that browsers show.

    An authenticator and a middleware, as `jwt_auth`. Raises OptionError; an empty password is a 500.
    """
    options.named_env("basic_auth", env)
    if (password is None) == (verify is None) or (username is None) != (password is None):
        raise OptionError("basic_auth() needs either username and password, or verify")
    options.function_of_request("basic_auth", "password", password, "PASSWORD")
    if verify is not None and not callable(verify):
        raise options.refuse(
            "basic_auth", "verify", "…", "must be a function: async def verify(username, password, req)"
        )
    if callable(username):
        raise options.refuse("basic_auth", "username", username, "must be a str. For a name of the Env give verify=…")
    if username is not None:
        options.text("basic_auth", "username", username)
        if ":" in username:
            raise options.refuse("basic_auth", "username", username, "cannot have a colon, which ends it on the wire")
    options.header_value("basic_auth", "realm", realm)
    if '"' in realm or "\\" in realm:
        raise options.refuse("basic_auth", "realm", realm, "cannot have quotes or backslashes")

    async def authenticate(req: AnyRequest) -> object:
        wanted: list[bytes] = []
        if password is not None:
            wanted = secrets_of("basic_auth", "password", password, await options.awaited(password(req)))
        header = req.header("authorization")
        given = _credentials(header)
        if given is None:
            raise Refusal("there are no Basic credentials", missing=header is None)
        name, word = given
        if wanted:
            assert username is not None
            # Both are compared in any case, so that the time does not tell whether the name was right.
            if not (same(name, username) & (True in [same(word, each) for each in wanted])):
                raise Refusal("name or password is wrong")
            return username
        assert verify is not None
        user = await options.awaited(verify(name, word, req))
        if user is None or user is False:
            raise Refusal("verify() refused")
        return user

    return Authentication("basic_auth", authenticate, challenge=f'Basic realm="{realm}", charset="UTF-8"')


def _credentials(header: str | None) -> tuple[str, str] | None:
    from base64 import b64decode

    match = _basic(header) if header is not None and len(header) <= _MOST_CHARACTERS else None
    if match is None:
        return None
    try:
        name, colon, word = b64decode(match[1], validate=True).decode().partition(":")
    except ValueError:
        return None
    return (name, word) if colon else None
