"""kill -9 under load: nothing that was acknowledged is lost, and a batch is whole or not there."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.backends.embedded.killed import BATCH, value_of

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.store import Store

ROUNDS = 5
WRITER = Path(__file__).with_name("killed.py")


def write_and_kill(state: Path, kind: str, seconds: float) -> list[int]:
    """The writes that a process acknowledged before it was killed in the middle of its work."""
    said = state.parent / f"{state.name}-said"
    with said.open("wb") as output:
        process = subprocess.Popen([sys.executable, str(WRITER), str(state), kind], stdout=output)
        while not said.stat().st_size:
            assert process.poll() is None
            time.sleep(0.005)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=120) == -signal.SIGKILL
    return [int(line) for line in said.read_bytes().splitlines()]


async def test_no_acknowledged_put_is_lost(tmp_path: Path) -> None:
    for round_number in range(ROUNDS):
        state = tmp_path / str(round_number)
        acknowledged = write_and_kill(state, "kv", random.uniform(0.1, 0.4))
        assert acknowledged == list(range(1, len(acknowledged) + 1))
        with Store(state) as store:
            kv = EmbeddedKVNamespace(store, "kv")
            latest: dict[str, int] = {}
            for index in acknowledged:
                found = await kv.get_with_metadata(f"new-{index}", "bytes")
                assert found.value == value_of(index)
                assert found.metadata == index
                latest[f"again-{index % 100}"] = index
            for key, index in latest.items():
                found = await kv.get_with_metadata(key, "bytes")
                # The writes after the last acknowledged one may have happened too, whole.
                assert found.metadata >= index
                assert found.value == value_of(found.metadata)
            files = {path.name for path in (state / "kv" / "kv.files").glob("*") if path.suffix != ".tmp"}
            named = (
                store.database("kv", "kv").connection.execute("SELECT file FROM kv WHERE file IS NOT NULL").fetchall()
            )
            assert files == {name for (name,) in named}


async def test_batches_are_whole_and_none_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    acknowledged: set[int] = set()
    for _ in range(ROUNDS):
        # The same state every time: a process goes on where the killed one was.
        acknowledged.update(write_and_kill(tmp_path, "d1", random.uniform(0.1, 0.4)))
        with Store(tmp_path) as store:
            db = EmbeddedD1Database(store, "db")
            assert await db.prepare("PRAGMA quick_check").first("quick_check") == "ok"
            counts = await db.prepare("SELECT batch, count(*) FROM rows GROUP BY batch").raw()
            batches = await db.prepare("SELECT batch, size FROM batches").raw()
            assert sorted(counts) == sorted(batches)
            assert {size for _, size in batches} == {BATCH}
            assert acknowledged <= {batch for batch, _ in batches}
            assert len(batches) - len(acknowledged) <= ROUNDS
    assert len(acknowledged) > 100
