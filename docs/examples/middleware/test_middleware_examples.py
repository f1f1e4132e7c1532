"""The examples of the middleware reference do what their pages say."""

import logging
from typing import Any

import httpx
import jwt
import pytest

from core import DurableObjectNamespace, Secret
from core.context import Clock
from core.middleware.request_id import RequestIdFilter
from core.testing import Client, FakeClock, FakeExecutionContext, FakeKVNamespace, FakeR2Bucket
from middleware import (
    hardening,
    letting_in,
    limiting_exactly,
    logging_requests,
    receiving,
    remembering,
    sending_less,
    serving_files,
    sharing,
    timing_out,
)

KEY = "a-secret-that-is-long-enough-for-hs256"


def now_and(clock: Clock) -> FakeExecutionContext:
    return FakeExecutionContext(clock=clock)


async def test_a_line_with_the_id_that_the_applications_own_lines_carry(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(RequestIdFilter())
    with caplog.at_level(logging.INFO):
        await Client(logging_requests.app, None).get("/", headers={"X-Request-Id": "abc"})
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("mine", "at home"),
        ("access", "GET / 200 0ms ip=203.0.113.7 colo=- id=abc"),
    ]
    assert [vars(record)["request_id"] for record in caplog.records] == ["abc", "abc"]


async def test_an_answer_in_time() -> None:
    import asyncio

    clock = FakeClock()
    client = Client(timing_out.app, None, now_and(clock))
    assert (await client.get("/report")).status == 200
    waiting = asyncio.create_task(client.get("/report?seconds=3"))
    await clock.advance(3)
    response = await waiting
    assert (response.status, await response.json()) == (504, {"error": "The report takes too long"})


async def test_the_pages_nonce_is_the_policys() -> None:
    response = await Client(hardening.app, None).get("/")
    nonce = (await response.text()).split('"')[1]
    assert response.headers["content-security-policy"] == f"default-src 'self'; script-src 'self' 'nonce-{nonce}'"
    assert response.headers["x-frame-options"] == "SAMEORIGIN"


class OneObject:
    """A namespace of one limiter that counts, as the embedded one does."""

    def __init__(self) -> None:
        self.used = 0

    def get_by_name(self, name: str) -> Any:
        return self

    async def take(self, start: int, window: int, cost: int, limit: int) -> int:
        if self.used + cost > limit:
            return -1 - self.used
        self.used += cost
        return self.used


async def test_the_sixth_login_waits_and_the_api_has_its_own_limit() -> None:
    clock = FakeClock()
    ctx = now_and(clock)
    limiter: DurableObjectNamespace[Any] = OneObject()  # type: ignore[assignment]  # the one method it uses
    env = limiting_exactly.Env(COUNTERS=FakeKVNamespace(clock=clock), LIMITER=limiter)
    client = Client(limiting_exactly.app, env, ctx)
    assert [(await client.post("/login")).status for _ in range(6)] == [200] * 5 + [429]
    assert (await client.get("/api/items")).headers["x-ratelimit-limit"] == "100"
    await ctx.drain()


async def test_who_may_read_and_who_may_change() -> None:
    client = Client(sharing.app, sharing.Env("https://a.test,https://b.test"))
    friend = await client.post("/items", headers={"Origin": "https://b.test"})
    assert (friend.status, friend.headers["access-control-allow-origin"]) == (201, "https://b.test")
    stranger = await client.post("/items", headers={"Origin": "https://c.test"})
    assert (stranger.status, "access-control-allow-origin" in stranger.headers) == (403, False)


async def test_four_ways_in() -> None:
    clock = FakeClock()
    env = letting_in.Env(JWT_SECRET=Secret(KEY), DEPLOY_TOKEN=Secret("d3ploy"), ADMIN_PASSWORD=Secret("word"))
    client = Client(letting_in.app, env, now_and(clock), ip="10.0.0.1")
    claims = {"sub": "1", "email": "ada@a.test", "iss": "https://id.example.com", "exp": int(clock.time()) + 60}
    signed = {"Authorization": f"Bearer {jwt.encode(claims, KEY)}"}
    assert await (await client.get("/me", headers=signed)).json() == {"email": "ada@a.test"}
    assert (await client.get("/me")).status == 401
    assert (await client.post("/deploys", headers={"Authorization": "Bearer d3ploy"})).status == 202
    assert (await client.post("/deploys")).status == 401
    basic = {"Authorization": "Basic YWRtaW46d29yZA=="}
    assert (await client.get("/admin", headers=basic)).status == 200
    client.ip = "192.0.2.1"
    assert (await client.get("/admin", headers=basic)).status == 403


async def test_a_basket_that_is_remembered_and_an_id_that_changes() -> None:
    env = remembering.Env(SESSIONS=FakeKVNamespace(), SESSION_SECRET=Secret(KEY))
    client = Client(remembering.app, env)
    await client.post("/basket/tea")
    before = dict(client.cookies)
    await client.post("/login")
    assert await (await client.post("/basket/milk")).json() == ["tea", "milk"]
    assert client.cookies != before


async def test_less_is_sent_and_made() -> None:
    ctx = FakeExecutionContext()
    client = Client(sending_less.app, None, ctx, headers={"Accept-Encoding": "gzip"})
    first = await client.get("/catalogue")
    await ctx.drain()
    assert first.headers["content-encoding"] == "gzip"
    assert first.headers["server-timing"].startswith("total;dur=")
    again = await client.get("/catalogue", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.headers["cache-status"]) == (304, "core; hit")


async def test_files_and_objects_in_whole_and_in_part() -> None:
    media = FakeR2Bucket()
    await media.put("public/film.mp4", b"0123456789")
    client = Client(serving_files.app, serving_files.Env(MEDIA=media))
    assert "docstring" not in await (await client.get("/source/serving_files.py")).text()
    part = await client.get("/media/film.mp4", headers={"Range": "bytes=2-4"})
    assert (part.status, await part.bytes(), part.headers["content-range"]) == (206, b"234", "bytes 2-4/10")


# --8<-- [start:upload]
async def test_a_profile_has_a_photo() -> None:
    form = httpx.Request("POST", "http://x/", data={"name": "Ada", "age": "36"}, files={"photo": ("a.png", b"123")})
    headers = {"Content-Type": form.headers["Content-Type"]}

    answer = await Client(receiving.app, None).post("/profile", body=form.read(), headers=headers)

    assert await answer.json() == {"name": "Ada", "photo": 3}


# --8<-- [end:upload]


async def test_bodies_and_messages() -> None:
    client, headers = Client(receiving.app, None), {"Content-Type": "multipart/form-data; boundary=B"}
    assert (await client.post("/profile", body=b"x" * 1_000_001, headers=headers)).status == 413
    socket = await client.websocket("/rooms/7", protocols=["chat"])
    await socket.send("hello")
    assert (socket.protocol, await socket.receive()) == ("chat", "7: hello")
    await socket.close()
