"""PostgreSQL behind a Hyperdrive binding: one pool for each process, opened once."""

from collections.abc import AsyncIterator

import asyncpg
import attrs

from core import Bindings, CoreError, Request, Response, create_app
from core.bindings.hyperdrive import Hyperdrive


# --8<-- [start:pool]
@attrs.frozen
class Env(Bindings):
    DATABASE: Hyperdrive


app = create_app(Env)


@app.lifespan
async def pool(env: Env) -> AsyncIterator["asyncpg.Pool[asyncpg.Record]"]:
    async with asyncpg.create_pool(env.DATABASE.connection_string, min_size=1, max_size=5) as opened:
        yield opened


@attrs.frozen
class Wanted:
    id: int


@app.get("/users/:id")
async def user(req: Request[Env], res: Response) -> None:
    row = await pool.of(req).fetchrow("SELECT id, name FROM users WHERE id = $1", req.params.parse(Wanted).id)
    if row is None:
        raise CoreError(404, "No such user")
    res.json(dict(row))


# --8<-- [end:pool]


@app.post("/users")
async def create(req: Request[Env], res: Response) -> None:
    name = (await req.json(dict[str, str]))["name"]
    async with pool.of(req).acquire() as connection, connection.transaction():
        id = await connection.fetchval("INSERT INTO users (name) VALUES ($1) RETURNING id", name)
    res.status(201).json({"id": id, "name": name})
