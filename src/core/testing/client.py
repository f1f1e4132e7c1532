"""A client for tests: requests through `app.fetch`, with nothing in between.

It keeps cookies as a browser would keep them for one site, and gives every request the same
execution context, so that a test can wait for what was given to `wait_until`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from core import http
from core.app import App
from core.context import ExecutionContext
from core.testing.context import FakeExecutionContext

if TYPE_CHECKING:
    from core.http.websocket import ConnectedWebSocket

__all__ = ["Client"]

E = TypeVar("E")


class Client(Generic[E]):
    """Requests to `app` over the bindings `env`.

        client = Client(app, env(Env))
        response = await client.post("/users", json={"name": "Ada"})
        assert response.status == 201

    Paths are relative to `base_url`. `headers` go with every request; `ip` is what the host would write into
    `Edge-Connecting-IP`. `ctx` is a `FakeExecutionContext` unless one is given.
    """

    def __init__(
        self,
        app: App[E],
        env: E,
        ctx: ExecutionContext | None = None,
        *,
        base_url: str = "https://example.test",
        headers: Mapping[str, str] | None = None,
        ip: str | None = "203.0.113.7",
    ) -> None:
        self.app = app
        self.env = env
        self.ctx: ExecutionContext | FakeExecutionContext = ctx if ctx is not None else FakeExecutionContext()
        self.base_url: str = base_url.rstrip("/")
        self.headers: dict[str, str] = dict(headers) if headers else {}
        self.ip = ip
        self._sessions: list[asyncio.Future[None]] = []
        self.cookies: dict[str, str] = {}
        """What the application has set, by name. A test may add to it."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: str | bytes | AsyncIterable[bytes] | None = None,
        json: Any = ...,
        query: Mapping[str, str] | None = None,
    ) -> http.Response:
        """Send one request. `json` is sent as JSON; `query` is added to the URL's own."""
        if url.startswith("/"):
            url = self.base_url + url
        if query:
            url += ("&" if "?" in url else "?") + http.url.encode_query(list(query.items()))
        merged = http.Headers(self.headers)
        if self.ip is not None:
            merged["Edge-Connecting-IP"] = self.ip
        if self.cookies:
            merged["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        for name, value in (headers or {}).items():
            merged[name] = value
        if json is ...:
            message = http.Request(url, method=method, headers=merged, body=body)
        else:
            message = http.Request(url, method=method, headers=merged, json=json)
        response = await self.app.fetch(message, self.env, self.ctx)
        for text in response.headers.get_set_cookie():
            self._keep(text)
        return response

    async def get(self, url: str, **options: Any) -> http.Response:
        """Send a GET; options as for `request`."""
        return await self.request("GET", url, **options)

    async def head(self, url: str, **options: Any) -> http.Response:
        """Send a HEAD; options as for `request`."""
        return await self.request("HEAD", url, **options)

    async def post(self, url: str, **options: Any) -> http.Response:
        """Send a POST; options as for `request`."""
        return await self.request("POST", url, **options)

    async def put(self, url: str, **options: Any) -> http.Response:
        """Send a PUT; options as for `request`."""
        return await self.request("PUT", url, **options)

    async def patch(self, url: str, **options: Any) -> http.Response:
        """Send a PATCH; options as for `request`."""
        return await self.request("PATCH", url, **options)

    async def delete(self, url: str, **options: Any) -> http.Response:
        """Send a DELETE; options as for `request`."""
        return await self.request("DELETE", url, **options)

    async def options(self, url: str, **options: Any) -> http.Response:
        """Send an OPTIONS; options as for `request`."""
        return await self.request("OPTIONS", url, **options)

    async def websocket(
        self, url: str, *, protocols: Sequence[str] = (), headers: Mapping[str, str] | None = None
    ) -> ConnectedWebSocket:
        """Open a WebSocket on a route of `app.websocket`, and return the client's end.

            socket = await client.websocket("/rooms/7")
            await socket.send("hello")
            assert await socket.receive() == "hello"

        The session runs beside the test until either side closes. Raises WebSocketClosed with the status as its code
        and the body as its reason where the application refuses.
        """
        from core.http.websocket import WebSocketClosed, pair
        from core.request import Request
        from core.response import Response

        merged = http.Headers({**self.headers, "Upgrade": "websocket", "Connection": "Upgrade", **(headers or {})})
        if self.ip is not None:
            merged["Edge-Connecting-IP"] = self.ip
        if self.cookies:
            merged["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if protocols:
            merged["Sec-WebSocket-Protocol"] = ", ".join(protocols)
        message = http.Request(self.base_url + url if url.startswith("/") else url, headers=merged)
        res = Response()
        await self.app.dispatcher.respond(Request(message, self.env, self.ctx), res)
        if res.status_code != 101 or res.upgrade is None:
            raise WebSocketClosed(res.status_code, await res.to_http().text())
        server, client = pair(res.upgrade.protocol)
        self._sessions.append(asyncio.ensure_future(res.upgrade.run(server)))
        return client

    def _keep(self, text: str) -> None:
        pair, *attributes = text.split(";")
        name, _, value = pair.strip().partition("=")
        gone = any(attribute.strip().lower() in ("max-age=0", "max-age=-1") for attribute in attributes)
        if gone:
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = value
