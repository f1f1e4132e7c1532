"""A context and a door for the tests of the specification: plain objects, as its §4 describes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from core import App, http


class PlainContext:
    """The least that an execution context can be."""

    def __init__(self) -> None:
        self.waited: list[asyncio.Future[Any]] = []

    def wait_until(self, awaitable: Awaitable[Any], /) -> None:
        self.waited.append(asyncio.ensure_future(awaitable))

    def pass_through_on_exception(self) -> None:
        pass


async def ask(
    app: App[Any],
    path: str = "/",
    *,
    method: str = "GET",
    env: object = None,
    headers: dict[str, str] | None = None,
    body: str | bytes | None = None,
    ctx: PlainContext | None = None,
) -> http.Response:
    """One request through `app.fetch`."""
    request = http.Request(f"https://example.test{path}", method=method, headers=headers, body=body)
    return await app.fetch(request, env, ctx or PlainContext())


async def answer(app: App[Any], path: str = "/", **options: Any) -> tuple[int, Any]:
    """Status and JSON body of one request."""
    response = await ask(app, path, **options)
    return response.status, await response.json()
