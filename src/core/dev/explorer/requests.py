"""The panel "Requests": the exchanges in pages, one of them whole, the live log, a request sent again, and its test."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import unquote_to_bytes

from core.dev.explorer.places import Panel
from core.dev.explorer.rows import number_of
from core.errors import CoreError
from core.http import json as strict_json
from core.http.json import JsonObject
from core.request import AnyRequest
from core.response import Response
from core.router import Router

_PAGE = 1000
_TOGETHER = 0.1
"""Seconds that changes are gathered: a burst of requests is a few lines for the page and not thousands."""


class RequestPages(Panel):
    """The handlers. `application` answers a request that is sent again."""

    application: Callable[[Any, Any, Any], Awaitable[None]] | None = None

    def add_to(self, api: Router[Any, Any]) -> None:
        """Add the routes."""
        api.get("/exchanges", self._list)
        api.delete("/exchanges", self._clear)
        api.get("/exchanges/:key", self._one)
        api.post("/exchanges/:key/replay", self._replay)
        api.post("/exchanges/:key/record", self._record)
        api.get("/live", self._live)

    async def _list(self, req: AnyRequest, res: Response) -> None:
        found, after = self._recorder.page(number_of(req, "before"), _PAGE)
        res.json({"exchanges": found, "before": after})

    async def _clear(self, req: AnyRequest, res: Response) -> None:
        if self._recorder.journal is not None:
            self._recorder.journal.clear()
        res.json({"ok": True})

    def _find(self, req: AnyRequest) -> JsonObject:
        found = self._recorder.find(req.params["key"])
        if found is None:
            raise CoreError(404, "This request is kept no longer: the latest 5,000 are")
        return found

    async def _one(self, req: AnyRequest, res: Response) -> None:
        res.json(self._find(req))

    async def _live(self, req: AnyRequest, res: Response) -> None:
        async def lines() -> AsyncIterator[bytes]:
            yield b"\n"
            async for exchanges in self._recorder.follow(_TOGETHER):
                yield strict_json.dumps([exchange.summary() for exchange in exchanges]).encode() + b"\n"

        res.stream(lines(), content_type="application/x-ndjson")

    async def _record(self, req: AnyRequest, res: Response) -> None:
        """Write a test of a request, by `core record`."""
        found = self._find(req)
        state = str(self._options.state_folder.resolve())
        ended = await self._command("record", found["key"], "--state", state)
        if ended.code != 0:
            raise CoreError(409, ended.errors.strip() or f"core record ended with {ended.code}")
        res.json({"told": ended.out.strip()})

    async def _replay(self, req: AnyRequest, res: Response) -> None:
        """Send a request again, inside this process, with the headers and the body it had."""
        found = self._find(req)
        message = found["request"]
        if found["kind"] != "request" or found["method"] == "WS" or self.application is None:
            raise CoreError(409, "Only a request can be sent again")
        if message["cut"]:
            raise CoreError(409, "The body of this request was too long to be kept, so it cannot be sent again")
        text = message["text"]
        body = base64.b64decode(message["base64"]) if text is None else text.encode()
        path, _, query = found["path"].partition("?")
        host = req.header("host") or "localhost"
        scope: JsonObject = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": found["method"],
            "scheme": "http",
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "root_path": "",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in message["headers"]],
            "client": ("127.0.0.1", 0),
            "server": (host.partition(":")[0], 0),
        }
        unread = [{"type": "http.request", "body": body, "more_body": False}]
        done = asyncio.Event()

        async def receive() -> Any:
            if unread:
                return unread.pop()
            await done.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                done.set()

        began = self._recorder.count
        await self.application(scope, receive, send)
        res.json({"key": self._recorder.key(began + 1)})
