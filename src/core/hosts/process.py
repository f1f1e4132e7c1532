"""The parts of a host that runs in a process of its own, whichever protocol its server speaks.

Decided here: where work given to `wait_until` runs, how several headers of one name are joined, how a decoded path is
encoded again, and that a streamed body ends with its client.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from core import http
from core.context import Spans, require_awaitable
from core.errors import CoreError
from core.http.streams import close

if TYPE_CHECKING:
    from core.app import App
    from core.spans import Tracer

CLIENT_IP = "edge-connecting-ip"

TOLD: Final = "core.told"
"""The key of a scope that has the status which the server itself answered a body with that breaks off."""

FAILED: Final = "core.failed"
"""The key of a scope that has the error of a body which broke off, and which is in the log already."""

_BODY: Final = b'{"error": "Service Unavailable"}'
UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b"
) % (len(_BODY), _BODY)
"""The answer of a server that takes no request at the moment."""


class BackgroundContext(Spans):
    """The execution context of a process: work given to `wait_until` runs on its event loop until `drain`."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Future[Any]] = set()

    def wait_until(self, awaitable: Awaitable[Any], /) -> None:
        """Run `awaitable` to its end beside everything else. An error that it raises is logged."""
        require_awaitable(awaitable)
        task = asyncio.ensure_future(awaitable)
        self.tasks.add(task)
        task.add_done_callback(self._done)

    def pass_through_on_exception(self) -> None:
        """There is no origin behind this host: nothing to fall back to."""

    def _done(self, task: asyncio.Future[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            from core.explain.diagnosis import log_failure

            log_failure(error, "background work given to wait_until failed")

    async def drain(self) -> None:
        """Wait until nothing is left, work that is added meanwhile included."""
        while self.tasks:
            await asyncio.wait(set(self.tasks))


def trace_where_asked(app: App[Any], env: object) -> Tracer | None:
    """Send spans to OpenTelemetry's collector, where `OTEL_EXPORTER_OTLP_ENDPOINT` names one. Returns the tracer."""
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return None
    from core.hosts.otel import export

    return export(app, env)


def join_headers(pairs: Iterable[tuple[str, str]], ip: str | None) -> http.HeadersView:
    """The headers of a request, by name in lower case. The client's address is `ip`, whatever the client sent."""
    values: dict[str, str] = {}
    for name, text in pairs:
        if name == CLIENT_IP:
            continue
        if name in values:
            values[name] = f"{values[name]}{'; ' if name == 'cookie' else ', '}{text}"
        else:
            values[name] = text
    if ip is not None:
        values[CLIENT_IP] = ip
    return http.HeadersView.trusted(values, [])


def quote_path(path: str) -> str:
    """A decoded path encoded again."""
    from urllib.parse import quote

    return quote(path, safe="/~!$&'()*+,;=:@-._")


async def stream_until_gone(
    chunks: AsyncIterator[bytes], send: Callable[[bytes], Awaitable[object]], gone: Callable[[], Awaitable[object]]
) -> bool:
    """Send the chunks until the awaitable of `gone` is done.

    Returns True if the client got them all; raises their errors, but for that of a client that went away while chunks
    were made of its own body.
    """

    async def write() -> None:
        async for chunk in chunks:
            if chunk:
                await send(chunk)

    async def watch() -> None:
        await gone()

    writer: asyncio.Future[Any] = asyncio.ensure_future(write())
    watcher: asyncio.Future[Any] = asyncio.ensure_future(watch())
    try:
        await asyncio.wait((writer, watcher), return_when=asyncio.FIRST_COMPLETED)
        if writer.done():
            writer.result()
            return True
        return False
    except CoreError as error:
        from core.errors.body import BodyEndedError

        if not isinstance(error, BodyEndedError):
            raise
        return False
    finally:
        for task in (writer, watcher):
            if not task.done():
                task.cancel()
        await asyncio.gather(writer, watcher, return_exceptions=True)
        # The generator ends with the response, so that its resources are given back.
        await close(chunks)
