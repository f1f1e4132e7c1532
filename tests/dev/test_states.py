"""The data that bindings had when a request began, kept as pages."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.embedded.store import Database, Store
from core.dev.journal import States

writes = st.lists(
    st.sampled_from(
        [
            "INSERT INTO t (text) VALUES (hex(randomblob(3000)))",
            "DELETE FROM t WHERE id % 2",
            "UPDATE t SET text = text || 'x'",
            "CREATE TABLE IF NOT EXISTS other (id)",
            "DELETE FROM t",
            "VACUUM",
            "SELECT 1",
        ]
    ),
    max_size=12,
)


def rows(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    found = connection.execute("SELECT name FROM sqlite_master").fetchall()
    return found + connection.execute("SELECT * FROM t").fetchall()


def test_a_database_that_is_opened_and_closed_in_between_is_kept_at_each_request(tmp_path: Path) -> None:
    """As that of a Durable Object is, whose instance comes and goes."""
    name, noted = "durable_object/Room/1", list[int | None]()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as kept:
        journal = States(kept)
        for number in range(3):
            with Store(tmp_path) as store:
                database = store.database("d1", "room")
                database.connection.execute("CREATE TABLE IF NOT EXISTS t (id)")
                noted.append(journal.note({name: database}))
                database.connection.execute("INSERT INTO t VALUES (?)", (number,))
            assert database.path is not None
            noted.append(journal.note({name: database.path}))
        for number, state in enumerate(noted):
            assert state is not None
            assert journal.files(state, "durable_object/Room/") == [name]
            found = journal.read(state, name)
            assert found is not None
            with closing(found):
                assert len(found.execute("SELECT * FROM t").fetchall()) == (number + 1) // 2
        assert journal.files(noted[0] or 0, "durable_object/R/") == []


def test_no_state_is_kept_of_too_many_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.dev.journal.MOST_DATABASES", 1)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as kept, Store() as store:
        both = {name: store.database("durable_object", name) for name in "ab"}
        both["a"].connection.execute("CREATE TABLE t (id)")
        assert States(kept).note({"a": both["a"]}) is not None
        assert States(kept).note(both) is None


@given(writes, st.integers(0, 12))
def test_each_state_is_read_as_it_was_in_another_process_too(given: list[str], restart: int) -> None:
    with TemporaryDirectory() as folder, closing(sqlite3.connect(":memory:", isolation_level=None)) as kept:
        store = Store(folder)
        database = store.database("d1", "users")
        database.connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
        noted: list[tuple[int, list[tuple[object, ...]]]] = []
        journal = States(kept)
        for number, sql in enumerate(given):
            if number == restart:
                journal = States(kept)
            database.connection.execute(sql)
            state = journal.note({"d1/users": database})
            assert state is not None
            noted.append((state, rows(database.connection)))
        for state, expected in noted:
            found = States(kept).read(state, "d1/users")
            assert found is not None
            with closing(found):
                assert rows(found) == expected
        store.close()


def test_a_state_costs_what_was_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    database = store.database("d1", "users")
    database.connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
    database.connection.executemany("INSERT INTO t (text) VALUES (?)", [("x" * 200,)] * 5000)
    kept = sqlite3.connect(":memory:", isolation_level=None)
    journal = States(kept)

    def pages() -> int:
        return int(kept.execute("SELECT count(*) FROM pages").fetchone()[0])

    first = journal.note({"d1/users": database})
    all_of_it = pages()
    assert journal.note({"d1/users": database}) == first
    database.connection.execute("UPDATE t SET text = 'y' WHERE id = 7")
    assert journal.note({"d1/users": database}) != first
    assert all_of_it > 200
    assert pages() - all_of_it <= 3
    kept.close()
    store.close()


def test_old_states_go_and_large_databases_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.dev.journal.KEPT_STATES", 3)
    store = Store(tmp_path)
    database: Database = store.database("kv", "notes")
    database.connection.execute("CREATE TABLE t (id)")
    kept = sqlite3.connect(":memory:", isolation_level=None)
    journal = States(kept)
    numbers: list[int | None] = []
    for number in range(8):
        database.connection.execute("INSERT INTO t VALUES (?)", (number,))
        numbers.append(journal.note({"kv/notes": database}))

    assert None not in numbers
    assert journal.read(numbers[0] or 0, "kv/notes") is None
    found = journal.read(numbers[-2] or 0, "kv/notes")
    assert found is not None
    assert found.execute("SELECT max(id) FROM t").fetchone() == (6,)
    found.close()
    monkeypatch.setattr("core.dev.journal.LARGEST_DATABASE", 1)
    database.connection.execute("INSERT INTO t VALUES (99)")
    assert journal.note({"kv/notes": database}) is None
    kept.close()
    store.close()
