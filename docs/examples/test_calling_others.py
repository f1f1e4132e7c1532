"""The call of another API, against a server of its own."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import calling_others
from core.testing import Client


@pytest.fixture
def rates(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "latest.json").write_text('{"EUR": 1.08}')
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def test_what_another_service_says_is_passed_on(rates: str) -> None:
    client = Client(calling_others.app, calling_others.Env(RATES=rates))
    assert await (await client.get("/rates/EUR")).json() == {"rate": 1.08}
    assert (await client.get("/rates/XYZ")).status == 404


async def test_another_service_that_fails_is_a_502(rates: str) -> None:
    client = Client(calling_others.app, calling_others.Env(RATES=f"{rates}/nowhere"))
    assert (await client.get("/rates/EUR")).status == 502
