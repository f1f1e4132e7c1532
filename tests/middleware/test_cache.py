"""`cache`: what is given again, and above all what is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest

from core import http
from core.app import App
from core.bindings.kv import KVNamespace
from core.errors import CoreError, KVError, OptionError
from core.middleware.cache import MemoryCache, cache
from core.middleware.cors import cors
from core.middleware.request_id import request_id
from core.request import Request
from core.response import Response
from core.testing import Client, FakeClock, FakeExecutionContext, FakeKVNamespace


@attrs.frozen
class Env:
    CACHE: KVNamespace


class Bench:
    def __init__(self, *middleware: Any) -> None:
        self.clock = FakeClock()
        self.kv = FakeKVNamespace(clock=self.clock)
        self.ctx = FakeExecutionContext(clock=self.clock)
        self.app: App[Any] = App()
        for step in middleware:
            self.app.use(step)
        self.runs = 0

        @self.app.get("/:kind")
        async def show(req: Request[Any], res: Response) -> None:
            self.runs += 1
            for name in ("Cache-Control", "Vary", "X-Own", "Content-Type"):
                value = req.query.get(name)
                if value is not None:
                    res.header(name, value)
            if req.query.get("cookie"):
                res.cookie("a", "b")
            if req.params["kind"] == "stream":
                res.stream(_chunks())
            elif req.params["kind"] == "fails":
                raise CoreError(int(req.query.get("status") or 500), "No")
            else:
                res.json({"run": self.runs, "language": req.header("accept-language")})

        self.client = Client(self.app, Env(self.kv), self.ctx)

    async def get(self, url: str, **headers: str) -> http.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await self.client.get(url, headers=named)
        await self.ctx.drain()
        return response

    async def run_of(self, url: str, **headers: str) -> int:
        number: int = (await (await self.get(url, **headers)).json())["run"]
        return number


async def _chunks() -> AsyncIterator[bytes]:
    yield b"{}"


def _by_env(req: Request[Any]) -> Any:
    return req.env.CACHE


STORES: list[Any] = [{}, {"store": MemoryCache()}, {"kv_binding": "CACHE"}, {"kv_binding": _by_env}]


@pytest.mark.parametrize("store", STORES)
async def test_a_fresh_answer_is_given_again_with_its_age(store: Any) -> None:
    bench = Bench(cache(**store))
    url = "/a?Cache-Control=max-age=60&X-Own=1"
    first = await bench.get(url)
    await bench.clock.advance(30)
    second = await bench.get(url)
    assert bench.runs == 1
    assert await first.json() == await second.json()
    assert (first.headers["cache-status"], second.headers["cache-status"]) == ("core; fwd=miss", "core; hit")
    assert ("age" in first.headers, second.headers["age"], second.headers["x-own"]) == (False, "30", "1")
    assert second.headers["content-type"] == "application/json"
    await bench.clock.advance(30)
    await bench.get(url)
    assert bench.runs == 2


async def test_head_is_answered_from_a_kept_get() -> None:
    bench = Bench(cache(max_age=60))
    await bench.get("/a")
    response = await bench.client.head("/a")
    assert (response.headers["cache-status"], await response.bytes(), bench.runs) == ("core; hit", b"", 1)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("s-maxage=5, max-age=0", True),
        ("max-age=0", False),
        ("max-age=x", False),
        ("max-age=-1", False),
        ("public", True),
        ("private", False),
        ("private, max-age=60", False),
        ("no-store, max-age=60", False),
        ("no-cache", False),
        ("PRIVATE", False),
        ('private="set-cookie", max-age=9', False),
    ],
)
async def test_the_answer_says_whether_and_how_long(said: str, kept: bool) -> None:
    bench = Bench(cache(max_age=60))
    for _ in range(2):
        await bench.get(f"/a?Cache-Control={said}")
    assert bench.runs == (1 if kept else 2)


async def test_without_max_age_only_what_says_so_is_kept() -> None:
    bench = Bench(cache())
    for _ in range(2):
        await bench.get("/a")
    assert bench.runs == 2


@pytest.mark.parametrize(
    "headers", [{"Authorization": "Bearer x"}, {"Cookie": "a=b"}, {"Cache_Control": "no-store"}, {"Range": "bytes=0-1"}]
)
async def test_never_the_answer_to_a_request_that_could_be_one_persons(headers: dict[str, str]) -> None:
    bench = Bench(cache(max_age=60))
    assert await bench.run_of("/a", **headers) == 1
    assert await bench.run_of("/a") == 2


async def test_and_a_request_with_authorization_is_never_given_a_kept_one() -> None:
    bench = Bench(cache(max_age=60))
    await bench.get("/a")
    assert await bench.run_of("/a", Authorization="Bearer x") == 2


async def test_public_lets_answers_to_requests_with_cookies_be_kept() -> None:
    bench = Bench(cache(max_age=60))
    await bench.get("/a?Cache-Control=public", Cookie="a=b")
    assert await bench.run_of("/a?Cache-Control=public") == 1


async def test_never_an_answer_that_sets_a_cookie() -> None:
    bench = Bench(cache(max_age=60))
    for _ in range(2):
        await bench.get("/a?cookie=1")
        bench.client.cookies.clear()
    assert bench.runs == 2


async def test_no_cache_of_a_request_asks_for_a_new_one_which_is_kept() -> None:
    bench = Bench(cache(max_age=60))
    assert await bench.run_of("/a") == 1
    assert await bench.run_of("/a", Cache_Control="no-cache") == 2
    assert await bench.run_of("/a") == 2


@pytest.mark.parametrize("store", STORES)
async def test_never_across_vary(store: Any) -> None:
    bench = Bench(cache(max_age=60, **store))
    url = "/a?Vary=Accept-Language"
    for language, run in (("de", 1), ("en", 2), ("de", 1), ("en", 2), ("fr", 3)):
        assert await bench.run_of(url, Accept_Language=language) == run
    assert await bench.run_of(url) == 4
    assert await bench.run_of(url, Accept_Language="") == 5


async def test_values_of_two_names_never_run_into_one_another() -> None:
    bench = Bench(cache(max_age=60))
    url = "/a?Vary=X-A,X-B"
    assert await bench.run_of(url, X_A="1", X_B="2") == 1
    assert await bench.run_of(url, X_A="1:2", X_B="") == 2
    assert await bench.run_of(url, X_A="12", X_B="") == 3


async def test_vary_star_is_never_kept() -> None:
    bench = Bench(cache(max_age=60))
    for run in (1, 2):
        assert await bench.run_of("/a?Vary=*") == run


async def test_what_outer_middleware_stages_is_each_requests_own() -> None:
    bench = Bench(request_id(), cors(origins=["https://a.test", "https://b.test"]), cache(max_age=60))
    one = await bench.get("/a", Origin="https://a.test")
    other = await bench.get("/a", Origin="https://b.test")
    assert bench.runs == 1
    assert one.headers["x-request-id"] != other.headers["x-request-id"]
    assert other.headers["access-control-allow-origin"] == "https://b.test"
    assert other.headers["vary"] == "Origin"


@pytest.mark.parametrize("url", ["/stream", "/fails?status=500", "/fails?status=429"])
async def test_streams_and_failures_are_not_kept(url: str) -> None:
    bench = Bench(cache(max_age=60))
    for _ in range(2):
        await bench.get(url)
    assert bench.runs == 2


async def test_a_body_beyond_max_body_is_not_kept() -> None:
    bench = Bench(cache(max_age=60, max_body=5))
    for run in (1, 2):
        assert await bench.run_of("/a") == run


async def test_the_query_and_the_host_are_parts_of_the_key() -> None:
    bench = Bench(cache(max_age=60))
    urls = ["/a", "/a?x=1", "https://other.test/a", "/b"]
    assert [await bench.run_of(url) for url in urls] == [1, 2, 3, 4]


async def test_the_memory_store_forgets_the_longest_unused_beyond_its_bound() -> None:
    bench = Bench(cache(store=MemoryCache(max_bytes=1300), max_age=60))
    for url in ("/a", "/b", "/a", "/c"):
        await bench.get(url)
    assert bench.runs == 3
    await bench.get("/a")
    assert bench.runs == 3
    await bench.get("/b")
    assert bench.runs == 4


async def test_a_store_that_fails_is_logged_and_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(cache(kv_binding="CACHE", max_age=60))
    bench.kv.fail_next(KVError("KV GET failed: 500"))
    assert (await bench.get("/a")).status == 200
    assert "could not read what it keeps for /a" in caplog.text
    await bench.kv.put((await bench.kv.list()).keys[0].name, "not json")
    assert await bench.run_of("/a") == 2
    bench = Bench(cache(kv_binding="CACHE", max_age=60))
    response = await bench.client.get("/a")
    bench.kv.fail_next(KVError("KV PUT failed: 500"))
    await bench.ctx.drain()
    assert response.status == 200
    assert "could not keep the answer to /a" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"max_age": 0},
        {"max_body": -1},
        {"name": "a b"},
        {"kv_binding": ""},
        {"kv_binding": "A", "store": MemoryCache()},
    ],
)
def test_a_bad_option_is_a_clear_error_when_it_is_built(options: Any) -> None:
    with pytest.raises(OptionError, match=r"^cache\("):
        cache(**options)
