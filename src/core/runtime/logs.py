"""The log of a service: the lines of its keeper, and those of its processes, on standard error.

workerd's output is made for people, or for JSON: lines as they come, Python's tracebacks with the application's frames
first.

A log that cannot be written (its disk is full, its reader is gone) ends nothing: the line is lost, and the service goes
on. Nothing is buffered here, so that a line which was lost does not come back later in the middle of another.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from core.hosts.output import LineReader
    from core.telemetry.logs import LogFormat

_STDERR: Final = 2


class ServiceLog:
    """The log of one `core serve`, in lines of text or of JSON."""

    def __init__(self, log_format: LogFormat) -> None:
        self.is_json: bool = log_format == "json"
        self._told: set[str] = set()

    def write(self, line: str) -> None:
        """Write a line as it is."""
        rest = f"{line}\n".encode("utf-8", "backslashreplace")
        with contextlib.suppress(OSError):
            while rest:
                rest = rest[os.write(_STDERR, rest) :]

    def say(self, line: str, level: str = "INFO") -> None:
        """Write a line of the supervisor's own; in JSON it is a record of that level."""
        if self.is_json:
            from core.telemetry.logs import json_line

            line = json_line(level, "core.serve", line)
        self.write(line)

    def warn(self, line: str) -> None:
        """Write a warning."""
        self.say(line, "WARNING")

    def fail(self, line: str) -> None:
        """Write an error."""
        self.say(line, "ERROR")

    def warn_once(self, line: str) -> None:
        """Write a warning, unless it was written before: several processes find the same."""
        if line not in self._told:
            self._told.add(line)
            self.warn(line)

    def reader(self, logger: str, extra: Mapping[str, Any] | None = None, *, mark: str | None = None) -> LineReader:
        """A reader that makes records of a process's output. Lines that begin with `mark` are records already."""
        from core.hosts.output import LineReader

        return LineReader(self.write, logger, extra=extra, mark=mark)


_FRAME = re.compile(r'  File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<name>.+))?$')
_START = "Traceback (most recent call last):"
_SITE = "/core/"
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


class LogReader:
    """Takes the lines of one stream and gives them on to `write`, tracebacks as a whole.

    `root` is the folder of the application's files: its frames stand first, by their paths there, and what is between
    them and the error is counted, not shown. With `full` every frame is shown.
    """

    def __init__(self, write: Callable[[str], None], root: Path, *, full: bool = False) -> None:
        self._write = write
        self._root = root
        self._full = full
        self._frames: list[list[str]] | None = None

    def line(self, line: str) -> None:
        """One line of output."""
        if self._frames is None:
            if line == _START:
                self._frames = []
            elif not _NOISE.search(line):
                self._write(line)
                if _HUNG.search(line):
                    self._write(_HUNG_FIX)
            return
        if _FRAME.match(line):
            self._frames.append([line])
        elif line.startswith("  ") and self._frames:
            self._frames[-1].append(line)
        else:
            self._told(self._frames, line)
            self._frames = None

    def _told(self, frames: list[list[str]], error: str) -> None:
        own: list[list[str]] = []
        hidden = 0
        for frame in frames:
            match = _FRAME.match(frame[0])
            path = match["path"] if match else ""
            inside = path.removeprefix(_SITE) if path.startswith(_SITE) else ""
            place = self._root / inside
            if inside and place.is_file():
                name = f", in {match['name']}" if match and match["name"] else ""
                own.append([f'  File "{place}", line {match["line"] if match else 0}{name}', *frame[1:]])
            elif self._full or not frames:
                own.append(frame)
            else:
                hidden += 1
        if not own:
            # Nothing of the application is in it: then all of it is worth seeing.
            own, hidden = frames, 0
        self._write(error)
        for frame in own:
            for line in frame:
                self._write(line)
        if hidden:
            self._write(f"  … and {hidden} {'frame' if hidden == 1 else 'frames'} of the framework and its libraries")
