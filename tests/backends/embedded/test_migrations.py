"""Migrations are applied in order, once, whole, and recorded as the platform records them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.migrations import (
    applied,
    apply,
    apply_at_once,
    changed,
    pending,
)
from core.backends.embedded.store import Store
from core.errors import D1Error
from core.sql.migrations import MigrationError, read_migrations
from core.testing.d1 import FakeD1Database

USERS = """\
-- The users; a comment with a ; in it.
CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL);

CREATE TRIGGER named AFTER INSERT ON users BEGIN
  UPDATE users SET name = CASE WHEN new.name = '' THEN 'a;b' ELSE new.name END WHERE id = new.id;
  SELECT 1;
END;
INSERT INTO users (name) VALUES (''), ('Ann');
"""


def folder_of(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "migrations"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text)
    return folder


def database() -> EmbeddedD1Database:
    return EmbeddedD1Database(Store(), "db")


async def test_files_are_applied_in_order_once_and_recorded(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, _10_last="DROP TABLE posts", _0002_posts="CREATE TABLE posts (a)", _0001_users=USERS)
    for path in folder.iterdir():
        path.rename(path.with_name(path.name[1:]))
    db = database()
    migrations = read_migrations(folder)
    assert [migration.name for migration in migrations] == ["0001_users.sql", "0002_posts.sql", "10_last.sql"]
    assert await applied(db) == []
    assert await pending(db, migrations) == migrations
    told: list[tuple[str, int, int]] = []
    done = await apply(
        db, migrations, progress=lambda migration, index, count: told.append((migration.name, index, count))
    )
    assert done == migrations
    assert told == [("0001_users.sql", 1, 3), ("0002_posts.sql", 2, 3), ("10_last.sql", 3, 3)]
    assert await db.prepare("SELECT name FROM users ORDER BY id").raw() == [["a;b"], ["Ann"]]
    assert await applied(db) == ["0001_users.sql", "0002_posts.sql", "10_last.sql"]
    assert await pending(db, migrations) == []
    assert await apply(db, migrations) == []


async def test_the_record_is_the_platforms_table(tmp_path: Path) -> None:
    db = database()
    await apply(db, read_migrations(folder_of(tmp_path, first="CREATE TABLE t (a)")))
    columns = await db.prepare("PRAGMA table_info(d1_migrations)").all()
    assert [(c["name"], c["type"], c["notnull"], c["dflt_value"], c["pk"]) for c in columns.results] == [
        ("id", "INTEGER", 0, None, 1),
        ("name", "TEXT", 0, None, 0),
        ("applied_at", "TIMESTAMP", 1, "CURRENT_TIMESTAMP", 0),
    ]
    row = await db.prepare("SELECT id, name, applied_at FROM d1_migrations").first()
    assert row is not None
    assert (row["id"], row["name"]) == (1, "first.sql")
    assert len(row["applied_at"]) == len("2026-01-01 00:00:00")


async def test_what_the_platform_recorded_is_not_applied_again(tmp_path: Path) -> None:
    db = database()
    await db.exec(
        "CREATE TABLE d1_migrations( id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, "
        "applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)\n"
        "INSERT INTO d1_migrations (name) VALUES ('0001.sql')"
    )
    folder = folder_of(tmp_path, **{"0001": "BAD", "0002": "CREATE TABLE t (a)"})
    assert [migration.name for migration in await apply(db, read_migrations(folder))] == ["0002.sql"]


async def test_a_failing_file_changes_nothing_and_is_named_with_its_line(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        **{"1_ok": "CREATE TABLE t (a)", "2_bad": "CREATE TABLE u (a);\n\nINSERT INTO t\nSELECT 1\n  FROM nope;"},
    )
    db = database()
    with pytest.raises(MigrationError) as caught:
        await apply(db, read_migrations(folder))
    assert (caught.value.path, caught.value.line) == (folder / "2_bad.sql", 3)
    assert str(caught.value) == (
        f"{folder / '2_bad.sql'}:3: no such table: nope: SQLITE_ERROR. The file changed nothing, and the ones before it "
        "stay applied. Correct it and migrate again"
    )
    assert await applied(db) == ["1_ok.sql"]
    assert await db.prepare("SELECT name FROM sqlite_master WHERE name = 'u'").first() is None


@pytest.mark.parametrize(
    ("sql", "line", "reason"),
    [
        ("CREATE TABLE t (\n  a,\n  b BAD BAD BAD,,\n)", 3, 'near ","'),
        ("SELECT 1;\nSELECT\n  nope\n", 3, "no such column: nope"),
        ("SELECT ?", 1, "Wrong number of parameter bindings"),
        ("SELECT 1;\nBEGIN;\nSELECT 2;", 2, "To execute a transaction"),
        ("SELECT 1;\n\nATTACH 'x' AS y", 3, "not authorized"),
        ("\n\nSELECT '" + "x" * 100_000 + "'", 3, "statement too long"),
    ],
)
async def test_the_line_is_that_of_the_mistake(tmp_path: Path, sql: str, line: int, reason: str) -> None:
    with pytest.raises(MigrationError) as caught:
        await apply(database(), read_migrations(folder_of(tmp_path, bad=sql)))
    assert caught.value.line == line
    assert reason in caught.value.reason


async def test_a_transaction_around_a_whole_file_is_taken_for_ours(tmp_path: Path) -> None:
    db = database()
    await apply(db, read_migrations(folder_of(tmp_path, dump="BEGIN TRANSACTION;\nCREATE TABLE t (a);\nCOMMIT;\n")))
    assert (await db.prepare("SELECT * FROM t").all()).results == []


async def test_a_file_without_statements_is_applied_too(tmp_path: Path) -> None:
    db = database()
    await apply(db, read_migrations(folder_of(tmp_path, empty="-- nothing yet\n")))
    assert await applied(db) == ["empty.sql"]


def test_a_missing_folder_and_other_encodings_are_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        read_migrations(tmp_path / "nope")
    folder = folder_of(tmp_path)
    (folder / "latin.sql").write_bytes("SELECT 'é'".encode("latin-1"))
    with pytest.raises(MigrationError, match="not UTF-8"):
        read_migrations(folder)


async def test_another_table_may_keep_the_record(tmp_path: Path) -> None:
    db = database()
    migrations = read_migrations(folder_of(tmp_path, first="CREATE TABLE t (a)"))
    await apply(db, migrations, table="my records")
    assert await applied(db, table="my records") == ["first.sql"]
    assert await applied(db) == []


async def test_a_fake_has_its_migrations_applied(tmp_path: Path) -> None:
    db = FakeD1Database(migrations=folder_of(tmp_path, first=USERS))
    assert await db.prepare("SELECT count(*) AS n FROM users").first("n") == 2
    assert apply_at_once(db, read_migrations(tmp_path / "migrations")) == []


def test_processes_that_migrate_at_once_apply_every_file_once(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path, **{f"{n:04}": f"CREATE TABLE t{n} (a); INSERT INTO t{n} VALUES (1)" for n in range(20)}
    )
    script = (
        "import asyncio, sys\n"
        "from core.backends.embedded.store import Store\n"
        "from core.backends.embedded.d1 import EmbeddedD1Database\n"
        "from core.backends.embedded.migrations import apply\n"
        "from core.sql.migrations import read_migrations\n"
        "with Store(sys.argv[1]) as store:\n"
        "    print(len(asyncio.run(apply(EmbeddedD1Database(store, 'db'), read_migrations(sys.argv[2])))))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "state"), str(folder)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    counts = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert sum(counts) == 20


async def test_a_file_changed_since_it_was_applied_is_known(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a="CREATE TABLE t (a)", b="CREATE TABLE u (b)")
    with Store(tmp_path / "state") as store:
        db = EmbeddedD1Database(store, "db")
        await apply(db, read_migrations(folder), table="my records")
        (folder / "a.sql").write_text(
            "-- only a comment, and\r\ncreate\ttable t (a);\r\n".replace("create\ttable", "CREATE TABLE")
        )
        assert changed(db.engine.database.path, read_migrations(folder), table="my records") == []
        (folder / "b.sql").write_text("CREATE TABLE u (b, c)")
        (folder / "c.sql").write_text("CREATE TABLE v (c)")
        assert [
            file.name for file in changed(db.engine.database.path, read_migrations(folder), table="my records")
        ] == ["b.sql"]
        assert [file.name for file in await apply(db, read_migrations(folder), table="my records")] == ["c.sql"]
        file = store.file("d1", "db")
        assert file is not None
        assert [found.name for found in changed(file, read_migrations(folder), table="my records")] == ["b.sql"]
    assert changed(tmp_path / "nowhere.sqlite", read_migrations(folder)) == []
    assert changed(folder / "a.sql", read_migrations(folder)) == []


async def test_a_database_that_was_applied_without_hashes_is_not_complained_of(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a="CREATE TABLE t (a)")
    with Store(tmp_path / "state") as store:
        db = EmbeddedD1Database(store, "db")
        await apply(db, read_migrations(folder))
        await db.exec("DROP TABLE d1_migrations_hashes")
        (folder / "a.sql").write_text("CREATE TABLE t (a, b)")
        assert changed(db.engine.database.path, read_migrations(folder)) == []
        (folder / "b.sql").write_text("CREATE TABLE u (a)")
        await apply(db, read_migrations(folder))
        assert changed(db.engine.database.path, read_migrations(folder)) == []


async def test_a_cleared_database_is_empty_for_every_process(tmp_path: Path) -> None:
    schema = (
        "CREATE TABLE parents (id INTEGER PRIMARY KEY AUTOINCREMENT); CREATE TABLE children (p REFERENCES parents (id));"
        "CREATE VIEW pairs AS SELECT * FROM children; CREATE INDEX i ON children (p);"
        "CREATE TRIGGER g AFTER DELETE ON children BEGIN SELECT RAISE(FAIL, 'no'); END;"
        'CREATE VIRTUAL TABLE words USING fts5 (word); CREATE TABLE "odd ""name" (a)'
    )
    with Store(tmp_path) as one, Store(tmp_path) as two:
        here, there = EmbeddedD1Database(one, "db"), EmbeddedD1Database(two, "db")
        await here.prepare(schema).run()
        await here.prepare("INSERT INTO parents VALUES (NULL)").run()
        await here.prepare("INSERT INTO children VALUES (1)").run()
        assert await there.prepare("SELECT count(*) AS n FROM pairs").first("n") == 1
        here.engine.clear()
        for db in (here, there):
            assert await db.prepare("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'").raw() == []
        await there.prepare(schema).run()
        result = await here.prepare("INSERT INTO parents VALUES (NULL) RETURNING id").first("id")
        assert result == 1
        with pytest.raises(D1Error, match="FOREIGN KEY"):
            await here.prepare("INSERT INTO children VALUES (5)").run()
