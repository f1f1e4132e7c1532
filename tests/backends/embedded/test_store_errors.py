"""A store that is full, damaged, locked or read-only: each kind's own error, with the file and how to fix it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.disk import StoreError, store_error
from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.migrations import apply
from core.backends.embedded.queue import EmbeddedQueue
from core.backends.embedded.r2 import EmbeddedR2Bucket
from core.backends.embedded.store import Store
from core.errors import BindingError, D1Error, KVError, QueueError, R2Error
from core.sql.connection import ClosingConnection
from core.sql.migrations import MigrationError, read_migrations

LARGE = b"x" * 3_000_000
SMALL = "x" * 60_000
LONG = "a long name " * 20

Call = Callable[[Any], Awaitable[object]]
KINDS: list[tuple[Callable[[Store], Any], type[BindingError], list[Call], list[Call]]] = [
    (
        lambda store: EmbeddedKVNamespace(store, "n"),
        KVError,
        [lambda kv: kv.put("a", SMALL), lambda kv: kv.put_json("b", [SMALL])],
        [lambda kv: kv.get("a"), lambda kv: kv.get(["a", "b"]), lambda kv: kv.list()],
    ),
    (
        lambda store: EmbeddedD1Database(store, "n"),
        D1Error,
        [
            lambda db: db.exec("CREATE TABLE IF NOT EXISTS t (a)"),
            lambda db: db.prepare("INSERT INTO t VALUES (?)").bind(SMALL).run(),
            lambda db: db.batch([db.prepare("INSERT INTO t VALUES (?)").bind(SMALL)]),
        ],
        [lambda db: db.prepare("SELECT * FROM t").all(), lambda db: db.batch([db.prepare("SELECT a FROM t")])],
    ),
    (
        lambda store: EmbeddedR2Bucket(store, "n"),
        R2Error,
        [lambda bucket: bucket.put("a", SMALL), lambda bucket: bucket.create_multipart_upload("m")],
        [lambda bucket: bucket.get("a"), lambda bucket: bucket.head("a"), lambda bucket: bucket.list()],
    ),
    (
        lambda store: EmbeddedQueue[str](store, "n"),
        QueueError,
        [lambda queue: queue.send(SMALL), lambda queue: queue.send_batch([{"body": SMALL}])],
        [lambda queue: queue.metrics()],
    ),
]
IDS = ["kv", "d1", "r2", "queue"]


def databases(store: Store) -> list[Any]:
    """The connections of a store."""
    return [database.connection for database in store._databases.values()]


def damage(state: Path) -> Path:
    """Overwrite every page of the one database but the first, and return its path."""
    (path,) = state.rglob("*.sqlite")
    data = path.read_bytes()
    size = int.from_bytes(data[16:18], "big")
    path.write_bytes(data[:size] + b"\x5a" * (len(data) - size))
    return path


def value_files(state: Path) -> list[Path]:
    """The files of large values."""
    return [file for folder in state.rglob("*.files") for file in folder.iterdir()]


async def refused(call: Awaitable[object], kind: type[BindingError], *parts: str) -> BindingError:
    with pytest.raises(kind) as raised:
        await call
    assert type(raised.value) is kind
    for part in parts:
        assert part in str(raised.value)
    return raised.value


@pytest.mark.parametrize(("make", "kind", "writes", "reads"), KINDS, ids=IDS)
async def test_a_full_store_says_so(
    tmp_path: Path, make: Any, kind: type[BindingError], writes: list[Call], reads: list[Call]
) -> None:
    with Store(tmp_path / LONG) as store:
        binding = make(store)
        await writes[0](binding)
        for connection in databases(store):
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")

        async def fill() -> None:
            for _ in range(500):
                for write in writes:
                    await write(binding)

        with pytest.raises(kind) as raised:
            await fill()
        assert re.search(r"database or disk is full: .+\.sqlite\. Free some space", str(raised.value))
        assert raised.value.retryable
        for read_call in reads:
            await read_call(binding)


@pytest.mark.parametrize(("make", "kind", "writes", "reads"), KINDS, ids=IDS)
async def test_a_read_only_store_says_so(
    tmp_path: Path, make: Any, kind: type[BindingError], writes: list[Call], reads: list[Call]
) -> None:
    with Store(tmp_path) as store:
        binding = make(store)
        for write in writes:
            await write(binding)
        for connection in databases(store):
            connection.execute("PRAGMA query_only = ON")
        for write in writes[1:]:
            await refused(write(binding), kind, "attempt to write a readonly database: ", "may write both")
        for read_call in reads:
            await read_call(binding)


@pytest.mark.parametrize(("make", "kind", "writes", "reads"), KINDS, ids=IDS)
async def test_a_locked_store_says_so(
    tmp_path: Path, make: Any, kind: type[BindingError], writes: list[Call], reads: list[Call]
) -> None:
    with Store(tmp_path / LONG, busy_timeout=0.02) as store:
        binding = make(store)
        for write in writes:
            await write(binding)
        (path,) = [database.path for database in store._databases.values()]
        other = sqlite3.connect(str(path), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for write in writes[1:]:
            error = await refused(write(binding), kind, f"has held the database for more than 0.02 seconds: {path}.")
            assert error.retryable
        other.close()


@pytest.mark.parametrize(("make", "kind", "writes", "reads"), KINDS, ids=IDS)
async def test_a_damaged_store_says_so(
    tmp_path: Path, make: Any, kind: type[BindingError], writes: list[Call], reads: list[Call]
) -> None:
    with Store(tmp_path) as store:
        binding = make(store)
        for write in writes:
            await write(binding)
    path = damage(tmp_path)
    try:
        store = Store(tmp_path)
        binding = make(store)
    except StoreError as error:
        # Opening it deletes what is over, and so reads more than the schema.
        failures = [str(error)]
    else:
        failures = list[str]()
        for call in (*reads, *writes[1:]):
            with pytest.raises(kind) as raised:
                await call(binding)
            failures.append(str(raised.value))
    store.close()
    for failure in failures:
        assert f"database disk image is malformed: {path}. Restore the file from a copy" in failure


@pytest.mark.parametrize(("make", "kind", "writes", "reads"), KINDS, ids=IDS)
def test_a_file_that_is_no_database_is_named_when_it_is_opened(
    tmp_path: Path, make: Any, kind: type[BindingError], writes: list[Call], reads: list[Call]
) -> None:
    with Store(tmp_path) as store:
        make(store)
    (path,) = tmp_path.rglob("*.sqlite")
    path.write_bytes(b"not a database " * 500)
    with Store(tmp_path) as store, pytest.raises(StoreError, match=r"file is not a database: \S+\. Restore"):
        make(store)
    path.unlink()
    path.mkdir()
    with Store(tmp_path) as store, pytest.raises(StoreError, match=r"unable to open database file: \S+\. See that"):
        make(store)


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with Store(tmp_path / "state") as store, pytest.raises(StoreError, match=r": \S+state/kv\. See that its directory"):
        EmbeddedKVNamespace(store, "n")


async def test_large_values_fail_as_small_ones_do(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        kv, bucket = EmbeddedKVNamespace(store, "n"), EmbeddedR2Bucket(store, "n")
        await kv.put("there", LARGE)
        await bucket.put("there", LARGE)
        for file in value_files(tmp_path):
            file.unlink()
            file.mkdir()
        await refused(kv.get("there"), KVError, "KV GET failed: 500", "n.files", "See that its directory is there")
        body = await bucket.get("there")
        assert body is not None
        await refused(body.bytes(), R2Error, "get: ", "n.files", "(10001)")
        for file in value_files(tmp_path):
            file.rmdir()
        # Deleted by hand: the row names a file that is not there, however often it is read again.
        await refused(kv.get("there"), KVError, "is missing. Restore the file from a copy, or put or delete the key")
        for folder in (tmp_path / "kv" / "n.files", tmp_path / "r2" / "n.files"):
            folder.rmdir()
            folder.write_text("in the way")
        await refused(kv.put("new", LARGE), KVError, "KV PUT failed: 500", "n.files")
        await refused(bucket.put("new", LARGE), R2Error, "put: ", "n.files", "(10001)")


async def test_a_migration_into_a_full_database_says_so(tmp_path: Path) -> None:
    (tmp_path / "0001_wide.sql").write_text(
        "CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(90000)), (zeroblob(90000));"
    )
    with Store(tmp_path / "state") as store:
        db = EmbeddedD1Database(store, "n")
        await db.exec("CREATE TABLE u (a)")
        for connection in databases(store):
            connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
        with pytest.raises(MigrationError, match=r"disk is full.*Free some space"):
            await apply(db, read_migrations(tmp_path))


def test_a_statements_own_mistake_is_not_the_stores() -> None:
    connection = ClosingConnection(":memory:")
    with pytest.raises(sqlite3.OperationalError) as raised:
        connection.execute("SELECT nope")
    assert store_error("here", raised.value) is None
    connection.close()
