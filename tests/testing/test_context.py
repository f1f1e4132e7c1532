"""`FakeExecutionContext`, and the plugin's rule that nothing is left behind."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.nested import PLAIN

from core.testing import FakeClock, FakeExecutionContext

pytest_plugins = ["pytester"]


async def test_drain_waits_for_all_work_and_for_what_it_adds() -> None:
    ctx = FakeExecutionContext()
    done: list[str] = []

    async def inner() -> str:
        await asyncio.sleep(0)
        done.append("inner")
        return "i"

    async def outer() -> str:
        ctx.wait_until(inner())
        done.append("outer")
        return "o"

    ctx.wait_until(outer())
    assert await ctx.drain() == ["o", "i"]
    assert done == ["outer", "inner"]


async def test_drain_raises_what_the_work_raised_once() -> None:
    ctx = FakeExecutionContext()

    async def fails() -> None:
        raise LookupError("gone")

    ctx.wait_until(fails())
    with pytest.raises(LookupError, match="gone"):
        await ctx.drain()
    await ctx.drain()
    assert ctx.problems() == []


async def test_several_failures_come_as_a_group() -> None:
    ctx = FakeExecutionContext()

    async def fails(number: int) -> None:
        raise ValueError(number)

    ctx.wait_until(fails(1))
    ctx.wait_until(fails(2))
    with pytest.raises(ExceptionGroup) as caught:
        await ctx.drain()
    assert [error.args[0] for error in caught.value.exceptions] == [1, 2]


def test_it_carries_the_clock_it_was_given() -> None:
    clock = FakeClock()
    assert FakeExecutionContext(clock=clock).clock is clock


def test_passing_through_is_remembered() -> None:
    ctx = FakeExecutionContext()
    assert not ctx.passed_through
    ctx.pass_through_on_exception()
    assert ctx.passed_through


LEAVING = """
import asyncio, pytest
from core import create_app, http

app = create_app()

@app.get("/hang")
async def hang(req, res):
    req.ctx.wait_until(asyncio.Event().wait())
    res.json({})

@app.get("/fail")
async def fail(req, res):
    async def breaks():
        raise RuntimeError("background")
    req.ctx.wait_until(breaks())
    res.json({})

@app.get("/fine")
async def fine(req, res):
    async def works():
        pass
    req.ctx.wait_until(works())
    res.json({})

@pytest.mark.parametrize("path", ["/hang", "/fail", "/fine"])
async def test_leaves(core_ctx, path):
    assert (await app.fetch(http.Request("http://a" + path), None, core_ctx)).status == 200
    await asyncio.sleep(0)
    await asyncio.sleep(0)
"""


def test_a_test_that_leaves_work_unfinished_or_failed_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(LEAVING)
    result = pytester.runpytest_subprocess(*PLAIN, "-o", "asyncio_mode=auto")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*has not ended: Event.wait. Write `await ctx.drain()`*"])
    result.stdout.fnmatch_lines(["*failed: fail.<locals>.breaks: RuntimeError: background*"])


def test_the_plugin_imports_nothing_of_the_framework_before_a_fixture_is_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys
        def test_nothing():
            loaded = [name for name in sys.modules if name.startswith("core.")]
            assert loaded == ["core.values", "core.testing", "core.testing.plugin"], loaded
        """
    )
    pytester.runpytest_subprocess(*PLAIN).assert_outcomes(passed=1)
