"""`sessions`: what is remembered, under ids that only this server makes."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from core import http
from core.app import App
from core.bindings.kv import KVNamespace
from core.errors import CoreError, OptionError
from core.middleware.sessions import session_of, sessions
from core.request import Request
from core.response import Response
from core.testing import Client, FakeClock, FakeExecutionContext, FakeKVNamespace

COOKIE = "__Host-session"


@attrs.frozen
class Env:
    SESSIONS: KVNamespace
    SECRET: str = "a secret that nobody can guess"


def secret(req: Request[Any]) -> Any:
    return req.env.SECRET


class Bench:
    def __init__(self, **options: Any) -> None:
        self.clock = FakeClock()
        self.kv = FakeKVNamespace(clock=self.clock)
        self.app: App[Any] = App()
        given: dict[str, Any] = {"kv_binding": "SESSIONS", "secret": secret, **options}
        self.app.use(sessions(**given))
        self.client = self.visitor()
        app = self.app

        @app.get("/untouched")
        async def untouched(req: Request[Any], res: Response) -> None:
            res.json({})

        @app.get("/read")
        async def read(req: Request[Any], res: Response) -> None:
            res.json(dict(await session_of(req)))

        @app.get("/set/:value")
        async def write(req: Request[Any], res: Response) -> None:
            (await session_of(req))["value"] = req.params["value"]
            res.json({})

        @app.get("/append")
        async def append(req: Request[Any], res: Response) -> None:
            session = await session_of(req)
            session.setdefault("items", [])
            session["items"].append(len(session["items"]))
            res.json({})

        @app.get("/login")
        async def login(req: Request[Any], res: Response) -> None:
            session = await session_of(req)
            session["user"] = "ada"
            session.regenerate()
            res.json({"new": session.is_new})

        @app.get("/logout")
        async def logout(req: Request[Any], res: Response) -> None:
            (await session_of(req)).destroy()
            res.json({})

        @app.get("/fail")
        async def fail(req: Request[Any], res: Response) -> None:
            session = await session_of(req)
            session["failures"] = session.get("failures", 0) + 1
            raise CoreError(401, "Wrong password")

        @app.get("/twice")
        async def twice(req: Request[Any], res: Response) -> None:
            one, other = await asyncio.gather(session_of(req), session_of(req))
            res.json({"same": one is other})

    def visitor(self) -> Client[Any]:
        return Client(self.app, Env(self.kv), FakeExecutionContext(clock=self.clock))

    async def stored(self) -> int:
        return len((await self.kv.list()).keys)


async def read(client: Client[Any]) -> Any:
    return await (await client.get("/read")).json()


async def test_what_a_visitor_left_is_there_on_the_next_request() -> None:
    bench = Bench()
    await bench.client.get("/set/7")
    assert await read(bench.client) == {"value": "7"}
    assert await read(bench.visitor()) == {}


async def test_a_request_that_touches_no_session_costs_nothing_and_sets_nothing() -> None:
    bench = Bench()
    response = await bench.client.get("/untouched")
    assert response.headers.get_set_cookie() == []
    assert (await read(bench.client), await bench.stored()) == ({}, 0)
    assert bench.client.cookies == {}


async def test_the_cookie_is_http_only_secure_lax_and_of_this_host_alone() -> None:
    response = await Bench().client.get("/set/1")
    (cookie,) = response.headers.get_set_cookie()
    name, *attributes = cookie.split("; ")
    assert name.startswith(f"{COOKIE}=")
    assert set(attributes) == {"Max-Age=1209600", "Path=/", "HttpOnly", "Secure", "SameSite=Lax"}
    assert response.headers["cache-control"] == "private, no-store"


async def test_the_namespace_does_not_hold_the_id_itself() -> None:
    bench = Bench()
    await bench.client.get("/set/1")
    (key,) = (await bench.kv.list()).keys
    assert bench.client.cookies[COOKIE].partition(".")[0] not in key.name


async def test_lists_and_dicts_changed_in_place_are_kept() -> None:
    bench = Bench()
    for _ in range(3):
        await bench.client.get("/append")
    assert await read(bench.client) == {"items": [0, 1, 2]}


async def test_reading_alone_writes_nothing() -> None:
    bench = Bench()
    await bench.client.get("/append")
    response = await bench.client.get("/read")
    assert response.headers.get_set_cookie() == []


async def test_what_a_handler_remembered_before_it_refused_counts() -> None:
    bench = Bench()
    for _ in range(3):
        assert (await bench.client.get("/fail")).status == 401
    assert await read(bench.client) == {"failures": 3}


FORGED = [
    "{name}.{other}",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.{mac}",
    "{name}",
    "{name}.",
    "",
    "{name}.{mac}.{mac}",
    "{name}.{mac}\u00e9",
    "x" * 4000,
]


@pytest.mark.parametrize("forged", FORGED)
async def test_a_cookie_without_its_signature_begins_a_new_session(forged: str) -> None:
    bench = Bench()
    await bench.client.get("/set/7")
    name, _, mac = bench.client.cookies[COOKIE].partition(".")
    other = ("A" if mac[0] != "A" else "B") + mac[1:]
    visitor = bench.visitor()
    visitor.cookies[COOKIE] = forged.format(name=name, mac=mac, other=other)
    assert await read(visitor) == {}


async def test_an_id_that_was_signed_with_another_secret_is_nobodys() -> None:
    bench = Bench()
    await bench.client.get("/set/7")
    other = Client(bench.app, Env(bench.kv, "another secret"), FakeExecutionContext(clock=bench.clock))
    other.cookies.update(bench.client.cookies)
    assert await read(other) == {}


async def test_fixation_an_id_planted_before_the_login_is_worth_nothing_after_it() -> None:
    bench = Bench()
    attacker = bench.visitor()
    await attacker.get("/set/planted")
    victim = bench.visitor()
    victim.cookies.update(attacker.cookies)
    await victim.get("/login")
    assert victim.cookies[COOKIE] != attacker.cookies[COOKIE]
    assert await read(victim) == {"value": "planted", "user": "ada"}
    assert await read(attacker) == {}


async def test_fixation_an_id_whose_session_is_gone_is_never_taken_up_again() -> None:
    bench = Bench()
    await bench.client.get("/set/7")
    old = dict(bench.client.cookies)
    await bench.client.get("/logout")
    visitor = bench.visitor()
    visitor.cookies.update(old)
    await visitor.get("/set/8")
    assert visitor.cookies[COOKIE] != old[COOKIE]


async def test_destroy_forgets_here_and_at_the_visitors() -> None:
    bench = Bench()
    await bench.client.get("/set/7")
    await bench.client.get("/logout")
    assert (bench.client.cookies, await bench.stored()) == ({}, 0)


async def test_it_expires_and_is_kept_longer_by_use() -> None:
    bench = Bench(max_age=1000)
    await bench.client.get("/set/7")
    await bench.clock.advance(499)
    assert (await bench.client.get("/read")).headers.get_set_cookie() == []
    await bench.clock.advance(2)
    assert len((await bench.client.get("/read")).headers.get_set_cookie()) == 1
    await bench.clock.advance(999)
    assert await read(bench.client) == {"value": "7"}
    await bench.clock.advance(1001)
    assert await read(bench.client) == {}


async def test_two_tasks_of_one_request_see_one_session() -> None:
    bench = Bench()
    await bench.client.get("/set/7")
    assert await (await bench.client.get("/twice")).json() == {"same": True}


@pytest.mark.parametrize("stored", ["", "[]", "null", '{"at": "x", "values": {}}', '{"at": 1, "values": []}', "NaN"])
async def test_what_someone_else_wrote_into_the_namespace_is_no_session(stored: str) -> None:
    bench = Bench()
    await bench.client.get("/set/7")
    (key,) = (await bench.kv.list()).keys
    await bench.kv.put(key.name, stored)
    assert await read(bench.client) == {}


@pytest.mark.parametrize("value", ["", "  "])
async def test_an_empty_secret_is_a_500_that_names_the_binding(value: str, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    client = Client(bench.app, Env(bench.kv, value), FakeExecutionContext(clock=bench.clock))
    assert (await client.get("/set/7")).status == 500
    assert "the binding SECRET is empty or missing" in caplog.text


async def test_without_the_middleware_session_of_says_what_to_do() -> None:
    request = Request(http.Request("https://a.test/"), None, FakeExecutionContext())
    with pytest.raises(Exception, match=r"Register it with app.use\(sessions"):
        await session_of(request)


async def test_over_plain_http_for_development() -> None:
    response = await Bench(secure=False, cookie="session").client.get("/set/7")
    assert "Secure" not in response.headers.get_set_cookie()[0]


@pytest.mark.parametrize(
    "options",
    [
        {"kv_binding": ""},
        {"secret": "abc"},
        {"max_age": 59},
        {"cookie": "a b"},
        {"cookie": "a\r\nb"},
        {"path": "/;x"},
        {"secure": False},
        {"same_site": "Sometimes"},
        {"same_site": "None", "secure": False, "cookie": "s"},
    ],
)
def test_a_bad_option_is_a_clear_error_when_it_is_built(options: Any) -> None:
    given: dict[str, Any] = {"kv_binding": "SESSIONS", "secret": secret, **options}
    with pytest.raises(OptionError, match=r"^sessions\("):
        sessions(**given)
