"""Behind a proxy that ends TLS: `req.url`, `csrf`, secure cookies and origins of WebSockets are as clients see them.

Through a real proxy and real TLS, on CPython and in workerd, by either of the two options that say so.
"""

from __future__ import annotations

import asyncio
import http.cookiejar
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.runtime.conftest import Make
from tests.support.commands import PATIENCE, Command
from tests.support.tls_proxy import TlsProxy
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from core.runtime.plan import Plan

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]

MAIN = dedent("""
    from urllib.parse import parse_qs

    from core import Request, Response, create_app
    from core.http.websocket import WebSocket
    from core.middleware.csrf import csrf

    app = create_app()
    app.use(csrf())

    @app.get("/")
    async def visit(req: Request, res: Response) -> None:
        res.cookie("__Host-visitor", "7", http_only=True, secure=True, same_site="Lax").json(req.url)

    @app.post("/form")
    async def form(req: Request, res: Response) -> None:
        res.json([parse_qs(await req.text())["name"], req.cookies.get("__Host-visitor")])

    @app.websocket("/echo")
    async def echo(req: Request, socket: WebSocket) -> None:
        async for message in socket:
            await socket.send(message)
""")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("behind-tls")
    (folder / "main.py").write_text(MAIN)
    (folder / "wrangler.toml").write_text('name = "form"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    return folder


@pytest.fixture(scope="module")
def built(make: Make) -> Path:
    return make(MAIN, Plan(name="form")).folder


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[TlsProxy]:
    with TlsProxy(tmp_path) as proxy:
        yield proxy


@pytest.fixture
def serve(project: Path, proxy: TlsProxy) -> Iterator[Callable[..., None]]:
    """Start `core serve` behind the proxy."""
    started: list[Command] = []

    def serve(*options: str) -> None:
        options = ("--port", "0", "--health", "127.0.0.1:0", *options)
        started.append(Command("serve", *options, folder=project))
        proxy.upstream = started[-1].ports()[0]

    yield serve
    for command in started:
        command.finish()


OPTIONS = ("--forwarded-proto-header", "--public-url")
PLACES = [(place, option) for place in ("python", "workerd") for option in OPTIONS]


@pytest.mark.parametrize(("place", "option"), [*PLACES, ("python", "")])
def test_a_form_a_cookie_and_a_websocket_through_tls(
    serve: Callable[..., None], proxy: TlsProxy, place: str, option: str, request: pytest.FixtureRequest
) -> None:
    own, evil = f"https://localhost:{proxy.port}", "https://evil.example"
    values = {"--forwarded-proto-header": ["X-Forwarded-Proto"], "--public-url": [own], "": []}
    on_python = ["--python", "--workers", "1"]
    where = [str(request.getfixturevalue("built"))] if place == "workerd" else on_python
    serve(*where, *([option] if option else []), *values[option])

    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=proxy.trust), urllib.request.HTTPCookieProcessor(jar)
    )

    def ask(path: str, data: bytes | None = None, origin: str = own) -> Any:
        headers = {"Origin": origin, "X-Forwarded-Proto": "http"}
        wanted = urllib.request.Request(own + path, data=data, headers=headers)
        try:
            with opener.open(wanted, timeout=PATIENCE) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def greet(origin: str) -> object:
        async def talk() -> object:
            try:
                uri = f"wss://localhost:{proxy.port}/echo"
                async with connect(uri, ssl=proxy.trust, origin=Origin(origin)) as socket:
                    await socket.send("hello")
                    return await socket.recv()
            except InvalidStatus as error:
                return error.response.status_code

        return asyncio.run(asyncio.wait_for(talk(), PATIENCE))

    if not option:
        # Nobody has said that there is TLS in front: a page of https is not this server's own.
        assert ask("/").startswith("http://localhost:")
        assert (ask("/form", b"name=Ada", own), greet(own)) == (403, 403)
        return
    # What a client says of itself is overwritten.
    assert ask("/") == f"{own}/"
    assert [(cookie.name, cookie.secure) for cookie in jar] == [("__Host-visitor", True)]
    assert ask("/form", b"name=Ada", own) == [["Ada"], "7"]
    assert ask("/form", b"name=Ada", own.replace("https", "http")) == 403
    assert ask("/form", b"name=Ada", evil) == 403
    assert (greet(own), greet(evil)) == ("hello", 403)
