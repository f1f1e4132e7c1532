"""`/users`, `/users/login`, `/user`: sign up, sign in, and the account of who is asking."""

from typing import Any

import attrs

from conduit.auth import User, current_user, issue_token, token
from conduit.env import Env
from conduit.validation import filled, long_enough
from core import UNSET, AuthenticationError, CoreError, Request, Response, Router, Unset, conflict, given, passwords

users: Router[Env] = Router()
signed_in = users.authenticated(token).authenticated(current_user)

taken = conflict("username", "email", message="has already been taken")


@attrs.frozen
class Credentials:
    email: str = attrs.field(validator=filled)
    password: str = attrs.field(validator=filled)


@attrs.frozen
class NewUser:
    username: str = attrs.field(validator=filled)
    email: str = attrs.field(validator=filled)
    password: str = attrs.field(validator=[filled, long_enough])


@attrs.frozen
class UserChange:
    username: str | Unset = attrs.field(default=UNSET, validator=given(filled))
    email: str | Unset = attrs.field(default=UNSET, validator=given(filled))
    password: str | Unset = attrs.field(default=UNSET, validator=given(long_enough))
    bio: str | Unset | None = UNSET
    image: str | Unset | None = UNSET


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
    """Sign up."""
    new = await req.json(NewUser, key="user")
    statement = req.env.DB.prepare(
        "INSERT INTO users (username, email, password) VALUES (?, ?, ?) RETURNING id, username, email, bio, image"
    )
    with taken:
        user = await statement.bind(new.username, new.email, await passwords.hash(new.password)).one(User)
    res.status(201).json(await shown(req, user))


@users.post("/users/login")
async def login(req: Request[Env], res: Response) -> None:
    """Sign in with address and password."""
    given = await req.json(Credentials, key="user")
    statement = req.env.DB.prepare("SELECT id, username, email, bio, image, password FROM users WHERE email = ?")
    account = await statement.bind(given.email).first(Account)
    right = await passwords.verify(given.password, account.password if account else None)
    if account is None or not right:
        raise CoreError(401, "invalid", field="credentials")
    res.json(await shown(req, account))


@signed_in.get("/user")
async def get_user(req: Request[Env, User], res: Response) -> None:
    """Show the own account."""
    res.json(await shown(req, req.user))


@signed_in.put("/user")
async def update_user(req: Request[Env, User], res: Response) -> None:
    """Change what is given of the own account; an empty bio or image becomes null."""
    change = await req.json(UserChange, key="user")
    password = UNSET if change.password is UNSET else await passwords.hash(change.password)
    statement = req.env.DB.prepare(
        "UPDATE users SET username = ?, email = ?, password = ?, bio = nullif(?, ''), image = nullif(?, '') "
        "WHERE id = ? RETURNING id, username, email, bio, image"
    )
    values = (change.username, change.email, password, change.bio, change.image)
    with taken:
        user = await statement.bind(*values, req.user.id).one(User, error=AuthenticationError("Token"))
    res.json(await shown(req, user))


async def shown(req: Request[Env, Any], user: User) -> dict[str, SignedIn]:
    return {"user": SignedIn(user.email, await issue_token(req, user), user.username, user.bio, user.image)}
