"""The numbers of a process that runs the embedded engines: those that exist once, of queues, crons and Durable Objects,
included.
"""

from __future__ import annotations

from collections.abc import Callable

from core.assembly.project import Loaded, consumers_of
from core.backends.embedded.queue import broker_of
from core.telemetry.metrics import Meter, measure


def measure_state(loaded: Loaded, meter: Meter) -> Callable[[Meter], None]:
    """Count the work of the consumers, crons and Durable Objects. Returns the function that sets the gauges."""
    measure(loaded.app, loaded.env, meter)
    broker = broker_of(loaded.store)
    broker.on_dead = lambda queue, count: meter.add("core_queue_dead_letters", queue, by=count)
    consumers = consumers_of(loaded)
    for queue in consumers:
        meter.add("core_queue_dead_letters", queue, by=0)
    queues = {*consumers, *(producer.queue for producer in loaded.configuration.worker.queues.producers)}

    def set_gauges(meter: Meter) -> None:
        backlogs = broker.backlogs()
        now = broker.now() / 1000
        for queue in {*queues, *backlogs}:
            waiting = backlogs.get(queue)
            meter.set("core_queue_messages", queue, to=0 if waiting is None else waiting.backlog_count)
            oldest = None if waiting is None else waiting.oldest_message_timestamp
            age = 0.0 if oldest is None else max(0.0, now - oldest.timestamp())
            meter.set("core_queue_oldest_message_age_seconds", queue, to=age)
        for namespace in loaded.bindings.namespaces.values():
            meter.set("core_durable_objects_alive", namespace.objects.name, to=namespace.objects.alive)

    return set_gauges
