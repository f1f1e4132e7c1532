"""Work of a loaded application that no request starts: batches of its queues, its crons, and alarms of its objects, and
the numbers of all that exists once.

When a batch goes and when a cron comes up is decided by the embedded queues and schedule; here they are handed to the
application. The development server derives from it, to show the outcome of each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from core.assembly.project import Loaded, consumers_of
from core.backends.embedded.cron import CronSchedule
from core.backends.embedded.queue import broker_of
from core.bindings.queue import MessageBatch, QueueMetrics
from core.context import ExecutionContext, ScheduledEvent

if TYPE_CHECKING:
    from core.telemetry.metrics import Meter


class Background:
    """Drives the consumers and crons of one loaded application, and has its alarms counted and traced."""

    def __init__(self, loaded: Loaded, context: ExecutionContext) -> None:
        self._loaded = loaded
        self._context = context
        self._schedule: CronSchedule | None = None

    def start(self) -> None:
        """Begin. Call it with the event loop running."""
        loaded = self._loaded
        broker = broker_of(loaded.store)
        for name, settings in consumers_of(loaded).items():
            if name in loaded.app.queues:
                broker.consume(name, self.consume, settings)
        for namespace in loaded.bindings.namespaces.values():
            namespace.objects.around_alarm = self.alarm
        if loaded.crons and loaded.app.crons:
            self._schedule = CronSchedule(loaded.store, loaded.crons, self.come_up)
            self._schedule.start()

    async def stop(self) -> None:
        """End: the batches and crons that run are waited for, no other begins."""
        if self._schedule is not None:
            await self._schedule.close()
        await broker_of(self._loaded.store).close()

    def next_times(self) -> dict[str, float]:
        """Return the next time of each cron, in seconds since 1970."""
        return {} if self._schedule is None else self._schedule.next_times()

    async def consume(self, batch: MessageBatch[Any]) -> None:
        """Hand a batch to its consumer. Its error goes to the broker, which retries the batch."""
        await self._loaded.app.consume(batch, self._loaded.env, self._context)

    async def come_up(self, event: ScheduledEvent) -> None:
        """Hand an event to the handlers of its cron. Their errors go to the schedule, which logs it."""
        await self._loaded.app.trigger(event, self._loaded.env, self._context)

    async def alarm(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run the alarm of a Durable Object of the class `name`. Its error goes to the object, which tries it again."""
        instrument = self._loaded.app.instrument
        await (run() if instrument is None else instrument.alarm(name, run))


def measure_state(loaded: Loaded, meter: Meter) -> None:
    """Count the work of the consumers, crons and Durable Objects, and what waits for them or is alive."""
    from core.telemetry.metrics import measure, set_queue

    measure(loaded.app, loaded.env, meter)
    broker = broker_of(loaded.store)
    broker.on_dead = lambda queue, count: meter.add("core_queue_dead_letters", queue, by=count)
    consumers = consumers_of(loaded)
    for queue in consumers:
        meter.add("core_queue_dead_letters", queue, by=0)
    queues = {*consumers, *(producer.queue for producer in loaded.configuration.worker.queues.producers)}

    def set_gauges() -> None:
        backlogs = broker.backlogs()
        for queue in {*queues, *backlogs}:
            set_queue(meter, queue, backlogs.get(queue, QueueMetrics()), broker.now() / 1000)
        for namespace in loaded.bindings.namespaces.values():
            meter.set("core_durable_objects_alive", namespace.objects.name, to=namespace.objects.alive)

    meter.gauges.append(set_gauges)
