"""interface-spec §2.1 to §2.3 and §2.6: the members of request, response, context and error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import attrs
import pytest
from tests.support.fetch import PlainContext, answer, ask

from core import CoreError, EdgeMetadata, Next, Request, Response, create_app, http
from core.errors import AlreadySentError


async def seen(read: Callable[[Request[Any, Any, Any]], Any], path: str = "/", **options: Any) -> Any:
    """The result of `read(req)` inside a handler."""
    app = create_app()
    found: list[Any] = []

    async def handler(req: Request, res: Response) -> None:
        value = read(req)
        found.append(await value if asyncio.iscoroutine(value) else value)
        res.json({})

    app.all("/users/:id", handler)
    app.all("/*", handler)
    await ask(app, path, **options)
    return found[0]


class TestRequest:
    """§2.1, row by row."""

    async def test_method(self) -> None:
        assert await seen(lambda req: req.method, method="DELETE") == "DELETE"

    async def test_url(self) -> None:
        assert await seen(lambda req: req.url, "/a?b=c") == "https://example.test/a?b=c"

    async def test_path_stays_percent_encoded_with_dot_segments_resolved(self) -> None:
        assert await seen(lambda req: req.path, "/a/%2e%2e/b%20c") == "/b%20c"

    async def test_params(self) -> None:
        assert await seen(lambda req: req.params["id"], "/users/42") == "42"

    async def test_a_parameter_that_is_not_there_names_those_that_are(self) -> None:
        params = await seen(lambda req: req.params, "/users/42")
        with pytest.raises(KeyError, match=r'no parameter "idd"\. It has "id"'):
            params["idd"]

    async def test_params_cannot_be_changed(self) -> None:
        params = await seen(lambda req: req.params, "/users/42")
        with pytest.raises(TypeError, match=r"req\.state"):
            params["id"] = "43"

    async def test_query(self) -> None:
        query = await seen(lambda req: req.query, "/?page=2&tag=a&tag=b%20c+d&empty=")
        assert query.get("page") == "2"
        assert query.get("none") is None
        assert query.get("none", "1") == "1"
        with pytest.raises(KeyError, match=r'the query has no "none"\. Use req\.query\.get\("none"\)'):
            query["none"]
        assert query.get_all("tag") == ["a", "b c d"]
        assert query.get("empty") == ""
        assert "page" in query
        assert "pages" not in query
        assert list(query) == ["page", "tag", "empty"]

    async def test_env(self) -> None:
        env = object()
        assert await seen(lambda req: req.env, env=env) is env

    async def test_ctx_has_wait_until(self) -> None:
        ctx = PlainContext()
        assert await seen(lambda req: req.ctx, ctx=ctx) is ctx

    async def test_ip_comes_from_the_edge_header_alone(self) -> None:
        headers = {"Edge-Connecting-IP": "203.0.113.9", "X-Forwarded-For": "198.51.100.1"}
        assert await seen(lambda req: req.ip, headers=headers) == "203.0.113.9"
        assert await seen(lambda req: req.ip, headers={"X-Forwarded-For": "198.51.100.1"}) is None

    async def test_edge_is_what_the_host_says(self) -> None:
        app = create_app()

        @app.get("/")
        async def handler(req: Request, res: Response) -> None:
            assert req.edge is not None
            res.json([req.edge.colo, req.edge.country])

        request = http.Request("https://example.test/", edge=EdgeMetadata("AMS", "NL"))
        assert await (await app.fetch(request, None, PlainContext())).json() == ["AMS", "NL"]

    async def test_edge_is_none_where_the_host_knows_nothing(self) -> None:
        assert await seen(lambda req: req.edge) is None

    async def test_id_is_empty_before_a_middleware_sets_it(self) -> None:
        assert await seen(lambda req: req.id) == ""

    async def test_user_is_none_before_a_middleware_sets_it(self) -> None:
        assert await seen(lambda req: req.user) is None

    async def test_start_time_is_epoch_seconds_and_may_be_overwritten(self) -> None:
        import time

        before = time.time()
        assert before - 1 <= await seen(lambda req: req.start_time) <= time.time() + 1

        def overwrite(req: Request) -> float:
            req.start_time = 5.0
            return req.start_time

        assert await seen(overwrite) == 5.0

    async def test_json(self) -> None:
        assert await seen(lambda req: req.json(), method="POST", body='{"a": [1, null]}') == {"a": [1, None]}

    async def test_the_body_is_read_once_and_remembered(self) -> None:
        async def twice(req: Request) -> tuple[bytes, str, Any]:
            return await req.bytes(), await req.text(), await req.json()

        assert await seen(twice, method="POST", body="[1]") == (b"[1]", "[1]", [1])

    async def test_header_is_case_insensitive_and_none_when_absent(self) -> None:
        assert await seen(lambda req: req.header("x-TOKEN"), headers={"X-Token": "t"}) == "t"
        assert await seen(lambda req: req.header("x-token")) is None

    async def test_cookies(self) -> None:
        assert await seen(lambda req: dict(req.cookies), headers={"Cookie": "a=1; b=2"}) == {"a": "1", "b": "2"}

    async def test_state_is_a_dict_of_its_own_per_request(self) -> None:
        first, second = await seen(lambda req: req.state), await seen(lambda req: req.state)
        assert first == {}
        assert first is not second


@attrs.frozen
class Line:
    sku: str
    count: int


@attrs.frozen
class Order:
    email: str
    items: list[Line]


class TestTypedBodies:
    """design: `req.json(T)` and `query.parse(T)` through cattrs, strictly."""

    async def test_a_body_becomes_the_type(self) -> None:
        body = '{"email": "a@b.c", "items": [{"sku": "x", "count": 2}]}'
        assert await seen(lambda req: req.json(Order), method="POST", body=body) == Order("a@b.c", [Line("x", 2)])

    async def test_not_json_is_400(self) -> None:
        app = create_app()

        @app.post("/")
        async def take(req: Request, res: Response) -> None:
            res.json(await req.json(Order) and 1)

        for body in ("{", "", "NaN", '{"a": Infinity}', b"\xff\xfe"):
            assert await answer(app, method="POST", body=body) == (400, {"error": "Invalid JSON"})

    async def test_a_wrong_shape_is_422_with_every_issue_and_its_path(self) -> None:
        app = create_app()

        @app.post("/")
        async def take(req: Request, res: Response) -> None:
            await req.json(Order)

        body = '{"items": [{"sku": 1, "count": "2"}, {"count": true}]}'
        status, found = await answer(app, method="POST", body=body)
        assert status == 422
        assert found["error"] == "Validation failed"
        assert {issue["path"]: issue["message"] for issue in found["issues"]} == {
            "email": "is required",
            "items[0].sku": "must be a string",
            "items[0].count": "must be an integer",
            "items[1].sku": "is required",
            "items[1].count": "must be an integer",
        }

    async def test_a_query_becomes_the_type(self) -> None:
        @attrs.frozen
        class Page:
            page: int = 1
            limit: int = 20
            tags: list[str] = attrs.field(factory=list[str])
            deep: bool = False

        def read(req: Request) -> Page:
            return req.query.parse(Page)

        assert await seen(read, "/?page=3&tags=a&tags=b&deep=true") == Page(3, 20, ["a", "b"], True)
        assert await seen(read, "/") == Page()

        app = create_app()

        @app.get("/")
        async def page(req: Request, res: Response) -> None:
            req.query.parse(Page)

        status, found = await answer(app, "/?page=x&deep=maybe")
        assert (status, [issue["path"] for issue in found["issues"]]) == (422, ["page", "deep"])


class TestResponse:
    """§2.2, row by row."""

    async def reply(self, make: Callable[[Response], object], **options: Any) -> http.Response:
        app = create_app()

        @app.all("/*")
        async def handler(req: Request, res: Response) -> None:
            make(res)

        return await ask(app, **options)

    async def test_status_is_chainable(self) -> None:
        response = await self.reply(lambda res: res.status(201).json({"id": 1}))
        assert (response.status, await response.json()) == (201, {"id": 1})

    @pytest.mark.parametrize("code", [0, 100, 199, 600, True, "200", 200.0])
    async def test_a_status_that_is_none_is_refused(self, code: Any) -> None:
        with pytest.raises(ValueError, match="from 200 to 599"):
            Response().status(code)

    async def test_json_has_the_content_type(self) -> None:
        response = await self.reply(lambda res: res.json(None))
        assert response.headers["Content-Type"] == "application/json"
        assert await response.text() == "null"

    async def test_json_refuses_nan(self) -> None:
        with pytest.raises(ValueError, match=r"(?i)nan"):
            Response().json({"a": float("nan")})

    async def test_send_without_a_body_for_204(self) -> None:
        response = await self.reply(lambda res: res.status(204).send())
        assert (response.status, await response.bytes()) == (204, b"")

    @pytest.mark.parametrize("status", [204, 205, 304])
    async def test_a_status_that_allows_no_body_never_carries_one(self, status: int) -> None:
        app = create_app()

        @app.get("/")
        async def handler(req: Request, res: Response) -> None:
            res.status(status).json({"a": 1})

        res = Response()
        await app.dispatcher.respond(Request(http.Request("http://a/"), None, PlainContext()), res)
        assert res.body is None
        assert res.content_type is None

    async def test_on_send_reads_the_final_status_and_the_time_in_order_once(self) -> None:
        calls: list[tuple[str, int]] = []
        app = create_app()

        @app.use
        async def watch(req: Request, res: Response, next: Next) -> None:
            res.on_send(lambda status, ms: calls.append(("first", status)) if ms >= 0 else None)
            res.on_send(lambda status, ms: calls.append(("second", status)))
            await next()

        @app.get("/")
        async def handler(req: Request, res: Response) -> None:
            res.status(200).json({})
            raise CoreError(418, "teapot")

        await ask(app)
        assert calls == [("first", 418), ("second", 418)]

    async def test_an_on_send_callback_that_raises_is_logged_and_changes_nothing(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        called: list[int] = []

        def bad(status: int, ms: float) -> None:
            raise RuntimeError("hook")

        def make(res: Response) -> None:
            res.on_send(bad).on_send(lambda status, ms: called.append(status)).json({"fine": True})

        response = await self.reply(make)
        assert await response.json() == {"fine": True}
        assert called == [200]
        assert "an on_send callback" in caplog.text

    @pytest.mark.parametrize(("name", "value"), [("X-A", "a\r\nSet-Cookie: b=c"), ("X\nA", "a"), ("X-A", "a\x00b")])
    async def test_a_header_that_would_smuggle_a_line_is_refused_at_the_call(self, name: str, value: str) -> None:
        with pytest.raises(TypeError, match="Invalid header"):
            Response().header(name, value)

    async def test_text_html_redirect_and_cookies(self) -> None:
        assert (await self.reply(lambda res: res.text("a"))).headers["content-type"] == "text/plain;charset=UTF-8"
        assert (await self.reply(lambda res: res.html("a"))).headers["content-type"] == "text/html;charset=UTF-8"
        moved = await self.reply(lambda res: res.redirect("/é b"))
        assert (moved.status, moved.headers["location"]) == (302, "/%C3%A9%20b")
        set_two = await self.reply(lambda res: res.cookie("a", "1").cookie("b", "2", http_only=True).json(1))
        assert len(set_two.headers.get_set_cookie()) == 2

    async def test_headers_is_a_live_view_of_what_is_staged(self) -> None:
        def make(res: Response) -> None:
            res.headers["X-A"] = "1"
            res.headers.append("Set-Cookie", "a=1")
            res.header("x-b", "2").json({})
            assert res.headers["x-b"] == "2"
            assert res.headers["content-type"] == "application/json"
            res.headers.append("x-b", "3")

        response = await self.reply(make)
        assert (response.headers["x-a"], response.headers["x-b"]) == ("1", "2, 3")
        assert response.headers.get_set_cookie() == ["a=1"]

    async def test_clearing_the_headers_takes_the_cookies_back(self) -> None:
        def make(res: Response) -> None:
            res.headers.append("Set-Cookie", "a=1")
            res.headers.clear()
            res.json({})

        assert (await self.reply(make)).headers.get_set_cookie() == []

    async def test_a_stream_is_sent_in_pieces(self) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"a"
            yield b"b"

        response = await self.reply(lambda res: res.stream(pieces(), content_type="text/x"))
        assert (response.headers["content-type"], await response.bytes()) == ("text/x", b"ab")

    async def test_what_is_sent_is_read_by_status_code_and_sent(self) -> None:
        res = Response()
        assert (res.sent, res.status_code) == (False, 200)
        res.status(202).json({})
        assert (res.sent, res.status_code) == (True, 202)

    async def test_sending_twice_is_a_developers_error(self, caplog: pytest.LogCaptureFixture) -> None:
        response = await self.reply(lambda res: res.json(1).json(2))
        assert (response.status, await response.json()) == (500, {"error": "Internal Server Error"})
        assert "Send once" in caplog.text

    async def test_a_response_that_has_left_cannot_be_changed(self) -> None:
        kept: list[Response] = []
        await self.reply(lambda res: kept.append(res.json(1)))
        with pytest.raises(AlreadySentError, match="was already finalized"):
            kept[0].header("x-late", "1")

    async def test_a_stream_that_changes_its_response_is_told_when_to_do_that(self) -> None:
        async def pieces(res: Response) -> AsyncIterator[str]:
            yield "one"
            res.header("x-late", "1")

        response = await self.reply(lambda res: res.stream(pieces(res)))
        with pytest.raises(
            AlreadySentError, match=r"already finalized\. Set what a stream is sent with before its first piece"
        ):
            await response.text()

    async def test_nor_can_its_headers_by_a_view_from_before_or_after(self) -> None:
        kept: list[tuple[Response, http.Headers]] = []
        await self.reply(lambda res: kept.append((res, res.json(1).headers)))
        [(res, before)] = kept
        for headers in (before, res.headers):
            with pytest.raises(AlreadySentError, match="was already finalized"):
                headers["x-late"] = "1"
            with pytest.raises(AlreadySentError, match="was already finalized"):
                headers.append("x-late", "1")
            with pytest.raises(AlreadySentError, match="was already finalized"):
                del headers["content-type"]
            with pytest.raises(AlreadySentError, match="was already finalized"):
                headers.clear()

    async def test_head_is_answered_by_get_without_the_body_and_with_its_length(self) -> None:
        response = await self.reply(lambda res: res.json({"a": 1}), method="HEAD")
        assert (response.status, await response.bytes()) == (200, b"")
        assert response.headers["content-length"] == "7"


class TestContext:
    """§2.3."""

    async def test_wait_until_schedules_work_that_outlives_the_response(self) -> None:
        done = asyncio.Event()
        go = asyncio.Event()
        app = create_app()

        @app.get("/")
        async def handler(req: Request, res: Response) -> None:
            async def later() -> None:
                await go.wait()
                done.set()

            req.ctx.wait_until(later())
            res.json({})

        ctx = PlainContext()
        await ask(app, ctx=ctx)
        assert not done.is_set()
        go.set()
        await asyncio.gather(*ctx.waited)
        assert done.is_set()


class TestError:
    """§2.6."""

    async def test_metadata_is_spread_into_the_body(self) -> None:
        app = create_app()

        @app.get("/")
        async def handler(req: Request, res: Response) -> None:
            raise CoreError(403, "Forbidden", code="INSUFFICIENT_PERMISSIONS", error="never this")

        assert await answer(app) == (403, {"error": "Forbidden", "code": "INSUFFICIENT_PERMISSIONS"})

    async def test_headers_of_an_error_go_on_the_response(self) -> None:
        app = create_app()

        @app.get("/")
        async def handler(req: Request, res: Response) -> None:
            raise CoreError(405, "No", headers={"Allow": "GET"})

        assert (await ask(app)).headers["allow"] == "GET"

    @pytest.mark.parametrize("status", [200, 399, 600, True, "404"])
    def test_a_status_that_is_no_error_is_refused(self, status: Any) -> None:
        with pytest.raises(ValueError, match="from 400 to 599"):
            CoreError(status, "x")

    def test_status_and_message_can_be_read(self) -> None:
        error = CoreError(408, "Request Timeout")
        assert (error.status, error.message, str(error)) == (408, "Request Timeout", "Request Timeout")

    async def test_metadata_that_json_does_not_take_costs_the_metadata_alone(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        app = create_app()

        @app.get("/")
        async def handler(req: Request, res: Response) -> None:
            raise CoreError(409, "Conflict", thing=object())

        with caplog.at_level(logging.ERROR):
            assert await answer(app) == (409, {"error": "Conflict"})
        assert "has no JSON form" in caplog.text
