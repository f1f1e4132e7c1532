"""Events as they happen: requests, batches and triggers, each with its messages, steps, logs and calls of bindings.

The explorer and the terminal's lines both come from here. The calls of a task count for the request that started it,
background work included, because a task inherits its maker's context variables.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal

from core.backends.embedded.d1.reads import Counted, counted
from core.backends.embedded.store import Database
from core.bindings.calls import BindingCall, Hookable, Proceed
from core.bindings.d1 import D1Result
from core.dev.exchange import Exchange, RecordedCall, RecordedStep, current
from core.dev.journal import Journal
from core.dispatch.instruments import Instrument, Run, in_place_of
from core.handlers import before, info_of, name_of
from core.http.json import JsonObject
from core.middleware.logger import is_plain
from core.request import AnyRequest
from core.response import Response
from core.routing.table import Route
from core.types import Middleware, Next

LONGEST_DETAIL: Final = 400
LONGEST_STATEMENT: Final = 20_000
MOST_CALLS: Final = 500
MOST_LOGS: Final = 200
_MOST_STEPS: Final = 100
_WAITING: Final = 5000

_depth: ContextVar[int] = ContextVar("core_dev_depth", default=0)


class Recorder:
    """The exchanges, and whoever wants to hear of new ones. Without a journal, finished ones are forgotten."""

    def __init__(self, *, journal: Journal | None = None) -> None:
        self.journal = journal
        self._process = secrets.token_hex(4)
        self._numbers = count(1)
        self._running: dict[str, Exchange] = {}
        self._followers: list[tuple[dict[str, Exchange], asyncio.Event]] = []
        self.closed: bool = False
        self.databases: Callable[[], Mapping[str, Database | Path]] = dict
        """Gives the databases of the bindings, whose data is kept with each request."""

    def begin(self, kind: Literal["request", "queue", "cron", "alarm"], method: str, path: str) -> Exchange:
        key = f"{self._process}-{next(self._numbers)}"
        exchange = Exchange(key, kind, method, path, time.time(), time.monotonic())
        if kind == "request" and self.journal is not None and (databases := self.databases()):
            exchange.state = self.journal.states.note(databases)
        self._running[key] = exchange
        self.changed(exchange)
        return exchange

    def elapsed(self, exchange: Exchange) -> float:
        """Milliseconds since it began."""
        return (time.monotonic() - exchange.received) * 1000

    def end(self, exchange: Exchange) -> None:
        """Its response was sent, or it is done."""
        if exchange.duration is None:
            exchange.duration = self.elapsed(exchange)
        self._running.pop(exchange.key, None)
        self._keep(exchange)
        self.changed(exchange)

    def find(self, key: str) -> JsonObject | None:
        running = self._running.get(key)
        if running is not None:
            return running.as_json()
        return None if self.journal is None else self.journal.detail(key)

    def page(self, before: int | None, limit: int) -> tuple[list[JsonObject], int | None]:
        """Summaries, the latest first, and where the next page begins. The first page has the running ones as well."""
        running = [exchange.summary() for exchange in reversed(self._running.values())] if before is None else []
        past, after = ([], None) if self.journal is None else self.journal.page(before, limit)
        return running + past, after

    async def hook(self, call: BindingCall, proceed: Proceed, /) -> object:
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
        """Tell those who follow. One that does not keep up misses some."""
        for found, heard in self._followers:
            if len(found) >= _WAITING:
                del found[next(iter(found))]
            found[exchange.key] = exchange
            heard.set()

    def close(self) -> None:
        """Let everyone who follows come to an end: the server stops, and does not wait for them."""
        self.closed = True
        for _, heard in self._followers:
            heard.set()

    async def follow(self, together: float = 0) -> AsyncIterator[list[Exchange]]:
        """Exchanges that begin or change, each once for all that happens within `together` seconds.

        The first list, at once, is empty: from there on nothing is missed.
        """
        found, heard = follower = (dict[str, Exchange](), asyncio.Event())
        self._followers.append(follower)
        try:
            yield []
            while not self.closed:
                await heard.wait()
                if together and not self.closed:
                    await asyncio.sleep(together)
                heard.clear()
                exchanges = [*found.values()]
                found.clear()
                if exchanges:
                    yield exchanges
        finally:
            self._followers.remove(follower)

    def _keep(self, exchange: Exchange) -> None:
        if self.journal is not None:
            self.journal.write(exchange.key, exchange.summary(), exchange.as_json())


def _statements(call: BindingCall) -> list[str]:
    match call:
        case BindingCall(kind="d1", target=[sql, *_]) | BindingCall(kind="d1", method="exec", args=[str(sql), *_]):
            return [str(sql)]
        case BindingCall(kind="d1", method="batch", args=[[*statements], *_]):
            return [str(getattr(one, "sql", "")) for one in statements[:50]]
        case _:
            return []


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
    match recorded.kind, recorded.method:
        case "d1", "all" | "run" | "batch":
            results: Sequence[D1Result[Any]] = result if recorded.method == "batch" else [result]
            recorded.rows_returned = sum(len(each.results) for each in results)
            recorded.rows_written = sum(each.meta.rows_written for each in results)
        case "d1", "raw":
            recorded.rows_returned = len(result)
        case "d1", "first" | "one":
            recorded.rows_returned = 0 if result is None else 1
        case _:
            pass


def _described(call: BindingCall) -> str:
    """A statement and its values, or the arguments of any other call, without options that are the defaults."""
    if call.kind == "d1" and call.target:
        return _statement(*call.target)
    defaults: Mapping[str, object] = getattr(call.function, "__kwdefaults__", None) or {}
    given = {name: value for name, value in call.options.items() if name not in defaults or value != defaults[name]}
    return ", ".join([*map(_value, call.args), *(f"{name}={_value(value)}" for name, value in given.items())])


def _statement(sql: str, *values: object) -> str:
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


# -- steps


class TimedMiddleware(Instrument):
    """Records each middleware of a request, and its handler, in the exchange."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def middleware(self, middleware: Middleware[Any, Any], /) -> Middleware[Any, Any]:
        """The same middleware, timed. A logger is left out whose line says less than that of `core dev`."""
        if is_plain(middleware):
            middleware = before(lambda req, res: None, name="logger")
        info = info_of(middleware)
        if info is not None and info.public:
            return middleware
        name, first = name_of(middleware), None if info is None else info.before
        if info is not None and first is not None:
            # The chain calls its step alone.
            def step(req: AnyRequest, res: Response) -> Awaitable[object] | None:
                with self._step(name):
                    return first(req, res)

            return before(step, name=name, provides=info.provides, reads=info.reads)

        async def timed(req: AnyRequest, res: Response, next: Next, /) -> None:
            with self._step(name):
                await middleware(req, res, next)

        return in_place_of(middleware, timed)

    def request(self, run: Run, route: Route | None, /) -> Run:
        """The same chain, which notes its route."""
        path = None if route is None else route.pattern.text

        def noted(req: AnyRequest, res: Response) -> Awaitable[object]:
            exchange = current.get()
            if exchange is not None and exchange.route is None:
                exchange.route = path
            return run(req, res)

        return noted

    @contextmanager
    def _step(self, name: str) -> Generator[None]:
        exchange = current.get()
        if exchange is None or len(exchange.steps) >= _MOST_STEPS:
            yield
            return
        step = RecordedStep(name, _depth.get(), self._recorder.elapsed(exchange))
        exchange.steps.append(step)
        token = _depth.set(step.depth + 1)
        try:
            yield
        finally:
            _depth.reset(token)
            step.duration = self._recorder.elapsed(exchange) - step.started
