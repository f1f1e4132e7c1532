"""Rooms on the fakes: what a room keeps while its instance is evicted."""

from __future__ import annotations

from typing import Any

import pytest

from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.backends.embedded.store import Store
from core.bindings.durable_object import DurableObject
from core.bindings.object_socket import DurableObjectWebSocket, WebSocketRequestResponsePair, web_socket_pair
from core.http import Request, Response
from core.http.websocket import WebSocket, WebSocketClosed
from core.testing import FakeClock, FakeDurableObjectNamespace

JOIN = Request("https://room/", headers={"Upgrade": "websocket"})


class Room(DurableObject[Any]):
    seen = 0

    async def fetch(self, request: Request) -> Response:
        client, server = web_socket_pair()
        self.ctx.accept_web_socket(server, ["member"])
        server.serialize_attachment({"joined": True})
        self.ctx.set_web_socket_auto_response(WebSocketRequestResponsePair("ping", "pong"))
        return Response.websocket(client)

    async def web_socket_message(self, socket: DurableObjectWebSocket, message: str | bytes) -> None:
        self.seen += 1
        await self.ctx.storage.put("last", message)
        for member in self.ctx.get_web_sockets("member"):
            member.send(f"{self.seen} {member.deserialize_attachment()}")

    async def get_seen(self) -> int:
        return self.seen


async def join(rooms: Any) -> WebSocket:
    response = await rooms.get_by_name("a").fetch(JOIN)
    assert response.web_socket is not None
    socket: WebSocket = response.web_socket
    return socket


async def test_an_evicted_room_keeps_its_sockets_with_tags_and_attachments_and_loses_its_memory() -> None:
    rooms = FakeDurableObjectNamespace(Room)
    member = await join(rooms)
    await member.send("one")
    await member.send("two")
    assert [await member.receive(), await member.receive()] == ["1 {'joined': True}", "2 {'joined': True}"]

    await rooms.evict("a")

    await member.send("three")
    assert await member.receive() == "1 {'joined': True}"
    assert await rooms.storage("a").get("last") == "three"
    await member.close()


async def test_an_automatic_answer_does_not_make_an_evicted_room_anew() -> None:
    rooms = FakeDurableObjectNamespace(Room)
    member = await join(rooms)
    await rooms.evict("a")
    before = dict(rooms.objects._living)
    await member.send("ping")
    assert await member.receive() == "pong"
    assert rooms.objects._living == before == {}
    await member.close()


async def test_a_room_that_is_not_there_can_be_evicted() -> None:
    await FakeDurableObjectNamespace(Room).evict("nobody")


async def test_the_end_of_a_namespace_closes_its_sockets_with_1001() -> None:
    rooms = FakeDurableObjectNamespace(Room)
    member = await join(rooms)
    await rooms.close()
    with pytest.raises(WebSocketClosed) as closed:
        await member.receive()
    assert closed.value.code == 1001


async def test_an_idle_object_is_evicted_where_the_engine_is_told_to() -> None:
    clock = FakeClock()
    with Store(clock=clock) as store:
        rooms = EmbeddedDurableObjectNamespace(store, "rooms", Room)
        rooms.objects.evict_after = 10.0
        member = await join(rooms)
        await member.send("one")
        assert await member.receive() == "1 {'joined': True}"
        await clock.advance(25)
        await member.send("two")
        assert await member.receive() == "1 {'joined': True}"
        await member.send("three")
        assert await member.receive() == "2 {'joined': True}"
        await rooms.close()


async def test_a_client_that_does_not_read_is_closed_and_holds_up_nobody() -> None:
    class Loud(Room):
        async def web_socket_message(self, socket: DurableObjectWebSocket, message: str | bytes) -> None:
            for member in self.ctx.get_web_sockets():
                member.send("x" * 1024 * 1024)

    rooms = FakeDurableObjectNamespace(Loud)
    slow, quick = await join(rooms), await join(rooms)
    for _ in range(20):
        await quick.send("go")
        assert len(await quick.receive()) == 1024 * 1024
    kept = [len(message) async for message in slow]
    assert len(kept) == 16
    with pytest.raises(WebSocketClosed) as closed:
        await slow.receive()
    assert closed.value.code == 1013
    await quick.close()
