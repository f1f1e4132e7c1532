"""The objects that a backup becomes in a cluster.

KV namespaces, databases and queues are Durable Objects of workerd's own there, as they are in its state on one machine:
an object of that state is taken as it is, under its id. The embedded state has tables of its own, which are read as the
tables that those objects have; a Durable Object of it has another id, so it is found by its name.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import quote

import attrs

from core.backends.embedded.clone import load
from core.backends.embedded.durable_object.ids import id_from_name
from core.backends.embedded.durable_object.objects import name_of
from core.backends.embedded.store import Store
from core.errors import DeveloperError, UsageError
from core.runtime.moving.statements import Statement, counts_of, dump, insert, read_text, statements_of
from core.runtime.plan import Plan
from core.runtime.state_folder import database_file

_KV: Final = "KVNamespace"
_D1: Final = "D1Database"
_QUEUE: Final = "QueueShard"

_SHARDS: Final = 1024

# The tables of workerd's KV and queues, in the first of their versions: later ones of workerd bring them up to date.
_KV_TABLES: Final = (
    "CREATE TABLE schema (v INTEGER NOT NULL)",
    "INSERT INTO schema VALUES (1)",
    "CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB, blob TEXT, expiration INTEGER, metadata TEXT)",
    "CREATE INDEX entries_expiration ON entries(expiration)",
    "CREATE TABLE garbage (blob TEXT PRIMARY KEY, due INTEGER NOT NULL, key TEXT)",
    "CREATE TABLE clock (v INTEGER NOT NULL)",
    "INSERT INTO clock VALUES (0)",
)
_ENTRY: Final = ("key", "value", "blob", "expiration", "metadata")
_QUEUE_TABLE: Final = (
    "CREATE TABLE messages (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, format INTEGER NOT NULL, body BLOB NOT NULL, "
    "size INTEGER NOT NULL, timestamp REAL NOT NULL, visible_at REAL NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, "
    "dead INTEGER NOT NULL DEFAULT 0, lease INTEGER, leased_until REAL)"
)
_MESSAGE: Final = ("seq", "id", "format", "body", "size", "timestamp", "visible_at", "attempts")
_FORMATS: Final = ("v8", "text", "json", "bytes")


@attrs.frozen
class Contents:
    """An object's storage: its values by key, in the form that workerd stores, its tables, and its alarm in ms.

    `counts` are the rows of each of the tables and the number of values, for the comparison at the end. `files` are
    written to the bucket before the object names them.
    """

    values: Iterable[tuple[str, bytes]]
    statements: Iterable[Statement]
    alarm: int | None
    tables: Mapping[str, int]
    count: int
    files: Iterable[tuple[str, Path]] = ()


@attrs.frozen
class Source:
    """An object to be: its namespace's unique key, its id, or its name where it is known.

    `binding` names it to people. `contents` opens it.
    """

    binding: str
    namespace: str
    id: str
    name: str | None
    contents: Callable[[], contextlib.AbstractContextManager[Contents]]

    def counts(self, contents: Contents) -> Mapping[str, int]:
        """How many there are in it of the things that are counted to people."""
        tables = contents.tables
        if self.namespace == _KV:
            return {"keys": tables.get("entries", 0)}
        if self.namespace == _QUEUE:
            return {"messages": tables.get("messages", 0)}
        rows = sum(tables.values())
        if self.namespace == _D1:
            return {"tables": len(tables), "rows": rows}
        return {"objects": 1, "values": contents.count, "alarms": contents.alarm is not None, "rows": rows}


def namespaces_of(plan: Plan) -> Sequence[str]:
    """The unique keys of the namespaces that an application's objects can be of."""
    return [_KV, _D1, _QUEUE, *(f"{plan.name}-{cls}" for cls in plan.classes)]


def find_objects(state: Path, plan: Plan, skip: Collection[str] = ()) -> Sequence[Source]:
    """The objects of the bindings of `plan` that are in the unpacked backup `state`, but for those of `skip` and of R2.

    Raises UsageError for a name in `skip` that is not a binding's, and DeveloperError for objects that cannot be moved.
    """
    unknown = {*skip} - {*plan.kv, *plan.d1, *plan.r2, *_queues(plan), *plan.durable_objects}
    if unknown:
        raise UsageError(f"--skip {min(unknown)}: the bundle has no such binding of KV, D1, R2, queues or objects")
    objects: list[Source] = []
    impossible: list[str] = []
    for namespace, name in asked(plan.kv, skip).items():
        objects += _kv(state, name, namespace)
    for database, name in asked(plan.d1, skip).items():
        objects += _d1(state, name, database)
    for queue, name in asked(_queues(plan), skip).items():
        objects += _messages(state, name, queue)
    for cls, name in asked(plan.durable_objects, skip).items():
        found, nameless = _class(state, plan, cls, name)
        objects += found
        if nameless:
            impossible.append(
                f"{name}: {nameless} of its objects have no name in the backup, and their ids mean nothing in a cluster. "
                "An object's name is noted when it is called by it, so call them so and make another backup; those of "
                f"new_unique_id() cannot be moved. --skip {name} leaves all of them behind"
            )
    if impossible:
        raise DeveloperError("\n".join(impossible))
    return objects


def asked(bindings: Mapping[str, str], skip: Collection[str]) -> Mapping[str, str]:
    """Each thing that bindings name, with the first of its bindings, but for those of which one is to be skipped."""
    left = {bindings[name] for name in skip if name in bindings}
    names: dict[str, str] = {}
    for name, thing in bindings.items():
        if thing not in left:
            names.setdefault(thing, name)
    return names


def _queues(plan: Plan) -> Mapping[str, str]:
    """The queues that the application sends to, consumes or dead-letters to; those without a binding by their names."""
    dead = [str(settings.get("deadLetterQueue", queue)) for queue, settings in plan.consumers.items()]
    return {**plan.queues, **{queue: queue for queue in (*plan.consumers, *dead)}}


def left_behind(state: Path, plan: Plan) -> list[str]:
    """Sentences about the objects in a backup of workerd whose classes the bundle does not have."""
    known = {*namespaces_of(plan)}
    return [
        f"{folder.name}: the bundle has no such class, so its objects stay in the backup"
        for folder in sorted(state.glob("do/*"))
        if folder.is_dir() and folder.name not in known
    ]


# Both kinds -----------------------------------------------------------------------------------------------------------


def opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.text_factory = read_text
    return connection


def _object_of_workerd(
    path: Path, binding: str, name: str | None, *, wake: bool = False, blobs: Path | None = None
) -> Source:
    """An object of workerd's own state, as it is. `blobs` is the folder of the files that its entries name."""

    @contextlib.contextmanager
    def contents() -> Generator[Contents]:
        with closing(opened(path)) as connection:
            there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            alarm = None
            if "_cf_METADATA" in there:
                times = connection.execute("SELECT value FROM _cf_METADATA WHERE key = 1 AND typeof(value) = 'integer'")
                alarm = next((time // 1_000_000 for (time,) in times), None)
            values: Iterable[tuple[str, bytes]] = ()
            count = 0
            if "_cf_KV" in there:
                (count,) = connection.execute("SELECT count(*) FROM _cf_KV").fetchone()
                values = connection.execute("SELECT key, value FROM _cf_KV ORDER BY key")
            named = () if blobs is None else connection.execute("SELECT blob FROM entries WHERE blob IS NOT NULL")
            files = [] if blobs is None else [(blob, blobs / blob) for (blob,) in named]
            alarm = _soon() if wake else alarm
            yield Contents(values, statements_of(connection), alarm, counts_of(connection), count, files)

    return Source(binding, path.parent.name, path.stem, name, contents)


def _soon() -> int:
    """A time for which the object's alarm is set, so that its node looks what there is to do."""
    return int(time.time() * 1000) + 10_000


# KV, databases, queues ------------------------------------------------------------------------------------------------


def _kv(state: Path, binding: str, namespace: str) -> Iterator[Source]:
    id = str(id_from_name(_KV, None, namespace))
    path = state / "kv" / _KV / f"{id}.sqlite"
    if path.is_file():
        yield _object_of_workerd(path, binding, namespace, blobs=state / "kv-blobs")
    embedded = Store(state).file("kv", namespace)
    assert embedded is not None
    if embedded.is_file():
        yield Source(binding, _KV, id, namespace, lambda: _embedded_kv(embedded, id))


@contextlib.contextmanager
def _embedded_kv(path: Path, id: str) -> Generator[Contents]:
    values = path.with_suffix(".files")

    def blob_of(file: str | None) -> str | None:
        return None if file is None else f"{id}/b/{hashlib.sha256(file.encode()).hexdigest()}"

    with closing(opened(path)) as connection:
        connection.create_function("blob_of", 1, blob_of)
        live = "FROM kv WHERE (expiration IS NULL OR expiration > ?)"
        now = (time.time(),)
        due = "CAST(expiration * 1000 AS INTEGER)"
        count, alarm = connection.execute(f"SELECT count(*), min({due}) {live}", now).fetchone()
        named = connection.execute(f"SELECT blob_of(file), file {live} AND file IS NOT NULL", now)
        files = [(blob, values / file) for blob, file in named]
        rows = connection.execute(f"SELECT CAST(key AS TEXT), value, blob_of(file), {due}, metadata {live}", now)
        tables = {"schema": 1, "entries": count, "garbage": 0, "clock": 1}
        yield Contents((), chain(map(Statement, _KV_TABLES), insert("entries", _ENTRY, rows)), alarm, tables, 0, files)


def _d1(state: Path, binding: str, database: str) -> Iterator[Source]:
    path = database_file(state, database)
    embedded = Store(state).file("d1", database)
    assert embedded is not None
    for place in (path, embedded):
        if place.is_file():
            yield attrs.evolve(_object_of_workerd(place, binding, database), namespace=_D1, id=path.stem)


def _messages(state: Path, binding: str, queue: str) -> Iterator[Source]:
    for shard in range(_SHARDS) if (state / "queues" / _QUEUE).is_dir() else ():
        name = f"{queue}#{shard}"
        path = state / "queues" / _QUEUE / f"{id_from_name(_QUEUE, None, name)}.sqlite"
        if path.is_file():
            yield _object_of_workerd(path, binding, name, wake=True)
    embedded = state / "queues" / "messages.sqlite"
    if embedded.is_file():
        id = str(id_from_name(_QUEUE, None, f"{queue}#0"))
        yield Source(binding, _QUEUE, id, f"{queue}#0", lambda: _embedded_messages(embedded, queue))


@contextlib.contextmanager
def _embedded_messages(path: Path, queue: str) -> Generator[Contents]:
    with closing(opened(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM queue_messages WHERE queue = ?", (queue,)).fetchone()
        waiting = connection.execute(
            "SELECT id, content_type, body, CAST(sent AS REAL), CAST(due AS REAL), failures FROM queue_messages "
            "WHERE queue = ? ORDER BY seq",
            (queue,),
        )

        def rows() -> Iterator[Sequence[object]]:
            for at, (id, kind, body, *rest) in enumerate(waiting, 1):
                raw = dump(load(body)) if kind == "v8" else body
                yield at, id, _FORMATS.index(kind), raw, len(raw), *rest

        statements = chain([Statement(_QUEUE_TABLE)], insert("messages", _MESSAGE, rows()))
        yield Contents([("queue", dump(queue))], statements, _soon(), {"messages": count}, 1)


# The application's objects --------------------------------------------------------------------------------------------


def _class(state: Path, plan: Plan, cls: str, binding: str) -> tuple[list[Source], int]:
    """The objects of a class, and how many there are that have no name and cannot be moved without one."""
    key = f"{plan.name}-{cls}"
    folder = state / "do" / key
    names = _names(folder)
    found = [
        _object_of_workerd(path, binding, names.get(path.stem))
        for path in sorted(folder.glob("*.sqlite"))
        if path.stem != "metadata"
    ]
    nameless = 0
    for path in sorted((state / "durable_objects" / quote(cls, safe="")).glob("*.sqlite")):
        name = _name_of(path, cls)
        if name is None:
            nameless += 1
        else:
            id = str(id_from_name(key, None, name))
            found.append(Source(binding, key, id, name, partial(_embedded_object, path)))
    return found, nameless


def _names(folder: Path) -> Mapping[str, str]:
    """The names of objects of workerd that have an alarm, by their ids."""
    path = folder / "metadata.sqlite"
    if not path.is_file():
        return {}
    with closing(opened(path)) as connection:
        return dict(connection.execute("SELECT actor_id, actor_name FROM _cf_ALARM WHERE actor_name IS NOT NULL"))


def _name_of(path: Path, cls: str) -> str | None:
    with closing(opened(path)) as connection, contextlib.suppress(sqlite3.OperationalError):
        return name_of(connection, cls, path.stem)
    return None


@contextlib.contextmanager
def _embedded_object(path: Path) -> Generator[Contents]:
    with closing(opened(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM _cf_KV").fetchone()
        found = connection.execute("SELECT time FROM _cf_ALARM").fetchone()
        values = (
            (key, dump(load(value)))
            for key, value in connection.execute("SELECT CAST(key AS TEXT), value FROM _cf_KV ORDER BY key")
        )
        yield Contents(values, statements_of(connection), found and found[0], counts_of(connection), count)
