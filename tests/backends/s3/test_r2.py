"""Object buckets inside a cluster's bucket, on an S3 service: the contract, and what only several nodes can do."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from tests.contracts.contract import Case
from tests.contracts.r2 import contract
from tests.support.moto import S3Service, s3_service

from core.backends.embedded.r2 import StoredR2Bucket
from core.backends.s3.objects import SharedObjects
from core.backends.s3.r2 import DAY, PIECE, SMALL, SharedBucketStorage, name_of
from core.bindings.r2 import FixedLengthStream, R2Conditional, R2ObjectBody, R2Range
from core.errors import R2Error, R2TypeError
from core.testing.clock import FakeClock


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Service]:
    with s3_service(tmp_path_factory.mktemp("moto")) as service:
        yield service


class Node:
    """The R2 service of one machine of a cluster."""

    def __init__(self, s3: S3Service, place: str, *, seconds: float = 20.0) -> None:
        self.clock = FakeClock(time.time())  # the bucket's own dates are of now
        self.shared = SharedObjects(f"s3://cluster/{place}", s3.settings, seconds=seconds)
        self.storages: list[SharedBucketStorage] = []
        self.files = self.bucket("files")

    def bucket(self, name: str) -> StoredR2Bucket:
        self.storages.append(SharedBucketStorage(self.shared, name, clock=self.clock, stay=60.0))
        return StoredR2Bucket(self.storages[-1])

    async def stored(self, folder: str = "bodies") -> list[str]:
        return [name async for name, _ in self.shared.all_names(f"core-r2/files/{folder}")]

    async def close(self) -> None:
        for storage in self.storages:
            await storage.close()


@pytest.fixture
async def nodes(s3: S3Service, request: pytest.FixtureRequest) -> AsyncIterator[list[Node]]:
    """Two nodes of a cluster of their own."""
    nodes = [Node(s3, f"test{abs(hash(request.node.nodeid))}") for _ in range(2)]
    yield nodes
    for node in nodes:
        await node.close()


IN_A_CLUSTER = {case.name for case in contract.select(timed=False)} - {"more_than_1000_objects_are_listed_in_pages"}
"""The cases that `tests/runtime/test_contracts.py` runs in a cluster, over the same service."""


@pytest.mark.parametrize(
    "case", [case for case in contract.cases if case.name not in IN_A_CLUSTER], ids=lambda case: case.name
)
async def test_it_keeps_what_no_cluster_is_tried_with(case: Case[StoredR2Bucket], s3: S3Service) -> None:
    node = Node(s3, case.name)
    await case.run(node.files, other=node.bucket("others"), clock=node.clock)
    await node.close()


async def test_what_a_node_stores_the_others_have_at_once(nodes: list[Node]) -> None:
    one, other = (node.files for node in nodes)
    for size in (0, 1, SMALL, SMALL + 1, PIECE, PIECE + 1, 2 * PIECE + 3):
        data = os.urandom(size)
        await one.put("k", data)
        found = await other.get("k")
        assert found is not None
        assert await found.bytes() == data
        for offset, length in ((0, 1), (size - 1, 1), (PIECE - 1, 2), (SMALL, PIECE)):
            if 0 <= offset < size:
                part = await other.get("k", range=R2Range(offset, length))
                assert part is not None
                assert await part.bytes() == data[offset : offset + length]
    await other.delete("k")
    assert await one.head("k") is None


async def test_long_keys_that_begin_alike_are_listed_in_order(nodes: list[Node]) -> None:
    bucket = nodes[0].files
    long = "k" * 320
    names = [
        long,
        *(f"{long}{end}" for end in ("", "a", "a/b", "a/c", "b", "é")),
        f"{long[:-1]}j",
        f"{long[:-1]}l",
        "z",
    ]
    names = sorted(dict.fromkeys(names), key=str.encode)
    for name in names:
        await bucket.put(name, name)
    assert [found.key for found in (await bucket.list()).objects] == names
    assert [found.key for found in (await bucket.list(prefix=f"{long}a")).objects] == [
        f"{long}{end}" for end in ("a", "a/b", "a/c")
    ]
    seen: list[str] = []
    page = await bucket.list(limit=2, delimiter="/")
    while True:
        seen += [*(found.key for found in page.objects), *page.delimited_prefixes]
        if page.cursor is None:
            break
        page = await bucket.list(limit=2, delimiter="/", cursor=page.cursor)
    there = {name for name in names if "/" not in name} | {f"{long}a/"}
    assert sorted(seen, key=str.encode) == sorted(there, key=str.encode)


async def test_more_long_keys_that_begin_alike_than_are_named_at_once_are_listed_in_order() -> None:
    storage = SharedBucketStorage(SharedObjects("memory:///"), "files")
    bucket, keys = (
        StoredR2Bucket(storage),
        sorted([*(f"{'x' * 330}{number}" for number in range(1010)), "x" * 331, "y"]),
    )
    for key in keys:
        await bucket.put(key, "")
    first = await bucket.list()
    second = await bucket.list(cursor=first.cursor)
    assert [found.key for found in (*first.objects, *second.objects)] == keys
    await storage.close()


async def test_of_many_nodes_that_create_an_object_one_does(nodes: list[Node]) -> None:
    await nodes[0].shared.try_conditions()
    assert nodes[0].shared.checks_conditions
    only = R2Conditional(etag_does_not_match="*")
    for size in (1, SMALL + 1):
        key = f"k{size}"
        stored = await asyncio.gather(
            *(node.files.put(key, bytes([number]) * size, only_if=only) for node in nodes for number in range(8))
        )
        (won,) = [each for each in stored if each is not None]
        found = await nodes[0].files.get(key)
        assert found is not None
        assert found.version == won.version
        assert len(await found.bytes()) == size


async def test_no_increment_is_lost(nodes: list[Node]) -> None:
    await nodes[0].files.put("counter", "0")

    async def add(node: Node) -> None:
        while True:
            found = await node.files.get("counter")
            assert found is not None
            number = int(await found.text())
            if await node.files.put("counter", str(number + 1), only_if={"etag_matches": found.etag}) is not None:
                return

    await asyncio.gather(*(add(node) for node in nodes for _ in range(10)))
    found = await nodes[1].files.get("counter")
    assert found is not None
    assert await found.text() == "20"


async def test_of_two_nodes_that_end_an_upload_one_does(nodes: list[Node]) -> None:
    for turn in range(4):
        key = f"k{turn}"
        upload = await nodes[0].files.create_multipart_upload(key)
        part = await upload.upload_part(1, bytes(SMALL + 1))
        ended = await asyncio.gather(
            upload.complete([part]),
            nodes[1].files.resume_multipart_upload(key, upload.upload_id).abort(),
            return_exceptions=True,
        )
        found = await nodes[1].files.get(key)
        if isinstance(ended[0], R2Error):
            assert found is None
        else:
            assert found is not None
            assert len(await found.bytes()) == SMALL + 1


async def test_a_put_that_breaks_off_leaves_what_was_there(nodes: list[Node]) -> None:
    one, other = (node.files for node in nodes)
    await one.put("k", "before")

    async def breaks_off() -> AsyncIterator[bytes]:
        yield bytes(2 * PIECE)
        found = await other.get("k")
        assert found is not None
        assert await found.text() == "before"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await one.put("k", FixedLengthStream(breaks_off(), 3 * PIECE))
    with pytest.raises(R2TypeError):
        await one.put("k", FixedLengthStream(breaks_off(), PIECE))
    found = await other.get("k")
    assert found is not None
    assert await found.text() == "before"
    await asyncio.gather(*nodes[0].storages[0].later)
    assert await nodes[0].stored() == []


async def test_what_is_replaced_can_be_read_for_a_while(nodes: list[Node]) -> None:
    one, other = nodes
    data = os.urandom(3 * PIECE)
    await one.files.put("k", data)
    found = await other.files.get("k")
    await one.files.put("k", "after")
    assert found is not None
    assert await found.bytes() == data
    assert len(await one.stored()) == 3
    await one.clock.advance(61)
    await asyncio.gather(*one.storages[0].later)
    assert await one.stored() == []


async def test_what_a_killed_node_left_is_swept_up_and_nothing_else(nodes: list[Node]) -> None:
    one, other = nodes
    await one.files.put("kept", bytes(PIECE + 1))
    upload = await one.files.create_multipart_upload("parts")
    part = await upload.upload_part(1, bytes(PIECE))
    kept = await one.stored()
    for key in ("kept", "gone"):
        await one.shared.write(f"core-r2/files/bodies/{name_of(key.encode())}/{'0' * 32}.000000", b"half")
    await other.clock.advance(DAY - 60)
    assert await other.storages[0].sweep()
    assert len(await one.stored()) == len(kept) + 2  # it may still be written
    await other.clock.advance(DAY + 60)
    assert await other.storages[0].sweep()
    assert await one.stored() == kept
    assert not await other.storages[0].sweep()  # it was done this day
    assert (await upload.complete([part])).size == PIECE
    await asyncio.gather(*one.storages[0].later)
    assert await one.stored("parts") == []
    await other.clock.advance(8 * DAY)
    assert await other.storages[0].sweep()
    assert await one.stored("uploads") == []
    found = await one.files.get("parts")
    assert found is not None
    assert await found.bytes() == bytes(PIECE)


async def test_an_upload_of_a_node_that_was_killed_at_its_end_can_be_completed(nodes: list[Node]) -> None:
    one, other = nodes
    upload = await one.files.create_multipart_upload("k")
    part = await upload.upload_part(1, "text")
    write_if = one.shared.write_if

    async def killed(name: str, data: bytes, tag: object) -> bool:
        if "/objects/" in name:
            raise KeyboardInterrupt
        return await write_if(name, data, tag)  # type: ignore[arg-type]  # it is handed on

    one.shared.write_if = killed  # type: ignore[method-assign]  # a kill between two requests
    with pytest.raises(KeyboardInterrupt):
        await one.storages[0].complete(upload.upload_id, b"k", [(part.part_number, part.etag)])
    assert await other.files.head("k") is None
    await other.files.resume_multipart_upload("k", upload.upload_id).complete([part])
    found = await other.files.get("k")
    assert found is not None
    assert await found.text() == "text"


async def test_a_bucket_that_is_away_or_silent_is_an_error_that_may_pass(tmp_path: Path) -> None:
    with s3_service(tmp_path) as s3:
        node = Node(s3, "away", seconds=1.0)
        bucket = node.files
        await bucket.put("k", bytes(2 * PIECE))
        upload = await bucket.create_multipart_upload("k")
        part = await upload.upload_part(1, "text")
        held = await bucket.get("k")
        calls: list[tuple[str, Callable[[], Awaitable[object]]]] = [
            ("head", lambda: bucket.head("k")),
            ("get", lambda: bucket.get("k")),
            ("list", lambda: bucket.list()),
            ("put", lambda: bucket.put("k", "text")),
            ("put", lambda: bucket.put("k", bytes(SMALL + 1))),
            ("delete", lambda: bucket.delete("k")),
            ("createMultipartUpload", lambda: bucket.create_multipart_upload("k")),
            ("uploadPart", lambda: upload.upload_part(1, "text")),
            ("completeMultipartUpload", lambda: upload.complete([part])),
            ("abortMultipartUpload", lambda: upload.abort()),
        ]
        s3.process.send_signal(signal.SIGSTOP)
        await asyncio.to_thread(os.waitid, os.P_PID, s3.process.pid, os.WSTOPPED | os.WNOWAIT)
        for method, call in (*calls[:2], calls[3]):
            await _refused(method, call)
        s3.process.send_signal(signal.SIGCONT)
        s3.process.kill()
        for method, call in calls:
            await _refused(method, call)
        assert isinstance(held, R2ObjectBody)
        with pytest.raises(R2Error):
            await held.bytes()
        await node.close()


async def _refused(method: str, call: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(R2Error, match=f"^{method}: The bucket of the cluster cannot be used.") as refused:
        await call()
    assert refused.value.retryable
    assert refused.value.code == 10001


def test_the_threads_of_the_library_do_not_grow_with_the_calls(s3: S3Service) -> None:
    async def some() -> None:
        node = Node(s3, "threads")
        await asyncio.gather(*(node.files.put(f"k{number}", "text") for number in range(20)))
        await node.close()

    asyncio.run(some())
    before = threading.active_count()
    asyncio.run(some())
    assert threading.active_count() <= before
