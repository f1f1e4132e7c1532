"""The process that serves: it loads the application, listens, drives queues and times, and stops in good order.

Good order is: no new connection, the requests that are there are answered, consumers finish their batch, and then
everything that was given to `wait_until` runs to its end. A second Ctrl-C cuts all of that short.

The server is that of `core.hosts.server`. It never believes a client about where it comes from: the address is the
connection's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
import threading
import time
from typing import Any, Final

from core.assembly.embedded import databases_of, databases_of_objects
from core.assembly.project import Loaded, load, measure_state
from core.dev.application import DevApplication, LogHandler
from core.dev.background import Background
from core.dev.explorer.app import explorer
from core.dev.explorer.places import Places
from core.dev.guard import Guard, is_loopback
from core.dev.journal import Journal
from core.dev.options import Options, Start
from core.dev.record import Recorder
from core.dev.screen import finding_lines, findings_of, start_screen
from core.dev.terminal import Style, drop_output
from core.dev.watch import LoopWatch, Unawaited
from core.errors import ConfigurationError, MissingExtraError
from core.explain.failure import failure_of
from core.hosts.asgi import BackgroundContext
from core.hosts.limits import Limits
from core.hosts.process import comes_first

_GRACE: Final = 5
"""Seconds that open requests may still take when the server stops."""

_ARRIVALS: Final = 0.25
"""Seconds that a connection without a request has to send one when the server stops."""


def serve(options: Options, listener: socket.socket, start: Start, pipe: object = None) -> int:
    """Serve until asked to stop: by `pipe`, or without one by a signal. Returns the exit code."""
    if options.log_format == "json":
        from core.hosts.output import JsonStream, log_as_json

        if not isinstance(sys.stdout, JsonStream):  # a process that was started for every change
            log_as_json(stdout="core.dev", stderr="core.dev", past_python=True)
    return asyncio.run(_Serving(options, listener, start, pipe).run())


class _Serving:
    def __init__(self, options: Options, listener: socket.socket, start: Start, pipe: Any) -> None:
        self._options = options
        self._listener = listener
        self._start = start
        self._pipe = pipe
        self._style = Style(sys.stdout)
        explains = options.explorer if options.explorer is not None else is_loopback(options.host)
        fresh = start.first and not options.shares_state
        self._journal = Journal(options.state_folder / "explorer.sqlite", fresh=fresh) if explains else None
        self._recorder = Recorder(journal=self._journal)
        self._context = BackgroundContext()
        self._stop = asyncio.Event()
        self._force = asyncio.Event()

    async def run(self) -> int:
        """Serve until asked to stop, and go on to the end of what is there unless that is to be cut short."""
        self._listen_to_signals()
        work = asyncio.ensure_future(self._run())
        if await comes_first(work, self._force):
            return work.result()
        left = [*self._context.tasks, work]
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=1.0)
        _write(self._style(f"stopped at once; {len(self._context.tasks)} background tasks were cut short", "yellow"))
        return 130

    async def _run(self) -> int:
        try:
            from core.hosts.server import Server
        except ImportError:
            raise MissingExtraError("core dev: pip install 'core-edge[dev]'") from None
        options, style = self._options, self._style
        logger = self._set_up_logging()
        recorder, context = self._recorder, self._context
        loaded, failed = await self._load()
        if self._stop.is_set():
            # It was replaced while it loaded: the next one has the requests.
            if loaded is not None:
                await loaded.close()
            return 0
        if failed is not None and not options.reload:
            _write(failure_of(failed, options.root).as_text(style))
            return 2 if isinstance(failed, ConfigurationError) else 1
        address = self._listener.getsockname()
        guard = Guard(options.host, address[1], options.token)
        background = None if loaded is None else Background(loaded, context, recorder, _write, style)
        places = None
        if self._journal is not None:
            places = Places(options, guard, recorder, self._journal, loaded, failed, background)
            if loaded is not None:
                measure_state(loaded, places.meter)
        unawaited = Unawaited(options.root, write=self._warn)
        served = failed if loaded is None else loaded.app
        assert served is not None
        application = DevApplication(
            served,
            None if loaded is None else loaded.env,
            root=options.root,
            recorder=recorder,
            context=context,
            explorer=None if places is None else explorer(places),
            may_read_errors=guard.may_read_errors if places is not None else lambda host, origin: False,
            write=_write,
            style=style,
            unawaited=unawaited,
        )
        if places is not None:
            places.application = application
        server = Server(application, Limits(), arrivals=_ARRIVALS, grace=_GRACE)
        self._announce(address, loaded, failed)
        # A broken file was reported already, by the failed load.
        findings = None if loaded is None else asyncio.ensure_future(self._tell_findings())
        if background is not None:
            background.start()
        watch = LoopWatch(options.root, write=self._warn)
        watch.start()
        unawaited.start()
        try:
            await self._until_stopped(server, background, context)
            return 0
        finally:
            if findings is not None:
                findings.cancel()
            watch.stop()
            unawaited.stop()
            logging.getLogger().removeHandler(logger)
            if loaded is not None:
                await loaded.close()

    def _warn(self, line: str) -> None:
        _write(f"{self._style('warning', 'yellow')} {line}")

    async def _load(self) -> tuple[Loaded | None, BaseException | None]:
        """The application, if it could be loaded, and the error that kept it from being loaded or started, or None."""
        loaded: Loaded | None = None
        try:
            options = self._options
            loaded = await load(
                options.config,
                options.state_folder,
                environment=options.environment,
                migrate=options.migrate,
                hook=self._recorder.hook,
                count_rows=True,
            )
            databases, bindings = databases_of(loaded.configuration, loaded.store), loaded.bindings
            self._recorder.databases = lambda: {**databases, **databases_of_objects(bindings)}
            starting = asyncio.ensure_future(loaded.start(replaces=not (self._start.first and options.shares_state)))
            if await comes_first(starting, self._stop):
                starting.result()
            else:
                starting.cancel()
        except Exception as error:  # the developer's own code may raise anything
            return loaded, error
        except SystemExit as error:
            return loaded, RuntimeError(
                f"the application ended its process with exit code {error.code} while it was loaded"
            )
        return loaded, None

    async def _tell_findings(self) -> None:
        """Write what `core check` finds. Requests do not wait for it, since it starts the program once more."""
        found = await asyncio.to_thread(findings_of, self._options.config)
        if not self._stop.is_set():  # else they are those of the next process
            for line in finding_lines(found, self._style):
                _write(line)

    def _announce(self, address: tuple[object, ...], loaded: Loaded | None, failed: BaseException | None) -> None:
        """Write the start screen, or the line of a reload, and the error that there was."""
        options, style = self._options, self._style
        if self._start.first:
            _write("\n".join(start_screen(options, address, loaded, self._journal is not None, style)))
        else:
            changed = ", ".join(self._start.changed[:3]) + (" …" if len(self._start.changed) > 3 else "")
            took = (time.time() - self._start.since) * 1000
            verb = "reloaded" if failed is None else "could not reload"
            _write(f"{style(verb, 'cyan')} {style(f'in {took:.0f} ms', 'dim')} {changed}")
            if loaded is not None:
                for line in loaded.notices:
                    _write(f"  {style('!', 'yellow')} {line}")
        if failed is not None:
            _write(failure_of(failed, options.root).as_text(style))
            _write(style("The server goes on as soon as a file is saved.", "dim"))

    # -- serving, and stopping

    async def _until_stopped(self, server: Any, background: Background | None, context: BackgroundContext) -> None:
        await server.serve_until(self._listener, self._stop, self._recorder.close)
        if background is not None:
            await background.stop()
        if context.tasks:
            count = len(context.tasks)
            noun = "task" if count == 1 else "tasks"
            if self._pipe is None or self._options.reload:
                _write(self._style(f"waiting for {count} background {noun}; Ctrl-C again ends at once", "dim"))
            await context.drain()

    # -- being asked to

    def _ask(self, request: str) -> None:
        if request == "force" or (self._stop.is_set() and request == "signal"):
            self._force.set()
        self._stop.set()

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        if self._pipe is not None:
            threading.Thread(target=self._listen_to_pipe, args=(loop,), daemon=True).start()
            return

        def heard(_number: int, _frame: object) -> None:
            loop.call_soon_threadsafe(self._ask, "signal")

        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, self._ask, "signal")
            except NotImplementedError:  # Windows
                signal.signal(number, heard)

    def _listen_to_pipe(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            try:
                request = self._pipe.recv()
            except (EOFError, OSError):
                request = "gone"  # the watching process is
            # The loop may be closed already.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._ask, request)
            if request != "stop":
                return

    def _set_up_logging(self) -> logging.Handler:
        root = logging.getLogger()
        write = None if self._options.log_format == "json" else _write
        handler = LogHandler(self._options.root, self._recorder, write=write, style=self._style)
        root.addHandler(handler)
        root.setLevel(logging.INFO)
        for name in ("uvicorn", "asyncio", "watchfiles"):
            logging.getLogger(name).setLevel(logging.WARNING)
        return handler


def _write(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # no fault of the request that the line is about
        drop_output()
