"""`/accounts`: sign up and sign in."""

import attrs
from core import CoreError, Request, Response, Router, conflict, passwords
from my_notes.env import Env

from my_notes.auth import User, auth

accounts: Router[Env] = Router()

WEEK = 7 * 24 * 3600


@attrs.frozen
class Credentials:
    email: str
    password: str = attrs.field(validator=attrs.validators.min_len(8))


@attrs.frozen
class Account:
    id: int
    password: str


@accounts.post("/")
async def sign_up(req: Request[Env], res: Response) -> None:
    given = await req.json(Credentials)
    insert = req.env.DB.prepare("INSERT INTO accounts (email, password) VALUES (?, ?) RETURNING id")
    with conflict("email", message="has an account"):
        account_id: int = await insert.bind(given.email, await passwords.hash(given.password)).first("id")
    token = await auth.issue(req, User(sub=str(account_id)), expires_in=WEEK)
    res.status(201).json({"token": token})


@accounts.post("/sign-in")
async def sign_in(req: Request[Env], res: Response) -> None:
    given = await req.json(Credentials)
    find = req.env.DB.prepare("SELECT id, password FROM accounts WHERE email = ?")
    account = await find.bind(given.email).first(Account)
    # An unknown address takes as long as a wrong password, so that time does not reveal who has an account.
    right = await passwords.verify(given.password, account.password if account else None)
    if account is None or not right:
        raise CoreError(401, "Wrong address or password")
    res.json({"token": await auth.issue(req, User(sub=str(account.id)), expires_in=WEEK)})
