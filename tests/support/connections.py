"""A connection of our HTTP server over two sockets, and an application that answers in every way that ASGI has."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn

from core.hosts.connection import Connection, State
from core.hosts.limits import Limits

START = "http.response.start"
BODY = "http.response.body"
EVENT = b"data: x\n\n"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer as the path says."""

    async def start(*headers: tuple[bytes, bytes], status: int = 200) -> None:
        await send({"type": START, "status": status, "headers": headers})

    async def body(data: bytes, more_body: bool = False) -> None:
        await send({"type": BODY, "body": data, "more_body": more_body})

    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        hosts = [value.decode() for name, value in scope["headers"] if name == b"host"]
        where = " ".join([scope["path"], *hosts])
        await send({"type": "websocket.send", "text": where if scope["path"] == "/host" else "pong"})
        return
    match scope["path"]:
        case "/known":
            await start((b"content-length", b"4"))
            await body(b"pong")
        case "/turns":
            for _ in range(10):
                await asyncio.sleep(0)
            await start((b"content-length", b"4"))
            await body(b"pong")
        case "/large":
            await start((b"content-length", b"100000"))
            await body(b"x" * 100_000)
        case "/parts":
            await start((b"content-length", b"4"))
            await body(b"po", more_body=True)
            await body(b"ng")
        case "/stream":
            await start()
            for part in (b"first", b"", b"second"):
                await body(part, more_body=True)
            await body(b"")
        case "/events":
            await start((b"content-type", b"text/event-stream"))
            await body(EVENT, more_body=True)
            while (await receive())["type"] != "http.disconnect":
                pass
        case "/left":
            await start()
            while (await receive())["type"] != "http.disconnect":
                pass
        case "/gone":
            while (await receive())["type"] != "http.disconnect":
                pass
            await start((b"content-length", b"4"))
            await body(b"gone")
        case "/bare":
            await send({"type": START, "status": 204})
            await send({"type": BODY})
        case "/last":
            await start((b"connection", b"close"), (b"content-length", b"4"))
            await body(b"last")
        case "/unchanged":
            await start((b"content-length", b"4"), status=304)
            await body(b"")
        case "/echo":
            data = b""
            more = True
            while more:
                message = await receive()
                data += message.get("body", b"")
                more = message.get("more_body", False)
            late = [pair for pair in scope["headers"] if pair[0] == b"x-late"]
            await start((b"content-length", b"%d" % len(data)), (b"x-method", scope["method"].encode()), *late)
            await body(data)
        case "/":
            await start((b"content-length", b"%d" % len(scope["raw_path"])))
            await body(scope["raw_path"])
        case "/host":
            host = b" ".join(value for name, value in scope["headers"] if name == b"host")
            await start((b"content-length", b"%d" % len(host)))
            await body(host)
        case "/given":
            name, _, value = scope["query_string"].partition(b"=")
            await start((name, value.replace(b"%0d", b"\r")), (b"content-length", b"0"))
            await body(b"")
        case "/nothing":
            return
        case "/fails":
            raise LookupError("a secret")
        case "/fails-within":
            await start()
            await body(b"a part", more_body=True)
            raise LookupError("a secret")
        case "/short":
            await start((b"content-length", b"4"))
            await body(b"po")
        case "/long":
            await start((b"content-length", b"4"))
            await body(b"pong and more")
        case "/body-first":
            await body(b"pong")
        case "/twice":
            await start((b"content-length", b"4"))
            await body(b"pong")
            await body(b"pong")


async def answered(*pieces: bytes, until: bytes = b"", then: bytes = b"", ends: bool = False) -> bytes:
    """The bytes that come back for those pieces, to the end of the connection or those of `until`.

    Where `until` has come and there is `then`, it is sent, and the rest comes back too. With `ends` the client says
    behind the pieces that it sends no more. Nothing of the connection may be left over.
    """
    loop = asyncio.get_running_loop()
    state = State(Limits())
    config = uvicorn.Config(
        application, interface="asgi3", log_config=None, proxy_headers=False, ws="websockets-sansio"
    )
    config.load()
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        _, connection = await loop.connect_accepted_socket(
            lambda: Connection(config=config, server_state=state, app_state={}), sock=theirs
        )

        async def send() -> None:
            for piece in pieces:
                await loop.sock_sendall(ours, piece)
                await asyncio.sleep(0)
            if ends:
                ours.shutdown(socket.SHUT_WR)

        received = b""
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(send())
            while then or not until or not received.endswith(until):
                if then and received.endswith(until):
                    await loop.sock_sendall(ours, then)
                    then = until = b""
                if not (piece := await loop.sock_recv(ours, 65536)):
                    break
                received += piece
                if EVENT in received:
                    connection.end_events()  # as at the end of a server
    for _ in range(3):
        await asyncio.sleep(0)
    assert not state.tasks
    assert not state.connections
    return received
