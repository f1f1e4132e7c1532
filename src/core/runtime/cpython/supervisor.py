"""`core serve --python`: its processes, their restarts, and how a new version of the program takes over.

The parts that exist once (Durable Objects, consumers of queues, crons) are in one process, `state`; the others, `web`,
answer requests, and call the objects over a Unix socket. Each socket is opened here, once, and never closed while we
serve, so that whoever connects while a process is replaced waits instead of being refused. Every other binding is
SQLite, which several processes share.

SIGHUP replaces the processes one after the other with the program as its files are then: the new one loads first, and
where it cannot, the old one stays. Two `state` processes overlap safely: an object, a consumer or a moment of a cron
belongs to whoever holds its lock.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from core.config.load import load as load_configuration
from core.config.model import Configuration
from core.errors import DeveloperError
from core.hosts.limits import raise_descriptors
from core.runtime.cpython.options import Job, PythonOptions
from core.runtime.cpython.process import Child
from core.runtime.health import ASK_UVICORN, ask_listener, start_health
from core.runtime.listening import open_listener, turn_away
from core.runtime.secrets import check_folder
from core.runtime.service import PAUSES
from core.runtime.service_log import ServiceLog
from core.runtime.state_folder import lock_state
from core.runtime.totals import Totals

__all__ = ["serve_python"]

_STATE = "state"


async def serve_python(options: PythonOptions) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. Raises DeveloperError when it cannot begin."""
    configuration = load_configuration(options.config, environment=options.environment)
    check_folder(options.secrets)
    room = raise_descriptors(options.limits.connections)
    if room < options.limits.connections:
        ServiceLog(options.log_format).warn(
            f"each process takes {room} connections instead of {options.limits.connections}: the limit of open files is too "
            "low. Raise it (ulimit -Hn, LimitNOFILE= of systemd), or name fewer with --max-connections"
        )
        options = attrs.evolve(options, limits=attrs.evolve(options.limits, connections=room))
    listener = open_listener(options.host, options.port)
    try:
        lock = lock_state(options.state)
        with tempfile.TemporaryDirectory(prefix="core-serve-") as folder:
            supervisor = _Supervisor(options, configuration, listener, Path(folder), lock)
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, supervisor.stopping.set)
            loop.add_signal_handler(signal.SIGHUP, supervisor.rolling.set)
            loop.add_signal_handler(signal.SIGUSR1, supervisor.tell_where)
            return await supervisor.run()
    finally:
        listener.close()


def _has_state(configuration: Configuration) -> bool:
    """Return True if something of the configuration exists once."""
    worker = configuration.worker
    queues = worker.queues
    return bool(worker.durable_objects.bindings or queues.consumers or queues.producers or worker.triggers.crons)


class _Supervisor:
    def __init__(
        self, options: PythonOptions, configuration: Configuration, listener: socket.socket, folder: Path, lock: int
    ) -> None:
        self._options = options
        self._listener = listener
        self._lock = lock
        self._objects_at: str | None = None
        self._objects: socket.socket | None = None
        self._names = [f"web {index}" for index in range(options.workers)]
        if _has_state(configuration):
            self._objects_at = str(folder / "objects.sock")
            self._objects = socket.socket(socket.AF_UNIX)
            self._objects.bind(self._objects_at)
            self._objects.listen(2048)
            self._objects.setblocking(False)
            self._names.insert(0, _STATE)
        self._children: dict[str, Child] = {}
        self._totals = Totals("cpython")
        self._log = ServiceLog(options.log_format)
        self.stopping = asyncio.Event()
        self.rolling = asyncio.Event()

    async def run(self) -> int:
        options = self._options
        health = await start_health(options.health, self._report, self._numbers if options.metrics else None)
        try:
            # The first finds the mistakes, and applies the migrations for all.
            for index, name in enumerate(self._names):
                await self._unless_stopped(self._begin(name, migrate=index == 0 and options.migrate))
                if self.stopping.is_set():
                    return 0
            host, port = self._listener.getsockname()[:2]
            at = health.sockets[0].getsockname()[1]
            self._log.say(f"serving on http://{host}:{port}, health on http://{options.health[0]}:{at}")
            tasks = [asyncio.create_task(self._keep(name)) for name in self._names]
            tasks += [asyncio.create_task(self._roll()), asyncio.create_task(self._asked())]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            failed = [task for task in tasks if task.done()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._log.say("stopping")
            for task in failed:
                task.result()
            return 0
        finally:
            self.stopping.set()
            await self._stop()
            health.close()

    def tell_where(self) -> None:
        """Have every process write where it is."""
        self._telling = [asyncio.ensure_future(child.tell_where()) for child in self._children.values()]

    async def _asked(self) -> None:
        await self.stopping.wait()

    async def _unless_stopped(self, work: Any) -> None:
        working, asked = asyncio.ensure_future(work), asyncio.create_task(self._asked())
        await asyncio.wait((working, asked), return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if working.done():
            working.result()
        else:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def _stop(self) -> None:
        """Stop those that answer requests first: a request may need the objects."""
        deadline = time.monotonic() + self._options.stop_seconds
        state = self._children.pop(_STATE, None)
        away = await turn_away(self._listener.dup())
        await asyncio.gather(*(child.stop(seconds=self._options.stop_seconds) for child in self._children.values()))
        if state is not None:
            await state.stop(seconds=max(1.0, deadline - time.monotonic()))
        away.close()

    # -- one process

    async def _start(self, name: str, *, migrate: bool = False) -> Child:
        options = self._options
        control, theirs = socket.socketpair()
        control.setblocking(False)
        listener = self._objects if name == _STATE else self._listener
        assert listener is not None
        job = Job(
            name=name,
            role=_STATE if name == _STATE else "web",
            config=str(options.config),
            environment=options.environment,
            state=str(options.state),
            migrate=migrate,
            control=theirs.fileno(),
            listener=listener.fileno(),
            parent=os.getpid(),
            objects_at=None if name == _STATE else self._objects_at,
            front=options.front,
            limits=options.limits,
            metrics=options.metrics,
            secrets=options.secrets,
        )
        with theirs:
            return await Child.start(job, name, control, theirs, lock=self._lock, log=self._log)

    async def _begin(self, name: str, *, migrate: bool = False) -> None:
        """Start a process where there is none. Raises ChildError when it does not serve."""
        child = self._children[name] = await self._start(name, migrate=migrate)
        await child.ready

    async def _keep(self, name: str) -> None:
        """Start the process again whenever it ends, hangs, or takes too much memory."""
        options = self._options
        failures = 0
        while True:
            child = self._children[name]
            reason = await child.until_unwell(patience=options.hang_seconds, memory=options.memory)
            if self._children[name] is not child:
                continue  # a new version has taken over
            if "memory" in reason:
                await child.stop(seconds=options.stop_seconds)
            # Never two owners of one object: the rest of the process is gone before the next one starts.
            await child.kill()
            self._totals.keep(child)
            self._totals.restarted(name)
            pause = PAUSES[min(failures, len(PAUSES) - 1)]
            tell = self._log.warn if "memory" in reason else self._log.fail
            tell(f"{name} {reason}; starting it again in {pause:g} s")
            await asyncio.sleep(pause)
            try:
                await self._begin(name)
                failures = 0
            except (DeveloperError, OSError) as error:
                failures += 1
                self._log.fail(f"{name} did not start: {error}")

    # -- all of them

    async def _roll(self) -> None:
        """Replace every process with a new one, as often as it is asked for."""
        while True:
            await self.rolling.wait()
            self.rolling.clear()
            self._log.say("replacing the processes")
            try:
                for index, name in enumerate(self._names):
                    await self._replace(name, migrate=index == 0 and self._options.migrate)
            except (DeveloperError, OSError) as error:
                self._log.fail(f"the new version does not serve; the old one goes on: {error}")
                outcome = "refused"
            else:
                self._log.say("replaced the processes")
                outcome = "replaced"
            self._totals.reloaded(outcome)

    async def _replace(self, name: str, *, migrate: bool) -> None:
        new = await self._start(name, migrate=migrate)
        try:
            # One that answers requests does so before the other one stops; the objects wait for the other to give them
            # up.
            await (new.loaded if name == _STATE else new.ready)
        except BaseException:
            await new.kill()
            raise
        old, self._children[name] = self._children[name], new
        self._totals.leave(old)
        await old.stop(seconds=self._options.stop_seconds)
        self._totals.keep(old)
        await new.ready

    async def _report(self) -> tuple[int, Mapping[str, Any]]:
        if self.stopping.is_set():
            return 503, {"status": "stopping"}
        children = dict(self._children)
        outside, *said = await asyncio.gather(
            ask_listener(self._listener, ASK_UVICORN), *map(_state_of, children.values())
        )
        told = dict(zip(children, said, strict=True))
        # Requests are answered while the objects are away for a moment: calls of them wait.
        well = outside is None and any(said == "ok" for name, said in told.items() if name != _STATE)
        report: dict[str, Any] = {"status": "ok" if well else "failing", "processes": told}
        return (200 if well else 503), report if outside is None else {**report, "address": outside}

    async def _numbers(self) -> str:
        return await self._totals.text(
            {name: (child, child.ready.done() and not child.ended.done()) for name, child in self._children.items()}
        )


async def _state_of(child: Child) -> str:
    if child.ended.done():
        return f"it ended with status {child.ended.result()}"
    if not child.ready.done():
        return "it is starting"
    return await child.condition()
