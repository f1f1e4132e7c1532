"""The resources that an application opens when it starts and closes when it ends: `app.lifespan`.

A lifespan is entered once for each Env that is served on an event loop, and all of them in one task, so that task
groups and timeouts in them work. Its value is found by that Env, and no request pays for it. A worker has no end that
it is told of: there the first event starts them, and nothing closes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from core.context import ExecutionContext, StateKey

Lifespan = Callable[[Any], AsyncIterator[Any]]
"""`async def (env)`, which yields its value once."""
_Generator = Callable[[Any], AsyncGenerator[Any, None]]


class _Running:
    """The lifespans of one Env, from their start to their end."""

    def __init__(self, lifespans: dict[StateKey[Any], Lifespan], env: object) -> None:
        self.env = env  # kept, since it is known by its id
        self.users = 0
        self.values: dict[StateKey[Any], object] = {}
        self._lifespans = lifespans
        self._started = asyncio.Event()
        self._ended = asyncio.Event()
        self.task: asyncio.Future[None] = asyncio.ensure_future(self._run())

    @property
    def ready(self) -> bool:
        """Return True once all of them are entered, until they end."""
        return self._started.is_set() and not self.task.done()

    async def wait(self) -> None:
        """Wait until all of them are entered. Raises the error of one of them."""
        started = asyncio.ensure_future(self._started.wait())
        try:
            await asyncio.wait((started, self.task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            started.cancel()
        if self.task.done():
            self.task.result()

    async def end(self) -> None:
        """Leave them, the last one first. Raises the error of one of them."""
        self._ended.set()
        await asyncio.wait((self.task,))
        if not self.task.cancelled():
            self.task.result()

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            for key, lifespan in self._lifespans.items():
                self.values[key] = await stack.enter_async_context(
                    asynccontextmanager(cast("_Generator", lifespan))(self.env)
                )
            self._started.set()
            await self._ended.wait()


class Lifespans:
    """The lifespans of one application, in order of registration."""

    def __init__(self) -> None:
        self._lifespans: dict[StateKey[Any], Lifespan] = {}
        self._running: dict[tuple[asyncio.AbstractEventLoop, int], _Running] = {}

    def add(self, lifespan: Lifespan, name: str) -> StateKey[Any]:
        """Register a lifespan, and return the key of its value."""
        key: StateKey[Any] = StateKey(self.values_of, name)
        self._lifespans[key] = lifespan
        return key

    def values_of(self, env: object) -> dict[StateKey[Any], object] | None:
        """The values for an Env, or None where nothing is running for it."""
        running = self._running.get((asyncio.get_running_loop(), id(env)))
        return None if running is None else running.values

    async def start(self, env: object) -> None:
        """Enter all lifespans for an Env, or count one more who needs them. Raises the error of one of them."""
        running = self._of(env)
        running.users += 1
        await running.wait()

    async def stop(self, env: object) -> None:
        """Take one `start` back; the last one leaves them."""
        running = self._running.get((asyncio.get_running_loop(), id(env)))
        if running is not None:
            running.users -= 1
            if running.users <= 0:
                await running.end()

    async def ensure(self, env: object) -> None:
        """Enter them unless they are: for a host whose server does not tell of its start. They end with the loop."""
        running = self._of(env)
        if not running.ready:
            await running.wait()

    async def ensure_in_worker(self, env: object, ctx: ExecutionContext) -> None:
        """Enter them with the first event of a worker, which lives on until they are."""
        running = self._of(env)
        if running.users == 0:
            running.users = 1
            ctx.wait_until(running.wait())
        # An event that waits for another one's work alone would be cancelled as hung: a timer is its own.
        while not running.ready:
            if running.task.done():
                running.task.result()
            await asyncio.sleep(0.005)

    def _of(self, env: object) -> _Running:
        key = (asyncio.get_running_loop(), id(env))
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = _Running(self._lifespans, env)
            running.task.add_done_callback(lambda _: self._running.pop(key, None))
        return running
