"""A database as statements, and what of a backup is refused before anything is written."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.moto import S3Service, s3_service

from core import Bindings, DurableObject
from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.backends.embedded.r2 import EmbeddedR2Bucket, StoredR2Bucket
from core.backends.embedded.store import Store
from core.backends.s3.objects import SharedObjects
from core.backends.s3.r2 import SharedBucketStorage
from core.errors import DeveloperError, UsageError
from core.runtime.moving.buckets import find_buckets
from core.runtime.moving.objects import find_objects, left_behind
from core.runtime.moving.statements import counts_of, read_text, statements_of
from core.runtime.plan import Plan

pytestmark = pytest.mark.slow

PLAN = Plan(name="shop", kv={"KV": "kv"}, durable_objects={"ROOMS": "Room"}, r2={"FILES": "files"})


def opened() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.text_factory = read_text
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def test_a_database_comes_back_with_every_row_that_refers_to_another() -> None:
    with closing(opened()) as before, closing(opened()) as after:
        before.executescript(
            """
            CREATE TABLE child (parent REFERENCES parent(id), a);
            CREATE TABLE parent (id INTEGER PRIMARY KEY, other REFERENCES one(id));
            CREATE TABLE one (id INTEGER PRIMARY KEY, two REFERENCES two(id) DEFERRABLE INITIALLY DEFERRED);
            CREATE TABLE two (id INTEGER PRIMARY KEY, one REFERENCES one(id) DEFERRABLE INITIALLY DEFERRED);
            CREATE TABLE _cf_KV (key);
            CREATE TRIGGER grows AFTER INSERT ON child BEGIN INSERT INTO two VALUES (NULL, NULL); END;
            BEGIN; INSERT INTO one VALUES (1, 1); INSERT INTO two VALUES (1, 1); COMMIT;
            INSERT INTO parent VALUES (9223372036854775807, 1);
            INSERT INTO child (rowid, parent, a) VALUES (5, 9223372036854775807, 1.0), (2, NULL, x'');
            """
        )
        _copy(before, after)
        assert counts_of(after) == counts_of(before) == {"child": 2, "parent": 1, "one": 1, "two": 3}
        for table in ("child", "parent", "one", "two"):
            rows = f"SELECT rowid, *, typeof(rowid) FROM {table} ORDER BY rowid"
            assert after.execute(rows).fetchall() == before.execute(rows).fetchall()


def _copy(before: sqlite3.Connection, after: sqlite3.Connection) -> int:
    """Make a database again, each statement in a transaction of its own; how many there were."""
    after.execute("PRAGMA foreign_keys = OFF")
    statements = list(statements_of(before))
    for statement in statements:
        for row in json.loads(json.dumps(statement.rows)):
            after.execute(statement.sql, [_bound(value) for value in row])
    assert after.execute("PRAGMA foreign_key_check").fetchall() == []
    return len(statements)


def test_a_table_that_refers_to_itself_is_made_again_in_parts() -> None:
    with closing(opened()) as before, closing(opened()) as after:
        before.execute("CREATE TABLE tree (id TEXT COLLATE NOCASE PRIMARY KEY, up REFERENCES TREE, note TEXT)")
        list(map(before.execute, ("BEGIN", "PRAGMA defer_foreign_keys = ON")))
        rows = [(f"N{at}", f"n{(at + 1) % 2000}") for at in range(2000)]
        before.executemany("INSERT INTO tree VALUES (?, ?, hex(zeroblob(500)))", rows)
        before.execute("COMMIT")
        assert _copy(before, after) > 8
        everything = "SELECT rowid, * FROM tree ORDER BY 1"
        assert after.execute(everything).fetchall() == before.execute(everything).fetchall()


@st.composite
def _circles(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, list[Any]]]]:
    """Tables that refer to themselves and each other: their SQL, and their rows."""
    count = draw(st.integers(1, 3))
    kinds = [draw(st.sampled_from(["INTEGER", "TEXT", "TEXT COLLATE NOCASE", "two"])) for _ in range(count)]
    references = [
        [
            (parent, draw(st.booleans()))
            for parent in ((at + 1) % count, *draw(st.lists(st.integers(0, count - 1), max_size=1)))
        ]
        for at in range(count)
    ]
    sizes = [draw(st.integers(1, 5)) for _ in range(count)]
    tables: list[str] = []
    rows: list[tuple[str, list[Any]]] = []
    for at, kind in enumerate(kinds):
        columns = ["a INTEGER", "b TEXT"] if kind == "two" else [f"a {kind}"]
        keys: list[str] = []
        for number, (parent, null) in enumerate(references[at]):
            two = kinds[parent] == "two"
            own = [f"r{number}", *([f"s{number}"] if two else [])]
            columns += [f"{name}{'' if null else ' NOT NULL'}" for name in own]
            keys.append(f"FOREIGN KEY ({', '.join(own)}) REFERENCES T{parent}({'a, b' if two else 'a'})")
        end = draw(st.sampled_from(["", " WITHOUT ROWID"]))
        key = "PRIMARY KEY (a, b)" if kind == "two" else "PRIMARY KEY (a)"
        tables.append(f"CREATE TABLE t{at} ({', '.join([*columns, 'note', key, *keys])}){end}")
        for row in range(sizes[at]):
            values = _key(kind, row)
            for parent, null in references[at]:
                to = draw(st.integers(-1 if null else 0, sizes[parent] - 1))
                own = _key(kinds[parent], to)
                if kinds[parent].endswith("NOCASE") and (parent, to) != (at, row):
                    own = [own[0].upper()]
                values += [None] * len(own) if to < 0 else own
            values.append(draw(st.sampled_from([None, 1, 1.5, "é", b"\xff", "x" * 40])))
            rows.append((f"INSERT INTO t{at} VALUES ({', '.join('?' * len(values))})", values))
    return tables, draw(st.permutations(rows))


def _key(kind: str, row: int) -> list[Any]:
    # A key whose order is not that of its rows.
    number = (row * 7 + 3) % 5
    return [number, f"k{row}"] if kind == "two" else [number] if kind == "INTEGER" else [f"k{number}"]


@given(_circles())
def test_tables_that_refer_to_each_other_come_back(found: tuple[list[str], list[tuple[str, list[Any]]]]) -> None:
    tables, rows = found
    with closing(opened()) as before, closing(opened()) as after:
        list(map(before.execute, (*tables, "BEGIN", "PRAGMA defer_foreign_keys = ON")))
        for sql, values in rows:
            before.execute(sql, values)
        before.execute("COMMIT")
        _copy(before, after)
        assert counts_of(after) == counts_of(before)
        for at, sql in enumerate(tables):
            everything = f"SELECT {'*' if 'ROWID' in sql else 'rowid, *'} FROM t{at} ORDER BY a"
            assert after.execute(everything).fetchall() == before.execute(everything).fetchall()


def _bound(value: Any) -> Any:
    whole = value  # not narrowed by what follows
    return base64.b64decode(whole["b"]) if isinstance(value, dict) else value


def test_a_full_text_table_without_content_is_refused() -> None:
    with closing(opened()) as before:
        before.execute("CREATE VIRTUAL TABLE t USING fts5(a, content='')")
        with pytest.raises(DeveloperError, match="the full-text table t has no content of its own"):
            list(statements_of(before))


class Room(DurableObject[Bindings]):
    async def keep(self) -> None:
        await self.ctx.storage.put("a", 1)


def test_an_object_without_a_name_is_refused_unless_it_is_skipped(tmp_path: Path) -> None:
    async def call() -> None:
        with Store(tmp_path) as store:
            rooms: Any = EmbeddedDurableObjectNamespace(store, "Room", Room)
            await rooms.get_by_name("tea").keep()
            # An object that is first called by its id is noted as soon as it is called by its name.
            await rooms.get(rooms.id_from_string(str(rooms.id_from_name("later")))).keep()
            await rooms.get(rooms.new_unique_id()).keep()
            await rooms.objects.close()
            await rooms.get_by_name("later").keep()
            await rooms.objects.close()

    asyncio.run(call())
    with pytest.raises(DeveloperError, match=r"^ROOMS: 1 of its objects have no name in the backup"):
        find_objects(tmp_path, PLAN)
    assert not find_objects(tmp_path, PLAN, ["ROOMS"])
    assert not left_behind(tmp_path, PLAN)
    with pytest.raises(UsageError, match="--skip ROOM: the bundle has no such binding"):
        find_objects(tmp_path, PLAN, ["ROOM"])


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Service]:
    with s3_service(tmp_path_factory.mktemp("moto")) as service:
        yield service


async def test_the_objects_of_a_bucket_are_moved_once_and_none_is_replaced(s3: S3Service, tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        alone = EmbeddedR2Bucket(store, "files")
        for number in range(12):
            await alone.put(f"{number:02}", f"{number}" * 150_000, custom_metadata={"number": str(number)})
        before = [repr(await alone.head(f"{number:02}")) for number in range(12)]
    assert find_buckets(tmp_path, PLAN, ["FILES"]) == []
    (bucket,) = find_buckets(tmp_path, PLAN)
    shared = SharedObjects("s3://cluster/moved", s3.settings)
    said: list[str] = []

    # One that cannot be read, here the last, ends it; those that were written stay as they are.
    lost = next(file for file in bucket.files.iterdir() if file.read_bytes() == b"11" * 150_000)
    lost.rename(tmp_path / "lost")
    with pytest.raises(
        DeveloperError, match=rf"FILES \(\d\d\): .*{lost.name}.*\n?.*\d+ of 12 objects of FILES are in the"
    ):
        await bucket.move(shared, said.append)
    there = dict(await shared.names("core-r2/files/objects"))
    assert 0 < len(there) < 12
    (tmp_path / "lost").rename(lost)
    await bucket.move(shared, said.append)
    assert said == ["FILES: 12 objects, 2,100,000 bytes"]
    after = dict(await shared.names("core-r2/files/objects"))
    assert len(after) == 12
    assert {name: after[name] for name in there} == there

    storage = SharedBucketStorage(shared, "files")
    moved = StoredR2Bucket(storage)
    assert [repr(await moved.head(f"{number:02}")) for number in range(12)] == before
    body = await moved.get("11")
    assert body is not None
    assert await body.text() == "11" * 150_000

    # An object of the cluster's own is never replaced.
    await moved.put("03", "of the cluster")
    with pytest.raises(DeveloperError, match=r"FILES \(03\): the cluster has something else there already"):
        await bucket.move(shared, said.append)
    assert (await moved.head("03")).size == len("of the cluster")  # type: ignore[union-attr]  # it was put above
    await storage.close()


async def test_a_bucket_that_ends_on_the_way_is_a_sentence(s3: S3Service, tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        await EmbeddedR2Bucket(store, "files").put("a", "text")
    (bucket,) = find_buckets(tmp_path, PLAN)
    nowhere = SharedObjects("s3://not-there/moved", s3.settings)
    with pytest.raises(DeveloperError, match=r"FILES: .*0 of 1 objects of FILES are in the cluster"):
        await bucket.move(nowhere, print)
