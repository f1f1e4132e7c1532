"""WebSockets of an ASGI application below a prefix."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from core import App, create_app
from core.http.websocket import WebSocket, WebSocketClosed
from core.middleware.cors import cors
from core.testing import Client


async def chat(scope: Any, receive: Any, send: Any) -> None:
    """Echoes; `leave` ends it, `fail` raises, a number closes with that code."""
    if scope["type"] != "websocket":
        raise NotImplementedError
    assert (await receive()) == {"type": "websocket.connect"}
    if scope["path"].endswith("/refused"):
        await send({"type": "websocket.close"})
        return
    if scope["path"].endswith("/answered"):
        assert "websocket.http.response" in scope["extensions"]
        await send({"type": "websocket.http.response.start", "status": 402, "headers": [(b"x-why", b"paid")]})
        await send({"type": "websocket.http.response.body", "body": b"pay first"})
        return
    if scope["path"].endswith("/broken"):
        raise ValueError("a secret")
    await send(
        {
            "type": "websocket.accept",
            "subprotocol": next(iter(scope["subprotocols"]), None),
            "headers": [(b"x-own", b"1"), (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")],
        }
    )
    await send({"type": "websocket.send", "text": f"{scope['scheme']} {scope['root_path']} {scope['path']}"})
    while (message := await receive())["type"] == "websocket.receive":
        if "bytes" in message:
            await send({"type": "websocket.send", "bytes": message["bytes"][::-1]})
            continue
        match message["text"]:
            case "leave":
                return
            case "fail":
                raise RuntimeError("a bug")
            case text if text.isdigit():
                await send({"type": "websocket.close", "code": int(text), "reason": "as asked"})
                ended.append((await receive())["code"])
                return
            case text:
                await send({"type": "websocket.send", "text": f"echo {text}"})
    ended.append(message["code"])
    with pytest.raises(OSError, match="closed"):
        await send({"type": "websocket.send", "text": "too late"})


ended: list[int] = []


@pytest.fixture
def app() -> App[Any]:
    ended.clear()
    app = create_app()
    app.mount("/inner", chat)
    return app


async def test_messages_go_both_ways(app: App[Any]) -> None:
    async with Client(app, None) as client:
        socket = await client.websocket("/inner/a%2Fb", protocols=["chat.v1", "other"])
        assert socket.protocol == "chat.v1"
        assert socket.headers["x-own"] == "1"
        assert socket.headers.get_set_cookie() == ["a=1", "b=2"]
        assert await socket.receive() == "wss /inner /inner/a/b"
        for number in range(20):
            await socket.send(str(number) + "!")
        assert [await socket.receive() for _ in range(20)] == [f"echo {number}!" for number in range(20)]
        await socket.send(b"\x00\xff")
        assert await socket.receive() == b"\xff\x00"
        await socket.send("leave")
        with pytest.raises(WebSocketClosed) as closed:
            await socket.receive()
        assert closed.value.code == 1000


@pytest.mark.parametrize(
    ("asked", "sent"), [(1000, 1000), (1008, 1008), (4001, 4001), (1003, 1008), (1002, 1011), (1006, 1011)]
)
async def test_a_close_keeps_its_code_where_a_handler_may_send_it(app: App[Any], asked: int, sent: int) -> None:
    async with Client(app, None) as client:
        socket = await client.websocket("/inner")
        await socket.receive()
        await socket.send(str(asked))
        with pytest.raises(WebSocketClosed) as closed:
            await socket.receive()
    assert (closed.value.code, closed.value.reason) == (sent, "as asked")
    assert ended == [sent]


async def test_what_it_raises_closes_with_1011_and_is_logged(app: App[Any], caplog: pytest.LogCaptureFixture) -> None:
    async with Client(app, None) as client:
        socket = await client.websocket("/inner")
        await socket.receive()
        await socket.send("fail")
        with pytest.raises(WebSocketClosed) as closed:
            await socket.receive()
    assert (closed.value.code, closed.value.reason) == (1011, "Internal Error")
    assert caplog.text.count("RuntimeError: a bug") == 1


async def test_the_application_hears_of_the_clients_close(app: App[Any]) -> None:
    async with Client(app, None) as client:
        socket = await client.websocket("/inner")
        await socket.receive()
        await socket.close(4321, "bye")
        for _ in range(10):
            await asyncio.sleep(0)
    assert ended == [4321]


async def test_one_that_sends_to_a_client_that_is_gone_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def ticker(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            raise NotImplementedError
        await receive()
        await send({"type": "websocket.accept"})
        while True:
            await send({"type": "websocket.send", "text": "tick"})

    app = create_app()
    app.mount("/", ticker)
    async with Client(app, None) as client:
        socket = await client.websocket("/")
        assert await socket.receive() == "tick"
        await socket.close()
        for _ in range(20):
            await asyncio.sleep(0)
    assert caplog.text == ""


async def test_a_refusal_keeps_the_applications_answer(app: App[Any]) -> None:
    async with Client(app, None) as client:
        for path, status, body in (
            ("refused", 403, '{"error":"Forbidden"}'),
            ("answered", 402, "pay first"),
            ("broken", 500, '{"error":"Internal Server Error"}'),
        ):
            with pytest.raises(WebSocketClosed) as closed:
                await client.websocket(f"/inner/{path}")
            assert (closed.value.code, closed.value.reason) == (status, body)


async def test_pages_of_other_sites_connect_where_cors_names_them(app: App[Any]) -> None:
    elsewhere = {"origin": "https://elsewhere.test"}
    async with Client(app, None) as client:
        with pytest.raises(WebSocketClosed) as closed:
            await client.websocket("/inner", headers=elsewhere)
        assert closed.value.code == 403
        same = await client.websocket("/inner", headers={"origin": "https://example.test"})
        assert await same.receive() == "wss /inner /inner"
        await same.send("leave")
        assert [message async for message in same] == []
    opened = create_app()
    opened.use(cors(origins=["https://elsewhere.test"]))
    opened.mount("/inner", chat)
    async with Client(opened, None) as client:
        other = await client.websocket("/inner", headers=elsewhere)
        assert await other.receive() == "wss /inner /inner"
        await other.send("leave")
        assert [message async for message in other] == []


@pytest.fixture
def rooms() -> App[Any]:
    """An application of `core` with WebSockets, mounted by its `fetch`."""
    inner = create_app()

    @inner.websocket("/rooms/:name", protocols=["chat.v1"], origins=["https://friend.test"], headers={"x-own": "1"})
    async def room(req: Any, socket: WebSocket) -> None:
        await socket.send(f"{req.params['name']} {req.path}")
        async for message in socket:
            match message:
                case "fail":
                    raise RuntimeError("a bug")
                case "leave":
                    await socket.close(4001, "bye")
                    return
                case _:
                    await socket.send(message)

    app = create_app()
    app.mount("/v1", inner.fetch)
    return app


async def test_the_websockets_of_a_mounted_application_of_our_own(rooms: App[Any]) -> None:
    async with Client(rooms, None) as client:
        socket = await client.websocket("/v1/rooms/blue", protocols=["other", "chat.v1"])
        assert (socket.protocol, socket.headers["x-own"]) == ("chat.v1", "1")
        assert await socket.receive() == "blue /rooms/blue"
        for number in range(20):
            await socket.send(f"{number}")
        assert [await socket.receive() for _ in range(20)] == [f"{number}" for number in range(20)]
        await socket.send(b"\x00\xff")
        assert await socket.receive() == b"\x00\xff"
        await socket.send("leave")
        with pytest.raises(WebSocketClosed) as closed:
            await socket.receive()
        assert (closed.value.code, closed.value.reason) == (4001, "bye")
        with pytest.raises(WebSocketClosed) as closed:
            await client.websocket("/v1/nothing")
        assert closed.value.code == 404
        assert (await client.get("/v1/rooms/blue")).status == 426


async def test_its_failure_closes_with_1011_and_is_logged(rooms: App[Any], caplog: pytest.LogCaptureFixture) -> None:
    async with Client(rooms, None) as client:
        socket = await client.websocket("/v1/rooms/blue")
        await socket.receive()
        await socket.send("fail")
        with pytest.raises(WebSocketClosed) as closed:
            await socket.receive()
    assert closed.value.code == 1011
    assert caplog.text.count("RuntimeError: a bug") == 1


async def test_its_own_origins_decide_whose_pages_connect(rooms: App[Any]) -> None:
    async with Client(rooms, None) as client:
        friend = await client.websocket("/v1/rooms/blue", headers={"origin": "https://friend.test"})
        assert await friend.receive() == "blue /rooms/blue"
        await friend.send("leave")
        assert [message async for message in friend] == []
        with pytest.raises(WebSocketClosed) as closed:
            await client.websocket("/v1/rooms/blue", headers={"origin": "https://elsewhere.test"})
        assert closed.value.code == 403
