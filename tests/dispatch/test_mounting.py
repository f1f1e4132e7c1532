"""Another application below a prefix: ASGI applications and functions of a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.asgi import ask as ask_over_asgi
from tests.support.asgi import scope_of
from tests.support.fetch import PlainContext, answer, ask

from core import Next, Request, Response, Router, create_app, http
from core.errors import HandlerError, PathError, RegistrationError
from core.testing import Client


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with what it was given; as most frameworks, it is asked for a lifespan too."""
    if scope["type"] == "lifespan":
        assert (await receive())["type"] == "lifespan.startup"
        scope["state"]["pool"] = "open"
        await send({"type": "lifespan.startup.complete"})
        assert (await receive())["type"] == "lifespan.shutdown"
        scope["state"]["pool"] = "closed"
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = b""
    while (message := await receive()).get("more_body"):
        body += message["body"]
    headers = dict(scope["headers"])
    told = (
        f"{scope['method']} {scope['root_path']} {scope['path']} {scope['raw_path'].decode()} "
        f"{scope['query_string'].decode()} {scope['client']} {scope['server']} {scope['scheme']} "
        f"{headers.get(b'x-a')} {body.decode()} {scope['state']}"
    )
    start = [
        (b"content-type", b"text/plain"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 201, "headers": start})
    await send({"type": "http.response.body", "body": told.encode()})


async def test_an_asgi_application_sees_its_prefix_as_the_root() -> None:
    app = create_app()
    app.mount("/inner/:tenant", echo)
    async with Client(app, None) as client:
        response = await client.post("/inner/x%20y/a%2Fb/?q=1", body="text", headers={"x-a": "1"})
        assert response.status == 201
        assert await response.text() == (
            "POST /inner/x y /inner/x y/a/b/ /inner/x%20y/a%2Fb/ q=1 ('203.0.113.7', 0) ('example.test', 443) https "
            "b'1' text {'pool': 'open'}"
        )
        assert response.headers.get_set_cookie() == ["a=1", "b=2"]
        assert "connection" not in response.headers
        assert (await client.get("/inner/t")).status == 201
        assert (await client.get("/inner")).status == 404
        assert await (await client.head("/inner/t")).bytes() == b""


async def test_middleware_stands_before_it_and_default_deny_asks_for_it() -> None:
    app = create_app(default_deny=True)

    async def mark(req: Request, res: Response, next: Next) -> None:
        await next()
        res.header("x-mark", str(res.status_code))

    app.mount("/inner", echo)
    with pytest.raises(RegistrationError, match=r"\* /inner, \* /inner/\*"):
        app.check()
    app = create_app()
    app.use(mark)
    app.mount("/", echo)
    async with Client(app, None) as client:
        response = await client.get("/a")
        assert response.headers["x-mark"] == "201"
        assert (await response.text()).startswith("GET  /a /a")
        assert (await client.get("/")).status == 201


async def test_a_streamed_answer_is_streamed_and_the_application_hears_of_its_end() -> None:
    told: list[str] = []

    async def streaming(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            raise NotImplementedError
        await receive()
        await send({"type": "http.response.start", "status": 200})
        for number in range(1000):
            await send({"type": "http.response.body", "body": b"%d " % number, "more_body": True})
            told.append("sent")
            if (await asyncio.wait((listener := asyncio.ensure_future(receive()),), timeout=0))[0]:
                told.append(listener.result()["type"])
                return
            listener.cancel()

    app = create_app()
    app.mount("/", streaming)
    async with Client(app, None) as client:
        stream = (await client.get("/")).stream()
        assert [await anext(stream) for _ in range(3)] == [b"0 ", b"1 ", b"2 "]
        assert told.count("sent") < 8
        await stream.aclose()
        for _ in range(5):
            await asyncio.sleep(0)
    assert told[-1] == "http.disconnect"


@pytest.mark.parametrize("ending", ["returns", "raises", "answers", "answers and raises"])
async def test_a_client_that_goes_away_in_its_body_is_a_disconnect_there(
    ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    async def reading(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            raise NotImplementedError
        while told[-1:] != ["http.disconnect"]:
            told.append((await receive())["type"])
        told.append((await receive())["type"])
        if "answers" in ending:
            await send({"type": "http.response.start", "status": 200})
            await send({"type": "http.response.body", "body": b"half of it"})
        if "raises" in ending:
            raise OSError("the client is gone")

    app = create_app()
    status: list[int] = []

    async def look(req: Request, res: Response, next: Next) -> None:
        res.on_send(lambda code, duration: status.append(code))
        await next()

    app.use(look)
    app.mount("/", reading)
    first = {"type": "http.request", "body": b"half", "more_body": True}
    await ask_over_asgi(app, scope_of(method="POST"), first, {"type": "http.disconnect"})
    for _ in range(10):
        await asyncio.sleep(0)  # its end is seen behind its answer
    assert told == ["http.request", "http.disconnect", "http.disconnect"]
    assert status == [200 if "answers" in ending else 499]
    assert not caplog.records


async def test_what_it_raises_before_its_answer_is_answered_here() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise OSError("a secret")

    async def silent(scope: Any, receive: Any, send: Any) -> None:
        pass

    app = create_app()
    app.mount("/broken", broken)
    app.mount("/silent", silent)
    async with Client(app, None) as client:
        for path in ("/broken", "/silent"):
            response = await client.get(path)
            assert (response.status, await response.json()) == (500, {"error": "Internal Server Error"})


async def test_what_it_does_behind_its_answer_outlives_the_request() -> None:
    done = asyncio.Event()

    async def working(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body"})
            await asyncio.sleep(0)
            done.set()

    app = create_app()
    app.mount("/", working)
    await app.startup(None)
    ctx = PlainContext()
    assert (await ask(app, ctx=ctx)).status == 204
    await asyncio.gather(*ctx.waited)
    assert done.is_set()
    await app.shutdown(None)


async def test_a_function_gets_the_url_without_the_prefix() -> None:
    inner = create_app()

    @inner.post("/a/:id")
    async def show(req: Request, res: Response) -> None:
        res.json([req.params["id"], req.query.get("q"), await req.text(), req.env])

    async def alone(request: http.Request) -> http.Response:
        return http.Response(f"{request.method} {request.url}", status=203)

    app = create_app()
    app.mount("/inner", inner.fetch)
    app.mount("/alone", alone)
    assert await answer(app, "/inner/a/7%2F?q=1", method="POST", body="b", env="env") == (200, ["7/", "1", "b", "env"])
    response = await ask(app, "/alone/x/y?z")
    assert (response.status, await response.text()) == (203, "GET https://example.test/x/y?z")
    assert await (await ask(app, "/alone")).text() == "GET https://example.test/"


def test_what_cannot_be_mounted_is_refused() -> None:
    app = create_app()

    async def two(req: Request, res: Response) -> None: ...

    for given in (two, 7):
        wrong: Any = given
        with pytest.raises(HandlerError, match="give an ASGI application"):
            app.mount("/x", wrong)
    other: Any = create_app()
    with pytest.raises(HandlerError, match=r'Write app\.mount\("/x", other\.fetch\)$'):
        app.mount("/x", other)
    router: Any = Router()
    with pytest.raises(HandlerError, match=r'Write app\.use\("/x", router\)$'):
        app.mount("/x", router)
    with pytest.raises(PathError, match="a prefix covers all below it"):
        app.mount("/x/*", echo)


# -- core under another application


async def test_core_below_another_application_is_started_with_its_first_request() -> None:
    from core.hosts.asgi import asgi

    inner = create_app()

    @inner.lifespan
    async def pool(env: None) -> AsyncIterator[str]:
        yield "open"

    @inner.get("/:id")
    async def show(req: Request, res: Response) -> None:
        res.json([req.root_path, req.path, pool.of(req), req.url_for(show, id=8), req.url])

    outer = create_app()
    outer.mount("/outer", asgi(inner))
    async with Client(outer, None) as client:
        assert await (await client.get("/outer/7")).json() == [
            "/outer",
            "/7",
            "open",
            "/outer/8",
            "https://example.test/outer/7",
        ]
