"""Cases that surprise, as the reference describes them: each sentence of `docs/reference/routing.md` and its like,
held.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from core import App, Next, Request, Response
from core.middleware.cors import cors
from core.middleware.timeout import timeout
from core.testing import Client, FakeClock, FakeExecutionContext


def application() -> App[Any]:
    app: App[Any] = App()

    @app.get("/users")
    async def everyone(req: Request[Any], res: Response) -> None:
        res.json("everyone")

    @app.get("/users/:id")
    async def one(req: Request[Any], res: Response) -> None:
        res.json({"id": req.params["id"]})

    @app.get("/fails")
    async def fails(req: Request[Any], res: Response) -> None:
        req.ctx.pass_through_on_exception()
        raise RuntimeError("the handler failed")

    return app


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/users", "everyone"),
        ("/users/", "everyone"),
        ("/users//", {"id": ""}),
        ("/users/7/", {"id": "7"}),
        ("/users/a%2Fb", {"id": "a/b"}),
        ("/users/%20", {"id": " "}),
        ("/users///", {"error": "Not Found"}),
        ("//users", {"error": "Not Found"}),
        ("/Users", {"error": "Not Found"}),
    ],
)
async def test_one_slash_at_the_end_is_ignored_and_two_are_an_empty_segment(path: str, answer: Any) -> None:
    assert await (await Client(application(), None).get(path)).json() == answer


@pytest.mark.parametrize("method", ["OPTIONS", "POST", "PUT", "DELETE", "PURGE"])
async def test_any_other_method_on_a_known_path_is_a_404(method: str) -> None:
    response = await Client(application(), None).request(method, "/users")
    assert (response.status, await response.json()) == (404, {"error": "Not Found"})
    assert "allow" not in response.headers


async def test_options_is_answered_by_a_route_or_as_a_preflight_by_cors() -> None:
    app: App[Any] = App()
    app.use(cors(origins=["https://a.test"]))

    @app.options("/users")
    async def methods(req: Request[Any], res: Response) -> None:
        res.header("Allow", "GET, HEAD, OPTIONS").status(204).send()

    client = Client(app, None)
    assert (await client.options("/users")).headers["allow"] == "GET, HEAD, OPTIONS"
    preflight = {"Origin": "https://a.test", "Access-Control-Request-Method": "PUT"}
    assert (await client.options("/nowhere", headers=preflight)).status == 204


async def test_pass_through_on_exception_has_no_effect_on_what_a_handler_raises() -> None:
    ctx = FakeExecutionContext()
    response = await Client(application(), None, ctx).get("/fails")
    assert (response.status, await response.json()) == (500, {"error": "Internal Server Error"})
    assert ctx.passed_through


@pytest.mark.parametrize("sends", [True, False])
async def test_a_timeout_times_what_runs_after_next_as_well(sends: bool) -> None:
    finished: list[str] = []

    async def slow_afterwards(req: Request[Any], res: Response, next: Next, /) -> None:
        await next()
        await req.clock.sleep(2)
        finished.append("afterwards")
        res.json("late")

    async def outside(req: Request[Any], res: Response, next: Next, /) -> None:
        await next()
        await req.clock.sleep(2)
        finished.append("outside")

    async def handler(req: Request[Any], res: Response) -> None:
        if sends:
            res.json("in time")

    app: App[Any] = App()
    app.get("/", outside, timeout(duration=1000), slow_afterwards, handler)
    clock = FakeClock()
    ctx = FakeExecutionContext(clock=clock)
    task = asyncio.create_task(Client(app, None, ctx).get("/"))
    await clock.advance(10)
    response = await asyncio.wait_for(task, 60)
    assert finished == (["outside"] if sends else [])
    assert (response.status, await response.json()) == (
        (200, "in time") if sends else (408, {"error": "Request Timeout"})
    )
