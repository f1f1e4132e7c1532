"""`trusted_hosts`: which names are answered for."""

from __future__ import annotations

from typing import Any

import pytest

from core import App, Request, Response, http
from core.middleware.trusted_hosts import trusted_hosts
from core.testing import FakeExecutionContext


class Env:
    HOSTS: str = "example.com,www.example.com"


async def status(host: str, hosts: Any) -> int:
    app: App[Any] = App()
    app.use(trusted_hosts(hosts=hosts))

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        res.json({})

    response = await app.fetch(http.Request(f"https://{host}/"), Env(), FakeExecutionContext())
    if response.status != 200:
        assert await response.json() == {"error": "Unknown host"}
    return response.status


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("example.com", 200),
        ("EXAMPLE.com:8443", 200),
        ("a.example.org", 200),
        ("a.b.example.org", 200),
        ("example.org", 400),
        (".example.org", 400),
        ("a..example.org", 400),
        ("evil.test", 400),
        ("example.com.evil.test", 400),
        ("evilexample.org", 400),
        ("xexample.com", 400),
        ("[::1]", 200),
        ("127.0.0.1", 400),
        ("localhost", 400),
    ],
)
async def test_only_the_names_of_the_list_are_answered(host: str, answer: int) -> None:
    assert await status(host, ["example.com", "*.example.org", "[::1]"]) == answer


async def test_the_list_may_come_from_the_request() -> None:
    async def later(req: Request[Any]) -> list[str]:
        return ["example.com"]

    def at_once(req: Request[Env]) -> list[str]:
        return req.env.HOSTS.split(",")

    assert await status("www.example.com", at_once) == 200
    assert await status("www.example.com", later) == 400
