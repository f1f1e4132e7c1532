"""`/users`, `/users/login`, `/user`: sign up, sign in, and the account of who is asking."""

from typing import Any

import attrs

from conduit.auth import User, current_user, issue_token, token
from conduit.env import Env
from conduit.validation import KEEP, filled, long_enough
from core import CoreError, D1Error, Request, Response, Router, passwords

users: Router[Env] = Router()
signed_in = users.authenticated(token).authenticated(current_user)

ABSENT: Any = object()  # told from null, which empties `bio` and `image`


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
    username: str = attrs.field(default=KEEP, validator=filled)
    email: str = attrs.field(default=KEEP, validator=filled)
    password: str = attrs.field(default=KEEP, validator=long_enough)
    bio: str | None = ABSENT
    image: str | None = ABSENT


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
        user = await statement.bind(new.username, new.email, await passwords.hash(new.password)).first(User)
    except D1Error as error:
        raise taken(error) from error
    assert user is not None
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
    password = None if change.password is KEEP else await passwords.hash(change.password)
    statement = req.env.DB.prepare(
        """
        UPDATE users SET username = coalesce(?, username), email = coalesce(?, email),
            password = coalesce(?, password), bio = iif(?, bio, ?), image = iif(?, image, ?)
        WHERE id = ? RETURNING id, username, email, bio, image
        """
    ).bind(
        *(change.username, change.email, password),
        *(change.bio is ABSENT, None if change.bio is ABSENT else change.bio or None),
        *(change.image is ABSENT, None if change.image is ABSENT else change.image or None),
        req.user.id,
    )
    try:
        user = await statement.first(User)
    except D1Error as error:
        raise taken(error) from error
    assert user is not None
    res.json(await shown(req, user))


async def shown(req: Request[Env, Any], user: User) -> dict[str, SignedIn]:
    return {"user": SignedIn(user.email, await issue_token(req, user), user.username, user.bio, user.image)}


def taken(error: D1Error) -> Exception:
    """The answer to a client when the database refuses a second user of the same name or address."""
    if error.constraint != "UNIQUE":
        return error
    return CoreError(409, "has already been taken", field=error.columns[0].removeprefix("users."))
