"""Texts as bytes and back, and bodies in pieces: the body of a handler, as the bytes that a host writes.

Decided here: the fate of half a surrogate pair, which a client can write in JSON (`"\\ud800"`) and which has no UTF-8.
It leaves as U+FFFD from every sender, as in the Web's USVString. https://webidl.spec.whatwg.org/#idl-USVString
"""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from contextvars import copy_context

from core.values import Generic, TypeVar

__all__ = ["Driven", "USV", "chunks_of", "close", "decode", "encode", "well_formed"]

T = TypeVar("T")


def _scalar_values(error: UnicodeError) -> tuple[bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    # All the surrogates in a row, since two of them may be a pair.
    row = error.object[error.start : error.end].encode("utf-16-le", "surrogatepass")
    return row.decode("utf-16-le", "replace").encode(), error.end


USV = "core-usv"
"""The name of the error handler with which `text.encode("utf-8", USV)` never fails: as `encode` does,
without the call.
"""

codecs.register_error(USV, _scalar_values)


def encode(text: str) -> bytes:
    """A string as UTF-8, as the Encoding standard's "UTF-8 encode" does: half a surrogate pair becomes U+FFFD."""
    return text.encode("utf-8", USV)


def well_formed(text: str) -> str:
    """`text` with U+FFFD for every half of a surrogate pair."""
    return text if text.isascii() else encode(text).decode()


def decode(body: bytes) -> str:
    """Bytes as text, as the Encoding standard's "UTF-8 decode" does: faults become U+FFFD, a byte order mark goes."""
    return body.decode("utf-8", "replace").removeprefix("\ufeff")


def chunks_of(source: AsyncIterable[bytes] | AsyncIterable[str]) -> AsyncIterator[bytes]:
    """The pieces of a stream as bytes, texts as UTF-8. The source is closed when this ends, however it ends.

    Raises TypeError for a piece that is neither. See `Driven` for the task and the context that the source runs in.
    """
    return _encoded(Driven[bytes | str](source))


async def _encoded(source: Driven[bytes | str]) -> AsyncIterator[bytes]:
    try:
        async for chunk in source:
            if isinstance(chunk, str):
                yield encode(chunk)
            elif isinstance(chunk, bytes | bytearray | memoryview):
                yield bytes(chunk)
            else:
                raise TypeError(f"a stream gave {type(chunk).__name__}. Give bytes or str in every piece")
    finally:
        await source.aclose()


async def close(source: object) -> None:
    """Close an async iterator now, so that a generator cleans up at once and not when it is collected."""
    aclose = getattr(source, "aclose", None)
    if aclose is not None:
        await aclose()


class Driven(Generic[T]):
    """An async iterator that runs another one in a single task, in the context that this was made in.

    Timeouts, task groups and context variables belong to a task, but hosts ask for each piece from whichever task they
    like, and cancel it when the client goes away. Here all steps of `source` and its closing are one task's. It makes
    one piece when it is asked for one; a timeout or a task group around its `yield` that ends meanwhile ends it there.
    """

    __slots__ = ("_arrived", "_asked", "_closing", "_context", "_failure", "_over", "_ready", "_source", "_task")

    def __init__(self, source: AsyncIterable[T]) -> None:
        self._source = source
        self._context = copy_context()
        self._task: asyncio.Task[None] | None = None
        self._asked: asyncio.Future[None] | None = None
        self._arrived: asyncio.Future[None] | None = None
        self._ready: deque[T] = deque()
        self._failure: BaseException | None = None
        self._over = self._closing = False

    def __aiter__(self) -> Driven[T]:
        return self

    async def __anext__(self) -> T:
        await self.ready()
        return self.take()

    async def ready(self, seconds: float | None = None) -> bool:
        """Ask for a piece, and wait until `take` has one or knows that there is none; False after `seconds`."""
        if self._ready or self._over:
            return True
        loop = asyncio.get_running_loop()
        arrived = self._arrived
        if arrived is None or arrived.done():
            arrived = self._arrived = loop.create_future()
        if self._task is None:
            self._task = self._context.run(loop.create_task, self._drive())
        elif self._asked is not None and not self._asked.done():
            self._asked.set_result(None)
        # Unlike the future itself, waiting for it may be cancelled or end early.
        await asyncio.wait((arrived,), timeout=seconds)
        return arrived.done()

    def take(self) -> T:
        """The piece that is ready. Raises the source's error, and StopAsyncIteration at its end."""
        if self._ready:
            return self._ready.popleft()
        if self._failure is not None:
            raise self._failure
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the source, in its own task, and wait until it is closed. Raises an error of its cleaning up."""
        self._closing = True
        task = self._task
        if task is None or task.done():
            return
        task.cancel()
        await asyncio.wait((task,))
        failure = task.exception()
        if failure is None:
            failure = self._failure
        if failure is not None and not isinstance(failure, asyncio.CancelledError):
            raise failure

    async def _drive(self) -> None:
        try:
            source = aiter(self._source)
            try:
                await self._steps(source)
            finally:
                await close(source)
        except (Exception, asyncio.CancelledError) as failure:  # it is for who asks for the next piece
            self._failure = failure
        finally:
            self._over = True
            self._tell()

    async def _steps(self, source: AsyncIterator[T]) -> None:
        loop = asyncio.get_running_loop()
        step = anext(source)
        while True:
            try:
                piece = await step
            except StopAsyncIteration:
                return
            if self._closing:
                return
            self._ready.append(piece)
            self._tell()
            self._asked = loop.create_future()
            try:
                await self._asked
            except asyncio.CancelledError as interruption:
                throw = getattr(source, "athrow", None)
                if throw is None or self._closing:
                    raise
                # By a timeout or a task group around the `yield`, most likely, which wants to see it there.
                step = throw(interruption)
            else:
                step = anext(source)

    def _tell(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)
