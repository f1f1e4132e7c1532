"""The keeper of processes, with processes that are none: they end and serve when the test says so."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from core.errors import DeveloperError
from core.runtime.keeper import Keeper, ServiceProcess
from core.runtime.listening import ASK_UVICORN, open_listener
from core.runtime.logs import ServiceLog
from core.runtime.options import Serving
from core.telemetry.metrics import Snapshot

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


class Pretended(ServiceProcess):
    """A process of a version, which serves at once."""

    pid = os.getpid()

    def __init__(self, version: int) -> None:
        self.version = version
        self.numbers: Snapshot = {}
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ready.set_result(None)
        self.takes_over = self.ready

    async def answers(self, seconds: float | None) -> str | None:
        return None

    async def condition(self) -> str | None:
        return None

    async def measure(self) -> None:
        """There are no numbers."""

    async def where(self) -> str | None:
        return None

    async def leave(self, deadline: float) -> asyncio.Future[int]:
        self.end(0)
        return self.ended

    async def kill(self) -> int:
        self.end(-9)
        return -9

    def end(self, status: int) -> None:
        if not self.ended.done():
            self.ended.set_result(status)


class Keeping(Keeper[Pretended, int]):
    """Keeps one process, which is first of version 1."""

    question = ASK_UVICORN
    asked_seconds = 1.0

    def __init__(
        self,
        state: Path,
        listener: socket.socket,
        begin: Callable[[int], Pretended],
        versions: Sequence[int] = (),
        *,
        alone: bool = False,
    ) -> None:
        self._begun = begin
        self._next = iter(versions)
        self._alone = alone
        options = Serving(state=state, health=("127.0.0.1", 0))
        super().__init__({"0": "process 0"}, 1, options, listener, ServiceLog("text"), place="test")

    async def start(self, name: str, version: int, migrate: bool) -> Pretended:
        return self._begun(version)

    async def next_version(self) -> int:
        return next(self._next)

    def alone(self, old: int, new: int) -> bool:
        return self._alone


async def test_pauses_grow_with_failed_starts_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    started: asyncio.Queue[Pretended] = asyncio.Queue()
    mistakes: list[str] = []

    def begin(version: int) -> Pretended:
        if mistakes:
            raise DeveloperError(mistakes.pop())
        started.put_nowait(process := Pretended(version))
        return process

    with open_listener("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(Keeping(tmp_path, listener, begin).run())
        for status in (1, 2, 3):
            (await started.get()).end(status)
        process = await started.get()
        mistakes.append("a mistake")
        process.end(4)
        (await started.get()).end(5)
        await started.get()
        signal.raise_signal(signal.SIGTERM)
        assert await serving == 0
    pauses = re.findall(r"ended with status (\d); starting it again in (\S+) s", capfd.readouterr().err)
    assert pauses == [("1", "0.2"), ("2", "0.2"), ("3", "0.2"), ("4", "0.2"), ("4", "1"), ("5", "0.2")]


@pytest.mark.parametrize("alone", [False, True])
async def test_a_new_version_takes_over_while_the_old_one_waits_for_its_next_start(tmp_path: Path, alone: bool) -> None:
    started: asyncio.Queue[Pretended] = asyncio.Queue()
    refused = asyncio.Event()

    def begin(version: int) -> Pretended:
        if version == 3:
            refused.set()
            raise DeveloperError("it has a mistake")
        started.put_nowait(process := Pretended(version))
        return process

    with open_listener("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(Keeping(tmp_path, listener, begin, [2, 3], alone=alone).run())
        first = await started.get()
        first.end(1)
        signal.raise_signal(signal.SIGHUP)
        second = await started.get()
        await asyncio.sleep(0.5)  # longer than the pause before the next start of the first, which was replaced
        assert (second.version, started.empty()) == (2, True)

        signal.raise_signal(signal.SIGHUP)
        await refused.wait()
        if alone:
            assert second.ended.done()
            second = await started.get()
        assert (second.version, second.ended.done()) == (2, False)

        signal.raise_signal(signal.SIGTERM)
        assert await serving == 0
        assert second.ended.done()
        assert started.empty()
