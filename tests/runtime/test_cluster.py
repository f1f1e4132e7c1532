"""Three nodes over one bucket: what one wrote the others read, and what was acknowledged survives a node's death.

The bucket is moto's, and the lease the cluster's own 20 s. It could be divided for tests, but so are the times in which
a lease has to be renewed: on busy machines nodes missed them, and left, as they should.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.conftest import PLAN, Background, Make, Running, member_of, start_running
from tests.runtime.test_rooms import MAIN as CHATTING
from tests.runtime.test_rooms import PLAN as ROOMS
from tests.support.rooms import everyone_hears_everything
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from core.runtime.bundle import Bundle
from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain

LEASE = 20.0


@pytest.fixture
def nodes(
    tools: Toolchain, bundle: Bundle, background: Background, bucket: str, tmp_path: Any
) -> Iterator[list[Running]]:
    """Three nodes of one cluster."""
    yield from _nodes(tools, bundle, background, bucket, tmp_path, PLAN)


@pytest.fixture
def rooms(tools: Toolchain, make: Make, background: Background, bucket: str, tmp_path: Path) -> Iterator[list[Running]]:
    """Three nodes of one cluster with rooms."""
    yield from _nodes(tools, make(CHATTING, ROOMS), background, bucket, tmp_path, ROOMS)


def _nodes(
    tools: Toolchain, bundle: Bundle, background: Background, bucket: str, tmp_path: Path, plan: Plan
) -> Iterator[list[Running]]:
    started: list[Running] = []
    for index in range(3):
        cluster = member_of(bucket, tmp_path.name)
        started.append(start_running(tools, bundle, background, tmp_path / f"node{index}", plan=plan, cluster=cluster))
        assert started[-1].get("/").status in (200, 404)
    yield started
    for node in started:
        background.run(node.node.stop(seconds=8))


def test_a_cluster_survives_the_death_of_a_node(nodes: list[Running], background: Background) -> None:
    first, second, third = nodes

    # What one writes the others read.
    assert first.request("PUT", "/kv/shared", "from the first").status == 204
    assert [node.until("/kv/shared", lambda value: value is not None) for node in nodes] == ["from the first"] * 3
    counts = [node.request("POST", "/counters/shared").json()["count"] for node in (*nodes, *nodes)]
    assert counts == [2, 4, 6, 8, 10, 12]
    assert second.get("/work/5").json()["row"]["next"] == 6
    first.request("POST", "/jobs/7")
    third.until("/kv/job:7", lambda value: value is not None)

    # Every write that was acknowledged is noted; then the node that holds them is killed.
    acknowledged: list[int] = []
    for number in range(20):
        if first.request("PUT", f"/kv/before:{number}", str(number)).status == 204:
            acknowledged.append(number)
    owned = [first.request("POST", f"/counters/own{number}").json()["count"] for number in range(5)]
    assert owned == [2] * 5
    background.run(first.node.kill())
    died = time.monotonic()

    answer = _until_ok(lambda: second.request("POST", "/counters/own0", seconds=10), LEASE * 4)
    took = time.monotonic() - died
    assert answer.json()["count"] == 4
    assert took < LEASE * 2, f"the objects were back after {took:.1f} s, the lease is {LEASE} s"
    for number in range(1, 5):
        answer = _until_ok(partial(third.request, "POST", f"/counters/own{number}"), LEASE * 2)
        assert answer.json()["count"] == 4
    kept = [_until_ok(partial(third.get, f"/kv/before:{number}"), LEASE * 2).json() for number in acknowledged]
    assert kept == [str(number) for number in acknowledged]
    print(
        f"after SIGKILL the objects were back in {took:.1f} s (lease {LEASE} s), {len(kept)} of {len(kept)} writes kept"
    )

    # A node that is asked to stop hands over at once.
    second.request("POST", "/counters/handed")
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(second.stop)
        asked = time.monotonic()
        assert _until_ok(lambda: third.request("POST", "/counters/handed"), LEASE).json()["count"] == 4
        handed = time.monotonic() - asked
        assert stopping.result(120) == 0
    assert handed < LEASE
    print(f"after SIGTERM the next request took {handed:.1f} s")


def test_a_room_of_200_sockets_on_three_nodes(rooms: list[Running], background: Background) -> None:
    places = [f"ws://127.0.0.1:{node.port}/rooms" for node in rooms]
    asyncio.run(everyone_hears_everything(lambda number: f"{places[number % 3]}/tea?name=m{number}", 200, 5))

    # A room of the first node's, since the first who asks for it comes there. Its members are at all three.
    async def stopped() -> list[int]:
        members = [await connect(f"{place}/quiet?name=m{number}") for number, place in enumerate(places)]
        try:
            await members[1].send("hello")
            assert [await asyncio.wait_for(member.recv(), 30) for member in members] == ["m1: hello"] * 3
            await asyncio.to_thread(background.run, rooms[0].node.post("/leave", {"hold": 0}, seconds=2.0))
            stopping = asyncio.create_task(asyncio.to_thread(rooms[0].stop))
            codes = [await asyncio.wait_for(_code(member), 60) for member in members]
            assert await stopping == 0
            return codes
        finally:
            for member in members:
                await member.close()

    assert asyncio.run(stopped()) == [1001] * 3

    async def again() -> None:
        """Those who join again meet, wherever the room is now."""
        end = time.monotonic() + LEASE * 2
        while True:
            try:
                async with connect(f"{places[1]}/quiet?name=a") as a, connect(f"{places[2]}/quiet?name=b") as b:
                    await a.send("again")
                    assert await asyncio.wait_for(b.recv(), 30) == "a: again"
                    return
            except (InvalidStatus, ConnectionClosed, OSError):
                assert time.monotonic() < end
                await asyncio.sleep(0.2)

    asyncio.run(again())


async def _code(member: ClientConnection) -> int:
    while True:
        try:
            await member.recv()
        except ConnectionClosed as end:
            return 1006 if end.rcvd is None else end.rcvd.code


def test_a_node_that_misses_its_lease_loses_nothing(nodes: list[Running], background: Background) -> None:
    first, second, _ = nodes
    assert first.request("POST", "/counters/paused").json()["count"] == 2
    os.kill(first.node.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, first.node.pid, os.WSTOPPED | os.WNOWAIT)
    answer = _until_ok(lambda: second.request("POST", "/counters/paused", seconds=10), LEASE * 3)
    assert answer.json()["count"] == 4
    os.kill(first.node.pid, signal.SIGCONT)
    # It finds that its lease is over, and ends rather than answer with what it has: `core serve` starts it again.
    assert background.run(asyncio.wait_for(first.node.ended, 60)) != 0
    assert second.request("POST", "/counters/paused").json()["count"] == 6


def _until_ok(ask: Any, seconds: float) -> Any:
    """Ask again until the answer is 200, for `seconds` at most. Meanwhile it is 503, and says when to come back."""
    end = time.monotonic() + seconds
    while True:
        try:
            answer = ask()
            if answer.status == 200:
                return answer
            assert (answer.status, dict(answer.headers).get("Retry-After")) == (503, "1"), answer
        except (OSError, http.client.HTTPException) as error:
            answer = error
        assert time.monotonic() < end, f"still {answer!r} after {seconds} s"
        time.sleep(0.1)
