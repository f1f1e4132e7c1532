"""An answer in time: the rest of the chain is cancelled when it takes too long.

Decided here: the meaning of a cancellation. The chain runs on in the request's own task, and a timer
cancels that task as a client that goes away would; the two are told apart by counting
(`Task.cancelling`), so that a disconnect is never answered and never swallowed. What the chain does
between the timer and its end is undone: the response is put back to how it stood when the time was up.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from core.errors import CoreError
from core.handlers import declare
from core.http.streams import close
from core.middleware import options
from core.request import AnyRequest
from core.response import Response

if TYPE_CHECKING:
    from core.context import Clock
    from core.types import Middleware, Next

__all__ = ["timeout"]

log: logging.Logger = logging.getLogger("core")


def timeout(
    *, duration: float, message: str = "Request Timeout", status: int = 408, include_body: bool = False
) -> Middleware[object, object]:
    """Answer `status` with `message` when the rest of the chain has sent nothing after `duration` milliseconds.

    The chain is cancelled: it sees CancelledError at its `await`, and may clean up, but nothing it does from then on
    changes the response. A response that was sent before the time was up is the answer. Work given to `wait_until`
    lives on. The work of middleware behind it after its own `next()` is timed too; middleware before it is not. With
    `include_body` the time covers a streaming body as well, which is cut short when it is up.

    It acts inside the platform's own CPU limit and cannot extend it. Put it on the routes that wait for something
    slow rather than on the whole application. Code that never awaits cannot be interrupted.

    Raises OptionError for a duration that is not a finite number above 0, and for a status that is not an error's.
    """
    milliseconds = options.number("timeout", "duration", duration, unit="milliseconds")
    options.text("timeout", "message", message)
    options.status("timeout", status)
    seconds = milliseconds / 1000

    async def limit(req: AnyRequest, res: Response, next: Next, /) -> None:
        clock = req.clock
        deadline = clock.monotonic() + seconds
        timer = _Timer(res, clock, seconds)
        error: BaseException | None = None
        try:
            await next()
        except BaseException as raised:
            error = raised
        timer.stop()
        if not timer.expired:
            if isinstance(error, asyncio.CancelledError) and clock.monotonic() >= deadline and timer.outer_expired():
                await next(_TimedOut(status, message))  # both were due, and the inner one wins
            if error is not None:
                raise error
        else:
            await timer.settle(error)
            if not res.sent:
                await next(_TimedOut(status, message))
        body = res.body
        if include_body and body is not None and not isinstance(body, str | bytes):
            from core.http.driven import Owned

            res.replace_body(Owned(_limited(body, clock, deadline, status, message), body))

    return declare(limit, name="timeout")


class _TimedOut(CoreError):
    """The answer of a timeout, told apart from an application's own, so that an outer timeout lets it through."""


_enclosing: ContextVar[_Timer | None] = ContextVar("core_timeout", default=None)


class _Timer:
    """Cancels the current task when it goes off, and can tell its own cancellation from anyone else's."""

    __slots__ = ("_before", "_handle", "_outer", "_res", "_state", "_task", "_token", "expired")

    def __init__(self, res: Response, clock: Clock, seconds: float) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("timeout() needs a task to cancel. Run the request with asyncio")
        self.expired = False
        self._res = res
        self._state: dict[str, object] = {}
        self._task = task
        self._outer = _enclosing.get()
        self._before = task.cancelling()
        self._token = _enclosing.set(self)
        self._handle = clock.call_later(seconds, self._expire)

    def stop(self) -> None:
        self._handle.cancel()
        _enclosing.reset(self._token)

    def _expire(self) -> None:
        self.expired = True
        self._state = self._res.state()
        self._task.cancel()

    async def settle(self, error: BaseException | None) -> None:
        """Take the timer's cancellation back, and undo the chain's changes since.

        Raises any exception that is not the timer's: a cancellation from outside, an inner timeout's answer, an exit.
        """
        task = self._task
        if not isinstance(error, asyncio.CancelledError):
            # The chain ended before it saw the cancellation, or kept it to itself; it must not strike later.
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        task.uncancel()
        res, body = self._res, self._res.body
        if body is not self._state["body"]:
            res.discard()
            await close(body)  # a stream that was sent too late
        res.restore(self._state)
        if isinstance(error, asyncio.CancelledError):
            if task.cancelling() > self._before + self._outer_cancellations():
                raise error
        elif isinstance(error, _TimedOut):
            raise error
        elif isinstance(error, Exception):
            log.error("a handler raised while it was cancelled by timeout()", exc_info=error)
        elif error is not None:
            raise error

    def outer_expired(self) -> bool:
        """Return True if the task was cancelled by timeouts around this one, and by nobody else."""
        others = self._outer_cancellations()
        return 0 < others == self._task.cancelling() - self._before

    def _outer_cancellations(self) -> int:
        outer, count = self._outer, 0
        while outer is not None and outer._task is self._task:
            count += outer.expired
            outer = outer._outer
        return count


async def _limited(
    body: AsyncIterator[bytes], clock: Clock, deadline: float, status: int, message: str
) -> AsyncGenerator[bytes, None]:
    """A streaming body until `deadline`. The timer runs only while the stream is waited for."""
    try:
        while (left := deadline - clock.monotonic()) > 0:
            task = asyncio.current_task()  # of whoever asks for this piece
            assert task is not None
            before = task.cancelling()
            step = asyncio.ensure_future(anext(body))
            timer = clock.call_later(left, step.cancel)
            try:
                chunk = await step
            except StopAsyncIteration:
                return
            except asyncio.CancelledError:
                if task.cancelling() > before:
                    raise
                break
            finally:
                timer.cancel()
            yield chunk
        raise _TimedOut(status, message) from None
    finally:
        await close(body)
