"""Around answers: JSON over a WebSocket, cursors, secrets, hosts."""

from __future__ import annotations

from typing import Any, assert_type

import attrs

from core import Bindings, Request, Response, Secret, create_app
from core.http.websocket import WebSocket
from core.middleware.trusted_hosts import trusted_hosts
from core.pagination import Cursor, cursor_of, page_of


@attrs.frozen
class Env(Bindings):
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
    req.require_match(None)
    res.file("a.txt", filename="b.txt")
