"""Operations that a room does not have."""

from core import DurableObject, DurableObjectWebSocket, http, web_socket_pair


class Room(DurableObject[object]):
    async def fetch(self, request: http.Request) -> http.Response:
        client, server = web_socket_pair()
        self.ctx.accept_web_socket(client)  # E
        server.send(1)  # E
        return http.Response.websocket(server)  # E

    async def web_socket_message(self, socket: DurableObjectWebSocket, message: str) -> None:  # E
        self.ctx.get_web_sockets(1)  # E
