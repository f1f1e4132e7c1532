"""`core serve --python`: its processes, what each has to do, and the sockets between them.

The parts that exist once (Durable Objects, consumers of queues, crons) are in one process, `state`; the others, `web`,
answer requests, and call the objects over a Unix socket. Each socket is opened here, once, and never closed while we
serve, so that whoever connects while a process is replaced waits instead of being refused. Every other binding is
SQLite, which several processes share.

A new version loads first, and where it cannot, the old one stays. Two `state` processes overlap safely: an object, a
consumer or a moment of a cron belongs to whoever holds its lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any, Final

import attrs
from cattrs.preconf.json import make_converter

from core.config.load import load as load_configuration
from core.errors import DeveloperError
from core.hosts.limits import raise_descriptors
from core.runtime.keeper import SILENT, Keeper, Kind
from core.runtime.listening import ASK_UVICORN, open_listener
from core.runtime.logs import ServiceLog
from core.runtime.options import Job, PythonOptions
from core.runtime.process import read_lines, read_pipe
from core.runtime.secrets import check_folder
from core.runtime.state_folder import lock_state
from core.telemetry.metrics import Snapshot

_STATE: Final = "state"
_MEASURED_WITHIN = 2.0
_LONGEST_LINE = 2**24
_ASKED_SECONDS = 2.0
_TOLD_WITHIN = 2.0
_QUIET = 0.2


async def serve_python(options: PythonOptions) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. Raises DeveloperError when it cannot begin."""
    worker = load_configuration(options.config, environment=options.environment).worker
    queues = worker.queues
    exists_once = worker.durable_objects.bindings or queues.consumers or queues.producers or worker.triggers.crons
    check_folder(options.secrets)
    log = ServiceLog(options.log_format)
    room = raise_descriptors(options.limits.connections)
    if room < options.limits.connections:
        log.warn(
            f"each process takes {room} connections instead of {options.limits.connections}: the limit of open files is too "
            "low. Raise it (ulimit -Hn, LimitNOFILE= of systemd), or name fewer with --max-connections"
        )
        options = attrs.evolve(options, limits=attrs.evolve(options.limits, connections=room))
    with open_listener(options.host, options.port) as listener:
        lock = lock_state(options.state)
        with tempfile.TemporaryDirectory(prefix="core-serve-") as folder:
            objects = _open_objects(f"{folder}/objects.sock") if exists_once else None
            names = [*[_STATE] * (objects is not None), *(f"web {index}" for index in range(options.workers))]

            async def start(name: str, files: None, migrate: bool) -> Child:
                control, theirs = socket.socketpair()
                control.setblocking(False)
                ours = objects if name == _STATE else None
                job = Job(
                    name=name,
                    role="web" if ours is None else _STATE,
                    options=attrs.evolve(options, migrate=migrate),
                    control=theirs.fileno(),
                    listener=(ours or listener).fileno(),
                    parent=os.getpid(),
                    objects_at=None if ours or objects is None else objects.getsockname(),
                )
                with theirs:
                    return await Child.start(job, control, theirs, lock=lock, log=log)

            kind = Kind(
                titles=dict(zip(names, names, strict=True)),
                start=start,
                next_version=_as_they_are,
                question=ASK_UVICORN,
                asked_seconds=_ASKED_SECONDS,
                behind=_STATE,
            )
            return await Keeper(kind, None, options, listener, log, place="cpython").run()


async def _as_they_are() -> None:
    """The next version is that of the files as each process finds them."""


def _open_objects(path: str) -> socket.socket:
    """Listen at the Unix socket of the process with what exists once."""
    opened = socket.socket(socket.AF_UNIX)
    opened.bind(path)
    opened.listen(2048)
    opened.setblocking(False)
    return opened


# One process, as the keeper has it ------------------------------------------------------------------------------------

_reading: set[asyncio.Task[None]] = set()


class Child:
    """A running process, as the keeper has it."""

    def __init__(
        self,
        job: Job,
        process: asyncio.subprocess.Process,
        control: socket.socket,
        asked: socket.socket,
        log: ServiceLog,
    ) -> None:
        self.pid: int = process.pid
        self._name = job.name
        self._control = control
        self._asked = asked
        self._told = asyncio.Event()
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
        _begin(self._hear_where())

    @classmethod
    async def start(
        cls, job: Job, control: socket.socket, theirs: socket.socket, *, lock: int, log: ServiceLog
    ) -> Child:
        """Start a process that does `job`. `lock` is the lock of the state folder, which it holds as well."""
        with contextlib.ExitStack() as opened:
            asked, answers = socket.socketpair()
            asked.setblocking(False)
            opened.enter_context(answers)
            passed = [theirs.fileno(), job.listener, lock, answers.fileno()]
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
                make_converter().dumps(attrs.evolve(job, reports=answers.fileno())),
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
        return cls(job, process, control, asked, log)

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

    async def _hear_where(self) -> None:
        """Write to the log where it is, whenever it says that, asked or not."""
        loop, text = asyncio.get_running_loop(), b""
        with self._asked, contextlib.suppress(OSError):
            while True:
                # Only a thread of Python's ends a report with a zero byte; the signal handler just stops.
                try:
                    piece = await asyncio.wait_for(loop.sock_recv(self._asked, 2**16), _QUIET if text else None)
                except TimeoutError:
                    piece = b"\0"
                text += piece
                if text and (piece.endswith(b"\0") or not piece):
                    told = text.decode("utf-8", "replace").strip("\0\n")
                    self._log.warn(f"{self._name} (process {self.pid}):\n{told}")
                    self._told.set()
                    text = b""
                if not piece:
                    return

    async def where(self) -> None:
        """Have it write to the log where it is: its requests in flight, and the stacks of its threads."""
        if self.ended.done():
            return
        self._told.clear()
        with contextlib.suppress(OSError):
            self._asked.send(b"?")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._told.wait(), _TOLD_WITHIN)
        if not self._told.is_set():
            # Something keeps the interpreter for itself, so that no thread of Python's runs. This handler is in C.
            self.signal(signal.SIGUSR1)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), _TOLD_WITHIN)

    async def condition(self) -> str | None:
        """Ask what it says of itself: the reason why it can take no further connection, or None."""
        said = await self._ask(b"condition\n", _ASKED_SECONDS)
        return f"{SILENT} {_ASKED_SECONDS:g} s" if said is None else said or None

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
