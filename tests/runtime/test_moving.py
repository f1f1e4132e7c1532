"""A backup of one node, of workerd or of CPython, moved into a cluster, and read there by the application."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.conftest import Background, Make, Running, member_of, start_running
from tests.support.commands import PATIENCE

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.queue import EmbeddedQueue
from core.backends.embedded.r2 import EmbeddedR2Bucket
from core.backends.embedded.store import Store
from core.runtime.backup import back_up
from core.runtime.bundle import Bundle
from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain

MAIN = Path(__file__).parent / "moved" / "main.py"
PLAN = Plan(
    name="moved",
    kv={"KV": "kv", "ALIAS": "kv"},
    d1={"DB": "db"},
    r2={"FILES": "files"},
    queues={"JOBS": "jobs"},
    consumers={"jobs": {"maxBatchTimeout": 0, "maxRetries": 100}},
    durable_objects={"BOXES": "Box"},
)
ROWS = 3000


@pytest.fixture(scope="module")
def moved(make: Make) -> Bundle:
    """The bundle of the application."""
    return make(MAIN, PLAN, snapshot=False)


@pytest.fixture
def start(tools: Toolchain, moved: Bundle, background: Background, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start a node of it."""
    started: list[Running] = []

    def start(name: str, **given: Any) -> Running:
        started.append(start_running(tools, moved, background, tmp_path / name, plan=PLAN, **given))
        return started[-1]

    yield start
    for node in started:
        background.run(node.node.kill())


@pytest.fixture
def restore(moved: Bundle, bucket: str, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `core restore` of `tmp_path/copy` into the cluster of a prefix."""

    def restore(*options: str, key: str = "0123456789abcdef" * 2) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "core", "restore", "copy.tar.gz", "--bundle", str(moved.folder)]
        where = ["--cluster", f"s3://cluster/{tmp_path.name}", "--cluster-endpoint", bucket]
        credentials = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b" * 20, "AWS_EC2_METADATA_DISABLED": "true"}
        return subprocess.run(
            [*command, *where, "--cluster-region", "us-east-1", *options],
            cwd=tmp_path,
            env={**os.environ, **credentials, "CORE_CLUSTER_KEY": key},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    return restore


def test_the_state_of_workerd_is_moved_whole(
    start: Callable[..., Running], restore: Callable[..., Any], bucket: str, tmp_path: Path
) -> None:
    alone = start("alone")
    assert alone.request("POST", f"/fill/{ROWS}").status == 200, alone.lines
    before = alone.get("/tell").json()
    back_up(tmp_path / "alone", tmp_path / "copy.tar.gz")
    _is_moved(before, restore, lambda name: start(name, cluster=member_of(bucket, tmp_path.name)), tried=True)


def test_the_state_of_cpython_is_moved_whole(
    start: Callable[..., Running], restore: Callable[..., Any], background: Background, bucket: str, tmp_path: Path
) -> None:
    before = background.run(_fill_embedded(tmp_path / "alone"))
    # What fails stays as far as it came, and is begun anew.
    with closing(sqlite3.connect(tmp_path / "alone" / "d1" / "db.sqlite")) as connection:
        connection.execute("CREATE VIRTUAL TABLE blind USING fts5(a, content='')")
        back_up(tmp_path / "alone", tmp_path / "copy.tar.gz")
        failed = restore()
        assert failed.returncode == 1
        assert "DB (db): the full-text table blind has no content of its own" in failed.stderr
        assert "Run the command again to go on" in failed.stderr
        connection.execute("DROP TABLE blind")
    (tmp_path / "copy.tar.gz").unlink()
    back_up(tmp_path / "alone", tmp_path / "copy.tar.gz")
    _is_moved(before, restore, lambda name: start(name, cluster=member_of(bucket, tmp_path.name)), tried=False)


def _is_moved(before: Any, restore: Callable[..., Any], start: Callable[[str], Running], *, tried: bool) -> None:
    done = restore()
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    assert "KV: 103 keys" in done.stdout
    assert "JOBS: 5 messages" in done.stdout
    assert "BOXES: 5 objects, 14 values, 5 alarms, 10 rows" in done.stdout
    assert "note: FILES: uploads in parts that were under way (1) are not moved" in done.stdout
    assert f"FILES: 24 objects, {440_000 + 10 * 1024**2 + 70_037:,} bytes" in done.stdout
    again = restore()
    told = [line for line in done.stdout.splitlines() if not line.startswith("CORE_CLUSTER_KEY")]
    assert (again.returncode, again.stdout.splitlines()) == (0, told), again.stderr
    other = restore(key="x" * 32)
    assert other.returncode == 1
    assert "is not the key of the cluster" in other.stderr

    node = start("first")
    after = node.get("/tell").json()
    for key in before:
        assert after[key] == before[key], key
    assert node.request("POST", "/add/new").json() == {"id": 10 * ROWS + 1}
    assert node.request("POST", "/open").status == 200
    got = node.until("/got", lambda found: None not in found, seconds=60)
    assert [body.rpartition(" ")[0] for body in got] == [
        "{'json': [1, None]}",
        "'text'",
        "b'\\x00\\xff'",
        "{'v8': datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=datetime.timezone.utc)}",
    ]
    # Those that a consumer had tried before go on from there.
    assert not tried or all(body.endswith(" True") for body in got)
    node.until("/alarms/1", lambda found: found == [None, "box 1 \u20ac"], seconds=60)
    assert node.get("/alarms/2").json()[0] is not None

    refused = restore()
    assert refused.returncode == 1
    assert "a node of the cluster has it. Stop all nodes" in refused.stderr
    node.stop()
    refused = restore()
    assert refused.returncode == 1
    assert "has something else there already" in refused.stderr


async def _fill_embedded(folder: Path) -> Any:
    """The same in the embedded state."""
    spec = importlib.util.spec_from_file_location("moved_main", MAIN)
    assert spec is not None
    assert spec.loader is not None
    main = importlib.util.module_from_spec(spec)
    sys.modules["moved_main"] = main
    spec.loader.exec_module(main)
    with Store(folder) as store:
        boxes: Any = EmbeddedDurableObjectNamespace(store, "Box", main.Box)
        env = main.Env(
            KV=EmbeddedKVNamespace(store, "kv"),
            DB=EmbeddedD1Database(store, "db"),
            JOBS=EmbeddedQueue(store, "jobs"),
            BOXES=boxes,
            FILES=EmbeddedR2Bucket(store, "files"),
        )
        boxes.objects.env = env
        await main.fill(env, ROWS)
        told = await main.tell(env)
        await boxes.objects.close()
    return told
