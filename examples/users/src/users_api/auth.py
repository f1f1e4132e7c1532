"""Authentication: a bearer token (JWT, HS256), verified with the secret `JWT_SECRET`.

`require_auth` lets in whoever has a valid token, `require_admin` only administrators. Hand either to
`router.authenticated(…)`: its handlers then see `req.user` as a `User`.
"""

import logging
from typing import Protocol

import attrs
import jwt

from core import CoreError, Request, Secret

log = logging.getLogger(__name__)

LONGEST_TOKEN = 8192
LEAST_SECRET_BYTES = 32


class HasJwtSecret(Protocol):
    """Any Env with the secret will do."""

    @property
    def JWT_SECRET(self) -> Secret: ...


@attrs.frozen
class User:
    """Whom the token speaks of."""

    id: str
    email: str
    is_admin: bool = False

    @property
    def sub(self) -> str:
        """The id under its name in the token, which is what a rate limiter asks for."""
        return self.id


async def require_auth(req: Request[HasJwtSecret]) -> User:
    """Return the user of a valid token. Raises 401 for everything else; why is in the log and not in the answer."""
    scheme, _, token = (req.header("Authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not token or len(token) > LONGEST_TOKEN:
        raise unauthorized()
    secret = req.env.JWT_SECRET.reveal()
    if not secret:
        raise RuntimeError("JWT_SECRET is empty. Set it: write it into .dev.vars, or `wrangler secret put JWT_SECRET`")
    if len(secret.encode()) < LEAST_SECRET_BYTES:
        raise RuntimeError(
            "JWT_SECRET is too short for HS256 (RFC 7518, 3.2). Set what `openssl rand -base64 48` prints"
        )
    try:
        claims = jwt.decode(token.strip(), secret, algorithms=["HS256"], options={"require": ["exp", "sub"]})
    except jwt.InvalidTokenError as error:
        log.info("token refused: %s", error)
        raise unauthorized() from None
    email = claims.get("email")
    return User(id=claims["sub"], email=email if isinstance(email, str) else "", is_admin=claims.get("isAdmin") is True)


async def require_admin(req: Request[HasJwtSecret]) -> User:
    """Return the user of a valid token who is an administrator. Raises 401 without a token, 403 for other users."""
    user = await require_auth(req)
    if not user.is_admin:
        raise CoreError(403, "Forbidden", code="INSUFFICIENT_PERMISSIONS")
    return user


def unauthorized() -> CoreError:
    """The one answer to every bad token."""
    return CoreError(401, "Unauthorized", headers={"WWW-Authenticate": "Bearer"})
