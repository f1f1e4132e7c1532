"""What is known of an event: a request, a batch, a trigger or an alarm, with its messages, steps, logs and calls."""

from __future__ import annotations

import base64
import json
from collections import Counter
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from core.backends.embedded.d1.reads import Counted
from core.explain.failure import Failure, failure_of
from core.http.json import JsonObject

MOST_BYTES: Final = 64 * 1024
_SHOWN_VALUE: Final = 256 * 1024
REPEATED: Final = 5
"""The same call with other values, so many times in one request, is probably a loop that one call could replace."""

current: ContextVar[Exchange | None] = ContextVar("core_dev_exchange", default=None)
"""The request, batch or trigger that is being answered in this context."""


@attrs.define
class RecordedCall:
    """One call of a binding: `started` and `duration` in milliseconds, from the beginning of its exchange."""

    binding: str
    kind: str
    method: str
    detail: str
    started: float
    duration: float | None = None
    error: str | None = None
    background: bool = False
    """True if it began after the response had left."""
    statements: list[str] = attrs.field(factory=list[str])
    """The SQL texts that it ran."""
    rows_read: int | None = None
    """The rows that its statements read; None where nothing counts them."""
    rows_exact: bool = True
    """False if a statement's rows could not be counted: those that it gave back stand for them."""
    rows_returned: int | None = None
    rows_written: int | None = None


@attrs.define
class RecordedStep:
    """One middleware, or the handler behind them: when it began and how long it took, with all that is inside it."""

    name: str
    depth: int
    started: float
    duration: float | None = None


@attrs.define
class Message:
    """The headers of a request or response, and the beginning of its body."""

    headers: list[tuple[str, str]] = attrs.field(factory=list[tuple[str, str]])
    body: bytearray = attrs.field(factory=bytearray)
    size: int = 0

    def add(self, part: bytes) -> None:
        self.size += len(part)
        room = MOST_BYTES - len(self.body)
        if room > 0 and part:
            self.body += part[:room]

    def as_json(self) -> JsonObject:
        return {"headers": self.headers, **shown(bytes(self.body), self.size)}


def shown(value: bytes, size: int | None = None) -> JsonObject:
    """The beginning of a value, of `size` bytes in all, as text where it is text, else as base64."""
    part = value[:_SHOWN_VALUE]
    size = len(value) if size is None else size
    cut = len(part) < size
    try:
        # The cut may have gone through a letter.
        text = part.decode("utf-8", "ignore" if cut else "strict")
    except UnicodeDecodeError:
        text = None
    if text is None or "\0" in text:
        return {"base64": base64.b64encode(part).decode(), "text": None, "size": size, "cut": cut}
    return {"text": text, "size": size, "cut": cut}


_SUMMARY: Final = ("key", "kind", "method", "path", "route", "called", "time", "status", "duration", "outcome")


@attrs.define(eq=False)
class Exchange:
    """One request, one batch of a queue, one cron trigger or one alarm, from its beginning on."""

    key: str
    kind: Literal["request", "queue", "cron", "alarm"]
    method: str
    path: str
    time: float
    """The time it began, in seconds since 1970-01-01 UTC."""
    received: float
    """The time it began, on the monotonic clock."""
    state: int | None = None
    """The data of the bindings when it began, by its number in the journal."""
    status: int | None = None
    duration: float | None = None
    """Milliseconds until the response was sent, or the batch or trigger was done."""
    outcome: str = ""
    """For what has no status: `ok`, or the error raised."""
    route: str | None = None
    request: Message = attrs.field(factory=Message)
    response: Message = attrs.field(factory=Message)
    steps: list[RecordedStep] = attrs.field(factory=list[RecordedStep])
    logs: list[JsonObject] = attrs.field(factory=list[JsonObject])
    calls: list[RecordedCall] = attrs.field(factory=list[RecordedCall])
    left_out: int = 0
    error: Exception | None = None
    failure: Failure | None = None
    """The record of `error`, made when it came up: a file may be saved since."""
    streams: bool = False
    unawaited: list[tuple[str, int, str]] = attrs.field(factory=list[tuple[str, int, str]])
    """The file, line and function of calls that nobody awaited."""
    repeats: Counter[str] = attrs.field(factory=Counter[str])
    rows: Counted = attrs.field(factory=Counted)
    """The rows that all of its calls read, those that are left out included."""

    def fail(self, error: Exception, root: Path) -> None:
        """Note the error that it ended with, or that was answered. `root` is the folder of the application."""
        self.error, self.failure = error, failure_of(error, root)

    @property
    def equal(self) -> dict[str, int]:
        """How often each call was made that was made suspiciously often, with whatever values."""
        return {what: times for what, times in self.repeats.items() if times >= REPEATED}

    @property
    def repeated(self) -> JsonObject | None:
        """The call that was made most often with other values, if that is suspicious."""
        what = max(self.equal, key=self.repeats.__getitem__, default=None)
        return None if what is None else {"what": what, "times": self.repeats[what]}

    @property
    def called(self) -> str:
        """The method of an MCP request, and what it names: `tools/call note`."""
        if self.method != "POST" or b'"jsonrpc"' not in self.request.body:
            return ""
        try:
            message: Any = json.loads(self.request.body)
            params: Any = message.get("params") or {}
            return f"{message['method']} {params.get('name') or params.get('uri') or ''}".strip()
        except (ValueError, AttributeError, KeyError):  # no message, or its beginning alone
            return ""

    def summary(self) -> JsonObject:
        """One line of the explorer's list."""
        return {
            **{name: getattr(self, name) for name in _SUMMARY},
            "calls": len(self.calls) + self.left_out,
            "failed": self.error is not None,
            "repeated": self.repeated is not None,
        }

    def as_json(self) -> JsonObject:
        return {
            **self.summary(),
            **{name: getattr(self, name) for name in ("state", "logs", "repeated", "equal", "streams")},
            "request": self.request.as_json(),
            "response": self.response.as_json(),
            "steps": [attrs.asdict(step) for step in self.steps],
            "calls": [attrs.asdict(call) for call in self.calls],
            "leftOut": self.left_out,
            "failure": None if self.failure is None else for_explorer(self.failure),
            "rowsRead": self.rows.rows if self.rows.statements else None,
            "rowsExact": self.rows.exact,
        }


def for_explorer(failure: Failure) -> JsonObject:
    """A failure with the lines around the one to blame."""
    return {**failure.as_json(), "around": () if failure.line is None else failure.line.source}
