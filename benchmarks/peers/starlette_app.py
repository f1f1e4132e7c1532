"""Starlette, with pure ASGI middleware, which is the quicker of its two kinds."""

from __future__ import annotations

import uuid
from time import perf_counter
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from benchmarks.peers.rows import row_of
from benchmarks.workloads import ORIGIN, ROWS, SECURE_HEADERS

SECURE = [(name.encode(), value.encode()) for name, value in SECURE_HEADERS.items()]


def null(line: str) -> None:
    pass


class RequestId:
    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), None)
        request_id = given or uuid.uuid4().hex.encode()
        scope.setdefault("state", {})["id"] = request_id

        async def with_id(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            await send(message)

        await self.app(scope, receive, with_id)


class Logger:
    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin = perf_counter()
        status = 0

        async def watching(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        await self.app(scope, receive, watching)
        null(f"{scope['method']} {scope['path']} {status} {round((perf_counter() - begin) * 1000)}ms")


class Secure:
    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *SECURE]
            await send(message)

        await self.app(scope, receive, with_headers)


async def plaintext(request: Request) -> Response:
    return PlainTextResponse("hello")


async def message(request: Request) -> Response:
    return JSONResponse({"message": "hello"})


async def param(request: Request) -> Response:
    return JSONResponse({"id": request.path_params["id"]})


async def full(request: Request) -> Response:
    query = request.query_params
    return JSONResponse(
        {"id": request.path_params["id"], "page": int(query["page"]), "limit": int(query["limit"]), "rows": ROWS}
    )


async def row(request: Request) -> Response:
    return JSONResponse(row_of(int(request.path_params["id"])))


async def post(request: Request) -> Response:
    value = await request.json()
    if not (
        type(value) is dict
        and type(value.get("name")) is str
        and type(value.get("email")) is str
        and type(value.get("age")) is int
    ):
        return JSONResponse({"error": "Validation failed"}, 422)
    return JSONResponse({"name": value["name"], "email": value["email"], "age": value["age"]}, 201)


async def error(request: Request) -> Response:
    raise ValueError("secret")


async def on_error(request: Request, exc: Exception) -> Response:
    return JSONResponse({"error": "Internal Server Error"}, 500)


async def not_found(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    return JSONResponse({"error": "Not Found"}, exc.status_code)


def build(routes: list[str], four: bool = False) -> Any:
    middleware = [
        Middleware(RequestId),
        Middleware(Logger),
        Middleware(Secure),
        Middleware(CORSMiddleware, allow_origins=[ORIGIN]),
    ]
    table: list[Any] = [
        Route("/", plaintext),
        Route("/json", message),
        Route("/users/{id}", param),
        Route("/full/users/{id}", full),
        Route("/rows/{id}", row),
        Route("/users", post, methods=["POST"]),
        Route("/error", error),
    ]
    for route in routes:
        path = "/".join(f"{{{part[1:]}}}" if part.startswith(":") else part for part in route.split("/"))
        table.append(Route(path, message))
    # Its own outermost handler raises again after answering; a handler of the exception's class does not.
    return Starlette(
        routes=table, middleware=middleware if four else [], exception_handlers={ValueError: on_error, 404: not_found}
    )
