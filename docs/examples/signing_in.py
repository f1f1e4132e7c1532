"""Sign up, sign in, and who may do what: what `docs/how-to/sign-in.md` shows."""

import attrs

from core import (
    Bindings,
    CoreError,
    D1Database,
    Request,
    Response,
    Secret,
    allow,
    conflict,
    create_app,
    optional,
    passwords,
)
from core.middleware.jwt import jwt_auth


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    JWT_SECRET: Secret
    OLD_JWT_SECRET: Secret | None = None


# --8<-- [start:auth]
@attrs.frozen
class User:
    sub: str
    role: str


app = create_app(Env)
auth = jwt_auth(Env, secret=lambda req: [req.env.JWT_SECRET, req.env.OLD_JWT_SECRET], claims=User)
# --8<-- [end:auth]


# --8<-- [start:sign-up]
@attrs.frozen
class Credentials:
    email: str
    password: str = attrs.field(validator=attrs.validators.min_len(8))


@app.post("/sign-up")
async def sign_up(req: Request[Env], res: Response) -> None:
    given = await req.json(Credentials)
    insert = req.env.DB.prepare("INSERT INTO accounts (email, password) VALUES (?, ?) RETURNING id, role, password")
    with conflict("email", message="has an account"):
        account = await insert.bind(given.email, await passwords.hash(given.password)).one(Account)
    res.status(201).json({"token": await token_for(req, account)})


# --8<-- [end:sign-up]


# --8<-- [start:sign-in]
@attrs.frozen
class Account:
    id: int
    role: str
    password: str


@app.post("/sign-in")
async def sign_in(req: Request[Env], res: Response) -> None:
    given = await req.json(Credentials)
    find = req.env.DB.prepare("SELECT id, role, password FROM accounts WHERE email = ?")
    account = await find.bind(given.email).first(Account)
    right = await passwords.verify(given.password, account.password if account else None)
    if account is None or not right:
        raise CoreError(401, "Wrong address or password")
    if await passwords.needs_rehash(account.password):
        change = req.env.DB.prepare("UPDATE accounts SET password = ? WHERE id = ?")
        await change.bind(await passwords.hash(given.password), account.id).run()
    res.json({"token": await token_for(req, account)})


async def token_for(req: Request[Env], account: Account) -> str:
    return await auth.issue(req, User(sub=str(account.id), role=account.role), expires_in=7 * 24 * 3600)


# --8<-- [end:sign-in]


# --8<-- [start:who]
signed_in = app.authenticated(auth)
anyone = app.authenticated(optional(auth))


def is_editor(user: User) -> bool:
    return user.role in ("editor", "admin")


editors = signed_in.authenticated(allow(is_editor))


@signed_in.get("/me")
async def me(req: Request[Env, User], res: Response) -> None:
    res.json({"id": req.user.sub, "role": req.user.role})


@anyone.get("/")
async def home(req: Request[Env, User | None], res: Response) -> None:
    res.json({"hello": "nobody" if req.user is None else req.user.sub})


@editors.delete("/articles/:id")
async def delete(req: Request[Env, User], res: Response) -> None:
    res.status(204).send()


# --8<-- [end:who]
