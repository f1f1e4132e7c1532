"""Bodies as weapons: slow ones, oversized ones, deep and huge JSON, multipart bombs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest

from core import http
from core.app import App
from core.errors import CoreError
from core.hosts.asgi import asgi
from core.http.forms import FormLimits
from core.middleware.body_limit import body_limit
from core.middleware.timeout import timeout
from core.request import MAX_JSON, Request
from core.response import Response
from core.testing import Client, FakeClock, FakeExecutionContext


@attrs.frozen
class Node:
    children: list[Any]


def json_app(*middleware: Any) -> App[Any]:
    app: App[Any] = App()
    for step in middleware:
        app.use(step)

    @app.post("/any")
    async def whatever(req: Request[Any], res: Response) -> None:
        value = await req.json()
        res.json({"type": type(value).__name__})

    @app.post("/echo")
    async def echo(req: Request[Any], res: Response) -> None:
        res.json(await req.json())

    @app.post("/typed")
    async def typed(req: Request[Any], res: Response) -> None:
        res.json({"children": len((await req.json(Node)).children)})

    @app.post("/form")
    async def form(req: Request[Any], res: Response) -> None:
        res.json({"fields": len((await req.form(FormLimits(parts=50, headers=8))).items_in_order)})

    return app


DEEP = {
    "arrays": b"[" * 200_000 + b"]" * 200_000,
    "objects": b'{"a":' * 150_000 + b"1" + b"}" * 150_000,
    "unclosed": b"[" * 500_000,
    "mixed": b'[{"a":' * 100_000,
}


@pytest.mark.parametrize("path", ["/any", "/echo", "/typed"])
@pytest.mark.parametrize("body", DEEP.values(), ids=list(DEEP))
async def test_deep_json_is_400_and_no_crash(path: str, body: bytes) -> None:
    response = await Client(json_app(), None).post(path, body=body)
    assert (response.status, await response.json()) == (400, {"error": "Invalid JSON"})


@pytest.mark.parametrize("body", [b"9" * 100_000, b"-" + b"9" * 5000, b"1e" + b"9" * 5000, b"0." + b"1" * 100_000])
async def test_huge_numbers_are_no_way_to_burn_time(body: bytes) -> None:
    begun = time.process_time()
    response = await Client(json_app(), None).post("/any", body=body)
    assert response.status in (200, 400)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize("body", [b"1e400", b"-1e400", b"[1e999]"])
async def test_infinity_is_never_sent_back(body: bytes) -> None:
    response = await Client(json_app(), None).post("/echo", body=body)
    assert (response.status, await response.json()) == (400, {"error": "Invalid JSON"})


@pytest.mark.parametrize(
    "body",
    [
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"[NaN]",
        b"{'a':1}",
        b"[1,]",
        b"\xff",
        b"",
        b"nul",
        b"\xef\xbb\xbf\xef\xbb\xbf1",
        b'"\x00"',
    ],
)
async def test_what_is_no_json_is_400(body: bytes) -> None:
    response = await Client(json_app(), None).post("/any", body=body)
    assert (response.status, await response.json()) == (400, {"error": "Invalid JSON"})


async def test_many_equal_keys_cost_linear_time() -> None:
    def body(n: int) -> bytes:
        return b"{" + b",".join(b'"%d":1' % i for i in range(n)) + b"}"

    async def send(n: int) -> http.Response:
        return await Client(json_app(), None).post("/any", body=body(n))

    assert await _growth(send, 20_000) < 6


class Slow:
    """A body that comes a byte at a time."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.sent = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await self.clock.sleep(10)
            self.sent += 1
            yield b"x"


async def test_a_slow_body_is_ended_by_a_timeout() -> None:
    clock = FakeClock()
    ctx = FakeExecutionContext(clock=clock)
    body = Slow(clock)
    request = http.Request("https://a.test/any", method="POST", body=body)
    task = asyncio.create_task(json_app(timeout(duration=30_000)).fetch(request, None, ctx))
    await clock.advance(100)
    assert (await task).status == 408
    assert body.sent < 4
    assert clock.pending == 0


async def test_an_oversized_body_is_ended_by_the_limit_without_being_read() -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"x" * 65_536

    request = http.Request("https://a.test/any", method="POST", body=endless())
    response = await json_app(body_limit(max_size=1 << 20)).fetch(request, None, FakeExecutionContext())
    assert (response.status, read) == (413, 17)


async def test_a_body_that_ends_early_is_a_clients_mistake() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b'{"a"'
        raise ConnectionResetError("gone")

    request = http.Request("https://a.test/any", method="POST", body=broken())
    assert (await json_app().fetch(request, None, FakeExecutionContext())).status == 500


BOMBS = {
    "many parts": b"".join(b'--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n' for _ in range(5000))
    + b"--B--\r\n",
    "many headers": b"--B\r\n" + b"A: b\r\n" * 5000 + b"\r\nx\r\n--B--\r\n",
    "a long header": b"--B\r\nA: " + b"x" * 100_000 + b"\r\n\r\nx\r\n--B--\r\n",
    "a long header name": b"--B\r\n" + b"A" * 100_000 + b": x\r\n\r\nx\r\n--B--\r\n",
    "many urlencoded-like semicolons": b"--B\r\nContent-Disposition: form-data"
    + b"; a=b" * 1000
    + b"\r\n\r\nx\r\n--B--\r\n",
}


@pytest.mark.parametrize("body", BOMBS.values(), ids=list(BOMBS))
async def test_multipart_bombs_are_refused_quickly(body: bytes) -> None:
    begun = time.process_time()
    response = await Client(json_app(), None).post(
        "/form", body=body, headers={"Content-Type": "multipart/form-data; boundary=B"}
    )
    assert response.status in (400, 413)
    assert time.process_time() - begun < 2


async def test_many_boundaries_that_almost_match_cost_linear_time() -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=" + "-" * 60}

    async def send(n: int) -> http.Response:
        body = b"--" + b"-" * 60 + b'\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
        body += (b"\r\n--" + b"-" * 59 + b"x") * n
        return await Client(json_app(), None).post("/form", body=body, headers=headers)

    assert await _growth(send, 500) < 6


async def _growth(send: Any, size: int) -> float:
    """The factor by which twice as much takes longer, in the best of some tries: 2 where the cost is linear,
    4 where it is its square.
    """

    async def cost(n: int) -> float:
        best = float("inf")
        for _ in range(3):
            begun = time.process_time()
            await send(n)
            best = min(best, time.process_time() - begun)
        return best

    large = await cost(size * 4)
    # A cost this small is mostly noise, and not a weapon either.
    return large / await cost(size) / 2 if large > 0.5 else 0.0


# ---- how much JSON

BIG = b"[" + b" " * MAX_JSON + b"]"


def limits_app() -> App[Any]:
    app = json_app()
    app.use("/wide", body_limit(max_size=2 * MAX_JSON))
    app.use("/narrow", body_limit(max_size=10))

    @app.post("/:kind/any")
    async def whatever(req: Request[Any], res: Response) -> None:
        res.json(await req.json())

    @app.post("/bytes")
    async def first_bytes(req: Request[Any], res: Response) -> None:
        res.json({"bytes": len(await req.bytes()), "json": await req.json()})

    @app.post("/again")
    async def again(req: Request[Any], res: Response) -> None:
        for read in (req.json, req.bytes, req.text, req.json):
            with pytest.raises(CoreError) as refused:
                await read()
            assert refused.value.status == 413
        res.send()

    return app


async def test_json_of_more_than_a_mebibyte_is_413_unless_a_body_limit_allows_it() -> None:
    client = Client(limits_app(), None)
    for path, status in (("/any", 413), ("/bytes", 413), ("/wide/any", 200), ("/narrow/any", 413)):
        assert (await client.post(path, body=BIG)).status == status, path
    assert (await client.post("/any", body=BIG[2:])).status == 400
    assert (await client.post("/any", body=b"1" + b" " * (MAX_JSON - 1))).status == 200
    assert await (await client.post("/any", body=BIG)).json() == {"error": "Payload Too Large"}


@pytest.mark.parametrize("path", ["/any", "/again"])
async def test_no_more_is_read_of_json_that_is_too_long(path: str) -> None:
    received = 0
    sent: list[Any] = []

    async def receive() -> Any:
        nonlocal received
        received += 1
        assert received < 100, "it is still reading"
        return {"type": "http.request", "body": b"[" * (MAX_JSON // 16), "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": [],
    }  # fmt: skip
    await asgi(limits_app())(scope, receive, send)
    assert received == 17
    assert sent[0]["status"] == (413 if path == "/any" else 200)
