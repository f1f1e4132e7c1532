"""BlackSheep, compiled with Cython."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from blacksheep import Application, FromJSON, Request, Response, Router, json, text

from benchmarks.peers.rows import row_of
from benchmarks.workloads import ORIGIN, ROWS, SECURE_HEADERS

SECURE = [(name.encode(), value.encode()) for name, value in SECURE_HEADERS.items()]


@dataclass
class User:
    name: str
    email: str
    age: int


def null(line: str) -> None:
    pass


def build(routes: list[str], four: bool = False) -> Any:
    app = Application(router=Router())

    async def request_id(request: Request, handler: Any) -> Response:
        request_id = request.get_first_header(b"x-request-id") or uuid.uuid4().hex.encode()
        response: Response = await handler(request)
        response.add_header(b"x-request-id", request_id)
        return response

    async def logger(request: Request, handler: Any) -> Response:
        begin = perf_counter()
        response: Response = await handler(request)
        milliseconds = round((perf_counter() - begin) * 1000)
        null(f"{request.method} {request.url.path} {response.status} {milliseconds}ms")
        return response

    async def secure(request: Request, handler: Any) -> Response:
        response: Response = await handler(request)
        for name, value in SECURE:
            response.add_header(name, value)
        return response

    async def cors(request: Request, handler: Any) -> Response:
        response: Response = await handler(request)
        response.add_header(b"vary", b"Origin")
        if request.get_first_header(b"origin") == ORIGIN.encode():
            response.add_header(b"access-control-allow-origin", ORIGIN.encode())
        return response

    if four:
        for middleware in (request_id, logger, secure, cors):
            app.middlewares.append(middleware)

    @app.router.get("/")
    async def plaintext() -> Response:
        return text("hello")

    @app.router.get("/json")
    async def message() -> Response:
        return json({"message": "hello"})

    @app.router.get("/users/:id")
    async def param(id: str) -> Response:
        return json({"id": id})

    @app.router.get("/full/users/:id")
    async def full(id: str, page: int, limit: int) -> Response:
        return json({"id": id, "page": page, "limit": limit, "rows": ROWS})

    @app.router.get("/rows/:id")
    async def row(id: int) -> Response:
        return json(row_of(id))

    @app.router.post("/users")
    async def post(data: FromJSON[User]) -> Response:
        user = data.value
        return json({"name": user.name, "email": user.email, "age": user.age}, 201)

    @app.router.get("/error")
    async def error() -> Response:
        raise ValueError("secret")

    async def on_error(_: Any, request: Request, exc: Exception) -> Response:
        return json({"error": "Internal Server Error"}, 500)

    async def not_found(_: Any, request: Request, exc: Exception) -> Response:
        return json({"error": "Not Found"}, 404)

    app.exceptions_handlers[ValueError] = on_error
    app.exceptions_handlers[404] = not_found
    for route in routes:
        app.router.add_get(route, make())
    return app


def make() -> Any:
    async def handler(request: Request) -> Response:
        return json({"message": "hello"})

    return handler
