"""A process that is about to stop, as those see it that would go on for ever: WebSockets and streams of events.

Each of them belongs to its own request, and may be touched in its turns alone. So it makes a promise there: whoever
resolves that, what follows runs where the promise was made (`handle_cross_request_promise_resolution`, since
2024-10-14).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from core.backends.workerd.conversion import bridge
from core.http.streams import close

GOING_AWAY = (1001, "the server stops")
"""Code (RFC 6455, section 7.4.1) and reason with which WebSockets are closed."""

holders: set[str] = set()
"""The ids of the Durable Objects that have accepted WebSockets in this process."""

_waiting: dict[object, Callable[[], object]] = {}
_leaving = False


def when_leaving(act: Callable[[], object]) -> Callable[[], object]:
    """Have `act` called in a turn of this request once the process is about to stop, at once where it is already.

    Returns a function that takes it back.
    """
    key = object()
    promise = bridge().js.Promise.withResolvers()

    def forget() -> bool:
        waited = _waiting.pop(key, None) is not None
        if waited:
            destroy_later(proxy)
        return waited

    def acted(_: object = None) -> None:
        if forget():
            act()

    proxy = bridge().create_proxy(acted)
    promise.promise.then(proxy)
    _waiting[key] = promise.resolve
    if _leaving:
        promise.resolve()
    return forget


async def until_leaving(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The chunks of a body, which ends as if there were no more once the process is about to stop."""
    making: asyncio.Task[object] | None = None
    left = asyncio.Event()

    def end() -> None:
        left.set()
        if making is not None:
            making.cancel()

    forget = when_leaving(end)
    try:
        while not left.is_set():
            making = asyncio.current_task()
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except asyncio.CancelledError:
                if left.is_set() and making is not None and making.uncancel() == 0:
                    return
                raise
            making = None
            yield chunk
    finally:
        forget()
        await close(chunks)


def leave() -> list[str]:
    """End all endless connections, now and from now on. Returns the ids of the objects that have WebSockets."""
    global _leaving
    _leaving = True
    for resolve in list(_waiting.values()):
        resolve()
    return list(holders)


def destroy_later(*proxies: Any) -> None:
    """Destroy proxies once this turn has ended: one of them may be running."""
    for proxy in proxies:
        asyncio.get_running_loop().call_soon(proxy.destroy)
