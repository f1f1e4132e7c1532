"""A database as statements, and what of a backup is refused before anything is written."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core import Bindings, DurableObject
from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.backends.embedded.store import Store
from core.errors import DeveloperError, UsageError
from core.runtime.capnp import Plan
from core.runtime.moving.objects import find_objects
from core.runtime.moving.statements import counts_of, read_text, statements_of

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
        ends: list[bool] = []
        begin = ("BEGIN", "PRAGMA defer_foreign_keys = ON")
        list(map(after.execute, begin))
        for statement in statements_of(before):
            for row in json.loads(json.dumps(statement.rows)):
                after.execute(statement.sql, [_bound(value) for value in row])
            if statement.end:
                list(map(after.execute, ("COMMIT", *begin)))
            ends.append(statement.end)
        after.execute("COMMIT")
        assert False in ends
        assert counts_of(after) == counts_of(before) == {"child": 2, "parent": 1, "one": 1, "two": 3}
        for table in ("child", "parent", "one", "two"):
            rows = f"SELECT rowid, *, typeof(rowid) FROM {table} ORDER BY rowid"
            assert after.execute(rows).fetchall() == before.execute(rows).fetchall()


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
    found = find_objects(tmp_path, PLAN)
    assert sorted(str(source.name) for source in found.objects) == ["later", "tea"]
    assert len(found.impossible) == 1
    assert "ROOMS: 1 of its objects have no name in the backup" in found.impossible[0]
    assert found.left == ["FILES: the objects of R2 are not moved, and stay in the backup"]
    assert not find_objects(tmp_path, PLAN, ["ROOMS"]).objects
    with pytest.raises(UsageError, match="--skip ROOM: the bundle has no such binding"):
        find_objects(tmp_path, PLAN, ["ROOM"])
