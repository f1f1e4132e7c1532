"""The clicks of one link while they happen: one Durable Object for each link, with the WebSockets of its pages."""

from core import Bindings, DurableObject, http, web_socket_pair

GONE = 4404
"""The code that a connection is closed with when its link is deleted."""


class Live(DurableObject[Bindings]):
    async def tell(self, clicks: int) -> None:
        """Send the new count to everyone who has the page open."""
        # Two batches may end in either order: the count never goes back.
        if clicks > (await self.ctx.storage.get("clicks") or 0):
            await self.ctx.storage.put("clicks", clicks)
            for page in self.ctx.get_web_sockets():
                page.send(str(clicks))

    async def end(self) -> None:
        for page in self.ctx.get_web_sockets():
            page.close(GONE, "deleted")
        await self.ctx.storage.delete_all()

    async def fetch(self, request: http.Request) -> http.Response:
        client, server = web_socket_pair()
        self.ctx.accept_web_socket(server)
        server.send(str(await self.ctx.storage.get("clicks") or 0))
        return http.Response.websocket(client)
