"""The same order in a test: its spans, and how many statements it may take."""

import observing
from core.testing import Client, FakeD1Database, SpanRecorder, env


# --8<-- [start:budget]
async def test_paying_takes_one_statement(core_spans: SpanRecorder) -> None:
    database = FakeD1Database()
    await database.exec("CREATE TABLE orders (id TEXT PRIMARY KEY, paid INTEGER NOT NULL DEFAULT 0)")
    await Client(observing.app, env(observing.Env, DB=database)).post("/orders/7/pay")

    core_spans.at_most(1, "d1")
    assert core_spans.tree() == "POST /orders/:id/pay\n  charge\n    d1_run"
    # --8<-- [end:budget]
