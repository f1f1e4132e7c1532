"""`core dev --runtime workerd`: the application in the real runtime on this machine, again after every change.

The state is kept between runs, beside the configuration file. The listening socket stays open while workerd is
started anew, so that a request meanwhile waits instead of being refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import attrs

from core.errors import DeveloperError
from core.runtime.build_worker import KeptBytecode, prepare
from core.runtime.bundle import Bundle, write_bundle
from core.runtime.collect import collect
from core.runtime.keeper import until_unwell
from core.runtime.logs import LogReader, ServiceLog
from core.runtime.make import check_compiled, inspect
from core.runtime.node import Node, are_collected, collect_spans, node_output, start_node
from core.runtime.process import WorkerdError
from core.runtime.project import Project, open_project
from core.runtime.ready import make_ready
from core.runtime.state_folder import lock_state
from core.runtime.toolchain import Toolchain, toolchain

if TYPE_CHECKING:
    from core.telemetry.logs import LogFormat

_LOOK_EVERY = 0.3
# How long it may be busy before it counts as hanging.
_HANG_SECONDS = 60.0

Stamps: TypeAlias = dict[Path, tuple[int, int]]


def serve_dev(
    config: Path,
    *,
    environment: str | None = None,
    listener: socket.socket,
    state: Path | None = None,
    reload: bool = True,
    migrate: bool = True,
    log_format: LogFormat = "text",
    write: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> int:
    """Serve the project whose configuration file is `config` on `listener`, until it is interrupted; the exit code.

    `state` is where KV, D1, R2, queues, Durable Objects and cron are kept (`.core/workerd` beside the file). With
    `reload` the application is loaded again when a file changes, with `migrate` pending SQL migrations are applied.
    With the `log_format` "json" each record of the application's is a line of its own, tracebacks included.
    """
    return asyncio.run(_Dev(config, environment, listener, state, reload, migrate, log_format, write).run())


@attrs.define(eq=False)
class _Dev:
    _config: Path
    _environment: str | None
    _listener: socket.socket
    _state: Path | None
    _reload: bool
    _migrate: bool
    _log_format: LogFormat
    _write: Callable[[str], None]
    _node: Node | None = attrs.field(init=False, default=None)
    _lock: int | None = attrs.field(init=False, default=None)
    _stopping: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)

    async def run(self) -> int:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._stopping.set)
        collecting = None
        if are_collected():
            collecting = asyncio.create_task(collect_spans(lambda: [] if self._node is None else [self._node]))
        tools = await asyncio.to_thread(toolchain, self._write)
        with tempfile.TemporaryDirectory(prefix="core-dev-") as folder:
            turn = 0
            try:
                while not self._stopping.is_set():
                    watched, before = await self._load(tools, Path(folder) / str(turn))
                    turn += 1
                    if not self._reload and self._node is None:
                        return 1
                    await self._outdated(watched if self._reload else (), before)
            finally:
                if collecting is not None:
                    collecting.cancel()
                await self._stop()
                if self._lock is not None:
                    os.close(self._lock)
        return 0

    async def _load(self, tools: Toolchain, folder: Path) -> tuple[list[Path], Stamps]:
        """Load the application in a new process, or say why not; the files to watch for changes, and their stamps."""
        watched = [self._config, self._config.parent / ".dev.vars", self._config.parent / ".env"]
        before = _stamps(watched)
        try:
            project = open_project(self._config, environment=self._environment)
            watched += [Path(project.entry.folder), project.folder / "pyproject.toml"]
            if self._lock is None:
                self._lock = lock_state(self._state or project.state)
            watched += [
                project.configuration.migrations_directory(table) for table in project.configuration.worker.d1_databases
            ]
            # Taken before the files are read: an edit while they load is a change.
            before = await asyncio.to_thread(_stamps, watched)
            for sentence in project.without:
                self._write(f"note: {sentence}.")
            bundle = await self._bundle(tools, project, folder)
            await self._stop()
            await self._start(tools, project, bundle)
        except DeveloperError as error:
            self._write(f"error: {error}")
            if self._reload:
                self._write("waiting for a change …")
        return watched, before

    async def _bundle(self, tools: Toolchain, project: Project, folder: Path) -> Bundle:
        glue = await prepare(tools)
        collected = await asyncio.to_thread(collect, Path(project.entry.folder), project=project.folder)
        await check_compiled(collected, project.folder, tools, glue)
        classes = {}
        plan = project.local_plan
        bytecode = KeptBytecode(tools).of(collected.packaged)
        if plan.classes or not bytecode:
            # Which methods they have is only known once they are there.
            seen = await inspect(collected, project.entry, plan=plan, toolchain=tools, glue=glue)
            classes = {cls: seen.classes[cls] for cls in plan.classes}
            bytecode = dict(seen.bytecode)
        return write_bundle(
            folder,
            tools,
            name=plan.name,
            main=project.entry.main,
            files={**collected.files, **bytecode},
            glue=glue,
            classes=classes,
            packages=collected.packages,
            migrations=project.migrations,
            details={"root": project.entry.folder},
        )

    async def _start(self, tools: Toolchain, project: Project, bundle: Bundle) -> None:
        # Records go to standard error as they are: through `sys.stderr` they would be text that somebody printed.
        log = ServiceLog(self._log_format)
        root = Path(project.entry.folder)
        on_line, bindings = node_output(log, root, write=self._write)
        node = await start_node(
            tools,
            bundle,
            project.local_plan,
            state=self._state or project.state,
            listener=self._listener,
            env=project.environment,
            private_network=True,
            lock=self._lock,
            closed=True,
            bindings=bindings,
            on_line=on_line,
        )
        self._node = node
        try:
            for line in await make_ready(node, bundle, migrate=self._migrate):
                self._write(line)
        except DeveloperError as error:
            # It cannot answer, or its database has another schema than the code: requests wait for the next change.
            await self._stop()
            if isinstance(error, WorkerdError):
                raise WorkerdError(_readable(str(error), root)) from None
            raise
        host, port = self._listener.getsockname()[:2]
        self._write(f"workerd is ready on http://{host}:{port}")

    async def _stop(self) -> None:
        node, self._node = self._node, None
        if node is not None:
            await (await node.leave(time.monotonic() + 3))

    async def _outdated(self, watched: Sequence[Path], before: Stamps) -> None:
        """Return when a file is not as it was, when the process has to be replaced, or when it is time to stop."""
        unwell = None
        if self._node is not None:
            unwell = asyncio.create_task(until_unwell(self._node, patience=_HANG_SECONDS))
        try:
            while not self._stopping.is_set():
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), _LOOK_EVERY)
                if unwell is not None and unwell.done() and not self._stopping.is_set():
                    self._write(f"workerd {unwell.result()}; starting it again")
                    return
                now = await asyncio.to_thread(_stamps, watched) if watched else before
                if now != before:
                    changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
                    self._write(f"{changed[0]} changed")
                    return
        finally:
            if unwell is not None:
                unwell.cancel()


def _stamps(watched: Iterable[Path]) -> Stamps:
    """Time and size of every file that counts."""
    found: Stamps = {}
    for place in watched:
        files = [place] if place.is_file() else [*place.rglob("*.py"), *place.rglob("*.sql")] if place.is_dir() else []
        for file in files:
            if not any(
                part.startswith(".") or part in ("node_modules", "__pycache__")
                for part in file.parts[len(place.parts) :]
            ):
                with contextlib.suppress(OSError):
                    status = file.stat()
                    found[file] = (status.st_mtime_ns, status.st_size)
    return found


def _readable(problem: str, root: Path) -> str:
    """A problem as text; a traceback in it with the application's frames first."""
    lines: list[str] = []
    reader = LogReader(lines.append, root)
    for line in problem.replace("PythonError: ", "", 1).splitlines():
        reader.line(line)
    return "\n".join(lines)
