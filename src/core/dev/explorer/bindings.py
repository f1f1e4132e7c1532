"""The bindings in the explorer: what KV, D1, R2, queues and Durable Objects hold, and how the page changes it."""

from __future__ import annotations

from typing import Any, Final

import attrs

from core.assembly.project import Loaded, consumers_of, migrations_of
from core.backends.embedded import migrations
from core.bindings.queue import QueueContentType
from core.dev.explorer.values import cell, objects_in, shown, storage_of
from core.dev.record import Recorder
from core.errors import CoreError
from core.request import Request
from core.response import Response
from core.router import Router

__all__ = ["BindingPages"]

_SHOWN_ROWS: Final = 500


@attrs.frozen
class KVEntry:
    """A key to write."""

    key: str
    value: str
    metadata: Any = None
    expiration: int | None = None
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


class BindingPages:
    """The handlers of the bindings. Without a loaded application each answers 409."""

    def __init__(self, loaded: Loaded | None, recorder: Recorder) -> None:
        self._loaded_or_none = loaded
        self._recorder = recorder

    @property
    def _loaded(self) -> Loaded:
        if self._loaded_or_none is None:
            raise CoreError(409, "The application is not loaded")
        return self._loaded_or_none

    def add_to(self, api: Router[Any, Any]) -> None:
        """Register the handlers."""
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

    def _binding(self, req: Request[Any], kind: str) -> Any:
        loaded = self._loaded
        name = req.params["binding"]
        if name not in loaded.bindings.values or loaded.kinds.get(name) != kind:
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
        namespace, key = self._binding(req, "kv"), _key(req)
        found = await namespace.get_with_metadata(key, "bytes")
        if found.value is None:
            raise CoreError(404, "No such key")
        # Of the keys with a prefix, the prefix itself comes first.
        listed = (await namespace.list(prefix=key, limit=1)).keys
        expiration = listed[0].expiration if listed and listed[0].name == key else None
        res.json({**shown(found.value), "metadata": found.metadata, "expiration": expiration})

    async def _kv_put(self, req: Request[Any], res: Response) -> None:
        entry = await req.json(KVEntry)
        await self._binding(req, "kv").put(
            entry.key,
            entry.value,
            metadata=entry.metadata,
            expiration=entry.expiration,
            expiration_ttl=entry.expiration_ttl,
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

        return broker_of(self._loaded.store)

    async def _queues(self, req: Request[Any], res: Response) -> None:
        broker = self._broker()
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
        res.json(
            [
                {
                    "name": name,
                    "className": namespace.objects.cls.__name__,
                    "objects": objects_in(namespace.objects.location)[:_SHOWN_ROWS],
                }
                for name, namespace in loaded.bindings.namespaces.items()
            ]
        )

    async def _object(self, req: Request[Any], res: Response) -> None:
        loaded = self._loaded
        namespace = loaded.bindings.namespaces.get(req.params["binding"])
        if namespace is None:
            raise CoreError(404, "There is no such namespace")
        if req.params["id"] not in objects_in(namespace.objects.location):
            raise CoreError(404, "There is no such object")
        res.json(storage_of(namespace.objects.location, req.params["id"]))


def _key(req: Request[Any]) -> str:
    key = req.query.get("key")
    if key is None:
        raise CoreError(400, "The query lacks `key`")
    return key
