"""A process of `core serve --python`, as its supervisor sees it: started, asked, stopped, killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import attrs
from cattrs.preconf.json import make_converter

from core.errors import DeveloperError
from core.runtime.keeper import SILENT
from core.runtime.logs import ServiceLog
from core.runtime.options import Job
from core.runtime.process import read_lines, read_pipe

if TYPE_CHECKING:
    from core.telemetry.metrics import Snapshot

_MEASURED_WITHIN = 2.0
_LONGEST_LINE = 2**24
ASKED_SECONDS = 2.0
_TOLD_WITHIN = 2.0
_QUIET = 0.2


_reading: set[asyncio.Task[None]] = set()


class Reports:
    """The socket on which a process says where it is, asked or not."""

    def __init__(self, asked: socket.socket, tell: Callable[[str], None]) -> None:
        self._socket = asked
        self._socket.setblocking(False)
        self._tell = tell
        self._heard = asyncio.Event()

    async def listen(self) -> None:
        """Give every report to `tell`, until the process has ended."""
        loop, text = asyncio.get_running_loop(), b""
        with self._socket, contextlib.suppress(OSError):
            while True:
                # Only a thread of Python's ends a report with a zero byte; the signal handler just stops.
                try:
                    piece = await asyncio.wait_for(loop.sock_recv(self._socket, 2**16), _QUIET if text else None)
                except TimeoutError:
                    piece = b"\0"
                text += piece
                if text and (piece.endswith(b"\0") or not piece):
                    self._tell(text.decode("utf-8", "replace").strip("\0\n"))
                    self._heard.set()
                    text = b""
                if not piece:
                    return

    async def ask(self) -> bool:
        """Ask for one. Returns False where none came in time."""
        with contextlib.suppress(OSError):
            self._heard.clear()
            self._socket.send(b"?")
        return await self.heard(_TOLD_WITHIN)

    async def heard(self, seconds: float) -> bool:
        """Wait for one that was asked for."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._heard.wait(), seconds)
        return self._heard.is_set()


class Child:
    """A running process, as the keeper has it."""

    def __init__(
        self, job: Job, process: asyncio.subprocess.Process, control: socket.socket, reports: Reports, log: ServiceLog
    ) -> None:
        self._process = process
        self.pid: int = process.pid
        self._control = control
        self._reports = reports
        self._log = log
        self._asking: deque[asyncio.Future[str]] = deque()
        self.numbers: Snapshot = {}
        loop = asyncio.get_running_loop()
        self._loaded: asyncio.Future[None] = loop.create_future()
        self.ready: asyncio.Future[None] = loop.create_future()
        # One that answers requests does so before the other one stops; the objects wait for the other to give them up.
        self.takes_over: asyncio.Future[None] = self._loaded if job.role == "state" else self.ready
        self.ended: asyncio.Future[int] = loop.create_task(process.wait())
        self._listening = loop.create_task(self._listen())

    @classmethod
    async def start(
        cls, job: Job, control: socket.socket, theirs: socket.socket, *, lock: int, log: ServiceLog
    ) -> Child:
        """Start a process that does `job`. `lock` is the lock of the state folder, which it holds as well."""
        with contextlib.ExitStack() as opened:
            ours, asked = socket.socketpair()
            opened.enter_context(asked)
            passed = [theirs.fileno(), job.listener, lock, asked.fileno()]
            read_end = None
            if log.is_json:
                read_end, write_end = os.pipe()
                opened.callback(os.close, write_end)
                passed.append(write_end)
                job = attrs.evolve(job, records=write_end)
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "core.runtime.cpython.child",
                make_converter().dumps(attrs.evolve(job, reports=asked.fileno())),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=passed,
                start_new_session=True,
                stdout=asyncio.subprocess.PIPE if log.is_json else None,
                stderr=asyncio.subprocess.STDOUT if log.is_json else None,
                limit=_LONGEST_LINE,
            )
        if read_end is not None and process.stdout is not None:
            records, _ = await read_pipe(read_end, _LONGEST_LINE)
            _begin(read_lines(records, log.write))
            # Output that Python cannot catch, such as the last lines of a library, is to be a record too.
            _begin(read_lines(process.stdout, log.reader("process").line))
        reports = Reports(ours, lambda text: log.warn(f"{job.name} (process {process.pid}):\n{text}"))
        _begin(reports.listen())
        return cls(job, process, control, reports, log)

    async def _listen(self) -> None:
        reader, self._writer = await asyncio.open_connection(sock=self._control, limit=_LONGEST_LINE)
        reason = ""
        try:
            while line := (await reader.readline()).decode("utf-8", "replace").rstrip("\n"):
                word, _, rest = line.partition(" ")
                if word == "failed":
                    reason = json.loads(rest)
                elif word == "warn":
                    self._log.warn_once(json.loads(rest))
                elif word == "condition":
                    asked = self._asking.popleft()
                    if not asked.done():
                        asked.set_result(json.loads(rest))
                elif word == "numbers":
                    self.numbers = json.loads(rest)
                else:
                    _fulfil(self._loaded)
                    if word == "ready":
                        _fulfil(self.ready)
        except OSError:
            pass  # it was killed
        finally:
            self._writer.close()
        status = await self.ended
        for told in (self._loaded, self.ready):
            if not told.done():
                told.set_exception(
                    DeveloperError(reason or f"the process ended with status {status} instead of serving")
                )
                told.exception()  # who waits is told; that nobody does is not a mistake

    async def answers(self, seconds: float | None) -> str | None:
        """Ask whether its event loop goes round. One that hangs writes where, and is a problem."""
        if await self._ask(b"condition\n", seconds) is not None or self.ended.done():
            return None
        await self.where()
        return f"{SILENT} {seconds:g} s"

    async def where(self) -> None:
        """Have it write to the log where it is: its requests in flight, and the stacks of its threads."""
        if self.ended.done() or await self._reports.ask():
            return
        # Something keeps the interpreter for itself, so that no thread of Python's runs. This handler is written in C.
        self.signal(signal.SIGUSR1)
        await self._reports.heard(_TOLD_WITHIN)

    async def condition(self) -> str | None:
        """Ask what it says of itself: the reason why it can take no further connection, or None."""
        said = await self._ask(b"condition\n", ASKED_SECONDS)
        return f"{SILENT} {ASKED_SECONDS:g} s" if said is None else said or None

    async def _ask(self, question: bytes, seconds: float | None) -> str | None:
        asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asking.append(asked)
        with contextlib.suppress(OSError):
            self._writer.write(question)
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(asked, seconds)
        return None

    async def measure(self) -> None:
        if self._loaded.done() and not self.ended.done():
            await self._ask(b"measure\n", _MEASURED_WITHIN)

    async def leave(self, deadline: float) -> asyncio.Future[None]:
        """Let it finish its requests and tasks, until `deadline` at most; its end."""
        self.signal(signal.SIGTERM)

        async def end() -> None:
            await asyncio.wait({self.ended}, timeout=deadline - time.monotonic())
            await self.kill()

        return asyncio.ensure_future(end())

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        await asyncio.shield(self.ended)
        await asyncio.wait({self._listening})

    def signal(self, number: int) -> None:
        if not self.ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def _begin(reading: Coroutine[Any, Any, None]) -> None:
    """Read beside everything else, to the end of what a process says."""
    task = asyncio.create_task(reading)
    _reading.add(task)
    task.add_done_callback(_reading.discard)


def _fulfil(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)
