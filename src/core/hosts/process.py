"""A host in a process of its own: work given to `wait_until`, and what application and server tell each other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from core.context import Spans, require_awaitable
from core.dispatch.answers import logged

if TYPE_CHECKING:
    from core.app import App
    from core.spans import Tracer

STATUS_SENT: Final = "core.status"
"""The key of a scope that has the status which the server itself answered a body with that breaks off."""

FAILED: Final = "core.failed"
"""The key of a scope that has the error of a body which broke off, and which is in the log already."""

_BODY: Final = b'{"error": "Service Unavailable"}'
UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b"
) % (len(_BODY), _BODY)
"""The answer of a server that takes no request at the moment."""

_TURNED_AWAY_MOST: Final = 256
_TURNED_AWAY_SECONDS: Final = 2.0


class TurnedAway(asyncio.Protocol):
    """A connection beyond the limit, answered 503 when its request comes. `others` are the open ones of its kind."""

    def __init__(self, transport: asyncio.Transport, others: set[TurnedAway], loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._others = others
        self._answered = False
        transport.set_protocol(self)
        self._timer = loop.call_later(_TURNED_AWAY_SECONDS, transport.abort)
        if len(others) >= _TURNED_AWAY_MOST:
            transport.write(UNAVAILABLE)
            transport.close()
        else:
            others.add(self)

    def data_received(self, data: bytes) -> None:
        if not self._answered:
            self._answered = True
            self._transport.write(UNAVAILABLE)
            # Closed with bytes unread, the connection would be reset, and the answer lost with it.
            self._transport.write_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.discard(self)
        self._timer.cancel()


class BackgroundContext(Spans):
    """The execution context of a process: work given to `wait_until` runs on its event loop until `drain`."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Future[Any]] = set()

    def wait_until(self, awaitable: Awaitable[object], /) -> None:
        """Run `awaitable` to its end beside everything else. An error that it raises is logged."""
        require_awaitable(awaitable)
        task = asyncio.ensure_future(logged(awaitable))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def pass_through_on_exception(self) -> None:
        """There is no origin behind this host: nothing to fall back to."""

    async def drain(self) -> None:
        """Wait until nothing is left, work that is added meanwhile included."""
        while self.tasks:
            await asyncio.wait(set(self.tasks))


async def comes_first(work: asyncio.Future[Any], event: asyncio.Event) -> bool:
    """Return True once work is done, False if the event comes before."""
    heard = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((work, heard), return_when=asyncio.FIRST_COMPLETED)
    finally:
        heard.cancel()
    return work.done()


def trace_where_asked(app: App[Any], env: object) -> Tracer | None:
    """Send spans to OpenTelemetry's collector, where `OTEL_EXPORTER_OTLP_ENDPOINT` names one. Returns the tracer."""
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return None
    from core.hosts.otel import export

    return export(app, env)
