"""`FakeR2Bucket`: the embedded bucket in memory, with what a test wants beside."""

from __future__ import annotations

import asyncio

import pytest

from core.bindings.r2 import R2Bucket
from core.errors import R2Error
from core.testing import FakeClock, FakeR2Bucket
from core.testing.calls import Call


async def test_it_holds_what_it_was_given() -> None:
    bucket: R2Bucket = FakeR2Bucket({"a": "text", "b": b"\x00"})
    found = await bucket.get("a")
    assert found is not None
    assert await found.text() == "text"
    assert [entry.key for entry in (await bucket.list()).objects] == ["a", "b"]


async def test_calls_are_logged_with_the_options_that_were_given() -> None:
    bucket = FakeR2Bucket()
    await bucket.put("k", "v", custom_metadata={"a": "b"})
    await bucket.get("k")
    await bucket.delete(["k"])
    upload = await bucket.create_multipart_upload("m")
    await upload.abort()
    assert bucket.calls == [
        Call("put", ("k", "v"), {"custom_metadata": {"a": "b"}}),
        Call("get", ("k",)),
        Call("delete", (["k"],)),
        Call("create_multipart_upload", ("m",)),
        Call("abort", ("m", upload.upload_id)),
    ]


async def test_a_fault_changes_nothing() -> None:
    bucket = FakeR2Bucket({"k": "old"})
    bucket.fail_next(R2Error("put: We encountered an internal error. Please try again. (10001)"), method="put")
    with pytest.raises(R2Error, match="10001"):
        await bucket.put("k", "new")
    found = await bucket.get("k")
    assert found is not None
    assert await found.text() == "old"


async def test_times_and_latency_are_the_clocks() -> None:
    clock = FakeClock(1_800_000_000)
    bucket = FakeR2Bucket(clock=clock, latency=2)
    putting = asyncio.ensure_future(bucket.put("k", "v"))
    await clock.advance(1)
    assert not putting.done()
    await clock.advance(1)
    assert (await putting).uploaded.timestamp() == 1_800_000_002
