"""A process of `core serve --python`, as its supervisor sees it: started, asked, stopped, killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING

from core.errors import DeveloperError
from core.runtime.cpython.options import Job
from core.runtime.ending import memory_of
from core.runtime.process import read_lines

if TYPE_CHECKING:
    from core.metrics import Snapshot

__all__ = ["Child", "ChildError"]

_EVERY = 5.0
_MEASURED_WITHIN = 2.0
_LONGEST_LINE = 2**24


_reading: set[asyncio.Task[None]] = set()


class ChildError(DeveloperError):
    """A process could not load the application, or ended instead of serving; the message says why."""


class Child:
    """A running process. `loaded` and `ready` are done when it has said so, or failed with ChildError."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._answered = asyncio.Event()
        self._measured = asyncio.Event()
        self.numbers: Snapshot = {}
        """Its numbers, as it gave them last."""
        loop = asyncio.get_running_loop()
        self.loaded: asyncio.Future[None] = loop.create_future()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Task[int] = loop.create_task(process.wait())
        self._listening = loop.create_task(self._listen())

    @classmethod
    async def start(cls, job: Job, control: socket.socket, theirs: socket.socket, *, lock: int) -> Child:
        """Start a process that does `job`. `lock` is the lock of the state folder, which it holds as well."""
        as_json = job.log_format == "json"
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "core.runtime.cpython.child",
            job.dumped(),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(theirs.fileno(), job.listener, lock),
            start_new_session=True,
            stdout=asyncio.subprocess.PIPE if as_json else None,
            stderr=asyncio.subprocess.STDOUT if as_json else None,
            limit=_LONGEST_LINE,
        )
        if process.stdout is not None:
            # Output that Python cannot catch, such as the last lines of a library, is to be a record too.
            from core.hosts.output import LineReader

            reader = LineReader(lambda line: print(line, file=sys.stderr, flush=True), "process")
            reading = asyncio.create_task(read_lines(process.stdout, "", lambda _, line: reader.line(line)))
            _reading.add(reading)
            reading.add_done_callback(_reading.discard)
        return cls(process, control)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def _listen(self) -> None:
        reader, self._writer = await asyncio.open_connection(sock=self._control, limit=_LONGEST_LINE)
        reason = ""
        try:
            while line := (await reader.readline()).decode("utf-8", "replace").rstrip("\n"):
                word, _, rest = line.partition(" ")
                if word == "failed":
                    reason = json.loads(rest)
                elif word == "pong":
                    self._answered.set()
                elif word == "numbers":
                    self.numbers = json.loads(rest)
                    self._measured.set()
                else:
                    _fulfil(self.loaded)
                    if word == "ready":
                        _fulfil(self.ready)
        except OSError:
            pass  # it was killed
        finally:
            self._writer.close()
        status = await self.ended
        for told in (self.loaded, self.ready):
            if not told.done():
                told.set_exception(ChildError(reason or f"the process ended with status {status} instead of serving"))
                told.exception()  # who waits is told; that nobody does is not a mistake

    async def until_unwell(self, *, patience: float, memory: int | None, every: float = _EVERY) -> str:
        """Wait until it has to be replaced, and say why. It may still be running.

        It has ended, its event loop has not answered for `patience` seconds (0: for as long as it likes), or it takes
        more than `memory` bytes.
        """
        while True:
            await asyncio.wait({self.ended}, timeout=every)
            if not self.ended.done():
                self._answered.clear()
                with contextlib.suppress(OSError):
                    self._writer.write(b"ping\n")
                asked = asyncio.ensure_future(self._answered.wait())
                await asyncio.wait({self.ended, asked}, timeout=patience or None, return_when=asyncio.FIRST_COMPLETED)
                asked.cancel()
                if not self._answered.is_set() and not self.ended.done():
                    return f"is not well: it did not answer within {patience:g} s"
            if self.ended.done():
                return f"ended with status {self.ended.result()}"
            if memory is not None and (taken := memory_of(self.pid)) > memory:
                return f"takes {taken >> 20} MiB, more than --memory allows"

    async def measure(self) -> None:
        """Ask for its numbers. One that does not answer in time keeps those that it gave before."""
        self._measured.clear()
        if self.loaded.done() and not self.ended.done():
            with contextlib.suppress(OSError, TimeoutError):
                self._writer.write(b"measure\n")
                await asyncio.wait_for(self._measured.wait(), _MEASURED_WITHIN)

    async def stop(self, *, seconds: float) -> None:
        """Let it finish its requests and tasks, for `seconds` at most."""
        self.signal(signal.SIGTERM)
        await asyncio.wait({self.ended}, timeout=seconds)
        await self.kill()

    async def kill(self) -> None:
        """End it at once."""
        self.signal(signal.SIGKILL)
        await asyncio.shield(self.ended)
        await asyncio.wait({self._listening})

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if not self.ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def _fulfil(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)
