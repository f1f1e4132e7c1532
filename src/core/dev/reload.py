"""One process that watches and, below it, one that serves: on a change the second is replaced by a fresh one.

The listening socket belongs to the watching process, so that no connection is refused between the two: it waits until
the new one has loaded. The old one finishes its requests meanwhile. They speak through a pipe, whose end tells the
serving process that the watching one is gone, however it went.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import re
import signal
import socket
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from core.dev.options import Options, Start
from core.dev.terminal import Style, write_lines_at_once
from core.errors import MissingExtraError
from core.explain.frames import shown
from core.program.entry import OTHER_FOLDERS

PATIENCE: Final = 30.0
"""Seconds that a process that was replaced may take to finish its background work."""

_QUIET: Final = 1.0

_SOURCES: Final = frozenset({".py", ".toml", ".jsonc", ".sql", ".env", ".html", ".jinja"})
_DATA: Final = frozenset({".json", ".txt", ".yaml"})

_SECRETS: Final = re.compile(r"\.(dev\.vars|env)(\.[\w-]+)*")


def wanted(root: Path, path: Path) -> bool:
    """Return True if a change of `path` is one of the application's."""
    try:
        parts = path.relative_to(root).parts
    except ValueError:
        return False
    if not parts or any(part in OTHER_FOLDERS or part.startswith(".") for part in parts[:-1]):
        return False
    name = parts[-1]
    if name.startswith("."):
        return _SECRETS.fullmatch(name) is not None and path.suffix != ".swp"
    if path.suffix in _SOURCES or path.match("wrangler*.json"):
        return True
    # Data of a package goes with it to where it is deployed. Elsewhere the program may have written it.
    return path.suffix in _DATA and (parts[0] == "src" or (root / parts[0] / "__init__.py").is_file())


def source_of(distribution: Distribution, *, editable: bool = False) -> Path | None:
    """The folder that a package was installed from (PEP 610), or with `editable` still has its files in."""
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    found = origin.get("dir_info", {}).get("editable") if editable else "dir_info" in origin
    return Path(url2pathname(urlsplit(str(origin["url"])).path)) if found else None


def _sources() -> list[Path]:
    """The folders of the packages that are installed from their source, as those of a repository with several are."""
    found = [source_of(one, editable=True) for one in distributions() if one.name != "core-edge"]
    return [folder for folder in found if folder is not None and folder.is_dir()]


class Packages:
    """The packages that are installed in a folder: the application may have failed for want of one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known = self._read()
        self._grew = 0.0

    def _read(self) -> set[str]:
        self._changed = self._folder.stat().st_mtime_ns
        self._names = {path.name for path in self._folder.glob("*.dist-info")}
        return self._names

    def new(self, now: float) -> tuple[str, ...]:
        """The packages installed since the last answer, as `PyJWT 2.10.1`, once none has come for a second."""
        if self._folder.stat().st_mtime_ns != self._changed:
            self._read()
            self._grew = now
        if self._names == self._known or now - self._grew < _QUIET:
            return ()
        before, self._known = self._known, self._names
        return tuple(sorted(name.removesuffix(".dist-info").replace("-", " ") for name in self._names - before))


def changes_in(root: Path, stop: threading.Event, config: Path) -> Iterator[tuple[str, ...]]:
    """The files of the application that change, and the packages that are installed, until `stop` is set. `config` is
    the file of the configuration, whatever it is called.

    Several times a second it gives none, so that its caller can look at something else. Raises MissingExtraError.
    """
    try:
        from watchfiles import watch
    except ImportError:
        raise MissingExtraError("core dev: pip install 'core-edge[dev]' (or --no-reload)") from None
    packages = Packages(Path(sysconfig.get_path("purelib")))
    roots = [root, *_sources()]
    changes = watch(
        *roots,
        watch_filter=lambda change, path: Path(path) == config or any(wanted(each, Path(path)) for each in roots),
        debounce=400,
        step=40,
        rust_timeout=200,
        yield_on_timeout=True,
        stop_event=stop,
        raise_interrupt=False,
        ignore_permission_denied=True,
    )
    return (
        (*sorted({shown(path, root) for _, path in found}), *packages.new(time.monotonic()))
        for found in changes
        if not stop.is_set()
    )


def supervise(options: Options, listener: socket.socket) -> int:
    """Serve, and serve again on every change, until a signal comes. Returns the exit code."""
    style = Style(sys.stdout)
    stop = threading.Event()
    forced = threading.Event()

    def on_signal(number: int, frame: object) -> None:
        if stop.is_set():
            forced.set()
        stop.set()

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    changes = changes_in(options.root, stop, options.config)
    child = _Child(options, listener, Start())
    retired: list[_Child] = []
    try:
        reported = False
        for names in changes:
            retired = [old for old in retired if not old.gone()]
            if names:
                child.ask("stop")
                retired.append(child)
                child = _Child(options, listener, Start(False, names, time.time()))
                reported = False
            elif child.gone() and not reported:
                reported = True
                print(style("The application's process ended by itself. It starts again when a file is saved.", "red"))
        retired.append(child)
        for old in retired:
            old.ask("stop")
        while not all(old.gone() for old in retired):
            for old in retired if forced.is_set() else ():
                old.force()
            time.sleep(0.02)
        return 130 if forced.is_set() else 0
    finally:
        for old in [*retired, child]:
            old.force()
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Child:
    def __init__(self, options: Options, listener: socket.socket, start: Start) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._pipe: Connection = ours
        self._asked = 0.0
        stdin = None
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stdin = sys.stdin.fileno()
        self.process: SpawnProcess = context.Process(
            target=_serve, args=(options, listener, start, theirs, stdin), name="core dev"
        )
        # Deaf to Ctrl-C from its first moment on, and not only where `_serve` begins: until then Python would end it
        # with a traceback. The watching process decides what Ctrl-C means.
        heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.process.start()
        finally:
            signal.signal(signal.SIGINT, heard)
        theirs.close()

    def ask(self, request: str) -> None:
        if request == "stop" and not self._asked:
            self._asked = time.monotonic()
        with contextlib.suppress(OSError):  # it may be gone already
            self._pipe.send(request)

    def gone(self) -> bool:
        if self._asked and time.monotonic() - self._asked > PATIENCE:
            self.force()
        return not self.process.is_alive()

    def force(self) -> None:
        if self.process.is_alive():
            self.ask("force")
            self.process.join(1.0)
            if self.process.is_alive():
                self.process.kill()
        self.process.join()
        self._pipe.close()


def _serve(options: Options, listener: socket.socket, start: Start, pipe: object, stdin: int | None) -> None:
    """Run in the serving process."""
    write_lines_at_once()
    if stdin is not None:
        # So that breakpoint() works.
        sys.stdin = os.fdopen(os.dup(stdin))
    from core.dev.server import serve

    sys.exit(serve(options, listener, start, pipe))
