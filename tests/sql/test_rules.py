"""The checks and the embedded engine judge a statement alike.

`tests/runtime/test_sql_rules.py` asks workerd as well.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from tests.sql.judgements import ALLOWED, REFUSED, SETUP

from core.errors import D1Error
from core.sql.catalog import migrate
from core.sql.rules import FUNCTIONS, REFUSED_FUNCTIONS
from core.sql.schema import Schema, blank_schema
from core.testing.d1 import FakeD1Database


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    folder = tmp_path_factory.mktemp("migrations")
    (folder / "0001_start.sql").write_text(";\n".join(SETUP))
    return Schema(migrate(folder))


async def error_of(sql: str) -> str | None:
    database = FakeD1Database()
    for statement in SETUP:
        await database.prepare(statement).run()
    try:
        await database.prepare(sql).run()
    except D1Error as error:
        return str(error)
    return None


def shortened(sql: str) -> str:
    return sql if len(sql) < 100 else f"{sql[:40]}... of {len(sql)}"


@pytest.mark.parametrize("sql", ALLOWED, ids=shortened)
async def test_the_checks_and_the_engine_allow_what_d1_allows(schema: Schema, sql: str) -> None:
    assert schema.analyse(sql).problems == ()
    assert blank_schema().analyse(sql).problems == ()
    error = await error_of(sql)
    if error is not None and sqlite3.sqlite_version_info < (3, 45):
        # Python brings its own SQLite, and an old one lacks functions that D1 has.
        missing = re.search("no such function: (.+) at", error)
        assert missing is not None, error
        assert missing[1] in FUNCTIONS
    else:
        assert error is None


@pytest.mark.parametrize("sql", REFUSED, ids=shortened)
async def test_the_checks_and_the_engine_refuse_what_d1_refuses(schema: Schema, sql: str) -> None:
    assert await error_of(sql) is not None
    assert [bool(problem.message) for problem in schema.analyse(sql).problems] == [True]


@pytest.mark.parametrize("sql", REFUSED, ids=shortened)
def test_a_migration_may_not_have_what_d1_refuses(tmp_path: Path, sql: str) -> None:
    rejected_when_run = re.search("LIKE|GLOB|pragma_", sql)
    (tmp_path / "0001_start.sql").write_text(";\n".join([*SETUP, sql]))
    assert bool(migrate(tmp_path).problems) != bool(rejected_when_run)


def test_no_function_is_both_allowed_and_refused() -> None:
    assert {"load_extension"} == FUNCTIONS & REFUSED_FUNCTIONS
