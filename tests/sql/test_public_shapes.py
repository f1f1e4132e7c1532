"""A thousand shapes of statements, as public programs have them: nothing is said against any,
and what is said of one holds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sql.public_shapes import CORPUS, Subject, shape

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.store import Store
from core.sql.catalog import add_functions
from core.sql.connection import ClosingConnection
from core.sql.rows import Given, Kind, check_parameter, check_values, field_type
from core.sql.schema import Schema, schema_of
from core.sql.statement import Statement, Storage

pytestmark = pytest.mark.slow

CLASSES = {int: "integer", float: "real", str: "text", bytes: "blob"}
KINDS: dict[type[object], Kind] = {type(None): "none", int: "int", float: "float", str: "str", bytes: "bytes"}


def test_a_thousand_shapes_are_different() -> None:
    statements = [statement for subject in CORPUS for statement in subject.statements]
    assert len({shape(statement) for statement in statements}) >= 1000


def test_a_shape_has_no_names_and_no_values() -> None:
    assert shape("SELECT a.b, count(*) FROM [t] WHERE x = 'y' OR \"z\" > ?2 -- c") == (
        "SELECT n . n , n ( * ) FROM n WHERE n = 1 OR n > ?"
    )
    assert shape("SELECT a FROM t WHERE b IN (1, 2)") != shape("SELECT a FROM t WHERE b IN (1)")


@pytest.fixture(params=CORPUS, ids=lambda subject: subject.name)
def subject(request: pytest.FixtureRequest) -> Subject:
    given: Subject = request.param
    return given


@pytest.fixture
def schema(subject: Subject, tmp_path: Path) -> Schema:
    (tmp_path / "0001.sql").write_text(subject.tables)
    made = schema_of(tmp_path)
    assert made.migrated.problems == ()
    return made


async def test_the_embedded_engine_takes_each_and_nothing_is_said_against_it(subject: Subject, schema: Schema) -> None:
    database = EmbeddedD1Database(Store(), subject.name)
    await database.batch([database.prepare(text) for text in _pieces(subject.tables)])
    for text in subject.statements:
        read = schema.analyse(text)
        assert (text, read.problems) == (text, ())
        assert check_values(read, read.takes or None) is None
        # The engine compiles it, with as many values as it is said to take.
        values = [None] * (read.takes or 0)
        explained = database.prepare(f"EXPLAIN {text}")
        await (explained.bind(*values) if values else explained).all()


def test_rows_have_the_columns_and_values_that_are_said_of_them(subject: Subject, schema: Schema) -> None:
    for connection in _filled(subject.tables):
        for text in subject.statements:
            read = schema.analyse(text)
            for values in _values(read):
                connection.execute("BEGIN")
                try:
                    cursor = connection.execute(text, values)
                    rows = cursor.fetchall()
                except sqlite3.Error:
                    continue  # a constraint, or a text that is no JSON
                finally:
                    _undo(connection)
                columns = read.columns
                assert columns is not None, text
                assert [column.name for column in columns] == [d[0] for d in cursor.description or ()], text
                for number, column in enumerate(columns):
                    found = {row[number] for row in rows}
                    assert not (column.never and None in found), (text, column)
                    kinds = {CLASSES[type(value)] for value in found if value is not None}
                    # RETURNING gives a whole number of a REAL column as an integer: for JSON they are one.
                    said = column.storage | {"integer"} if "real" in column.storage else column.storage
                    assert not said or kinds <= said, (text, column)
                    assert field_type([column])


def test_a_value_of_the_right_kind_is_not_refused_and_a_null_that_is_could_not_be_written(
    subject: Subject, schema: Schema
) -> None:
    (full, _) = _filled(subject.tables)
    full.execute("PRAGMA ignore_check_constraints = OFF")
    for text in subject.statements:
        read = schema.analyse(text)
        for values in _values(read):
            for number, value in enumerate(values, 1):
                if isinstance(value, str) and value.startswith("["):
                    continue
                given = Given(frozenset([KINDS[type(value)]]), value if isinstance(value, str) else None)
                message = check_parameter(number, read.slots, given)
                if message is not None and "its CHECK allows" in message:
                    table, column = message.partition(" ")[0].split(".")
                    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                        full.execute(f"UPDATE {table} SET {column} = ?", (value,))
                elif value is not None:
                    assert message is None, (text, number, value, message)
                elif message is not None and "NOT NULL" in message:
                    assert not _writes(full, text, values), (text, message)


def _writes(connection: sqlite3.Connection, text: str, values: tuple[Any, ...]) -> bool:
    before = connection.total_changes
    connection.execute("BEGIN")
    try:
        connection.execute(text, values).fetchall()
    except sqlite3.Error:
        return False
    finally:
        _undo(connection)
    return connection.total_changes != before


def _undo(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:  # a statement that is given up in the middle of its writing has ended it
        connection.execute("ROLLBACK")


def _values(read: Statement) -> Iterator[tuple[Any, ...]]:
    """Values for the parameters of a statement: those of the rows there are, and NULL."""
    takes = read.takes or 0
    kinds = {slot.number: slot for slot in read.slots if slot.use != "outside"}
    for index in range(3):
        yield tuple(_value(kinds[n].storage if n in kinds else frozenset(), index) for n in range(1, takes + 1))
    if takes:
        yield (None,) * takes
        if not any(slot.use == "store" for slot in read.slots):
            yield (float(takes),) * takes
            yield ("[1, 2]",) * takes


def _value(storage: frozenset[Storage], index: int) -> Any:
    (one,) = storage if len(storage) == 1 else ("integer",)
    return "abc"[index] if one == "text" else bytes([index]) if one == "blob" else index + 1


def _pieces(script: str) -> list[str]:
    pieces, piece = list[str](), ""
    for line in script.splitlines(keepends=True):
        piece += line
        if sqlite3.complete_statement(piece):
            pieces.append(piece)
            piece = ""
    return pieces


def _filled(tables: str) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """The tables with a few rows, whose keys are the same everywhere, so that each finds the others;
    and without rows.
    """
    full, empty = (
        ClosingConnection(":memory:", isolation_level=None),
        ClosingConnection(":memory:", isolation_level=None),
    )
    for connection in (full, empty):
        add_functions(connection)
        connection.executescript(tables)
        # Days from 4714 BC on are many: such a statement is given up.
        connection.set_progress_handler(lambda: 1, 200_000)
    full.execute("PRAGMA ignore_check_constraints = ON")
    names = full.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'").fetchall()
    for (table,) in names:
        if table.startswith(("sqlite_", "piece_words")):
            continue
        columns = full.execute(f'PRAGMA table_info("{table}")').fetchall()
        for index in range(3):
            full.execute(
                f'INSERT OR IGNORE INTO "{table}" ({", ".join(column[1] for column in columns)}) '
                f"VALUES ({', '.join('?' for _ in columns)})",
                [_row_value(column, index) for column in columns],
            )
    return full, empty


def _row_value(column: tuple[Any, ...], index: int) -> Any:
    _, _, type_, full, _, key = column
    if index == 2 and not full and not key:
        return None
    affinity = type_.upper()
    if "INT" in affinity or "BOOL" in affinity:
        return index + 1
    if "REAL" in affinity or "DEC" in affinity:
        return index + 0.5
    return bytes([index]) if "BLOB" in affinity else "abc"[index]
