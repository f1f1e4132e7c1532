"""The lines of `logger`: what is on them, when they are written, and that nothing can break or forge them."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from core import http
from core.app import App
from core.context import EdgeMetadata
from core.errors import CoreError, OrderError
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from core.middleware.timeout import timeout
from core.request import Request
from core.response import Response
from core.testing import Client, FakeClock, FakeExecutionContext


class Lines(list[str]):
    def __call__(self, line: str) -> None:
        self.append(line)


def app_with(*middleware: Any, **handlers: Any) -> Client[Any]:
    app: App[Any] = App()
    app.use(*middleware)

    @app.get("/users/:id")
    async def show(req: Request[Any], res: Response) -> None:
        res.json({})

    @app.get("/fails")
    async def fail(req: Request[Any], res: Response) -> None:
        raise CoreError(418, "No")

    return Client(app, None, FakeExecutionContext())


async def test_a_missing_colo_ip_or_id_prints_a_hyphen() -> None:
    lines = Lines()
    client = app_with(logger(format="long", write=lines))
    client.ip = None
    await client.get("/users/7")
    assert lines == ["GET /users/7 200 0ms ip=- colo=- id=-"]


async def test_the_colo_is_that_of_the_edge() -> None:
    lines = Lines()

    class AtTheEdge(Request[Any]):
        @property
        def edge(self) -> EdgeMetadata:
            return EdgeMetadata("SJC", "US")

    for format in ("short", "long"):
        app: App[Any] = App()
        app.use(logger(format=format, write=lines))
        app.get("/", _empty)
        await app.dispatcher.respond(
            AtTheEdge(http.Request("https://a.test/"), None, FakeExecutionContext()), Response()
        )
    assert lines == ["GET / 204 0ms [SJC]", "GET / 204 0ms ip=- colo=SJC id=-"]


async def _empty(req: Request[Any], res: Response) -> None:
    res.status(204).send()


async def test_a_function_format_returns_the_line_itself() -> None:
    lines = Lines()
    await app_with(logger(format=lambda req, status, ms: f"{req.path}|{status}|{ms}", write=lines)).get("/users/7")
    assert lines == ["/users/7|200|0.0"]


async def test_the_duration_is_milliseconds_since_the_request_was_received() -> None:
    lines, clock = Lines(), FakeClock()
    app: App[Any] = App()
    app.use(logger(write=lines))

    @app.get("/")
    async def slow(req: Request[Any], res: Response) -> None:
        clock.advance(0.012)
        res.json({})

    await Client(app, None, FakeExecutionContext(clock=clock)).get("/")
    assert lines == ["GET / 200 12ms [-]"]


async def test_the_path_is_without_the_query_string_where_tokens_live() -> None:
    lines = Lines()
    await app_with(logger(write=lines)).get("/users/7?token=secret")
    assert lines == ["GET /users/7 200 0ms [-]"]


@pytest.mark.parametrize("format", ["short", "long", "json"])
async def test_include_query_opts_in(format: Any) -> None:
    lines = Lines()
    await app_with(logger(write=lines, format=format, include_query=True)).get("/users/7?page=2")
    assert "/users/7?page=2" in lines[0]
    await app_with(logger(write=lines, format=format, include_query=True)).get("/users/7")
    assert "/users/7?" not in lines[1]


async def test_line_breaks_and_control_characters_are_stripped_from_every_field() -> None:
    lines = Lines()
    app: App[Any] = App()

    async def forge(req: Request[Any], res: Response, next: Any) -> None:
        req.id = "x\r\nGET /forged 200 1ms [-]\x1b[2J\x00\u2028\u202e"
        await next()

    app.use(forge)
    app.use(logger(format="long", write=lines))
    app.get("/", _empty)
    await Client(app, None).get("/")
    assert lines == ["GET / 204 0ms ip=203.0.113.7 colo=- id=xGET /forged 200 1ms [-][2J"]


async def test_line_breaks_are_stripped_from_the_line_of_a_function_too() -> None:
    lines = Lines()
    client = app_with(logger(format=lambda req, status, ms: f"{req.header('user-agent')}\tend", write=lines))
    await client.get("/users/7", headers={"User-Agent": "a\x1b[31m\x85\x0bb"})
    assert lines == ["a[31mb\tend"]


async def test_one_line_per_request_after_the_final_status_is_known_also_for_errors() -> None:
    lines = Lines()
    client = app_with(logger(write=lines))
    await client.get("/fails")
    await client.get("/nowhere")
    assert lines == ["GET /fails 418 0ms [-]", "GET /nowhere 404 0ms [-]"]


async def test_the_status_is_the_error_handlers_where_it_changes_it() -> None:
    lines = Lines()
    client = app_with(logger(write=lines))

    @client.app.on_error
    async def answer(err: Exception, req: Request[Any], res: Response, next: Any) -> None:
        res.status(503).json({})

    await client.get("/fails")
    assert lines == ["GET /fails 503 0ms [-]"]


async def test_a_timeout_is_logged_with_its_status() -> None:
    lines, clock = Lines(), FakeClock()
    app: App[Any] = App()
    app.use(logger(write=lines), timeout(duration=5))

    @app.get("/")
    async def slow(req: Request[Any], res: Response) -> None:
        clock.advance(0.005)
        await clock.sleep(1)

    await Client(app, None, FakeExecutionContext(clock=clock)).get("/")
    assert lines == ["GET / 408 5ms [-]"]


@pytest.mark.parametrize("broken", ["format", "sink", "type"])
async def test_a_format_function_or_sink_that_raises_never_breaks_a_response(
    broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> str:
        raise OSError("disk full")

    def number(*_: Any) -> int:
        return 7

    options: dict[str, Any] = {"format": {"format": fail}, "sink": {"write": fail}, "type": {"format": number}}
    response = await app_with(logger(**options[broken])).get("/users/7")
    assert response.status == 200
    assert "on_send callback of GET /users/7 raised" in caplog.text


async def test_a_logging_logger_is_an_option(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "access"):
        await app_with(logger(write=logging.getLogger("access"), level=logging.DEBUG)).get("/users/100%25")
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.DEBUG, "GET /users/100%25 200 0ms [-]")


async def test_a_structured_mode_is_an_option() -> None:
    lines = Lines()
    client = app_with(request_id(generator=lambda: "abc"), logger(format="json", write=lines))
    await client.get("/users/7?token=secret")
    assert json.loads(lines[0]) == {
        "method": "GET",
        "path": "/users/7",
        "status": 200,
        "duration_ms": 0.0,
        "ip": "203.0.113.7",
        "colo": None,
        "id": "abc",
    }


async def test_streaming_bodies_are_logged_at_the_headers() -> None:
    lines = Lines()
    app: App[Any] = App()
    app.use(logger(write=lines))

    async def chunks() -> AsyncIterator[bytes]:
        lines.append("first chunk")
        yield b"x"

    @app.get("/")
    async def stream(req: Request[Any], res: Response) -> None:
        res.stream(chunks())

    response = await Client(app, None).get("/")
    assert lines == ["GET / 200 0ms [-]"]
    await response.bytes()
    assert lines == ["GET / 200 0ms [-]", "first chunk"]


def test_logger_before_request_id_on_one_chain_is_an_error_that_names_both() -> None:
    app: App[Any] = App()
    app.use(logger())
    with pytest.raises(
        OrderError, match=r"logger\(\) is registered before request_id\(\).*Register request_id\(\) first"
    ):
        app.use(request_id())
