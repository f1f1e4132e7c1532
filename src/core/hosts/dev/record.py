"""What happened lately: requests, batches and triggers, each with the calls of bindings that it made.

The explorer's live log and the terminal's lines both come from here. What a task calls is put down to the request
that started it, background work included, because a task inherits its maker's context variables.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Literal

import attrs

from core.context import Clock, system_clock

__all__ = ["BindingCall", "Exchange", "Recorder", "current"]

KEPT: Final = 200
LONGEST_DETAIL: Final = 400
MOST_CALLS: Final = 500

current: ContextVar[Exchange | None] = ContextVar("core_dev_exchange", default=None)
"""The request, batch or trigger that is being answered in this context."""


@attrs.define
class BindingCall:
    """One call of a binding: `started` and `duration` in milliseconds, from the beginning of its exchange."""

    binding: str
    kind: str
    method: str
    detail: str
    started: float
    duration: float | None = None
    error: str | None = None
    background: bool = False
    """Whether it began after the response had left."""


@attrs.define(eq=False)
class Exchange:
    """One request, one batch of a queue or one cron trigger, from its beginning on."""

    number: int
    kind: Literal["request", "queue", "cron"]
    method: str
    path: str
    time: float
    """When it began, in seconds since 1970-01-01 UTC."""
    received: float
    """When it began, on the monotonic clock."""
    status: int | None = None
    duration: float | None = None
    """Milliseconds until the response was sent, or the batch or trigger was done."""
    outcome: str = ""
    """For what has no status: `ok`, or what it raised."""
    calls: list[BindingCall] = attrs.field(factory=list[BindingCall])
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

    @contextmanager
    def call(self, binding: str, kind: str, method: str, detail: Callable[[], str]) -> Generator[None]:
        """Note a call of a binding for as long as the block takes."""
        exchange = current.get()
        if exchange is None:
            yield
            return
        if len(exchange.calls) >= MOST_CALLS:
            exchange.left_out += 1
            yield
            return
        text = detail()
        if len(text) > LONGEST_DETAIL:
            text = text[: LONGEST_DETAIL - 1] + "…"
        background = exchange.duration is not None
        call = BindingCall(binding, kind, method, text, self.elapsed(exchange), background=background)
        exchange.calls.append(call)
        try:
            yield
        except BaseException as error:
            call.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            call.duration = self.elapsed(exchange) - call.started
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
