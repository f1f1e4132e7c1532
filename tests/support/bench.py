"""A middleware on a bench: an application, a client of it, and what both stand on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core import http
from core.app import App
from core.testing import Client, FakeClock, FakeExecutionContext, FakeKVNamespace

__all__ = ["Bench"]


class Bench:
    """An application behind `middleware`. Its namespace, its context and its middleware share one clock.

    `env` makes the Env from the namespace. Routes are added to `app` before the first request.
    """

    def __init__(
        self, *middleware: Any, env: Callable[[FakeKVNamespace], object] = lambda kv: None, start: float | None = None
    ) -> None:
        self.clock = FakeClock() if start is None else FakeClock(start)
        self.kv = FakeKVNamespace(clock=self.clock)
        self.ctx = FakeExecutionContext(clock=self.clock)
        self.app: App[Any] = App()
        for step in middleware:
            self.app.use(step)
        self.client: Client[Any] = Client(self.app, env(self.kv), self.ctx)

    async def get(self, path: str = "/", **headers: str) -> http.Response:
        """One request, and the work that it gave to `wait_until`. `_` in a header's name is `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await self.client.get(path, headers=named)
        await self.ctx.drain()
        return response
