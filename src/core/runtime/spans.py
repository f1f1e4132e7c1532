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


async def send_spans(*nodes: Node) -> None:
    """Send those that have ended since the last time. One that does not answer has them ready for the next."""
    from core.hosts.otel import send

    running = [node for node in nodes if node.workerd.returncode is None]
    for answer in await asyncio.gather(*(post_json(node.health_port, "/spans", {}, seconds=2.0) for node in running)):
        send(answer.get("spans", ()))
