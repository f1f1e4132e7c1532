"""Values inside the text of a statement: the line to write asks the same."""

from __future__ import annotations

import re
import sqlite3

from hypothesis import example, given
from hypothesis import strategies as st

from core.sql.connection import ClosingConnection
from core.sql.interpolated import FIXED, OPEN, Interpolated, check_values_in

FORMS = st.sampled_from(
    [
        "SELECT id FROM t WHERE x = '{}'",
        "SELECT id FROM t WHERE x <> '{}' AND id > {} ORDER BY id",
        "SELECT id FROM t WHERE x LIKE '%{}%'",
        "SELECT id FROM t WHERE x LIKE '{}%' OR x GLOB '*{}'",
        "SELECT id FROM t WHERE x IN ('{}', '{}')",
        "SELECT id FROM t WHERE id BETWEEN {} AND {} LIMIT {}",
        "SELECT '{}: {}' AS v, upper('{}'), length({})",
        "SELECT 'a  b', CASE WHEN x = '{}' THEN 'a ''{}'' b' ELSE '' END FROM t",
        "VALUES ('{}', {}), ({}, '-{}-')",
        "SELECT id FROM t WHERE id >  {} -- '{}\n AND x = '{}'",
    ]
)
TEXTS = st.text(st.sampled_from("ab'\"%_?é1 "), max_size=4)


def database() -> sqlite3.Connection:
    connection = ClosingConnection(":memory:")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)")
    connection.executemany("INSERT INTO t (x) VALUES (?)", [("a",), ("b'",), ("ab%",), ("",), ("é1",)])
    return connection


@given(form=FORMS, data=st.data())
def test_the_line_to_write_gives_the_same_rows(form: str, data: st.DataObject) -> None:
    pieces = re.split(r"(\{\})", form)
    parts: list[str | Interpolated] = []
    literal = ""
    values: dict[str, str | int] = {}
    for at, piece in enumerate(pieces):
        if piece != "{}":
            parts.append(piece)
            literal += piece
            continue
        quotes = literal.count("'") % 2 == 1 and "--" not in literal.rpartition("\n")[2]
        comment = "--" in literal.rpartition("\n")[2]
        value = data.draw(TEXTS) if quotes else data.draw(st.integers(0, 9))
        literal += str(value).replace("'", "''")
        if not comment:
            values[f"v{at}"] = value
        parts.append(Interpolated(f"v{at}", OPEN))
    message = check_values_in(parts)
    assert message is not None
    match = re.search(r"""prepare\((['"])(?P<line>.*)\1\)\.bind\((?P<given>.*)\)""", message)
    if match is None:
        assert "write ?" in message
        return
    given = [values[name] for name in match["given"].split(", ")]
    wanted = database().execute(literal).fetchall()
    assert database().execute(match["line"], given).fetchall() == wanted


@example(["?", Interpolated("n", FIXED)])
@example(["'", Interpolated("v", OPEN, several=True), "'"])
@example([":², ?99999999999999999999, ", Interpolated("v", OPEN)])
@given(st.lists(st.one_of(st.text(max_size=6), st.builds(Interpolated, st.just("v"), st.sampled_from([0, 1, 2])))))
def test_no_text_at_all_breaks_it(parts: list[str | Interpolated]) -> None:
    message = check_values_in(parts)
    assert message is None or "v is put into the text" in message
