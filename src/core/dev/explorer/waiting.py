"""Work of the explorer in a thread of its own, which ends with whoever asked for it.

A statement may run for ever. It is told to stop when its caller has gone away (the panel was left, the page closed),
and when the server stops or reloads. A thread of asyncio's pool would be one that the application's own work then
lacks, and the end of the process would wait for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import attrs

from core.dev.record import Recorder
from core.request import Request

__all__ = ["Caller", "STEPS"]

T = TypeVar("T")

_LOOK: Final = 0.1
"""Seconds between two looks whether the caller is still there."""

STEPS: Final = 100_000
"""Steps of SQLite's machine between two looks whether a statement is to stop: a few milliseconds."""


@attrs.frozen
class Caller:
    """Whoever waits for an answer of the explorer."""

    req: Request[Any]
    recorder: Recorder

    async def wait_for(self, work: Callable[[threading.Event], T], stop: threading.Event | None = None) -> T:
        """Return `work(stop)`, run in a thread. `stop` is set when nobody waits for it any more."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        stop = stop or threading.Event()

        def tell(settle: Callable[[Any], None], outcome: object) -> None:
            if not done.done():
                settle(outcome)

        def run() -> None:
            settle: Callable[[Any], None] = done.set_result
            outcome: object
            try:
                outcome = work(stop)
            except BaseException as error:  # the one who waits raises it
                settle, outcome = done.set_exception, error
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(tell, settle, outcome)

        threading.Thread(target=run, name="core-explorer", daemon=True).start()
        try:
            while not (await asyncio.wait((done,), timeout=_LOOK))[0]:
                if self.recorder.closed or await self.req.is_disconnected():
                    stop.set()
            return await done
        finally:
            stop.set()
