"""Who is asking: a JSON Web Token in a cookie that scripts cannot read, signed with the secret `JWT_SECRET`."""

import attrs

from core import Request, Response
from core.middleware.jwt import jwt_auth
from links.env import Env

COOKIE = "token"
LIFETIME = 7 * 24 * 3600


@attrs.frozen
class User:
    sub: str


auth = jwt_auth(Env, secret=lambda req: req.env.JWT_SECRET, claims=User, cookie=COOKIE)


async def remember(req: Request[Env], res: Response, user: User) -> None:
    """Set the cookie: for a week, and over plain http only where the page came that way, as in `core dev`."""
    token = await auth.issue(req, user, expires_in=LIFETIME)
    secure = req.url.startswith("https:")
    res.cookie(COOKIE, token, max_age=LIFETIME, http_only=True, same_site="Lax", secure=secure)
