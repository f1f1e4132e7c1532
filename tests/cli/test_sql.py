"""`core sql` and `core seed`: statements from an argument, a file, a pipe,
on the state of `core dev` and of workerd.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.command_line import run

from core.backends.embedded.durable_object.ids import id_from_name

TOML = """\
name = "trial"
main = "main.py"
compatibility_date = "2026-04-01"

[[d1_databases]]
binding = "DB"
database_name = "trial"
database_id = "trial-id"
"""
SCHEMA = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "wrangler.toml").write_text(TOML)
    assert run("sql", "-c", SCHEMA, folder=tmp_path).returncode == 0
    return tmp_path


def typed(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`core sql` with something on its standard input."""
    command = [sys.executable, "-m", "core", "sql"]
    return subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, timeout=60)


def test_rows_are_printed_as_a_table(project: Path) -> None:
    insert = "INSERT INTO notes (text) VALUES ('first'), ('two\nlines'); SELECT id, text, NULL AS missing, x'00ff' AS b FROM notes"
    done = run("sql", "--command", insert, folder=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "id  text       missing  b",
        "1   first      NULL     x'00ff'",
        "2   two lines  NULL     x'00ff'",
    ]


def test_a_statement_in_the_place_of_a_file_is_told_the_option(project: Path) -> None:
    done = run("sql", "SELECT text FROM notes WHERE id = 'x'", folder=project)
    assert done.returncode == 2
    option = """Write core sql -c 'SELECT text FROM notes WHERE id = '"'"'x'"'"''"""
    assert done.stderr.startswith(f"error: a FILE was expected, not a statement. {option}")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("SELEC 1", "a FILE was expected, not a statement. Write core sql -c 'SELECT 1'"),
        ("updat notes SET text = ''", "a FILE was expected, not a statement. Write core sql -c 'UPDATE notes SET"),
        ("VACUUM", "there is no file VACUUM. A statement is written with -c: core sql -c VACUUM"),
        ("insert.sql", "there is no file insert.sql. Give the path of a file of SQL"),
        ("", "the name of the FILE is empty. Give the path of a file of SQL"),
        (" ", "the name of the FILE is empty. Give the path of a file of SQL"),
        (".", ". cannot be read: Is a directory. Give the path of a file of SQL"),
    ],
)
def test_what_is_no_file_is_told_without_the_system_s_number(project: Path, given: str, told: str) -> None:
    done = run("sql", given, folder=project)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {told}")
    assert "Errno" not in done.stderr


def test_a_file_that_is_no_text_is_told_without_the_codec_s_words(project: Path) -> None:
    (project / "rows.db").write_bytes(b"\xff\xfe")
    done = run("seed", "rows.db", folder=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: rows.db cannot be read: it is not UTF-8. Give the path")


def test_a_file_changes_everything_or_nothing(project: Path) -> None:
    (project / "fix.sql").write_text(
        "INSERT INTO notes (text) VALUES ('first');\nINSERT INTO note (text) VALUES ('x');\n"
    )
    done = run("sql", "fix.sql", folder=project)
    assert done.returncode == 1
    assert "fix.sql" in done.stderr
    assert "no such table: note" in done.stderr
    assert "Nothing was changed" in done.stderr
    assert run("sql", "-c", "SELECT count(*) AS n FROM notes", folder=project).stdout.split() == ["n", "0"]


def test_each_statement_of_a_prompt_runs_by_itself(project: Path) -> None:
    done = typed(
        "INSERT INTO notes (text)\nVALUES ('a;b');\nSELEC 1;\nSELECT text FROM notes;\n.tables\n.exit\n", project
    )
    assert done.returncode == 1
    assert done.stdout.split() == ["text", "a;b", "name", "notes"]
    assert 'near "SELEC"' in done.stderr


def test_columns_of_one_name_are_all_shown(project: Path) -> None:
    done = run("sql", "-c", "SELECT 1 AS id, 2 AS id, 3 AS x", folder=project)
    assert done.stdout.split() == ["id", "id", "x", "1", "2", "3"]


def test_text_without_a_statement_is_told_in_sentences(project: Path) -> None:
    done = run("sql", "-c", "-- nothing", folder=project)
    assert (done.returncode, ".." in done.stderr) == (1, False)
    assert "No SQL statements detected. Nothing was changed" in done.stderr


def test_tables_are_those_of_the_project_and_its_views(project: Path) -> None:
    made = "CREATE TABLE _old (id INTEGER PRIMARY KEY AUTOINCREMENT); CREATE VIEW latest AS SELECT 1"
    assert run("sql", "-c", made, folder=project).returncode == 0
    assert typed(".tables\n", project).stdout.split() == ["name", "_old", "latest", "notes"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["sql", "none.sql"], "Give the path of a file of SQL"),
        (["sql", "none.sql", "-c", "SELECT 1"], "not both"),
        (["sql", "-c", "SELECT 1", "--binding", "OTHER"], "Databases of the configuration: DB"),
        (["sql", "-c", "SELECT 1", "--workerd"], "Run `core dev --runtime workerd` once"),
        (["seed"], "there is no seed.sql"),
    ],
)
def test_what_was_wrong_with_the_command_is_told(project: Path, arguments: list[str], told: str) -> None:
    done = run(*arguments, folder=project)
    assert done.returncode == 2
    assert told in done.stderr


def test_seeding_twice_is_seeding_once(project: Path) -> None:
    (project / "seed.sql").write_text("INSERT OR IGNORE INTO notes (id, text) VALUES (1, 'first'), (2, 'second');\n")
    for _ in range(2):
        done = run("seed", folder=project)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "DB: seeded from seed.sql\n"
    assert run("sql", "-c", "SELECT count(*) AS n FROM notes", folder=project).stdout.split() == ["n", "2"]


def test_the_state_of_workerd_is_the_file_of_the_databases_object(project: Path) -> None:
    folder = project / ".core" / "workerd" / "d1" / "D1Database"
    folder.mkdir(parents=True)
    file = folder / f"{id_from_name('D1Database', None, 'trial-id')}.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute(SCHEMA)
    connection.close()

    assert run("sql", "--workerd", "-c", "INSERT INTO notes (text) VALUES ('there')", folder=project).returncode == 0
    failed = run("sql", "--workerd", "-c", "DELETE FROM notes; SELECT * FROM note", folder=project)
    assert failed.returncode == 1
    assert "Nothing was changed" in failed.stderr
    assert run("sql", "--workerd", "-c", "SELECT text FROM notes", folder=project).stdout.split() == ["text", "there"]
    assert run("sql", "-c", "SELECT count(*) AS n FROM notes", folder=project).stdout.split() == ["n", "0"]


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@pytest.mark.parametrize(
    "arguments", [["-c", f"{ENDLESS} SELECT count(*) FROM n"], ["-"], []], ids=["--command", "a file", "the prompt"]
)
def test_a_read_that_never_ends_locks_nobody_out_and_ends_with_ctrl_c(project: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "core", "sql", *arguments]
    with subprocess.Popen(
        command, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as reading:
        assert reading.stdin is not None
        reading.stdin.write("" if "-c" in arguments else f"{ENDLESS} SELECT count(*) FROM n;\n")
        if arguments == ["-"]:
            reading.stdin.close()
        else:
            reading.stdin.flush()
        try:
            until_busy(reading.pid)
            assert run("sql", "-c", "INSERT INTO notes (text) VALUES ('beside')", folder=project).returncode == 0
            assert reading.poll() is None
            reading.send_signal(signal.SIGINT)
            assert reading.wait(120) == 130
            assert reading.stderr is not None
            assert "Traceback" not in reading.stderr.read()
        finally:
            reading.kill()
    assert run("sql", "-c", "SELECT text FROM notes", folder=project).stdout.split() == ["text", "beside"]


def until_busy(process: int) -> None:
    """Wait until a process has used a second of a processor, which is more than its start takes."""
    deadline = time.monotonic() + 60
    used = 0
    while used < os.sysconf("SC_CLK_TCK"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
        used = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11])
