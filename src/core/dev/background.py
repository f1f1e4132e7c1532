"""Work that no request started, as the log shows it: each batch, trigger and alarm is an exchange of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from textwrap import indent
from typing import Any

import attrs

from core.assembly import project as assembly
from core.bindings.queue import MessageBatch
from core.context import ScheduledEvent
from core.dev.application import request_line
from core.dev.exchange import Exchange, current
from core.dev.record import Recorder
from core.dev.terminal import Style


@attrs.define(eq=False)
class Background(assembly.Background):
    """Drives the consumers and triggers of one loaded application, each as an exchange of its own in the log."""

    _recorder: Recorder
    _write: Callable[[str], None]
    _style: Style

    async def come_up(self, event: ScheduledEvent) -> None:
        await self.trigger(event)

    async def trigger(self, event: ScheduledEvent) -> Exchange:
        """Run the handlers scheduled for an event, and return the exchange, which has their error."""
        return await self._run(self._recorder.begin("cron", "CRON", event.cron), partial(super().come_up, event))

    async def consume(self, batch: MessageBatch[Any]) -> None:
        """Hand a batch to its consumer. An error goes to the broker, which retries the batch."""
        count = len(batch.messages)
        label = f"{batch.queue} ({count} {'message' if count == 1 else 'messages'})"
        exchange = await self._run(self._recorder.begin("queue", "QUEUE", label), partial(super().consume, batch))
        if exchange.error is not None:
            if self._recorder.journal is not None:
                ids = [message.id for message in batch.messages]
                self._recorder.journal.note_failure(ids, exchange.outcome, exchange.key)
            raise exchange.error

    async def alarm(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run the alarm of a Durable Object. An error goes to the object, which tries it again."""
        exchange = await self._run(self._recorder.begin("alarm", "ALARM", name), partial(super().alarm, name, run))
        if exchange.error is not None:
            raise exchange.error

    async def _run(self, exchange: Exchange, work: Callable[[], Awaitable[None]]) -> Exchange:
        token = current.set(exchange)
        try:
            await work()
            exchange.outcome = "ok"
        except Exception as error:  # whatever a consumer raises is shown, and the host goes on
            exchange.fail(error, self._loaded.root)
            exchange.outcome = f"{type(error).__name__}: {error}"
        finally:
            current.reset(token)
            self._recorder.end(exchange)
            self._write(request_line(exchange, self._style))
            # A consumer's error is logged by the broker, which retries the batch, and an alarm's by its object.
            if exchange.failure is not None and exchange.kind == "cron":
                self._write(indent(exchange.failure.as_text(self._style), "  "))
        return exchange
