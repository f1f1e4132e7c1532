"""The how-to pages' code does what the pages say."""

import asyncio
from pathlib import Path

import jwt
import pytest

import answering_errors
import around_answers
import authenticating
import chatting
import coming_from_elsewhere
import limiting
import parameters
import passing_on
import queueing
import signing_in
import streaming
import working_in_background
from core import KVNamespace, ScheduledEvent, Secret, http, passwords
from core.testing import (
    Client,
    FakeClock,
    FakeD1Database,
    FakeDurableObjectNamespace,
    FakeExecutionContext,
    FakeKVNamespace,
    FakeQueue,
    env,
    simulate,
)


async def test_a_valid_token_opens_and_any_other_does_not() -> None:
    secret = "a-secret-that-is-long-enough-for-hs256"
    clock = FakeClock()
    client = Client(
        authenticating.app, authenticating.Env(JWT_SECRET=Secret(secret)), FakeExecutionContext(clock=clock)
    )
    claims = {"sub": "1", "email": "ada@example.com", "exp": int(clock.time()) + 3600}

    signed = {"Authorization": f"Bearer {jwt.encode(claims, secret)}"}

    assert await (await client.get("/me", headers=signed)).json() == {"email": "ada@example.com"}
    assert (await client.get("/me")).status == 401
    assert await (await client.get("/partners/report", headers={"X-Partner-Key": secret})).json() == {
        "for": "The only partner"
    }
    assert (await client.get("/partners/report")).status == 401


@pytest.mark.slow
async def test_who_signs_up_is_known_and_an_editor_may_more() -> None:
    db = FakeD1Database()
    await db.exec(
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, email TEXT UNIQUE, password TEXT, role TEXT DEFAULT 'reader')"
    )
    bindings = signing_in.Env(DB=db, JWT_SECRET=Secret("a-secret-that-is-long-enough-for-hs256"))
    client = Client(signing_in.app, bindings)
    ada = {"email": "ada@example.com", "password": "analytical"}

    signed_up = await client.post("/sign-up", json=ada)
    assert signed_up.status == 201
    assert (await client.post("/sign-up", json=ada)).status == 409
    assert (await client.post("/sign-up", json=ada | {"password": "short"})).status == 422

    reader = {"Authorization": f"Bearer {(await signed_up.json())['token']}"}
    assert await (await client.get("/me", headers=reader)).json() == {"id": "1", "role": "reader"}
    assert await (await client.get("/", headers=reader)).json() == {"hello": "1"}
    assert await (await client.get("/")).json() == {"hello": "nobody"}
    assert (await client.get("/me")).status == 401
    assert (await client.delete("/articles/1", headers=reader)).status == 403

    await db.exec("UPDATE accounts SET role = 'editor'")
    token = (await (await client.post("/sign-in", json=ada)).json())["token"]
    assert (await client.delete("/articles/1", headers={"Authorization": f"Bearer {token}"})).status == 204


@pytest.mark.slow
async def test_the_right_password_opens_and_an_old_hash_is_made_anew() -> None:
    db = FakeD1Database()
    await db.exec("CREATE TABLE accounts (id INTEGER PRIMARY KEY, email TEXT, password TEXT, role TEXT)")
    weak = (  # RFC 7914, section 12: "pleaseletmein" at a fifth of today's cost
        "$scrypt$ln=14,r=8,p=1$U29kaXVtQ2hsb3JpZGU"
        "$cCO9yzr9c0hGHAbNgf046/2o+7qQT44+qbVD9lRdofLVQylVYT8Pz2LUlwUkKpr55h6F3A1lHkDfzwF7RVdYhw"
    )
    await db.prepare("INSERT INTO accounts VALUES (7, 'ada@example.com', ?, 'reader')").bind(weak).run()
    client = Client(signing_in.app, signing_in.Env(DB=db, JWT_SECRET=Secret("a-secret-of-thirty-two-bytes-or-so")))
    right = {"email": "ada@example.com", "password": "pleaseletmein"}

    assert (await client.post("/sign-in", json=right | {"password": "not this one"})).status == 401
    assert (await client.post("/sign-in", json=right | {"email": "eve@example.com"})).status == 401
    assert list(await (await client.post("/sign-in", json=right)).json()) == ["token"]
    assert not await passwords.needs_rehash(str(await db.prepare("SELECT password FROM accounts").first("password")))
    assert (await client.post("/sign-in", json=right)).status == 200


async def test_bodies_stream_both_ways() -> None:
    client = Client(streaming.app, None)

    assert (await (await client.get("/users.csv")).text()).splitlines()[1] == "0,User 0"
    assert (await (await client.post("/digest", body=b"abc")).json())["sha256"].startswith("ba7816bf")
    assert "event: tick\ndata: 0" in await (await client.get("/ticks")).text()


# --8<-- [start:background]
async def test_a_visit_is_noted_after_the_answer() -> None:
    stats = FakeKVNamespace()
    ctx = FakeExecutionContext()
    client = Client(working_in_background.app, working_in_background.Env(STATS=stats), ctx)

    await client.get("/pages/home")
    await ctx.drain()

    assert await stats.get("last:home") == "visited"


# --8<-- [end:background]


async def test_the_nightly_work_tidies() -> None:
    stats: KVNamespace = FakeKVNamespace({"last:home": "visited"})
    bindings = working_in_background.Env(STATS=stats)

    await working_in_background.app.trigger(ScheduledEvent("0 3 * * *", 0), bindings, FakeExecutionContext())

    assert await stats.get("last:home") is None


# --8<-- [start:queue]
async def test_an_invitation_that_comes_twice_is_delivered_once() -> None:
    outbox: FakeQueue[queueing.Mail] = FakeQueue("outbox")
    sent = FakeKVNamespace()
    bindings = queueing.Env(OUTBOX=outbox, SENT=sent)
    ctx = FakeExecutionContext()

    await Client(queueing.app, bindings, ctx).post("/invitations", json={"to": "ada@example.com", "subject": "Hi"})
    await outbox.deliver(lambda batch: queueing.app.consume(batch, bindings, ctx))
    outbox.redeliver()
    await outbox.deliver(lambda batch: queueing.app.consume(batch, bindings, ctx))

    assert outbox.sent == [queueing.Mail(to="ada@example.com", subject="Hi")]
    assert len((await sent.list()).keys) == 1
    assert outbox.waiting == 0


# --8<-- [end:queue]


@pytest.mark.slow
# --8<-- [start:queue-simulated]
@simulate(runs=50, faults=["queue"])
async def test_every_invitation_is_delivered_once() -> None:
    outbox: FakeQueue[queueing.Mail] = FakeQueue("outbox")
    client = Client(queueing.app, queueing.Env(OUTBOX=outbox, SENT=FakeKVNamespace()))
    guests = ["ada@example.com", "bob@example.com"]

    await asyncio.gather(*[client.post("/invitations", json={"to": to, "subject": "Hi"}) for to in guests])
    while outbox.waiting:
        await outbox.deliver(lambda batch: queueing.app.consume(batch, client.env, client.ctx))

    delivered = [await client.env.SENT.get(key.name) for key in (await client.env.SENT.list()).keys]
    assert sorted(str(to) for to in delivered) == guests


# --8<-- [end:queue-simulated]


async def test_the_sixth_attempt_is_told_to_wait() -> None:
    clock = FakeClock()
    ctx = FakeExecutionContext(clock=clock)
    client = Client(limiting.app, limiting.Env(COUNTERS=FakeKVNamespace(clock=clock)), ctx)

    for _ in range(5):
        assert (await client.post("/login")).status == 200
        await ctx.drain()
    refused = await client.post("/login")

    assert refused.status == 429
    assert await refused.json() == {"error": "Too many attempts"}
    assert (await client.get("/")).status == 200
    await ctx.drain()


async def test_what_people_know_works(tmp_path: Path) -> None:
    (tmp_path / "0001_posts.sql").write_text("CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT NOT NULL);")
    client = Client(coming_from_elsewhere.app, env(coming_from_elsewhere.Env, DB=FakeD1Database(migrations=tmp_path)))

    assert await (await client.post("/posts", json={"title": "First"})).json() == {"id": 1, "tags": []}
    assert await (await client.get("/posts?q=Fir&limit=5")).json() == [{"id": 1, "title": "First"}]
    shown = await client.get("/posts/1")
    assert shown.headers["X-Powered-By"] == "core"
    assert (await client.get("/posts/2")).status == 404
    assert (await client.get("/posts?limit=many")).status == 422


async def test_errors_are_answered_by_class_by_router_and_as_problems() -> None:
    client = Client(answering_errors.app, None)

    sold_out = await client.get("/items/tea")
    assert sold_out.headers["content-type"] == "application/problem+json"
    assert await sold_out.json() == {
        "type": "about:blank",
        "title": "Conflict",
        "status": 409,
        "detail": "Sold out",
        "item": "tea",
    }
    assert await (await client.get("/pages/about")).text() == "<h1>404</h1>"
    assert (await client.delete("/items/tea")).headers["allow"] == "GET, HEAD"
    taken = await client.post("/accounts", json={"name": "ada"})
    assert (await taken.json())["issues"] == [{"path": "name", "message": "is taken"}]


async def test_answers_are_sent_in_parts_kept_in_cookies_and_changed_under_conditions() -> None:
    db = FakeD1Database()
    await db.exec("CREATE TABLE articles (id INTEGER PRIMARY KEY, title TEXT, version INTEGER DEFAULT 1)")
    await db.batch([db.prepare("INSERT INTO articles (title) VALUES (?)").bind(f"Title {n}") for n in range(45)])
    client = Client(around_answers.app, around_answers.Env(DB=db, COOKIE_SECRET=Secret("a secret for cookies")))

    saved = await client.get("/report", headers={"Range": "bytes=0-2"})
    assert (saved.status, await saved.text()) == (206, '"""')
    assert saved.headers["Content-Disposition"].endswith("filename*=UTF-8''Bericht%20f%C3%BCr%202026.py")

    page = await client.get("/articles?page=3")
    assert [article["id"] for article in await page.json()] == [41, 42, 43, 44, 45]
    assert 'rel="prev"' in page.headers["Link"]
    first = await client.get("/feed?limit=44")
    following = first.headers["Link"].partition(">")[0].removeprefix("<")
    assert [article["id"] for article in await (await client.get(following)).json()] == [45]

    put = await client.post("/cart/7?next=//evil.test")
    assert (put.status, put.headers["Location"]) == (303, "/cart")
    assert await (await client.get("/cart")).json() == {"cart": "7"}
    client.cookies["cart"] = "8" + client.cookies["cart"][1:]
    assert await (await client.get("/cart")).json() == {"cart": None}

    change = {"title": "Another"}
    statuses = [
        (await client.put("/articles/1", json=change, headers=headers)).status
        for headers in ({}, {"If-Match": '"1"'}, {"If-Match": '"1"'}, {"If-Match": '"2"'})
    ]
    assert statuses == [428, 204, 412, 204]


async def test_parameters_are_types_and_handlers_have_paths() -> None:
    client = Client(parameters.app, None)
    found = await (await client.get("/authors/7/2027-01-02")).json()
    assert found == {"author": 7, "day": "2027-01-02", "all": "/authors/7"}
    assert [(await client.get(path)).status for path in ("/authors/7", "/authors/0", "/authors/x", "/authors/7/x")] == [
        200,
        404,
        404,
        404,
    ]


class Elsewhere:
    """A service binding."""

    async def fetch(self, request: http.Request | str, /) -> http.Response:
        assert isinstance(request, http.Request)
        return http.Response(
            f"{request.method} {request.url}", headers={"Connection": "close", "Cache-Control": "no-store"}
        )


async def test_requests_are_passed_on_and_an_application_is_opened_once() -> None:
    given = passing_on.Env(ASSETS=Elsewhere(), BILLING=Elsewhere(), GREETING="hello")
    async with Client(passing_on.app, given) as client:
        assert await (await client.get("/greeting")).text() == "hello"
        opened = passing_on.greeter.of_env(given)
        assert opened.open
        billing = await client.put("/billing/7", body="x")
        assert await billing.text() == "PUT https://example.test/billing/7"
        assert billing.headers["cache-control"] == "no-store"
        asset = await client.get("/logo.svg")
        assert asset.headers["cache-control"] == "public, max-age=60"
        assert "connection" not in asset.headers
        old = await client.get("/old/users")
        assert (old.status, old.headers["location"]) == (308, "https://old.example.com/users")
    assert not opened.open


# --8<-- [start:rooms]
async def test_who_stays_in_a_room_hears_who_leaves_it_even_after_an_eviction() -> None:
    rooms = FakeDurableObjectNamespace(chatting.Room)
    client = Client(chatting.app, chatting.Env(ROOMS=rooms))
    ada = await client.websocket("/rooms/tea?name=Ada")
    bob = await client.websocket("/rooms/tea?name=Bob")

    await ada.send("hello")
    assert [await ada.receive(), await bob.receive()] == ["Ada: hello", "Ada: hello"]

    await rooms.evict("tea")  # what the platform does with a room that is quiet for ten seconds
    await ada.close()
    assert await bob.receive() == "Ada left"


# --8<-- [end:rooms]
