"""Header injection: no place that a value can enter lets a line break, or NUL, out again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import http
from core.app import App
from core.errors import CoreError
from core.middleware.cors import cors
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from core.middleware.server_timing import server_timing, timing
from core.request import Request
from core.response import Response
from core.testing import Client

SMUGGLED = ["a\r\nSet-Cookie: evil=1", "a\nX-Evil: 1", "a\rX-Evil: 1", "a\0b", "\r\n\r\n<script>", "a\r\n b"]

PLACES: dict[str, Callable[[Request[Any], Response, str], Any]] = {
    "header value": lambda req, res, text: res.header("X-A", text),
    "header name": lambda req, res, text: res.header(f"X-{text}", "1"),
    "append": lambda req, res, text: res.append("Vary", text),
    "headers mapping": lambda req, res, text: res.headers.set("X-A", text),
    "redirect": lambda req, res, text: res.redirect(f"/next?{text}"),
    "cookie name": lambda req, res, text: res.cookie(text, "1"),
    "cookie value": lambda req, res, text: res.cookie("a", text),
    "cookie path": lambda req, res, text: res.cookie("a", "1", path=f"/{text}"),
    "cookie domain": lambda req, res, text: res.cookie("a", "1", domain=text),
    "cookie same site": lambda req, res, text: res.cookie("a", "1", same_site=text),  # type: ignore[arg-type]  # that is the point
    "delete cookie": lambda req, res, text: res.delete_cookie(text),
    "stream type": lambda req, res, text: res.stream(_chunks(), content_type=text),
    "error header value": lambda req, res, text: _raise(CoreError(400, "Bad", headers={"X-A": text})),
    "error header name": lambda req, res, text: _raise(CoreError(400, "Bad", headers={text: "1"})),
    "timing": lambda req, res, text: _timed(req, text),
}


async def _chunks() -> AsyncIterator[bytes]:
    yield b"x"


def _raise(error: Exception) -> None:
    raise error


def _timed(req: Request[Any], text: str) -> None:
    with timing(req, "db", text):
        pass


async def answer(place: Callable[[Request[Any], Response, str], Any], text: str) -> http.Response:
    app: App[Any] = App()
    app.use(server_timing())

    @app.get("/")
    async def handler(req: Request[Any], res: Response) -> None:
        place(req, res, text)
        if not res.sent:
            res.json({})

    return await Client(app, None).get("/")


def assert_whole(response: http.Response) -> None:
    for name, value in response.headers.items():
        assert not set("\r\n\0") & set(name + value), (name, value)
        assert name != "x-evil"
    assert not any(cookie.startswith("evil=") for cookie in response.headers.get_set_cookie())


@pytest.mark.parametrize("text", SMUGGLED)
@pytest.mark.parametrize("place", PLACES)
async def test_no_place_lets_a_line_break_out(place: str, text: str) -> None:
    response = await answer(PLACES[place], text)
    assert_whole(response)
    assert "evil" not in "".join(name for name, _ in response.headers.items())


@given(st.sampled_from(sorted(PLACES)), st.text(max_size=30))
async def test_whatever_the_text_is(place: str, text: str) -> None:
    assert_whole(await answer(PLACES[place], text))


@pytest.mark.parametrize("text", SMUGGLED)
async def test_a_cookie_value_carries_any_text_and_comes_back_as_it_was(text: str) -> None:
    app: App[Any] = App()

    @app.get("/")
    async def handler(req: Request[Any], res: Response) -> None:
        res.cookie("a", text).json(req.cookies.get("a"))

    client = Client(app, None)
    response = await client.get("/")
    assert_whole(response)
    assert await (await client.get("/")).json() == text


@pytest.mark.parametrize(
    "value", ["1; HttpOnly", "1; Domain=evil.test", "1;Path=/admin", "1, b=2", "1 2", '"1"', "a=b"]
)
async def test_cookie_attributes_cannot_be_injected(value: str) -> None:
    response = await answer(lambda req, res, text: res.cookie("a", text), value)
    (cookie,) = response.headers.get_set_cookie()
    assert cookie.count(";") == 1
    assert cookie.endswith("; Path=/")


@pytest.mark.parametrize(
    "attribute",
    [
        {"path": "/;HttpOnly"},
        {"path": "relative"},
        {"domain": "a.test; Secure"},
        {"domain": "a test"},
        {"same_site": "None"},
        {"max_age": "1; Secure"},
    ],
)
async def test_cookie_attributes_are_checked(attribute: dict[str, Any]) -> None:
    response = await answer(lambda req, res, text: res.cookie("a", "1", **attribute), "")
    assert (response.status, response.headers.get_set_cookie()) == (500, [])


@pytest.mark.parametrize(
    "incoming",
    [
        "id\r\nX-Evil: 1",
        "id, id2",
        "../../etc/passwd",
        "<script>",
        "${jndi:ldap://evil.test}",
        "id%0d%0aX-Evil: 1",
        "'; DROP TABLE logs; --",
        "\x1b[31m",
        "é" * 3,
        "a" * 5000,
    ],
)
async def test_a_request_id_smuggles_nothing_into_headers_or_logs(incoming: str) -> None:
    lines: list[str] = []
    app: App[Any] = App()
    app.use(request_id(), logger(format="long", write=lines.append))

    @app.get("/")
    async def handler(req: Request[Any], res: Response) -> None:
        res.json({"id": req.id})

    try:
        response = await Client(app, None).get("/", headers={"X-Request-Id": incoming})
    except TypeError:
        assert "\r" in incoming  # no request can carry it
        return
    assert_whole(response)
    id = response.headers["x-request-id"]
    if incoming == "../../etc/passwd":
        assert id == incoming  # harmless in a header and a log line; it is not a file name
    else:
        assert id != incoming
    (line,) = lines
    assert line.endswith(f"id={id}")
    assert line.isprintable()


async def test_an_origin_is_never_reflected_unchecked() -> None:
    app: App[Any] = App()
    app.use(cors(origins=lambda req: True, credentials=True))
    app.get("/", _empty)
    client = Client(app, None)
    for origin in ("https://a.test\t", "a b", "\xe9", "x" * 2000):
        response = await client.get("/", headers={"Origin": origin})
        assert_whole(response)
        given = response.headers.get("access-control-allow-origin")
        assert given is None or given == origin.strip()


async def _empty(req: Request[Any], res: Response) -> None:
    res.json({})
