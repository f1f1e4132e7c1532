"""Authentication: a typed user on every route of a router."""

import attrs

from core import Bindings, CoreError, Request, Response, Secret, create_app
from core.middleware.jwt import jwt_auth


@attrs.frozen
class Env(Bindings):
    JWT_SECRET: Secret


# --8<-- [start:jwt]
@attrs.frozen
class User:
    sub: str
    email: str


app = create_app(Env)
signed_in = app.authenticated(jwt_auth(secret=lambda req: req.env.JWT_SECRET, claims=User))


@signed_in.get("/me")
async def me(req: Request[Env, User], res: Response) -> None:
    res.json({"email": req.user.email})


# --8<-- [end:jwt]


# --8<-- [start:own]
@attrs.frozen
class Partner:
    name: str


async def partner(req: Request[Env]) -> Partner:
    """Any async function of the request that returns the user, or raises to refuse."""
    if req.header("X-Partner-Key") != req.env.JWT_SECRET.reveal():
        raise CoreError(401, "Unauthorized")
    return Partner("The only partner")


partners = app.Router().authenticated(partner)


@partners.get("/report")
async def report(req: Request[Env, Partner], res: Response) -> None:
    res.json({"for": req.user.name})


app.use("/partners", partners)
# --8<-- [end:own]
