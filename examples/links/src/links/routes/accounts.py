"""`/sign-up`, `/sign-in`, `/sign-out`: forms of the first page."""

import attrs
from attrs.validators import and_, matches_re, max_len, min_len

from core import CoreError, Request, Response, Router, conflict, passwords
from core.middleware.rate_limit import rate_limit
from links.auth import COOKIE, User, remember
from links.env import Env

accounts: Router[Env] = Router()
slowly = rate_limit(Env, kv_binding="CACHE", limit=10, window=60, name="accounts")  # a hash costs a third of a second


@attrs.frozen
class Credentials:
    email: str = attrs.field(validator=and_(matches_re(r"\S+@\S+"), max_len(254)))
    password: str = attrs.field(validator=and_(min_len(8), max_len(200)))


@attrs.frozen
class Account:
    id: int
    password: str


@accounts.post("/sign-up", slowly)
async def sign_up(req: Request[Env], res: Response) -> None:
    given = (await req.form()).parse(Credentials)
    insert = req.env.DB.prepare("INSERT INTO users (email, password) VALUES (?, ?) RETURNING id, password")
    with conflict("email", message="has an account"):
        account = await insert.bind(given.email, await passwords.hash(given.password)).one(Account)
    await remember(req, res, User(str(account.id)))
    res.redirect("/", 303)


@accounts.post("/sign-in", slowly)
async def sign_in(req: Request[Env], res: Response) -> None:
    given = (await req.form()).parse(Credentials)
    find = req.env.DB.prepare("SELECT id, password FROM users WHERE email = ?")
    account = await find.bind(given.email).first(Account)
    right = await passwords.verify(given.password, account.password if account else None)
    if account is None or not right:
        raise CoreError(403, "Wrong address or password")
    await remember(req, res, User(str(account.id)))
    res.redirect("/", 303)


@accounts.post("/sign-out")
async def sign_out(req: Request[Env], res: Response) -> None:
    res.delete_cookie(COOKIE).redirect("/", 303)
