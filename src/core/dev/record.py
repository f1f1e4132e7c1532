"""The latest events: requests, batches and triggers, each with the calls of bindings that it made.

The explorer's live log and the terminal's lines both come from here. What a task calls is put down to the request
that started it, background work included, because a task inherits its maker's context variables.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextvars import ContextVar
from typing import Any, Final, Literal, cast

import attrs

from core.calls import BindingCall, Hookable, Proceed
from core.context import Clock, system_clock

__all__ = ["Exchange", "RecordedCall", "Recorder", "current"]

KEPT: Final = 200
LONGEST_DETAIL: Final = 400
MOST_CALLS: Final = 500

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


@attrs.define(eq=False)
class Exchange:
    """One request, one batch of a queue or one cron trigger, from its beginning on."""

    number: int
    kind: Literal["request", "queue", "cron"]
    method: str
    path: str
    time: float
    """The time it began, in seconds since 1970-01-01 UTC."""
    received: float
    """The time it began, on the monotonic clock."""
    status: int | None = None
    duration: float | None = None
    """Milliseconds until the response was sent, or the batch or trigger was done."""
    outcome: str = ""
    """For what has no status: `ok`, or what it raised."""
    calls: list[RecordedCall] = attrs.field(factory=list[RecordedCall])
    left_out: int = 0
    error: Exception | None = None
    notes: list[str] = attrs.field(factory=list[str])

    def as_json(self) -> dict[str, Any]:
        """For the explorer."""
        return {
            "number": self.number,
            "kind": self.kind,
            "method": self.method,
            "path": self.path,
            "time": self.time,
            "status": self.status,
            "duration": self.duration,
            "outcome": self.outcome,
            "calls": [attrs.asdict(call) for call in self.calls],
            "leftOut": self.left_out,
            "error": None if self.error is None else f"{type(self.error).__name__}: {self.error}",
            "notes": self.notes,
        }


class Recorder:
    """The last exchanges, and whoever wants to hear of new ones."""

    def __init__(self, *, clock: Clock = system_clock) -> None:
        self.clock = clock
        self.exchanges: deque[Exchange] = deque(maxlen=KEPT)
        self._count = 0
        self._listeners: set[asyncio.Queue[Exchange | None]] = set()

    def begin(self, kind: Literal["request", "queue", "cron"], method: str, path: str) -> Exchange:
        """Open an exchange."""
        self._count += 1
        exchange = Exchange(self._count, kind, method, path, self.clock.time(), self.clock.monotonic())
        self.exchanges.append(exchange)
        self.changed(exchange)
        return exchange

    def elapsed(self, exchange: Exchange) -> float:
        """Milliseconds since it began."""
        return (self.clock.monotonic() - exchange.received) * 1000

    def end(self, exchange: Exchange) -> None:
        """Its response was sent, or it is done."""
        if exchange.duration is None:
            exchange.duration = self.elapsed(exchange)
        self.changed(exchange)

    async def hook(self, call: BindingCall, proceed: Proceed, /) -> Any:
        """Record a call of a binding in the exchange that it belongs to: a `core.calls.CallHook`."""
        exchange = current.get()
        if exchange is None:
            return await proceed()
        if len(exchange.calls) >= MOST_CALLS:
            exchange.left_out += 1
            return await proceed()
        recorded = RecordedCall(
            call.binding,
            call.kind,
            call.method,
            _shortened(_described(call), LONGEST_DETAIL),
            self.elapsed(exchange),
            background=exchange.duration is not None,
        )
        exchange.calls.append(recorded)
        try:
            return await proceed()
        except BaseException as error:
            recorded.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            recorded.duration = self.elapsed(exchange) - recorded.started
            if exchange.duration is not None:
                self.changed(exchange)

    def changed(self, exchange: Exchange) -> None:
        """Tell the listeners. One that does not keep up misses some."""
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(exchange)

    def close(self) -> None:
        """Let everyone who follows come to an end: the server stops, and does not wait for them."""
        for listener in self._listeners:
            if listener.full():
                listener.get_nowait()
            listener.put_nowait(None)

    async def follow(self) -> AsyncIterator[Exchange]:
        """Every exchange that begins or changes from now on."""
        listener: asyncio.Queue[Exchange | None] = asyncio.Queue(KEPT)
        self._listeners.add(listener)
        try:
            while (exchange := await listener.get()) is not None:
                yield exchange
        finally:
            self._listeners.discard(listener)


def _described(call: BindingCall) -> str:
    """A statement and its values, or the arguments of any other call, without options that are the defaults."""
    if call.kind == "d1" and call.target:
        return _statement(*call.target)
    defaults: dict[str, Any] = getattr(call.function, "__kwdefaults__", None) or {}
    given = {name: value for name, value in call.options.items() if name not in defaults or value != defaults[name]}
    return ", ".join([*map(_value, call.args), *(f"{name}={_value(value)}" for name, value in given.items())])


def _statement(sql: str, *values: Any) -> str:
    # Numbers are bound as the platform's, which are all floating point.
    bound = (int(value) if isinstance(value, float) and value.is_integer() else value for value in values)
    return f"{sql}  ← {', '.join(map(_value, bound))}" if values else sql


def _value(value: Any) -> str:
    if isinstance(value, Hookable) and (target := value._call_target()):
        return _statement(*target)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(cast('bytes | bytearray | memoryview[int]', value))} bytes"
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[object]", value)
        return f"[{', '.join(_value(item) for item in items[:10])}{', …' if len(items) > 10 else ''}]"
    return _shortened(repr(value), 120)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
