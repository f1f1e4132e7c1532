"""Hypothesis chooses the arguments, the rules and the order of calls, and makes all of them small."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from core.testing import Client, CoreStateMachine, FakeDurableObjectNamespace, simulate
from edge.faults import Counter, Env, app
from edge.scenarios import bindings


# --8<-- [start:given]
@settings(max_examples=20, deadline=None)
@given(count=st.integers(0, 4))
@simulate()
async def test_each_visit_has_a_number_of_its_own(count: int) -> None:
    client = Client(app, bindings(COUNTERS=FakeDurableObjectNamespace(Counter)))
    answers = await asyncio.gather(*[client.post("/repaired/visits") for _ in range(count)])
    assert sorted([(await answer.json())["visits"] for answer in answers]) == [*range(1, count + 1)]


# --8<-- [end:given]


# --8<-- [start:machine]
class Visiting(CoreStateMachine):
    app = app
    visits = 0

    def make_env(self) -> Env:
        return bindings(COUNTERS=FakeDurableObjectNamespace(Counter, clock=self.clock))

    @rule(count=st.integers(1, 3))
    def visit(self, count: int) -> None:
        answers = self.run(*[self.client.post("/repaired/visits") for _ in range(count)])
        self.visits += count
        assert max(body["visits"] for body in self.run(*[answer.json() for answer in answers])) == self.visits


TestVisiting = Visiting.TestCase
TestVisiting.settings = settings(max_examples=10, stateful_step_count=5, deadline=None)
# --8<-- [end:machine]
