"""The ASGI host: what it reads from a scope, what it sends, and what a client cannot make it believe."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from typing import Any
from urllib.parse import quote

import pytest
from tests.support.asgi import Message, ask, scope_of

from core import App, CoreError, Request, Response, create_app
from core.hosts import asgi as hosts_asgi
from core.hosts.asgi import BackgroundContext, asgi
from core.hosts.limits import Limits
from core.hosts.server import Server
from core.middleware.body_limit import body_limit


async def seen(read: Callable[[Request[Any, Any, Any]], Any], scope: dict[str, Any]) -> Any:
    """The result of `read(req)` inside a handler."""
    app = create_app()
    found: list[Any] = []

    @app.all("/*")
    async def handler(req: Request, res: Response) -> None:
        found.append(read(req))
        res.json({})

    await ask(app, scope)
    return found[0]


async def test_a_response_is_a_start_with_its_length_and_one_body() -> None:
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        res.status(201).header("X-A", "é").cookie("a", "1").json({"ü": 1})

    start, body = await ask(app, scope_of())
    assert start["status"] == 201
    assert sorted(start["headers"]) == [
        (b"content-length", b"8"),
        (b"content-type", b"application/json"),
        (b"set-cookie", b"a=1; Path=/"),
        (b"x-a", b"\xe9"),
    ]
    assert body == {"type": "http.response.body", "body": '{"ü":1}'.encode()}


async def test_a_handler_is_given_a_response_in_the_state_that_its_constructor_sets() -> None:
    app = create_app()
    states: list[dict[str, object]] = []

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        states.append(res.state())
        res.send()

    await ask(app, scope_of())
    assert states == [Response().state()]


@pytest.mark.parametrize(("status", "length"), [(200, [b"0"]), (404, [b"0"]), (205, [b"0"]), (204, []), (304, [])])
async def test_a_response_without_a_body_says_so_where_a_length_is_allowed(status: int, length: list[bytes]) -> None:
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        res.status(status).send()

    start, body = await ask(app, scope_of())
    assert [value for name, value in start["headers"] if name == b"content-length"] == length
    assert body["body"] == b""


ROOTS: list[tuple[str, str, bytes | None]] = [
    ("/api", "/api/users/a b", b"/api/users/a%20b"),  # as the specification has it
    ("/api", "/users/a b", b"/users/a%20b"),  # servers of before 2024
    ("/api", "/users/a b", b"/api/users/a%20b"),  # frameworks of before 2024 that mount
    ("/api", "/api/users/a b", None),
    ("/api/", "/api/users/a b", b"/api/users/a%20b"),
    ("/api", "/api/users/a b", b"/%61pi/users/a%20b"),
    ("/ä b", "/ä b/users/a b", b"/%C3%A4%20b/users/a%20b"),
    ("/ä b", "/ä b/users/a b", "/ä b/users/a b".encode("latin-1")),
    ("", "/users/a b", b"/users/a%20b"),
    ("/", "/users/a b", b"/users/a%20b"),
]


@pytest.mark.parametrize(("root", "path", "raw"), ROOTS)
async def test_routes_match_below_the_root_that_the_application_is_mounted_at(
    root: str, path: str, raw: bytes | None
) -> None:
    app = create_app()

    @app.get("/users/:name")
    async def handler(req: Request, res: Response) -> None:
        res.json([req.path, req.params["name"], req.root_path, req.url])

    start, body = await ask(app, scope_of(path, raw_path=raw, root_path=root, query_string=b"x=1"))
    assert start["status"] == 200
    mounted = quote(root.rstrip("/"))
    assert json.loads(body["body"]) == [
        "/users/a%20b",
        "a b",
        mounted,
        f"http://example.test{mounted}/users/a%20b?x=1",
    ]


@pytest.mark.parametrize("path", ["/api", "/api/"])
async def test_the_root_itself_is_the_first_route(path: str) -> None:
    assert await seen(lambda req: req.path, scope_of(path, root_path="/api")) == "/"


async def test_a_name_that_only_begins_like_the_root_is_no_part_of_it() -> None:
    assert await seen(lambda req: req.path, scope_of("/apis/x", root_path="/api")) == "/apis/x"


async def test_a_server_that_is_given_the_app_itself_stops_with_the_way_out(caplog: pytest.LogCaptureFixture) -> None:
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(create_app(), log_config=None))
        with pytest.raises(SystemExit):
            await server.serve([listener])

    assert "Give the server `asgi(app, env)` of core.hosts.asgi, or run `core dev`" in caplog.text


@pytest.mark.parametrize("root", ["", "/api"])
async def test_behind_the_root_path_of_a_server(root: str) -> None:
    import uvicorn

    app = create_app()

    @app.get("/users")
    async def handler(req: Request, res: Response) -> None:
        res.redirect(f"{req.root_path}/login")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(asgi(app), lifespan="off", root_path=root, log_level="error"))
        serving = asyncio.create_task(server.serve([listener]))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /users HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = (await reader.read()).decode()
            writer.close()
        finally:
            server.should_exit = True
            await serving
    assert answer.startswith("HTTP/1.1 302 ")
    assert f"location: {root}/login\r\n" in answer


class Colour(StrEnum):
    RED = "red"


class Template(bytes):
    """Bytes of a class of their own."""


OTHERS: list[tuple[Callable[[Response], Response], bytes]] = [
    (lambda res: res.text(Colour.RED), b"text/plain;charset=UTF-8"),
    (lambda res: res.html(Colour.RED), b"text/html;charset=UTF-8"),
    (lambda res: res.send(Colour.RED), b"text/plain;charset=UTF-8"),
    (lambda res: res.send(Template(b"red")), b"application/octet-stream"),
]


@pytest.mark.parametrize(("send", "type"), OTHERS)
async def test_texts_and_bytes_of_other_classes_are_sent_as_what_they_hold(
    send: Callable[[Response], Response], type: bytes
) -> None:
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        send(res)

    start, body = await ask(app, scope_of())
    assert body["body"] == b"red"
    assert dict(start["headers"]).get(b"content-type") == type


@pytest.mark.parametrize("method", ["text", "html", "send"])
async def test_what_is_no_text_is_refused_when_it_is_sent(method: str, caplog: pytest.LogCaptureFixture) -> None:
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        getattr(res, method)(7)

    start, _ = await ask(app, scope_of())
    assert start["status"] == 500
    assert f"res.{method}() takes str" in caplog.text


async def test_head_has_the_length_of_the_body_it_leaves_out() -> None:
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        res.text("hello")

    start, body = await ask(app, scope_of(method="HEAD"))
    assert (b"content-length", b"5") in start["headers"]
    assert body["body"] == b""


@pytest.mark.parametrize(
    ("raw", "decoded", "param"),
    [
        (b"/a%2Fb", "/a/b", "a/b"),
        (b"/%C3%A9", "/é", "é"),
        (b"/a%2520b", "/a%20b", "a%20b"),
        (b"/x/../a", "/x/../a", "a"),
        (b"/x/%2e%2e/a", "/x/../a", "a"),
        (b"/a?b", "/a?b", "a?b"),
    ],
)
async def test_the_path_is_what_was_sent_and_not_what_the_server_decoded(raw: bytes, decoded: str, param: str) -> None:
    app = create_app()
    found: list[str] = []

    @app.get("/:name")
    async def handler(req: Request, res: Response) -> None:
        found.append(req.params["name"])
        res.json({})

    await ask(app, scope_of(decoded, raw_path=raw))
    assert found == [param] or raw == b"/a?b"


async def test_a_server_without_raw_path_is_served_too() -> None:
    scope = scope_of("/é b")
    del scope["raw_path"]
    assert await seen(lambda req: (req.path, req.params["*"]), scope) == ("/%C3%A9%20b", "é b")


@pytest.mark.parametrize("name", [b"edge-connecting-ip", b"Edge-Connecting-IP"])
async def test_the_address_is_the_connections_and_never_the_clients_word(name: bytes) -> None:
    scope = scope_of(headers=[(name, b"198.51.100.1"), (b"x-forwarded-for", b"198.51.100.2")])
    assert await seen(lambda req: req.ip, scope) == "203.0.113.5"
    assert await seen(lambda req: req.header("Edge-Connecting-IP"), scope) == "203.0.113.5"
    assert await seen(lambda req: req.headers["edge-connecting-ip"], scope) == "203.0.113.5"
    assert await seen(lambda req: req.ip, scope | {"client": None}) is None
    assert await seen(lambda req: req.headers.get("edge-connecting-ip"), scope | {"client": None}) is None


async def test_repeated_headers_are_joined_and_cookies_with_a_semicolon() -> None:
    headers = [(b"x-a", b"1"), (b"x-a", b"2"), (b"cookie", b"a=1"), (b"cookie", b"b=2")]
    assert await seen(lambda req: req.header("X-A"), scope_of(headers=headers)) == "1, 2"
    assert await seen(lambda req: dict(req.cookies), scope_of(headers=headers)) == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("host", "url"),
    [
        (b"example.test:8080", "http://example.test:8080/a?b=c"),
        (b"evil.test/x?y#", "http://127.0.0.1:8000/a?b=c"),
        (None, "http://127.0.0.1:8000/a?b=c"),
    ],
)
async def test_the_url_is_built_from_a_host_header_that_is_one(host: bytes | None, url: str) -> None:
    headers = [] if host is None else [(b"host", host)]
    assert await seen(lambda req: req.url, scope_of("/a", headers=headers, query_string=b"b=c")) == url


async def test_a_body_comes_whole_or_in_pieces() -> None:
    app = create_app()

    @app.post("/whole")
    async def whole(req: Request, res: Response) -> None:
        res.text((await req.bytes()).decode())

    @app.post("/pieces")
    async def pieces(req: Request, res: Response) -> None:
        res.text("|".join([chunk.decode() async for chunk in req.stream()]))

    received = [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"cd", "more_body": False},
    ]
    for path, text in (("/whole", b"abcd"), ("/pieces", b"ab|cd")):
        sent = await ask(app, scope_of(path, method="POST"), *received)
        assert sent[1]["body"] == text


@pytest.mark.parametrize("first", ["bytes", "text", "json", "stream"])
@pytest.mark.parametrize("again", ["bytes", "text", "json", "stream"])
async def test_nobody_gets_the_rest_of_a_body_that_was_refused(first: str, again: str) -> None:
    app = create_app()
    app.use(body_limit(max_size=10))

    async def read(req: Request, how: str) -> Any:
        return [chunk async for chunk in req.stream()] if how == "stream" else await getattr(req, how)()

    @app.post("/")
    async def take(req: Request, res: Response) -> None:
        with pytest.raises(CoreError, match="Payload Too Large"):
            await read(req, first)
        res.json(str(await read(req, again)))

    pieces: list[dict[str, Any]] = [
        {"type": "http.request", "body": b" " * 11, "more_body": True},
        {"type": "http.request", "body": b'"rest"', "more_body": False},
    ]
    assert (await ask(app, scope_of(method="POST"), *pieces))[0]["status"] == 413


async def test_nobody_gets_the_rest_of_a_body_whose_reading_was_cancelled() -> None:
    app = create_app()
    held = asyncio.Event()

    @app.post("/")
    async def take(req: Request, res: Response) -> None:
        reading = asyncio.create_task(req.bytes())
        await asyncio.sleep(0.01)
        reading.cancel()
        await asyncio.wait((reading,))
        held.set()
        res.send(await req.bytes())

    pieces = iter([{"type": "http.request", "body": b"first", "more_body": True}])
    sent: list[Any] = []

    async def receive() -> Any:
        if (piece := next(pieces, None)) is not None:
            return piece
        await held.wait()
        return {"type": "http.request", "body": b"rest", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await asgi(app, None)(scope_of(method="POST"), receive, send)
    assert sent[0]["status"] == 500


async def test_a_client_that_goes_away_while_its_body_is_read_is_a_499_nobody_sees(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = create_app()

    @app.post("/")
    async def take(req: Request, res: Response) -> None:
        res.json(await req.json())

    sent = await ask(
        app,
        scope_of(method="POST"),
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    )
    assert sent[0]["status"] == 499
    assert not caplog.records


async def test_a_stream_leaves_piece_by_piece_and_its_source_is_closed() -> None:
    closed: list[bool] = []
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        async def chunks() -> AsyncIterator[str]:
            try:
                yield "a"
                yield "b"
            finally:
                closed.append(True)

        res.stream(chunks(), content_type="text/plain")

    sent = await ask(app, scope_of())
    assert [message.get("body") for message in sent[1:]] == [b"a", b"b", b""]
    assert sent[-1].get("more_body", False) is False
    assert closed == [True]


async def test_a_stream_that_fails_breaks_off_and_is_logged_once_with_its_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = create_app()

    @app.get("/lines/:id")
    async def handler(req: Request, res: Response) -> None:
        async def chunks() -> AsyncIterator[str]:
            yield "a"
            raise KeyError("secret")

        res.stream(chunks())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(asgi(app), Limits(), arrivals=0)
        serving = asyncio.ensure_future(server.serve(sockets=[listener.dup()]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET /lines/3 HTTP/1.1\r\nHost: a.test\r\n\r\n")
        received = await reader.read()  # to the end of the connection
        writer.close()
        server.should_exit = True
        await serving
    assert received.endswith(b"\r\n\r\n1\r\na\r\n"), "without the chunk that ends a body"
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "GET /lines/3 failed in the middle of its body"
    ]
    assert caplog.records[-1].exc_info is not None


async def test_a_client_that_goes_away_ends_the_stream_and_what_feeds_it() -> None:
    closed: list[bool] = []
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        async def forever() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"tick"
                    await asyncio.sleep(0)
            finally:
                closed.append(True)

        res.stream(forever())

    async with asyncio.timeout(60):
        await ask(app, scope_of(), {"type": "http.disconnect"})
    assert closed == [True]


async def over_http(app: App[Any], sent: bytes) -> bytes:
    """What a server of `app` answers to a request, to the end of the connection."""
    server = Server(asgi(app), Limits(), arrivals=0.0)
    stop = asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.ensure_future(server.serve_until(listener, stop))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(sent)
        async with asyncio.timeout(10):
            received = await reader.read()
        writer.close()
        stop.set()
        await serving
    return received


@pytest.mark.parametrize("first", [[], [b"first"]])
async def test_a_stream_that_is_made_of_the_requests_body_has_all_of_it(first: list[bytes]) -> None:
    app = create_app()

    @app.post("/")
    async def handler(req: Request, res: Response) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            for piece in first:
                yield piece
                await asyncio.sleep(0.01)  # the server has more by then than is read ahead
            async for chunk in req.stream():
                yield chunk

        res.stream(pieces())

    body = bytes(range(256)) * 4096
    head = b"POST / HTTP/1.0\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n" % len(body)
    _, _, received = (await over_http(app, head + body)).partition(b"\r\n\r\n")
    assert received == b"".join(first) + body


@pytest.mark.parametrize("headers", [{}, {"content-length": "5"}])
async def test_the_headers_of_a_stream_leave_before_its_first_piece(headers: dict[str, str]) -> None:
    app, head_is_there = create_app(), asyncio.Event()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            await head_is_there.wait()
            yield b"first"

        for name, value in headers.items():
            res.header(name, value)
        res.stream(pieces())

    server, stop = Server(asgi(app), Limits(), arrivals=0.0), asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.ensure_future(server.serve_until(listener, stop))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        try:
            async with asyncio.timeout(5):
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
                head_is_there.set()
                assert await reader.read() == b"first"
        finally:
            writer.close()
            stop.set()
            await serving


async def test_a_client_that_goes_away_behind_a_body_that_nobody_reads_ends_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hosts_asgi, "_SECONDS_AHEAD", 0.01)
    app, ended, left = create_app(), asyncio.Event(), asyncio.Event()

    @app.post("/")
    async def handler(req: Request, res: Response) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                yield b"first"
                await asyncio.Event().wait()
            finally:
                ended.set()

        res.stream(pieces())

    parts = [{"type": "http.request", "body": bytes(65536), "more_body": more} for more in (True, True, False)]

    async def receive() -> Message:
        return parts.pop(0) if parts else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        left.set()

    async with asyncio.timeout(10):
        await asgi(app)(scope_of(method="POST"), receive, send)
    assert left.is_set()
    assert ended.is_set()


async def test_a_stream_that_reads_a_body_too_late_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts_asgi, "_SECONDS_AHEAD", 0.01)
    app, empty = create_app(), asyncio.Event()

    @app.post("/")
    async def handler(req: Request, res: Response) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"first"
            await empty.wait()
            async for chunk in req.stream():
                yield chunk

        res.stream(pieces())

    parts = [{"type": "http.request", "body": bytes(65536), "more_body": True} for _ in range(3)]

    async def receive() -> Message:
        if not parts:
            empty.set()
            await asyncio.Event().wait()
        return parts.pop(0)

    async def send(message: Any) -> None:
        pass

    async with asyncio.timeout(10):
        with pytest.raises(RuntimeError, match="the body was skipped"):
            await asgi(app)(scope_of(method="POST"), receive, send)


async def test_shutdown_waits_for_background_work() -> None:
    go = asyncio.Event()
    done: list[bool] = []
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        async def later() -> None:
            await go.wait()
            done.append(True)

        req.ctx.wait_until(later())
        res.json({})

    server = asgi(app)
    events: asyncio.Queue[Message] = asyncio.Queue()
    sent: list[str] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    life = asyncio.create_task(server({"type": "lifespan"}, events.get, send))
    await events.put({"type": "lifespan.startup"})
    await server(scope_of(), receive, send)
    await events.put({"type": "lifespan.shutdown"})
    for _ in range(5):
        await asyncio.sleep(0)
    assert not life.done()
    go.set()
    await life
    assert done == [True]
    assert sent[-1] == "lifespan.shutdown.complete"


async def test_a_mistake_in_the_application_stops_the_server_at_start() -> None:
    app = create_app()
    app.get("/nothing")
    events: asyncio.Queue[Message] = asyncio.Queue()
    await events.put({"type": "lifespan.startup"})
    sent: list[Message] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await asgi(app)({"type": "lifespan"}, events.get, send)
    assert sent == [
        {
            "type": "lifespan.startup.failed",
            "message": "GET /nothing has no handler. Give one to the call, or decorate one",
        }
    ]


async def test_background_work_that_fails_is_logged_and_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    context = BackgroundContext()

    async def fails() -> None:
        raise LookupError("gone")

    context.wait_until(fails())
    await context.drain()
    assert "background work given to wait_until failed" in caplog.text


async def test_a_body_that_is_skipped_is_skipped_to_its_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts_asgi, "_SECONDS_AHEAD", 0.01)
    piece: dict[str, Any] = {"type": "http.request", "body": bytes(70_000), "more_body": True}
    messages = iter([*[piece] * 5, {"type": "http.disconnect"}])

    async def receive() -> dict[str, Any]:
        if ahead._skipped:
            monkeypatch.setattr(hosts_asgi, "_SECONDS_AHEAD", 3600)
        return next(messages)

    ahead = hosts_asgi._ReadAhead(receive)
    async with asyncio.timeout(5):
        await ahead.until_gone()
