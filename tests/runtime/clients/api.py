"""An application with an answer of every kind: `core openapi` describes it, and `main.py` asks it through a client."""

import datetime as dt
from collections.abc import AsyncIterator

import attrs

from core import Bindings, CoreError, Request, Response, create_app
from core.bindings.fetcher import Fetcher


@attrs.frozen
class Env(Bindings):
    ITSELF: Fetcher


@attrs.frozen
class User:
    id: int
    name: str
    born: dt.date


@attrs.frozen
class NewUser:
    name: str


app = create_app(Env)


@app.get("/users/:id")
async def get_user(req: Request[Env], res: Response) -> None:
    if req.params["id"] != "1":
        raise CoreError(404, "User not found", code="NO_USER")
    res.json(User(1, "Ada", dt.date(1815, 12, 10)))


@app.post("/users")
async def create_user(req: Request[Env], res: Response) -> None:
    new = await req.json(NewUser)
    res.status(201).json({"name": new.name, "agent": req.header("X-Agent")})


@app.get("/numbers")
async def numbers(req: Request[Env], res: Response) -> None:
    async def some() -> AsyncIterator[int]:
        for number in (1, 2, 3):
            yield number

    res.sse(some())
