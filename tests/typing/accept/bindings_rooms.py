"""A Durable Object that owns its WebSockets: what its methods take, and what a response is made of."""

from datetime import datetime
from typing import assert_type

from core import DurableObject, DurableObjectWebSocket, http, web_socket_pair
from core.bindings.object_socket import WebSocketRequestResponsePair
from core.http.websocket import ClientEnd, WebSocket
from core.testing import FakeDurableObjectNamespace


class Room(DurableObject[object]):
    async def fetch(self, request: http.Request) -> http.Response:
        client, server = web_socket_pair()
        assert_type(client, ClientEnd)
        assert_type(server, DurableObjectWebSocket)
        self.ctx.accept_web_socket(server, ["member"])
        return http.Response.websocket(client, headers={"Sec-WebSocket-Protocol": "chat"})

    async def web_socket_message(self, socket: DurableObjectWebSocket, message: str | bytes) -> None:
        assert_type(self.ctx.get_web_sockets("member"), list[DurableObjectWebSocket])
        assert_type(self.ctx.get_tags(socket), list[str])
        assert_type(self.ctx.get_web_socket_auto_response_timestamp(socket), datetime | None)
        self.ctx.set_web_socket_auto_response(WebSocketRequestResponsePair("ping", "pong"))
        socket.send(message)

    async def web_socket_close(self, socket: DurableObjectWebSocket, code: int, reason: str, was_clean: bool) -> None:
        socket.close(code, reason)


async def evicts(rooms: FakeDurableObjectNamespace[Room]) -> None:
    response = await rooms.get_by_name("a").fetch(http.Request("https://a/"))
    assert_type(response.web_socket, WebSocket | None)
    await rooms.evict("a")
