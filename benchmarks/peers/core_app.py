"""core, through its ASGI host."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs

from benchmarks.peers.rows import SQL
from benchmarks.workloads import ORIGIN, ROWS
from core import App, Bindings, D1Database, Next, Request, Response, create_app
from core.hosts.asgi import asgi
from core.middleware.cors import cors
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs


@attrs.frozen
class User:
    name: str
    email: str
    age: int


@attrs.frozen
class Row:
    id: int
    name: str
    email: str


@attrs.frozen
class Env(Bindings):
    DB: D1Database


def null(line: str) -> None:
    pass


def application(routes: list[str], four: bool = False) -> App[Any]:
    app = create_app()
    if four:
        app.use(request_id(), logger(write=null), secure_hdrs(), cors(origins=[ORIGIN]))

    @app.get("/")
    async def plaintext(req: Request, res: Response) -> None:
        res.text("hello")

    @app.get("/json")
    async def message(req: Request, res: Response) -> None:
        res.json({"message": "hello"})

    @app.get("/users/:id")
    async def param(req: Request, res: Response) -> None:
        res.json({"id": req.params["id"]})

    @app.get("/full/users/:id")
    async def full(req: Request, res: Response) -> None:
        page, limit = int(req.query["page"]), int(req.query["limit"])
        res.json({"id": req.params["id"], "page": page, "limit": limit, "rows": ROWS})

    @app.get("/rows/:id")
    async def row(req: Request[Env], res: Response) -> None:
        res.json(await req.env.DB.prepare(SQL).bind(int(req.params["id"])).one(Row))

    @app.post("/users")
    async def post(req: Request, res: Response) -> None:
        res.status(201).json(await req.json(User))

    @app.get("/error")
    async def error(req: Request, res: Response) -> None:
        raise ValueError("secret")

    @app.on_error
    async def on_error(err: Exception, req: Request, res: Response, next: Next) -> None:
        res.status(500).json({"error": "Internal Server Error"})

    for route in routes:
        app.get(route, message)
    return app


def build(routes: list[str], four: bool = False) -> Any:
    return asgi(application(routes, four), environment())


def environment() -> Env | None:
    """The embedded D1 over the file that every peer reads, where one is named."""
    file = os.environ.get("CORE_BENCH_DATABASE")
    if file is None:
        return None
    from core.backends.embedded.d1 import EmbeddedD1Database
    from core.backends.embedded.store import Store

    path = Path(file)
    return Env(DB=EmbeddedD1Database(Store(path.parent.parent), path.stem))
