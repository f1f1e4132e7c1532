"""hayate, through its ASGI entry, with its own middleware."""

from __future__ import annotations

import logging
from typing import Any

from hayate import Context, Hayate, Response
from hayate.middleware.cors import cors
from hayate.middleware.logger import logger
from hayate.middleware.request_id import request_id
from hayate.middleware.secure_headers import secure_headers

from benchmarks.peers.rows import row_of
from benchmarks.workloads import ORIGIN, ROWS, SECURE_HEADERS

# Its logger takes a logging.Logger. One that takes lines and drops them is the sink of the others.
SINK = logging.getLogger("benchmarks.null")
SINK.addHandler(logging.NullHandler())
SINK.setLevel(logging.INFO)
SINK.propagate = False


def build(routes: list[str], four: bool = False) -> Any:
    app = Hayate()
    all_four = (
        request_id(),
        logger(SINK),
        secure_headers(
            content_security_policy=SECURE_HEADERS["content-security-policy"],
            permissions_policy=SECURE_HEADERS["permissions-policy"],
        ),
        cors(origin=ORIGIN),
    )
    for middleware in all_four if four else ():
        app.use("*", middleware)

    @app.get("/")
    async def plaintext(c: Context) -> Response:
        return c.text("hello")

    @app.get("/json")
    async def message(c: Context) -> Response:
        return c.json({"message": "hello"})

    @app.get("/users/:id")
    async def param(c: Context) -> Response:
        return c.json({"id": c.req.param("id")})

    @app.get("/full/users/:id")
    async def full(c: Context) -> Response:
        page, limit = c.req.query("page"), c.req.query("limit")
        return c.json({"id": c.req.param("id"), "page": int(page or 0), "limit": int(limit or 0), "rows": ROWS})

    @app.get("/rows/:id")
    async def row(c: Context) -> Response:
        return c.json(row_of(int(c.req.param("id") or 0)))

    @app.post("/users")
    async def post(c: Context) -> Response:
        value = await c.req.json()
        if not (
            type(value) is dict
            and type(value.get("name")) is str
            and type(value.get("email")) is str
            and type(value.get("age")) is int
        ):
            return c.json({"error": "Validation failed"}, 422)
        return c.json({"name": value["name"], "email": value["email"], "age": value["age"]}, 201)

    @app.get("/error")
    async def error(c: Context) -> Response:
        raise ValueError("secret")

    @app.on_error
    async def on_error(err: Exception, c: Context) -> Response:
        return c.json({"error": "Internal Server Error"}, 500)

    @app.not_found
    async def not_found(c: Context) -> Response:
        return c.json({"error": "Not Found"}, 404)

    for route in routes:
        app.get(route)(message)
    return app
