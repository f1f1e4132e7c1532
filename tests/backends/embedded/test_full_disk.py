"""A full disk: every write of every kind of binding fails where it is made, and what was stored stays as it was."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.disk import full

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.queue import EmbeddedQueue
from core.backends.embedded.r2 import EmbeddedR2Bucket
from core.backends.embedded.store import Store
from core.errors import BindingError

LARGE = b"x" * 3_000_000

KV: dict[str, Callable[[EmbeddedKVNamespace], Awaitable[Any]]] = {
    "put": lambda kv: kv.put("old", "2"),
    "put of a new key": lambda kv: kv.put("new", "2", expiration_ttl=60, metadata={"a": 1}),
    "put_json": lambda kv: kv.put_json("old", {"a": 1}),
    "put of a file": lambda kv: kv.put("old", LARGE),
    "delete": lambda kv: kv.delete("old"),
}
D1: dict[str, Callable[[EmbeddedD1Database], Awaitable[Any]]] = {
    "run": lambda db: db.prepare("INSERT INTO t VALUES (2)").run(),
    "all": lambda db: db.prepare("UPDATE t SET a = 2 RETURNING a").all(),
    "first": lambda db: db.prepare("DELETE FROM t RETURNING a").first(),
    "batch": lambda db: db.batch([db.prepare("DELETE FROM t"), db.prepare("INSERT INTO t VALUES (?)").bind(3)]),
    "exec": lambda db: db.exec("INSERT INTO t VALUES (4)\nCREATE TABLE u (a)"),
}
R2: dict[str, Callable[[EmbeddedR2Bucket], Awaitable[Any]]] = {
    "put": lambda bucket: bucket.put("old", b"2"),
    "put of a file": lambda bucket: bucket.put("old", LARGE),
    "delete": lambda bucket: bucket.delete("old"),
    "create_multipart_upload": lambda bucket: bucket.create_multipart_upload("old"),
}


@pytest.mark.parametrize("write", KV.values(), ids=KV)
async def test_kv(tmp_path: Path, write: Callable[[EmbeddedKVNamespace], Awaitable[Any]]) -> None:
    with Store(tmp_path) as store:
        kv = EmbeddedKVNamespace(store, "x")
        await kv.put("old", "1")
        with pytest.raises(BindingError), full():
            await write(kv)
        assert [(key.name, await kv.get(key.name)) for key in (await kv.list()).keys] == [("old", "1")]
        await write(kv)


@pytest.mark.parametrize("write", D1.values(), ids=D1)
async def test_d1(tmp_path: Path, write: Callable[[EmbeddedD1Database], Awaitable[Any]]) -> None:
    with Store(tmp_path) as store:
        db = EmbeddedD1Database(store, "x")
        await db.exec("CREATE TABLE t (a)\nINSERT INTO t VALUES (1)")
        with pytest.raises(BindingError), full():
            await write(db)
        assert await db.prepare("SELECT a FROM t").raw() == [[1]]
        assert await db.prepare("SELECT name FROM sqlite_master WHERE name = 'u'").raw() == []
        await write(db)


@pytest.mark.parametrize("write", R2.values(), ids=R2)
async def test_r2(tmp_path: Path, write: Callable[[EmbeddedR2Bucket], Awaitable[Any]]) -> None:
    with Store(tmp_path) as store:
        bucket = EmbeddedR2Bucket(store, "x")
        await bucket.put("old", b"1")
        with pytest.raises(BindingError), full():
            await write(bucket)
        found = await bucket.get("old")
        assert found is not None
        assert await found.text() == "1"
        await write(bucket)


async def test_queue(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        queue: EmbeddedQueue[Any] = EmbeddedQueue(store, "x")
        await queue.send(1)
        with pytest.raises(BindingError), full():
            await queue.send(2)
        with pytest.raises(BindingError), full():
            await queue.send_batch([{"body": 3}, {"body": 4}])
        assert (await queue.metrics()).backlog_count == 1
        await queue.send(5)
        assert (await queue.metrics()).backlog_count == 2
