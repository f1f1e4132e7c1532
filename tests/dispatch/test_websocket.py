"""WebSocket routes: a GET that middleware may refuse, then a conversation."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from core.app import App
from core.errors import CoreError, HandlerError, OptionError, RegistrationError
from core.hosts.asgi import asgi
from core.http.websocket import WebSocket, WebSocketClosed, check_close, hand_over, pair
from core.middleware.logger import logger
from core.middleware.secure_headers import secure_hdrs
from core.request import Request
from core.response import Response
from core.testing import Client
from core.types import Next


def chat_app(*middleware: Any, **options: Any) -> App[Any]:
    app: App[Any] = App()
    app.use(secure_hdrs())

    @app.websocket("/rooms/:id", *middleware, **options)
    async def chat(req: Request[Any], socket: WebSocket) -> None:
        await socket.send(f"welcome to {req.params['id']}")
        async for message in socket:
            if message == "fail":
                raise RuntimeError("a bug")
            if message == "leave":
                return
            await socket.send(message)

    return app


async def refuse(req: Request[Any], res: Response, next: Any) -> None:
    raise CoreError(401, "Unauthorized")


async def test_a_conversation_over_texts_and_bytes() -> None:
    socket = await Client(chat_app(), None).websocket("/rooms/7")
    assert await socket.receive() == "welcome to 7"
    for message in ("hello", b"\x00\xff", ""):
        await socket.send(message)
        assert await socket.receive() == message
    await socket.close()
    assert socket.closed is not None
    assert socket.closed.code == 1000


async def test_when_the_handler_returns_the_connection_closes_with_1000() -> None:
    socket = await Client(chat_app(), None).websocket("/rooms/7")
    await socket.send("leave")
    assert [message async for message in socket] == ["welcome to 7"]
    assert socket.closed is not None
    assert socket.closed.code == 1000


async def test_when_the_handler_fails_it_closes_with_1011_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    socket = await Client(chat_app(), None).websocket("/rooms/7")
    await socket.send("fail")
    assert [message async for message in socket] == ["welcome to 7"]
    assert socket.closed is not None
    assert socket.closed.code == 1011
    assert "a bug" in caplog.text
    assert "a bug" not in socket.closed.reason


async def test_middleware_runs_before_it_and_may_refuse() -> None:
    with pytest.raises(WebSocketClosed) as caught:
        await Client(chat_app(refuse), None).websocket("/rooms/7")
    assert (caught.value.code, caught.value.reason) == (401, '{"error":"Unauthorized"}')


async def test_a_request_that_asks_for_no_websocket_gets_426() -> None:
    response = await Client(chat_app(), None).get("/rooms/7")
    assert (response.status, response.headers["upgrade"]) == (426, "websocket")


@pytest.mark.parametrize("hang_up", [False, True], ids=["alone", "in a task group"])
async def test_another_members_closing_does_not_end_the_session_silently(
    hang_up: bool, caplog: pytest.LogCaptureFixture
) -> None:
    members: list[WebSocket] = []
    gone: list[WebSocketClosed] = []
    app: App[Any] = App()

    async def send_to_all(message: str | bytes) -> None:
        for member in members:
            try:
                await member.send(message)
            except WebSocketClosed as closed:
                gone.append(closed)
                raise

    @app.websocket("/")
    async def room(req: Request[Any], socket: WebSocket) -> None:
        members.append(socket)
        async for message in socket:
            if not hang_up:
                await send_to_all(message)
            else:
                async with asyncio.TaskGroup() as group:
                    group.create_task(send_to_all(message))

    first, second = [await Client(app, None).websocket("/") for _ in range(2)]
    await asyncio.sleep(0)
    await first.close(1001)
    await second.send("hello")
    with pytest.raises(WebSocketClosed) as caught:
        async with asyncio.timeout(60):
            await second.receive()
    assert (caught.value.code, caught.value.socket) == (1011, second)
    assert gone[0].socket is members[0]
    assert "a WebSocket handler failed" in caplog.text


async def test_ones_own_closing_is_no_failure_in_a_task_group_either(caplog: pytest.LogCaptureFixture) -> None:
    app: App[Any] = App()
    over = asyncio.Event()

    @app.websocket("/")
    async def both(req: Request[Any], socket: WebSocket) -> None:
        async def listen() -> None:
            while True:
                await socket.receive()

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(listen())
        finally:
            over.set()

    client = await Client(app, None).websocket("/")
    await client.close()
    async with asyncio.timeout(60):
        await over.wait()
    await asyncio.sleep(0)
    assert caplog.text == ""


async def test_a_line_is_logged_for_the_upgrade() -> None:
    lines: list[str] = []
    socket = await Client(chat_app(logger(write=lines.append)), None).websocket("/rooms/7")
    await socket.close()
    assert lines == ["GET /rooms/7 101 0ms [-]"]


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [((), None), (("chat.v1",), "chat.v1"), (("chat.v1", "chat.v2"), "chat.v2"), (("other",), None)],
)
async def test_the_preferred_subprotocol_that_both_speak_is_agreed_on(
    offered: tuple[str, ...], agreed: str | None
) -> None:
    client = Client(chat_app(protocols=("chat.v2", "chat.v1")), None)
    socket = await client.websocket("/rooms/7", protocols=offered)
    assert socket.protocol == agreed
    await socket.close()


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (None, True),
        ("https://example.test", True),
        ("http://example.test", False),
        ("https://evil.test", False),
        ("null", False),
        ("https://example.test.evil.test", False),
        ("https://friend.test", True),
    ],
)
async def test_only_the_servers_own_pages_and_those_listed_may_connect(origin: str | None, allowed: bool) -> None:
    client = Client(chat_app(origins=("https://friend.test",)), None)
    headers = {} if origin is None else {"Origin": origin}
    if allowed:
        await (await client.websocket("/rooms/7", headers=headers)).close()
    else:
        with pytest.raises(WebSocketClosed) as caught:
            await client.websocket("/rooms/7", headers=headers)
        assert caught.value.code == 403


async def test_a_star_lets_every_page_connect() -> None:
    client = Client(chat_app(origins=("*",)), None)
    await (await client.websocket("/rooms/7", headers={"Origin": "https://evil.test"})).close()


async def test_sending_on_a_closed_connection_raises() -> None:
    server, client = pair()
    await client.close(4000, "bye")
    for side in (server, client):
        with pytest.raises(WebSocketClosed, match="4000 bye"):
            await side.send("x")
        with pytest.raises(WebSocketClosed):
            await side.receive()
    await client.close()


async def test_what_was_sent_before_the_close_is_still_received() -> None:
    server, client = pair()
    await client.send("a")
    await client.close()
    assert await server.receive() == "a"


async def test_only_texts_and_bytes_are_messages() -> None:
    server, _ = pair()
    with pytest.raises(TypeError, match="takes str or bytes, not dict"):
        await server.send({})  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (0, ""),
        (999, ""),
        (1005, ""),
        (1006, ""),
        (1015, ""),
        (2999, ""),
        (5000, ""),
        (True, ""),
        (1000, "x" * 124),
        (1000, "é" * 62),
    ],
)
def test_what_no_close_frame_may_carry_is_refused(code: int, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^close\("):
        check_close(code, reason)


def test_a_handler_of_the_wrong_shape_is_refused_by_name() -> None:
    app: App[Any] = App()
    with pytest.raises(HandlerError, match=r"websocket /x: wrong must be `async def \(req, socket\)`"):

        @app.websocket("/x")  # type: ignore[arg-type]  # that is the point
        async def wrong(req: Request[Any]) -> None: ...

    with pytest.raises(HandlerError, match="is not async"):

        @app.websocket("/x")  # type: ignore[arg-type]  # likewise
        def not_async(req: Request[Any], socket: WebSocket) -> None: ...


@pytest.mark.parametrize("options", [{"protocols": ["a b"]}, {"origins": ["https://a.test/"]}, {"origins": ["a.test"]}])
def test_a_bad_option_is_a_clear_error(options: Any) -> None:
    app: App[Any] = App()
    with pytest.raises(OptionError, match="websocket"):

        @app.websocket("/x", **options)
        async def handler(req: Request[Any], socket: WebSocket) -> None: ...


def test_it_stands_in_the_table_of_routes() -> None:
    (route,) = chat_app().routes
    assert (route.method, route.path, route.handler) == ("GET", "/rooms/:id", "chat")


class Connection:
    """One WebSocket connection event of an ASGI server."""

    def __init__(self, app: App[Any], path: str = "/rooms/7", **scope: Any) -> None:
        self.inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.inbox.put_nowait({"type": "websocket.connect"})
        self.outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.scope: dict[str, Any] = {
            "type": "websocket",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "scheme": "ws",
            "headers": [(b"host", b"example.test")],
            "client": ("192.0.2.1", 5),
            "subprotocols": [],
            **scope,
        }

        async def send(message: Any) -> None:
            self.outbox.put_nowait(message)

        self.task = asyncio.create_task(asgi(app)(self.scope, self.inbox.get, send))

    async def next(self) -> dict[str, Any]:
        return await asyncio.wait_for(self.outbox.get(), 1)


async def answer_over_asgi(app: App[Any], *headers: tuple[bytes, bytes]) -> tuple[int, dict[bytes, bytes]]:
    """The response to a plain GET of /rooms/7, on a connection that is HTTP and remains HTTP."""
    sent: list[Any] = []
    http_scope = {"type": "http", "method": "GET", "scheme": "http", "path": "/rooms/7", "raw_path": b"/rooms/7"}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    pairs = [(b"host", b"example.test"), *headers]
    await asgi(app)({**http_scope, "query_string": b"", "headers": pairs, "client": None}, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"])


@pytest.mark.parametrize("headers", [(), ((b"connection", b"Upgrade"), (b"sec-websocket-version", b"13"))])
async def test_a_101_never_leaves_on_a_connection_that_stays_http(headers: Any) -> None:
    status, named = await answer_over_asgi(chat_app(), (b"upgrade", b"websocket"), *headers)
    assert (status, named[b"upgrade"]) == (426, b"websocket")


async def test_nor_one_that_an_application_forced(caplog: pytest.LogCaptureFixture) -> None:
    app: App[Any] = App()

    @app.get("/rooms/:id")
    async def forced(req: Request[Any], res: Response) -> None:
        res.send().status_code = 101  # type: ignore[misc]  # on purpose

    status, named = await answer_over_asgi(app, (b"upgrade", b"websocket"), (b"connection", b"Upgrade"))
    assert (status, named[b"upgrade"]) == (426, b"websocket")
    assert "426 was sent instead" in caplog.text


async def test_a_status_of_101_is_refused_with_the_way_to_open_a_websocket(caplog: pytest.LogCaptureFixture) -> None:
    app: App[Any] = App()

    @app.get("/")
    async def handler(req: Request[Any], res: Response) -> None:
        res.status(101).send()

    assert (await Client(app, None).get("/")).status == 500
    assert "app.websocket(path)" in caplog.text


async def test_over_asgi() -> None:
    connection = Connection(chat_app(protocols=["chat"]), subprotocols=["chat"])
    accepted = await connection.next()
    assert (accepted["type"], accepted["subprotocol"], accepted["headers"]) == ("websocket.accept", "chat", [])
    assert (await connection.next())["text"] == "welcome to 7"
    connection.inbox.put_nowait({"type": "websocket.receive", "bytes": b"x", "text": None})
    assert await connection.next() == {"type": "websocket.send", "bytes": b"x"}
    connection.inbox.put_nowait({"type": "websocket.receive", "text": "leave"})
    assert (await connection.next())["code"] == 1000
    await connection.task


async def test_over_asgi_a_disconnect_ends_the_handler() -> None:
    connection = Connection(chat_app())
    connection.inbox.put_nowait({"type": "websocket.disconnect", "code": 1001})
    await asyncio.wait_for(connection.task, 60)


async def test_over_asgi_a_refusal_has_its_own_status_where_the_server_can_send_one() -> None:
    connection = Connection(chat_app(refuse), extensions={"websocket.http.response": {}})
    started, body = await connection.next(), await connection.next()
    assert (started["type"], started["status"]) == ("websocket.http.response.start", 401)
    assert (b"x-frame-options", b"DENY") in started["headers"]
    assert body["body"] == b'{"error":"Unauthorized"}'
    await connection.task
    connection = Connection(chat_app(refuse))
    assert (await connection.next())["type"] == "websocket.close"
    await connection.task


async def test_over_asgi_another_origin_and_an_unknown_path_are_refused() -> None:
    refused: list[dict[str, Any]] = [
        {"headers": [(b"host", b"example.test"), (b"origin", b"https://evil.test")]},
        {"path": "/nowhere", "raw_path": b"/nowhere"},
    ]
    for options in refused:
        connection = Connection(chat_app(), **options)
        assert (await connection.next())["type"] == "websocket.close"
        await connection.task


async def test_over_asgi_a_client_that_is_gone_while_something_is_sent_ends_the_handler() -> None:
    app = chat_app()
    messages: list[Any] = []
    inbox: asyncio.Queue[Any] = asyncio.Queue()
    inbox.put_nowait({"type": "websocket.connect"})

    async def send(message: Any) -> None:
        messages.append(message["type"])
        if message["type"] == "websocket.send":
            raise OSError("gone")

    scope: dict[str, Any] = {
        "type": "websocket",
        "path": "/rooms/7",
        "query_string": b"",
        "headers": [],
        "client": None,
        "scheme": "ws",
    }
    await asyncio.wait_for(asgi(app)(scope, inbox.get, send), 1)
    assert messages == ["websocket.accept", "websocket.send"]


# -- JSON, headers of one's own, and a page on the same path


@attrs.frozen
class Move:
    x: int
    y: int = 0


def moves_app() -> App[Any]:
    app: App[Any] = App()

    @app.websocket("/")
    async def play(req: Request[Any], socket: WebSocket) -> None:
        while True:
            move = await socket.receive_json(Move)
            await socket.send_json({"seen": move})

    return app


async def test_values_go_both_ways_as_json() -> None:
    socket = await Client(moves_app(), None).websocket("/")
    for text in ('{"x": 1}', b'{"x": 1, "y": 0}'):
        await socket.send(text)
        assert await socket.receive() == '{"seen":{"x":1,"y":0}}'
    await socket.send_json(Move(2, 3))
    assert await socket.receive_json() == {"seen": {"x": 2, "y": 3}}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("{", "Invalid JSON"),
        (b"\xff", "Invalid JSON"),
        ('{"x": "1"}', "Validation failed"),
        ("[]", "Validation failed"),
    ],
)
async def test_a_message_of_another_shape_closes_with_1008_and_is_no_failure(
    message: str | bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    socket = await Client(moves_app(), None).websocket("/")
    await socket.send(message)
    with pytest.raises(WebSocketClosed) as caught:
        await socket.receive()
    assert (caught.value.code, caught.value.reason) == (1008, reason)
    assert not caplog.records


async def test_a_handler_may_answer_a_bad_message_and_go_on() -> None:
    app: App[Any] = App()

    @app.websocket("/")
    async def play(req: Request[Any], socket: WebSocket) -> None:
        try:
            await socket.receive_json(Move)
        except CoreError as error:
            await socket.send_json(error.body)

    socket = await Client(app, None).websocket("/")
    await socket.send('{"y": 1}')
    assert await socket.receive_json() == {
        "error": "Validation failed", "issues": [{"path": "x", "message": "is required"}],
    }  # fmt: skip


async def test_a_long_reason_is_cut_to_what_a_close_frame_carries() -> None:
    app: App[Any] = App()

    @app.websocket("/")
    async def fails(req: Request[Any], socket: WebSocket) -> None:
        raise CoreError(400, "ü" * 100)

    with pytest.raises(WebSocketClosed) as caught:
        await (await Client(app, None).websocket("/")).receive()
    assert (caught.value.code, caught.value.reason) == (1008, "ü" * 61)


def greeting_app(headers: Any) -> App[Any]:
    app: App[Any] = App()

    async def stage(req: Request[Any], res: Response, next: Next) -> None:
        res.header("X-Everywhere", "1").cookie("seen", "1")
        await next()

    app.use(stage)

    @app.websocket("/:room", headers=headers)
    async def greet(req: Request[Any], socket: WebSocket) -> None:
        await socket.send("hello")

    return app


def at_once(req: Request[Any]) -> dict[str, str]:
    return {"X-Room": req.params["room"]}


async def later(req: Request[Any]) -> dict[str, str]:
    return at_once(req)


@pytest.mark.parametrize("headers", [{"X-Room": "7"}, at_once, later])
async def test_the_answer_to_a_handshake_may_have_headers_and_cookies_of_its_own(headers: Any) -> None:
    client = Client(greeting_app(headers), None)
    socket = await client.websocket("/7")
    assert await socket.receive() == "hello"
    assert (socket.headers["x-room"], "x-everywhere" in socket.headers) == ("7", False)
    assert client.cookies == {"seen": "1"}

    connection = Connection(greeting_app(headers), path="/7")
    assert (await connection.next())["headers"] == [(b"x-room", b"7"), (b"set-cookie", b"seen=1; Path=/")]


async def test_a_header_that_http_does_not_allow_is_a_500_and_opens_nothing() -> None:
    with pytest.raises(WebSocketClosed) as caught:
        await Client(greeting_app({"X-Room": "a\nb"}), None).websocket("/7")
    assert caught.value.code == 500


async def test_a_page_and_a_websocket_share_a_path() -> None:
    app: App[Any] = App()

    async def refuse(req: Request[Any], res: Response, next: Next) -> None:
        raise CoreError(401, "Unauthorized")

    @app.websocket("/rooms/:id", refuse)
    async def closed(req: Request[Any], socket: WebSocket) -> None: ...

    @app.websocket("/chat/:id")
    async def chat(req: Request[Any], socket: WebSocket) -> None:
        await socket.send(f"socket {req.params['id']}")

    @app.get("/chat/:id")
    @app.get("/rooms/:id")
    async def page(req: Request[Any], res: Response) -> None:
        res.text(f"page {req.params['id']}")

    client = Client(app, None)
    # The middleware of the WebSocket is for the WebSocket.
    assert await (await client.get("/rooms/7")).text() == "page 7"
    assert await (await client.get("/chat/7")).text() == "page 7"
    assert (await client.head("/chat/7")).status == 200
    assert await (await client.websocket("/chat/7")).receive() == "socket 7"
    with pytest.raises(WebSocketClosed, match="401"):
        await client.websocket("/rooms/7")


@pytest.mark.parametrize("register", ["get", "all"])
def test_a_page_that_would_take_every_handshake_is_refused(register: str) -> None:
    app: App[Any] = App()

    async def page(req: Request[Any], res: Response) -> None: ...

    async def chat(req: Request[Any], socket: WebSocket) -> None: ...

    getattr(app, register)("/chat", page)
    with pytest.raises(RegistrationError, match=r"takes every handshake\. Register the WebSocket first$"):
        app.websocket("/chat")(chat)


@pytest.mark.parametrize("late", [True, False], ids=["and a message comes", "and none comes"])
async def test_what_was_sent_before_a_close_arrives_through_a_connection_that_is_handed_over(late: bool) -> None:
    theirs, peer = pair()
    server, client = pair()
    for number in range(5):
        await theirs.send(str(number))
    await theirs.close(3000, "done")
    if late:
        await client.send("late")
    await hand_over(peer, None).run(server)
    assert [await client.receive() for _ in range(5)] == ["0", "1", "2", "3", "4"]
    with pytest.raises(WebSocketClosed, match="3000 done"):
        await client.receive()


async def test_the_last_messages_of_a_client_arrive_through_a_connection_that_is_handed_over() -> None:
    theirs, peer = pair()
    server, client = pair()
    await client.send("last")
    await client.close(3001)
    await theirs.send("late")
    await hand_over(peer, None).run(server)
    assert await theirs.receive() == "last"
    with pytest.raises(WebSocketClosed, match="3001"):
        await theirs.receive()
