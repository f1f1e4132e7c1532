"""Three nodes over one bucket: what one wrote the others read, and what was acknowledged survives a node's death.

The bucket is moto's. The cluster's waits are divided, so that its 20 s lease is 10 s here. Not more: where three workers
load at once on two busy cores, a node has missed the renewal of a lease of 5 s, and left.
"""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from tests.runtime.conftest import Background, Running, start_running

from core.runtime.bundle import Bundle
from core.runtime.capnp import Cluster
from core.runtime.toolchain import Toolchain

DIVISOR = 2
LEASE = 20 / DIVISOR


@pytest.fixture
def nodes(
    tools: Toolchain, bundle: Bundle, background: Background, bucket: str, tmp_path: Any
) -> Iterator[list[Running]]:
    """Three nodes of one cluster."""
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    started: list[Running] = []
    for index in range(3):
        cluster = Cluster(
            bucket=f"s3://cluster/{tmp_path.name}",
            key="0123456789abcdef0123456789abcdef",
            address="127.0.0.1:0",
            options=[
                f"aws_endpoint={bucket}",
                "aws_region=us-east-1",
                "aws_access_key_id=a",
                "aws_secret_access_key=bbbbbbbbbbbbbbbbbbbb",
            ],
            stop_timeout_ms=4000,
            divisor=DIVISOR,
        )
        started.append(start_running(tools, bundle, background, tmp_path / f"node{index}", cluster=cluster))
        assert started[-1].get("/").status == 200
    yield started
    for node in started:
        background.run(node.node.workerd.stop(seconds=8))


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
    background.run(first.node.workerd.kill())
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
        assert stopping.result(30) == 0
    assert handed < LEASE
    print(f"after SIGTERM the next request took {handed:.1f} s")


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
