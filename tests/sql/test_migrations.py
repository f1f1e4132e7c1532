"""Migrations as files: their order, and their statements with lines."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from core.sql.migrations import Migration, MigrationError, migration_files, read_migrations


def test_files_come_by_number_and_those_without_one_last(tmp_path: Path) -> None:
    for name in ("10_last.sql", "9_b.sql", "zz.sql", "0001_a.sql", "notes.txt"):
        (tmp_path / name).write_text("CREATE TABLE IF NOT EXISTS t (a)")
    wanted = ["0001_a.sql", "9_b.sql", "10_last.sql", "zz.sql"]
    assert [file.name for file in migration_files(tmp_path)] == wanted
    # What is applied has the order of what is checked.
    assert [migration.name for migration in read_migrations(tmp_path)] == wanted


def test_statements_have_the_lines_that_they_begin_on(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- first\nSELECT 1;\n\n;SELECT\n2; SELECT 3;\n-- end\n")
    [migration] = read_migrations(tmp_path)
    assert [line for line, _ in migration.statements] == [2, 4, 5]


def test_many_statements_take_time_in_proportion_to_the_text() -> None:
    sql = f"INSERT INTO t VALUES ('{'x' * 200}');\n" * 20_000
    start = time.process_time()
    assert Migration("a.sql", Path("a.sql"), sql).statements[-1][0] == 20_000
    assert time.process_time() - start < 10


def test_a_transaction_around_all_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("BEGIN TRANSACTION;\nSELECT 1;\nCOMMIT;")
    (tmp_path / "b.sql").write_text("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nSELECT 1;\nCOMMIT;")
    plain, dumped = read_migrations(tmp_path)
    assert [statement.keyword for _, statement in plain.statements] == ["SELECT"]
    assert [(line, statement.keyword) for line, statement in dumped.statements] == [(1, "PRAGMA"), (3, "SELECT")]


def test_comments_and_blanks_do_not_change_a_migration(tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text("SELECT 1;")
    (tmp_path / "2.sql").write_text("/* one */ SELECT\n1 ;")
    (tmp_path / "3.sql").write_text("SELECT 2;")
    one, same, other = read_migrations(tmp_path)
    assert one.digest == same.digest != other.digest


def test_files_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        read_migrations(tmp_path / "nowhere")
    (tmp_path / "1.sql").write_bytes(b"\xff")
    with pytest.raises(MigrationError, match="not UTF-8"):
        read_migrations(tmp_path)
