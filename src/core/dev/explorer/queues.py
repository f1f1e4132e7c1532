"""The panel "Queues": waiting messages, failed ones with the reason, and delivering them again."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from core.assembly.project import consumers_of
from core.backends.embedded.queue import EmbeddedQueue, broker_of
from core.bindings.queue import QueueContentType
from core.dev.exchange import shown
from core.dev.explorer.places import Places
from core.dev.explorer.rows import Listing, cloned, run_on
from core.errors import CoreError
from core.http.json import JsonObject
from core.request import Request
from core.response import Response
from core.router import Router


@attrs.frozen
class NewMessage:
    body: object
    content_type: QueueContentType = "json"
    delay_seconds: int | None = None


@attrs.frozen
class Chosen:
    """Messages of a queue, or without `seqs` all that a `search` finds, and the queue to send them `to`."""

    seqs: list[int] | None = None
    search: str = ""
    to: str | None = None


api: Router[Places] = Router()


def _file(req: Request[Places]) -> Path | None:
    return req.env.loaded.store.file("queues", "messages")


@api.get("/queues")
async def _queues(req: Request[Places], res: Response) -> None:
    broker, loaded = broker_of(req.env.loaded.store), req.env.loaded
    consumers = consumers_of(loaded)
    producers = {entry.queue for entry in loaded.configuration.worker.queues.producers}
    letters = {settings.dead_letter_queue for settings in consumers.values() if settings.dead_letter_queue}
    res.json(
        [
            {
                "name": name,
                "waiting": broker.metrics(name).backlog_count,
                "consumed": name in loaded.app.queues,
                "deadLettersOf": [queue for queue, settings in consumers.items() if settings.dead_letter_queue == name],
            }
            for name in sorted({*consumers, *producers, *letters})
        ]
    )


@api.get("/queues/:queue")
async def _messages(req: Request[Places], res: Response) -> None:
    rows, total = await _listing(req).read(req, _file(req))
    failures = req.env.journal.failures([row["id"] for row in rows])
    res.json({"rows": [_message(row, *failures.get(row["id"], (None, None))) for row in rows], "total": total})


@api.post("/queues/:queue/send")
async def _send(req: Request[Places], res: Response) -> None:
    message = await req.json(NewMessage)
    queue = EmbeddedQueue[Any](req.env.loaded.store, req.params["queue"])
    await queue.send(message.body, content_type=message.content_type, delay_seconds=message.delay_seconds)
    res.json({"ok": True})


@api.post("/queues/:queue/redeliver")
async def _redeliver(req: Request[Places], res: Response) -> None:
    chosen = await req.json(Chosen)
    target = chosen.to
    if target is None:
        raise CoreError(400, "The queue that the messages go `to` is missing")
    broker = broker_of(req.env.loaded.store)

    def move(rows: list[Any]) -> None:
        _, moved = broker.settle(rows, [], rows, target)
        broker.arrived(target, moved)

    res.json({"redelivered": await _settle(req, chosen, move)})


@api.post("/queues/:queue/delete")
async def _delete(req: Request[Places], res: Response) -> None:
    broker = broker_of(req.env.loaded.store)
    deleted = await _settle(req, await req.json(Chosen), lambda rows: broker.settle(rows, [], [], None))
    res.json({"deleted": deleted})


async def _settle(req: Request[Places], chosen: Chosen, settle: Callable[[list[Any]], object]) -> int:
    """Settle the chosen messages that still wait, some at a time."""
    broker = broker_of(req.env.loaded.store)
    wanted = None if chosen.seqs is None else {*chosen.seqs}
    if wanted is None and chosen.search:
        where, values = _listing(req).condition(chosen.search)
        sql = f"SELECT seq FROM queue_messages WHERE {where}"
        found = await run_on(req, _file(req), lambda one: one.execute(sql, values).fetchall())
        wanted = {seq for (seq,) in found or ()}
    seqs = [seq for seq, _ in broker.waiting(req.params["queue"]) if wanted is None or seq in wanted]
    if not seqs:
        raise CoreError(404, "The messages are not there any more")
    for begin in range(0, len(seqs), 500):
        rows = broker.rows(seqs[begin : begin + 500])
        await broker.wait("settlement", partial(settle, rows))
    return len(seqs)


def _listing(req: Request[Places]) -> Listing:
    columns = {name: name for name in ("seq", "id", "body", "sent", "due")}
    columns |= {"type": "content_type", "attempts": "failures + failed_before"}
    return Listing(columns, "queue_messages", "due, seq", ("id", "body"), "queue = ?", (req.params["queue"],))


def _message(row: JsonObject, error: str | None, exchange: str | None) -> JsonObject:
    body, times = row["body"], {name: row[name] / 1000 for name in ("sent", "due")}
    content: JsonObject
    match row["type"]:
        case "json":
            content = {"text": json.dumps(json.loads(body), ensure_ascii=False)}
        case "v8":
            content = cloned(body)
        case _:
            content = shown(body if isinstance(body, bytes) else str(body).encode())
    return {**row, **times, "body": content, "size": len(body), "error": error, "exchange": exchange}
