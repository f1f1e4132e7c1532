"""The keeper of a service's processes: starts them, watches them, replaces them and stops them.

It knows neither workerd nor CPython: a class of its own for each starts processes, and says how one takes over from
another. A process that ended, hangs or takes too much memory is started again. SIGHUP replaces all of them, one after
the other, with a new version; where that does not serve, the old one stays. One at a time ends or starts a process of a
name: whoever watches it, or the change to a new version.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

from core.errors import DeveloperError
from core.runtime.listening import ask_listener, authority, start_health, turn_away, turn_away_while_down
from core.runtime.logs import ServiceLog
from core.runtime.options import Serving
from core.runtime.process import Process, memory_of
from core.telemetry.metrics import Meter, Snapshot, add_up, exposition

# The pauses before the next start of a process, in seconds: after so many starts that failed, one after the other. One
# that ended after it had begun to serve is started again at once, however often that happens.
_PAUSES: Final = (0.2, 1.0, 2.0, 5.0, 10.0, 30.0)

SILENT: Final = "it did not answer within"
"""The beginning of the problem of a process that hangs."""


class ServiceProcess(Process):
    """A process of a service, as the keeper has it."""

    ready: asyncio.Future[None]
    """Done when it answers requests; a DeveloperError where it cannot."""
    takes_over: asyncio.Future[None]
    """Done when the process before it may stop; a DeveloperError where it cannot serve."""

    @abstractmethod
    async def answers(self, seconds: float | None) -> str | None:
        """Ask whether it is well. The reason why it is not, which begins with `SILENT` where it hangs; or None."""

    @abstractmethod
    async def condition(self) -> str | None:
        """The reason why it can take no further connection, or None."""

    @abstractmethod
    async def measure(self) -> None:
        """Renew `numbers`. One that does not answer in time keeps those that it gave before."""

    @abstractmethod
    async def where(self) -> str | None:
        """Ask where it is: its requests in flight. None where it writes that to the log by itself."""

    async def leave(self, deadline: float) -> asyncio.Future[int]:
        """Have it stop by `deadline`, of the monotonic clock. Returns its end, as soon as it has been told to."""
        end = asyncio.ensure_future(self.stop(seconds=deadline - time.monotonic()))
        await asyncio.sleep(0)
        return end


P = TypeVar("P", bound=ServiceProcess)
V = TypeVar("V")


async def until_unwell(
    process: ServiceProcess, *, patience: float, memory: int | None = None, every: float = 5.0
) -> str:
    """Wait until a process has to be replaced, and say why. It may still be running.

    It has ended, has not answered for `patience` seconds (0: for as long as it likes), has said three times in a row,
    `every` seconds apart, that it is not well, although it was when it was started, or takes more than `memory` bytes.
    """
    failures = 0
    while True:
        await asyncio.wait({process.ended}, timeout=every)
        asking = asyncio.ensure_future(process.answers(patience or None))
        either: set[asyncio.Future[Any]] = {process.ended, asking}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asking.cancel()
        if process.ended.done():
            return f"ended with status {process.ended.result()}"
        problem = asking.result()
        failures = 0 if problem is None else failures + 1
        if problem is not None and (failures == 3 or problem.startswith(SILENT)):
            return f"is not well: {problem}"
        if memory is not None and (taken := memory_of(process.pid)) > memory:
            return f"takes {taken >> 20} MiB, more than --memory allows"


class Keeper(ABC, Generic[P, V]):
    """The processes of one `core serve`, which share a `listener`, and are at first of a `version` of the application.

    `titles` are their names in the log, by name and in the order of their start. `place` and `build` are what its
    numbers say of it.
    """

    question: bytes
    """What the server itself answers, and no application is asked."""
    asked_seconds: float
    """The time that an answer to the question for health may take."""
    behind: str | None = None
    """The one that answers no client, and stops after the others: a request may need it."""
    accepting: float = 0.0
    """For so many seconds those that were told to stop go on accepting."""

    def __init__(
        self,
        titles: Mapping[str, str],
        version: V,
        options: Serving,
        listener: socket.socket,
        log: ServiceLog,
        *,
        place: str,
        build: str = "",
    ) -> None:
        self._titles = titles
        self._serving = options
        self.listener = listener
        self.log = log
        self.processes: dict[str, P] = {}
        self._leaving: set[P] = set()  # others have taken over from them
        self._versions = dict.fromkeys(titles, version)
        self._changing = {name: asyncio.Lock() for name in titles}
        self._meter = Meter()
        self._meter.set("core_start_time_seconds", to=time.time())
        self._meter.set("core_build", importlib.metadata.version("core-edge"), place, build, to=1)
        for outcome in ("replaced", "refused"):
            self._meter.add("core_reloads", outcome, by=0)
        self._left: Snapshot = {}  # the counters of processes that have ended, so that no counter goes down
        self._stopping = asyncio.Event()
        self._rolling = asyncio.Event()

    @abstractmethod
    async def start(self, name: str, version: V, migrate: bool) -> P:
        """Start a process, which is ready some time later. Raises DeveloperError where it cannot be."""

    @abstractmethod
    async def next_version(self) -> V:
        """The version that SIGHUP asks for. Raises DeveloperError where it cannot serve."""

    def alone(self, old: V, new: V) -> bool:
        """Return True where a process of one version must be gone before its successor starts."""
        return False

    def keep_only(self, versions: Iterable[V]) -> None:
        """Called with all versions that are in use, once others are not."""

    async def run(self, *beside: Callable[[], Coroutine[Any, Any, None]]) -> int:
        """Serve until SIGTERM or SIGINT; the exit code. Raises DeveloperError. `beside` never returns."""
        options, loop = self._serving, asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self._rolling.set)
        loop.add_signal_handler(signal.SIGUSR1, self._tell_where)
        health = await start_health(options.health, self._report, self._numbers if options.metrics else None)
        stopping = asyncio.ensure_future(self._stopping.wait())
        tasks: list[asyncio.Future[Any]] = []
        try:
            # One after the other: the first finds the mistakes, and applies the migrations for all.
            tasks.append(asyncio.ensure_future(self._begin_all()))
            await asyncio.wait((stopping, *tasks), return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                tasks.pop().result()
                serves = authority(*self.listener.getsockname()[:2])
                health_at = authority(options.health[0], health.sockets[0].getsockname()[1])
                self.log.say(f"serving on http://{serves}, health on http://{health_at}")
                down = turn_away_while_down(
                    self.listener,
                    lambda: any(_is_up(process) for name, process in self.processes.items() if name != self.behind),
                )
                work = [*map(self._keep, self._titles), self._roll(), down, *(begin() for begin in beside)]
                tasks = [asyncio.ensure_future(part) for part in work]
                # One of them ends only by a mistake of ours: better to end, and be started anew, than to be unwatched.
                await asyncio.wait((stopping, *tasks), return_when=asyncio.FIRST_COMPLETED)
                self.log.say("stopping")
            failed = [task for task in tasks if task.done()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for task in failed:
                task.result()
            return 0
        finally:
            self._stopping.set()
            await self._end_all()
            health.close()
            await stopping

    # -- one process

    async def _begin(self, name: str, *, migrate: bool = False) -> None:
        """Start a process where there is none. Raises DeveloperError when it does not serve."""
        process = self.processes[name] = await self.start(name, self._versions[name], migrate)
        try:
            await process.ready
        except Exception:
            await process.kill()
            raise

    async def _keep(self, name: str) -> None:
        """Start the process again whenever it ends, hangs, or takes too much memory."""
        options, title = self._serving, self._titles[name]
        failures = 0
        while True:
            process = self.processes[name]
            reason = await until_unwell(process, patience=options.hang_timeout, memory=options.memory)
            async with self._changing[name]:
                if self.processes[name] is not process:
                    continue  # a new version has taken over
                if "memory" in reason:
                    await self._end(process)
                # Never two on one state: the rest of it is gone before the next one starts.
                await process.kill()
                self._keep_numbers(process)
                self._meter.add("core_process_restarts", name)
            pause = _PAUSES[min(failures, len(_PAUSES) - 1)]
            tell = self.log.warn if "memory" in reason else self.log.fail
            tell(f"{title} {reason}; starting it again in {pause:g} s")
            await asyncio.sleep(pause)
            async with self._changing[name]:
                if self.processes[name] is not process:
                    continue
                try:
                    await self._begin(name)
                    failures = 0
                except (DeveloperError, OSError) as error:
                    failures += 1
                    self.log.fail(f"{title} did not start: {error}")

    async def _replace(self, name: str, version: V, *, migrate: bool) -> None:
        old = self.processes[name]
        alone = self.alone(self._versions[name], version)
        if alone:
            await self._end(old)
        try:
            new = await self.start(name, version, migrate)
            try:
                await new.takes_over
            except BaseException:
                await new.kill()
                raise
        except Exception:
            if alone:
                await self._begin(name)
            raise
        self.processes[name], self._versions[name] = new, version
        if not alone:
            await self._end(old)
        await new.ready

    async def _end(self, process: P) -> None:
        """End a process within the time that stopping may take; another one takes over."""
        self._leaving.add(process)
        await (await process.leave(time.monotonic() + self._serving.stop_timeout))
        self._leaving.remove(process)
        self._keep_numbers(process)

    def _keep_numbers(self, ended: P) -> None:
        self._left = add_up([self._left, ended.numbers], gauges=False)
        ended.numbers = {}

    # -- all of them

    async def _begin_all(self) -> None:
        for index, name in enumerate(self._titles):
            await self._begin(name, migrate=index == 0 and self._serving.migrate)

    async def _roll(self) -> None:
        """Replace every process with one of a new version, as often as it is asked for."""
        while True:
            await self._rolling.wait()
            self._rolling.clear()
            self.log.say("replacing the processes")
            try:
                version = await self.next_version()
                for index, name in enumerate(self._titles):
                    async with self._changing[name]:
                        await self._replace(name, version, migrate=index == 0 and self._serving.migrate)
            except (DeveloperError, OSError) as error:
                self.log.fail(f"the new version does not serve; the old one goes on: {error}")
                self._meter.add("core_reloads", "refused")
            else:
                self.log.say("replaced the processes")
                self._meter.add("core_reloads", "replaced")
            self.keep_only(self._versions.values())

    async def _end_all(self) -> None:
        """End all within the time that stopping may take, and turn away the connections that arrive from then on."""
        deadline = time.monotonic() + self._serving.stop_timeout
        behind = self.processes.pop(self.behind or "", None)
        ending = await asyncio.gather(
            *(process.leave(deadline) for process in {*self.processes.values(), *self._leaving})
        )
        ended = asyncio.gather(*ending)
        await asyncio.wait((ended,), timeout=self.accepting)
        away = await turn_away(self.listener.dup())
        await ended
        if behind is not None:
            await (await behind.leave(max(deadline, time.monotonic() + 1.0)))
        away.close()

    def _tell_where(self) -> None:
        self._telling = [asyncio.ensure_future(self._where(*named)) for named in self.processes.items()]

    async def _where(self, name: str, process: P) -> None:
        if where := await process.where():
            self.log.warn(f"{self._titles[name]} (process id {process.pid}):\n{where}")

    async def _report(self) -> tuple[int, Mapping[str, object]]:
        """The answer to the question for health."""
        if self._stopping.is_set():
            return 503, {"status": "stopping"}
        processes = dict(self.processes)
        outside, *said = await asyncio.gather(
            ask_listener(self.listener, self.question, seconds=self.asked_seconds), *map(_state_of, processes.values())
        )
        answers = dict(zip(processes, said, strict=True))
        # Requests are answered while the one behind is away for a moment: calls of it wait.
        well = outside is None and any(said == "ok" for name, said in answers.items() if name != self.behind)
        report: dict[str, object] = {"status": "ok" if well else "failing", "processes": answers}
        return (200 if well else 503), report if outside is None else {**report, "address": outside}

    async def _numbers(self) -> str:
        """The numbers of all processes added up, and of their keeper, as the text of OpenMetrics."""
        processes = dict(self.processes)
        await asyncio.gather(*(process.measure() for process in processes.values()))
        for name, process in processes.items():
            self._meter.add("core_process_restarts", name, by=0)
            self._meter.set("core_process_up", name, to=float(_is_up(process)))
            self._meter.set("core_process_resident_memory_bytes", name, to=memory_of(process.pid))
        counted = {*processes.values(), *self._leaving}
        return exposition([self._left, self._meter.snapshot(), *(process.numbers for process in counted)])


def _is_up(process: ServiceProcess) -> bool:
    return process.ready.done() and not process.ended.done()


async def _state_of(process: ServiceProcess) -> str | None:
    if process.ended.done():
        return f"it ended with status {process.ended.result()}"
    if not process.ready.done():
        return "it is starting"
    return await process.condition() or "ok"
