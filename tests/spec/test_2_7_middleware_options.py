"""interface-spec §2.7 and §8: options and defaults of the six middleware, row by row, through `app.fetch`."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from core import App, CoreError, EdgeMetadata, Next, Request, Response, create_app, http
from core.middleware.cors import cors
from core.middleware.logger import logger
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs, secure_headers
from core.middleware.timeout import timeout
from core.testing import FakeClock, FakeExecutionContext, FakeKVNamespace

URL = "https://example.test"


class Env:
    """A plain object with the one binding that is touched, as §4 describes tests."""

    def __init__(self, clock: FakeClock) -> None:
        self.COUNTERS = FakeKVNamespace(clock=clock)


async def ok(req: Request, res: Response) -> None:
    res.json({"ok": True})


async def ask(
    *middleware: Any,
    handler: Any = ok,
    path: str = "/users/7",
    headers: dict[str, str] | None = None,
    method: str = "GET",
    edge: EdgeMetadata | None = None,
) -> http.Response:
    app = create_app()
    app.use(*middleware)
    app.all("/users/:id", handler)
    request = http.Request(URL + path, method=method, headers=headers, edge=edge)
    return await app.fetch(request, None, FakeExecutionContext())


class TestLogger:
    async def test_short_is_the_default_format(self) -> None:
        lines: list[str] = []
        await ask(logger(write=lines.append), edge=EdgeMetadata("SJC", "US"))
        assert lines == ["GET /users/7 200 0ms [SJC]"]

    async def test_long(self) -> None:
        lines: list[str] = []
        await ask(
            request_id(generator=lambda: "r1"),
            logger(format="long", write=lines.append),
            headers={"Edge-Connecting-IP": "203.0.113.9"},
            edge=EdgeMetadata("SJC", "US"),
        )
        assert lines == ["GET /users/7 200 0ms ip=203.0.113.9 colo=SJC id=r1"]

    async def test_a_function_returns_the_line_itself(self) -> None:
        lines: list[str] = []

        def line(req: Request, status: int, duration_ms: float) -> str:
            return f"{req.method}-{status}-{duration_ms:.0f}"

        await ask(logger(format=line, write=lines.append), path="/none")
        assert lines == ["GET-404-0"]

    async def test_one_line_per_request_through_print(self, capsys: pytest.CaptureFixture[str]) -> None:
        await ask(logger())
        assert capsys.readouterr().out == "GET /users/7 200 0ms [-]\n"


class TestRequestId:
    async def test_the_incoming_value_is_reused_and_set_on_request_and_response(self) -> None:
        seen: list[str] = []

        async def handler(req: Request, res: Response) -> None:
            seen.append(req.id)
            res.json({})

        response = await ask(request_id(), handler=handler, headers={"X-Request-Id": "abc-1"})
        assert (seen, response.headers["X-Request-Id"]) == (["abc-1"], "abc-1")

    async def test_otherwise_a_uuid_is_generated(self) -> None:
        response = await ask(request_id())
        assert re.fullmatch(
            r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", response.headers["x-request-id"]
        )

    async def test_header_name_and_generator(self) -> None:
        response = await ask(request_id(header_name="X-Trace", generator=lambda: "g-1"))
        assert response.headers["x-trace"] == "g-1"
        assert "x-request-id" not in response.headers


class TestTimeout:
    async def expire(self, middleware: Any, handler: Any = None) -> http.Response:
        clock = FakeClock()
        app = create_app()

        async def slow(req: Request, res: Response) -> None:
            await asyncio.Event().wait()

        app.get("/", middleware, handler or slow)
        ctx = FakeExecutionContext(clock=clock)
        task = asyncio.create_task(app.fetch(http.Request(f"{URL}/"), None, ctx))
        await clock.advance(1)
        return await task

    async def test_defaults(self) -> None:
        response = await self.expire(timeout(duration=500))
        assert (response.status, await response.json()) == (408, {"error": "Request Timeout"})

    async def test_message_and_status(self) -> None:
        response = await self.expire(timeout(duration=500, message="Too slow", status=504))
        assert (response.status, await response.json()) == (504, {"error": "Too slow"})

    async def test_duration_is_in_milliseconds_and_the_timer_is_cancelled_when_the_handler_completes_first(
        self,
    ) -> None:
        clock = FakeClock()
        app = create_app()
        app.get("/", timeout(duration=2000), ok)
        response = await app.fetch(http.Request(f"{URL}/"), None, FakeExecutionContext(clock=clock))
        assert response.status == 200
        assert clock.pending == 0

    async def test_a_core_error_goes_to_the_error_handler(self) -> None:
        clock = FakeClock()
        app = create_app()
        seen: list[Exception] = []

        @app.get("/", timeout(duration=10))
        async def slow(req: Request, res: Response) -> None:
            await asyncio.Event().wait()

        @app.on_error
        async def on_error(err: Exception, req: Request, res: Response, next: Next) -> None:
            seen.append(err)
            await next(err)

        task = asyncio.create_task(app.fetch(http.Request(f"{URL}/"), None, FakeExecutionContext(clock=clock)))
        await clock.advance(1)
        assert (await task).status == 408
        assert isinstance(seen[0], CoreError)

    def test_duration_is_required(self) -> None:
        with pytest.raises(TypeError):
            timeout()  # type: ignore[call-arg]  # that is what is tested


DEFAULTS = {
    "content_security_policy": ("Content-Security-Policy", "default-src 'self'"),
    "strict_transport_security": ("Strict-Transport-Security", "max-age=31536000; includeSubDomains"),
    "x_frame_options": ("X-Frame-Options", "DENY"),
    "x_content_type_options": ("X-Content-Type-Options", "nosniff"),
    "referrer_policy": ("Referrer-Policy", "strict-origin-when-cross-origin"),
    "x_xss_protection": ("X-XSS-Protection", "0"),
    "permissions_policy": ("Permissions-Policy", "geolocation=(), camera=(), microphone=()"),
    "cross_origin_embedder_policy": ("Cross-Origin-Embedder-Policy", None),
    "cross_origin_opener_policy": ("Cross-Origin-Opener-Policy", None),
    "cross_origin_resource_policy": ("Cross-Origin-Resource-Policy", None),
}


class TestSecureHeaders:
    @pytest.mark.parametrize("path", ["/users/7", "/none", "/%zz"])
    @pytest.mark.parametrize(("header", "value"), DEFAULTS.values())
    async def test_defaults_are_on_every_response(self, header: str, value: str | None, path: str) -> None:
        assert (await ask(secure_hdrs(), path=path)).headers.get(header) == value

    @pytest.mark.parametrize(("option", "header"), [(name, header) for name, (header, _) in DEFAULTS.items()])
    async def test_a_string_overrides_and_false_disables(self, option: str, header: str) -> None:
        make: Any = secure_hdrs
        assert (await ask(make(**{option: "same-origin"}))).headers[header] == "same-origin"
        assert header not in (await ask(make(**{option: False}))).headers

    def test_secure_headers_is_the_same(self) -> None:
        assert secure_headers is secure_hdrs


class TestRateLimit:
    """§2.7 and §8, "Rate limit"."""

    def setup_method(self) -> None:
        self.clock = FakeClock(1_800_000_000.0)  # a multiple of 60
        self.env = Env(self.clock)
        self.app: App[Any] = create_app()

    async def ask(self, path: str = "/", ip: str = "203.0.113.9") -> http.Response:
        ctx = FakeExecutionContext(clock=self.clock)
        request = http.Request(URL + path, headers={"Edge-Connecting-IP": ip})
        response = await self.app.fetch(request, self.env, ctx)
        await ctx.drain()
        return response

    async def test_1_at_most_limit_requests_per_key_and_window(self) -> None:
        self.app.get("/", rate_limit(kv_binding="COUNTERS", limit=2, window=60), ok)
        assert [(await self.ask()).status for _ in range(3)] == [200, 200, 429]
        assert (await self.ask(ip="203.0.113.10")).status == 200
        self.clock.advance(60)
        assert (await self.ask()).status == 200

    async def test_2_the_increment_is_written_through_wait_until(self) -> None:
        self.app.get("/", rate_limit(kv_binding="COUNTERS", limit=2, window=60), ok)
        ctx = FakeExecutionContext(clock=self.clock)
        await self.app.fetch(http.Request(f"{URL}/", headers={"Edge-Connecting-IP": "203.0.113.9"}), self.env, ctx)
        assert len(ctx.waited) == 1
        await ctx.drain()
        assert len((await self.env.COUNTERS.list()).keys) == 1

    async def test_3_every_response_carries_the_headers_and_retry_after_only_429(self) -> None:
        self.clock.advance(12)
        self.app.get("/", rate_limit(kv_binding="COUNTERS", limit=1, window=60), ok)
        allowed, blocked = await self.ask(), await self.ask()
        for response, remaining in ((allowed, "0"), (blocked, "0")):
            assert response.headers["X-RateLimit-Limit"] == "1"
            assert response.headers["X-RateLimit-Remaining"] == remaining
            assert response.headers["X-RateLimit-Reset"] == "1800000060"
        assert "Retry-After" not in allowed.headers
        assert blocked.headers["Retry-After"] == "48"
        assert await blocked.json() == {"error": "Too Many Requests"}

    async def test_4_the_limit_is_shared_through_the_store(self) -> None:
        limit: Any = rate_limit(kv_binding="COUNTERS", limit=1, window=60, name="shared")
        other: Any = rate_limit(kv_binding="COUNTERS", limit=1, window=60, name="shared")
        self.app.get("/a", limit, ok)
        self.app.get("/b", other, ok)
        assert (await self.ask("/a")).status == 200
        assert (await self.ask("/b")).status == 429

    async def test_5_routes_may_have_limits_of_their_own(self) -> None:
        self.app.get("/a", rate_limit(kv_binding="COUNTERS", limit=1, window=60), ok)
        self.app.get("/b", rate_limit(kv_binding="COUNTERS", limit=3, window=60), ok)
        assert [(await self.ask("/a")).status for _ in range(2)] == [200, 429]
        assert [(await self.ask("/b")).status for _ in range(4)] == [200, 200, 200, 429]

    async def test_kv_binding_may_be_a_function_and_key_fn_and_message_are_options(self) -> None:
        app = self.app = create_app(Env)
        app.get(
            "/:id",
            rate_limit(
                kv_binding=lambda req: req.env.COUNTERS,
                limit=1,
                window=60,
                key_fn=lambda req: req.params["id"],
                message="Slow down",
            ),
            ok,
        )
        assert (await self.ask("/1")).status == 200
        assert (await self.ask("/2", ip="203.0.113.10")).status == 200
        blocked = await self.ask("/1", ip="203.0.113.11")
        assert (blocked.status, await blocked.json()) == (429, {"error": "Slow down"})


class TestCors:
    @pytest.mark.parametrize("path", ["/users/7", "/none"])
    async def test_origins_is_a_function_of_the_request(self, path: str) -> None:
        middleware = cors(origins=lambda req: ["https://a.test", "https://b.test"])
        allowed = await ask(middleware, headers={"Origin": "https://b.test"}, path=path)
        assert allowed.headers["Access-Control-Allow-Origin"] == "https://b.test"
        assert allowed.headers["Vary"] == "Origin"
        refused = await ask(middleware, headers={"Origin": "https://c.test"}, path=path)
        assert not [name for name in refused.headers if name.startswith("access-control-")]

    async def test_a_preflight_is_answered_and_other_options_reach_the_routes(self) -> None:
        middleware = cors(origins=["https://a.test"])
        headers = {"Origin": "https://a.test", "Access-Control-Request-Method": "PUT"}
        preflight = await ask(middleware, method="OPTIONS", headers=headers)
        assert preflight.status == 204
        assert "PUT" in preflight.headers["Access-Control-Allow-Methods"]
        plain = await ask(middleware, method="OPTIONS", headers={"Origin": "https://a.test"})
        assert await plain.json() == {"ok": True}
