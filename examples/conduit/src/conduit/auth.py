"""Authentication: `Authorization: Token <jwt>`, signed with the secret `JWT_SECRET` (HS256).

Behind `token`, `current_user` demands its user. `optional(token)` takes one into account: the `viewer`, who follows
others and has favourites.
"""

import attrs
from attrs.validators import matches_re

from conduit.env import Env
from core import AuthenticationError, Request
from core.middleware.jwt import jwt_auth

LIFETIME = 7 * 24 * 3600


@attrs.frozen
class Claims:
    sub: str = attrs.field(validator=matches_re("[0-9]+"))


@attrs.frozen
class User:
    id: int
    username: str
    email: str
    bio: str | None
    image: str | None


token = jwt_auth(Env, secret=lambda req: req.env.JWT_SECRET, claims=Claims, scheme="Token")


async def current_user(req: Request[Env, Claims]) -> User:
    statement = req.env.DB.prepare("SELECT id, username, email, bio, image FROM users WHERE id = ?")
    return await statement.bind(req.user.sub).one(User, error=AuthenticationError("Token"))


def viewer(user: Claims | None) -> int | None:
    return None if user is None else int(user.sub)


async def issue_token(req: Request[Env], user: User) -> str:
    return await token.issue(req, Claims(str(user.id)), expires_in=LIFETIME)
