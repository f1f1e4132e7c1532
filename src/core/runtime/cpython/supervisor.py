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
from collections import deque
from collections.abc import Coroutine
from typing import Final

import attrs
from cattrs.preconf.json import make_converter

from core.config.load import load as load_configuration
from core.errors import DeveloperError
from core.hosts.limits import raise_descriptors
from core.hosts.output import LineReader
from core.runtime.keeper import SILENT, Keeper, ServiceProcess
from core.runtime.listening import ASK_UVICORN, open_listener
from core.runtime.logs import ServiceLog
from core.runtime.options import Job, PythonOptions
from core.runtime.process import read_lines
from core.runtime.secrets import check_folder
from core.runtime.state_folder import lock_state
from core.telemetry.metrics import Snapshot

_STATE: Final = "state"
_MEASURED_WITHIN = 2.0
_LONGEST_LINE = 2**24
_ASKED_SECONDS = 2.0
_LOGGED_WITHIN = 2.0
_QUIET = 0.2


async def serve_python(options: PythonOptions) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. Raises DeveloperError when it cannot begin."""
    worker = load_configuration(options.config, environment=options.environment).worker
    queues = worker.queues
    exists_once = worker.durable_objects.bindings or queues.consumers or queues.producers or worker.triggers.crons
    check_folder(options.secrets_dir)
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
            objects = None
            if exists_once:
                objects = socket.socket(socket.AF_UNIX)
                objects.bind(f"{folder}/objects.sock")
                objects.listen(2048)
                objects.setblocking(False)
            return await _Children(options, listener, objects, lock, log).run()


class _Children(Keeper["Child", None]):
    """The processes, whose version is that of the files as each finds them. `objects` is the socket of the state."""

    question = ASK_UVICORN
    asked_seconds = _ASKED_SECONDS
    behind = _STATE

    def __init__(
        self, options: PythonOptions, listener: socket.socket, objects: socket.socket | None, lock: int, log: ServiceLog
    ) -> None:
        self._options = options
        self._objects = objects
        self._lock = lock
        names = [*[_STATE] * (objects is not None), *(f"web {index}" for index in range(options.workers))]
        super().__init__({name: name for name in names}, None, options, listener, log, place="cpython")

    async def next_version(self) -> None: ...

    async def start(self, name: str, version: None, migrate: bool) -> Child:
        objects, log = self._objects, self.log
        listener = objects if objects is not None and name == _STATE else self.listener
        with contextlib.ExitStack() as passed:
            ours, theirs = zip(*(socket.socketpair() for _ in range(3 if log.is_json else 2)), strict=True)
            control, reports, *records = [passed.enter_context(one).fileno() for one in theirs]
            job = Job(
                name=name,
                role="web" if listener is self.listener else _STATE,
                options=attrs.evolve(self._options, migrate=migrate),
                control=control,
                listener=listener.fileno(),
                parent=os.getpid(),
                reports=reports,
                records=records[0] if records else None,
                objects_at=None if objects is None or objects is listener else objects.getsockname(),
            )
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "core.runtime.cpython.child",
                make_converter().dumps(job),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=[control, reports, *records, job.listener, self._lock],
                start_new_session=True,
                stdout=asyncio.subprocess.PIPE if records else None,
                stderr=asyncio.subprocess.STDOUT if records else None,
                limit=_LONGEST_LINE,
            )
        for one in ours:
            one.setblocking(False)
        child = Child(job, process, ours[0], ours[1], log)
        if process.stdout is not None:
            child.read(_copy_lines(ours[2], log))
            # Output that Python cannot catch, such as the last lines of a library, is to be a record too.
            child.read(read_lines(process.stdout, LineReader(log.write, "process").line))
        return child


# One process, as the keeper has it ------------------------------------------------------------------------------------


class Child(ServiceProcess):
    """A running process, as the keeper has it."""

    def __init__(
        self,
        job: Job,
        process: asyncio.subprocess.Process,
        control: socket.socket,
        asked: socket.socket,
        log: ServiceLog,
    ) -> None:
        super().__init__(process)
        self._name = job.name
        self._control = control
        self._asked = asked
        self._stacks_logged = asyncio.Event()
        self._log = log
        self._asking: deque[asyncio.Future[str]] = deque()
        loop = asyncio.get_running_loop()
        self._loaded: asyncio.Future[None] = loop.create_future()
        self.ready: asyncio.Future[None] = loop.create_future()
        # One that answers requests does so before the other one stops; the objects wait for the other to give them up.
        self.takes_over: asyncio.Future[None] = self._loaded if job.role == "state" else self.ready
        self._listening = loop.create_task(self._listen())
        self._reading: list[asyncio.Task[None]] = []
        self.read(self._hear_where())

    def read(self, reading: Coroutine[object, object, None]) -> None:
        """Read beside everything else, to the end of what it says."""
        self._reading.append(asyncio.create_task(reading))

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
                    self.numbers: Snapshot = json.loads(rest)
                else:
                    (self.ready if word == "ready" else self._loaded).set_result(None)
        except OSError:
            pass  # it was killed
        finally:
            self._writer.close()
        status = await self.ended
        for future in (self._loaded, self.ready):
            if not future.done():
                future.set_exception(
                    DeveloperError(reason or f"the process ended with status {status} instead of serving")
                )
                future.exception()  # who waits is told; that nobody does is not a mistake

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
                    stacks = text.decode("utf-8", "replace").strip("\0\n")
                    self._log.warn(f"{self._name} (process {self.pid}):\n{stacks}")
                    self._stacks_logged.set()
                    text = b""
                if not piece:
                    return

    async def where(self) -> None:
        """Have it write to the log where it is: its requests in flight, and the stacks of its threads."""
        if self.ended.done():
            return
        self._stacks_logged.clear()
        # Where something keeps the interpreter for itself no thread of Python's runs. The signal's handler is in C.
        for ask in (lambda: self._asked.send(b"?"), lambda: self.signal(signal.SIGUSR1)):
            with contextlib.suppress(OSError):
                ask()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stacks_logged.wait(), _LOGGED_WITHIN)
                return

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

    async def kill(self) -> int:
        status = await super().kill()
        await asyncio.wait({self._listening})
        return status


async def _copy_lines(records: socket.socket, log: ServiceLog) -> None:
    reader, writer = await asyncio.open_connection(sock=records, limit=_LONGEST_LINE)
    await read_lines(reader, log.write)
    writer.close()
