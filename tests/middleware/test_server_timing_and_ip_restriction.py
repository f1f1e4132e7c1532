"""`server_timing` tells where the time went; `ip_restriction` who may come in."""

from __future__ import annotations

from typing import Any

import pytest

from core import http
from core.app import App
from core.errors import CoreError, OptionError
from core.middleware.ip_restriction import ip_restriction
from core.middleware.server_timing import server_timing, timing
from core.request import Request
from core.response import Response
from core.testing import Client, FakeClock, FakeExecutionContext
from core.types import Next


async def timed(*middleware: Any, path: str = "/", description: str = "", **headers: str) -> http.Response:
    clock = FakeClock()
    app: App[Any] = App()
    if middleware:
        app.use(*middleware)

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        with timing(req, "db", description):
            clock.advance(0.0125)
        res.json({})

    @app.get("/fails")
    async def fails(req: Request[Any], res: Response) -> None:
        with timing(req, "db"):
            raise CoreError(400, "Bad")

    return await Client(app, None, FakeExecutionContext(clock=clock)).get(path, headers=headers)


async def test_total_and_what_was_measured_in_milliseconds() -> None:
    response = await timed(server_timing(), description="Find it")
    assert response.headers["server-timing"] == 'total;dur=12.5, db;dur=12.5;desc="Find it"'


async def test_errors_too() -> None:
    assert (await timed(server_timing(), path="/fails")).headers["server-timing"] == "total;dur=0.0, db;dur=0.0"
    assert (await timed(server_timing(), path="/nowhere")).headers["server-timing"] == "total;dur=0.0"


async def test_total_and_enabled_are_options() -> None:
    assert (await timed(server_timing(total=False))).headers["server-timing"] == "db;dur=12.5"
    only_me = server_timing(enabled=lambda req: req.header("x-debug") == "1")
    assert "server-timing" not in (await timed(only_me)).headers
    assert "server-timing" in (await timed(only_me, **{"X-Debug": "1"})).headers


@pytest.mark.parametrize("totals", [(True, True), (True, False), (False, True), (True, True, True)])
async def test_twice_before_a_route_everything_is_told_once(totals: tuple[bool, ...]) -> None:
    response = await timed(*(server_timing(total=total) for total in totals))
    assert response.headers["server-timing"] == "total;dur=12.5, db;dur=12.5"
    response = await timed(server_timing(total=False), server_timing(total=False))
    assert response.headers["server-timing"] == "db;dur=12.5"


async def test_what_is_measured_between_two_of_them_is_told_too() -> None:
    async def between(req: Request[Any], res: Response, next: Next, /) -> None:
        with timing(req, "auth"):
            await next()

    response = await timed(server_timing(), between, server_timing(total=False))
    assert response.headers["server-timing"] == "total;dur=12.5, db;dur=12.5, auth;dur=12.5"


async def test_without_the_middleware_measuring_does_nothing() -> None:
    assert "server-timing" not in (await timed()).headers


async def test_a_description_cannot_end_its_quotes_or_the_header() -> None:
    response = await timed(server_timing(total=False), description='a"b\\c\r\nX: y, z;é')
    assert response.headers["server-timing"] == 'db;dur=12.5;desc="abcX: y, z;"'


async def test_a_name_that_is_no_token_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a token"), timing(None, "a b"):  # type: ignore[arg-type]  # not reached
        pass


def test_enabled_is_a_function() -> None:
    with pytest.raises(OptionError, match=r"^server_timing\(enabled="):
        server_timing(enabled=True)  # type: ignore[arg-type]  # that is the point


async def status(middleware: Any, ip: str | None) -> int:
    app: App[Any] = App()
    app.use(middleware)

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        res.json({})

    client = Client(app, None, ip=ip)
    response = await client.get("/")
    assert response.status == 200 or await response.json() == {"error": "Forbidden"}
    return response.status


ALLOW: dict[str, Any] = {"allow": ["192.0.2.7", "10.0.0.0/8", "2001:db8::/32", "::ffff:198.51.100.0/120"]}


@pytest.mark.parametrize(
    "ip",
    [
        "192.0.2.7",
        "10.255.0.1",
        "2001:db8::1",
        "2001:DB8:FFFF::",
        "::ffff:192.0.2.7",
        "::ffff:10.1.1.1",
        "198.51.100.9",
        "2001:db8::1%eth0",
    ],
)
async def test_clients_of_allow_are_let_in(ip: str) -> None:
    assert await status(ip_restriction(**ALLOW), ip) == 200


@pytest.mark.parametrize(
    "ip",
    [
        "192.0.2.8",
        "11.0.0.1",
        "2001:db9::1",
        "::ffff:192.0.2.8",
        None,
        "",
        "unknown",
        "192.0.2.7, 1.1.1.1",
        "192.0.2.007",
        "0xC0000207",
        "3221225991",
    ],
)
async def test_everyone_else_and_who_has_no_readable_address_is_403(ip: str | None) -> None:
    assert await status(ip_restriction(**ALLOW), ip) == 403


async def test_deny_wins() -> None:
    both = ip_restriction(allow=["10.0.0.0/8"], deny=["10.0.0.5"])
    assert [await status(both, ip) for ip in ("10.0.0.4", "10.0.0.5", "::ffff:10.0.0.5")] == [200, 403, 403]


async def test_deny_alone_lets_the_others_in() -> None:
    only = ip_restriction(deny=["2001:db8::/32"])
    assert [await status(only, ip) for ip in ("2001:db8::1", "192.0.2.1", None)] == [403, 200, 403]
