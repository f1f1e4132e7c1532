"""`timeout`: what it answers, whom it cancels, and whose cancellation it leaves alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import pytest
from tests.support.bench import Bench

from core import http
from core.errors import CoreError, OptionError
from core.middleware.timeout import timeout
from core.request import Request
from core.response import Response
from core.testing import Client


class Slow(Bench):
    """An application whose one handler is `handler`, behind `middleware`, on a clock that is moved while it runs."""

    def __init__(self, handler: Any, *middleware: Any) -> None:
        super().__init__()
        self.app.get("/", *middleware, handler)

    async def run(self, seconds: float = 60) -> http.Response:
        task = asyncio.create_task(self.client.get("/"))
        await self.clock.advance(seconds)
        return await asyncio.wait_for(task, 60)


def slow(seconds: float) -> Any:
    async def handler(req: Request[Any], res: Response) -> None:
        await req.clock.sleep(seconds)
        res.json({"ok": True})

    return handler


async def test_the_downstream_chain_is_cancelled_not_abandoned() -> None:
    ended: list[str] = []

    async def handler(req: Request[Any], res: Response) -> None:
        try:
            await req.clock.sleep(30)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def between(req: Request[Any], res: Response, next: Any) -> None:
        try:
            await next()
        finally:
            ended.append("middleware")

    bench = Slow(handler, timeout(duration=1), between)
    assert (await bench.run(1)).status == 408
    assert ended == ["cancelled", "middleware"]
    assert bench.clock.pending == 0


async def test_tasks_given_to_wait_until_live_on() -> None:
    done: list[bool] = []

    async def background(clock: Any) -> None:
        await clock.sleep(10)
        done.append(True)

    async def handler(req: Request[Any], res: Response) -> None:
        req.ctx.wait_until(background(req.clock))
        await req.clock.sleep(30)

    bench = Slow(handler, timeout(duration=1000))
    assert (await bench.run(2)).status == 408
    assert not done
    await bench.clock.advance(10)
    await bench.ctx.drain()
    assert done


async def test_an_applications_own_timeout_error_passes_through_as_itself() -> None:
    async def handler(req: Request[Any], res: Response) -> None:
        raise TimeoutError("the database")

    bench = Slow(handler, timeout(duration=1000))
    seen: list[Exception] = []

    @bench.app.on_error
    async def answer(err: Exception, req: Request[Any], res: Response, next: Any) -> None:
        seen.append(err)
        res.status(503).json({})

    assert (await bench.run()).status == 503
    assert isinstance(seen[0], TimeoutError)


async def test_an_asyncio_timeout_inside_the_handler_works_as_ever() -> None:
    async def handler(req: Request[Any], res: Response) -> None:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(30)
        except TimeoutError:
            res.json("inner")

    response = await Client(Slow(handler, timeout(duration=1000)).app, None).get("/")
    assert await response.json() == "inner"


def _late(kind: str) -> Any:
    async def handler(req: Request[Any], res: Response) -> None:
        res.header("X-Early", "1")
        try:
            await req.clock.sleep(30)
        finally:
            if kind == "header":
                res.header("X-Early", "2").header("X-Late", "1").cookie("late", "1")
            elif kind == "send":
                res.status(200).json({"late": True})
            elif kind == "stream":
                res.stream(_chunks())
            elif kind == "hook":
                res.on_send(lambda status, ms: pytest.fail("a late hook ran"))
            elif kind == "raise":
                raise RuntimeError("clean-up failed")

    return handler


async def _chunks() -> AsyncIterator[bytes]:
    yield b"late"


@pytest.mark.parametrize("kind", ["header", "send", "stream", "hook", "raise"])
async def test_after_expiry_nothing_the_handler_does_changes_the_response(kind: str) -> None:
    response = await Slow(_late(kind), timeout(duration=1)).run()
    assert (response.status, await response.json()) == (408, {"error": "Request Timeout"})
    assert response.headers["x-early"] == "1"
    assert "x-late" not in response.headers
    assert response.headers.get_set_cookie() == []


async def test_a_handler_that_swallows_the_cancellation_changes_nothing_either() -> None:
    async def handler(req: Request[Any], res: Response) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await req.clock.sleep(30)
        await req.clock.sleep(1)
        res.json({"late": True})

    assert (await Slow(handler, timeout(duration=1)).run()).status == 408


async def test_a_shielded_part_of_a_handler_cannot_change_the_response_later() -> None:
    errors: list[BaseException] = []

    async def part(req: Request[Any], res: Response) -> None:
        await req.clock.sleep(30)
        try:
            res.json({"late": True})
        except Exception as error:
            errors.append(error)

    async def handler(req: Request[Any], res: Response) -> None:
        await asyncio.shield(asyncio.ensure_future(part(req, res)))

    response = await Slow(handler, timeout(duration=1)).run()
    assert response.status == 408
    assert [type(error).__name__ for error in errors] == ["AlreadySentError"]


async def test_the_time_is_up_for_a_handler_that_never_awaited_in_it() -> None:
    # The clock moves while the task runs, so the cancellation is still to come when the handler ends.
    async def handler(req: Request[Any], res: Response) -> None:
        req.clock.advance(5)  # type: ignore[attr-defined]  # a FakeClock
        await asyncio.sleep(0)
        res.json({})

    assert (await Slow(handler, timeout(duration=1)).run(0)).status == 408


async def test_what_was_sent_before_the_time_was_up_is_the_answer() -> None:
    async def handler(req: Request[Any], res: Response) -> None:
        res.json({"sent": True})
        await req.clock.sleep(30)

    response = await Slow(handler, timeout(duration=1)).run(1)
    assert (response.status, await response.json()) == (200, {"sent": True})


@pytest.mark.parametrize(("outer", "inner"), [(1000, 10), (10, 10)])
async def test_of_nested_timeouts_the_inner_one_wins(outer: int, inner: int) -> None:
    bench = Slow(slow(30), timeout(duration=outer, message="outer"), timeout(duration=inner, message="inner"))
    assert await (await bench.run()).json() == {"error": "inner"}


async def test_an_outer_timeout_that_is_shorter_answers_itself() -> None:
    bench = Slow(slow(30), timeout(duration=10, message="outer"), timeout(duration=1000, message="inner"))
    assert await (await bench.run()).json() == {"error": "outer"}


async def test_after_a_timeout_the_task_can_await_as_before() -> None:
    bench = Slow(slow(30), timeout(duration=10))

    @bench.app.on_error
    async def answer(err: Exception, req: Request[Any], res: Response, next: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)
        res.status(408).json("awaited")

    assert await (await bench.run()).json() == "awaited"


async def test_a_client_disconnect_is_not_a_timeout() -> None:
    bench = Slow(slow(30), timeout(duration=1000))
    task = asyncio.create_task(Client(bench.app, None, bench.ctx).get("/"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.clock.pending == 0


@pytest.mark.parametrize("nested", [False, True])
async def test_cancelled_error_is_never_swallowed_even_when_the_time_is_up_as_well(nested: bool) -> None:
    inner = (timeout(duration=10),) if nested else ()
    bench = Slow(slow(30), timeout(duration=10), *inner)
    task = asyncio.create_task(Client(bench.app, None, bench.ctx).get("/"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    bench.clock.advance(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _ticks(clock: Any, closed: list[bool]) -> AsyncIterator[bytes]:
    try:
        for _ in range(5):
            yield b"tick "
            await clock.sleep(1)
    finally:
        closed.append(True)


def _streaming(closed: list[bool]) -> Any:
    async def handler(req: Request[Any], res: Response) -> None:
        res.stream(_ticks(req.clock, closed))

    return handler


async def test_the_timer_covers_the_chain_not_a_streaming_body() -> None:
    bench = Slow(_streaming([]), timeout(duration=2500))
    response = await bench.run(0)
    body = asyncio.create_task(response.bytes())
    await bench.clock.advance(10)
    assert await body == b"tick " * 5


async def test_include_body_covers_a_streaming_body_too() -> None:
    closed: list[bool] = []
    bench = Slow(_streaming(closed), timeout(duration=2500, include_body=True))
    response = await bench.run(0)
    got: list[bytes] = []

    async def read() -> None:
        async for chunk in response.stream():
            got.append(chunk)

    reading = asyncio.create_task(read())
    await bench.clock.advance(10)
    with pytest.raises(CoreError, match="Request Timeout"):
        await reading
    assert (got, closed) == ([b"tick "] * 3, [True])


async def test_include_body_lets_a_stream_in_time_end_and_a_slow_reader_run_into_it() -> None:
    bench = Slow(_streaming([]), timeout(duration=60_000, include_body=True))
    response = await bench.run(0)
    body = asyncio.create_task(response.bytes())
    await bench.clock.advance(10)
    assert await body == b"tick " * 5
    bench = Slow(_streaming([]), timeout(duration=2500, include_body=True))
    stream = (await bench.run(0)).stream()
    assert await anext(stream) == b"tick "
    bench.clock.advance(3)
    with pytest.raises(CoreError):
        await anext(stream)


async def test_the_pieces_of_a_limited_body_are_made_in_one_task_and_one_context() -> None:
    # As `asyncio.timeout()`, task groups and spans ask that are open around several pieces.
    made_in: list[asyncio.Task[Any] | None] = []
    seen: ContextVar[str] = ContextVar("seen", default="nothing")

    async def pieces() -> AsyncIterator[str]:
        made_in.append(asyncio.current_task())
        seen.set("what the first piece has set")
        yield "first "
        made_in.append(asyncio.current_task())
        yield seen.get()

    async def handler(req: Request[Any], res: Response) -> None:
        res.stream(pieces())

    response = await Slow(handler, timeout(duration=60_000, include_body=True)).run(0)
    assert await response.text() == "first what the first piece has set"
    assert made_in[0] is made_in[1]


async def test_a_disconnect_while_a_limited_body_streams_is_a_disconnect() -> None:
    closed: list[bool] = []
    bench = Slow(_streaming(closed), timeout(duration=2500, include_body=True))
    reading = asyncio.create_task((await bench.run(0)).bytes())
    await bench.clock.advance(1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert closed == [True]


@pytest.mark.parametrize("duration", [0, -1, float("nan"), float("inf"), True, "5", None])
def test_zero_negative_nan_and_infinite_durations_are_refused(duration: Any) -> None:
    with pytest.raises(OptionError, match=r"^timeout\(duration=.*must be a finite number above 0, in milliseconds"):
        timeout(duration=duration)
