"""Around answers: values of other types."""

from __future__ import annotations

import attrs

from core import Bindings, D1Database, Request, Response, conflict, create_app
from core.http.websocket import WebSocket
from core.middleware.trusted_hosts import trusted_hosts
from core.pagination import cursor_of, read_page


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    HOSTS: str


@attrs.frozen
class Move:
    x: int


app = create_app(Env)
app.use(trusted_hosts(hosts=7))  # E


@app.websocket("/moves")
async def moves(req: Request[Env], socket: WebSocket) -> None:
    (await socket.receive_json(Move)).y  # E
    await socket.send_json()  # E


@app.get("/")
async def show(req: Request[Env], res: Response) -> None:
    cursor_of(req, Move).link(req, "a")  # E
    res.cookie("a", "b", secret=7)  # E
    req.require_match(7)  # E
    (await req.json(Move, key="move")).y  # E
    await req.json(Move, key=7)  # E
    await req.json(key="move")  # E
    with conflict(7):  # E
        await read_page(req.env.DB, req.env.DB.prepare("SELECT 1"), "SELECT 1")  # E
    res.file(7)  # E
