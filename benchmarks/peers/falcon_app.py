"""Falcon, its ASGI flavour, compiled with Cython where its wheel is."""

from __future__ import annotations

import uuid
from time import perf_counter
from typing import Any

import falcon
import falcon.asgi

from benchmarks.peers.rows import row_of
from benchmarks.workloads import ORIGIN, ROWS, SECURE_HEADERS

SECURE = list(SECURE_HEADERS.items())


def null(line: str) -> None:
    pass


class RequestId:
    async def process_request(self, req: Any, resp: Any) -> None:
        req.context.id = req.get_header("x-request-id") or uuid.uuid4().hex

    async def process_response(self, req: Any, resp: Any, resource: Any, req_succeeded: bool) -> None:
        resp.set_header("x-request-id", req.context.id)


class Logger:
    async def process_request(self, req: Any, resp: Any) -> None:
        req.context.begin = perf_counter()

    async def process_response(self, req: Any, resp: Any, resource: Any, req_succeeded: bool) -> None:
        null(f"{req.method} {req.path} {resp.status} {round((perf_counter() - req.context.begin) * 1000)}ms")


class Secure:
    async def process_response(self, req: Any, resp: Any, resource: Any, req_succeeded: bool) -> None:
        resp.set_headers(SECURE)
        resp.append_header("vary", "Origin")


class Plaintext:
    async def on_get(self, req: Any, resp: Any) -> None:
        resp.content_type = falcon.MEDIA_TEXT
        resp.text = "hello"


class Message:
    async def on_get(self, req: Any, resp: Any, **parameters: str) -> None:
        resp.media = {"message": "hello"}


class Users:
    async def on_get(self, req: Any, resp: Any, id: str) -> None:
        resp.media = {"id": id}


class Full:
    async def on_get(self, req: Any, resp: Any, id: str) -> None:
        page, limit = req.get_param_as_int("page"), req.get_param_as_int("limit")
        resp.media = {"id": id, "page": page, "limit": limit, "rows": ROWS}


class Row:
    async def on_get(self, req: Any, resp: Any, id: int) -> None:
        resp.media = row_of(id)


class Post:
    async def on_post(self, req: Any, resp: Any) -> None:
        value = await req.get_media()
        if not (
            type(value) is dict
            and type(value.get("name")) is str
            and type(value.get("email")) is str
            and type(value.get("age")) is int
        ):
            raise falcon.HTTPUnprocessableEntity
        resp.status = falcon.HTTP_201
        resp.media = {"name": value["name"], "email": value["email"], "age": value["age"]}


class Error:
    async def on_get(self, req: Any, resp: Any) -> None:
        raise ValueError("secret")


async def on_error(req: Any, resp: Any, error: Exception, params: Any, ws: Any = None) -> None:
    resp.status = falcon.HTTP_500
    resp.media = {"error": "Internal Server Error"}


async def not_found(req: Any, resp: Any, **parameters: Any) -> None:
    resp.status = falcon.HTTP_404
    resp.media = {"error": "Not Found"}


def build(routes: list[str], four: bool = False) -> Any:
    middleware = [RequestId(), Logger(), Secure(), falcon.CORSMiddleware(allow_origins=ORIGIN)]
    app = falcon.asgi.App(middleware=middleware if four else [])
    app.add_route("/", Plaintext())
    app.add_route("/json", Message())
    app.add_route("/users/{id}", Users())
    app.add_route("/full/users/{id}", Full())
    app.add_route("/rows/{id:int}", Row())
    app.add_route("/users", Post())
    app.add_route("/error", Error())
    app.add_error_handler(ValueError, on_error)
    app.add_sink(not_found)
    resource = Message()
    for route in routes:
        path = "/".join(f"{{{part[1:]}}}" if part.startswith(":") else part for part in route.split("/"))
        app.add_route(path, resource)
    return app
