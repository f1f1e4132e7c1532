"""The WebSockets that a worker opens: the server's end of a new pair runs the session, or another connection is handed
on.
"""

from __future__ import annotations

from core.backends.workerd.conversion import bridge
from core.backends.workerd.web_socket import WorkerdWebSocket
from core.context import ExecutionContext
from core.http.websocket import Upgrade


def open_socket(upgrade: Upgrade, ctx: ExecutionContext) -> object:
    """The client's end for the runtime's response, while the session begins on the server's."""
    if isinstance(upgrade.peer, WorkerdWebSocket):
        # The runtime carries the messages itself, with nothing of this request in between.
        return upgrade.peer.js_socket
    client, server = bridge().js.WebSocketPair.new().object_values()
    socket = WorkerdWebSocket(server, upgrade.protocol)
    socket.accept()
    ctx.wait_until(_run(upgrade, socket))
    return client


async def _run(upgrade: Upgrade, socket: WorkerdWebSocket) -> None:
    socket.within()
    await upgrade.run(socket)
    await socket.drained()
