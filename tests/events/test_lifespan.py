"""Resources that an application opens when it starts: once, typed, closed in the reverse order, on every host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.fetch import PlainContext, answer

from core import App, DeveloperError, ExecutionContext, Request, Response, ScheduledEvent, create_app
from core.context import StateKey
from core.errors import HandlerError
from core.hosts.asgi import asgi
from core.testing import Client


class Env:
    name = "env"


def application(trace: list[str]) -> tuple[App[Any], StateKey[str]]:
    app = create_app(Env)

    @app.lifespan
    async def first(env: Env) -> AsyncIterator[str]:
        trace.append(f"open first {env.name}")
        async with asyncio.timeout(60):  # which belongs to a task
            yield "first"
        trace.append("close first")

    @app.lifespan
    async def second(env: Env) -> AsyncIterator[int]:
        trace.append(f"open second behind {first.of_env(env)}")
        yield 2
        trace.append("close second")

    @app.get("/")
    async def show(req: Request[Env], res: Response) -> None:
        req.state["own"] = 1
        res.json([req.state[first], first.of(req), second(req), req.state["own"]])

    @app.scheduled()
    async def tick(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None:
        trace.append(f"tick {second.of_env(env)}")

    return app, first


OPENED = ["open first env", "open second behind first"]
CLOSED = ["close second", "close first"]
ANSWER = ["first", "first", 2, 1]


async def test_the_client_starts_it_with_the_first_request_and_ends_it() -> None:
    trace: list[str] = []
    app, _ = application(trace)
    async with Client(app, Env()) as client:
        assert trace == OPENED
        assert await (await client.get("/")).json() == ANSWER
        assert await (await client.get("/")).json() == ANSWER
        await app.trigger(ScheduledEvent("* * * * *", 0), client.env, client.ctx)
        assert trace == [*OPENED, "tick 2"]
    assert trace == [*OPENED, "tick 2", *CLOSED]
    lazy = Client(app, Env())
    trace.clear()
    assert await (await lazy.get("/")).json() == ANSWER
    assert trace == OPENED


async def test_two_envs_have_their_own_and_one_env_has_one() -> None:
    trace: list[str] = []
    app, _ = application(trace)
    env = Env()
    async with Client(app, env), Client(app, env), Client(app, Env()):
        assert trace == [*OPENED, *OPENED]
    assert trace[4:] == [*CLOSED, *CLOSED]


async def test_around_fetch_it_is_started_by_hand_and_what_is_missing_is_told() -> None:
    app, first = application([])
    env = Env()
    assert (await answer(app, env=env))[0] == 500
    with pytest.raises(DeveloperError, match=r"the lifespan .*first is not running.*await app.startup\(env\)"):
        first.of_env(env)
    await app.startup(env)
    assert (await answer(app, env=env))[1] == ANSWER
    await app.shutdown(env)
    assert (await answer(app, env=env))[0] == 500


async def test_what_fails_at_the_start_closes_what_was_opened() -> None:
    trace: list[str] = []
    app, _ = application(trace)

    @app.lifespan
    async def broken(env: Env) -> AsyncIterator[None]:
        if trace:
            raise OSError("no database")
        yield

    with pytest.raises(OSError, match="no database"):
        await app.startup(Env())
    # What failed is thrown into those that are open, as `async with` has it.
    assert trace == OPENED
    client = Client(app, Env())
    with pytest.raises(OSError, match="no database"):
        await client.get("/")


def test_a_lifespan_is_an_async_generator_of_the_env() -> None:
    app = create_app()

    async def no_generator(env: Any) -> None: ...

    async def no_env() -> AsyncIterator[int]:
        yield 1

    for given in (no_generator, no_env, 7):
        wrong: Any = given
        with pytest.raises(HandlerError, match="give an async generator of the Env"):
            app.lifespan(wrong)


# -- hosts


async def asked_over_asgi(serve: Any) -> bytes:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": "/", "raw_path": b"/", "root_path": "", "query_string": b"",
        "headers": [], "scheme": "http", "server": ("localhost", 80), "client": None,
    }  # fmt: skip
    await serve(scope, receive, send)
    body: bytes = sent[1]["body"]
    return body


async def test_asgi_enters_it_at_startup_and_leaves_it_at_shutdown() -> None:
    trace: list[str] = []
    app, _ = application(trace)
    serve = asgi(app, Env())
    incoming: asyncio.Queue[Any] = asyncio.Queue()
    outgoing: asyncio.Queue[Any] = asyncio.Queue()
    life = asyncio.ensure_future(serve({"type": "lifespan"}, incoming.get, outgoing.put))
    incoming.put_nowait({"type": "lifespan.startup"})
    assert await outgoing.get() == {"type": "lifespan.startup.complete"}
    assert trace == OPENED
    assert await asked_over_asgi(serve) == b'["first","first",2,1]'
    incoming.put_nowait({"type": "lifespan.shutdown"})
    assert await outgoing.get() == {"type": "lifespan.shutdown.complete"}
    await life
    assert trace == [*OPENED, *CLOSED]


async def test_asgi_tells_a_failure_at_startup() -> None:
    app = create_app()
    fails = [True]

    @app.lifespan
    async def broken(env: object) -> AsyncIterator[None]:
        if fails:
            raise OSError("no database")
        yield

    outgoing: asyncio.Queue[Any] = asyncio.Queue()

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    await asgi(app)({"type": "lifespan"}, receive, outgoing.put)
    assert await outgoing.get() == {"type": "lifespan.startup.failed", "message": "no database"}


async def test_asgi_enters_it_with_the_first_request_of_a_server_without_lifespan() -> None:
    trace: list[str] = []
    app, _ = application(trace)
    serve = asgi(app, Env())
    assert await asyncio.gather(*(asked_over_asgi(serve) for _ in range(3))) == [b'["first","first",2,1]'] * 3
    assert trace == OPENED


async def test_the_first_event_of_a_worker_enters_it_and_the_others_wait() -> None:
    trace: list[str] = []
    app, first = application(trace)
    env, ctx = Env(), PlainContext()
    assert app.lifespans is not None
    await asyncio.gather(*(app.lifespans.ensure_in_worker(env, ctx) for _ in range(3)))
    assert trace == OPENED
    assert first.of_env(env) == "first"
    assert len(ctx.waited) == 1
