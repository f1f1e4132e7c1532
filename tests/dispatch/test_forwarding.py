"""Responses and requests that are passed on: what goes along, what belongs to one connection, who wins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.fetch import ask

from core import Next, Request, Response, create_app, http
from core.middleware.secure_headers import secure_hdrs


def passing(upstream: Any) -> Any:
    app = create_app()

    @app.all("/*")
    async def handler(req: Request, res: Response) -> None:
        res.header("x-own", "staged").header("cache-control", "no-store").cookie("own", "1")
        res.send(upstream)

    return app


async def test_a_response_is_passed_on_with_its_status_headers_and_body() -> None:
    upstream = http.Response("hello", status=203, headers={"x-theirs": "1", "content-type": "text/css", "etag": '"a"'})
    upstream.headers.append("set-cookie", "theirs=2")
    upstream.headers["cache-control"] = "public"
    response = await ask(passing(upstream))
    assert (response.status, await response.text()) == (203, "hello")
    assert response.headers["x-theirs"] == "1"
    assert response.headers["content-type"] == "text/css"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["etag"] == '"a"'
    assert response.headers.get_set_cookie() == ["theirs=2", "own=1; Path=/"]


async def test_headers_of_one_connection_stay_behind() -> None:
    dropped = {
        "connection": "close, X-Secret",
        "x-secret": "1",
        "keep-alive": "timeout=5",
        "te": "trailers",
        "trailer": "x",
        "upgrade": "h2c",
        "proxy-connection": "close",
        "content-length": "999",
    }
    response = await ask(passing(http.Response("hi", headers={**dropped, "x-kept": "1"})))
    assert not dropped.keys() & set(response.headers)
    assert response.headers["x-kept"] == "1"


async def test_a_streamed_body_is_streamed_and_closed() -> None:
    made: list[str] = []

    async def chunks() -> AsyncIterator[bytes]:
        try:
            for piece in (b"a", b"b", b"c"):
                made.append(piece.decode())
                yield piece
        finally:
            made.append("closed")

    response = await ask(passing(http.Response(chunks(), headers={"content-length": "3"})))
    assert made == []
    assert response.headers["content-length"] == "3"
    stream = response.stream()
    assert await anext(stream) == b"a"
    await stream.aclose()
    assert made[-1] == "closed"
    assert "c" not in made


async def test_middleware_stages_on_top_and_vary_names_both() -> None:
    app = create_app()

    @app.use
    async def vary(req: Request, res: Response, next: Next) -> None:
        res.header("vary", "Origin")
        await next()
        res.header("x-after", "1")

    app.use(secure_hdrs())

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        res.send(http.Response("x", headers={"vary": "Accept, origin", "x-frame-options": "SAMEORIGIN"}))

    response = await ask(app)
    assert response.headers["vary"] == "Origin, Accept"
    assert response.headers["x-frame-options"] == "DENY"
    assert response.headers["x-after"] == "1"


async def test_an_error_afterwards_takes_the_passed_headers_back() -> None:
    app = create_app()

    @app.get("/")
    async def handler(req: Request, res: Response) -> None:
        res.header("x-own", "1").send(
            http.Response("x", headers={"cache-control": "public, max-age=600", "x-own": "2"})
        )
        raise KeyError("a bug")

    response = await ask(app)
    assert response.status == 500
    assert "cache-control" not in response.headers
    assert response.headers["x-own"] == "1"


@pytest.mark.parametrize("status", [204, 304])
async def test_a_status_without_a_body_passes(status: int) -> None:
    response = await ask(passing(http.Response(status=status, headers={"etag": '"x"'})))
    assert (response.status, await response.bytes()) == (status, b"")
    assert response.headers["etag"] == '"x"'


async def test_what_cannot_be_passed_on_is_told() -> None:
    res = Response()
    with pytest.raises(ValueError, match="status 0 cannot be passed on"):
        res.send(http.Response.error())
    read = http.Response("x")
    await read.text()
    with pytest.raises(TypeError, match="already been used"):
        res.send(read)
    assert not res.sent


async def test_a_request_is_a_standard_value_again() -> None:
    seen: list[http.Request] = []
    app = create_app()

    @app.all("/*")
    async def forward(req: Request, res: Response) -> None:
        seen.append(req.to_http())
        res.send(await inner.fetch(seen[-1], None, req.ctx))

    inner = create_app()

    @inner.post("/a/:id")
    async def echo(req: Request, res: Response) -> None:
        res.json({"id": req.params["id"], "q": req.query.get("q"), "body": await req.text(), "ip": req.ip})

    headers = {"x-a": "1", "connection": "x-b", "x-b": "2", "host": "example.test", "Edge-Connecting-IP": "192.0.2.1"}
    response = await ask(app, "/a/%C3%A9?q=1", method="POST", body="text", headers=headers)
    assert await response.json() == {"id": "é", "q": "1", "body": "text", "ip": "192.0.2.1"}
    (request,) = seen
    assert (request.method, request.url) == ("POST", "https://example.test/a/%C3%A9?q=1")
    assert set(request.headers) == {"content-type", "edge-connecting-ip", "x-a"}
    assert (await ask(app, "/a/7", method="GET")).status == 404


async def test_a_body_that_was_read_is_sent_again() -> None:
    app = create_app()

    @app.post("/")
    async def handler(req: Request, res: Response) -> None:
        first = await req.text()
        res.text(first + await req.to_http().text())

    assert await (await ask(app, method="POST", body="ab")).text() == "abab"


@pytest.mark.parametrize("name", ["edge-connecting-ip", "Edge-Connecting-IP", "cf-connecting-ip"])
async def test_a_client_cannot_have_its_own_address_dropped(name: str) -> None:
    inner = create_app()

    @inner.get("/*")
    async def who(req: Request, res: Response) -> None:
        res.json({"ip": req.ip, "x": req.header("x-of-the-connection")})

    app = create_app()
    app.mount("/inner", inner.fetch)
    headers = {
        "edge-connecting-ip": "192.0.2.7",
        "x-of-the-connection": "1",
        "connection": f"{name}, x-of-the-connection",
    }
    response = await ask(app, "/inner/x", headers=headers)
    assert await response.json() == {"ip": "192.0.2.7", "x": None}
