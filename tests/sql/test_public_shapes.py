"""More than a thousand correct statements, in the shapes of public programs: nothing is said against any of them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.sql.public_shapes import DOMAINS, SCHEMA, SHAPES, over, statements

from core.sql.rows import field_type
from core.sql.schema import schema_of


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain[0])
def test_nothing_is_said_against_a_correct_statement(domain: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "0001.sql").write_text(over(SCHEMA, domain))
    schema = schema_of(tmp_path)
    assert schema.problems == ()
    real = sqlite3.connect(":memory:")
    real.executescript(over(SCHEMA, domain))
    for text in statements(domain):
        read = schema.analyse(text)
        assert (text, read.problems) == (text, ())
        # SQLite itself compiles it, with as many values as it is said to take, and names its columns alike.
        cursor = real.execute(f"EXPLAIN {text}", [None] * (read.takes or 0))
        assert cursor.fetchone() is not None
        if text.startswith(("SELECT", "WITH")):
            names = [column[0] for column in real.execute(text, [1] * (read.takes or 0)).description]
            assert [column.name for column in read.columns or ()] == names, text
            assert all(field_type([column]) for column in read.columns or ())
    real.close()


def test_there_are_as_many_as_we_say() -> None:
    assert len(SHAPES) == len(set(SHAPES)) >= 65
    assert len({text for domain in DOMAINS for text in statements(domain)}) >= 1000
