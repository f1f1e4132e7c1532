"""FastAPI, with typed parameters and a pydantic body."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel
from starlette.middleware.cors import CORSMiddleware

from benchmarks.peers.rows import row_of
from benchmarks.peers.starlette_app import Logger, RequestId, Secure, not_found, on_error
from benchmarks.workloads import ORIGIN, ROWS


class User(BaseModel):
    name: str
    email: str
    age: int


def build(routes: list[str], four: bool = False) -> Any:
    app = FastAPI(openapi_url=None)
    for middleware, options in (
        (CORSMiddleware, {"allow_origins": [ORIGIN]}),
        (Secure, {}),
        (Logger, {}),
        (RequestId, {}),
    ):
        if four:
            app.add_middleware(middleware, **options)

    @app.get("/", response_class=PlainTextResponse)
    async def plaintext() -> str:
        return "hello"

    @app.get("/json")
    async def message() -> dict[str, str]:
        return {"message": "hello"}

    @app.get("/users/{id}")
    async def param(id: str) -> dict[str, str]:
        return {"id": id}

    @app.get("/full/users/{id}")
    async def full(id: str, page: int, limit: int) -> dict[str, Any]:
        return {"id": id, "page": page, "limit": limit, "rows": ROWS}

    @app.get("/rows/{id}")
    async def row(id: int) -> dict[str, int | str]:
        return row_of(id)

    @app.post("/users", status_code=201)
    async def post(user: User) -> User:
        return user

    @app.get("/error")
    async def error() -> None:
        raise ValueError("secret")

    app.add_exception_handler(ValueError, on_error)
    app.add_exception_handler(404, not_found)
    for route in routes:
        path = "/".join(f"{{{part[1:]}}}" if part.startswith(":") else part for part in route.split("/"))
        app.get(path)(make(path))
    return app


def make(path: str) -> Any:
    async def handler(request: Request) -> JSONResponse:
        return JSONResponse({"message": "hello"})

    return handler
