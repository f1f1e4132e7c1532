"""Sign in with a password: what `docs/how-to/authenticate.md` shows."""

import attrs

from core import Bindings, CoreError, D1Database, Request, Response, create_app, passwords


@attrs.frozen
class Env(Bindings):
    DB: D1Database


@attrs.frozen
class Credentials:
    email: str
    password: str


@attrs.frozen
class Account:
    id: int
    password: str


app = create_app(Env)


# --8<-- [start:sign-in]
@app.post("/sign-in")
async def sign_in(req: Request[Env], res: Response) -> None:
    given = await req.json(Credentials)
    find = req.env.DB.prepare("SELECT id, password FROM accounts WHERE email = ?")
    account = await find.bind(given.email).first(Account)
    right = await passwords.verify(given.password, account.password if account else None)
    if account is None or not right:
        raise CoreError(401, "Wrong address or password")
    if await passwords.needs_rehash(account.password):
        change = req.env.DB.prepare("UPDATE accounts SET password = ? WHERE id = ?")
        await change.bind(await passwords.hash(given.password), account.id).run()
    res.json({"id": account.id})


# --8<-- [end:sign-in]
