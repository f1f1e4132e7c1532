"""`/users`: anyone may read and sign up, users change records, administrators delete them."""

import attrs

from core import CoreError, Request, Response, Router, conflict
from core.middleware.rate_limit import rate_limit
from users_api.auth import User, require_admin, require_auth
from users_api.background import record_event
from users_api.env import Env

users: Router[Env] = Router()
signed_in = users.authenticated(require_auth)
admins = users.authenticated(require_admin)

MOST_PER_PAGE = 100
LAST_PAGE = 1_000_000  # a number that SQL cannot hold is an error there


@attrs.frozen
class Page:
    page: int = 1
    limit: int = 20


@attrs.frozen
class UserRecord:
    id: int
    name: str
    email: str


@attrs.frozen
class NewUser:
    name: str
    email: str


@attrs.frozen
class UserChange:
    name: str | None = None
    email: str | None = None


@users.get("/")
async def list_users(req: Request[Env], res: Response) -> None:
    query = req.query.parse(Page)
    page, limit = min(max(query.page, 1), LAST_PAGE), min(max(query.limit, 1), MOST_PER_PAGE)
    statement = req.env.DB.prepare("SELECT id, name, email FROM users ORDER BY id LIMIT ? OFFSET ?")
    found = await statement.bind(limit, (page - 1) * limit).all(UserRecord)
    res.json({"page": page, "results": found.results})


@users.get("/:id")
async def get_user(req: Request[Env], res: Response) -> None:
    statement = req.env.DB.prepare("SELECT id, name, email FROM users WHERE id = ?")
    user = await statement.bind(req.params["id"]).first(UserRecord)
    if user is None:
        raise CoreError(404, "User not found")
    res.json(user)


@users.post("/", rate_limit(kv_binding="COUNTERS", limit=10, window=60))
async def create_user(req: Request[Env], res: Response) -> None:
    new = await req.json(NewUser)
    statement = req.env.DB.prepare("INSERT INTO users (name, email) VALUES (?, ?) RETURNING id")
    with conflict("email"):
        user_id = await statement.bind(new.name, new.email).first("id")
    req.ctx.wait_until(record_event(req.env, "created", user_id, req.id))
    res.status(201).json({"id": user_id})


@signed_in.put("/:id")
async def update_user(req: Request[Env, User], res: Response) -> None:
    change = await req.json(UserChange)
    statement = req.env.DB.prepare(
        "UPDATE users SET name = coalesce(?, name), email = coalesce(?, email) WHERE id = ? RETURNING id"
    )
    with conflict("email"):
        user_id = await statement.bind(change.name, change.email, req.params["id"]).first("id")
    if user_id is None:
        raise CoreError(404, "User not found")
    req.ctx.wait_until(record_event(req.env, "updated", user_id, req.id))
    res.json({"ok": True})


@admins.delete("/:id")
async def delete_user(req: Request[Env, User], res: Response) -> None:
    statement = req.env.DB.prepare("DELETE FROM users WHERE id = ? RETURNING id")
    user_id = await statement.bind(req.params["id"]).first("id")
    if user_id is None:
        raise CoreError(404, "User not found")
    req.ctx.wait_until(record_event(req.env, "deleted", user_id, req.id))
    res.status(204).send()
