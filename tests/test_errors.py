"""Errors and who answers them: handlers by class and by router, the default answers,
and what an application may choose.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.fetch import answer, ask

from core import App, CoreError, Next, Request, Response, Router, ValidationError, conflict, create_app
from core.errors import (
    BindingError,
    D1Error,
    DurableObjectError,
    HandlerError,
    KVError,
    QueueError,
    R2Error,
    RegistrationError,
)
from core.testing import FakeD1Database


class SoldOut(Exception):
    def __init__(self, item: str) -> None:
        super().__init__(item)
        self.item = item


class Gone(SoldOut):
    pass


def failing(error: Exception) -> Any:
    async def handler(req: Request, res: Response) -> None:
        raise error

    return handler


def saying(word: str) -> Any:
    async def handler(err: Exception, req: Request, res: Response, next: Next) -> None:
        res.status(409).json({"by": word, "of": type(err).__name__})

    return handler


# -- CoreError and ValidationError


@pytest.mark.parametrize(
    ("status", "phrase"),
    [
        (404, "Not Found"),
        (403, "Forbidden"),
        (413, "Content Too Large"),
        (422, "Unprocessable Content"),
        (498, "Bad Request"),
        (499, "Client Closed Request"),
        (503, "Service Unavailable"),
        (599, "Internal Server Error"),
    ],
)
def test_an_error_without_a_message_has_the_standard_phrase(status: int, phrase: str) -> None:
    assert CoreError(status).message == phrase
    assert CoreError(status, code="X").body == {"error": phrase, "code": "X"}


async def test_a_validation_error_has_typed_issues_and_is_answered_as_before() -> None:
    app = create_app()
    seen: list[list[Any]] = []

    @app.post("/")
    async def handler(req: Request, res: Response) -> None:
        try:
            await req.json(list[int])
        except ValidationError as error:
            seen.append(error.issues)
            raise

    found = await answer(app, method="POST", body='["a"]')
    issue = {"path": "[0]", "message": "must be an integer"}
    assert found == (422, {"error": "Validation failed", "issues": [issue]})
    assert seen == [[issue]]


async def test_an_application_may_raise_a_validation_error_of_its_own() -> None:
    app = create_app()
    app.get("/", failing(ValidationError([{"path": "email", "message": "is taken"}], status=409, message="Conflict")))
    assert await answer(app) == (409, {"error": "Conflict", "issues": [{"path": "email", "message": "is taken"}]})


# -- by class


async def test_the_handler_of_the_nearest_class_answers() -> None:
    app = create_app()
    app.get("/sold", failing(SoldOut("x")))
    app.get("/gone", failing(Gone("x")))
    app.get("/key", failing(KeyError("x")))
    app.on_error(saying("all"))
    app.on_error(SoldOut)(saying("sold"))
    assert (await answer(app, "/sold"))[1] == {"by": "sold", "of": "SoldOut"}
    assert (await answer(app, "/gone"))[1] == {"by": "sold", "of": "Gone"}
    assert (await answer(app, "/key"))[1] == {"by": "all", "of": "KeyError"}
    app.on_error(Gone)(saying("gone"))
    assert (await answer(app, "/gone"))[1] == {"by": "gone", "of": "Gone"}


async def test_classes_of_errors_without_end_are_answered_and_not_all_remembered() -> None:
    app = create_app()

    @app.get("/")
    async def fail(req: Request, res: Response) -> None:
        raise type("Made", (SoldOut,), {})("hat")

    app.on_error(SoldOut)(saying("sold out"))
    for _ in range(600):
        assert (await answer(app, "/"))[1]["by"] == "sold out"
    assert len(app.dispatcher.failures.nearest) <= 256


async def test_without_a_handler_for_all_the_default_answer_is_given_to_other_errors() -> None:
    app = create_app()
    app.on_error(SoldOut, KeyError)(saying("both"))
    app.get("/key", failing(KeyError("x")))
    app.get("/other", failing(CoreError(418)))
    assert (await answer(app, "/key"))[1]["by"] == "both"
    assert await answer(app, "/other") == (418, {"error": "I'm a Teapot"})


async def test_next_goes_on_to_the_next_handler_that_fits_and_then_to_the_default_answer() -> None:
    app = create_app()
    told: list[str] = []

    @app.on_error(SoldOut)
    async def nearest(err: SoldOut, req: Request, res: Response, next: Next) -> None:
        told.append("nearest")
        await next(err)
        res.header("x-after", "yes")

    @app.on_error
    async def every(err: Exception, req: Request, res: Response, next: Next) -> None:
        told.append("every")
        await next(CoreError(410, "Gone for good"))

    app.get("/", failing(SoldOut("x")))
    response = await ask(app)
    assert (response.status, await response.json()) == (410, {"error": "Gone for good"})
    assert response.headers["x-after"] == "yes"
    assert told == ["nearest", "every"]


async def test_a_handler_may_translate_an_error_for_the_next_one() -> None:
    app = create_app()

    @app.on_error(SoldOut)
    async def translate(err: SoldOut, req: Request, res: Response, next: Next) -> None:
        raise CoreError(409, "Sold out", item=err.item)

    app.get("/", failing(SoldOut("tea")))
    assert await answer(app) == (409, {"error": "Sold out", "item": "tea"})
    app.on_error(CoreError)(saying("core"))
    assert await answer(app) == (409, {"by": "core", "of": "CoreError"})


async def test_a_handler_that_fails_leaves_the_first_error_to_the_others() -> None:
    app = create_app()
    app.get("/", failing(SoldOut("tea")))

    @app.on_error(SoldOut)
    async def broken(err: SoldOut, req: Request, res: Response, next: Next) -> None:
        raise RuntimeError("a secret")

    @app.on_error(LookupError)
    async def silent(err: LookupError, req: Request, res: Response, next: Next) -> None:
        pass

    app.get("/silent", failing(KeyError("x")))
    assert await answer(app) == (500, {"error": "Internal Server Error"})
    assert await answer(app, "/silent") == (500, {"error": "Internal Server Error"})
    app.on_error(saying("all"))
    assert (await answer(app))[1] == {"by": "all", "of": "SoldOut"}


def test_what_is_registered_for_errors_is_checked() -> None:
    app = create_app()
    app.on_error(SoldOut)(saying("one"))
    with pytest.raises(RegistrationError, match=r"on_error\(SoldOut\): .* is registered already"):
        app.on_error(Gone, SoldOut)(saying("two"))
    app.on_error(Gone)(saying("three"))
    app.on_error(Exception)(saying("all"))
    with pytest.raises(RegistrationError, match=r"on_error: .* is registered already"):
        app.on_error(saying("all"))
    given: Any = KeyboardInterrupt
    with pytest.raises(HandlerError, match=r"KeyboardInterrupt.*: not a class of exceptions"):
        app.on_error(given)(saying("x"))
    given = saying("x")
    with pytest.raises(HandlerError, match="or one handler alone"):
        app.on_error(given, SoldOut)

    async def short(err: Exception, req: Request) -> None: ...

    given = short
    with pytest.raises(HandlerError, match=r"on_error\(KeyError\): .*short must be"):
        app.on_error(KeyError)(given)


# -- by router


def shop() -> tuple[App[Any], Router[Any]]:
    app, router = create_app(), create_app().Router()
    router.get("/fails", failing(SoldOut("x")))
    router.get("/key", failing(KeyError("x")))
    return app, router


async def test_the_handlers_of_a_router_answer_what_its_routes_raise() -> None:
    app, router = shop()
    app.on_error(saying("app"))
    router.on_error(SoldOut)(saying("router"))
    app.get("/fails", failing(SoldOut("x")))
    app.use("/shop", router)
    assert (await answer(app, "/shop/fails"))[1]["by"] == "router"
    assert (await answer(app, "/shop/key"))[1]["by"] == "app"
    assert (await answer(app, "/fails"))[1]["by"] == "app"
    assert await answer(app, "/shop/nothing") == (404, {"error": "Not Found"})


async def test_routers_under_one_prefix_keep_their_errors_to_themselves() -> None:
    app, first = shop()
    second = app.Router()
    second.get("/second", failing(SoldOut("x")))
    first.on_error(saying("first"))
    second.on_error(saying("second"))
    app.use(first, second)
    assert (await answer(app, "/fails"))[1]["by"] == "first"
    assert (await answer(app, "/second"))[1]["by"] == "second"


async def test_the_inner_router_comes_first_and_passes_on() -> None:
    app, inner = shop()
    outer = app.Router()

    @inner.on_error
    async def passes_on(err: Exception, req: Request, res: Response, next: Next) -> None:
        await next(err)
        res.header("x-inner", "seen")

    outer.on_error(SoldOut)(saying("outer"))
    app.on_error(saying("app"))
    outer.use("/inner", inner)
    app.use("/outer", outer)
    response = await ask(app, "/outer/inner/fails")
    assert (await response.json())["by"] == "outer"
    assert response.headers["x-inner"] == "seen"
    assert (await answer(app, "/outer/inner/key"))[1]["by"] == "app"


async def test_the_middleware_of_a_router_is_within_its_handlers_and_the_middleware_above_is_not() -> None:
    app, router = shop()

    async def refuse(req: Request, res: Response, next: Next) -> None:
        if req.query.get("by") == req.state["where"]:
            raise SoldOut("x")
        await next()

    def at(where: str) -> Any:
        async def step(req: Request, res: Response, next: Next) -> None:
            req.state["where"] = where
            await refuse(req, res, next)

        return step

    app.use(at("app"))
    app.use("/shop", at("prefix"), router)
    router.use(at("router"))
    router.get("/:id", at("route"), failing(KeyError("x")))
    router.on_error(saying("router"))
    app.on_error(saying("app"))
    for where, by in (("app", "app"), ("prefix", "app"), ("router", "router"), ("route", "router")):
        assert (await answer(app, f"/shop/7?by={where}"))[1] == {"by": by, "of": "SoldOut"}, where


async def test_middleware_above_sees_the_answer_of_a_router() -> None:
    app, router = shop()
    seen: list[int] = []

    @app.use
    async def above(req: Request, res: Response, next: Next) -> None:
        await next()
        seen.append(res.status_code)

    router.on_error(saying("router"))
    app.use("/shop", router)
    response = await ask(app, "/shop/fails")
    assert response.status == 409
    assert seen == [409]


async def test_the_handlers_of_a_view_are_the_routers() -> None:
    app, router = shop()

    async def who(req: Request) -> str:
        raise CoreError(401)

    view = router.authenticated(who)
    view.on_error(CoreError)(saying("view"))
    view.get("/own", failing(KeyError("x")))
    app.use("/shop", router)
    assert (await answer(app, "/shop/own"))[1]["by"] == "view"


async def test_a_router_that_a_middleware_calls_answers_its_errors_too() -> None:
    app, router = shop()
    router.on_error(saying("router"))

    @app.use
    async def maybe(req: Request, res: Response, next: Next) -> None:
        await router(req, res, next)

    assert (await answer(app, "/fails"))[1]["by"] == "router"
    assert (await answer(app, "/other"))[0] == 404


# -- 405


async def test_a_known_path_refuses_other_methods_where_the_application_asks_for_it() -> None:
    app = App(method_not_allowed=True)
    app.get("/users/:id", failing(KeyError("x")))
    app.delete("/users/:id", failing(KeyError("x")))
    app.get("/only", failing(KeyError("x")))
    response = await ask(app, "/users/7", method="POST")
    assert (response.status, await response.json()) == (405, {"error": "Method Not Allowed"})
    assert response.headers["allow"] == "GET, DELETE, HEAD"
    assert (await ask(app, "/only", method="DELETE")).headers["allow"] == "GET, HEAD"
    assert await answer(app, "/nothing", method="POST") == (404, {"error": "Not Found"})
    app.not_found(failing(CoreError(404, "Nobody home")))
    assert await answer(app, "/nothing") == (404, {"error": "Nobody home"})
    assert (await ask(app, "/only", method="PUT")).status == 405


async def test_a_route_that_went_on_is_a_404_and_no_405() -> None:
    app = App(method_not_allowed=True)

    async def passing(req: Request, res: Response, next: Next) -> None:
        await next()

    app.get("/", passing)
    assert await answer(app) == (404, {"error": "Not Found"})


# -- problem details


async def test_errors_are_problem_details_where_the_application_chooses_them() -> None:
    app = create_app(problem_details=True, method_not_allowed=True)
    app.get("/core", failing(CoreError(403, "Not yours", code="NOT_YOURS", headers={"x-why": "1"})))
    app.get("/bare", failing(CoreError(403)))
    app.get("/typed", failing(CoreError(403, "No", type="https://example.com/no", instance="/typed", status=200)))
    app.get("/bug", failing(KeyError("a secret")))
    app.get("/nan", failing(CoreError(400, "No", value=float("nan"))))

    async def problem(path: str, **options: Any) -> Any:
        response = await ask(app, path, **options)
        assert response.headers["content-type"] == "application/problem+json"
        body = await response.json()
        assert body["status"] == response.status
        return body

    blank = {"type": "about:blank", "title": "Forbidden", "status": 403}
    assert await problem("/core") == {**blank, "detail": "Not yours", "code": "NOT_YOURS"}
    assert await problem("/bare") == blank
    typed = {"type": "https://example.com/no", "title": "Forbidden", "status": 403, "detail": "No"}
    assert await problem("/typed") == {**typed, "instance": "/typed"}
    assert await problem("/bug") == {"type": "about:blank", "title": "Internal Server Error", "status": 500}
    assert await problem("/nan") == {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": "No"}
    assert (await problem("/nothing"))["title"] == "Not Found"
    assert (await problem("/bug", method="POST"))["title"] == "Method Not Allowed"
    assert (await problem("/%ff%"))["detail"] == "Malformed path"


async def test_an_error_handler_stands_before_problem_details() -> None:
    app = create_app(problem_details=True)
    app.on_error(SoldOut)(saying("own"))
    app.get("/", failing(SoldOut("x")))
    assert await answer(app) == (409, {"by": "own", "of": "SoldOut"})


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (D1Error("D1_ERROR: Network connection lost."), True),
        (D1Error("D1_ERROR: D1 DB storage caused object to be reset."), True),
        (KVError("KV PUT failed: 429 Too Many Requests"), True),
        (D1Error("D1_ERROR: internal error; reference = 6i2salk5fra9sp67hmp65ln0"), True),
        (QueueError("internal error; reference = 9ca95hkjjf3t2ru1njillqsi"), True),
        (QueueError("Unknown Internal Error (15000)"), False),
        (R2Error("put: We encountered an internal error. Please try again. (10001)"), True),
        (
            DurableObjectError(
                "Durable Object was reset because its writes could not be kept: database or disk is full"
            ),
            True,
        ),
        (D1Error("D1_ERROR: database or disk is full: SQLITE_FULL"), True),
        (KVError("KV PUT failed: 500 No space left on device: /kv/a.files. Free some space on its disk"), True),
        (D1Error("D1_ERROR: UNIQUE constraint failed: users.email: SQLITE_CONSTRAINT"), False),
        (KVError("KV PUT failed: 413 Value length of 26214401 exceeds limit of 26214400."), False),
        (D1Error('D1_ERROR: near "x": syntax error' + " " * 200 + "Network connection lost"), False),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_error_of_a_binding_says_whether_the_call_may_be_made_again(error: BindingError, retryable: bool) -> None:
    assert error.retryable is retryable
    error.retryable = not retryable  # a test, or a runtime that knows better
    assert error.retryable is not retryable


def test_only_the_runtime_s_own_words_for_an_etag_make_an_error_the_clients() -> None:
    assert R2Error("Invalid ETag in if-match header").status == 400
    # A key, which a client may have named.
    assert R2Error("HTTP metadata unknown for key `Invalid ETag in `").status is None


async def test_a_core_error_of_a_class_handler_is_the_answer_and_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    app = create_app()

    @app.on_error(LookupError)
    async def not_here(err: LookupError, req: Request, res: Response, next: Next) -> None:
        raise CoreError(404, "Not here", key=str(err)) from err

    @app.on_error(OSError)
    async def fails(err: OSError, req: Request, res: Response, next: Next) -> None:
        raise RuntimeError("a bug in the handler")

    @app.get("/:kind")
    async def show(req: Request, res: Response) -> None:
        raise {"key": KeyError("k"), "os": OSError("disk")}[req.params["kind"]]

    assert await answer(app, "/key") == (404, {"error": "Not here", "key": "'k'"})
    assert caplog.text == ""
    assert await answer(app, "/os") == (500, {"error": "Internal Server Error"})
    assert "a bug in the handler" in caplog.text
    assert "disk" in caplog.text


async def test_a_binding_that_may_be_well_again_in_a_moment_is_a_503_with_retry_after(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = create_app()

    @app.get("/:message")
    async def ask_binding(req: Request, res: Response) -> None:
        raise BindingError(req.params["message"])

    response = await ask(app, "/Network%20connection%20lost.")
    assert (response.status, response.headers["retry-after"]) == (503, "1")
    assert await response.json() == {"error": "Service Unavailable"}
    assert "Network connection lost" in caplog.text
    response = await ask(app, "/no%20such%20table")
    assert (response.status, "retry-after" in response.headers) == (500, False)


async def test_a_value_that_is_taken_is_a_409_that_names_its_column() -> None:
    db, taken = FakeD1Database(), conflict("email", message="has been taken")
    await db.exec("CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT UNIQUE)")
    app = create_app()

    @app.post("/:email")
    async def sign_up(req: Request, res: Response) -> None:
        with taken:
            user_id = (
                await db.prepare("INSERT INTO users (email) VALUES (?) RETURNING id")
                .bind(req.params["email"])
                .one("id")
            )
        res.status(201).json(user_id)

    assert await answer(app, "/ada", method="POST") == (201, 1)
    for _ in range(2):
        status, body = await answer(app, "/ada", method="POST")
        assert (status, body) == (
            409,
            {"error": "Conflict", "issues": [{"path": "email", "message": "has been taken"}]},
        )
    with pytest.raises(KeyError), taken:
        raise KeyError("another error goes on")
    with pytest.raises(TypeError, match=r'conflict\("email"\)'):
        conflict()
