"""Streams whose source runs in one task and is closed with them, whoever reads them and however far.

Loaded with the first stream: most answers are at hand.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable
from contextvars import copy_context
from typing import Any

from core.http.streams import close, encode


class Driven:
    """The pieces of a stream as bytes, texts as UTF-8: an async iterator that runs another one in a single task, in the
    context that this was made in. It is closed by a reader that is cancelled, and by its own end.

    Raises TypeError for a piece that is neither.

    Timeouts, task groups and context variables belong to a task, but hosts ask for each piece from whichever task they
    like, and cancel it when the client goes away. Here all steps of `source` and its closing are one task's. It makes
    one piece when it is asked for one; a timeout or a task group around its `yield` that ends meanwhile ends it there.
    """

    __slots__ = ("_arrived", "_asked", "_closing", "_context", "_failure", "_over", "_ready", "_source", "_task")

    def __init__(self, source: AsyncIterable[object]) -> None:
        self._source = source
        self._context = copy_context()
        self._task: asyncio.Task[None] | None = None
        self._asked: asyncio.Future[None] | None = None
        self._arrived: asyncio.Future[None] | None = None
        self._ready: deque[object] = deque()
        self._failure: BaseException | None = None
        self._over = self._closing = False

    def __aiter__(self) -> Driven:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._next()
        except BaseException:
            await self.aclose()
            raise

    async def _next(self) -> bytes:
        await self.ready()
        chunk = self.take()
        given = chunk  # not narrowed by what follows
        if isinstance(chunk, str):
            return encode(chunk)
        if isinstance(chunk, (bytes, bytearray, memoryview)):
            return bytes(given)
        raise TypeError(f"a stream gave {type(chunk).__name__}. Give bytes or str in every piece")

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

    def take(self) -> Any:
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
        if task is None and not self._over:
            # Nothing was asked for. A generator has nothing to clean up then; an open connection has.
            self._over = True
            await close(self._source)
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
                await self._iterate(source)
            finally:
                await close(source)
        except (Exception, asyncio.CancelledError) as failure:  # it is for who asks for the next piece
            self._failure = failure
        finally:
            self._over = True
            self._tell()

    async def _iterate(self, source: AsyncIterator[object]) -> None:
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


class Owned:
    """The pieces of a generator over `source`, which is closed with it, also where nothing was asked for."""

    __slots__ = ("_pieces", "_source")

    def __init__(self, pieces: AsyncGenerator[bytes, None], source: object) -> None:
        self._pieces = pieces
        self._source = source

    def __aiter__(self) -> Owned:
        return self

    def __anext__(self) -> Awaitable[bytes]:
        return self._pieces.__anext__()

    async def aclose(self) -> None:
        """Close the generator, and then what it reads."""
        try:
            await self._pieces.aclose()
        finally:
            await close(self._source)
