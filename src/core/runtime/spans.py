"""The spans of nodes, fetched from their isolates and sent on to the collector that the environment names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from importlib import import_module

from core.runtime.node import Node, post_json

__all__ = ["are_collected", "collect_spans", "send_spans"]

_EVERY = 1.0


def are_collected() -> bool:
    """Return True where `OTEL_EXPORTER_OTLP_ENDPOINT` is set. Raises MissingExtraError without the extra `otel`."""
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return False
    import_module("core.hosts.otel")
    return True


async def collect_spans(nodes: Callable[[], Iterable[Node]]) -> None:
    """Send the spans of the nodes that run to the collector, again and again."""
    while True:
        await asyncio.sleep(_EVERY)
        await send_spans(*nodes())


async def send_spans(*nodes: Node, last: bool = False, seconds: float = 2.0) -> None:
    """Send those that have ended since the last time. One that does not answer has them ready for the next.

    With `last` nodes answer once they have been asked to leave, so that nothing has to wait for it: a process that is
    told to stop ends its requests, this one included.
    """
    from core.hosts.otel import send

    running = [node for node in nodes if node.workerd.returncode is None]
    asked = (post_json(node.health_port, "/spans", {"last": last}, seconds=seconds) for node in running)
    for answer in await asyncio.gather(*asked):
        send(answer.get("spans", ()))
