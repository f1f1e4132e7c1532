"""Requests as an ASGI server makes them."""

from __future__ import annotations

import asyncio
from typing import Any

from core.app import App
from core.hosts.asgi import asgi

Message = dict[str, Any]


def scope_of(path: str = "/", **changes: Any) -> dict[str, Any]:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"example.test")],
        "client": ("203.0.113.5", 1234),
        "server": ("127.0.0.1", 8000),
    }
    return scope | changes


async def ask(app: App[Any], scope: dict[str, Any], *received: Message, env: object = None) -> list[Message]:
    """Everything that is sent for one scope."""
    sent: list[Message] = []
    queue = [*received] or [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if queue:
            return queue.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    await asgi(app, env)(scope, receive, send)
    return sent
