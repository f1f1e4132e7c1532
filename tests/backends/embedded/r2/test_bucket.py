"""The embedded bucket beyond the contract: files, what a killed process leaves, and two processes."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.killing import written_until_killed

from core.backends.embedded.disk import Files
from core.backends.embedded.r2 import EmbeddedR2Bucket
from core.backends.embedded.store import Store
from core.bindings.r2 import FixedLengthStream, R2Range
from core.errors import R2Error
from core.testing import FakeClock

LARGE = 400_000


def files(folder: Path) -> list[Path]:
    """The files of large bodies."""
    return [path for path in folder.rglob("*") if path.is_file() and path.parent.suffix == ".files"]


async def read(bucket: EmbeddedR2Bucket, key: str) -> bytes | None:
    found = await bucket.get(key)
    return None if found is None else await found.bytes()


async def test_objects_last_and_large_bodies_are_files(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        bucket = EmbeddedR2Bucket(store, "b")
        await bucket.put("small", b"s" * 100)
        await bucket.put("large", b"l" * LARGE, custom_metadata={"a": "b"})
        upload = await bucket.create_multipart_upload("parts")
        part = await upload.upload_part(1, b"p" * LARGE)
    assert len(files(tmp_path)) == 2
    with Store(tmp_path) as store:
        bucket = EmbeddedR2Bucket(store, "b")
        assert await read(bucket, "small") == b"s" * 100
        assert await read(bucket, "large") == b"l" * LARGE
        await bucket.resume_multipart_upload("parts", upload.upload_id).complete([part])
        assert await read(bucket, "parts") == b"p" * LARGE


async def test_a_file_goes_with_its_object(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        bucket = EmbeddedR2Bucket(store, "b")
        for number in range(5):
            await bucket.put("k", bytes([number]) * LARGE)
        assert len(files(tmp_path)) == 1
        await bucket.put("k", b"small")
        assert files(tmp_path) == []
        upload = await bucket.create_multipart_upload("k")
        await upload.upload_part(1, b"a" * LARGE)
        await upload.upload_part(1, b"b" * LARGE)
        await upload.upload_part(2, b"c" * LARGE)
        assert len(files(tmp_path)) == 2
        await upload.abort()
        assert files(tmp_path) == []
        await bucket.put("k", b"x" * LARGE)
        await bucket.delete("k")
        assert files(tmp_path) == []


async def test_a_refused_put_leaves_no_file(tmp_path: Path) -> None:
    async def breaking() -> AsyncIterator[bytes]:
        yield b"x" * LARGE
        raise LookupError("the client went away")

    with Store(tmp_path) as store:
        bucket = EmbeddedR2Bucket(store, "b")
        with pytest.raises(R2Error):
            await bucket.put("k", b"x" * LARGE, md5="0" * 32)
        assert await bucket.put("k", b"x" * LARGE, only_if={"etag_matches": "x"}) is None
        with pytest.raises(LookupError):
            await bucket.put("k", FixedLengthStream(breaking(), 2 * LARGE))
        with pytest.raises(R2Error):
            await bucket.resume_multipart_upload("k", "nope").upload_part(1, b"x" * LARGE)
        assert files(tmp_path) == []
        assert await bucket.head("k") is None


async def test_a_body_that_is_being_read_keeps_its_file_until_it_is_let_go(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        bucket = EmbeddedR2Bucket(store, "b")
        await bucket.put("k", b"a" * LARGE)
        found = await bucket.get("k", range=R2Range(LARGE - 10))
        await bucket.delete("k")
        assert len(files(tmp_path)) == 1
        assert found is not None
        assert await found.bytes() == b"a" * 10
        del found
        gc.collect()
        assert files(tmp_path) == []


async def test_a_body_whose_file_another_process_deleted_says_to_try_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store, Store(tmp_path) as elsewhere:
        bucket = EmbeddedR2Bucket(store, "b")
        await bucket.put("k", b"a" * LARGE)
        found = await bucket.get("k")
        await EmbeddedR2Bucket(elsewhere, "b").put("k", b"b" * LARGE)
        assert found is not None
        with pytest.raises(R2Error, match=r"internal error. Please try again. \(10001\)"):
            await found.bytes()
        assert await read(bucket, "k") == b"b" * LARGE


async def test_what_a_killed_process_left_is_swept_away(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        bucket = EmbeddedR2Bucket(store, "b")
        await bucket.put("k", b"a" * LARGE)
        folder = store.files("r2", "b")
        assert isinstance(folder, Files)
        (folder.folder / "left").write_bytes(b"x")
    with Store(tmp_path) as store:
        bucket = EmbeddedR2Bucket(store, "b")
        assert len(files(tmp_path)) == 1
        assert await read(bucket, "k") == b"a" * LARGE


async def test_writers_at_once_leave_one_whole_object(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        bucket = EmbeddedR2Bucket(store, "b")
        await asyncio.gather(*(bucket.put("k", bytes([number]) * (LARGE + number)) for number in range(10)))
        data = await read(bucket, "k")
        assert data is not None
        assert data == data[:1] * len(data)
        assert len(data) == LARGE + data[0]
        assert len(files(tmp_path)) == 1


WRITER = """
import asyncio, os, sys
from core.backends.embedded.r2 import EmbeddedR2Bucket
from core.backends.embedded.store import Store
async def main(state, log, first):
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    bucket = EmbeddedR2Bucket(Store(state), "b")
    for number in range(first, 100_000):
        size = 200_000 if number % 5 == 0 else 1000
        await bucket.put(f"k{number % 50}", str(number).encode().rjust(size, b"."))
        os.write(descriptor, f"{number}\\n".encode())
asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def test_no_acknowledged_put_is_lost_or_torn_by_kill_9(tmp_path: Path) -> None:
    state = tmp_path / "state"
    acknowledged = written_until_killed(WRITER, state, tmp_path / "log", seed=7)

    async def check() -> None:
        with Store(state) as store:
            bucket = EmbeddedR2Bucket(store, "b")
            for key in range(50):
                last = max((number for number in acknowledged if number % 50 == key), default=None)
                data = await read(bucket, f"k{key}")
                if last is None:
                    continue
                assert data is not None
                number = int(data.lstrip(b"."))
                assert number >= last
                assert len(data) == (200_000 if number % 5 == 0 else 1000)
            objects = (await bucket.list()).objects
            # What was being written when the process ended may be another's that still writes, for an hour.
            kept = [path for path in files(state) if path.suffix != ".tmp"]
            assert len(kept) == sum(found.size > 128 * 1024 for found in objects)

    asyncio.run(check())
    assert len(acknowledged) > 50


async def test_a_refused_upload_leaves_the_bucket_to_read_and_write_what_is_new(tmp_path: Path) -> None:
    """The statement of a refused `complete` once stayed open as long as its error: the connection then read an old
    state, and could write no more once another process had written.
    """
    with Store(tmp_path, busy_timeout=0.1) as store, Store(tmp_path, busy_timeout=0.1) as another:
        bucket, theirs = EmbeddedR2Bucket(store, "b"), EmbeddedR2Bucket(another, "b")
        upload = await bucket.create_multipart_upload("k")
        part = await upload.upload_part(1, b"p")
        await upload.upload_part(2, b"q")
        with pytest.raises(R2Error, match="10001") as kept:
            await upload.complete([part, part])
        await theirs.put("k", b"theirs")
        assert await read(bucket, "k") == b"theirs"
        await bucket.put("k", b"own")
        assert await read(theirs, "k") == b"own"
        assert kept.value is not None


async def test_an_upload_of_more_than_seven_days_is_dropped_with_its_parts(tmp_path: Path) -> None:
    clock = FakeClock()
    with Store(tmp_path, clock=clock) as store:
        bucket = EmbeddedR2Bucket(store, "b")
        old = await bucket.create_multipart_upload("old")
        part = await old.upload_part(1, b"o" * LARGE)
        await clock.advance(6 * 86400)
        young = await bucket.create_multipart_upload("young")
        kept = await young.upload_part(1, b"y" * LARGE)
        assert len(files(tmp_path)) == 2
        await clock.advance(2 * 86400)
        await bucket.create_multipart_upload("another")
        assert len(files(tmp_path)) == 1
        with pytest.raises(R2Error, match="10024"):
            await old.complete([part])
        await young.complete([kept])
        assert await read(bucket, "young") == b"y" * LARGE
