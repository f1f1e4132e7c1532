"""`csrf`: what browsers say of a request's origin decides."""

from __future__ import annotations

from typing import Any

import pytest

from core import http
from core.app import App
from core.middleware.csrf import csrf
from core.request import Request
from core.response import Response
from core.testing import Client


async def send(middleware: Any, headers: dict[str, str], method: str = "POST") -> http.Response:
    app: App[Any] = App()
    app.use(middleware)

    @app.all("/")
    async def change(req: Request[Any], res: Response) -> None:
        res.json({})

    return await Client(app, {"ALLOWED": "https://b.test"}).request(method, "/", headers=headers)


OWN = "https://example.test"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "PURGE"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": OWN},
        {"Sec-Fetch-Site": "something-new"},
        {"Sec-Fetch-Site": "same-origin, cross-site"},
        {"Sec-Fetch-Site": ""},
        {"Origin": "https://evil.test"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://example.test"},
        {"Origin": "https://example.test:8443"},
        {"Origin": "https://example.test.evil.test"},
        {"Origin": "https://sub.example.test"},
        {"Origin": "https://EXAMPLE.test"},
    ],
)
async def test_what_another_sites_page_sends_is_403(method: str, headers: dict[str, str]) -> None:
    response = await send(csrf(), headers, method)
    assert (response.status, await response.json()) == (403, {"error": "Forbidden", "code": "CROSS_SITE_REQUEST"})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": OWN},
        {"Sec-Fetch-Site": "same-origin", "Origin": OWN},
    ],
)
async def test_the_servers_own_pages_and_what_is_no_browser_pass(headers: dict[str, str]) -> None:
    assert (await send(csrf(), headers)).status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
async def test_safe_methods_are_never_refused(method: str) -> None:
    assert (await send(csrf(), {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.test"}, method)).status == 200


async def test_origins_may_be_a_list_or_a_function_sync_or_async() -> None:
    def by_env(req: Request[Any]) -> list[str]:
        return [req.env["ALLOWED"]]

    async def later(req: Request[Any]) -> list[str]:
        return [req.env["ALLOWED"]]

    for origins in (["https://b.test"], by_env, later):
        for headers in ({"Origin": "https://b.test"}, {"Sec-Fetch-Site": "cross-site", "Origin": "https://b.test"}):
            assert (await send(csrf(origins=origins), headers)).status == 200
        assert (await send(csrf(origins=origins), {"Origin": "https://c.test"})).status == 403


async def test_null_is_refused_even_when_listed_since_any_sandboxed_page_has_it() -> None:
    assert (await send(csrf(origins=["null"]), {"Origin": "null"})).status == 403


async def test_allow_same_site() -> None:
    assert (await send(csrf(allow_same_site=True), {"Sec-Fetch-Site": "same-site"})).status == 200
    assert (await send(csrf(allow_same_site=True), {"Sec-Fetch-Site": "cross-site"})).status == 403
