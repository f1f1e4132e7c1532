"""A hand-written ASGI application that does the same work, as the floor under all."""

from __future__ import annotations

import json
import uuid
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl

from benchmarks.peers.rows import row_of
from benchmarks.workloads import ORIGIN, ROWS, SECURE_HEADERS

TEXT = (b"content-type", b"text/plain; charset=utf-8")
JSON = (b"content-type", b"application/json")
SECURE = [(name.encode(), value.encode()) for name, value in SECURE_HEADERS.items()]


def build(routes: list[str], four: bool = False) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        path, method = scope["path"], scope["method"]
        headers = [JSON]
        status = 200
        if path == "/" and method == "GET":
            headers = [TEXT]
            body = b"hello"
        elif path == "/json" and method == "GET":
            body = json.dumps({"message": "hello"}).encode()
        elif path == "/users" and method == "POST":
            message = await receive()
            value = json.loads(message["body"])
            if not (
                type(value) is dict
                and type(value.get("name")) is str
                and type(value.get("email")) is str
                and type(value.get("age")) is int
            ):
                status, body = 422, b'{"error":"Validation failed"}'
            else:
                status = 201
                answer = {"name": value["name"], "email": value["email"], "age": value["age"]}
                body = json.dumps(answer).encode()
        elif path.startswith("/users/") and method == "GET":
            body = json.dumps({"id": path[7:]}).encode()
        elif path.startswith("/rows/") and method == "GET":
            body = json.dumps(row_of(int(path[6:]))).encode()
        elif path.startswith("/full/users/") and method == "GET":
            begin = perf_counter()
            query = dict(parse_qsl(scope["query_string"].decode()))
            given = dict(scope["headers"])
            request_id = given.get(b"x-request-id") or uuid.uuid4().hex.encode()
            answer = {"id": path[12:], "page": int(query["page"]), "limit": int(query["limit"]), "rows": ROWS}
            body = json.dumps(answer).encode()
            headers = [JSON, *SECURE, (b"x-request-id", request_id), (b"vary", b"Origin")]
            if given.get(b"origin") == ORIGIN.encode():
                headers.append((b"access-control-allow-origin", ORIGIN.encode()))
            null(f"{method} {path} 200 {round((perf_counter() - begin) * 1000)}ms")
        elif path == "/error":
            try:
                raise ValueError("secret")
            except ValueError:
                status, body = 500, json.dumps({"error": "Internal Server Error"}).encode()
        else:
            status, body = 404, json.dumps({"error": "Not Found"}).encode()
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def null(line: str) -> None:
    pass
