"""Who is asking: `Authorization: Token <jwt>` (or Bearer), signed with the secret `JWT_SECRET` (HS256).

`current_user` demands a token, `viewer` takes one into account: what somebody follows and has favourited.
"""

import time

import attrs
import jwt

from conduit.env import Env
from core import CoreError, Request

LIFETIME = 7 * 24 * 3600


@attrs.frozen
class User:
    id: int
    username: str
    email: str
    bio: str | None
    image: str | None


async def current_user(req: Request[Env]) -> User:
    """Return the user of a valid token. Raises 401 for everything else."""
    user_id = await viewer(req)
    if user_id is None:
        raise unauthorized("is missing")
    statement = req.env.DB.prepare("SELECT id, username, email, bio, image FROM users WHERE id = ?")
    user = await statement.bind(user_id).first(User)
    if user is None:
        raise unauthorized("is invalid")
    return user


async def viewer(req: Request[Env]) -> int | None:
    """Return the user's id of a valid token, or None where there is no token. Raises 401 for a bad one."""
    header = req.header("Authorization")
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    try:
        claims = jwt.decode(token, key(req.env), algorithms=["HS256"], options={"require": ["exp", "sub"]})
        if scheme.lower() in ("token", "bearer"):
            return int(claims["sub"])
    except (jwt.InvalidTokenError, ValueError):
        pass
    raise unauthorized("is invalid")


def issue_token(env: Env, user_id: int) -> str:
    return jwt.encode({"sub": str(user_id), "exp": int(time.time()) + LIFETIME}, key(env), algorithm="HS256")


def key(env: Env) -> str:
    secret = env.JWT_SECRET.reveal()
    if len(secret) < 32:
        raise RuntimeError("JWT_SECRET is too short for HS256. Set it to what `openssl rand -base64 48` prints")
    return secret


def unauthorized(message: str) -> CoreError:
    return CoreError(401, message, headers={"WWW-Authenticate": "Token"}, field="token")
