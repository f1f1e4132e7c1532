"""The log of a service: the lines of its supervisor, and those of its processes, on standard error.

A log that cannot be written (its disk is full, its reader is gone) ends nothing: the line is lost, and the service goes
on. Nothing is buffered here, so that a line which was lost does not come back later in the middle of another.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from core.hosts.output import LineReader
    from core.logs import LogFormat

__all__ = ["ServiceLog", "new_mark"]

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
            from core.logs import json_line

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


def new_mark() -> str:
    """A text for a process to write before each of its own records: nobody whose text it prints can know it."""
    return f"{secrets.token_hex(16)} "
