"""`cache`: what is given again, and above all what is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import attrs
import pytest
from tests.support.bench import Bench

from core.app import App
from core.bindings.kv import KVNamespace
from core.errors import CoreError, KVError, OrderError
from core.handlers import declare, name_of
from core.hosts.asgi import asgi
from core.http.dates import http_date
from core.middleware.cache import Cached, MemoryCache, cache
from core.middleware.compress import compress
from core.middleware.cors import cors
from core.middleware.etag import etag
from core.middleware.ip_restriction import ip_restriction
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from core.middleware.secure_headers import NONCE, secure_hdrs
from core.request import Request
from core.response import Response
from core.router import Router
from core.testing import Client, FakeExecutionContext
from core.types import Next


@attrs.frozen
class Env:
    CACHE: KVNamespace


class Site(Bench):
    def __init__(self, *middleware: Any) -> None:
        super().__init__(*middleware, env=Env)
        self.runs = 0

        @self.app.get("/:kind")
        async def show(req: Request[Any], res: Response) -> None:
            self.runs += 1
            for name in ("Cache-Control", "Vary", "X-Own", "Content-Type", "Expires", "Date", "Age"):
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
    bench = Site(cache(**store))
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
    bench = Site(cache(max_age=60))
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
    bench = Site(cache(max_age=60))
    for _ in range(2):
        await bench.get(f"/a?Cache-Control={said}")
    assert bench.runs == (1 if kept else 2)


async def test_without_max_age_only_what_says_so_is_kept() -> None:
    bench = Site(cache())
    for _ in range(2):
        await bench.get("/a")
    assert bench.runs == 2


@pytest.mark.parametrize(
    "headers", [{"Authorization": "Bearer x"}, {"Cookie": "a=b"}, {"Cache_Control": "no-store"}, {"Range": "bytes=0-1"}]
)
async def test_never_the_answer_to_a_request_that_could_be_one_persons(headers: dict[str, str]) -> None:
    bench = Site(cache(max_age=60))
    assert await bench.run_of("/a", **headers) == 1
    assert await bench.run_of("/a") == 2


async def test_and_a_request_with_authorization_is_never_given_a_kept_one() -> None:
    bench = Site(cache(max_age=60))
    await bench.get("/a")
    assert await bench.run_of("/a", Authorization="Bearer x") == 2


async def test_public_lets_answers_to_requests_with_cookies_be_kept() -> None:
    bench = Site(cache(max_age=60))
    await bench.get("/a?Cache-Control=public", Cookie="a=b")
    assert await bench.run_of("/a?Cache-Control=public") == 1


async def test_never_an_answer_that_sets_a_cookie() -> None:
    bench = Site(cache(max_age=60))
    for _ in range(2):
        await bench.get("/a?cookie=1")
        bench.client.cookies.clear()
    assert bench.runs == 2


async def test_no_cache_of_a_request_asks_for_a_new_one_which_is_kept() -> None:
    bench = Site(cache(max_age=60))
    assert await bench.run_of("/a") == 1
    assert await bench.run_of("/a", Cache_Control="no-cache") == 2
    assert await bench.run_of("/a") == 2


@pytest.mark.parametrize("store", STORES)
async def test_never_across_vary(store: Any) -> None:
    bench = Site(cache(max_age=60, **store))
    url = "/a?Vary=Accept-Language"
    for language, run in (("de", 1), ("en", 2), ("de", 1), ("en", 2), ("fr", 3)):
        assert await bench.run_of(url, Accept_Language=language) == run
    assert await bench.run_of(url) == 4
    assert await bench.run_of(url, Accept_Language="") == 5


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("store", [{}, {"kv_binding": "CACHE"}])
async def test_a_change_takes_back_what_is_kept_under_its_url(store: Any, method: str) -> None:
    bench = Site(cache(max_age=600, **store))
    plain, by_language = "/a", "/a?Vary=Accept-Language"

    @bench.app.on(method, "/:kind")
    async def change(req: Request[Any], res: Response) -> None:
        res.status(int(req.query.get("status") or 204)).send()

    async def runs() -> list[int]:
        await bench.clock.advance(1)
        return [
            await bench.run_of(plain),
            *[await bench.run_of(by_language, Accept_Language=language) for language in ("de", "en")],
        ]

    assert await runs() == await runs() == [1, 2, 3]
    await bench.client.request(method, plain)
    await bench.client.request(method, "/b?Vary=Accept-Language")
    assert await runs() == await runs() == [4, 2, 3]
    await bench.client.request(method, by_language)
    await bench.clock.advance(1)
    assert await bench.run_of(by_language, Accept_Language="en") == 5
    assert await runs() == await runs() == [4, 6, 5]
    for refused in ("400", "500"):
        await bench.client.request(method, f"/a?status={refused}")
    await bench.client.request("OPTIONS", by_language)
    assert await runs() == [4, 6, 5]


async def test_a_store_that_fails_while_it_forgets_harms_no_change(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(MemoryCache):
        async def get(self, key: str, req: Any, /) -> Cached | None:
            raise KVError("KV GET failed: 500")

    bench = Site(cache(store=Failing(), max_age=60))
    bench.app.post("/a", made)
    assert (await bench.client.post("/a")).status == 201
    assert "cache() could not forget what it keeps for /a" in caplog.messages


async def made(req: Request[Any], res: Response) -> None:
    res.status(201).send()


async def test_values_of_two_names_never_run_into_one_another() -> None:
    bench = Site(cache(max_age=60))
    url = "/a?Vary=X-A,X-B"
    assert await bench.run_of(url, X_A="1", X_B="2") == 1
    assert await bench.run_of(url, X_A="1:2", X_B="") == 2
    assert await bench.run_of(url, X_A="12", X_B="") == 3


async def test_vary_star_is_never_kept() -> None:
    bench = Site(cache(max_age=60))
    for run in (1, 2):
        assert await bench.run_of("/a?Vary=*") == run


async def test_what_outer_middleware_stages_is_each_requests_own() -> None:
    bench = Site(request_id(), cors(origins="*"), cache(max_age=60))
    one = await bench.get("/a", Origin="https://a.test")
    other = await bench.get("/a", Origin="https://b.test")
    assert bench.runs == 1
    assert one.headers["x-request-id"] != other.headers["x-request-id"]
    assert other.headers["access-control-allow-origin"] == "*"


async def test_what_outer_middleware_names_in_vary_keeps_answers_apart() -> None:
    bench = Site(cors(origins=["https://a.test", "https://b.test"]), cache(max_age=60))
    for origin, run in (("https://a.test", 1), ("https://b.test", 2), ("https://a.test", 1), ("https://b.test", 2)):
        response = await bench.get("/a", Origin=origin)
        assert (await response.json())["run"] == run
        assert response.headers["access-control-allow-origin"] == origin
        assert response.headers["vary"] == "Origin"


def outer(name: str, value: str) -> Any:
    """A middleware that stages a header when the rest of the chain is done."""

    async def stage(req: Request[Any], res: Response, next: Next, /) -> None:
        await next()
        res.header(name, value)

    return stage


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Cache-Control", "private"),
        ("Cache-Control", "no-store"),
        ("Cache-Control", "max-age=0"),
        ("Set-Cookie", "a=b"),
        ("Vary", "*"),
        ("Expires", "0"),
    ],
)
async def test_outer_middleware_has_its_say_until_the_response_leaves(name: str, value: str) -> None:
    bench = Site(outer(name, value), cache(max_age=60))
    for run in (1, 2):
        assert await bench.run_of("/a") == run
        bench.client.cookies.clear()


async def test_and_cannot_take_back_what_the_handler_refused() -> None:
    bench = Site(outer("Cache-Control", "public, max-age=60"), cache())
    for run in (1, 2):
        assert await bench.run_of("/a?Cache-Control=private") == run


async def test_an_answer_that_is_refused_after_all_is_not_kept() -> None:
    async def refuse(req: Request[Any], res: Response, next: Next, /) -> None:
        await next()
        raise CoreError(402, "Pay first")

    bench = Site(refuse, cache(max_age=60))
    for run in (1, 2):
        assert (await bench.get("/a")).status == 402
        assert bench.runs == run


async def test_a_304_of_an_outer_etag_says_nothing_against_it() -> None:
    bench = Site(etag(), cache(max_age=60))
    tag = (await bench.get("/a?Cache-Control=no-store")).headers["etag"]
    assert tag is not None
    bench.runs = 0
    assert (await bench.get("/a", If_None_Match="*")).status == 304
    assert (await bench.get("/a")).headers["cache-status"] == "core; hit"


async def test_what_an_outer_compress_did_is_not_kept() -> None:
    bench = Site(compress(min_size=0), cache(max_age=60))
    padding = "x" * 500
    assert (await bench.get(f"/a?X-Own={padding}", Accept_Encoding="gzip")).status == 200
    assert await bench.run_of(f"/a?X-Own={padding}", Accept_Encoding="identity") == 2


async def key_holder(req: Request[Any]) -> str:
    key = req.header("x-api-key")
    if key is None:
        raise CoreError(401, "Unauthorized")
    return key


@pytest.mark.parametrize(("said", "kept"), [("max-age=60", False), ("public, max-age=60", True)])
async def test_the_answer_to_a_known_user_is_kept_only_where_it_says_public(said: str, kept: bool) -> None:
    app: App[Any] = App()
    app.use(cache())

    @app.authenticated(key_holder).get("/")
    async def mine(req: Request[Any, str], res: Response) -> None:
        res.header("Cache-Control", said).text(req.user)

    ctx = FakeExecutionContext()
    client = Client(app, None, ctx)
    assert await (await client.get("/", headers={"X-Api-Key": "ada"})).text() == "ada"
    await ctx.drain()
    assert (await client.get("/")).status == (200 if kept else 401)


async def own_guard(req: Request[Any], res: Response, next: Next, /) -> None:
    if req.query.get("key") != "right":
        raise CoreError(403, "Forbidden")
    await next()


GUARDS = [
    ip_restriction(allow=["10.0.0.0/8"]),
    rate_limit(kv_binding="CACHE", limit=1, window=60),
    declare(own_guard, name="own_guard", refuses=True),
    declare(own_guard, name="own_guard", authenticates=True),
]


def _below(app: App[Any], guard: Any) -> None:
    below: Router[Any] = Router()
    below.use(guard)
    app.use("/below", below)


PLACES: dict[str, Callable[[App[Any], Any], object]] = {
    "application": lambda app, guard: app.use(guard),
    "prefix": lambda app, guard: app.use("/admin", guard),
    "route": lambda app, guard: app.get("/admin/:id", guard),
    "router": _below,
    "view": lambda app, guard: app.authenticated(key_holder).get("/mine", guard),
}


@pytest.mark.parametrize("guard", GUARDS, ids=name_of)
@pytest.mark.parametrize("register", PLACES.values(), ids=PLACES)
def test_a_kept_answer_never_passes_one_that_refuses_clients(
    guard: Any, register: Callable[[App[Any], Any], object]
) -> None:
    app: App[Any] = App()
    name = f"{name_of(guard)}\\(\\)"
    order = rf"^cache\(\) is registered before {name} on \S+ and gives .*Register {name} first$"
    app.use("/admin", guard)
    app.use(cache())
    with pytest.raises(OrderError, match=order):
        register(app, guard)


def test_one_that_refuses_may_stand_before_a_cache_and_beside_it() -> None:
    app: App[Any] = App()
    app.use("/kept", GUARDS[0], cache())
    app.use("/other", GUARDS[0])
    app.use(cache())
    app.post("/sign-in", GUARDS[1])  # whose answers are never kept


async def test_a_page_that_holds_its_nonce_is_not_kept() -> None:
    policy = {"script-src": ["'self'", NONCE]}
    bench = Bench(secure_hdrs(content_security_policy=policy), cache(max_age=60))

    @bench.app.get("/:kind")
    async def page(req: Request[Any], res: Response) -> None:
        nonce = req.state["csp_nonce"]
        res.html(f"<script nonce={nonce}></script>" if req.params["kind"] == "page" else "<p>none</p>")

    for kind, told in (("page", "core; fwd=miss"), ("plain", "core; hit")):
        await bench.get(f"/{kind}")
        assert (await bench.get(f"/{kind}")).headers["cache-status"] == told


DATED = [
    ("0", None, None),
    ("-1", None, None),
    ("yesterday", None, None),
    ("Thu, 01 Jan 1970 00:00:00 GMT", None, None),
    ("{now}", None, None),
    ("{now}, {later}", None, None),
    ("{later}", None, 30),
    ("{later}", "{earlier}", 40),
    ("{later}", "no date", 30),
    ("{now}", "{earlier}", 10),
    ("{earlier}", "{later}", None),
]


@pytest.mark.parametrize(("expires", "date", "seconds"), DATED)
@pytest.mark.parametrize("max_age", [1000, None])
async def test_expires_says_how_long(expires: str, date: str | None, seconds: int | None, max_age: int | None) -> None:
    bench = Site(cache(max_age=max_age))
    now = bench.clock.time()
    dates = {name: http_date(now + after) for name, after in (("now", 0), ("later", 30), ("earlier", -10))}
    params = {"Expires": expires.format(**dates)} | ({} if date is None else {"Date": date.format(**dates)})
    url = f"/a?{urlencode(params)}"
    assert await bench.run_of(url) == 1
    if seconds is not None:
        await bench.clock.advance(seconds - 1)
        assert await bench.run_of(url) == 1
        await bench.clock.advance(1)
    assert await bench.run_of(url) == 2


async def test_expires_in_the_old_forms_counts_and_max_age_of_the_answer_wins() -> None:
    bench = Site(cache())
    moment = datetime.fromtimestamp(bench.clock.time() + 60, UTC)
    for number, text in enumerate(
        (moment.strftime("%A, %d-%b-%y %H:%M:%S GMT"), moment.strftime("%a %b %e %H:%M:%S %Y"))
    ):
        url = f"/{number}?{urlencode({'Expires': text})}"
        assert await bench.run_of(url) == await bench.run_of(url)
    url = "/c?Expires=0&Cache-Control=max-age=60"
    assert await bench.run_of(url) == await bench.run_of(url)


async def test_of_two_values_of_one_directive_the_first_counts() -> None:
    bench = Site(cache())
    for run in (1, 2):
        assert await bench.run_of("/a?Cache-Control=max-age=0, max-age=60") == run


async def test_the_time_an_answer_was_kept_elsewhere_counts() -> None:
    bench = Site(cache())
    url = "/a?Cache-Control=max-age=60&Age=50"
    await bench.get(url)
    await bench.clock.advance(9)
    assert (await bench.get(url)).headers["age"] == "59"
    await bench.clock.advance(1)
    assert await bench.run_of(url) == 2
    url = "/b?Cache-Control=max-age=60&Age=60"
    assert await bench.run_of(url) != await bench.run_of(url)


@pytest.mark.parametrize("headers", [{"Content_Length": "5"}, {"Transfer_Encoding": "chunked"}])
async def test_a_request_that_announces_a_body_is_neither_given_nor_keeps_an_answer(headers: dict[str, str]) -> None:
    bench = Site(cache(max_age=60))
    assert await bench.run_of("/a", **headers) == 1
    assert await bench.run_of("/a") == 2
    assert await bench.run_of("/a", **headers) == 3
    assert await bench.run_of("/a", Content_Length="0") == 2


@pytest.mark.parametrize("read", ["bytes", "stream"])
async def test_nor_is_the_answer_kept_where_an_unannounced_body_was_read(read: str) -> None:
    # HTTP/2 ends a body by a frame, and needs no header for it.
    kept = MemoryCache()
    app: App[Any] = App()
    app.use(cache(store=kept, max_age=60))

    @app.get("/")
    async def echo(req: Request[Any], res: Response) -> None:
        res.send(await req.bytes() if read == "bytes" else b"".join([chunk async for chunk in req.stream()]))

    async def ask(body: bytes) -> bytes:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "GET",
            "scheme": "http",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "headers": [(b"host", b"a.test")],
            "client": ("203.0.113.5", 1),
            "server": ("127.0.0.1", 80),
        }
        await asgi(app, None)(scope, receive, send)
        for _ in range(5):
            await asyncio.sleep(0)
        data: bytes = sent[1]["body"]
        return data

    assert await ask(b"<script>") == b"<script>"
    assert await ask(b"") == b""


@pytest.mark.parametrize("url", ["/stream", "/fails?status=500", "/fails?status=429"])
async def test_streams_and_failures_are_not_kept(url: str) -> None:
    bench = Site(cache(max_age=60))
    for _ in range(2):
        await bench.get(url)
    assert bench.runs == 2


async def test_a_body_beyond_max_body_is_not_kept() -> None:
    bench = Site(cache(max_age=60, max_body=5))
    for run in (1, 2):
        assert await bench.run_of("/a") == run


async def test_the_query_and_the_host_are_parts_of_the_key() -> None:
    bench = Site(cache(max_age=60))
    urls = ["/a", "/a?x=1", "https://other.test/a", "/b"]
    assert [await bench.run_of(url) for url in urls] == [1, 2, 3, 4]


async def test_the_memory_store_forgets_the_longest_unused_beyond_its_bound() -> None:
    bench = Site(cache(store=MemoryCache(max_bytes=1400), max_age=60))
    for url in ("/a", "/b", "/a", "/c"):
        await bench.get(url)
    assert bench.runs == 3
    await bench.get("/a")
    assert bench.runs == 3
    await bench.get("/b")
    assert bench.runs == 4


@pytest.mark.parametrize("where", ["/a?x=", "/a?Vary=X-A&x="])
async def test_the_memory_store_counts_keys_and_headers_which_clients_choose(where: str) -> None:
    store = MemoryCache(max_bytes=50_000)
    bench = Site(cache(store=store, max_age=60))
    for number in range(50):
        await bench.get(f"{where}{number}{'x' * 5000}", X_A=str(number) * 500)
    for number in range(50):
        await bench.get(f"/a?X-Own={number}{'y' * 5000}")
    kept: dict[str, Cached] = store._values
    size = sum(len(key) + len(value.body) + sum(map(len, value.headers.values())) for key, value in kept.items())
    assert 0 < size <= 50_000


async def test_an_answer_larger_than_the_memory_store_drives_nothing_out() -> None:
    bench = Site(cache(store=MemoryCache(max_bytes=2000), max_age=60))
    await bench.get("/a")
    await bench.get(f"/a?x={'x' * 2000}")
    assert await bench.run_of("/a") == 1


async def test_a_store_that_fails_is_logged_and_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bench = Site(cache(kv_binding="CACHE", max_age=60))
    bench.kv.fail_next(KVError("KV GET failed: 500"))
    assert (await bench.get("/a")).status == 200
    assert "could not read what it keeps for /a" in caplog.text
    await bench.kv.put((await bench.kv.list()).keys[0].name, "not json")
    assert await bench.run_of("/a") == 2
    bench = Site(cache(kv_binding="CACHE", max_age=60))
    response = await bench.client.get("/a")
    bench.kv.fail_next(KVError("KV PUT failed: 500"))
    await bench.ctx.drain()
    assert response.status == 200
    assert "could not keep the answer to /a" in caplog.text
