"""Clients that listen for changes, over the fake of a Durable Object: `subscriptions/listen`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest

from core import Bindings, CoreError, DurableObjectNamespace, Request, create_app
from core.errors import DeveloperError
from core.mcp import MCP, Subscriptions
from core.mcp.messages import CAPABILITIES_KEY, LATEST, LISTEN_KEY, SERVER_KEY, VERSION_KEY
from core.testing import Client, FakeClock, FakeDurableObjectNamespace, FakeExecutionContext

META: dict[str, Any] = {VERSION_KEY: LATEST, CAPABILITIES_KEY: {}}
HEADERS = {"MCP-Protocol-Version": LATEST, "Accept": "application/json, text/event-stream"}


@attrs.frozen
class Env(Bindings):
    LISTEN: DurableObjectNamespace[Subscriptions]


@attrs.frozen
class User:
    id: int


class Server:
    """A server with a tool and notes, of which each belongs to the user of its number."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.objects = FakeDurableObjectNamespace(Subscriptions, clock=self.clock)
        self.env = Env(self.objects)
        app = create_app(Env)
        self.mcp = MCP(app, "notes", behind=signed_in, subscriptions=lambda env: env.LISTEN)
        self.client = Client(app, self.env, FakeExecutionContext(clock=self.clock))
        self.mcp.tool(rename)
        self.mcp.resource("notes://{id}")(note)

    def post(self, method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": "l-1", "method": method, "params": {"_meta": META, **params}}
        return self.client.post("/mcp", json=body, headers={**HEADERS, "Mcp-Method": method})

    @asynccontextmanager
    async def listen(self, *uris: str, **wanted: Any) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
        """The messages of a stream, the acknowledgement first."""
        response = await self.post("subscriptions/listen", notifications={"resourceSubscriptions": [*uris], **wanted})
        assert response.headers["content-type"] == "text/event-stream"
        stream = response.stream()
        try:
            yield messages(stream)
        finally:
            await stream.aclose()

    @property
    def listening(self) -> int:
        """The number of streams that the object knows."""
        return len(self.objects.objects.sockets(self.objects.id_from_name("/mcp")))

    async def forget(self) -> None:
        """Wait until the object knows of no stream."""
        async with asyncio.timeout(30):
            while self.listening:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0)


async def signed_in(req: Request[Env]) -> User:
    return User(1)


async def rename(req: Request[Env, User], id: int) -> str:
    """Rename a note."""
    return "done"


async def note(req: Request[Env, User], id: int) -> str:
    """A note."""
    if id != req.user.id:
        raise CoreError(503 if id == 5 else 403, "Not yours")
    return "milk"


async def messages(stream: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    async for chunk in stream:
        assert chunk.startswith(b"data: ")
        yield json.loads(chunk.removeprefix(b"data: "))


@pytest.fixture
def server() -> Server:
    return Server()


STREAM = {LISTEN_KEY: "l-1"}


async def test_a_client_hears_of_what_it_has_asked_for_and_of_nothing_else(server: Server) -> None:
    async with server.listen("notes://1", "notes://1") as heard:
        honored = {"resourceSubscriptions": ["notes://1"]}
        assert await anext(heard) == {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": honored, "_meta": STREAM},
        }
        await server.mcp.changed(server.env, "notes://2", tools=True)
        await server.mcp.changed(server.env, "notes://2", "notes://1")
        updated = {"uri": "notes://1", "_meta": STREAM}
        assert await anext(heard) == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": updated}


async def test_a_client_hears_that_guards_decide_otherwise(server: Server) -> None:
    async with server.listen(toolsListChanged=True, promptsListChanged=True, resourcesListChanged=True) as heard:
        assert (await anext(heard))["params"]["notifications"] == {"toolsListChanged": True}
        await server.mcp.changed(server.env, "notes://1")
        await server.mcp.changed(server.env, tools=True)
        assert (await anext(heard))["method"] == "notifications/tools/list_changed"


async def test_who_may_not_read_a_resource_is_not_told_when_it_changes(server: Server) -> None:
    async with server.listen("notes://2", "notes://one", "others://1") as heard:
        assert (await anext(heard))["params"]["notifications"] == {}


async def test_every_stream_of_a_server_hears_of_a_change(server: Server) -> None:
    async with server.listen("notes://1") as one, server.listen("notes://1") as other:
        for each in (one, other):
            await anext(each)
        await server.objects.evict("/mcp")  # the object is idle, and the streams stay
        await server.mcp.changed(server.env, "notes://1")
        assert [(await anext(each))["method"] for each in (one, other)] == ["notifications/resources/updated"] * 2


async def test_a_stream_ends_after_an_hour_so_that_rights_are_asked_for_anew(server: Server) -> None:
    async with server.listen("notes://1") as heard:
        await anext(heard)
        server.clock.advance(3600)
        meta = {SERVER_KEY: {"name": "notes", "version": "1.0.0"}, **STREAM}
        result = {"resultType": "complete", "_meta": meta}
        assert [each async for each in heard] == [{"jsonrpc": "2.0", "id": "l-1", "result": result}]
    await server.forget()


async def test_a_stream_that_breaks_says_nothing_of_an_end(server: Server) -> None:
    async with server.listen("notes://1") as heard:
        await anext(heard)
        server.objects.objects.sockets(server.objects.id_from_name("/mcp")).end(1006)
        assert [each async for each in heard] == []


async def test_a_client_that_goes_away_is_forgotten(server: Server) -> None:
    async with server.listen("notes://1") as heard:
        await anext(heard)
        assert server.listening == 1
    await server.forget()
    async with server.listen("notes://1"):
        pass  # it went away before it was told anything
    assert server.listening == 0


async def test_what_is_changed_is_said_once_and_by_name(server: Server) -> None:
    await server.mcp.changed(server.env, "notes://1", "notes://2")
    assert [(call.method, call.args) for call in server.objects.calls] == [
        ("changed", ("/mcp", ["notes://1", "notes://2"], False))
    ]


@pytest.mark.parametrize("uris", ["notes://1", [1], ["notes://1"] * 101])
async def test_wishes_of_another_form_are_refused(server: Server, uris: Any) -> None:
    response = await server.post("subscriptions/listen", notifications={"resourceSubscriptions": uris})
    assert (response.status, (await response.json())["error"]["code"]) == (400, -32602)


async def test_a_resource_that_fails_is_a_failure_and_no_stream(server: Server) -> None:
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["notes://5"]}
    response = await server.post("subscriptions/listen", notifications=wanted)
    assert (response.status, (await response.json())["error"]["message"]) == (500, "Internal error")


async def test_it_is_announced_where_an_object_is_bound_and_to_clients_that_can_listen(server: Server) -> None:
    found = await (await server.post("server/discover")).json()
    told = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "completions": {}}
    assert found["result"]["capabilities"] == told
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    earlier = await (await server.client.post("/mcp", json=body)).json()
    assert earlier["result"]["capabilities"]["resources"] == {}


async def test_a_server_without_an_object_neither_announces_nor_answers_it() -> None:
    server = Server()
    app = create_app(Env)
    mcp = MCP(app, "notes", path="/plain", behind=signed_in)
    mcp.resource("notes://{id}")(note)
    headers = {**HEADERS, "Mcp-Method": "subscriptions/listen"}
    params = {"_meta": META, "notifications": {}}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    response = await Client(app, server.env).post("/plain", json=body, headers=headers)
    assert (response.status, (await response.json())["error"]["code"]) == (404, -32601)
    with pytest.raises(DeveloperError, match=r"Give subscriptions=lambda env: env\.LISTEN"):
        await mcp.changed(server.env, "notes://1")
