"""interface-spec §1: an application is a chain of middleware, handlers, routers and an error handler."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from tests.support.fetch import answer, ask

from core import Next, Request, Response, Router, create_app, http
from core.errors import OrderError
from core.handlers import declare


def tracer(name: str, trace: list[str]) -> Any:
    async def trace_it(req: Request, res: Response, next: Next) -> None:
        trace.append(f"{name} in")
        await next()
        trace.append(f"{name} out")

    return trace_it


async def test_rule_1_fetch_is_one_bound_function_that_takes_request_env_and_context() -> None:
    app = create_app()
    assert list(inspect.signature(app.fetch).parameters) == ["req", "env", "ctx"]
    assert isinstance(await ask(app), http.Response)


async def test_rule_2_middleware_and_handlers_run_in_registration_order() -> None:
    trace: list[str] = []
    app = create_app()
    app.use(tracer("first", trace))
    app.use(tracer("second", trace))

    @app.get("/", tracer("third", trace))
    async def handler(req: Request, res: Response) -> None:
        trace.append("handler")
        res.json({})

    await ask(app)
    assert trace == ["first in", "second in", "third in", "handler", "third out", "second out", "first out"]


async def test_rule_2_global_middleware_runs_for_every_request_also_without_a_route() -> None:
    trace: list[str] = []
    app = create_app()
    app.use(tracer("global", trace))
    assert (await ask(app, "/nowhere")).status == 404
    assert trace == ["global in", "global out"]


async def test_rule_2_middleware_registered_after_a_route_does_not_run_before_it() -> None:
    trace: list[str] = []
    app = create_app()

    @app.get("/early")
    async def early(req: Request, res: Response) -> None:
        res.json({})

    app.use(tracer("late", trace))

    @app.get("/after")
    async def after(req: Request, res: Response) -> None:
        res.json({})

    await ask(app, "/early")
    assert trace == []
    await ask(app, "/after")
    assert trace == ["late in", "late out"]


@pytest.mark.parametrize(
    ("path", "runs"),
    [
        ("/users", True),
        ("/users/", True),
        ("/users/7", True),
        ("/users/7/posts", True),
        ("/usersx", False),
        ("/", False),
    ],
)
async def test_rule_2_router_middleware_runs_for_every_request_under_its_prefix_alone(path: str, runs: bool) -> None:
    trace: list[str] = []
    users: Router[Any] = Router()
    users.use(tracer("router", trace))

    @users.get("/:id")
    async def show(req: Request, res: Response) -> None:
        res.json(req.params["id"])

    app = create_app()
    app.use("/users", users)
    await ask(app, path)
    assert bool(trace) is runs


def test_rule_3_a_reader_of_what_a_later_middleware_provides_is_refused_and_both_are_named() -> None:
    async def step(req: Request, res: Response, next: Next) -> None:
        await next()

    async def other(req: Request, res: Response, next: Next) -> None:
        await next()

    reader = declare(step, name="logger", reads=["req.id"])
    provider = declare(other, name="request_id", provides=["req.id"])
    app = create_app()
    app.use(reader)
    with pytest.raises(
        OrderError, match=r"logger\(\) is registered before request_id\(\) .* Register request_id\(\) first"
    ):
        app.use(provider)


async def test_rule_4_the_error_handler_registered_last_answers_for_all_routes_and_routers() -> None:
    users: Router[Any] = Router()

    @users.get("/")
    async def fails(req: Request, res: Response) -> None:
        raise RuntimeError("no")

    app = create_app()
    app.use("/users", users)

    @app.on_error
    async def on_error(err: Exception, req: Request, res: Response, next: Next) -> None:
        res.status(500).json({"error": "handled", "kind": type(err).__name__})

    assert await answer(app, "/users") == (500, {"error": "handled", "kind": "RuntimeError"})


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("logger", "logger"),
        ("request_id", "request_id"),
        ("timeout", "timeout"),
        ("secure_headers", "secure_hdrs"),
        ("rate_limit", "rate_limit"),
        ("cors", "cors"),
    ],
)
def test_rule_5_middleware_are_separate_imports(module: str, name: str) -> None:
    from importlib import import_module

    assert callable(getattr(import_module(f"core.middleware.{module}"), name))
