"""kill -9 in the middle of sends and consumes: nothing that was acknowledged is lost, and no message is."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
import time
from pathlib import Path

from core.backends.embedded.queue import EmbeddedQueue
from core.backends.embedded.store import Store

WORKER = Path(__file__).with_name("worker.py")
MESSAGES = 10_000
KILLS = 6


def read(log: Path) -> tuple[set[int], set[int]]:
    """The messages acknowledged as sent, and the handled ones; what SIGKILL cut off in the middle is neither."""
    lines = re.findall(r"([sc])(\d{5})\n", log.read_text() if log.exists() else "")
    sent = {int(number) for kind, number in lines if kind == "s"}
    return sent, {int(number) for kind, number in lines if kind == "c"}


def test_no_message_is_lost_when_the_process_is_killed_again_and_again(tmp_path: Path) -> None:
    state, log = tmp_path / "state", tmp_path / "log"
    pauses = random.Random(20261121)
    kills = 0
    while True:
        sent, _ = read(log)
        first = max(sent, default=-1) + 1
        command = [sys.executable, str(WORKER), str(state), str(log), str(first), str(MESSAGES)]
        process = subprocess.Popen(command)
        try:
            if kills == KILLS:
                assert process.wait(timeout=120) == 0
                break
            # In the middle of its work: after it has begun, before it can be done.
            deadline = time.monotonic() + 120
            while len(read(log)[0]) == len(sent) and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.005)
            time.sleep(pauses.uniform(0.02, 0.25))
            if process.poll() is None:
                process.kill()
                kills += 1
            else:
                break
        finally:
            process.kill()
            process.wait()
    sent, consumed = read(log)
    assert kills >= 3
    assert sent == set(range(MESSAGES))
    assert sent <= consumed


KILLS_ITSELF = """
import asyncio, os, sys
from core.backends.embedded.queue import ConsumerSettings, EmbeddedQueue, broker_of
from core.backends.embedded.store import Store

async def main():
    broker = broker_of(Store(sys.argv[1]))

    async def consume(batch):
        print(batch.messages[0].attempts, flush=True)
        os.kill(os.getpid(), 9)

    async def bury(batch):
        print("dead", batch.messages[0].body, batch.messages[0].attempts, flush=True)
        done.set()

    done = asyncio.Event()
    settings = ConsumerSettings(max_batch_timeout=0, max_retries=2, dead_letter_queue="dead")
    broker.consume("poison", consume, settings)
    broker.consume("dead", bury, ConsumerSettings(max_batch_timeout=0))
    await done.wait()
    await broker.close()

asyncio.run(main())
"""


def test_a_message_that_kills_its_process_reaches_the_dead_letter_queue(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        asyncio.run(EmbeddedQueue[str](store, "poison").send("a"))
    said = [
        subprocess.run(
            [sys.executable, "-c", KILLS_ITSELF, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
        ).stdout
        for _ in range(4)
    ]
    assert said == ["1\n", "2\n", "3\n", "dead a 1\n"]
