"""The panel "Requests": the exchanges in pages, one of them whole, the live log, a request sent again, and its test."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from urllib.parse import unquote_to_bytes

import attrs
from attrs.validators import ge, le, optional

from core import http
from core.dev.explorer.places import Places, run_core
from core.dispatch.exchange import Exchange
from core.errors import CoreError
from core.http import json as strict_json
from core.http.json import JsonObject
from core.request import Request
from core.response import Response
from core.router import Router

_PAGE = 1000
_TOGETHER = 0.1
"""Seconds that changes are gathered: a burst of requests is a few lines for the page and not thousands."""


api: Router[Places] = Router()


@attrs.frozen
class Earlier:
    before: int | None = attrs.field(default=None, validator=optional([ge(0), le(10**15)]))


@api.get("/exchanges")
async def _list(req: Request[Places], res: Response) -> None:
    found, after = req.env.recorder.page(req.query.parse(Earlier).before, _PAGE)
    res.json({"exchanges": found, "before": after})


@api.delete("/exchanges")
async def _clear(req: Request[Places], res: Response) -> None:
    req.env.journal.clear()
    res.json({"ok": True})


def _find(req: Request[Places]) -> JsonObject:
    found = req.env.recorder.find(req.params["key"])
    if found is None:
        raise CoreError(404, "This request is kept no longer: the latest 5,000 are")
    return found


@api.get("/exchanges/:key")
async def _one(req: Request[Places], res: Response) -> None:
    res.json(_find(req))


@api.get("/live")
async def _live(req: Request[Places], res: Response) -> None:
    async def lines() -> AsyncIterator[bytes]:
        async for exchanges in req.env.recorder.follow(_TOGETHER):
            yield strict_json.dumps([exchange.summary() for exchange in exchanges]).encode() + b"\n"

    res.stream(lines(), content_type="application/x-ndjson")


@api.post("/exchanges/:key/record")
async def _record(req: Request[Places], res: Response) -> None:
    """Write a test of a request, by `core record`."""
    found = _find(req)
    state = str(req.env.options.state_folder.resolve())
    code, out, errors = await run_core(req.env.options, "record", found["key"], "--state", state)
    if code != 0:
        raise CoreError(409, errors.strip() or f"core record ended with {code}")
    res.json({"told": out.strip()})


@api.post("/exchanges/:key/replay")
async def _replay(req: Request[Places], res: Response) -> None:
    """Send a request again, inside this process, with the headers and the body it had."""
    found = _find(req)
    message = found["request"]
    if found["kind"] != "request" or found["method"] == "WS" or req.env.application is None:
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
    exchange = Exchange(http.Response(body).stream())
    serving = asyncio.ensure_future(exchange.serve(req.env.application, scope))
    answer = await exchange.answer(serving, head=False)
    assert isinstance(answer, http.Response)
    await answer.bytes()
    await serving
    res.json({"key": scope["core.exchange"]})
