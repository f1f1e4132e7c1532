"""The embedded namespace beyond its contract: large values as files, rows that have expired, two at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.store import Store
from core.bindings.kv import KVNamespace
from core.errors import KVError, KVTypeError
from core.testing.clock import FakeClock

LARGE = 200_000


def files_of(folder: Path) -> list[Path]:
    """The files that hold values."""
    return sorted((folder / "kv" / "kv.files").glob("*"))


def test_it_is_a_kv_namespace() -> None:
    with Store() as store:
        namespace: KVNamespace = EmbeddedKVNamespace(store, "kv")
        assert isinstance(namespace, KVNamespace)
        assert repr(namespace) == "<EmbeddedKVNamespace :memory:>"


async def test_large_values_are_files_and_go_with_their_rows(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        kv = EmbeddedKVNamespace(store, "kv")
        await kv.put("k", b"1" * LARGE, metadata="m")
        await kv.put("other", b"2" * LARGE)
        assert len(files_of(tmp_path)) == 2
        assert await kv.get("k", "bytes") == b"1" * LARGE
        assert await kv.get("k") == "1" * LARGE
        assert await kv.get(["k", "other"]) == {"k": "1" * LARGE, "other": "2" * LARGE}
        assert (await kv.get_with_metadata("k", "bytes")).metadata == "m"
        await kv.put("k", "small")
        assert len(files_of(tmp_path)) == 1
        await kv.put("other", b"3" * LARGE)
        assert len(files_of(tmp_path)) == 1
        assert await kv.get("other", "bytes") == b"3" * LARGE
        await kv.delete("other")
        assert files_of(tmp_path) == []
        assert await kv.get("other") is None


async def test_the_files_of_expired_keys_go(tmp_path: Path) -> None:
    clock = FakeClock()
    with Store(tmp_path, clock=clock) as store:
        kv = EmbeddedKVNamespace(store, "kv")
        await kv.put("k", b"1" * LARGE, expiration_ttl=60)
        clock.advance(60)
        assert await kv.get("k") is None
        for index in range(1001):
            await kv.put(f"k{index}", "v")
        assert files_of(tmp_path) == []
    assert store.path == tmp_path


async def test_what_a_killed_process_left_is_swept_at_the_next_start(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        kv = EmbeddedKVNamespace(store, "kv")
        await kv.put("k", b"1" * LARGE)
        (tmp_path / "kv" / "kv.files" / "orphan").write_bytes(b"never committed")
    with Store(tmp_path) as store:
        kv = EmbeddedKVNamespace(store, "kv")
        assert [path.name for path in files_of(tmp_path)] != ["orphan"]
        assert len(files_of(tmp_path)) == 1
        assert await kv.get("k", "bytes") == b"1" * LARGE


async def test_a_value_replaced_by_another_process_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    with Store(tmp_path) as mine, Store(tmp_path) as theirs:
        kv, other = EmbeddedKVNamespace(mine, "kv"), EmbeddedKVNamespace(theirs, "kv")
        await kv.put("k", b"1" * LARGE)
        files = kv._files
        assert files is not None

        class Late:
            def read(self, name: str) -> bytes:
                assert files is not None
                kv._files = files
                asyncio.run(other.put("k", b"2" * LARGE))
                return files.read(name)

        kv._files = cast("Any", Late())
        assert await kv.get("k", "bytes") == b"2" * LARGE


async def test_expired_rows_are_deleted_after_a_while() -> None:
    clock = FakeClock()
    with Store(clock=clock) as store:
        kv = EmbeddedKVNamespace(store, "kv")
        await kv.put("gone", "v", expiration_ttl=60)
        clock.advance(61)
        for _ in range(1000):
            await kv.put("k", "v")
        assert store.database("kv", "kv").connection.execute("SELECT count(*) FROM kv").fetchone() == (1,)


@pytest.mark.parametrize("key", [None, 1, b"k", {"k": 1}, 1.5])
async def test_keys_of_other_kinds_are_refused(key: Any) -> None:
    with Store() as store:
        kv = EmbeddedKVNamespace(store, "kv")
        calls: list[Any] = [kv.get(key), kv.put(key, "v"), kv.delete(key), kv.get_with_metadata(key)]
        for call in calls:
            with pytest.raises(KVTypeError, match="must be a str"):
                await call


async def test_options_of_other_kinds_are_refused() -> None:
    with Store() as store:
        kv = EmbeddedKVNamespace(store, "kv")
        with pytest.raises(KVTypeError, match="expiration_ttl must be a number, not '60'"):
            await kv.put("k", "v", expiration_ttl=cast("Any", "60"))
        with pytest.raises(KVTypeError, match="Metadata must be JSON"):
            await kv.put("k", "v", metadata=object())
        with pytest.raises(KVTypeError, match="Metadata must be JSON"):
            await kv.put("k", "v", metadata=float("nan"))
        with pytest.raises(KVTypeError, match="A cursor must be a str"):
            await kv.list(cursor=cast("Any", 1))
        with pytest.raises(KVTypeError, match="A key must be a str"):
            await kv.get(cast("Any", ["a", 1]))

        async def texts() -> AsyncIterator[Any]:
            yield "text"

        with pytest.raises(KVTypeError, match="A stream must give bytes, not str"):
            await kv.put("k", texts())
        assert await kv.get("k") is None


async def test_half_a_surrogate_pair_is_stored_as_the_platform_does() -> None:
    with Store() as store:
        kv = EmbeddedKVNamespace(store, "kv")
        await kv.put("k", "v\udc00")
        assert await kv.get("k") == "v\ufffd"
        assert await kv.get(["k"]) == {"k": "v\ufffd"}
        # A key with one would be the key of several names.
        for call in (kv.put("k\ud800", "v"), kv.get("k\ud800"), kv.get(["k\ud800"]), kv.delete("k\ud800")):
            with pytest.raises(KVError, match="Could not URL-decode key name"):
                await call


async def test_the_size_of_a_bulk_read_is_limited() -> None:
    with Store() as store:
        kv = EmbeddedKVNamespace(store, "kv")
        await kv.put("k", b"a" * (14 * 1024 * 1024))
        await kv.put("l", b"a" * (14 * 1024 * 1024))
        with pytest.raises(KVError, match=r"KV GET_BULK failed: 413 Total size of request exceeds the limit of 25MB"):
            await kv.get(["k", "l"])


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), st.binary(max_size=50), max_size=12
    ),
    st.integers(1, 5),
)
def test_pages_of_any_size_give_every_key_once_in_order(values: dict[str, bytes], limit: int) -> None:
    async def run() -> None:
        with Store() as store:
            kv = EmbeddedKVNamespace(store, "kv")
            wanted = {key: value for key, value in values.items() if key not in (".", "..")}
            for key, value in wanted.items():
                await kv.put(key, value)
            seen: list[str] = []
            cursor: str | None = None
            while True:
                page = await kv.list(limit=limit, cursor=cursor)
                seen += [key.name for key in page.keys]
                if page.list_complete:
                    break
                cursor = page.cursor
            assert seen == sorted(wanted, key=str.encode)
            for key, value in wanted.items():
                assert await kv.get(key, "bytes") == value

    asyncio.run(run())
