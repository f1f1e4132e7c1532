"""The panel "Durable Objects": those of a class, with the stored values, alarm and sockets of each.

Storage is read beside the object. It is written through the object, in its own process and its own order: an instance
that keeps a copy in memory does not notice, exactly as on the platform.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from time import monotonic
from typing import Any, Final

import attrs

from core.backends.embedded.durable_object.life import LiveObject
from core.backends.embedded.durable_object.namespace import EmbeddedDurableObjectNamespace
from core.backends.embedded.durable_object.sockets import carrier_of
from core.bindings.durable_object import DurableObject
from core.dev.explorer.places import Places
from core.dev.explorer.rows import Asked, Listing, cell, cloned, run_on, tables_of
from core.errors import BindingError, CoreError
from core.request import Request
from core.response import Response
from core.router import Router

_SHOWN_ROWS: Final = 200
_MOST_SECONDS: Final = 3
_ENTRIES: Final = Listing({"key": "CAST(key AS TEXT)", "size": "length(value)", "value": "value"}, "_cf_KV")


@attrs.frozen
class Stored:
    """A value under a key, as JSON."""

    key: str
    json: str


api: Router[Places] = Router()

# -- which there are


@api.get("/objects")
async def _namespaces(req: Request[Places], res: Response) -> None:
    namespaces = req.env.loaded.bindings.namespaces.items()
    res.json(
        [{"name": name, "className": one.objects.cls.__name__, "objects": len(_ids(one))} for name, one in namespaces]
    )


def _namespace(req: Request[Places]) -> EmbeddedDurableObjectNamespace[Any]:
    namespace = req.env.loaded.bindings.namespaces.get(req.params["binding"])
    if namespace is None:
        raise CoreError(404, "There is no such namespace")
    return namespace


def _names(req: Request[Places]) -> dict[str, str]:
    """The names that objects were called by, by id."""
    namespace = _namespace(req)
    return {str(namespace.id_from_name(name)): name for name in req.env.journal.names(req.params["binding"])}


@api.get("/objects/:binding")
async def _list(req: Request[Places], res: Response) -> None:
    asked, names = req.query.parse(Asked), _names(req)
    wanted = asked.search.lower()
    found = [(names.get(id, ""), id) for id in _ids(_namespace(req))]
    found = [one for one in found if wanted in one[0].lower() or wanted in one[1]]
    found.sort(key=lambda one: (not one[0], one))  # those with a name first
    part = found[asked.offset : asked.offset + asked.limit]
    res.json({"rows": [{"id": id, "name": name or None} for name, id in part], "total": len(found)})


@api.get("/objects/:binding/named")
async def _named(req: Request[Places], res: Response) -> None:
    name = req.query.get("name") or ""
    id = str(_namespace(req).id_from_name(name))
    if id not in _ids(_namespace(req)):
        raise CoreError(404, f"No object named {name} has stored anything")
    req.env.journal.note_name(req.params["binding"], name)
    res.json({"id": id})


# -- one of them


def _file(req: Request[Places]) -> Path:
    namespace, id = _namespace(req), req.params["id"]
    if id not in _ids(namespace):
        raise CoreError(404, "There is no such object, or it has stored nothing")
    return Path(namespace.objects.location) / f"{id}.sqlite"


def _living(req: Request[Places]) -> LiveObject:
    _file(req)
    namespace = _namespace(req)
    return namespace.objects.object(namespace.id_from_string(req.params["id"]))


@api.get("/objects/:binding/:id")
async def _object(req: Request[Places], res: Response) -> None:
    file, namespace, id = _file(req), _namespace(req), req.params["id"]
    living = _living(req)
    tables = await run_on(req, file, tables_of) or []
    res.json(
        {
            "id": id,
            "name": _names(req).get(id),
            "className": namespace.objects.cls.__name__,
            "size": file.stat().st_size,
            "alarm": await living.storage.get_alarm(),
            "handlesAlarms": namespace.objects.cls.alarm is not DurableObject.alarm,
            "sockets": [{"tags": carrier_of(one).tags} for one in living.sockets.tagged(None)],
            "tables": tables,
        }
    )


@api.get("/objects/:binding/:id/entries")
async def _entries(req: Request[Places], res: Response) -> None:
    rows, total = await _ENTRIES.read(req, _file(req))
    for row in rows:
        row.update(cloned(row.pop("value")))
    res.json({"rows": rows, "total": total})


@api.put("/objects/:binding/:id/entry")
async def _put(req: Request[Places], res: Response) -> None:
    stored = await req.json(Stored)
    try:
        value = json.loads(stored.json)
    except ValueError as error:
        raise CoreError(400, f"The value is not JSON: {error}") from None
    storage = _living(req).storage
    await storage.put(stored.key, value)
    await storage.sync()
    res.json({"ok": True})


@api.post("/objects/:binding/:id/delete")
async def _delete(req: Request[Places], res: Response) -> None:
    keys = await req.json(list[str], key="keys")
    storage = _living(req).storage
    for key in keys:
        await storage.delete(key)
    await storage.sync()
    res.json({"deleted": len(keys)})


@api.post("/objects/:binding/:id/query")
async def _query(req: Request[Places], res: Response) -> None:
    sql, living = await req.json(str, key="sql"), _living(req)
    storage, started = living.storage, monotonic()
    database = living.objects.database(living.id)
    connection: sqlite3.Connection = database.connection
    # It runs where the object's own code would, and nothing else of the server runs meanwhile.
    connection.set_progress_handler(lambda: monotonic() > started + _MOST_SECONDS, 100_000)
    try:
        cursor = storage.sql.exec(sql)
        rows = [[cell(value) for value in row] for row in cursor.raw()]
    except BindingError as error:
        if "interrupted" not in str(error):
            raise
        raise CoreError(
            400, f"The statement was stopped after {_MOST_SECONDS} s: the server waits for what an object runs"
        ) from None
    finally:
        database.engine.keep_time()
    await storage.sync()
    res.json(
        {
            "columns": cursor.column_names,
            "rows": rows[:_SHOWN_ROWS],
            "more": len(rows) > _SHOWN_ROWS,
            "changes": cursor.rows_written,
            "duration": (monotonic() - started) * 1000,
        }
    )


@api.put("/objects/:binding/:id/alarm")
async def _set_alarm(req: Request[Places], res: Response) -> None:
    # In milliseconds since 1970, or None to take it back.
    time = await req.json(int | None, key="time")
    storage = _living(req).storage
    await (storage.delete_alarm() if time is None else storage.set_alarm(time))
    await storage.sync()
    res.json({"ok": True})


@api.post("/objects/:binding/:id/alarm/fire")
async def _fire(req: Request[Places], res: Response) -> None:
    res.json({"fired": await _living(req).alarm.fire_now()})


def _ids(namespace: EmbeddedDurableObjectNamespace[Any]) -> list[str]:
    return sorted(file.stem for file in Path(namespace.objects.location).glob("*.sqlite"))
