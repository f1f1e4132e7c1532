"""A chat room: one Durable Object for each, which owns the connections of its members."""

import attrs

from core import (
    Bindings,
    DurableObject,
    DurableObjectNamespace,
    DurableObjectWebSocket,
    Request,
    Response,
    create_app,
    http,
    web_socket_pair,
)


# --8<-- [start:room]
class Room(DurableObject["Env"]):
    async def fetch(self, request: http.Request) -> http.Response:
        if request.headers.get("upgrade") != "websocket":
            return http.Response("a room is for WebSockets", status=426)
        name = http.URL(request.url).search_params.get("name") or "somebody"
        client, server = web_socket_pair()
        self.ctx.accept_web_socket(server)
        server.serialize_attachment(name)
        return http.Response.websocket(client)

    async def web_socket_message(self, socket: DurableObjectWebSocket, message: str | bytes) -> None:
        self.say(f"{socket.deserialize_attachment()}: {message!s}")

    async def web_socket_close(self, socket: DurableObjectWebSocket, code: int, reason: str, was_clean: bool) -> None:
        self.say(f"{socket.deserialize_attachment()} left")

    def say(self, text: str) -> None:
        for member in self.ctx.get_web_sockets():
            member.send(text)


# --8<-- [end:room]


# --8<-- [start:app]
@attrs.frozen
class Env(Bindings):
    ROOMS: DurableObjectNamespace[Room]


app = create_app(Env)


@app.get("/rooms/:room")
async def join(req: Request[Env], res: Response) -> None:
    room = req.env.ROOMS.get_by_name(req.params["room"])
    res.send(await room.fetch(req.to_http()))


# --8<-- [end:app]
