"""The log of a service: the lines of its keeper, and those of its processes, on standard error.

workerd's output is made for people, or for JSON: lines as they come, each of Python's tracebacks as the record of a
failure that every other place shows.

A log that cannot be written (its disk is full, its reader is gone) ends nothing: the line is lost, and the service goes
on. Nothing is buffered here, so that a line which was lost does not come back later in the middle of another.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs

from core.telemetry.logs import LogFormat, json_line

_STDERR: Final = 2


class ServiceLog:
    """The log of one `core serve`, in lines of text or of JSON."""

    def __init__(self, log_format: LogFormat) -> None:
        self.is_json: bool = log_format == "json"
        self._seen: set[str] = set()

    def write(self, line: str) -> None:
        """Write a line as it is."""
        rest = f"{line}\n".encode("utf-8", "backslashreplace")
        with contextlib.suppress(OSError):
            while rest:
                rest = rest[os.write(_STDERR, rest) :]

    def say(self, line: str, level: str = "INFO") -> None:
        """Write a line of the supervisor's own; in JSON it is a record of that level."""
        if self.is_json:
            line = json_line(level, "core.serve", line)
        self.write(line)

    def warn(self, line: str) -> None:
        self.say(line, level="WARNING")

    def fail(self, line: str) -> None:
        self.say(line, level="ERROR")

    def warn_once(self, line: str) -> None:
        """Write a warning, unless it was written before: several processes find the same."""
        if line not in self._seen:
            self._seen.add(line)
            self.warn(line)


_FRAME = re.compile(r'  File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<name>.+))?$')
_START = "Traceback (most recent call last):"
_SITE = "/core/"
_NOTES = ("How to fix: ", "Page: ")  # which `with_note` adds to an error
# Lines of workerd's own that only repeat the line before, or that a client's CONNECT makes: workerd answers that by
# itself, and a worker could only accept it.
_NOISE = re.compile(
    r"For more information about the cause of this error, use `pyodide\.setDebug\(true\)`"
    r"|^Received a connect event but we lack a handler\."
    r"|: error: Uncaught exception: .*Handler does not export a connect\(\) function\.$"
)
# workerd cancels a request that waits for something which nothing of that request will do, and cannot tell its line.
_HUNG = re.compile(r"detected that your Worker's code had hung|resolved or rejected from a different request context")
_HUNG_FIX = (
    "How to fix: a request awaits an object of another request (an asyncio.Event, a lock, a queue, a task) that its module "
    "keeps. Keep what several requests share in a Durable Object, and make the rest inside the handler."
)


@attrs.define
class LogReader:
    """Takes the lines of one stream and gives them on to `write`, a traceback as the record of its failure.

    `root` is the folder of the application's files. Where it is not on this machine, all that is neither Python's nor
    the framework's counts as the application's.
    """

    _write: Callable[[str], None]
    _root: Path
    _frames: list[list[str]] | None = attrs.field(default=None, init=False)
    _noted: bool = attrs.field(default=False, init=False)

    def line(self, line: str) -> None:
        if self._frames is None:
            if line == _START:
                self._frames = []
            elif self._noted and line.startswith(_NOTES):
                self._write(f"  {line}")
                return
            elif not _NOISE.search(line):
                self._write(line)
                if _HUNG.search(line):
                    self._write(_HUNG_FIX)
            self._noted = False
        elif _FRAME.match(line):
            self._frames.append([line])
        elif line.startswith("  ") and self._frames:
            self._frames[-1].append(line)
        else:
            self._write_failure(self._frames, line)
            self._frames, self._noted = None, True

    def _write_failure(self, frames: list[list[str]], error: str) -> None:
        from core.explain.failure import Failure
        from core.explain.frames import Frame, shown

        below: list[Frame] = []
        for first, *source in reversed(frames):
            if (found := _FRAME.match(first)) is None:
                continue
            file, number = found["path"], int(found["line"])
            inside = file.removeprefix(_SITE) if file.startswith(_SITE) else ""
            own = bool(inside) and not inside.startswith("core/")
            if own and self._root.is_dir():
                own = (self._root / inside).is_file()
            place = shown(str(self._root / inside), None) if own and self._root.is_dir() else inside or file
            text = tuple((number, line.strip()) for line in source[:1])
            below.append(Frame(place, number, found["name"] or "", text, own))
        kind, _, message = error.partition(": ")
        for line in Failure(kind.rpartition(".")[2], message or kind, tuple(below)).as_text().splitlines():
            self._write(line)
