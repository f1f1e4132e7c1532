"""`/users`, `/users/login`, `/user`: sign up, sign in, and the account of who is asking."""

from typing import Any

import attrs

from conduit.auth import User, current_user, issue_token, token
from conduit.env import Env
from conduit.validation import filled, long_enough
from core import UNSET, CoreError, D1Error, Request, Response, Router, Unset, given, passwords

users: Router[Env] = Router()
signed_in = users.authenticated(token).authenticated(current_user)


@attrs.frozen
class Credentials:
    email: str = attrs.field(validator=filled)
    password: str = attrs.field(validator=filled)


@attrs.frozen
class Login:
    user: Credentials


@attrs.frozen
class NewUser:
    username: str = attrs.field(validator=filled)
    email: str = attrs.field(validator=filled)
    password: str = attrs.field(validator=[filled, long_enough])


@attrs.frozen
class SignUp:
    user: NewUser


@attrs.frozen
class UserFields:
    username: str | Unset = attrs.field(default=UNSET, validator=given(filled))
    email: str | Unset = attrs.field(default=UNSET, validator=given(filled))
    password: str | Unset = attrs.field(default=UNSET, validator=given(long_enough))
    bio: str | Unset | None = UNSET
    image: str | Unset | None = UNSET


@attrs.frozen
class UserChange:
    user: UserFields


@attrs.frozen
class Account(User):
    password: str


@attrs.frozen
class SignedIn:
    """A user as they see themselves, with the token for requests to come."""

    email: str
    token: str
    username: str
    bio: str | None
    image: str | None


@users.post("/users")
async def sign_up(req: Request[Env], res: Response) -> None:
    new = (await req.json(SignUp)).user
    statement = req.env.DB.prepare(
        "INSERT INTO users (username, email, password) VALUES (?, ?, ?) RETURNING id, username, email, bio, image"
    )
    try:
        user = await statement.bind(new.username, new.email, await passwords.hash(new.password)).one(User)
    except D1Error as error:
        raise taken(error) from error
    res.status(201).json(await shown(req, user))


@users.post("/users/login")
async def login(req: Request[Env], res: Response) -> None:
    given = (await req.json(Login)).user
    statement = req.env.DB.prepare("SELECT id, username, email, bio, image, password FROM users WHERE email = ?")
    account = await statement.bind(given.email).first(Account)
    right = await passwords.verify(given.password, account.password if account else None)
    if account is None or not right:
        raise CoreError(401, "invalid", field="credentials")
    res.json(await shown(req, account))


@signed_in.get("/user")
async def get_user(req: Request[Env, User], res: Response) -> None:
    res.json(await shown(req, req.user))


@signed_in.put("/user")
async def update_user(req: Request[Env, User], res: Response) -> None:
    change = (await req.json(UserChange)).user
    password = UNSET if change.password is UNSET else await passwords.hash(change.password)
    statement = req.env.DB.prepare(
        """
        UPDATE users SET username = ?, email = ?, password = ?, bio = nullif(?, ''), image = nullif(?, '')
        WHERE id = ? RETURNING id, username, email, bio, image
        """
    )
    values = (change.username, change.email, password, change.bio, change.image)
    try:
        user = await statement.bind(*values, req.user.id).one(User)
    except D1Error as error:
        raise taken(error) from error
    res.json(await shown(req, user))


async def shown(req: Request[Env, Any], user: User) -> dict[str, SignedIn]:
    return {"user": SignedIn(user.email, await issue_token(req, user), user.username, user.bio, user.image)}


def taken(error: D1Error) -> Exception:
    """The answer to a client when the database refuses a second user of the same name or address."""
    if error.constraint != "UNIQUE":
        return error
    return CoreError(409, "has already been taken", field=error.columns[0].removeprefix("users."))
