"""A client for tests: requests through `app.fetch`, with nothing in between.

It keeps cookies as a browser would keep them for one site, and gives every request the same
execution context, so that a test can wait for the work given to `wait_until`.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Self
from weakref import WeakKeyDictionary

from typing_extensions import TypeVar

from core import http
from core.app import App
from core.context import ExecutionContext, ScheduledEvent, system_clock
from core.description import description_of
from core.explain.diagnosis import with_note
from core.explain.failure import Failure, failure_of, is_failure
from core.http.dates import read_date
from core.http.escapes import encode_query
from core.request import Request
from core.response import Response
from core.testing import seam
from core.testing.clock import clock_of
from core.testing.context import FakeExecutionContext

if TYPE_CHECKING:
    from core.http.websocket import ConnectedWebSocket
    from core.mcp import MCP
    from core.openapi.contract import Contract
    from core.testing.mcp import MCPClient
    from core.testing.spans import SpanRecorder
    from core.testing.web_socket import ClientWebSocket

__tracebackhide__ = True  # pytest shows the line of the test

E = TypeVar("E", default=Any)

contract_of: Callable[[App[Any]], Contract | None] | None = None
"""The pytest plugin's contract for clients that are given none: the one of its setting `core_openapi`."""

recorder: SpanRecorder | None = None
"""The recorder that the fixture `core_spans` gave its test: every client that is made meanwhile is traced by it."""
failures: deque[tuple[str, Failure]] = deque(maxlen=5)
"""What failed in the requests of the test that runs, each with its request. pytest shows it where the test fails."""
_asked: ContextVar[str] = ContextVar("core_testing_asked", default="A request")
clients: WeakKeyDictionary[Client[Any], None] = WeakKeyDictionary()
"""The clients in use, in order, for a `core_spans` that is asked for after them and for the death of an isolate."""


class Client(Generic[E]):
    """Requests to `app` over the bindings `env`.

        client = Client(app, env(Env))
        response = await client.post("/users", json={"name": "Ada"})
        assert response.status == 201

    Paths are relative to `base_url`. `headers` go with every request; `ip` is the address that the host would write
    into `Edge-Connecting-IP`. `ctx` is a `FakeExecutionContext` unless one is given, on the clock of the fakes in
    `env`, so that a request and its bindings agree on the time: a `FakeClock` handed to them rules here too, and fakes
    without one follow the machine's.

    `contract` is an OpenAPI document, or its file, that every response is compared with: one that the document does not
    allow raises ContractError, an AssertionError. Without one it is the document of the pytest setting `core_openapi`;
    False is none at all. Raises MissingExtraError where the extra `openapi` is not installed.

    `place` is where its requests come in, for a `FakeKVNamespace(places=2)`: 0 by default. In a simulation of several
    places, clients are at each in turn.
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
        contract: Contract | Path | str | Literal[False] | None = None,
        place: int | None = None,
    ) -> None:
        self.app = app
        self.env = env
        self.ctx: ExecutionContext | FakeExecutionContext = (
            ctx if ctx is not None else FakeExecutionContext(clock=clock_of(env))
        )
        self.base_url: str = base_url.rstrip("/")
        self.headers: dict[str, str] = dict(headers) if headers else {}
        if app.dispatcher.failures.on_failure is None:
            app.dispatcher.failures.on_failure = _note_failure
        self.ip = ip
        if place is None:
            place = next(seam.running.turns)
        self.place: int = place
        self.contract: Contract | None = _contract(app, contract)
        self._sessions: list[tuple[ConnectedWebSocket, asyncio.Future[None]]] = []
        self._started = False
        self._in_flight: set[asyncio.Task[object]] = set()
        self.cookies: dict[str, str] = {}
        """The cookies that the application has set, by name. A test may add to it."""
        clients[self] = None
        if recorder is not None:
            recorder.attach(app, env)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: str | bytes | AsyncIterable[bytes] | None = None,
        json: object = ...,
        query: Mapping[str, str] | None = None,
    ) -> http.Response:
        """Send one request. `json` is sent as JSON; `query` is added to the URL's own."""
        if not url.startswith("/") and "://" not in url:
            raise ValueError(f'a path begins with "/". Write client.{method.lower()}("/{url}")')
        if query:
            url += ("&" if "?" in url else "?") + encode_query(list(query.items()))
        content = {"body": body} if json is ... else {"json": json}
        return await self._answered(self._message(method, url, headers or {}, **content))

    def _message(self, method: str, url: str, headers: Mapping[str, str], **content: Any) -> http.Request:
        merged = self._own_headers()
        merged.update(headers)
        whole = self.base_url + url if url.startswith("/") else url
        return http.Request(whole, method=method, headers=merged, **content)

    async def fetch(self, request: http.Request | str, /) -> http.Response:
        """Send a request that is made already, or a GET of an absolute URL, as a service binding does.

        A client of `core client` sends through it, without a network: `fetch_transport(client.fetch, http.Request)`.
        The headers, cookies and address of this client go along where the request has none of that name.
        """
        message = http.Request(request) if isinstance(request, str) else request
        for name, value in self._own_headers().items():
            if name not in message.headers:
                message.headers[name] = value
        return await self._answered(message)

    def _own_headers(self) -> http.Headers:
        merged = http.Headers(self.headers)
        if self.ip is not None:
            merged["Edge-Connecting-IP"] = self.ip
        if self.cookies:
            merged["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return merged

    async def _answered(self, message: http.Request) -> http.Response:
        contract = self.contract
        sent: bytes | None = None
        if (
            contract is not None
            and contract.examples is not None
            and "json" in message.headers.get("Content-Type", "").lower()
        ):
            sent = await message.clone().bytes()
        await self._start()
        task = asyncio.current_task()
        assert task is not None
        self._in_flight.add(task)
        asked = f"{message.method} {message.path}"
        _asked.set(asked)
        try:
            answer = await seam.running.event(asked, self.place, lambda: self.app.fetch(message, self.env, self.ctx))
            response = _dead() if answer is None else answer
        except asyncio.CancelledError as cancelled:
            if cancelled.args != (_CRASHED,):
                raise
            task.uncancel()
            response = _dead()
        finally:
            self._in_flight.discard(task)
        for text in response.headers.get_set_cookie():
            self._keep(text)
        if contract is not None:
            # JSON is compared whole. Anything else may be a stream without an end: its items are the test's.
            body: bytes | None = b"" if response.body is None else None
            if "json" in response.headers.get("Content-Type", "").lower():
                body = await response.clone().bytes()
            contract.check(message.method, message.path, response.status, response.headers, body, sent=sent)
        return response

    async def trigger(self, cron: str, /) -> None:
        """Let the cron trigger `cron` come up now. A simulation may let it come up twice. See `App.trigger`."""
        event = ScheduledEvent(cron, (clock_of(self.env) or system_clock).time())
        await self._start()
        for _ in range(1 + seam.running.draw("cron", 2)):
            await seam.running.event(cron, self.place, lambda: self.app.trigger(event, self.env, self.ctx))

    async def _die(self) -> None:
        """End what runs in the isolate. See `core_env.crash`."""
        for task in self._in_flight:
            task.cancel(_CRASHED)
        for socket, session in self._sessions:
            socket.end(1006)
            session.cancel()
        self._sessions.clear()
        if isinstance(self.ctx, FakeExecutionContext):
            await self.ctx._die()
        await self.__aexit__()

    async def _start(self) -> None:
        """Enter the lifespans of the application with the first request."""
        if not self._started:
            self._started = True
            await self.app.startup(self.env)

    async def __aenter__(self) -> Self:
        """Enter the lifespans of the application, which the first request would do."""
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave them. Without `async with` they end with the test's event loop."""
        if self._started:
            self._started = False
            await self.app.shutdown(self.env)

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
    ) -> ClientWebSocket:
        """Open a WebSocket on a route of `app.websocket`, and return the client's end.

            socket = await client.websocket("/rooms/7")
            await socket.send("hello")
            assert await socket.receive() == "hello"

        The session runs beside the test until either side closes. Raises WebSocketClosed with the status as its code
        and the body as its reason where the application refuses. `receive` waits for 30 seconds, its `patience`: a
        handler that fails in a Durable Object is in the log, and leaves the connection open.
        """
        from core.http.websocket import ConnectedWebSocket, WebSocketClosed
        from core.testing.web_socket import ClientWebSocket

        own = {"Upgrade": "websocket", "Connection": "Upgrade", **(headers or {})}
        if protocols:
            own["Sec-WebSocket-Protocol"] = ", ".join(protocols)
        res = await self._dispatched(self._message("GET", url, own))
        if res.status_code != 101 or res.upgrade is None:
            raise WebSocketClosed(res.status_code, await res.to_http().text())
        server, client = ConnectedWebSocket(res.upgrade.protocol), ClientWebSocket(res.upgrade.protocol)
        server.connect(client)
        client.headers = res.to_http().headers
        for cookie in client.headers.get_set_cookie():
            self._keep(cookie)
        self._sessions.append((server, asyncio.ensure_future(res.upgrade.run(server))))
        return client

    def mcp(
        self,
        server: MCP[E, Any] | None = None,
        /,
        *,
        user: object = None,
        answer: Callable[[str, dict[str, Any]], dict[str, Any] | None] | None = None,
    ) -> MCPClient:
        """A client of the application's MCP server, which needs naming only where there are several.

            tools = client.mcp(user=User(id=1))
            assert await tools.call(note, id=1) == Note(1, "first")

        `user` is whom the server's authenticator would have found, which is not asked then. `answer(message, schema)`
        answers the forms that tools ask to be filled in: a dict, or None to decline.

        Raises LookupError where the application has no server.
        """
        from core.routing.offered import servers_in
        from core.testing.mcp import MCPClient

        found = servers_in(self.app.entries())
        if server is None and len(found) != 1:
            raise LookupError(f"the application has {len(found)} MCP servers. Name one: client.mcp(server)")
        chosen = found[0] if server is None else server

        async def send(path: str, headers: Mapping[str, str], json: dict[str, object]) -> http.Response:
            message = self._message("POST", path, headers, json=json)
            res = await self._dispatched(message, {} if user is None else {chosen.behind: user})
            return res.to_http()

        return MCPClient(send, chosen, answer)

    async def _dispatched(self, message: http.Request, users: Mapping[object, object] = {}) -> Response:
        """The response as a host sees it; `users` are those that authenticators have found already."""
        await self._start()
        req, res = Request(message, self.env, self.ctx), Response()
        req._app = self.app
        req._known_users = users
        await self.app.dispatcher.respond(req, res)
        return res

    def _keep(self, text: str) -> None:
        (name, value), *given = [each.strip().partition("=")[::2] for each in text.split(";")]
        attributes = {key.lower(): value for key, value in given}
        now = (clock_of(self.env) or system_clock).time()
        ends: float | None = read_date(attributes.get("expires"), now)
        if re.fullmatch(r"-?\d+", attributes.get("max-age", "")):  # counts more than a date: RFC 6265, section 4.1.2.2
            ends = now + int(attributes["max-age"])
        if ends is not None and ends <= now:
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = value


_CRASHED = "the isolate died"


def _note_failure(error: Exception) -> None:
    """Keep the record of a failure for pytest. An error handler may log the error: that log has the fix too."""
    with_note(error)
    if is_failure(error):
        failures.append((_asked.get(), failure_of(error)))


def _dead() -> http.Response:
    return http.Response(_CRASHED, status=500)


def _contract(app: App[Any], given: Contract | Path | str | Literal[False] | None) -> Contract | None:
    contract: Contract | None
    if given is None:
        contract = None if contract_of is None else contract_of(app)
    elif isinstance(given, str | Path):
        from core.openapi.contract import Contract

        contract = Contract.read(given)
    else:
        contract = given or None
    if contract is not None:
        for route in app.entries():
            said = description_of(route.handler)
            if said is not None and said.hidden and route.method is not None:
                contract.hide(route.method, route.pattern.text)
    return contract
