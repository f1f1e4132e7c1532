"""Errors of bindings in workerd, provoked: which of them are `retryable`, and how they are answered where nothing
catches them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.conftest import Background, Make, Running, member_of, start_running
from tests.support.moto import s3_service

from core.runtime.bundle import Bundle
from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain

MAIN = Path(__file__).parent / "refusing" / "main.py"
PLAN = Plan(
    name="refusing",
    kv={"KV": "kv"},
    d1={"DB": "db"},
    r2={"FILES": "files"},
    queues={"JOBS": "jobs"},
    durable_objects={"BOXES": "Box"},
)
KINDS = ("kv", "d1", "r2", "queue", "durable_object")


@pytest.fixture(scope="module")
def refusing(make: Make) -> Bundle:
    """The bundle of the application."""
    return make(MAIN, PLAN)


@pytest.fixture
def start(
    tools: Toolchain, refusing: Bundle, background: Background, tmp_path: Path
) -> Iterator[Callable[..., Running]]:
    """Start a node of it."""
    started: list[Running] = []

    def start(name: str, **given: Any) -> Running:
        started.append(start_running(tools, refusing, background, tmp_path / name, plan=PLAN, **given))
        for kind in KINDS:
            assert started[-1].request("POST", f"/write/{kind}/{name}").status == 204, kind
        return started[-1]

    yield start
    for node in started:
        background.run(node.node.kill())


def is_away(node: Running, kind: str, value: str) -> None:
    """A write is answered with 503, and its error says that it may be made again."""
    answer = node.request("POST", f"/write/{kind}/{value}")
    assert (answer.status, dict(answer.headers).get("Retry-After")) == (503, "1"), (kind, node.lines[-20:])
    told = node.request("POST", f"/told/{kind}/{value}").json()
    assert told["retryable"], told


def test_a_call_that_a_binding_refuses_is_not_retryable(start: Callable[..., Running]) -> None:
    node = start("alone")
    for kind in KINDS:
        told = node.request("POST", f"/told/{kind}/wrong").json()
        assert told.get("retryable") is False, told
        answer = node.request("POST", f"/write/{kind}/wrong")
        assert (answer.status, dict(answer.headers).get("Retry-After")) == (500, None), told


def test_a_bucket_that_another_process_holds_is_retryable(start: Callable[..., Running], tmp_path: Path) -> None:
    node = start("alone")
    with closing(sqlite3.connect(tmp_path / "alone" / "r2" / "files.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        is_away(node, "r2", "held")
        other.execute("ROLLBACK")
    assert node.request("POST", "/write/r2/free").status == 204


def test_every_binding_is_retryable_when_the_bucket_of_the_cluster_is_away(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    with s3_service(tmp_path) as s3:
        node = start("member", cluster=member_of(s3.url, "away"))
        s3.process.kill()
        for kind in KINDS:
            is_away(node, kind, "away")


def test_what_a_killed_node_had_is_retryable_until_another_has_it(
    start: Callable[..., Running], bucket: str, background: Background, tmp_path: Path
) -> None:
    first, second = (start(name, cluster=member_of(bucket, tmp_path.name)) for name in ("first", "second"))
    background.run(first.node.kill())
    for kind in ("kv", "d1", "durable_object"):
        is_away(second, kind, "killed")
    # A node has queues of its own, and R2 is no node's.
    for kind in ("r2", "queue"):
        assert second.request("POST", f"/write/{kind}/killed").status == 204
