"""Hypothesis draws the tape: the order of calls shrinks with the arguments, and state machines send requests."""

import asyncio
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from core import Bindings, D1Database, KVNamespace, Request, Response, create_app
from core.testing import Client, CoreStateMachine, FakeKVNamespace, call_log, never_more_than, simulate


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    DB: D1Database


app = create_app(Env)


@app.post("/counts/:name")
async def increment(req: Request[Env], res: Response) -> None:
    number = int(await req.env.KV.get(req.params["name"]) or 0) + 1
    await req.env.KV.put(req.params["name"], str(number))
    res.json(number)


@app.get("/counts/:name")
async def count(req: Request[Env], res: Response) -> None:
    res.json(int(await req.env.KV.get(req.params["name"]) or 0))


def run_in_a_loop(test: Any) -> None:
    """Run a test of `@given` as pytest-asyncio does: each example in one loop."""
    inner = test.hypothesis.inner_test
    with asyncio.Runner() as runner:

        def example(**given: Any) -> None:
            runner.run(inner(**given))

        test.hypothesis.inner_test = example
        test()


FOUND: list[tuple[list[str], list[str]]] = []


@settings(derandomize=True, database=None, max_examples=200)
@given(names=st.lists(st.sampled_from("abc"), max_size=6))
@simulate()
async def each_request_counts(names: list[str]) -> None:
    kv = FakeKVNamespace()
    client = Client(app, attrs.evolve(SPARE, KV=kv))
    await asyncio.gather(*[client.post(f"/counts/{name}") for name in names])
    for name in names:
        if int(await kv.get(name) or 0) != names.count(name):
            FOUND.append((names, [call.event for call in call_log()]))
            raise AssertionError(f"{name} is not counted")


SPARE = Env(KV=FakeKVNamespace(), DB=None)  # type: ignore[arg-type]  # no test here uses it


def test_the_order_shrinks_together_with_the_arguments() -> None:
    with pytest.raises(AssertionError, match="is not counted"):
        run_in_a_loop(each_request_counts)
    names, events = FOUND[-1]
    assert names == ["a", "a"]
    first, second = "POST /counts/a", "POST /counts/a (no. 2)"
    assert events[:4] in ([first, second, first, second], [first, second, second, first])


@given(number=st.integers(0, 3))
@simulate(faults=["error"])
async def test_an_example_is_one_run(number: int) -> None:
    await asyncio.gather(*[FakeKVNamespace().get("a") for _ in range(number)], return_exceptions=True)
    assert len(call_log()) == number


class Counting(CoreStateMachine):
    """Requests one after another: nothing is lost."""

    app = app

    def __init__(self) -> None:
        super().__init__()
        self.expected = 0

    def make_env(self) -> Env:
        return attrs.evolve(SPARE, KV=FakeKVNamespace(clock=self.clock))

    @rule(times=st.integers(1, 3))
    def increment(self, times: int) -> None:
        for _ in range(times):
            [answer] = self.run(self.client.post("/counts/a"))
            assert answer.status == 200
        self.expected += times

    @rule()
    def wait(self) -> None:
        self.run(self.clock.advance(60))

    @invariant()
    def every_increment_counts(self) -> None:
        [answer] = self.run(self.client.get("/counts/a"))
        assert self.run(answer.json()) == [self.expected]


class CountingAtOnce(Counting):
    @rule()
    def increment_twice_at_once(self) -> None:
        self.run(self.client.post("/counts/a"), self.client.post("/counts/a"))
        self.expected += 2


class CountingTooOften(Counting):
    checks = (never_more_than(2, per=60),)


FEW = settings(max_examples=20, stateful_step_count=5, deadline=None, derandomize=True, database=None)
MANY = settings(FEW, max_examples=300)


def test_a_state_machine_sends_requests() -> None:
    run_state_machine_as_test(Counting, settings=FEW)


@pytest.mark.parametrize(
    ("machine", "error"), [(CountingAtOnce, "assert"), (CountingTooOften, "more than 2 calls")], ids=["order", "check"]
)
def test_a_state_machine_finds_an_order_that_loses_and_shrinks_it(machine: type[CoreStateMachine], error: str) -> None:
    with pytest.raises(AssertionError, match=error) as failure:
        run_state_machine_as_test(machine, settings=MANY)
    notes = "\n".join(failure.value.__notes__)
    assert "The calls of this run:" in notes
    assert notes.count("KV.put") <= 3
