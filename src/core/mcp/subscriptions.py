"""Clients that listen for changes: `subscriptions/listen`, whose answer is a stream of events.

A request holds the stream, and a Durable Object knows all of them: each has a WebSocket to it, which costs nothing
while nothing changes. What the object says to all, each passes on as far as its client has asked for it and may know
it. Nothing is replayed: a client whose stream ends listens anew, and reads what it depends on.
https://modelcontextprotocol.io/specification/2026-07-28/basic/utilities/subscriptions
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from core.bindings.durable_object import DurableObject
from core.bindings.object_socket import web_socket_pair
from core.context import Clock
from core.http import Request, Response, json
from core.http.json import JsonObject
from core.http.websocket import WebSocketClosed
from core.mcp.messages import LISTEN_KEY, Call, notification

_SECONDS: Final = 3600
"""A stream ends after an hour: a client that listens anew is asked for its rights anew."""
_IN_ORDER: Final = (1000, 1001)
"""The codes of a connection whose hour is over, or whose server stops."""


class Subscriptions(DurableObject[Any]):
    """The Durable Object that knows which clients listen: for `MCP(…, subscriptions=lambda env: env.LISTEN)`.

        [[durable_objects.bindings]]
        name = "LISTEN"
        class_name = "Subscriptions"

    The main module imports it, and `Env` has `LISTEN: DurableObjectNamespace[Subscriptions]`.
    """

    async def fetch(self, request: Request, /) -> Response:
        """Connect a stream."""
        client, server = web_socket_pair()
        self.ctx.accept_web_socket(server)
        return Response.websocket(client)

    async def changed(self, uris: list[str], tools: bool) -> None:
        """Tell every stream what has changed."""
        for socket in self.ctx.get_web_sockets():
            socket.send(json.dumps({"uris": uris, "tools": tools}))


async def events(call: Call, listeners: Subscriptions, answer: JsonObject, clock: Clock) -> AsyncIterator[JsonObject]:
    """What a stream says: the part of the client's wishes that it fulfils, each change, and `answer` at its end.

    A stream that breaks ends without `answer`, from which the client knows that it may have missed something.
    """
    honored, meta = call.honored or {}, {LISTEN_KEY: call.id}
    response = await listeners.fetch(Request("https://subscriptions/", headers={"Upgrade": "websocket"}))
    socket = response.web_socket
    assert socket is not None
    over = clock.call_later(_SECONDS, lambda: asyncio.ensure_future(socket.close()))
    try:
        # From here on it misses nothing.
        yield notification("subscriptions/acknowledged", {"notifications": honored, "_meta": meta})
        while True:
            change = await socket.receive_json()
            if change["tools"] and "toolsListChanged" in honored:
                yield notification("tools/list_changed", {"_meta": meta})
            for uri in change["uris"]:
                if uri in honored.get("resourceSubscriptions", ()):
                    yield notification("resources/updated", {"uri": uri, "_meta": meta})
    except WebSocketClosed as closed:
        if closed.code in _IN_ORDER:
            yield answer
    finally:
        over.cancel()
        await socket.close()
