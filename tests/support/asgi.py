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


class Exchange:
    """One request of a client that leaves early: `ending` is "", or `gone`, `cancelled`, `refused`.

    Gone: after the first piece of the answer. Cancelled: `began` is set with the answer's start, and nothing is taken
    from there on. Refused: `send` raises OSError, as servers do for a client that is gone (ASGI, 2.4).
    """

    def __init__(self, method: str, ending: str = "") -> None:
        self.scope = scope_of(method=method)
        self.began = asyncio.Event()
        self._ending = ending
        self._gone = asyncio.Event()
        self._read = False

    async def receive(self) -> Message:
        if not self._read:
            self._read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.began.set()
        match self._ending:
            case "refused":
                raise OSError("the client is gone")
            case "cancelled":
                await asyncio.Event().wait()
            case "gone" if message["type"] == "http.response.body":
                self._gone.set()
                await asyncio.sleep(0)
            case _:
                pass
