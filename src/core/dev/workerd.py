"""`core dev --runtime workerd`: the application in the real runtime on this machine, again after every change.

The state is kept between runs, beside the configuration file. The listening socket stays open while workerd is
started anew, so that a request meanwhile waits instead of being refused.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import attrs

from core.dev.options import Options
from core.dev.reload import changes_in
from core.errors import DeveloperError
from core.runtime.build_worker import cached_bytecode, prepare
from core.runtime.bundle import Bundle, write_bundle
from core.runtime.collect import collect
from core.runtime.keeper import until_unwell
from core.runtime.listening import authority
from core.runtime.logs import LogReader, ServiceLog
from core.runtime.make import check_compiled, inspect
from core.runtime.node import Node, are_collected, collect_spans, make_ready, node_output, start_node
from core.runtime.process import WorkerdError
from core.runtime.project import Project, open_project, plan_of
from core.runtime.state_folder import lock_state
from core.runtime.toolchain import Toolchain, toolchain

# How long it may be busy before it counts as hanging.
_HANG_SECONDS = 60.0


def serve_in_workerd(options: Options, listener: socket.socket) -> int:
    """Serve the project on `listener`, until it is interrupted; the exit code.

    KV, D1, R2, queues, Durable Objects and cron are kept in `.core/workerd` beside the configuration file, where
    `options` have no folder. With the log format "json" each record of the application's is a line of its own,
    tracebacks included.
    """
    return asyncio.run(_Dev(options, listener).run())


def _write(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@attrs.define(eq=False)
class _Dev:
    _options: Options
    _listener: socket.socket
    _node: Node | None = attrs.field(init=False, default=None)
    _lock: int | None = attrs.field(init=False, default=None)
    _stopping: asyncio.Event = attrs.field(init=False, factory=asyncio.Event)
    _changes: asyncio.Queue[str] = attrs.field(init=False, factory=asyncio.Queue[str])

    async def run(self) -> int:
        loop, options = asyncio.get_running_loop(), self._options
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stopping.set)
        collecting = None
        if are_collected():
            collecting = asyncio.create_task(collect_spans(lambda: [] if self._node is None else [self._node]))
        tools = await asyncio.to_thread(toolchain, _write)
        over = threading.Event()

        changes = changes_in(options.root, over, options.config) if options.reload else ()

        def look() -> None:
            for names in changes:
                if names:
                    loop.call_soon_threadsafe(self._changes.put_nowait, names[0])

        threading.Thread(target=look, name="core changes", daemon=True).start()
        with tempfile.TemporaryDirectory(prefix="core-dev-") as folder:
            turn = 0
            try:
                while not self._stopping.is_set():
                    await self._load(tools, Path(folder) / str(turn))
                    turn += 1
                    if not options.reload and self._node is None:
                        return 1
                    await self._outdated()
            finally:
                over.set()
                if collecting is not None:
                    collecting.cancel()
                await self._stop()
                if self._lock is not None:
                    os.close(self._lock)
        return 0

    async def _load(self, tools: Toolchain, folder: Path) -> None:
        """Load the application in a new process, or say why not."""
        # An edit from here on, while the files are read, is a change.
        while not self._changes.empty():
            self._changes.get_nowait()
        try:
            project = open_project(self._options.config, environment=self._options.environment)
            if self._lock is None:
                self._lock = lock_state(self._options.state or project.state)
            for sentence in project.without:
                _write(f"note: {sentence}.")
            bundle = await self._bundle(tools, project, folder)
            await self._stop()
            await self._start(tools, project, bundle)
        except DeveloperError as error:
            _write(f"error: {error}")
            if self._options.reload:
                _write("waiting for a change …")

    async def _bundle(self, tools: Toolchain, project: Project, folder: Path) -> Bundle:
        await prepare(tools)
        collected = await asyncio.to_thread(collect, Path(project.entry.folder), project=project.folder)
        await check_compiled(collected, project.folder, tools)
        seen = None
        # On this machine a local secret wins over a variable.
        plan = plan_of(project.configuration, project.local)
        bytecode = cached_bytecode(tools, collected.packaged)
        if plan.classes or not bytecode:
            # Which methods they have is only known once they are there.
            seen = await inspect(collected, project.entry, plan=plan, toolchain=tools)
            bytecode = dict(seen.bytecode)
        return write_bundle(
            folder,
            tools,
            plan=plan,
            main=project.entry.main,
            files={**collected.files, **bytecode},
            methods={} if seen is None else seen.classes,
            packages=collected.packages,
            migrations=project.migrations,
            root=project.entry.folder,
        )

    async def _start(self, tools: Toolchain, project: Project, bundle: Bundle) -> None:
        # Records go to standard error as they are: through `sys.stderr` they would be text that somebody printed.
        log = ServiceLog(self._options.log_format)
        root = Path(project.entry.folder)
        on_line, bindings = node_output(log, root)
        node = await start_node(
            tools,
            bundle,
            state=self._options.state or project.state,
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
            await make_ready(node, bundle, migrate=self._options.migrate, say=_write)
        except DeveloperError as error:
            # It cannot answer, or its database has another schema than the code: requests wait for the next change.
            await self._stop()
            if isinstance(error, WorkerdError):
                raise WorkerdError(_readable(str(error), root)) from None
            raise
        _write(f"workerd is ready on http://{authority(*self._listener.getsockname()[:2])}")

    async def _stop(self) -> None:
        node, self._node = self._node, None
        if node is not None:
            await (await node.leave(time.monotonic() + 3))

    async def _outdated(self) -> None:
        """Return when a file has changed, when the process has to be replaced, or when it is time to stop."""
        changed = asyncio.create_task(self._changes.get())
        waiting = {changed, asyncio.create_task(self._stopping.wait())}
        unwell = None
        if self._node is not None:
            unwell = asyncio.create_task(until_unwell(self._node, patience=_HANG_SECONDS))
            waiting.add(unwell)
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        if self._stopping.is_set():
            return
        if unwell is not None and unwell.done():
            _write(f"workerd {unwell.result()}; starting it again")
        elif changed.done():
            _write(f"{changed.result()} changed")


def _readable(problem: str, root: Path) -> str:
    """A problem as text; a traceback in it with the application's frames first."""
    lines: list[str] = []
    reader = LogReader(lines.append, root)
    for line in problem.replace("PythonError: ", "", 1).splitlines():
        reader.line(line)
    return "\n".join(lines)
