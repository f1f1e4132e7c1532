"""Lists of keys: a page costs what is on it, wherever it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count

from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.r2 import EmbeddedR2Bucket
from core.backends.embedded.store import Store

MANY = 5000


async def steps(store: Store, kind: str, work: Callable[[], Awaitable[object]]) -> int:
    """How often SQLite took 10 steps of its programs meanwhile."""
    taken = count()
    connection = store.database(kind, "b").connection
    connection.set_progress_handler(lambda: next(taken) < 0, 10)
    await work()
    connection.set_progress_handler(None, 0)
    return next(taken)


async def test_the_last_page_of_a_namespace_costs_what_the_first_costs() -> None:
    with Store() as store:
        kv = EmbeddedKVNamespace(store, "b")
        await kv.put("k", "v")
        connection = store.database("kv", "b").connection
        connection.executemany("INSERT INTO kv (key, value) VALUES (?, 'v')", [(b"k%d" % n,) for n in range(MANY)])
        first = await steps(store, "kv", lambda: kv.list(prefix="k", limit=10))
        cursor = (await kv.list(prefix="k", limit=1000)).cursor
        later = await steps(store, "kv", lambda: kv.list(prefix="k", limit=10, cursor=cursor))
    assert later <= first + 1


async def test_the_last_page_of_a_bucket_costs_what_the_first_costs() -> None:
    with Store() as store:
        bucket = await filled(store, ["k"])
        first = await steps(store, "r2", lambda: bucket.list(prefix="k", limit=10))
        after = f"k/{MANY - 20}"
        later = await steps(store, "r2", lambda: bucket.list(prefix="k", limit=10, start_after=after))
    assert later <= first + 1


async def test_a_list_of_prefixes_passes_over_what_is_below_them() -> None:
    with Store() as store:
        bucket = await filled(store, ["a", "b", "c"])
        whole = await steps(store, "r2", lambda: bucket.list(limit=100))
        page = await bucket.list(delimiter="/")
        taken = await steps(store, "r2", lambda: bucket.list(delimiter="/"))
    assert page.delimited_prefixes == ["a/", "b/", "c/"]
    assert taken < whole


async def filled(store: Store, prefixes: list[str]) -> EmbeddedR2Bucket:
    bucket = EmbeddedR2Bucket(store, "b")
    await bucket.put("model", b"")
    connection = store.database("r2", "b").connection
    columns = "version, size, etag, uploaded, checksums, http_metadata, custom_metadata, storage_class"
    keys = [(f"{prefix}/{n}".encode(),) for prefix in prefixes for n in range(MANY)]
    connection.executemany(
        f"INSERT INTO r2_objects (key, {columns}) SELECT ?, {columns} FROM r2_objects WHERE key = CAST('model' AS BLOB)",
        keys,
    )
    await bucket.delete("model")
    return bucket
