"""The rules of `core.sql.rules` are those of the real D1 in workerd: it judges the same statements alike."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.runtime.conftest import Running
from tests.sql.judgements import ALLOWED, REFUSED, SETUP

# Allowed by workerd, whose limit is 127; D1's documented limit is 32 arguments.
MANY_ARGUMENTS = "SELECT coalesce(" + ", ".join("1" * 33) + ")"


def test_workerd_judges_statements_as_the_rules_do(start: Callable[..., Running]) -> None:
    answer = start().request("POST", "/judge", json.dumps({"setup": SETUP, "statements": [*ALLOWED, *REFUSED]}))
    assert answer.status == 200, answer.text
    errors: dict[str, str | None] = dict(zip([*ALLOWED, *REFUSED], answer.json(), strict=True))
    assert {sql: errors[sql] for sql in ALLOWED if errors[sql] is not None} == {}
    assert [sql for sql in REFUSED if errors[sql] is None] == [MANY_ARGUMENTS]
