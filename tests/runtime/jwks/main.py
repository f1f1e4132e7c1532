"""An application whose users bring tokens that an issuer signed.

The test writes `issuer`, when it knows where that is.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import jwt  # noqa: F401  # so that it goes into the bundle

from core import Request, Response, create_app
from core.middleware.jwt import JWTUser, jwt_auth

ISSUER = "https://issuer.test"
settings: Any = import_module("issuer")
url: str = settings.URL
key: bytes = settings.PEM
short: bytes = settings.SHORT_PEM

app = create_app()
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
users = app.authenticated(jwt_auth(jwks=url, algorithms=ALGORITHMS, issuer=ISSUER))
weak = app.authenticated(jwt_auth(secret=lambda req: short, algorithms=["RS256"], issuer=ISSUER))
known = app.authenticated(jwt_auth(secret=lambda req: key, algorithms=["ES256"], issuer=ISSUER))


@users.get("/me")
async def me(req: Request[object, JWTUser], res: Response) -> None:
    """The subject of the token."""
    res.json({"sub": req.user.sub})


@known.get("/pem")
async def pem(req: Request[object, JWTUser], res: Response) -> None:
    """The subject of the token, by the one key that the application has."""
    res.json({"sub": req.user.sub})


@weak.get("/short")
async def too_short(req: Request[object, JWTUser], res: Response) -> None:
    """Nobody: the key could be factored."""
    res.json({"sub": req.user.sub})
