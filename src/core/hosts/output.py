"""All output of a process as lines of JSON, whatever wrote it: `logging`, `print`, a traceback, another process.

The content of a line is decided in `core.telemetry.logs`; here, which pieces of output belong together. Records come on
a way of their own, from `logging` alone: what was printed is text, whatever it looks like, since a client may have
written it.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Final, TextIO, cast

import attrs

from core.telemetry.logs import JsonFormatter, json_line

_START: Final = "Traceback (most recent call last):"
_ANSI: Final = re.compile(r"\x1b\[[0-9;]*m")


@attrs.define
class LineReader:
    """Takes text that was not written as JSON, and gives it to `write` as lines of JSON, a traceback as one.

    A line that begins with `mark`, which only the process itself knows, has a record of its `logging` behind it.
    """

    _write: Callable[[str], object]
    _logger: str
    _extra: Mapping[str, object] = attrs.field(factory=dict[str, object], alias="extra", kw_only=True)
    _mark: str | None = attrs.field(default=None, alias="mark", kw_only=True)
    _frames: list[str] | None = attrs.field(default=None, init=False)

    def line(self, text: str) -> None:
        """One piece of output: a line, or several that belong together."""
        if self._mark is not None and text.startswith(self._mark):
            record = text.removeprefix(self._mark)
            self._write(json.dumps({**json.loads(record), **self._extra}) if self._extra else record)
            return
        text = _ANSI.sub("", text).rstrip()
        if self._frames is not None:
            self._frames.append(text)
            if text and not text.startswith(" "):
                self._record("ERROR", text, exception="\n".join(self._frames))
                self._frames = None
        elif text == _START:
            self._frames = [text]
        elif "\n" in text and _START in text:
            self._record("ERROR", text.rpartition("\n")[2], exception=text)
        elif text.strip():
            self._record("ERROR" if text.startswith("error: ") else "INFO", text)

    def _record(self, level: str, message: str, *, exception: str | None = None) -> None:
        self._write(json_line(level, self._logger, message, exception=exception, extra=self._extra))


class JsonStream(io.TextIOBase):
    """Replaces `sys.stdout` or `sys.stderr`: text written in one go, or up to a line break, becomes a record."""

    encoding: str = "utf-8"
    errors: str | None = "replace"

    def __init__(self, stream: TextIO, logger: str, records: TextIO | None = None) -> None:
        self._stream = stream
        self._records = records or stream
        self._lock = threading.RLock()
        self._rest = ""
        self._reader = LineReader(self._put, logger)

    def _put(self, line: str) -> None:
        # A log that cannot be written is no fault of the request that prints.
        with contextlib.suppress(OSError):
            self._records.write(line + "\n")
            self._records.flush()

    def write(self, text: str, /) -> int:
        with self._lock:
            self._rest += text
            if self._rest.endswith("\n"):
                whole, self._rest = self._rest, ""
                self._reader.line(whole)
        return len(text)

    def fileno(self) -> int:
        """The descriptor of the stream behind it."""
        return self._stream.fileno()


def _past_python(stream: TextIO, logger: str) -> TextIO:
    """The stream to write to from now on. What is written to the descriptor of `stream` becomes records on it."""
    number = stream.fileno()
    own = open(os.dup(number), "w", buffering=1, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115  # kept
    read_end, write_end = os.pipe()
    os.dup2(write_end, number)
    os.close(write_end)

    def read() -> None:
        records = JsonStream(own, logger)
        with open(read_end, encoding="utf-8", errors="replace") as text:
            for line in text:
                records.write(line)

    thread = threading.Thread(target=read, name="core output", daemon=True)
    thread.start()

    def end() -> None:
        os.dup2(own.fileno(), number)
        thread.join(1.0)  # a process that this one has started may go on writing

    atexit.register(end)
    return own


def log_as_json(
    *, stdout: str = "stdout", stderr: str = "stderr", records: TextIO | None = None, past_python: bool = False
) -> None:
    """From now on everything that this process writes is lines of JSON, on the streams where it was, or on `records`.

    Text written to a stream without `logging` has its name here as its logger. With `past_python` so has text that
    does not go through the stream, but to its descriptor: of a library in C, or of a process that this one starts.

    Records of `logging` go to `records`, else to standard error. An error that nobody can catch ends as a record too:
    one that ends the process or a thread, or one in a finalizer.
    """
    if past_python:
        sys.stdout, sys.stderr = _past_python(sys.stdout, stdout), _past_python(sys.stderr, stderr)
    handler = logging.StreamHandler(records or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.captureWarnings(True)
    sys.stdout = cast("TextIO", JsonStream(sys.stdout, stdout, records))
    sys.stderr = cast("TextIO", JsonStream(sys.stderr, stderr, records))
    log = logging.getLogger("core")

    sys.excepthook = lambda kind, error, frames: log.critical(
        "%s: %s", kind.__name__, error, exc_info=(kind, error, frames)
    )
    threading.excepthook = lambda given: log.error("a thread ended by an error", exc_info=given.exc_value)
    sys.unraisablehook = lambda given: log.error(
        "%s: %r", given.err_msg or "Exception ignored in", given.object, exc_info=given.exc_value
    )
