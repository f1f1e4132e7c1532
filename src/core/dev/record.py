"""Events as they happen: requests, batches and triggers, each with its messages, steps, logs and calls of bindings.

The explorer and the terminal's lines both come from here. The calls of a task count for the request that started it,
background work included, because a task inherits its maker's context variables.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from core.backends.embedded.d1.reads import Counted, counted
from core.backends.embedded.store import Database
from core.bindings.calls import BindingCall, Hookable, Proceed
from core.context import Clock, system_clock
from core.dev.journal import Journal
from core.explain.failure import Failure, failure_of

LONGEST_DETAIL: Final = 400
LONGEST_STATEMENT: Final = 20_000
MOST_CALLS: Final = 500
MOST_LOGS: Final = 200
MOST_BYTES: Final = 64 * 1024
REPEATED: Final = 5
"""The same call with other values, so many times in one request, is probably a loop that one call could replace."""
_WAITING: Final = 5000

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
        """Note a part of the body."""
        self.size += len(part)
        room = MOST_BYTES - len(self.body)
        if room > 0 and part:
            self.body += part[:room]

    @property
    def is_whole(self) -> bool:
        """Return True if all of the body was kept."""
        return self.size == len(self.body)

    def as_json(self) -> dict[str, Any]:
        """For the explorer."""
        found: dict[str, Any] = {"headers": self.headers, "size": self.size, "cut": not self.is_whole, "text": None}
        try:
            found["text"] = bytes(self.body).decode("utf-8", "strict" if self.is_whole else "ignore")
        except UnicodeDecodeError:
            found["base64"] = base64.b64encode(self.body).decode()
        return found


@attrs.define(eq=False)
class Exchange:
    """One request, one batch of a queue, one cron trigger or one alarm, from its beginning on."""

    number: int
    kind: Literal["request", "queue", "cron", "alarm"]
    method: str
    path: str
    time: float
    """The time it began, in seconds since 1970-01-01 UTC."""
    received: float
    """The time it began, on the monotonic clock."""
    key: str = ""
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
    logs: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]])
    calls: list[RecordedCall] = attrs.field(factory=list[RecordedCall])
    left_out: int = 0
    error: Exception | None = None
    failure: Failure | None = None
    """The record of `error`, made when it came up: a file may be saved since."""
    notes: list[str] = attrs.field(factory=list[str])
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
    def repeated(self) -> dict[str, Any] | None:
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

    def summary(self) -> dict[str, Any]:
        """One line of the explorer's list."""
        return {
            "key": self.key,
            "kind": self.kind,
            "method": self.method,
            "path": self.path,
            "route": self.route,
            "called": self.called,
            "time": self.time,
            "status": self.status,
            "duration": self.duration,
            "outcome": self.outcome,
            "calls": len(self.calls) + self.left_out,
            "failed": self.error is not None,
            "repeated": self.repeated is not None,
        }

    def as_json(self) -> dict[str, Any]:
        """All of it, for the explorer."""
        return {
            **self.summary(),
            "state": self.state,
            "request": self.request.as_json(),
            "response": self.response.as_json(),
            "steps": [attrs.asdict(step) for step in self.steps],
            "logs": self.logs,
            "calls": [attrs.asdict(call) for call in self.calls],
            "leftOut": self.left_out,
            "repeated": self.repeated,
            "equal": self.equal,
            "failure": None if self.failure is None else for_explorer(self.failure),
            "notes": self.notes,
            "rowsRead": self.rows.rows if self.rows.statements else None,
            "rowsExact": self.rows.exact,
        }


class Recorder:
    """The exchanges, and whoever wants to hear of new ones. Without a journal, finished ones are forgotten."""

    def __init__(self, *, clock: Clock = system_clock, journal: Journal | None = None) -> None:
        self.clock = clock
        self.journal = journal
        self.count: int = 0
        self._process = secrets.token_hex(4)
        self._running: dict[str, Exchange] = {}
        self._listeners: set[asyncio.Queue[Exchange | None]] = set()
        self.closed: bool = False
        self.databases: Callable[[], Mapping[str, Database | Path]] = dict
        """Gives the databases of the bindings, whose data is kept with each request."""

    def begin(self, kind: Literal["request", "queue", "cron", "alarm"], method: str, path: str) -> Exchange:
        """Open an exchange."""
        self.count += 1
        key = self.key(self.count)
        exchange = Exchange(self.count, kind, method, path, self.clock.time(), self.clock.monotonic(), key)
        if kind == "request" and self.journal is not None and (databases := self.databases()):
            exchange.state = self.journal.states.note(databases)
        self._running[key] = exchange
        self.changed(exchange)
        return exchange

    def key(self, number: int) -> str:
        """The key of the exchange of a number: each process counts from 1."""
        return f"{self._process}-{number}"

    def elapsed(self, exchange: Exchange) -> float:
        """Milliseconds since it began."""
        return (self.clock.monotonic() - exchange.received) * 1000

    def end(self, exchange: Exchange) -> None:
        """Its response was sent, or it is done."""
        if exchange.duration is None:
            exchange.duration = self.elapsed(exchange)
        self._running.pop(exchange.key, None)
        self._keep(exchange)
        self.changed(exchange)

    def find(self, key: str) -> dict[str, Any] | None:
        """Everything that is known of an exchange."""
        running = self._running.get(key)
        if running is not None:
            return running.as_json()
        return None if self.journal is None else self.journal.detail(key)

    def page(self, before: int | None, limit: int) -> tuple[list[dict[str, Any]], int | None]:
        """Summaries, the latest first, and where the next page begins. The first page has the running ones as well."""
        running = [exchange.summary() for exchange in reversed(self._running.values())] if before is None else []
        past, after = ([], None) if self.journal is None else self.journal.page(before, limit)
        return running + past, after

    async def hook(self, call: BindingCall, proceed: Proceed, /) -> Any:
        """Record a call of a binding in the exchange that it belongs to: a `core.bindings.calls.CallHook`."""
        exchange = current.get()
        if call.kind == "durable_object" and call.target and self.journal is not None:
            self.journal.note_name(call.binding, str(call.target[0]))
        if exchange is None:
            return await proceed()
        statements = [_shortened(sql, LONGEST_STATEMENT) for sql in _statements(call)]
        statement = statements[0] if len(statements) == 1 else ""
        exchange.repeats[f"{call.binding}.{call.method} {statement}".strip()] += 1
        if len(exchange.calls) >= MOST_CALLS:
            exchange.left_out += 1
            with _counting(exchange, None):
                return await proceed()
        recorded = RecordedCall(
            call.binding,
            call.kind,
            call.method,
            _shortened(_described(call), LONGEST_DETAIL),
            self.elapsed(exchange),
            background=exchange.duration is not None,
            statements=statements,
        )
        exchange.calls.append(recorded)
        try:
            with _counting(exchange, recorded):
                result = await proceed()
            _note_rows(recorded, result)
            return result
        except BaseException as error:
            recorded.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            recorded.duration = self.elapsed(exchange) - recorded.started
            if exchange.key not in self._running:
                self._keep(exchange)
                self.changed(exchange)

    def log(self, level: str, logger: str, text: str) -> None:
        """Note a line of a log in the exchange that wrote it."""
        exchange = current.get()
        if exchange is not None and len(exchange.logs) < MOST_LOGS:
            line = {"level": level, "logger": logger, "text": _shortened(text, 4000), "at": self.elapsed(exchange)}
            exchange.logs.append(line)

    def changed(self, exchange: Exchange) -> None:
        """Tell the listeners. One that does not keep up misses some."""
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(exchange)

    def close(self) -> None:
        """Let everyone who follows come to an end: the server stops, and does not wait for them."""
        self.closed = True
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(None)

    async def follow(self, together: float = 0) -> AsyncIterator[list[Exchange]]:
        """Exchanges that begin or change from now on, each once for all that happens within `together` seconds."""
        listener: asyncio.Queue[Exchange | None] = asyncio.Queue(_WAITING)
        self._listeners.add(listener)
        try:
            while True:
                found: dict[str, Exchange] = {}
                exchange = await listener.get()
                if together and exchange is not None:
                    await asyncio.sleep(together)
                while exchange is not None:
                    found[exchange.key] = exchange
                    if listener.empty():
                        break
                    exchange = listener.get_nowait()
                if found:
                    yield [*found.values()]
                if exchange is None:
                    return
        finally:
            self._listeners.discard(listener)

    def _keep(self, exchange: Exchange) -> None:
        if self.journal is not None:
            self.journal.write(exchange.key, exchange.summary(), exchange.as_json())


def for_explorer(failure: Failure) -> dict[str, Any]:
    """A failure with the lines around the one to blame."""
    return {**failure.as_json(), "around": () if failure.line is None else failure.line.source}


def _statements(call: BindingCall) -> list[str]:
    if call.kind != "d1":
        return []
    if call.target:
        return [str(call.target[0])]
    given: Any = call.args[0] if call.args else None
    statements = given  # not narrowed by what follows
    if call.method == "batch" and isinstance(given, (list, tuple)):
        return [str(getattr(one, "sql", "")) for one in statements[:50]]
    return [given] if call.method == "exec" and isinstance(given, str) else []


@contextmanager
def _counting(exchange: Exchange, recorded: RecordedCall | None) -> Generator[None]:
    """Note the rows that the statements of a call read, those of one that fails too."""
    counts = Counted()
    token = counted.set(counts)
    try:
        yield
    finally:
        counted.reset(token)
        if counts.statements:
            exchange.rows.add(counts)
            if recorded is not None:
                recorded.rows_read, recorded.rows_exact = counts.rows, counts.exact


def _note_rows(recorded: RecordedCall, result: Any) -> None:
    """Note the rows that statements gave back and wrote, as far as their answer tells."""
    if recorded.kind != "d1":
        return
    results: list[Any] = [*result] if isinstance(result, (list, tuple)) else [result]
    metas = [meta for each in results if (meta := getattr(each, "meta", None)) is not None]
    if metas:
        recorded.rows_returned = sum(len(each.results) for each in results)
        recorded.rows_written = sum(meta.rows_written for meta in metas)
    elif recorded.method == "raw":
        recorded.rows_returned = len(results)
    elif recorded.method in ("first", "one"):
        recorded.rows_returned = 0 if result is None else 1


def _described(call: BindingCall) -> str:
    """A statement and its values, or the arguments of any other call, without options that are the defaults."""
    if call.kind == "d1" and call.target:
        return _statement(*call.target)
    defaults: Mapping[str, Any] = getattr(call.function, "__kwdefaults__", None) or {}
    given = {name: value for name, value in call.options.items() if name not in defaults or value != defaults[name]}
    return ", ".join([*map(_value, call.args), *(f"{name}={_value(value)}" for name, value in given.items())])


def _statement(sql: str, *values: Any) -> str:
    # Numbers are bound as the platform's, which are all floating point.
    bound = (int(value) if isinstance(value, float) and value.is_integer() else value for value in values)
    return f"{sql}  ← {', '.join(map(_value, bound))}" if values else sql


def _value(value: Any) -> str:
    given = value  # not narrowed by what follows
    if isinstance(value, Hookable) and (target := value._call_target()):
        return _statement(*target)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(given)} bytes"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(item) for item in given[:10])}{', …' if len(given) > 10 else ''}]"
    return _shortened(repr(value), 120)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
