"""An UPDATE of what was given, against SQLite: it does what one does without the assignments that are left out."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import UNSET
from core.errors import D1TypeError
from core.sql.connection import ClosingConnection
from core.statements.given import never_unset, only_given
from core.statements.tokens import tokens_of

# Texts of assignments, `{}` for each parameter: with everything in them that looks like an end, a comma or a parameter.
ASSIGNMENTS = [
    "a = {}",
    "b = iif(a = {}, 'x, ? SET', \"b\")",
    "c = CASE WHEN {} IS NULL THEN 1 ELSE c END",
    "[d] = (SELECT max(z) FROM other WHERE z > {} ORDER BY z LIMIT 1)",
    "(e, f) = (SELECT {}, 'from' FROM other LIMIT 1)",
    "`g` = t.g IS NOT DISTINCT FROM {}",
    "h = {} || ',' || {}",
    "i = 7",
    "j = json_set('{{\"?\": 1}}', '$.x', {})",
]
COLUMNS = "id, a, b, c, d, e, f, g, h, i, j"
BLANKS = [" ", "\n", " /* , ? WHERE */ ", " -- SET ? ,\n "]
HEADS = ["UPDATE t SET", "WITH w AS (SELECT {} AS z, 'UPDATE' AS y) update main.t SET", "UPDATE OR IGNORE t AS t SET"]
TAILS = ["", "WHERE id = {}", "FROM other AS o WHERE o.z = 1 AND t.id = {} RETURNING id, a"]


@st.composite
def updates(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, bool]], list[list[Any]]]:
    """The parts of a statement, whether each is given, and the values of each."""
    chosen = draw(st.lists(st.sampled_from(ASSIGNMENTS), min_size=1, max_size=6, unique=True))
    parts = [draw(st.sampled_from(HEADS)), *chosen, draw(st.sampled_from(TAILS))]
    asked = [True, *[not part.count("{}") or draw(st.booleans()) for part in chosen], True]
    values: list[list[Any]] = []
    for place, part in enumerate(parts):
        end = place in (0, len(parts) - 1)
        values.append([1 if end else draw(st.sampled_from([None, 2, "x"])) for _ in range(part.count("{}"))])
    return parts, list(zip(parts, asked, strict=True)), values


def database() -> sqlite3.Connection:
    db = ClosingConnection(":memory:")
    db.execute(f"CREATE TABLE t ({COLUMNS})")
    db.execute("INSERT INTO t VALUES (1, 'A', 'B', 3, 4, 5, 6, 7, 8, 9, '10')")
    db.execute("CREATE TABLE other (z)")
    db.execute("INSERT INTO other VALUES (1), (5)")
    return db


def run(sql: str, values: Any) -> tuple[list[Any], list[Any]]:
    db = database()
    answered = db.execute(sql, values).fetchall()
    return answered, db.execute(f"SELECT {COLUMNS} FROM t").fetchall()


def number(text: str, first: int, *, numbered: bool) -> str:
    for at in range(text.count("{}")):
        text = text.replace("{}", f"?{first + at}" if numbered else "?", 1)
    return text.replace("{{", "{").replace("}}", "}")


@given(updates(), st.booleans(), st.sampled_from(BLANKS), st.sampled_from(BLANKS))
def test_what_is_left_out_is_as_if_it_were_not_written(
    update: tuple[list[str], list[tuple[str, bool]], list[list[Any]]], numbered: bool, blank: str, other: str
) -> None:
    parts, asked, values = update
    texts: list[str] = []
    first = 1
    for part in parts:
        texts.append(number(part, first, numbered=numbered))
        first += part.count("{}")
    sql = f"{texts[0]}{blank}" + f"{other},{blank}".join(texts[1:-1]) + f"{blank}{texts[-1]}"
    flat = [value if is_given else UNSET for (_, is_given), some in zip(asked, values, strict=True) for value in some]
    kept = [number(part, 0, numbered=False) for part, is_given in asked[1:-1] if is_given]
    head, tail = number(parts[0], 0, numbered=False), number(parts[-1], 0, numbered=False)
    expected = run(
        f"{head} {', '.join(kept) or 'id = t.id'} {tail}",
        [value for (_, is_given), some in zip(asked, values, strict=True) if is_given for value in some],
    )
    assert run(*only_given(sql, flat)) == expected


@pytest.mark.parametrize(
    ("sql", "values", "says"),
    [
        ("UPDATE t SET a = ? WHERE id = ?", ("x", UNSET), "value 2 is UNSET"),
        ("UPDATE t SET a = ?1 WHERE id = ?1", (UNSET,), "value 1 is UNSET"),
        ("WITH w AS (SELECT ? AS z) UPDATE t SET a = 1 FROM w", (UNSET,), "value 1 is UNSET"),
        ("UPDATE t SET a = 1 RETURNING ?", (UNSET,), "value 1 is UNSET"),
        ("DELETE FROM t WHERE id = ?", (UNSET,), "value 1 is UNSET"),
        ("INSERT INTO t (a) VALUES (?)", (UNSET,), "value 1 is UNSET"),
        ("INSERT INTO t (a) VALUES (1) ON CONFLICT DO UPDATE SET a = ?", (UNSET,), "value 1 is UNSET"),
        ("SELECT ?", (UNSET,), "value 1 is UNSET"),
        ("UPDATE t SET a = 1", (UNSET,), "value 1 is UNSET"),
        ("", (UNSET,), "value 1 is UNSET"),
        ("UPDATE t SET (a, b) = (?, ?)", (1, UNSET), "the assignment of a reads"),
    ],
)
def test_anywhere_else_it_is_refused(sql: str, values: tuple[Any, ...], says: str) -> None:
    with pytest.raises(TypeError, match=says) as caught:
        only_given(sql, values)
    assert isinstance(caught.value, D1TypeError)


def test_which_values_are_never_unset() -> None:
    assert never_unset(tokens_of("UPDATE t SET a = ?, b = ? || ? WHERE id = ? AND a IS DISTINCT FROM ?2")) == {2, 4}
    assert never_unset(tokens_of("SELECT ?, ?")) == {1, 2}


def test_only_the_last_of_several_statements_is_written_anew() -> None:
    sql, values = only_given("UPDATE t SET a = 1; UPDATE t SET b = ?, c = ? WHERE id = ?;", (UNSET, 2, 3))
    assert (sql, values) == ("UPDATE t SET a = 1; UPDATE t SET c = ?2 WHERE id = ?3;", (None, 2, 3))
