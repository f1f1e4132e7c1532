"""Around answers: JSON over a WebSocket, cursors, secrets, hosts."""

from __future__ import annotations

from typing import Any, assert_type

import attrs

from core import Bindings, D1Database, Request, Response, Secret, conflict, create_app
from core.http.websocket import WebSocket
from core.middleware.trusted_hosts import trusted_hosts
from core.pagination import Cursor, cursor_of, page_of, read_page


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    HOSTS: str
    COOKIE_SECRET: Secret
    OLD_SECRET: Secret | None


@attrs.frozen
class Move:
    x: int


@attrs.frozen
class Row:
    id: int


app = create_app(Env)
app.use(trusted_hosts(hosts=["example.com"]))
app.use(trusted_hosts(hosts=lambda req: req.env.HOSTS.split(",")))
kept = trusted_hosts(Env, hosts=lambda req: req.env.HOSTS.split(","))
app.use(kept)


async def ticket(req: Request[Env]) -> dict[str, str]:
    return {"X-Host": req.env.HOSTS}


@app.websocket("/moves", headers={"X-Game": "chess"})
async def moves(req: Request[Env], socket: WebSocket) -> None:
    assert_type(await socket.receive_json(), Any)
    assert_type(await socket.receive_json(Move), Move)
    assert_type(await socket.receive_json(list[Move]), list[Move])
    await socket.send_json([Move(1)])


@app.websocket("/more", headers=lambda req: {"X-Host": req.env.HOSTS})
async def more(req: Request[Env], socket: WebSocket) -> None: ...


@app.websocket("/later", headers=ticket)
async def later(req: Request[Env], socket: WebSocket) -> None: ...


@app.get("/")
async def show(req: Request[Env], res: Response) -> None:
    cursor = cursor_of(req, Move)
    assert_type(cursor, Cursor[Move])
    rows = [Row(1)]
    shown, after = cursor.cut(rows, lambda row: Move(row.id))
    assert_type(after, Move | None)
    res.header("Link", cursor.link(req, after)).header("Link", page_of(req).link(req, total=1)).json(shown)
    res.cookie("a", "b", secret=[req.env.COOKIE_SECRET, req.env.OLD_SECRET])
    assert_type(req.signed_cookie("a", req.env.COOKIE_SECRET), str | None)
    res.redirect(req.local_url(req.query.get("next")))
    statement = req.env.DB.prepare("SELECT 1 AS id").as_(Row)
    with conflict("email"), conflict("email", "name", message="is taken"):
        found, total = await read_page(req.env.DB, statement, req.env.DB.prepare("SELECT 1"))
        in_session = await read_page(req.env.DB.with_session(), statement, statement)
    assert_type(found, list[Row])
    assert_type(total, int)
    assert_type(in_session[0], list[Row])
    assert_type(await req.json(Move, key="move"), Move)
    assert_type(await req.json(list[Move], key=None), list[Move])
    req.require_match(None)
    res.file("a.txt", filename="b.txt")
