"""Ways to know who is asking, and to let in only some."""

import attrs

from core import Bindings, Request, Response, Secret, allow, create_app, optional
from core.middleware.basic_auth import basic_auth
from core.middleware.bearer_auth import bearer_auth
from core.middleware.ip_restriction import ip_restriction
from core.middleware.jwt import jwt_auth


@attrs.frozen
class Env(Bindings):
    JWT_SECRET: Secret
    DEPLOY_TOKEN: Secret
    ADMIN_PASSWORD: Secret


app = create_app(Env)


# --8<-- [start:jwt]
@attrs.frozen
class User:
    sub: str
    email: str


users = app.authenticated(jwt_auth(secret=lambda req: req.env.JWT_SECRET, claims=User, issuer="https://id.example.com"))


@users.get("/me")
async def me(req: Request[Env, User], res: Response) -> None:
    res.json({"email": req.user.email})


# --8<-- [end:jwt]

# --8<-- [start:optional]
guests = app.authenticated(optional(jwt_auth(secret=lambda req: req.env.JWT_SECRET, claims=User)))


@guests.get("/")
async def home(req: Request[Env, User | None], res: Response) -> None:
    res.json({"hello": "nobody" if req.user is None else req.user.email})


# --8<-- [end:optional]


# --8<-- [start:allow]
def is_ours(user: User) -> bool:
    return user.email.endswith("@example.com")


staff = users.authenticated(allow(is_ours, message="Only for us"))


@staff.get("/plans")
async def plans(req: Request[Env, User], res: Response) -> None:
    res.json({"for": req.user.email})


# --8<-- [end:allow]

# --8<-- [start:bearer]
app.use("/deploys", bearer_auth(token=lambda req: req.env.DEPLOY_TOKEN))
app.use("/hooks", bearer_auth(token=lambda req: req.env.DEPLOY_TOKEN, header="X-API-Key"))
# --8<-- [end:bearer]

# --8<-- [start:basic]
app.use("/admin", basic_auth(username="admin", password=lambda req: req.env.ADMIN_PASSWORD, realm="Admin"))
# --8<-- [end:basic]

# --8<-- [start:ip]
app.use("/admin", ip_restriction(allow=["10.0.0.0/8", "2001:db8::/32"]))
# --8<-- [end:ip]


@app.post("/deploys")
async def deploy(req: Request[Env], res: Response) -> None:
    res.status(202).json({})


@app.get("/admin")
async def admin(req: Request[Env], res: Response) -> None:
    res.json({"hello": "admin"})
