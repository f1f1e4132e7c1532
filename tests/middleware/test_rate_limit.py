"""`rate_limit`: the headers and windows of the specification, whose counter a request is, and stores that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.bench import Bench

from core import http
from core.app import App
from core.bindings.kv import KVNamespace
from core.errors import CoreError, KVError, OptionError
from core.middleware.rate_limit import rate_limit
from core.middleware.rate_limit_object import RateLimiterObject
from core.middleware.rate_limit_stores import (
    DurableObjectStore,
    Hit,
    MemoryStore,
    PlatformStore,
    Taken,
)
from core.request import Request
from core.response import Response
from core.testing import Client, FakeClock, FakeExecutionContext, FakeKVNamespace
from core.types import Next

START = 1_800_000_000.0  # a multiple of 60


@attrs.frozen
class Env:
    COUNTERS: KVNamespace


def of(function: Callable[[Request[Any]], Any]) -> Any:
    """A function of the request, typed."""
    return function


class Limited(Bench):
    """An application behind limiters, over one namespace, on a clock that stands at the start of a window."""

    def __init__(self, *middleware: Any, start: float = START) -> None:
        super().__init__(*middleware, env=Env, start=start)
        self.app.get("/", _ok)
        self.app.get("/fails", _fail)

    async def get(self, path: str = "/", *, ip: str | None = "203.0.113.7", **headers: str) -> http.Response:
        self.client.ip = ip
        return await super().get(path, **headers)

    async def statuses(self, times: int, **options: Any) -> list[int]:
        return [(await self.get(**options)).status for _ in range(times)]

    async def keys(self) -> list[str]:
        return [key.name for key in (await self.kv.list()).keys]


async def _ok(req: Request[Any], res: Response) -> None:
    res.json({})


async def _fail(req: Request[Any], res: Response) -> None:
    raise CoreError(418, "No")


def limited(limit: Any = 2, window: int = 60, **options: Any) -> Any:
    return rate_limit(kv_binding="COUNTERS", limit=limit, window=window, **options)


def counts(response: http.Response) -> tuple[str | None, ...]:
    names = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After")
    return tuple(response.headers.get(name) for name in names)


async def test_at_most_limit_requests_per_key_per_window_and_429_beyond() -> None:
    bench = Limited(limited(2))
    responses = [await bench.get() for _ in range(4)]
    assert [response.status for response in responses] == [200, 200, 429, 429]
    assert await responses[2].json() == {"error": "Too Many Requests"}


async def test_every_response_carries_the_headers_and_retry_after_is_on_429_only() -> None:
    bench = Limited(limited(2), start=START + 18)
    reset = str(int(START) + 60)
    assert counts(await bench.get()) == ("2", "1", reset, None)
    assert counts(await bench.get()) == ("2", "0", reset, None)
    assert counts(await bench.get()) == ("2", "0", reset, "42")


async def test_errors_included() -> None:
    bench = Limited(limited(9))
    for path in ("/fails", "/nowhere"):
        response = await bench.get(path)
        assert response.headers["x-ratelimit-limit"] == "9"


async def test_retry_after_survives_an_error_handler_of_ones_own() -> None:
    bench = Limited(limited(1))

    @bench.app.on_error
    async def answer(err: Exception, req: Request[Any], res: Response, next: Any) -> None:
        res.status(429).json({"mine": True})

    await bench.get()
    assert counts(await bench.get()) == ("1", "0", str(int(START) + 60), "60")


async def test_remaining_is_never_below_zero() -> None:
    limits = iter([5, 5, 5, 1])
    bench = Limited(limited(of(lambda req: next(limits)), name="all"))
    assert [counts(await bench.get())[1] for _ in range(4)] == ["4", "3", "2", "0"]


async def test_retry_after_is_at_least_one() -> None:
    bench = Limited(limited(1), start=START + 59.999)
    await bench.get()
    assert counts(await bench.get())[3] == "1"


async def test_windows_are_fixed_and_start_at_multiples_of_window() -> None:
    bench = Limited(limited(1, 10), start=START + 9)
    assert await bench.statuses(2) == [200, 429]
    await bench.clock.advance(0.999)
    assert await bench.statuses(1) == [429]
    await bench.clock.advance(0.001)
    assert await bench.statuses(2) == [200, 429]


async def test_message_is_an_option() -> None:
    bench = Limited(limited(1, message="Slow down"))
    await bench.get()
    assert await (await bench.get()).json() == {"error": "Slow down"}


async def test_kv_binding_is_a_name_on_env_or_a_function_of_the_request() -> None:
    bench = Limited(rate_limit(kv_binding=of(lambda req: req.env.COUNTERS), limit=1, window=60))
    assert await bench.statuses(2) == [200, 429]


async def test_env_may_be_a_plain_dict() -> None:
    bench = Limited(limited(1))
    client = Client(bench.app, {"COUNTERS": bench.kv}, bench.ctx)
    assert [(await client.get("/")).status for _ in range(2)] == [200, 429]
    await bench.ctx.drain()


async def test_a_binding_that_is_not_there_is_a_500_that_names_it_also_with_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Limited(rate_limit(kv_binding="COUNTER", limit=1, window=60))
    assert (await bench.get()).status == 500
    assert 'req.env has no binding "COUNTER"' in caplog.text


# -- whose counter


async def test_clients_are_counted_by_ip() -> None:
    bench = Limited(limited(1))
    assert [(await bench.get(ip=ip)).status for ip in ("192.0.2.1", "192.0.2.2", "192.0.2.1")] == [200, 200, 429]


async def test_ipv6_is_grouped_by_64() -> None:
    bench = Limited(limited(1))
    same = ["2001:db8:1:2::1", "2001:0DB8:0001:0002:ffff::", "2001:db8:1:2:3:4:5:6"]
    assert [(await bench.get(ip=ip)).status for ip in same] == [200, 429, 429]
    other = ["2001:db8:1:3::1", "2001:db8::1:2", "::1"]
    assert [(await bench.get(ip=ip)).status for ip in other] == [200, 200, 200]


async def test_ipv4_in_ipv6_is_the_ipv4_address() -> None:
    bench = Limited(limited(1))
    ips = (
        "192.0.2.1",
        "::ffff:192.0.2.1",
        "::FFFF:192.0.2.1",
        "::ffff:192.0.2.2",
        "::ffff:c000:201",
        "::ffff:c000:203",
    )
    assert [(await bench.get(ip=ip)).status for ip in ips] == [200, 429, 429, 200, 429, 200]


async def test_a_missing_ip_is_one_shared_bucket_and_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    bench = Limited(limited(2))
    assert await bench.statuses(3, ip=None) == [200, 200, 429]
    assert caplog.text.count("has no client address") == 1


async def test_x_forwarded_for_is_never_read() -> None:
    bench = Limited(limited(1))
    assert [(await bench.get(**{"X-Forwarded-For": f"198.51.100.{n}"})).status for n in range(2)] == [200, 429]


@pytest.mark.parametrize("is_async", [False, True])
async def test_key_fn_skip_cost_and_limit_may_be_async(is_async: bool) -> None:
    def maybe(function: Any) -> Any:
        async def later(req: Request[Any]) -> Any:
            return function(req)

        return later if is_async else function

    bench = Limited(
        limited(
            maybe(of(lambda req: 3)),
            key_fn=maybe(of(lambda req: req.header("x-user"))),
            skip=maybe(of(lambda req: req.header("x-skip") is not None)),
            cost=maybe(of(lambda req: int(req.header("x-cost") or 1))),
        )
    )
    assert counts(await bench.get(**{"X-User": "a", "X-Cost": "2"}))[:2] == ("3", "1")
    assert (await bench.get(**{"X-User": "a", "X-Cost": "2"})).status == 429
    assert counts(await bench.get(**{"X-User": "a", "X-Skip": "1"})) == (None, None, None, None)
    assert counts(await bench.get(**{"X-User": "b"}))[:2] == ("3", "2")
    assert counts(await bench.get(**{"X-User": "a", "X-Cost": "0"}))[:2] == ("3", "1")


async def test_a_key_of_none_is_the_shared_bucket(caplog: pytest.LogCaptureFixture) -> None:
    bench = Limited(limited(1, key_fn=of(lambda req: None)))
    assert await bench.statuses(2) == [200, 429]
    assert "has no key from key_fn" in caplog.text


@pytest.mark.parametrize(
    "options", [{"limit": of(lambda req: "3")}, {"cost": of(lambda req: -1)}, {"key_fn": of(lambda req: 7)}]
)
async def test_a_function_that_gives_nonsense_is_a_500(options: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert (await Limited(limited(**options)).get()).status == 500
    assert "rate_limit(" in caplog.text


async def test_two_limiters_a_routes_and_a_global_one_never_share_a_counter() -> None:
    bench = Limited(limited(3))
    bench.app.get("/route", limited(3), _ok)
    assert [(await bench.get("/route")).status for _ in range(4)] == [200, 200, 200, 429]
    assert len(await bench.keys()) == 2
    bench = Limited(limited(3))
    bench.app.get("/route", limited(3), _ok)
    assert [(await bench.get(path)).status for path in ("/", "/", "/route", "/route")] == [200, 200, 200, 429]


async def test_by_default_a_counter_is_the_limiters_route_limit_and_window() -> None:
    one = limited(1)
    bench = Limited()
    bench.app.get("/a", one, _ok)
    bench.app.get("/b", one, _ok)
    bench.app.get("/c", limited(2), _ok)
    paths = ["/a", "/b", "/a", "/c"]
    assert [(await bench.get(path)).status for path in paths] == [200, 200, 429, 200]
    assert await bench.keys() == [
        f"ratelimit|GET /a:1:60|{int(START)}|203.0.113.7",
        f"ratelimit|GET /b:1:60|{int(START)}|203.0.113.7",
        f"ratelimit|GET /c:2:60|{int(START)}|203.0.113.7",
    ]


async def test_or_its_mount() -> None:
    bench = Limited()
    router = bench.app.Router()
    router.use(limited(1))
    router.get("/x", _ok)
    router.get("/y", _ok)
    bench.app.use("/one", router)
    bench.app.use("/two", router)
    paths = ["/one/x", "/one/y", "/two/x", "/two/x"]
    assert [(await bench.get(path)).status for path in paths] == [200, 429, 200, 429]


async def test_name_sets_the_counter() -> None:
    bench = Limited()
    bench.app.get("/a", limited(1, name="shared"), _ok)
    bench.app.get("/b", limited(1, name="shared"), _ok)
    assert [(await bench.get("/a")).status, (await bench.get("/b")).status] == [200, 429]


SECRETS = [
    "x" * 65,
    "Bearer abc",
    "basic abc",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "eyJhbGciOi.eyJzdWIiOi.c2ln",
    "a\nb",
]


@pytest.mark.parametrize("key", SECRETS)
async def test_a_long_or_secret_looking_key_is_hashed(key: str) -> None:
    bench = Limited(limited(1, key_fn=of(lambda req: key)))
    assert await bench.statuses(2) == [200, 429]
    (name,) = await bench.keys()
    assert key not in name
    assert "sha256:" in name


@pytest.mark.parametrize("key", ["user-7", "ada@example.test", "203.0.113.7"])
async def test_any_other_key_stays_readable(key: str) -> None:
    bench = Limited(limited(1, key_fn=of(lambda req: key)))
    await bench.get()
    assert (await bench.keys())[0].endswith(f"|{key}")


@given(st.text(min_size=1), st.text(min_size=1))
async def test_kv_keys_are_at_most_512_bytes_whatever_the_names_and_keys_are(name: str, key: str) -> None:
    bench = Limited(limited(1, name=name * 50, key_fn=of(lambda req: key * 50)))
    assert await bench.statuses(1) == [200]
    (stored,) = await bench.keys()
    assert len(stored.encode()) <= 512


NAMES = st.text("a|:%7C", min_size=1, max_size=6)


@example(("|", "7"), ("%7C", "7"))
@given(st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES))
async def test_no_two_names_and_keys_meet_in_one_counter(one: tuple[str, str], other: tuple[str, str]) -> None:
    bench = Limited()
    bench.app.get("/one", limited(1, name=one[0], key_fn=of(lambda req: one[1])), _ok)
    bench.app.get("/other", limited(1, name=other[0], key_fn=of(lambda req: other[1])), _ok)
    statuses = [(await bench.get("/one")).status, (await bench.get("/other")).status]
    assert statuses == [200, 429 if one == other else 200]


# -- how KV counts


async def test_the_increment_goes_through_wait_until_after_the_response() -> None:
    bench = Limited(limited(2))
    response = await bench.client.get("/")
    assert response.status == 200
    assert await bench.keys() == []
    assert len(bench.ctx.waited) == 1
    await bench.ctx.drain()
    assert len(await bench.keys()) == 1


async def test_the_window_start_is_in_the_key_and_the_ttl_is_at_least_60() -> None:
    bench = Limited(limited(5, 10), start=START + 10)
    await bench.get()
    (key,) = (await bench.kv.list()).keys
    assert key.name == f"ratelimit|/:5:10|{int(START) + 10}|203.0.113.7"
    assert key.expiration == START + 70


async def test_a_long_window_is_kept_to_its_end() -> None:
    bench = Limited(limited(5, 3600), start=START)
    await bench.get()
    (key,) = (await bench.kv.list()).keys
    assert key.expiration == START - START % 3600 + 3600


async def test_k_concurrent_requests_do_not_all_pass() -> None:
    bench = Limited(limited(3))
    responses = await asyncio.gather(*(bench.client.get("/") for _ in range(20)))
    assert sorted(response.status for response in responses) == [200] * 3 + [429] * 17
    await bench.ctx.drain()
    (key,) = await bench.keys()
    assert await bench.kv.get(key) == "3"


async def test_reads_that_lag_a_minute_behind_do_not_let_one_isolate_pass_the_limit() -> None:
    bench = Limited(limited(3))
    bench.kv.staleness = 60
    assert await bench.statuses(10) == [200] * 3 + [429] * 7


async def test_isolates_share_what_kv_says() -> None:
    clock = FakeClock(START)
    kv, ctx = FakeKVNamespace(clock=clock), FakeExecutionContext(clock=clock)
    statuses: list[int] = []
    isolates: list[Client[Any]] = []
    for _ in range(3):
        app: App[Any] = App()
        app.get("/", limited(4), _ok)
        isolates.append(Client(app, Env(kv), ctx))
    for turn in range(6):
        statuses.append((await isolates[turn % 3].get("/")).status)
        await ctx.drain()
    assert statuses == [200] * 4 + [429] * 2


async def test_what_kv_refused_to_write_counts_on_top_of_what_others_wrote(caplog: pytest.LogCaptureFixture) -> None:
    bench = Limited(limited(10))
    for _ in range(3):
        await bench.client.get("/")
        bench.kv.fail_next(KVError("KV PUT failed: 429 Too Many Requests"))
        await bench.ctx.drain()
    await bench.kv.put(f"ratelimit|/:10:60|{int(START)}|203.0.113.7", "5")  # from another isolate
    assert counts(await bench.get())[1] == "1"
    (key,) = await bench.keys()
    assert await bench.kv.get(key) == "9"


async def test_an_application_served_over_another_namespace_counts_anew() -> None:
    bench = Limited(limited(1))
    assert await bench.statuses(2) == [200, 429]
    other = Client(bench.app, Env(FakeKVNamespace(clock=bench.clock)), bench.ctx)
    assert (await other.get("/")).status == 200
    await bench.ctx.drain()


async def test_blocked_requests_write_nothing_and_do_not_extend_the_window() -> None:
    bench = Limited(limited(1))
    await bench.get()
    before = (await bench.kv.list()).keys
    for _ in range(5):
        await bench.clock.advance(5)
        assert (await bench.get()).status == 429
    assert (await bench.kv.list()).keys == before
    assert len(bench.ctx.waited) == 1


async def test_concurrent_increments_are_one_write_since_kv_takes_one_a_second() -> None:
    bench = Limited(limited(50))
    puts: list[str] = []
    real = bench.kv.put

    async def put(key: str, value: str, **options: Any) -> None:
        puts.append(value)
        await real(key, value, **options)

    bench.kv.put = put  # type: ignore[method-assign,assignment]  # to count the writes
    await asyncio.gather(*(bench.client.get("/") for _ in range(20)))
    await bench.ctx.drain()
    assert puts[-1] == "20"
    assert len(puts) < 20


async def test_a_client_that_goes_away_has_made_its_request_all_the_same() -> None:
    bench = Limited(limited(1))

    @bench.app.get("/slow")
    async def slow(req: Request[Any], res: Response) -> None:
        await req.clock.sleep(30)

    task = asyncio.create_task(bench.client.get("/slow"))
    await bench.clock.advance(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await bench.ctx.drain()
    assert len(await bench.keys()) == 1
    assert (await bench.get()).status == 429


@pytest.mark.parametrize("value", ["", "NaN", "-5", "1e9", "٣", "9" * 400])
async def test_a_counter_that_someone_else_wrote_nonsense_into_counts_as_none(value: str) -> None:
    bench = Limited(limited(1))
    await bench.kv.put(f"ratelimit|/:1:60|{int(START)}|203.0.113.7", value)
    assert await bench.statuses(2) == [200, 429]


# -- stores that fail


async def test_a_store_that_fails_is_open_by_default_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    bench = Limited(limited(1))
    bench.kv.fail_next(KVError("KV GET failed: 500 Internal Error"))
    response = await bench.get()
    assert response.status == 200
    assert counts(response) == ("1", "0", str(int(START) + 60), None)
    assert "could not count a request of GET /" in caplog.text


@pytest.mark.parametrize("on_store_error", ["open", "closed"])
async def test_the_headers_are_there_also_while_the_store_fails(on_store_error: Any) -> None:
    bench = Limited(limited(5, on_store_error=on_store_error))
    reset = str(int(START) + 60)
    assert counts(await bench.get()) == ("5", "4", reset, None)
    for path in ("/", "/fails", "/nowhere"):
        bench.kv.fail_next(KVError("KV GET failed: 500 Internal Error"))
        # What this isolate counted by itself, and this request.
        assert counts(await bench.get(path)) == ("5", "3" if on_store_error == "open" else "0", reset, None)
    assert counts(await bench.get()) == ("5", "3", reset, None)


async def test_and_none_is_invented_where_the_store_tells_no_counts() -> None:
    class Away:
        async def limit(self, *, key: str) -> Any:
            raise RuntimeError("away")

    def away(req: Request[Any]) -> Away:
        return Away()

    response = await Limited(rate_limit(store=PlatformStore(away), limit=5, window=60)).get()
    assert (response.status, counts(response)) == (200, (None, None, None, None))


def by_org(req: Request[Any]) -> str | None:
    return req.header("x-org")


def by_user(req: Request[Any]) -> str | None:
    return req.header("x-user")


def globally(bench: Limited, *steps: Any) -> None:
    bench.app.use(*steps)


def one_by_one(bench: Limited, *steps: Any) -> None:
    for step in steps:
        bench.app.use("/place", step)


def on_a_route(bench: Limited, *steps: Any) -> None:
    bench.app.get("/place", *steps, _ok)


def on_two_routes_of_one_path(bench: Limited, *steps: Any) -> None:
    async def go_on(req: Request[Any], res: Response, next: Next, /) -> None:
        await next()

    for step in steps:
        bench.app.get("/place", step, go_on)


@pytest.mark.parametrize("place", [globally, one_by_one, on_a_route, on_two_routes_of_one_path])
@pytest.mark.parametrize("memory", [False, True])
async def test_two_limiters_in_one_place_never_share_a_counter(place: Callable[..., None], memory: bool) -> None:
    bench = Limited()
    store: Any = {"store": MemoryStore()} if memory else {"kv_binding": "COUNTERS"}
    place(bench, *(rate_limit(limit=2, window=60, key_fn=key_fn, **store) for key_fn in (by_org, by_user)))
    bench.app.get("/place", _ok)
    # What one of them counts under is what the other one counts under later.
    assert await bench.statuses(3, path="/place", **{"X-Org": "acme", "X-User": "ada"}) == [200, 200, 429]
    assert await bench.statuses(3, path="/place", **{"X-Org": "other", "X-User": "acme"}) == [200, 200, 429]


async def test_one_value_on_two_routes_counts_for_each() -> None:
    one = limited(1)
    bench = Limited()
    bench.app.get("/a", one, _ok)
    bench.app.get("/b", one, _ok)
    for path in ("/a", "/b"):
        assert await bench.statuses(2, path=path) == [200, 429]


async def test_deleting_a_counter_lets_nobody_in_before_the_window_ends() -> None:
    bench = Limited(limited(1))
    assert await bench.statuses(2) == [200, 429]
    for key in await bench.keys():
        await bench.kv.delete(key)
    assert await bench.statuses(1) == [429]
    await bench.clock.advance(60)
    assert await bench.statuses(1) == [200]


async def test_closed_refuses_with_503(caplog: pytest.LogCaptureFixture) -> None:
    bench = Limited(limited(1, on_store_error="closed"))
    bench.kv.fail_next(KVError("KV GET failed: 500 Internal Error"))
    response = await bench.get()
    assert (response.status, await response.json()) == (503, {"error": "Service Unavailable"})
    assert "retry-after" not in response.headers
    assert (await bench.get()).status == 200


async def test_a_write_that_fails_is_logged_and_the_next_one_makes_up_for_it(caplog: pytest.LogCaptureFixture) -> None:
    bench = Limited(limited(5))
    await bench.client.get("/")
    bench.kv.fail_next(KVError("KV PUT failed: 429 Too Many Requests"))
    await bench.ctx.drain()
    assert "could not write a count" in caplog.text
    await bench.get()
    (key,) = await bench.keys()
    assert await bench.kv.get(key) == "2"


# -- other stores


async def test_memory_counts_in_this_process_exactly() -> None:
    bench = Limited(rate_limit(store=MemoryStore(), limit=2, window=60))
    responses = [await bench.get() for _ in range(3)]
    assert [response.status for response in responses] == [200, 200, 429]
    assert [counts(response)[1] for response in responses] == ["1", "0", "0"]
    await bench.clock.advance(60)
    assert await bench.statuses(1) == [200]


async def test_memory_forgets_the_longest_unseen_beyond_its_bound() -> None:
    bench = Limited(rate_limit(store=MemoryStore(most_keys=2), limit=1, window=60))
    ips = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.1", "192.0.2.3"]
    assert [(await bench.get(ip=ip)).status for ip in ips] == [200, 200, 200, 200, 429]


class Limiter:
    """The platform's rate-limit binding, which tells no counts."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.keys: list[str] = []

    async def limit(self, *, key: str) -> Any:
        self.keys.append(key)
        return self.answers.pop(0)


@attrs.frozen
class Outcome:
    success: bool


async def test_the_platforms_binding_tells_no_remaining_count_so_those_headers_are_left_out_not_invented() -> None:
    limiter = Limiter(Outcome(True), {"success": False})
    bench = Limited(rate_limit(store=PlatformStore(lambda req: limiter), limit=2, window=60))
    passed, blocked = await bench.get(), await bench.get()
    assert (passed.status, counts(passed)) == (200, (None, None, None, None))
    assert (blocked.status, counts(blocked)) == (429, (None, None, None, "60"))
    assert limiter.keys == ["/:2:60|203.0.113.7"] * 2


class OneObject:
    """A namespace of `RateLimiterObject`s in this process, each over storage that is a dict."""

    def __init__(self) -> None:
        self.objects: dict[str, RateLimiterObject] = {}
        self.storages: dict[str, Storage] = {}

    def get_by_name(self, name: str) -> RateLimiterObject:
        if name not in self.objects:
            storage = self.storages.setdefault(name, Storage())
            self.objects[name] = RateLimiterObject(State(storage), None)  # type: ignore[arg-type]  # what it uses of it
        return self.objects[name]


class Storage:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.alarms: list[int] = []

    async def get(self, key: str) -> Any:
        await asyncio.sleep(0)
        return self.values.get(key)

    async def put(self, key: str, value: Any) -> None:
        await asyncio.sleep(0)
        self.values[key] = value

    async def set_alarm(self, at: int) -> None:
        self.alarms.append(at)

    async def delete_all(self) -> None:
        self.values.clear()


@attrs.frozen
class State:
    storage: Storage


async def test_a_durable_object_is_exact_across_isolates() -> None:
    objects, clock = OneObject(), FakeClock(START)
    ctx = FakeExecutionContext(clock=clock)
    isolates: list[Client[Any]] = []
    for _ in range(5):
        app: App[Any] = App()
        app.get("/", rate_limit(store=DurableObjectStore(lambda req: objects), limit=7, window=60), _ok)
        isolates.append(Client(app, None, ctx))
    responses = await asyncio.gather(*(isolates[n % 5].get("/") for n in range(40)))
    assert sorted(response.status for response in responses) == [200] * 7 + [429] * 33
    assert counts(responses[-1])[:2] == ("7", "0")
    clock.advance(60)
    assert (await isolates[0].get("/")).status == 200


async def test_the_object_remembers_when_it_is_woken_and_forgets_when_the_window_is_long_over() -> None:
    objects = OneObject()
    stub = objects.get_by_name("k")
    assert [await stub.take(60, 60, 1, 2) for _ in range(3)] == [1, 2, -3]
    objects.objects.clear()
    stub = objects.get_by_name("k")
    assert await stub.take(60, 60, 1, 2) == -3
    assert objects.storages["k"].alarms == [180_000]
    await stub.alarm()
    assert objects.storages["k"].values == {}
    assert await stub.take(60, 60, 1, 2) == 1


async def test_a_store_of_ones_own_is_one_method() -> None:
    hits: list[Hit] = []

    class Store:
        async def take(self, hit: Hit, /) -> Taken:
            hits.append(hit)
            return Taken(False, 9)

    bench = Limited(rate_limit(store=Store(), limit=9, window=60, name="mine"))
    response = await bench.get()
    assert (response.status, counts(response)[:2]) == (429, ("9", "0"))
    (hit,) = hits
    assert (hit.key, hit.cost, hit.limit, hit.window, hit.start) == ("mine|203.0.113.7", 1, 9, 60, int(START))


@pytest.mark.parametrize(
    "options", [{}, {"kv_binding": "KV", "store": MemoryStore()}, {"kv_binding": ""}, {"store": 7}]
)
def test_it_counts_in_one_place(options: Any) -> None:
    with pytest.raises(OptionError, match="rate_limit"):
        rate_limit(limit=1, window=60, **options)
