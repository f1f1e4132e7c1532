"""`body_limit`: a bound that holds whatever the client says of the length."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from core import http
from core.app import App
from core.middleware.body_limit import body_limit
from core.request import Request
from core.response import Response
from core.testing import Client, FakeExecutionContext


def client_with(*middleware: Any) -> Client[Any]:
    app: App[Any] = App()
    app.use(*middleware)

    @app.post("/bytes")
    async def whole(req: Request[Any], res: Response) -> None:
        res.json({"size": len(await req.bytes())})

    @app.post("/stream")
    async def pieces(req: Request[Any], res: Response) -> None:
        res.json({"size": sum([len(chunk) async for chunk in req.stream()])})

    @app.post("/ignored")
    async def ignored(req: Request[Any], res: Response) -> None:
        res.json({})

    return Client(app, None)


class Pieces:
    """A body that tells no length, and how much of it was read."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self.count):
            self.read += 1
            yield b"x" * 100


@pytest.mark.parametrize("path", ["/bytes", "/stream"])
async def test_up_to_the_bound_passes_and_beyond_is_413(path: str) -> None:
    client = client_with(body_limit(max_size=1000))
    assert await (await client.post(path, body=b"x" * 1000)).json() == {"size": 1000}
    response = await client.post(path, body=b"x" * 1001)
    assert (response.status, await response.json()) == (413, {"error": "Payload Too Large"})


@pytest.mark.parametrize("path", ["/bytes", "/stream"])
async def test_a_body_without_a_length_is_read_no_further_than_the_bound(path: str) -> None:
    client, body = client_with(body_limit(max_size=1000)), Pieces(1000)
    assert (await client.post(path, body=body)).status == 413
    assert body.read == 11


@pytest.mark.parametrize("length", ["1001", "99999999999999999999", "9" * 5000, "0" * 40 + "1"])
async def test_a_content_length_that_is_too_large_is_refused_before_the_handler_runs(length: str) -> None:
    response = await client_with(body_limit(max_size=1000)).post("/ignored", headers={"Content-Length": length})
    assert response.status == 413


@pytest.mark.parametrize("length", ["5", "-5", "1e9", "²", "", "5, 5"])
async def test_a_content_length_that_lies_helps_nobody(length: str) -> None:
    client = client_with(body_limit(max_size=1000))
    assert (await client.post("/bytes", body=Pieces(11), headers={"Content-Length": length})).status == 413


async def test_of_two_on_one_chain_the_smaller_counts() -> None:
    for sizes in ((10, 1000), (1000, 10)):
        client = client_with(*(body_limit(max_size=size) for size in sizes))
        assert (await client.post("/bytes", body=Pieces(1))).status == 413


async def test_a_body_that_was_read_before_is_measured_too() -> None:
    async def read(req: Request[Any], res: Response, next: Any) -> None:
        await req.bytes()
        await next()

    assert (await client_with(read, body_limit(max_size=10)).post("/bytes", body=b"x" * 11)).status == 413
    assert (await client_with(read, body_limit(max_size=10)).post("/bytes", body=b"x" * 10)).status == 200


async def test_status_and_message_are_options() -> None:
    response = await client_with(body_limit(max_size=1, status=400, message="No")).post("/bytes", body=b"xx")
    assert (response.status, await response.json()) == (400, {"error": "No"})


async def test_a_json_body_is_bound_too() -> None:
    app: App[Any] = App()
    app.use(body_limit(max_size=10))

    @app.post("/")
    async def read(req: Request[Any], res: Response) -> None:
        res.json(await req.json())

    request = http.Request("https://a.test/", method="POST", body=Pieces(1))
    assert (await app.fetch(request, None, FakeExecutionContext())).status == 413
