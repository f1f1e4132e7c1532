"""Robyn, whose server and router are Rust: `python -m benchmarks.peers.robyn_app PORT`.

It has a server of its own and no ASGI, so it is measured over HTTP alone. The four middleware of `full` are a decorator
of its handler, which is shorter than its own hooks: those hand a value on to each other in headers only.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from robyn import Headers, Request, Response, Robyn, jsonify

from benchmarks.peers.rows import row_of
from benchmarks.workloads import ORIGIN, ROWS, SECURE_HEADERS

Handler = Callable[[Request], Awaitable[Response]]


def null(line: str) -> None:
    pass


def with_four(handler: Handler) -> Handler:
    async def full(request: Request) -> Response:
        begin = perf_counter()
        request_id = request.headers.get("x-request-id") or uuid.uuid4().hex
        response = await handler(request)
        for name, value in SECURE_HEADERS.items():
            response.headers.set(name, value)
        response.headers.set("x-request-id", request_id)
        response.headers.set("vary", "Origin")
        if request.headers.get("origin") == ORIGIN:
            response.headers.set("access-control-allow-origin", ORIGIN)
        milliseconds = round((perf_counter() - begin) * 1000)
        null(f"{request.method} {request.url.path} {response.status_code} {milliseconds}ms")
        return response

    return full


def application() -> Robyn:
    app = Robyn(__file__)

    @app.get("/")
    async def plaintext(request: Request) -> str:
        return "hello"

    @app.get("/json")
    async def message(request: Request) -> dict[str, str]:
        return {"message": "hello"}

    @app.get("/users/:id")
    async def param(request: Request) -> dict[str, str]:
        return {"id": request.path_params["id"]}

    @app.get("/rows/:id")
    async def row(request: Request) -> dict[str, Any]:
        return row_of(int(request.path_params["id"]))

    async def rows(request: Request) -> Response:
        page, limit = (int(request.query_params.get(name, "0")) for name in ("page", "limit"))
        answer = {"id": request.path_params["id"], "page": page, "limit": limit, "rows": ROWS}
        return Response(200, Headers({"content-type": "application/json"}), jsonify(answer))

    app.get("/full/users/:id")(with_four(rows))
    return app


if __name__ == "__main__":
    port = int(sys.argv.pop())
    application().start(host="127.0.0.1", port=port)
