"""What the explorer tells of a schema, on those that are hard to read, and the rows of a foreign key."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Any

import pytest

from core.dev.explorer.rows import tables_of


def described(sql: str) -> dict[str, dict[str, Any]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(sql)
        return {one["name"]: one for one in tables_of(connection)}


def test_a_foreign_key_of_several_columns_is_one() -> None:
    tables = described(
        "CREATE TABLE a (x INTEGER, y INTEGER, PRIMARY KEY (y, x));"
        "CREATE TABLE b (p INTEGER, q INTEGER, FOREIGN KEY (p, q) REFERENCES a (x, y) ON DELETE SET NULL);"
    )
    (reference,) = tables["b"]["references"]
    assert reference == {"table": "a", "columns": ["p", "q"], "to": ["x", "y"], "onDelete": "SET NULL"}
    assert tables["a"]["key"] == ["y", "x"]


def test_what_a_foreign_key_leaves_out_is_written_out() -> None:
    tables = described(
        'CREATE TABLE "Users" ("Id" INTEGER PRIMARY KEY, "Mail" TEXT UNIQUE);'
        "CREATE TABLE notes (by INTEGER REFERENCES USERS, mail TEXT REFERENCES users (mail));"
    )
    assert [(one["table"], one["to"]) for one in tables["notes"]["references"]] == [
        ("Users", ["Id"]),
        ("Users", ["Mail"]),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE b (a INTEGER REFERENCES nowhere (id))",
        "CREATE TABLE a (x INTEGER); CREATE TABLE b (a INTEGER REFERENCES a)",
        "CREATE TABLE a (x INTEGER, y INTEGER, PRIMARY KEY (x, y)); CREATE TABLE b (a INTEGER REFERENCES a)",
        "CREATE TABLE a (x INTEGER); CREATE TABLE b (a INTEGER REFERENCES a (y))",
    ],
    ids=["no table", "no key", "another number of columns", "no column"],
)
def test_a_foreign_key_to_nothing_leads_nowhere(sql: str) -> None:
    assert described(sql)["b"]["references"][0]["to"] == []


def test_indexes_have_their_columns_in_order() -> None:
    tables = described(
        "CREATE TABLE a (x INTEGER PRIMARY KEY, y TEXT, z TEXT, UNIQUE (z, y));"
        "CREATE INDEX first ON a (y DESC, lower(z)) WHERE y > 'a';"
    )
    assert [(one["columns"], one["unique"], one["partial"]) for one in tables["a"]["indexes"]] == [
        (["y DESC", "an expression"], False, True),
        (["z", "y"], True, False),
    ]
