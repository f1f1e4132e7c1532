"""Litestar, with typed parameters and a dataclass body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from litestar import Litestar, MediaType, Request, Response, get, post
from litestar.config.cors import CORSConfig
from litestar.exceptions import NotFoundException

from benchmarks.peers.rows import row_of
from benchmarks.peers.starlette_app import Logger, RequestId, Secure
from benchmarks.workloads import ORIGIN, ROWS


@dataclass
class User:
    name: str
    email: str
    age: int


@get("/", media_type=MediaType.TEXT)
async def plaintext() -> str:
    return "hello"


@get("/json")
async def message() -> dict[str, str]:
    return {"message": "hello"}


@get("/users/{id:str}")
async def param(id: str) -> dict[str, str]:
    return {"id": id}


@get("/full/users/{id:str}")
async def full(id: str, page: int, limit: int) -> dict[str, Any]:
    return {"id": id, "page": page, "limit": limit, "rows": ROWS}


@get("/rows/{id:int}")
async def row(id: int) -> dict[str, int | str]:
    return row_of(id)


@post("/users")
async def create(data: User) -> User:
    return data


@get("/error")
async def error() -> None:
    raise ValueError("secret")


def on_error(request: Request[Any, Any, Any], exc: Exception) -> Response[Any]:
    return Response({"error": "Internal Server Error"}, status_code=500)


def not_found(request: Request[Any, Any, Any], exc: Exception) -> Response[Any]:
    return Response({"error": "Not Found"}, status_code=404)


def build(routes: list[str], four: bool = False) -> Any:
    extra: list[Any] = []
    for route in routes:
        path = "/".join(f"{{{part[1:]}:str}}" if part.startswith(":") else part for part in route.split("/"))
        extra.append(get(path)(make()))
    return Litestar(
        [plaintext, message, param, full, row, create, error, *extra],
        exception_handlers={ValueError: on_error, NotFoundException: not_found},
        middleware=[RequestId, Logger, Secure] if four else [],
        cors_config=CORSConfig(allow_origins=[ORIGIN]) if four else None,
        openapi_config=None,
        logging_config=None,
    )


def make() -> Any:
    async def handler() -> dict[str, str]:
        return {"message": "hello"}

    return handler
