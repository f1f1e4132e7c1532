"""Variables and secrets, one of them being replaced."""

import attrs

from core import Bindings, Request, Response, Secret, create_app
from core.middleware.jwt import jwt_auth


# --8<-- [start:env]
@attrs.frozen
class Env(Bindings):
    ALLOWED_ORIGINS: str
    JWT_SECRET: Secret
    OLD_JWT_SECRET: Secret | None = None


# --8<-- [end:env]

app = create_app(Env)

# --8<-- [start:rotation]
auth = jwt_auth(Env, secret=lambda req: [req.env.JWT_SECRET, req.env.OLD_JWT_SECRET])
# --8<-- [end:rotation]
signed_in = app.authenticated(auth)


@signed_in.get("/origins")
async def origins(req: Request[Env, object], res: Response) -> None:
    res.json(req.env.ALLOWED_ORIGINS.split(","))
