"""The rules of `core.sql.rules` are those of the real D1 in workerd: it judges the same statements alike."""

from __future__ import annotations

import json
from pathlib import Path

from tests.runtime.conftest import Background, start_running
from tests.sql.judgements import ALLOWED, REFUSED, SETUP

from core.runtime.capnp import Plan
from core.runtime.make import make_bundle
from core.runtime.toolchain import Toolchain

MAIN = Path(__file__).parent / "rules" / "main.py"
PLAN = Plan(name="rules", d1={"DB": "one"})

# Allowed by workerd, whose limit is 127; D1's documented limit is 32 arguments.
MANY_ARGUMENTS = "SELECT coalesce(" + ", ".join("1" * 33) + ")"


def test_workerd_judges_statements_as_the_rules_do(tools: Toolchain, background: Background, tmp_path: Path) -> None:
    out = tmp_path / "dist"
    bundle = background.run(make_bundle(MAIN, project=MAIN.parent, plan=PLAN, out=out, toolchain=tools))
    worker = start_running(tools, bundle, background, tmp_path / "state", plan=PLAN)
    try:
        answer = worker.request("POST", "/judge", json.dumps({"setup": SETUP, "statements": [*ALLOWED, *REFUSED]}))
    finally:
        worker.stop()
    assert answer.status == 200, answer.text
    errors: dict[str, str | None] = dict(zip([*ALLOWED, *REFUSED], answer.json(), strict=True))
    assert {sql: errors[sql] for sql in ALLOWED if errors[sql] is not None} == {}
    assert [sql for sql in REFUSED if errors[sql] is None] == [MANY_ARGUMENTS]
