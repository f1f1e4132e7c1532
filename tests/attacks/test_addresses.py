"""Spoofed addresses: what a client sends about itself counts for nothing, through each host."""

from __future__ import annotations

from typing import Any

import pytest

from core.app import App
from core.hosts.asgi import asgi
from core.middleware.ip_restriction import ip_restriction
from core.middleware.rate_limit import rate_limit
from core.middleware.rate_limit_stores import MemoryStore
from core.request import Request
from core.response import Response
from core.testing import Client, FakeClock, FakeExecutionContext

FORGED = [
    (b"edge-connecting-ip", b"198.51.100.%d"),
    (b"Edge-Connecting-IP", b"198.51.100.%d"),
    (b"EDGE-CONNECTING-IP", b"198.51.100.%d"),
    (b"x-forwarded-for", b"198.51.100.%d"),
    (b"x-real-ip", b"198.51.100.%d"),
    (b"forwarded", b"for=198.51.100.%d"),
    (b"cf-connecting-ip", b"198.51.100.%d"),
    (b"true-client-ip", b"198.51.100.%d"),
    (b"x-client-ip", b"198.51.100.%d"),
]


def app() -> App[Any]:
    made: App[Any] = App()
    made.use(rate_limit(store=MemoryStore(), limit=2, window=60))

    @made.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        res.json(
            {"ip": req.ip, "header": req.header("Edge-Connecting-IP"), "all": req.headers.get("edge-connecting-ip")}
        )

    return made


async def over_asgi(made: Any, headers: list[tuple[bytes, bytes]], client: Any = ("192.0.2.1", 5)) -> tuple[int, bytes]:
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    # Servers hand over names in lower case, as ASGI says.
    lowered = [(name.lower(), value) for name, value in headers]
    scope = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "query_string": b"", "headers": lowered, "client": client, "scheme": "http"}  # fmt: skip
    await made(scope, receive, send)
    return messages[0]["status"], messages[1]["body"]


@pytest.mark.parametrize(("name", "value"), FORGED)
async def test_over_asgi_a_forged_address_buys_no_second_limit(name: bytes, value: bytes) -> None:
    made = asgi(app())
    statuses = [(await over_asgi(made, [(name, value % n)]))[0] for n in range(4)]
    assert statuses == [200, 200, 429, 429]


async def test_over_asgi_the_address_is_the_connections_whatever_was_sent_and_however_often() -> None:
    made = asgi(app())
    sent = [(b"edge-connecting-ip", b"1.1.1.1"), (b"edge-connecting-ip", b"2.2.2.2")]
    _, body = await over_asgi(made, sent)
    assert body == b'{"ip":"192.0.2.1","header":"192.0.2.1","all":"192.0.2.1"}'
    _, body = await over_asgi(asgi(app()), sent, None)
    assert body == b'{"ip":null,"header":null,"all":null}'


@pytest.mark.parametrize(("name", "value"), [pair for pair in FORGED if pair[0].lower() != b"edge-connecting-ip"])
async def test_in_a_fetch_no_other_header_is_read(name: bytes, value: bytes) -> None:
    client = Client(app(), None, FakeExecutionContext(clock=FakeClock()))
    statuses = [(await client.get("/", headers={name.decode(): (value % n).decode()})).status for n in range(4)]
    assert statuses == [200, 200, 429, 429]


async def test_a_forged_address_opens_no_restricted_route() -> None:
    made: App[Any] = App()
    made.use(ip_restriction(allow=["10.0.0.0/8"]))
    made.get("/", _empty)
    for name, _ in FORGED:
        status, _ = await over_asgi(asgi(made), [(name, b"10.0.0.1")])
        assert status == 403, name


async def _empty(req: Request[Any], res: Response) -> None:
    res.json({})


async def test_a_list_of_addresses_in_the_trusted_header_is_no_address() -> None:
    made: App[Any] = App()
    made.use(ip_restriction(allow=["10.0.0.0/8"]))
    made.get("/", _empty)
    client = Client(made, None, ip="10.0.0.1, 192.0.2.1")
    assert (await client.get("/")).status == 403
