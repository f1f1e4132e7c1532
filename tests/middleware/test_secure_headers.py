"""`secure_hdrs`: every option and default of the specification, on everything that leaves."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.support.secure_headers import DEFAULTS

from core.app import App
from core.errors import CoreError, OptionError
from core.hosts.asgi import asgi
from core.http.websocket import WebSocket
from core.middleware.cors import cors
from core.middleware.rate_limit import rate_limit
from core.middleware.secure_headers import NONCE, secure_hdrs
from core.request import Request
from core.response import Response
from core.testing import Client, FakeExecutionContext, FakeKVNamespace

# Beyond the specification, whose ten are in tests/spec.
OFF = [
    "content_security_policy_report_only",
    "origin_agent_cluster",
    "x_dns_prefetch_control",
    "x_download_options",
    "x_permitted_cross_domain_policies",
    "reporting_endpoints",
]


def only(option: str, value: object) -> dict[str, Any]:
    return {option: value}


class Env:
    def __init__(self, kv: FakeKVNamespace) -> None:
        self.COUNTERS = kv


def client_with(*middleware: Any) -> Client[Any]:
    app: App[Any] = App()
    app.use(*middleware)

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        res.json({"nonce": req.state.get("csp_nonce")})

    @app.get("/fails")
    async def fail(req: Request[Any], res: Response) -> None:
        raise CoreError(400, "Bad")

    @app.get("/breaks")
    async def breaks(req: Request[Any], res: Response) -> None:
        raise RuntimeError("a bug")

    @app.get("/unchanged")
    async def unchanged(req: Request[Any], res: Response) -> None:
        res.status(304).send()

    @app.websocket("/upgrade")
    async def upgrade(req: Request[Any], socket: WebSocket) -> None: ...

    @app.get("/own")
    async def own(req: Request[Any], res: Response) -> None:
        res.header("X-Frame-Options", "SAMEORIGIN").json({})

    return Client(app, Env(FakeKVNamespace()))


@pytest.mark.parametrize("option", OFF)
async def test_a_further_header_is_off_until_it_is_given(option: str) -> None:
    name = option.replace("_", "-")
    for options, value in (({}, None), (only(option, "a value"), "a value"), (only(option, False), None)):
        assert (await client_with(secure_hdrs(**options)).get("/")).headers.get(name) == value


@pytest.mark.parametrize(
    ("path", "status"), [("/fails", 400), ("/breaks", 500), ("/nowhere", 404), ("/unchanged", 304), ("/%zz", 400)]
)
async def test_on_every_response(path: str, status: int) -> None:
    response = await client_with(secure_hdrs()).get(path)
    assert response.status == status
    assert response.headers["x-frame-options"] == "DENY"


async def test_on_429s_and_preflights_too() -> None:
    limiter = rate_limit(kv_binding="COUNTERS", limit=1, window=60)
    client = client_with(secure_hdrs(), cors(origins=["https://a.test"]), limiter)
    preflight = {"Origin": "https://a.test", "Access-Control-Request-Method": "PUT"}
    responses = [await client.options("/", headers=preflight), await client.get("/"), await client.get("/")]
    assert [response.status for response in responses] == [204, 200, 429]
    assert all(response.headers["x-frame-options"] == "DENY" for response in responses)
    assert isinstance(client.ctx, FakeExecutionContext)
    await client.ctx.drain()


@pytest.mark.parametrize("override", [False, True])
async def test_but_not_on_upgrades(override: bool) -> None:
    app = client_with(secure_hdrs(override=override)).app
    from core import http

    res = Response()
    handshake = http.Request("https://a.test/upgrade", headers={"Upgrade": "websocket"})
    await app.dispatcher.respond(Request(handshake, None, FakeExecutionContext()), res)
    assert res.status_code == 101
    assert res.staged == {"upgrade": "websocket", "connection": "Upgrade"}


async def test_a_header_that_a_handler_set_itself_is_kept() -> None:
    response = await client_with(secure_hdrs()).get("/own")
    assert response.headers["x-frame-options"] == "SAMEORIGIN"


async def test_override_puts_the_value_back() -> None:
    response = await client_with(secure_hdrs(override=True)).get("/own")
    assert response.headers["x-frame-options"] == "DENY"


async def test_of_two_on_one_chain_the_inner_ones_values_count() -> None:
    response = await client_with(secure_hdrs(), secure_hdrs(x_frame_options="SAMEORIGIN")).get("/")
    assert response.headers["x-frame-options"] == "SAMEORIGIN"


async def test_a_policy_is_built_of_directives() -> None:
    policy: dict[str, str | list[str] | bool] = {
        "default_src": "'self'",
        "img-src": ["'self'", "data:"],
        "upgrade_insecure_requests": True,
        "sandbox": False,
    }
    response = await client_with(secure_hdrs(content_security_policy=policy)).get("/")
    expected = "default-src 'self'; img-src 'self' data:; upgrade-insecure-requests"
    assert response.headers["content-security-policy"] == expected


async def test_a_nonce_is_new_for_each_request_and_stands_in_the_state() -> None:
    policy: dict[str, list[str]] = {"script_src": ["'self'", NONCE]}
    client = client_with(secure_hdrs(content_security_policy=policy, content_security_policy_report_only=policy))
    seen: set[str] = set()
    for _ in range(3):
        response = await client.get("/")
        nonce = (await response.json())["nonce"]
        assert re.fullmatch(r"[A-Za-z0-9+/]{22}==", nonce)
        assert response.headers["content-security-policy"] == f"script-src 'self' 'nonce-{nonce}'"
        assert response.headers["content-security-policy-report-only"] == f"script-src 'self' 'nonce-{nonce}'"
        seen.add(nonce)
    assert len(seen) == 3


async def test_without_a_nonce_in_the_policy_none_is_made() -> None:
    assert await (await client_with(secure_hdrs()).get("/")).json() == {"nonce": None}


async def test_reporting_endpoints_take_names_to_urls() -> None:
    response = await client_with(secure_hdrs(reporting_endpoints={"csp": "https://r.test/a", "b": "/b"})).get("/")
    assert response.headers["reporting-endpoints"] == 'csp="https://r.test/a", b="/b"'


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: x=1", "a\nb", "a\r", "a\0", "trailing\n", "ŝ", ""])
@pytest.mark.parametrize("option", ["content_security_policy", "x_frame_options", "reporting_endpoints"])
def test_values_with_cr_or_lf_are_refused_at_registration(option: str, value: str) -> None:
    with pytest.raises(OptionError, match=rf"^secure_hdrs\({option}="):
        secure_hdrs(**only(option, value))


async def keep_all(req: Request[Any], res: Response) -> None:
    res.json({})


async def replace_one(req: Request[Any], res: Response) -> None:
    res.header("X-Frame-Options", "SAMEORIGIN").json({})


async def remove_one(req: Request[Any], res: Response) -> None:
    res.header("X-Frame-Options", None).json({})


async def add_to_one(req: Request[Any], res: Response) -> None:
    res.append("X-Frame-Options", "SAMEORIGIN").json({})


async def change_what_is_read(req: Request[Any], res: Response) -> None:
    res.headers["x-frame-options"] = res.headers["x-frame-options"].lower()
    res.json({})


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize(
    ("handler", "value"),
    [
        (keep_all, "DENY"),
        (replace_one, "SAMEORIGIN"),
        (remove_one, None),
        (add_to_one, "DENY, SAMEORIGIN"),
        (change_what_is_read, "deny"),
    ],
)
async def test_a_handlers_word_on_one_of_the_headers_counts_on_every_way_out(
    handler: Any, value: str | None, twice: bool
) -> None:
    app: App[Any] = App()
    app.use(secure_hdrs())
    if twice:
        app.use(secure_hdrs())
    app.get("/", handler)
    expected = {name.replace("_", "-"): given for name, given in DEFAULTS.items()} | {"x-frame-options": value}
    for _ in range(2):  # the host keeps what it wrote
        sent: list[Any] = []

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.request"}

        scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "headers": [],
        }
        await asgi(app)(scope, receive, send)
        pairs = [(name.decode(), text.decode()) for name, text in sent[0]["headers"]]
        assert len(dict(pairs)) == len(pairs)
        response = await Client(app, None).get("/")
        for headers in (dict(pairs), dict(response.headers.items())):
            assert {name: headers.get(name) for name in expected} == expected
