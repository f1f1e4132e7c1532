"""The explorer's page and its API: an application of this framework, in front of the developer's own.

The panels of bindings have files of their own.

Every answer of `/_core/api/` is for the page alone: Host, Origin and token are checked before anything else. The page
and its files need no token on a loopback address, and carry the token to the page there; where other machines could
reach the host, the page itself asks for it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import attrs
from attrs.validators import ge, le, optional

from core import http
from core.app import App
from core.assembly.project import consumers_of
from core.context import ScheduledEvent
from core.dev.exchange import for_explorer
from core.dev.explorer import durable, kv, queues, r2, sql
from core.dev.explorer.places import Places, run_core
from core.dev.options import Options
from core.dev.screen import findings_of
from core.dispatch.exchange import Exchange
from core.errors import BindingError, CoreError
from core.explain.failure import failure_of
from core.hosts.asgi import AsgiApplication, asgi
from core.http import json as strict_json
from core.http.json import JsonObject
from core.middleware.secure_headers import secure_hdrs
from core.middleware.static import static
from core.program.extensions import unchecked_in
from core.request import Request
from core.response import Response
from core.router import Router
from core.telemetry.metrics import BUCKETS, CONTENT_TYPE, FAMILIES, exposition
from core.types import Next

_PAGE: Final = Path(__file__).parent / "page"
_REQUESTS: Final = 1000
"""Requests of a page of their list."""
_TOGETHER: Final = 0.1
"""Seconds that changes are gathered: a burst of requests is a few lines for the page and not thousands."""

_HEADERS: Final = secure_hdrs(
    content_security_policy="default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "font-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    strict_transport_security=False,
    referrer_policy="no-referrer",
    cross_origin_opener_policy="same-origin",
    cross_origin_resource_policy="same-origin",
)

api: Router[Places] = Router()


def explorer(places: Places) -> AsgiApplication:
    app: App[Any] = App()
    app.use(_HEADERS, _only_from_here)
    app.get("/_core", _page)
    app.use("/_core/api", _only_with_token)
    for panel in (kv, sql, r2, queues, durable):
        app.use("/_core/api", panel.api)
    app.use("/_core/api", api)
    app.use("/_core", static(directory=_PAGE, index=None))
    app.on_error(_failed_call)
    return asgi(app, places)


# -- who may


async def _only_from_here(req: Request[Places], res: Response, next: Next) -> None:
    host = req.header("host") or ""
    if not req.env.guard.allows_host(host):
        raise CoreError(403, "The explorer answers to this server's own address only")
    site = req.header("sec-fetch-site")
    if not req.env.guard.allows_origin(req.header("origin"), host) or site not in (None, "none", "same-origin"):
        raise CoreError(403, "The explorer answers to its own page only")
    res.header("cache-control", "no-store")
    await next()


async def _only_with_token(req: Request[Places], res: Response, next: Next) -> None:
    if not req.env.guard.allows_token(req.header("x-core-token")):
        raise CoreError(403, "The token is missing or wrong. Open the explorer from the address that `core dev` shows")
    await next()


async def _failed_call(err: Exception, req: Request[Places], res: Response, next: Next) -> Response | None:
    if isinstance(err, BindingError):
        return res.status(400).json({"error": str(err)})
    if isinstance(err, (UnicodeEncodeError, OverflowError)):
        # JSON can say both.
        return res.status(400).json({"error": f"No half characters, and no numbers beyond 64 bits: {err}"})
    await next(err)
    return None


# -- the page


async def _page(req: Request[Places], res: Response) -> None:
    token = req.query.get("token")
    if req.env.guard.public and not req.env.guard.allows_token(token):
        raise CoreError(403, "Open the explorer from the address that `core dev` shows: it has a token")
    html = (_PAGE / "index.html").read_text("utf-8")
    # Only a page of this origin can read it.
    res.html(html.replace("{{token}}", req.env.options.token))


# -- requests: the exchanges in pages, one of them whole, the live log, a request sent again, and its test


@attrs.frozen
class Earlier:
    before: int | None = attrs.field(default=None, validator=optional([ge(0), le(10**15)]))


@api.get("/exchanges")
async def _exchanges(req: Request[Places], res: Response) -> None:
    found, after = req.env.recorder.page(req.query.parse(Earlier).before, _REQUESTS)
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


# -- the bindings


@api.get("/overview")
async def _overview(req: Request[Places], res: Response) -> None:
    loaded = req.env.found
    if loaded is None:
        failed = None if req.env.failed is None else for_explorer(failure_of(req.env.failed, req.env.options.root))
        res.json({"name": req.env.options.root.name, "failed": failed})
        return
    worker = loaded.configuration.worker
    res.json(
        {
            "name": worker.name or req.env.options.root.name,
            "environment": loaded.configuration.environment,
            "failed": None,
            "state": str(req.env.options.state_folder),
            "bindings": [
                {"name": name, "kind": binding.kind, "place": binding.place, "absent": loaded.bindings.absent.get(name)}
                for name, binding in loaded.configuration.bindings.items()
            ],
            "routes": [attrs.asdict(route) for route in loaded.app.routes],
            "queues": list(consumers_of(loaded)),
            "crons": loaded.crons,
            "notices": list(loaded.notices),
        }
    )


@api.get("/configuration")
async def _configuration(req: Request[Places], res: Response) -> None:
    loaded = req.env.found
    text = await asyncio.to_thread(req.env.options.config.read_text, "utf-8", "replace")
    findings = await asyncio.to_thread(findings_of, req.env.options.config)
    parts = () if loaded is None else unchecked_in([loaded.configuration])
    unchecked = [{"key": part.key, "line": part.line, "reason": part.reason} for part in parts]
    res.json({"file": str(req.env.options.config), "text": text, "findings": findings, "unchecked": unchecked})


# -- times


@api.get("/cron")
async def _cron(req: Request[Places], res: Response) -> None:
    loaded = req.env.found
    times = req.env.background.next_times() if req.env.background is not None else {}
    crons, handled = ((), ()) if loaded is None else (loaded.crons, loaded.app.crons)
    res.json([{"cron": one, "next": times.get(one), "handled": one in handled or None in handled} for one in crons])


@api.post("/cron/run")
async def _cron_run(req: Request[Places], res: Response) -> None:
    cron = await req.json(str, key="cron")
    if req.env.background is None or req.env.found is None or cron not in req.env.found.crons:
        raise CoreError(404, "There is no such trigger")
    exchange = await req.env.background.trigger(ScheduledEvent(cron, time.time()))
    res.json(exchange.as_json())


# -- the OpenAPI document: first the committed one, then that of the code now
#
# `core openapi` runs in a process of its own, once for each time the application is loaded, and not before the page
# asks: it takes mypy, whose memory a server that serves requests should not keep.


@api.get("/openapi")
async def _committed(req: Request[Places], res: Response) -> None:
    """Answer at once with the committed document, or null; the fresh one is under way from here on."""
    _started(req.env)
    file = req.env.options.root / "openapi.json"
    try:
        document: Any = json.loads(await asyncio.to_thread(file.read_text, "utf-8"))
    except (OSError, ValueError):
        document = None
    res.json({"document": document})


@api.get("/openapi/fresh")
async def _fresh(req: Request[Places], res: Response) -> None:
    """Answer with the document of the code, when that is known."""
    # Shielded: a page that goes away does not stop the work that the next one waits for.
    res.json(await asyncio.shield(_started(req.env)))


def _started(places: Places) -> asyncio.Task[JsonObject]:
    if places.gathering is None:
        places.gathering = asyncio.create_task(_gather(places.options))
    return places.gathering


async def _gather(options: Options) -> JsonObject:
    """The document of the code, or why there is none; and the lines of its problems."""
    code, out, errors = await run_core(options, "openapi", "--format", "json")
    lines = [line for line in errors.splitlines() if line.strip()]
    try:
        # A finding that is an error ends with 1, with the document written all the same.
        return {"document": json.loads(out), "problem": None, "findings": lines}
    except ValueError:
        problem = "\n".join(lines) or f"core openapi ended with {code}"
        return {"document": None, "problem": problem, "findings": []}


# -- metrics: the numbers that `core serve --metrics` gives, counted since the application was loaded


@api.get("/metrics")
async def _metrics(req: Request[Places], res: Response) -> None:
    numbers = req.env.meter.snapshot()
    res.json(
        {
            name: [_row(FAMILIES[name].labels, labels, values) for labels, values in numbers.get(name, ())]
            for name in FAMILIES
        }
    )


@api.get("/metrics/text")
async def _text(req: Request[Places], res: Response) -> None:
    res.header("content-type", CONTENT_TYPE)
    res.send(exposition([req.env.meter.snapshot()]).encode())


def _row(names: Sequence[str], labels: Sequence[str], values: Sequence[float]) -> Mapping[str, object]:
    named = dict(zip(names, labels, strict=True))
    if len(values) == 1:
        return {**named, "value": values[0]}
    *counts, seconds = values
    times = {"mean": seconds / sum(counts), "p50": bound_of(counts, 50), "p95": bound_of(counts, 95)}
    return {**named, "value": sum(counts), **times}


def bound_of(counts: Sequence[float], percent: int) -> float | None:
    """The smallest bound in seconds that `percent` of the observations stay within; None beyond the last."""
    for bound, within in zip(BUCKETS, accumulate(counts), strict=False):
        if 100 * within >= percent * sum(counts):
            return bound
    return None
