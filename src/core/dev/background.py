"""Work of a worker that no request started: batches of its queues, and cron triggers.

Each is an exchange of its own in the log. When a batch goes and when a trigger comes up is decided by the embedded
queues and schedule; here they are handed to the application, and what came of it is shown.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from core.assembly.project import Loaded, consumers_of
from core.backends.embedded.cron import CronSchedule
from core.backends.embedded.queue import broker_of
from core.bindings.queue import MessageBatch
from core.context import ScheduledEvent
from core.dev.application import request_line
from core.dev.record import Exchange, Recorder, current
from core.dev.report import report, to_text
from core.dev.terminal import Style
from core.hosts.asgi import BackgroundContext

__all__ = ["Background"]


class Background:
    """Drives the consumers and triggers of one loaded application."""

    def __init__(
        self,
        loaded: Loaded,
        context: BackgroundContext,
        recorder: Recorder,
        *,
        write: Callable[[str], None],
        style: Style,
    ) -> None:
        self._loaded = loaded
        self._context = context
        self._recorder = recorder
        self._write = write
        self._style = style
        self._schedule: CronSchedule | None = None

    def start(self) -> None:
        """Begin. Call it with the event loop running."""
        loaded = self._loaded
        broker = broker_of(loaded.store)
        for name, settings in consumers_of(loaded).items():
            if name in loaded.app.queues:
                broker.consume(name, self._consumer(name), settings)
        if loaded.crons and loaded.app.crons:
            self._schedule = CronSchedule(loaded.store, loaded.crons, self._came_up)
            self._schedule.start()

    async def stop(self) -> None:
        """End: the batches and triggers that run are waited for, no other begins."""
        if self._schedule is not None:
            await self._schedule.close()
        await broker_of(self._loaded.store).close()

    def next_times(self) -> dict[str, float]:
        """Return the next time of each trigger, in seconds since 1970."""
        return {} if self._schedule is None else self._schedule.next_times()

    async def trigger(self, cron: str) -> Exchange:
        """Run what is scheduled for `cron`, now. What it raises is in the exchange."""
        return await self._trigger(ScheduledEvent(cron, time.time()))

    async def _came_up(self, event: ScheduledEvent) -> None:
        await self._trigger(event)

    async def _trigger(self, event: ScheduledEvent) -> Exchange:
        exchange = self._recorder.begin("cron", "CRON", event.cron)
        await self._run(exchange, lambda: self._loaded.app.trigger(event, self._loaded.env, self._context))
        return exchange

    def _consumer(self, name: str) -> Callable[[MessageBatch[Any]], Awaitable[None]]:
        async def consume(batch: MessageBatch[Any]) -> None:
            count = len(batch.messages)
            label = f"{name} ({count} {'message' if count == 1 else 'messages'})"
            exchange = self._recorder.begin("queue", "QUEUE", label)
            await self._run(exchange, lambda: self._loaded.app.consume(batch, self._loaded.env, self._context))
            if exchange.error is not None:
                # The broker retries what a handler that raised has not acknowledged.
                raise exchange.error

        return consume

    async def _run(self, exchange: Exchange, work: Callable[[], Awaitable[None]]) -> None:
        token = current.set(exchange)
        try:
            await work()
            exchange.outcome = "ok"
        except Exception as error:  # whatever a consumer raises is shown, and the host goes on
            exchange.error = error
            exchange.outcome = f"{type(error).__name__}: {error}"
        finally:
            current.reset(token)
            self._recorder.end(exchange)
            self._write(request_line(exchange, self._style))
            # A consumer's error is logged by the broker, which retries the batch.
            if exchange.error is not None and exchange.kind == "cron":
                text = to_text(report(exchange.error, root=self._loaded.root), self._style)
                self._write("\n".join(f"  {line}" for line in text.splitlines()))
