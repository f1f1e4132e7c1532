"""interface-spec §4 and §7: operations, behaviour, and what errors answer."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.support.fetch import answer, ask

from core import App, CoreError, Next, Request, Response, Router, create_app
from core.errors import HandlerError, NextCalledTwiceError, PathError, RegistrationError
from core.http.websocket import WebSocket


async def ok(req: Request, res: Response) -> Response:
    return res.json({"path": req.path, "params": req.params})


class TestOperations:
    """The table of §4, row by row."""

    def test_create_app_returns_an_app_and_router_a_router(self) -> None:
        app = create_app()
        assert isinstance(app, App)
        assert type(app.Router()) is Router

    async def test_use_registers_global_middleware(self) -> None:
        app = create_app()

        @app.use
        async def stamp(req: Request, res: Response, next: Next) -> None:
            res.header("x-stamp", "1")
            await next()

        assert (await ask(app)).headers["x-stamp"] == "1"

    async def test_use_with_a_prefix_mounts_a_router_whose_root_answers_at_the_prefix(self) -> None:
        users: Router[Any] = Router()
        users.get("/", ok)
        users.get("/:id", ok)
        app = create_app()
        app.use("/users", users)
        assert (await answer(app, "/users"))[0] == 200
        assert (await answer(app, "/users/"))[0] == 200
        assert (await answer(app, "/users/7"))[1]["params"] == {"id": "7"}

    async def test_use_with_a_prefix_scopes_a_middleware(self) -> None:
        app = create_app()

        async def stop(req: Request, res: Response, next: Next) -> None:
            raise CoreError(401, "Unauthorized")

        app.use("/admin", stop)
        app.get("/*", ok)
        assert (await ask(app, "/admin")).status == 401
        assert (await ask(app, "/admin/x/y")).status == 401
        assert (await ask(app, "/administrator")).status == 200

    @pytest.mark.parametrize("method", ["get", "post", "put", "delete", "patch", "options", "head"])
    async def test_each_method_registers_a_route(self, method: str) -> None:
        app = create_app()
        getattr(app, method)("/x", ok)
        assert (await ask(app, "/x", method=method.upper())).status == 200
        assert (await ask(app, "/x", method="PROPFIND")).status == 404

    async def test_all_answers_every_method_and_on_any_one(self) -> None:
        app = create_app()
        app.on("purge", "/cache", ok)
        app.all("/any", ok)
        assert (await ask(app, "/cache", method="PURGE")).status == 200
        assert (await ask(app, "/cache")).status == 404
        for method in ("GET", "POST", "PROPFIND", "PURGE", "HEAD"):
            assert (await ask(app, "/any", method=method)).status == 200

    async def test_handlers_given_and_decorated_are_one_thing(self) -> None:
        async def limit(req: Request, res: Response, next: Next) -> None:
            res.header("x-limit", "1")
            await next()

        app = create_app()
        app.get("/given", limit, ok)

        @app.get("/decorated", limit)
        async def show(req: Request, res: Response) -> None:
            res.json({})

        for path in ("/given", "/decorated"):
            response = await ask(app, path)
            assert (response.status, response.headers["x-limit"]) == (200, "1")

    async def test_router_middleware_is_scoped_to_that_router(self) -> None:
        a: Router[Any] = Router()
        b: Router[Any] = Router()

        @a.use
        async def only_a(req: Request, res: Response, next: Next) -> None:
            res.header("x-a", "1")
            await next()

        a.get("/", ok)
        b.get("/", ok)
        app = create_app()
        app.use("/a", a)
        app.use("/b", b)
        assert "x-a" in (await ask(app, "/a")).headers
        assert "x-a" not in (await ask(app, "/b")).headers

    async def test_routers_nest(self) -> None:
        inner: Router[Any] = Router()
        inner.get("/:post", ok)
        outer: Router[Any] = Router()
        outer.use("/:user/posts", inner)
        app = create_app()
        app.use("/users", outer)
        assert (await answer(app, "/users/7/posts/9"))[1]["params"] == {"user": "7", "post": "9"}

    async def test_what_is_added_to_a_router_after_mounting_counts(self) -> None:
        router: Router[Any] = Router()
        app = create_app()
        app.use("/r", router)
        assert (await ask(app, "/r/late")).status == 404
        router.get("/late", ok)
        assert (await ask(app, "/r/late")).status == 200

    async def test_a_router_is_itself_a_middleware(self) -> None:
        inner: Router[Any] = Router()
        inner.get("/in/:id", ok)
        app = create_app()

        @app.use
        async def wrapped(req: Request, res: Response, next: Next) -> None:
            await inner(req, res, next)

        app.get("/out", ok)
        assert (await answer(app, "/in/1"))[1]["params"] == {"id": "1"}
        assert (await ask(app, "/out")).status == 200
        assert (await ask(app, "/none")).status == 404


class TestBehaviour:
    """§4, behaviour 1 to 4, and the table of §7."""

    async def test_1_no_route_is_404(self) -> None:
        assert await answer(create_app()) == (404, {"error": "Not Found"})

    async def test_1_another_method_on_a_known_path_is_404(self) -> None:
        app = create_app()
        app.get("/x", ok)
        assert await answer(app, "/x", method="POST") == (404, {"error": "Not Found"})

    async def test_1_not_found_can_be_replaced(self) -> None:
        app = create_app()

        @app.not_found
        async def lost(req: Request, res: Response) -> None:
            res.status(404).json({"error": "Not Found", "path": req.path})

        assert await answer(app, "/x") == (404, {"error": "Not Found", "path": "/x"})

    async def test_1_what_replaces_it_is_404_too_unless_it_sets_another_status(self) -> None:
        app = create_app()

        @app.not_found
        async def lost(req: Request, res: Response) -> None:
            if req.path == "/gone":
                res.status(410)
            res.json({"path": req.path})

        assert await answer(app, "/x") == (404, {"path": "/x"})
        assert await answer(app, "/gone") == (410, {"path": "/gone"})

    async def test_2_an_unexpected_error_is_500_without_its_message_and_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        app = create_app()

        @app.get("/")
        async def fails(req: Request, res: Response) -> None:
            raise RuntimeError("the password is hunter2")

        response = await ask(app)
        text = await response.text()
        assert (response.status, text) == (500, '{"error":"Internal Server Error"}')
        assert "hunter2" in caplog.text

    @pytest.mark.parametrize(
        ("status", "message"),
        [(404, "gone"), (499, "gone"), (404, None), (500, None), (503, None), (200, None), (True, None)],
    )
    async def test_3_an_error_carrying_a_status_yields_it_and_its_message_only_below_500(
        self, status: int, message: str | None
    ) -> None:
        class Carrying(Exception):
            def __init__(self) -> None:
                super().__init__("the password is hunter2")
                self.status = status
                if message is not None:
                    self.message = message

        app = create_app()

        @app.get("/")
        async def fails(req: Request, res: Response) -> None:
            raise Carrying

        expected = status if status is not True and status >= 400 else 500
        otherwise = "Not Found" if status == 404 else "Internal Server Error"
        assert await answer(app) == (expected, {"error": message or otherwise})

    async def test_4_an_error_handler_returns_the_message_and_may_add_the_request_id(self) -> None:
        app = create_app()

        @app.get("/")
        async def fails(req: Request, res: Response) -> None:
            req.id = "r-1"
            raise CoreError(409, "Conflict")

        @app.on_error
        async def on_error(err: Exception, req: Request, res: Response, next: Next) -> None:
            res.status(getattr(err, "status", 500)).json({"error": str(err), "requestId": req.id})

        assert await answer(app) == (409, {"error": "Conflict", "requestId": "r-1"})

    async def test_next_with_an_error_goes_to_the_error_handler_as_raising_does(self) -> None:
        app = create_app()

        @app.use
        async def refuse(req: Request, res: Response, next: Next) -> None:
            await next(CoreError(418, "teapot"))

        app.get("/", ok)
        assert await answer(app) == (418, {"error": "teapot"})

    @pytest.mark.parametrize("how", ["raise", "next", "nothing"])
    async def test_an_error_handler_that_fails_falls_back_to_the_default_answer(
        self, how: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        app = create_app()

        @app.get("/")
        async def fails(req: Request, res: Response) -> None:
            raise CoreError(404, "User not found")

        @app.on_error
        async def on_error(err: Exception, req: Request, res: Response, next: Next) -> None:
            if how == "raise":
                res.json({"half": "done"})
                raise RuntimeError("handler broke")
            if how == "next":
                await next(err)

        assert await answer(app) == (404, {"error": "User not found"})
        assert bool(caplog.text) is (how != "next")

    async def test_an_error_after_a_send_discards_the_unsent_body_and_keeps_staged_headers(self) -> None:
        app = create_app()

        @app.get("/")
        async def handler(req: Request, res: Response) -> None:
            res.header("x-kept", "1").header("etag", '"1"').status(201).json({"secret": 1})
            raise CoreError(500, "broke")

        response = await ask(app)
        assert (response.status, await response.json()) == (500, {"error": "broke"})
        assert response.headers["x-kept"] == "1"
        assert "etag" not in response.headers

    async def test_an_error_after_a_redirect_does_not_send_the_client_anywhere(self) -> None:
        app = create_app()

        @app.get("/")
        async def handler(req: Request, res: Response) -> None:
            res.redirect("/elsewhere")
            raise CoreError(500, "broke")

        response = await ask(app)
        assert response.status == 500
        assert "location" not in response.headers

    @pytest.mark.parametrize("kind", ["sent", "raised", "missing", "broken"])
    async def test_headers_staged_before_and_after_next_are_on_whatever_leaves(self, kind: str) -> None:
        app = create_app()

        @app.use
        async def stage(req: Request, res: Response, next: Next) -> None:
            res.header("x-before", "1")
            try:
                await next()
            finally:
                res.header("x-after", "1")

        @app.get("/sent")
        async def sent(req: Request, res: Response) -> None:
            res.json({})

        @app.get("/raised")
        async def raised(req: Request, res: Response) -> None:
            raise CoreError(429, "slow down")

        @app.get("/broken")
        async def broken(req: Request, res: Response) -> None:
            raise RuntimeError

        response = await ask(app, f"/{kind}")
        assert response.status == {"sent": 200, "raised": 429, "missing": 404, "broken": 500}[kind]
        assert (response.headers["x-before"], response.headers["x-after"]) == ("1", "1")

    async def test_middleware_may_catch_what_the_chain_raises(self) -> None:
        app = create_app()

        @app.use
        async def translate(req: Request, res: Response, next: Next) -> None:
            try:
                await next()
            except LookupError:
                res.status(404).json({"error": "User not found"})

        @app.get("/")
        async def fails(req: Request, res: Response) -> None:
            raise LookupError

        assert await answer(app) == (404, {"error": "User not found"})

    async def test_a_chain_that_sends_nothing_is_500_and_the_log_names_the_route(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        app = create_app()

        @app.get("/users/:id")
        async def forgets(req: Request, res: Response) -> None:
            pass

        assert await answer(app, "/users/1") == (500, {"error": "Internal Server Error"})
        assert "GET /users/:id" in caplog.text
        assert "forgets" in caplog.text

    async def test_a_middleware_at_the_end_of_its_route_goes_on_to_the_next_route_and_to_the_404(self) -> None:
        async def pass_on(req: Request, res: Response, next: Next) -> None:
            res.append("x-passed", req.params["a"])
            await next()
            res.append("x-back", req.params["a"])

        app = create_app()
        app.get("/:a", pass_on)
        app.get("/:b", ok)
        app.post("/:a", pass_on)
        response = await ask(app, "/1")
        assert (await response.json())["params"] == {"b": "1"}
        assert (response.headers["x-passed"], response.headers["x-back"]) == ("1", "1")
        assert await answer(app, "/1", method="POST") == (404, {"error": "Not Found"})

    async def test_next_called_twice_is_a_developers_error(self, caplog: pytest.LogCaptureFixture) -> None:
        app = create_app()

        @app.use
        async def twice(req: Request, res: Response, next: Next) -> None:
            await next()
            await next()

        app.get("/", ok)
        assert (await ask(app)).status == 500
        assert NextCalledTwiceError.__name__ in caplog.text

    async def test_a_cancelled_request_stays_cancelled(self) -> None:
        started = asyncio.Event()
        app = create_app()

        @app.get("/")
        async def waits(req: Request, res: Response) -> None:
            started.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(ask(app))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class TestPaths:
    """design §1, "Paths"."""

    @pytest.mark.parametrize(
        ("path", "params"),
        [
            ("/u/a%2Fb", {"id": "a/b"}),
            ("/u/%C3%A9", {"id": "é"}),
            ("/u/é", {"id": "é"}),
            ("/u/a%252Fb", {"id": "a%2Fb"}),
            ("/u/7/", {"id": "7"}),
            ("/x/../u/7", {"id": "7"}),
            ("/x/%2e%2e/u/7", {"id": "7"}),
            ("/u/a+b", {"id": "a+b"}),
        ],
    )
    async def test_segments_are_split_first_and_decoded_once(self, path: str, params: dict[str, str]) -> None:
        app = create_app()
        app.get("/u/:id", ok)
        assert (await answer(app, path))[1]["params"] == params

    @pytest.mark.parametrize("path", ["/u/%", "/u/%2", "/u/%zz", "/u/%ff", "/u/%C3", "/%ED%A0%80"])
    async def test_malformed_escapes_and_invalid_utf8_are_400_and_global_middleware_still_runs(self, path: str) -> None:
        app = create_app()

        @app.use
        async def stamp(req: Request, res: Response, next: Next) -> None:
            res.header("x-stamp", "1")
            await next()

        app.get("/*", ok)
        response = await ask(app, path)
        assert (response.status, response.headers["x-stamp"]) == (400, "1")

    @pytest.mark.parametrize(("path", "status"), [("//u", 404), ("/u//", 404), ("/u//x", 404), ("/u/", 200)])
    async def test_an_empty_segment_is_a_segment(self, path: str, status: int) -> None:
        app = create_app()
        app.get("/u", ok)
        app.get("/u/x", ok)
        assert (await ask(app, path)).status == status

    async def test_an_encoded_spelling_finds_the_same_route(self) -> None:
        app = create_app()
        app.get("/café/x", ok)
        assert (await ask(app, "/caf%C3%A9/x")).status == 200
        assert (await ask(app, "/caf%C3%A9/%78")).status == 200

    async def test_a_rest_takes_what_is_left_and_nothing_too(self) -> None:
        app = create_app()
        app.get("/files/*", ok)
        assert (await answer(app, "/files/a/b%20c"))[1]["params"] == {"*": "a/b c"}
        assert (await answer(app, "/files"))[1]["params"] == {"*": ""}

    async def test_the_first_registered_route_wins_whatever_its_shape(self) -> None:
        async def special(req: Request, res: Response) -> None:
            res.json("special")

        first = create_app()
        first.get("/users/:id", ok)
        first.get("/users/me", special)
        assert (await answer(first, "/users/me"))[1]["params"] == {"id": "me"}
        second = create_app()
        second.get("/users/me", special)
        second.get("/users/:id", ok)
        assert (await answer(second, "/users/me"))[1] == "special"
        assert (await answer(second, "/users/you"))[1]["params"] == {"id": "you"}

    async def test_middleware_over_one_value_of_a_parameter_runs_for_that_value_alone(self) -> None:
        app = create_app()

        async def stop(req: Request, res: Response, next: Next) -> None:
            raise CoreError(403, "no")

        app.use("/users/root", stop)
        app.get("/users/:id", ok)
        assert (await ask(app, "/users/root")).status == 403
        assert (await ask(app, "/users/%72oot")).status == 403
        assert (await ask(app, "/users/x")).status == 200

    async def test_middleware_sees_the_parameters_of_its_own_prefix(self) -> None:
        found: list[dict[str, str]] = []
        app = create_app()

        async def look(req: Request, res: Response, next: Next) -> None:
            found.append(dict(req.params))
            await next()
            found.append(dict(req.params))

        app.use("/orgs/:org", look)
        app.get("/orgs/:id/x", ok)
        assert (await answer(app, "/orgs/7/x"))[1]["params"] == {"id": "7"}
        assert found == [{"id": "7", "org": "7"}] * 2
        found.clear()
        assert (await ask(app, "/orgs/7/none")).status == 404
        assert found[0] == {"org": "7"}


class TestRegistration:
    """A mistake is told when it is written, by the culprit's name."""

    def test_a_bad_path(self) -> None:
        with pytest.raises(PathError, match='"/a/:": a parameter needs a name'):
            create_app().get("/a/:", ok)

    def test_a_handler_that_is_not_async(self) -> None:
        def show(req: Request, res: Response) -> None:
            res.json({})

        app: Any = create_app()
        with pytest.raises(HandlerError, match=r"GET /: show is not async. Write `async def show\(…\)`"):
            app.get("/", show)

    @pytest.mark.parametrize("count", [0, 1, 4])
    def test_a_callable_of_neither_shape(self, count: int) -> None:
        namespace: dict[str, Any] = {}
        exec(f"async def odd({', '.join('abcd'[:count])}): pass", namespace)
        app: Any = create_app()
        with pytest.raises(HandlerError, match=r"odd takes .* A handler takes \(req, res\), a middleware"):
            app.get("/", namespace["odd"])

    def test_a_handler_that_is_not_last(self) -> None:
        async def late(req: Request, res: Response, next: Next) -> None:
            await next()

        with pytest.raises(HandlerError, match="late comes after the handler ok"):
            create_app().get("/", ok, late)

    def test_a_second_handler_by_decoration(self) -> None:
        with pytest.raises(HandlerError, match="comes after the handler ok"):
            create_app().get("/", ok)(ok)

    def test_a_handler_where_a_middleware_belongs(self) -> None:
        app: Any = create_app()
        with pytest.raises(HandlerError, match="takes \\(req, res\\) and is a handler"):
            app.use(ok)

    def test_two_parameters_of_one_name_across_a_mount(self) -> None:
        router: Router[Any] = Router()
        router.get("/:id", ok)
        with pytest.raises(PathError, match="two parameters named :id"):
            create_app().use("/:id", router)

    def test_a_router_below_itself(self) -> None:
        router: Router[Any] = Router()
        with pytest.raises(RegistrationError, match="below itself"):
            router.use("/x", router)

    def test_an_app_below_an_app(self) -> None:
        with pytest.raises(RegistrationError, match="an App cannot be mounted"):
            create_app().use("/x", create_app())

    def test_a_route_without_a_handler_is_told_before_the_first_request(self) -> None:
        app = create_app()
        app.get("/x")
        with pytest.raises(RegistrationError, match="GET /x has no handler"):
            app.check()

    def test_an_error_handler_of_the_wrong_shape(self) -> None:
        app: Any = create_app()
        with pytest.raises(HandlerError, match=r"async def \(err, req, res, next\)"):
            app.on_error(ok)


class TestAuthenticated:
    """`router.authenticated(authenticator)`."""

    async def test_handlers_of_the_view_see_the_user_and_others_are_open(self) -> None:
        calls = 0

        async def who(req: Request) -> str:
            nonlocal calls
            calls += 1
            if req.header("authorization") is None:
                raise CoreError(401, "Unauthorized")
            return "ada"

        app = create_app()
        app.get("/open", ok)
        view = app.authenticated(who)

        @view.use
        async def twice(req: Request[Any, str], res: Response, next: Next) -> None:
            assert req.user == "ada"
            await next()

        @view.get("/me")
        async def me(req: Request[Any, str], res: Response) -> None:
            res.json(req.user.upper())

        assert (await ask(app, "/open")).status == 200
        assert await answer(app, "/me") == (401, {"error": "Unauthorized"})
        calls = 0
        assert await answer(app, "/me", headers={"Authorization": "x"}) == (200, "ADA")
        assert calls == 1

    def test_default_deny_refuses_a_route_that_is_neither_public_nor_authenticated(self) -> None:
        from core import public

        async def who(req: Request) -> str:
            return "ada"

        app = create_app(default_deny=True)
        app.get("/health", public(), ok)
        app.authenticated(who).get("/me", ok)
        app.check()
        app.get("/forgotten", ok)
        with pytest.raises(RegistrationError, match="GET /forgotten"):
            app.check()

    def test_default_deny_refuses_an_open_websocket(self) -> None:
        from core import public

        async def chat(req: Request, socket: WebSocket) -> None: ...

        async def who(req: Request) -> str:
            return "ada"

        app = create_app(default_deny=True)
        app.websocket("/open", public())(chat)
        app.authenticated(who).websocket("/mine")(chat)
        app.check()
        app.websocket("/forgotten")(chat)
        with pytest.raises(RegistrationError, match="GET /forgotten"):
            app.check()

    def test_default_deny_refuses_files_that_are_neither_public_nor_behind_an_authenticator(
        self, tmp_path: Path
    ) -> None:
        from core import public
        from core.middleware.bearer_auth import bearer_auth
        from core.middleware.static import static

        app = create_app(default_deny=True)
        app.use("/logo", public(), static(directory=tmp_path))
        app.use("/mine", bearer_auth(token=lambda req: "t"), static(directory=tmp_path))
        app.authenticated(bearer_auth(token=lambda req: "t")).use("/theirs", static(directory=tmp_path))
        app.use("/mine/deeper", static(directory=tmp_path))
        app.get("/assets/*", public(), static(directory=tmp_path))
        app.check()
        inner = app.Router()
        inner.use("/files", static(directory=tmp_path))
        app.use("/inner", inner)
        app.use("/files", static(directory=tmp_path), public())
        app.use("/files", bearer_auth(token=lambda req: "t"))
        with pytest.raises(
            RegistrationError, match=r'use\("/inner/files", static\(…\)\), use\("/files", static\(…\)\)\.'
        ):
            app.check()


async def test_five_hundred_requests_at_once_never_mix() -> None:
    app = create_app()

    @app.use
    async def identify(req: Request, res: Response, next: Next) -> None:
        req.id = req.header("x-id") or ""
        req.user = f"user-{req.id}"
        await asyncio.sleep(0)
        await next()

    @app.get("/:a/:b")
    async def show(req: Request, res: Response) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        res.json([req.params, req.env, req.id, req.user])

    async def one(n: int) -> None:
        response = await ask(app, f"/a{n}/b{n}", env=f"env-{n}", headers={"x-id": str(n)})
        assert await response.json() == [{"a": f"a{n}", "b": f"b{n}"}, f"env-{n}", str(n), f"user-{n}"]

    await asyncio.gather(*(one(n) for n in range(500)))


async def test_the_log_of_a_failure_has_the_traceback(caplog: pytest.LogCaptureFixture) -> None:
    app = create_app()

    @app.get("/")
    async def fails(req: Request, res: Response) -> None:
        raise ZeroDivisionError

    await ask(app)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
