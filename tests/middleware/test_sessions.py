"""`sessions`: what is remembered, under ids that only this server makes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from tests.support.bench import Bench

from core import http
from core.bindings.kv import KVNamespace
from core.errors import CoreError
from core.middleware.sessions import Session, session_of, sessions
from core.request import Request
from core.response import Response
from core.testing import Client, FakeExecutionContext

COOKIE = "__Host-session"


@attrs.frozen
class Env:
    SESSIONS: KVNamespace
    SECRET: str = "a secret that nobody can guess"


def secret(req: Request[Any]) -> Any:
    return req.env.SECRET


class Site(Bench):
    def __init__(self, **options: Any) -> None:
        given: dict[str, Any] = {"kv_binding": "SESSIONS", "secret": secret, **options}
        super().__init__(sessions(**given), env=Env)
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
        return sum(not key.name.endswith("|ended") for key in (await self.kv.list()).keys)


async def read(client: Client[Any]) -> Any:
    return await (await client.get("/read")).json()


async def test_what_a_visitor_left_is_there_on_the_next_request() -> None:
    bench = Site()
    await bench.client.get("/set/7")
    assert await read(bench.client) == {"value": "7"}
    assert await read(bench.visitor()) == {}


async def test_a_request_that_touches_no_session_costs_nothing_and_sets_nothing() -> None:
    bench = Site()
    response = await bench.client.get("/untouched")
    assert response.headers.get_set_cookie() == []
    assert (await read(bench.client), await bench.stored()) == ({}, 0)
    assert bench.client.cookies == {}


async def test_the_cookie_is_http_only_secure_lax_and_of_this_host_alone() -> None:
    response = await Site().client.get("/set/1")
    (cookie,) = response.headers.get_set_cookie()
    name, *attributes = cookie.split("; ")
    assert name.startswith(f"{COOKIE}=")
    assert set(attributes) == {"Max-Age=1209600", "Path=/", "HttpOnly", "Secure", "SameSite=Lax"}
    assert response.headers["cache-control"] == "private, no-store"


async def test_the_namespace_does_not_hold_the_id_itself() -> None:
    bench = Site()
    await bench.client.get("/set/1")
    (key,) = (await bench.kv.list()).keys
    assert bench.client.cookies[COOKIE].partition(".")[0] not in key.name


async def test_lists_and_dicts_changed_in_place_are_kept() -> None:
    bench = Site()
    for _ in range(3):
        await bench.client.get("/append")
    assert await read(bench.client) == {"items": [0, 1, 2]}


async def test_reading_alone_writes_nothing() -> None:
    bench = Site()
    await bench.client.get("/append")
    response = await bench.client.get("/read")
    assert response.headers.get_set_cookie() == []


async def test_what_a_handler_remembered_before_it_refused_counts() -> None:
    bench = Site()
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
    bench = Site()
    await bench.client.get("/set/7")
    name, _, mac = bench.client.cookies[COOKIE].partition(".")
    other = ("A" if mac[0] != "A" else "B") + mac[1:]
    visitor = bench.visitor()
    visitor.cookies[COOKIE] = forged.format(name=name, mac=mac, other=other)
    assert await read(visitor) == {}


async def test_an_id_that_was_signed_with_another_secret_is_nobodys() -> None:
    bench = Site()
    await bench.client.get("/set/7")
    other = Client(bench.app, Env(bench.kv, "another secret"), FakeExecutionContext(clock=bench.clock))
    other.cookies.update(bench.client.cookies)
    assert await read(other) == {}


async def test_the_cookie_of_one_kind_of_visitors_is_nothing_under_the_name_of_another() -> None:
    bench = Site(cookie="__Host-visitor")
    bench.app.use("/staff", sessions(kv_binding="SESSIONS", secret=secret, cookie="__Host-staff"))

    @bench.app.get("/staff")
    async def staff(req: Request[Any], res: Response) -> None:
        res.json(dict(await session_of(req)))

    visitor = bench.visitor()
    await visitor.get("/set/1")
    visitor.cookies["__Host-staff"] = visitor.cookies["__Host-visitor"]
    assert await read(visitor) == {"value": "1"}
    assert await (await visitor.get("/staff")).json() == {}


async def test_fixation_an_id_planted_before_the_login_is_worth_nothing_after_it() -> None:
    bench = Site()
    attacker = bench.visitor()
    await attacker.get("/set/planted")
    victim = bench.visitor()
    victim.cookies.update(attacker.cookies)
    await victim.get("/login")
    assert victim.cookies[COOKIE] != attacker.cookies[COOKIE]
    assert await read(victim) == {"value": "planted", "user": "ada"}
    assert await read(attacker) == {}


async def test_fixation_an_id_whose_session_is_gone_is_never_taken_up_again() -> None:
    bench = Site()
    await bench.client.get("/set/7")
    old = dict(bench.client.cookies)
    await bench.client.get("/logout")
    visitor = bench.visitor()
    visitor.cookies.update(old)
    await visitor.get("/set/8")
    assert visitor.cookies[COOKIE] != old[COOKIE]


async def test_destroy_forgets_here_and_at_the_visitors() -> None:
    bench = Site()
    await bench.client.get("/set/7")
    await bench.client.get("/logout")
    assert (bench.client.cookies, await bench.stored()) == ({}, 0)


class Meanwhile:
    """Two requests of one visitor: `/slow` opens its session and waits until the other is done."""

    def __init__(self, change: Callable[[Session], None]) -> None:
        self.bench = Site()
        self.opened, self.go_on = asyncio.Event(), asyncio.Event()

        @self.bench.app.get("/slow")
        async def slow(req: Request[Any], res: Response) -> None:
            session = await session_of(req)
            self.opened.set()
            await self.go_on.wait()
            change(session)
            res.json({})

        @self.bench.app.get("/clear")
        async def clear(req: Request[Any], res: Response) -> None:
            (await session_of(req)).clear()
            res.json({})

        @self.bench.app.get("/forget/:key")
        async def forget(req: Request[Any], res: Response) -> None:
            del (await session_of(req))[req.params["key"]]
            res.json({})

    async def run(self, *urls: str) -> tuple[dict[str, str], http.Response]:
        """Log in, and let `urls` be answered while `/slow` waits. The cookie before that, and the answer of `/slow`."""
        client = self.bench.client
        await client.get("/login")
        await client.get("/set/7")
        cookies = dict(client.cookies)
        slow = self.bench.visitor()
        slow.cookies.update(cookies)
        waiting = asyncio.ensure_future(slow.get("/slow"))
        await self.opened.wait()
        for url in urls:
            await client.get(url)
        self.go_on.set()
        return cookies, await waiting

    async def left_of(self, cookies: dict[str, str]) -> Any:
        visitor = self.bench.visitor()
        visitor.cookies.update(cookies)
        return await read(visitor)


def changes(session: Session) -> None:
    session["note"] = "kept"


def changes_in_place(session: Session) -> None:
    session.setdefault("list", []).append(1)


def renews(session: Session) -> None:
    session.regenerate()


@pytest.mark.parametrize("change", [changes, changes_in_place, renews])
@pytest.mark.parametrize("url", ["/logout", "/clear"])
async def test_a_logout_is_not_undone_by_a_request_that_began_before(
    change: Callable[[Session], None], url: str
) -> None:
    meanwhile = Meanwhile(change)
    cookies, response = await meanwhile.run(url)
    assert response.headers.get_set_cookie() == []
    assert await meanwhile.left_of(cookies) == {}
    assert await meanwhile.bench.stored() == 0


async def test_not_even_when_it_comes_between_the_last_look_and_the_write() -> None:
    meanwhile = Meanwhile(changes)
    bench = meanwhile.bench
    cookies, _ = await meanwhile.run()
    (key,) = (await bench.kv.list()).keys
    before = await bench.kv.get(key.name)
    assert before is not None
    await bench.client.get("/logout")
    await bench.kv.put(key.name, before)
    assert await meanwhile.left_of(cookies) == {}


async def test_a_session_that_an_operator_deleted_is_not_brought_back() -> None:
    meanwhile = Meanwhile(changes)
    bench = meanwhile.bench

    @bench.app.get("/operator")
    async def operator(req: Request[Any], res: Response) -> None:
        for key in (await bench.kv.list()).keys:
            await bench.kv.delete(key.name)
        res.json({})

    cookies, response = await meanwhile.run("/operator")
    assert (response.headers.get_set_cookie(), await meanwhile.left_of(cookies)) == ([], {})


async def test_an_id_from_before_a_login_is_not_brought_back_either() -> None:
    meanwhile = Meanwhile(changes)
    cookies, response = await meanwhile.run("/login")
    assert response.headers.get_set_cookie() == []
    assert await meanwhile.left_of(cookies) == {}
    assert await read(meanwhile.bench.client) == {"user": "ada", "value": "7"}


async def test_a_login_form_that_is_sent_twice_logs_in_twice() -> None:
    meanwhile = Meanwhile(renews)
    _, response = await meanwhile.run("/login")
    (cookie,) = response.headers.get_set_cookie()
    other = {COOKIE: cookie.partition("=")[2].partition(";")[0]}
    assert await meanwhile.left_of(other) == {"user": "ada", "value": "7"}
    assert await read(meanwhile.bench.client) == {"user": "ada", "value": "7"}


async def test_each_of_two_requests_keeps_the_keys_that_it_changed() -> None:
    meanwhile = Meanwhile(changes)
    cookies, _ = await meanwhile.run("/set/8", "/forget/user")
    assert await meanwhile.left_of(cookies) == {"value": "8", "note": "kept"}


async def test_what_is_begun_after_a_destroy_is_a_new_session() -> None:
    def destroys(session: Session) -> None:
        session.destroy()
        session["flash"] = "Goodbye"

    meanwhile = Meanwhile(destroys)
    cookies, response = await meanwhile.run("/logout")
    assert len(response.headers.get_set_cookie()) == 1
    assert await meanwhile.left_of(cookies) == {}


async def test_it_expires_and_is_kept_longer_by_use() -> None:
    bench = Site(max_age=1000)
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
    bench = Site()
    await bench.client.get("/set/7")
    assert await (await bench.client.get("/twice")).json() == {"same": True}


@pytest.mark.parametrize("stored", ["", "[]", "null", '{"at": "x", "values": {}}', '{"at": 1, "values": []}', "NaN"])
async def test_what_someone_else_wrote_into_the_namespace_is_no_session(stored: str) -> None:
    bench = Site()
    await bench.client.get("/set/7")
    (key,) = (await bench.kv.list()).keys
    await bench.kv.put(key.name, stored)
    assert await read(bench.client) == {}


@pytest.mark.parametrize("value", ["", "  "])
async def test_an_empty_secret_is_a_500_that_names_the_binding(value: str, caplog: pytest.LogCaptureFixture) -> None:
    bench = Site()
    client = Client(bench.app, Env(bench.kv, value), FakeExecutionContext(clock=bench.clock))
    assert (await client.get("/set/7")).status == 500
    assert "the binding SECRET is empty or missing" in caplog.text


async def test_without_the_middleware_session_of_says_what_to_do() -> None:
    request = Request(http.Request("https://a.test/"), None, FakeExecutionContext())
    with pytest.raises(Exception, match=r"Register it with app.use\(sessions"):
        await session_of(request)


async def test_over_plain_http_for_development() -> None:
    response = await Site(secure=False, cookie="session").client.get("/set/7")
    assert "Secure" not in response.headers.get_set_cookie()[0]
