"""The records that bindings hold: read from their databases, put into fakes, and the difference of two readings."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Generator, Iterator
from typing import Any

from core.backends.embedded.clone import dump, load
from core.backends.embedded.disk import Files
from core.backends.embedded.durable_object import ObjectId, Objects
from core.backends.embedded.durable_object.ids import id_from_digits, id_from_name
from core.backends.embedded.durable_object.objects import name_of
from core.backends.embedded.store import Database
from core.env import fields_of
from core.errors import DeveloperError
from core.statements.tokens import quoted
from core.testing.d1 import FakeD1Database
from core.testing.durable_object import FakeDurableObjectNamespace
from core.testing.kv import FakeKVNamespace
from core.testing.queue import FakeQueue
from core.testing.r2 import FakeR2Bucket
from core.testing.rate_limit import FakeRateLimit
from core.testing.recorded.values import Record, State, Unordered, parts_of

_LONG = 1024

_TABLES = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name"


def records_of(
    kind: str, name: str, connection: sqlite3.Connection, files: Files | None = None, leave_out: Collection[str] = ()
) -> State:
    """The records in the database of the binding `name`. `files` has the values that are too large for a row.

    `leave_out`: tables that are not the application's, beside those of the platform.
    """
    match kind:
        case "kv":
            return {name: [*_keys(connection, files)]}
        case "r2":
            return {name: [*_objects(connection, files)]}
        case _:
            tables = [table for table in _tables(connection) if table not in leave_out]
            rows = {f"{name}.{table}": _rows(connection, table) for table in tables}
            return {name: [*_storage(connection)], **rows} if kind == "durable_object" else rows


def place_of_object(binding: str, namespace: str, digits: str, connection: sqlite3.Connection) -> str:
    """The place of a Durable Object by its database: its name, or the digits of its id where it has none."""
    return f"{binding}[{name_of(connection, namespace, digits) or digits}]"


def _tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute(_TABLES).fetchall()
    return [table for (table,) in found if not table.startswith(("sqlite_", "d1_", "_cf_"))]


def _storage(connection: sqlite3.Connection) -> Iterator[Record]:
    for key, value in connection.execute("SELECT key, value FROM _cf_KV ORDER BY key"):
        yield {"key": key.decode("utf-8", "surrogatepass"), "value": load(value)}
    for (time,) in connection.execute("SELECT time FROM _cf_ALARM"):
        yield {"alarm": time}


def _rows(connection: sqlite3.Connection, table: str) -> list[Record]:
    # A generated column cannot be written.
    found = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", (table,))
    columns = [column for (column,) in found]
    rows = connection.execute(f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(table)}")
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _keys(connection: sqlite3.Connection, files: Files | None) -> Iterator[Record]:
    rows = connection.execute("SELECT key, value, file, expiration, metadata FROM kv ORDER BY key")
    for key, value, file, expiration, metadata in rows:
        record = {"key": key.decode(), "value": text_of(_whole(value, file, files))}
        if expiration is not None:
            record["expiration"] = expiration
        if metadata is not None:
            record["metadata"] = json.loads(metadata)
        yield record


def _objects(connection: sqlite3.Connection, files: Files | None) -> Iterator[Record]:
    rows = connection.execute("SELECT key, version, http_metadata, custom_metadata FROM r2_objects ORDER BY key")
    for key, version, http, custom in rows.fetchall():
        pieces = connection.execute("SELECT data, file FROM r2_pieces WHERE owner = ? ORDER BY number", (version,))
        record = {"key": key.decode(), "value": text_of(b"".join(_whole(data, file, files) for data, file in pieces))}
        for name, text in (("http_metadata", http), ("custom_metadata", custom)):
            if text != "{}":
                record[name] = json.loads(text)
        yield record


def _whole(value: bytes | None, file: str | None, files: Files | None) -> bytes:
    return files.read(file) if file is not None and files is not None else value or b""


def text_of(value: bytes) -> str | bytes:
    """A text, or bytes that are none."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def parsed(text: Any) -> object:
    """What a text says as JSON, or the text, where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def values_of(env: object) -> dict[str, object]:
    """The values of an Env by name."""
    return {} if env is None else {each.name: getattr(env, each.attribute, None) for each in fields_of(type(env))}


def fakes_of(env: object) -> dict[str, Any]:
    """The fakes in an Env that hold records, by name."""
    kinds = (FakeD1Database, FakeKVNamespace, FakeR2Bucket, FakeQueue, FakeDurableObjectNamespace, FakeRateLimit)
    return {name: value for name, value in values_of(env).items() if isinstance(value, kinds)}


def held(env: object) -> State:
    """All records in the fakes of an Env."""
    state: State = {}
    for name, fake in fakes_of(env).items():
        match fake:
            case FakeD1Database():
                with _copied(fake.engine.database) as copy:
                    state |= records_of("d1", name, copy)
            case FakeDurableObjectNamespace():
                for digits in fake.objects.stored():
                    with _copied(fake.objects.database(ObjectId(digits))) as copy:
                        place = place_of_object(name, fake.objects.name, digits, copy)
                        state |= records_of("durable_object", place, copy)
            case FakeKVNamespace():
                state |= records_of("kv", name, fake._connection)
            case FakeR2Bucket():
                state |= records_of("r2", name, fake._own._connection)
            case FakeRateLimit():
                state[name] = [{"key": key, "count": count} for key, count in fake.counts.items()]
            case _:
                state[name] = [_message(sent) for sent in fake.messages]
    return state


@contextlib.contextmanager
def _copied(database: Database) -> Generator[sqlite3.Connection]:
    """A copy, which is without the rules by which the platform lets statements through."""
    with contextlib.closing(sqlite3.connect(":memory:")) as copy:
        database.connection.backup(copy)
        yield copy


def _message(sent: Any) -> Record:
    delay = {} if sent.delay_seconds is None else {"delay_seconds": sent.delay_seconds}
    return {"body": load(dump(sent.body)), **delay}  # as a consumer gets it, without a class


async def fill(env: object, seed: State) -> None:
    """Put records into the fakes of an Env.

    Raises sqlite3.Error for rows that a database does not take, and DeveloperError for tables and columns that are not
    there: those of a Durable Object are what its constructor makes.
    """
    fakes = fakes_of(env)
    rows: dict[tuple[str, str | None], list[tuple[str | None, Record]]] = {}
    for place, records in seed.items():
        name, named, table = parts_of(place)
        fake = fakes.get(name)
        match fake:
            case FakeD1Database() | FakeDurableObjectNamespace():
                rows.setdefault((name, named), []).extend((table, record) for record in records)
            case FakeKVNamespace():
                for record in records:
                    metadata = json.dumps(record["metadata"]) if "metadata" in record else None
                    value = record["value"].encode() if isinstance(record["value"], str) else record["value"]
                    row = (value, record.get("expiration"), metadata, None)
                    fake._write(record["key"].encode(), row)
            case FakeR2Bucket():
                for record in records:
                    options = {key: value for key, value in record.items() if key.endswith("_metadata")}
                    await fake.put(record["key"], record["value"], **options)
                fake.calls.clear()
            case FakeRateLimit():
                fake.counts = {record["key"]: record["count"] for record in records}
            case _:
                raise ValueError(f"seed: the Env has no fake of the name {name} that holds records")
    for (name, named), each in rows.items():
        fake = fakes[name]
        database = fake.engine.database if named is None else await _empty(fake.objects, named)
        with database.transaction() as connection:
            connection.execute("PRAGMA defer_foreign_keys = ON")
            for table, record in each:
                match table, record:
                    case None, {"alarm": time}:
                        table, record = "_cf_ALARM", {"time": time, "scheduled": time, "retries": 0, "mark": "seed"}
                    case None, {"key": key, "value": value}:
                        table, record = "_cf_KV", {"key": key.encode("utf-8", "surrogatepass"), "value": dump(value)}
                    case _:
                        pass
                columns = ", ".join(map(quoted, record))
                marks = ", ".join("?" * len(record))
                # OR REPLACE: a trigger on another table may have written this row already.
                insert = f"INSERT OR REPLACE INTO {quoted(str(table))} ({columns}) VALUES ({marks})"
                try:
                    connection.execute(insert, [*record.values()])
                except sqlite3.OperationalError as error:
                    made = f"{name}: {error}. It has those that its migrations make"
                    if named is not None:
                        made = f"{name}[{named}]: {error}. It has those that the constructor of its class makes"
                    raise DeveloperError(made) from None


async def _empty(objects: Objects, named: str) -> Database:
    """The database of an object that was constructed once, with all of its tables empty."""
    of = id_from_digits if re.fullmatch("[0-9a-f]{64}", named) else id_from_name
    living = objects.object(of(objects.name, None, named))
    objects.make(living)
    await objects.evict(living.id)
    database = objects.database(living.id)
    with _copied(database) as copy:
        tables = _tables(copy)
    with database.transaction() as connection:
        connection.execute("PRAGMA defer_foreign_keys = ON")
        for table in (*tables, "_cf_KV", "_cf_ALARM"):
            connection.execute(f"DELETE FROM {quoted(table)}")
    return database


def alone(these: State, others: State) -> State:
    """The records that are in `these` and not in `others`."""
    found: State = {}
    for place, records in these.items():
        there = Counter(map(_mark, others.get(place, ())))
        left = Unordered()
        for record in records:
            mark = _mark(record)
            if there[mark] > 0:
                there[mark] -= 1
            else:
                left.append(record if "." in place else _read(record))
        if left:
            found[place] = left
    return found


def _mark(record: Record) -> str:
    """The same text for the same record. An object may have many megabytes, whose repr takes a second each time."""
    return repr({name: _hashed(value) for name, value in record.items()})


def _hashed(value: object) -> object:
    if isinstance(value, str | bytes) and len(value) > _LONG:
        return type(value).__name__, len(value), hash(value)
    return value


def _read(record: Record) -> Record:
    """A key or object with what its JSON says, so that the order and spacing of its text do not count."""
    value = record.get("value")
    return {**record, "value": parsed(value)} if isinstance(value, str) and value[:1] in ("{", "[") else record
