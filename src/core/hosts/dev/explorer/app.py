"""What the explorer's page may ask: an application of this framework, in front of the developer's own.

Every answer of `/_core/api/` is for the page alone: Host, Origin and token are checked before anything else. The page
and its files need no token on a loopback address, and carry the token to the page there; where other machines could
reach the host, the page itself asks for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any, Final

import attrs

from core.app import App
from core.backends.embedded import migrations
from core.bindings.queue import QueueContentType
from core.errors import BindingError, CoreError
from core.handlers import Next
from core.hosts.asgi import AsgiApplication, asgi
from core.hosts.dev.background import Background, consumers_of
from core.hosts.dev.explorer.values import cell, objects_in, shown, storage_of
from core.hosts.dev.findings import findings_of
from core.hosts.dev.guard import Guard
from core.hosts.dev.options import Options
from core.hosts.dev.project import Loaded, migrations_of
from core.hosts.dev.record import Recorder
from core.hosts.dev.report import report
from core.http import json as strict_json
from core.request import Request
from core.response import Response
from core.router import Router

__all__ = ["Explorer"]

_FILES: Final = {
    "explorer.css": "text/css; charset=utf-8",
    "explorer.js": "text/javascript; charset=utf-8",
}
_SHOWN_ROWS: Final = 500


@attrs.frozen
class KVEntry:
    """A key to write."""

    key: str
    value: str
    metadata: Any = None
    expiration_ttl: int | None = None


@attrs.frozen
class SQLText:
    """A statement to run."""

    sql: str


@attrs.frozen
class NewMessage:
    """A message to send."""

    body: Any
    content_type: QueueContentType = "json"
    delay_seconds: int | None = None


@attrs.frozen
class OldMessage:
    """A message to send on from one queue to another."""

    id: str
    to: str


class Explorer:
    """The explorer of one serving process. `loaded` is None while the application cannot be loaded."""

    def __init__(
        self,
        options: Options,
        guard: Guard,
        recorder: Recorder,
        loaded: Loaded | None,
        failed: BaseException | None,
        background: Background | None,
    ) -> None:
        self._options = options
        self._guard = guard
        self._recorder = recorder
        self._loaded = loaded
        self._failed = failed
        self._background = background
        app: App[Any] = App()
        app.use(self._only_from_here)
        app.get("/_core", self._page)
        for name in _FILES:
            app.get(f"/_core/{name}", self._file)
        api: Router[Any, Any] = Router()
        app.use("/_core/api", api)
        self._routes(api)
        app.on_error(self._failed_call)
        self.asgi: AsgiApplication = asgi(app)
        """The ASGI application."""

    def _routes(self, api: Router[Any, Any]) -> None:
        api.use(self._only_with_token)
        api.get("/overview", self._overview)
        api.get("/exchanges", self._exchanges)
        api.get("/live", self._live)
        api.get("/kv/:binding", self._kv_list)
        api.get("/kv/:binding/value", self._kv_get)
        api.put("/kv/:binding/value", self._kv_put)
        api.delete("/kv/:binding/value", self._kv_delete)
        api.get("/d1/:binding", self._d1_tables)
        api.post("/d1/:binding/query", self._d1_query)
        api.post("/d1/:binding/migrate", self._d1_migrate)
        api.get("/r2/:binding", self._r2_list)
        api.get("/r2/:binding/object", self._r2_get)
        api.put("/r2/:binding/object", self._r2_put)
        api.delete("/r2/:binding/object", self._r2_delete)
        api.get("/queues", self._queues)
        api.get("/queues/:queue", self._queue_messages)
        api.post("/queues/:queue/send", self._queue_send)
        api.post("/queues/:queue/redeliver", self._queue_redeliver)
        api.delete("/queues/:queue/message", self._queue_delete)
        api.get("/objects", self._objects)
        api.get("/objects/:binding/:id", self._object)
        api.get("/cron", self._cron)
        api.post("/cron/run", self._cron_run)
        api.get("/configuration", self._configuration)

    # -- who may

    async def _only_from_here(self, req: Request[Any], res: Response, next: Next) -> None:
        host = req.header("host") or ""
        if not self._guard.allows_host(host):
            raise CoreError(403, "The explorer answers to this server's own address only")
        if not self._guard.allows_origin(req.header("origin"), host):
            raise CoreError(403, "The explorer answers to its own page only")
        if req.header("sec-fetch-site") not in (None, "none", "same-origin"):
            raise CoreError(403, "The explorer answers to its own page only")
        res.header("cache-control", "no-store")
        res.header("x-content-type-options", "nosniff")
        res.header("x-frame-options", "DENY")
        res.header("referrer-policy", "no-referrer")
        res.header("cross-origin-resource-policy", "same-origin")
        res.header("cross-origin-opener-policy", "same-origin")
        await next()

    async def _only_with_token(self, req: Request[Any], res: Response, next: Next) -> None:
        if not self._guard.allows_token(req.header("x-core-token")):
            raise CoreError(
                403, "The token is missing or wrong. Open the explorer from the address that `core dev` shows"
            )
        await next()

    async def _failed_call(self, err: Exception, req: Request[Any], res: Response, next: Next) -> Response | None:
        if isinstance(err, BindingError):
            return res.status(400).json({"error": str(err)})
        await next(err)
        return None

    # -- the page

    async def _page(self, req: Request[Any], res: Response) -> None:
        token = req.query.get("token")
        if self._guard.public and not self._guard.allows_token(token):
            raise CoreError(403, "Open the explorer from the address that `core dev` shows: it has a token")
        html = (resources.files("core.hosts.dev.explorer") / "explorer.html").read_text("utf-8")
        res.header(
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
        # Only a page of this origin can read it.
        res.html(html.replace("{{token}}", self._options.token))

    async def _file(self, req: Request[Any], res: Response) -> None:
        name = req.path.rpartition("/")[2]
        res.header("content-type", _FILES[name])
        res.send((resources.files("core.hosts.dev.explorer") / name).read_bytes())

    # -- what there is

    async def _overview(self, req: Request[Any], res: Response) -> None:
        loaded = self._loaded
        if loaded is None:
            problem = None
            if self._failed is not None:
                found = report(self._failed, root=self._options.root)
                problem = {"kind": found.kind, "message": found.message, "problems": found.problems, "fix": found.fix}
            res.json({"name": self._options.root.name, "failed": problem})
            return
        worker = loaded.configuration.worker
        res.json(
            {
                "name": worker.name or self._options.root.name,
                "environment": loaded.configuration.environment,
                "failed": None,
                "state": str(self._options.state_folder),
                "bindings": [
                    {
                        "name": name,
                        "kind": binding.kind,
                        "place": binding.place,
                        "absent": loaded.bindings.absent.get(name),
                    }
                    for name, binding in loaded.configuration.bindings.items()
                ],
                "routes": [attrs.asdict(route) for route in loaded.app.routes],
                "queues": list(consumers_of(loaded)),
                "crons": loaded.crons,
                "notices": list(loaded.notices),
            }
        )

    async def _exchanges(self, req: Request[Any], res: Response) -> None:
        res.json([exchange.as_json() for exchange in self._recorder.exchanges])

    async def _live(self, req: Request[Any], res: Response) -> None:
        async def lines() -> AsyncIterator[bytes]:
            yield b"\n"
            async for exchange in self._recorder.follow():
                yield strict_json.dumps(exchange.as_json()).encode() + b"\n"

        res.stream(lines(), content_type="application/x-ndjson")

    async def _configuration(self, req: Request[Any], res: Response) -> None:
        loaded = self._loaded
        text = await asyncio.to_thread(self._options.config.read_text, "utf-8", "replace")
        findings = await asyncio.to_thread(findings_of, self._options.config)
        res.json(
            {
                "file": str(self._options.config),
                "text": text,
                "findings": findings,
                "unchecked": []
                if loaded is None
                else [
                    {"key": part.key, "line": part.line, "reason": part.reason}
                    for part in loaded.configuration.unchecked
                ],
            }
        )

    def _binding(self, req: Request[Any], kind: str) -> Any:
        loaded = self._loaded
        name = req.params["binding"]
        if loaded is None or name not in loaded.bindings.values or loaded.kinds.get(name) != kind:
            raise CoreError(404, f"There is no binding {name} of the kind {kind}")
        return loaded.bindings.values[name]

    # -- KV

    async def _kv_list(self, req: Request[Any], res: Response) -> None:
        namespace = self._binding(req, "kv")
        page = await namespace.list(
            prefix=req.query.get("prefix") or None, limit=100, cursor=req.query.get("cursor") or None
        )
        res.json(
            {
                "keys": [
                    {"name": key.name, "expiration": key.expiration, "metadata": key.metadata} for key in page.keys
                ],
                "cursor": page.cursor,
            }
        )

    async def _kv_get(self, req: Request[Any], res: Response) -> None:
        found = await self._binding(req, "kv").get_with_metadata(_key(req), "bytes")
        if found.value is None:
            raise CoreError(404, "No such key")
        res.json({**shown(found.value), "metadata": found.metadata})

    async def _kv_put(self, req: Request[Any], res: Response) -> None:
        entry = await req.json(KVEntry)
        await self._binding(req, "kv").put(
            entry.key, entry.value, metadata=entry.metadata, expiration_ttl=entry.expiration_ttl
        )
        res.json({"ok": True})

    async def _kv_delete(self, req: Request[Any], res: Response) -> None:
        await self._binding(req, "kv").delete(_key(req))
        res.json({"ok": True})

    # -- D1

    async def _d1_tables(self, req: Request[Any], res: Response) -> None:
        database = self._binding(req, "d1")
        rows = await database.prepare(
            "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' "
            "AND name NOT LIKE '_cf_%' ORDER BY name"
        ).all()
        tables: list[dict[str, Any]] = []
        for row in rows.results:
            quoted = str(row["name"]).replace('"', '""')
            count = await database.prepare(f'SELECT count(*) AS n FROM "{quoted}"').first("n")
            tables.append({**row, "rows": count})
        res.json({"tables": tables, "migrations": await self._migrations(req.params["binding"], database)})

    async def _migrations(self, name: str, database: Any) -> Any:
        assert self._loaded is not None
        table = self._loaded.configuration.bindings[name].entry.migrations_table
        files = migrations_of(self._loaded.configuration, name)
        return {
            "applied": await migrations.applied(database, table=table),
            "pending": [file.name for file in await migrations.pending(database, files, table=table)],
        }

    async def _d1_query(self, req: Request[Any], res: Response) -> None:
        text = await req.json(SQLText)
        statement = self._binding(req, "d1").prepare(text.sql.strip())
        started = self._recorder.clock.monotonic()
        rows: list[list[Any]] = await statement.raw(column_names=True)
        duration = (self._recorder.clock.monotonic() - started) * 1000
        columns: list[Any] = rows[0] if rows else []
        values = rows[1:]
        res.json(
            {
                "columns": columns,
                "rows": [[cell(value) for value in row] for row in values[:_SHOWN_ROWS]],
                "leftOut": max(0, len(values) - _SHOWN_ROWS),
                "duration": duration,
            }
        )

    async def _d1_migrate(self, req: Request[Any], res: Response) -> None:
        name = req.params["binding"]
        database = self._binding(req, "d1")
        assert self._loaded is not None
        table = self._loaded.configuration.bindings[name].entry.migrations_table
        done = await migrations.apply(database, migrations_of(self._loaded.configuration, name), table=table)
        res.json({"applied": [file.name for file in done]})

    # -- R2

    async def _r2_list(self, req: Request[Any], res: Response) -> None:
        page = await self._binding(req, "r2").list(
            prefix=req.query.get("prefix") or None,
            limit=100,
            cursor=req.query.get("cursor") or None,
            include=["httpMetadata", "customMetadata"],
        )
        res.json(
            {
                "objects": [
                    {
                        "key": found.key,
                        "size": found.size,
                        "etag": found.etag,
                        "uploaded": found.uploaded,
                        "contentType": found.http_metadata.content_type if found.http_metadata else None,
                        "customMetadata": found.custom_metadata,
                    }
                    for found in page.objects
                ],
                "cursor": page.cursor if page.truncated else None,
            }
        )

    async def _r2_get(self, req: Request[Any], res: Response) -> None:
        found = await self._binding(req, "r2").get(_key(req))
        if found is None:
            raise CoreError(404, "No such object")
        if req.query.get("download") is not None:
            # Never as what it says it is: a page from a bucket must not run beside the explorer.
            res.header("content-disposition", "attachment")
            res.header("content-type", "application/octet-stream")
            res.send(await found.bytes())
            return
        res.json(shown(await found.bytes()))

    async def _r2_put(self, req: Request[Any], res: Response) -> None:
        content_type = req.query.get("contentType")
        stored = await self._binding(req, "r2").put(
            _key(req), await req.bytes(), http_metadata={"content_type": content_type} if content_type else None
        )
        res.json({"etag": None if stored is None else stored.etag})

    async def _r2_delete(self, req: Request[Any], res: Response) -> None:
        await self._binding(req, "r2").delete(_key(req))
        res.json({"ok": True})

    # -- queues

    def _broker(self) -> Any:
        from core.backends.embedded.queue import broker_of

        if self._loaded is None:
            raise CoreError(409, "The application is not loaded")
        return broker_of(self._loaded.store)

    async def _queues(self, req: Request[Any], res: Response) -> None:
        broker = self._broker()
        assert self._loaded is not None
        consumers = consumers_of(self._loaded)
        producers = {entry.queue for entry in self._loaded.configuration.worker.queues.producers}
        letters = {settings.dead_letter_queue for settings in consumers.values() if settings.dead_letter_queue}
        res.json(
            [
                {
                    "name": name,
                    "waiting": broker.metrics(name).backlog_count,
                    "consumed": name in self._loaded.app.queues,
                    "deadLettersOf": [
                        queue for queue, settings in consumers.items() if settings.dead_letter_queue == name
                    ],
                }
                for name in sorted({*consumers, *producers, *letters})
            ]
        )

    async def _queue_messages(self, req: Request[Any], res: Response) -> None:
        broker = self._broker()
        due = dict(broker.waiting(req.params["queue"])[:_SHOWN_ROWS])
        res.json(
            [
                {
                    "id": row.id,
                    "body": shown(row.body)["text"] if row.content_type in ("bytes", "v8") else row.read(),
                    "contentType": row.content_type,
                    "attempts": row.failures,
                    "sent": row.sent / 1000,
                    "due": due[row.seq] / 1000,
                    "size": len(row.body),
                }
                for row in broker.rows([*due])
            ]
        )

    async def _queue_send(self, req: Request[Any], res: Response) -> None:
        from core.backends.embedded.queue import EmbeddedQueue

        message = await req.json(NewMessage)
        self._broker()
        assert self._loaded is not None
        queue = EmbeddedQueue[Any](self._loaded.store, req.params["queue"])
        await queue.send(message.body, content_type=message.content_type, delay_seconds=message.delay_seconds)
        res.json({"ok": True})

    async def _queue_redeliver(self, req: Request[Any], res: Response) -> None:
        message = await req.json(OldMessage)
        broker, name = self._broker(), req.params["queue"]
        row = self._message(name, message.id)
        _, moved = await broker.wait("redeliver", lambda: broker.settle(name, [], [], [row], message.to))
        broker.arrived(message.to, moved)
        res.json({"ok": True})

    async def _queue_delete(self, req: Request[Any], res: Response) -> None:
        broker, name = self._broker(), req.params["queue"]
        row = self._message(name, _key(req))
        await broker.wait("delete", lambda: broker.settle(name, [row], [], [], None))
        res.json({"ok": True})

    def _message(self, queue: str, id: str) -> Any:
        broker = self._broker()
        for row in broker.rows([seq for seq, _ in broker.waiting(queue)]):
            if row.id == id:
                return row
        raise CoreError(404, "The message is not there any more")

    # -- Durable Objects

    async def _objects(self, req: Request[Any], res: Response) -> None:
        loaded = self._loaded
        if loaded is None:
            raise CoreError(409, "The application is not loaded")
        res.json(
            [
                {
                    "name": name,
                    "className": namespace.objects.cls.__name__,
                    "objects": objects_in(namespace.objects.place)[:_SHOWN_ROWS],
                }
                for name, namespace in loaded.bindings.namespaces.items()
            ]
        )

    async def _object(self, req: Request[Any], res: Response) -> None:
        loaded = self._loaded
        namespace = None if loaded is None else loaded.bindings.namespaces.get(req.params["binding"])
        if namespace is None:
            raise CoreError(404, "There is no such namespace")
        if req.params["id"] not in objects_in(namespace.objects.place):
            raise CoreError(404, "There is no such object")
        res.json(storage_of(namespace.objects.place, req.params["id"]))

    # -- times

    async def _cron(self, req: Request[Any], res: Response) -> None:
        loaded = self._loaded
        times = self._background.next_times() if self._background is not None else {}
        res.json(
            []
            if loaded is None
            else [
                {"cron": cron, "next": times.get(cron), "handled": cron in loaded.app.crons or None in loaded.app.crons}
                for cron in loaded.crons
            ]
        )

    async def _cron_run(self, req: Request[Any], res: Response) -> None:
        cron = (await req.json()).get("cron")
        if self._background is None or self._loaded is None or cron not in self._loaded.crons:
            raise CoreError(404, "There is no such trigger")
        exchange = await self._background.trigger(cron)
        res.json(exchange.as_json())


def _key(req: Request[Any]) -> str:
    key = req.query.get("key")
    if key is None:
        raise CoreError(400, "The query lacks `key`")
    return key
