"""`core migrate`: listed, made and applied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.command_line import run

TOML = """\
name = "trial"
main = "main.py"
compatibility_date = "2026-04-01"

[[d1_databases]]
binding = "DB"
database_name = "trial"
database_id = "trial"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "wrangler.toml").write_text(TOML)
    (tmp_path / "main.py").write_text("from core import create_app\napp = create_app()\n")
    return tmp_path


def test_a_migration_is_made_listed_and_applied_once(project: Path) -> None:
    made = run("migrate", "new", "Add notes!", folder=project)
    assert made.returncode == 0, made.stderr
    path = project / "migrations" / "0001_add_notes.sql"
    assert Path(made.stdout.strip()) == path
    path.write_text("CREATE TABLE notes (id INTEGER PRIMARY KEY);\n")

    assert "pending  0001_add_notes.sql" in run("migrate", "list", folder=project).stdout
    assert "applied  0001_add_notes.sql" in run("migrate", "apply", folder=project).stdout
    assert "nothing to apply" in run("migrate", "apply", folder=project).stdout
    assert "applied  0001_add_notes.sql" in run("migrate", "list", folder=project).stdout

    assert run("migrate", "new", "more", folder=project).stdout.strip().endswith("0002_more.sql")


@pytest.mark.parametrize(
    ("written", "arguments", "folder"),
    [
        ("", [], ".core/state"),
        ('\n[core]\nstate = "data"\n', [], "data"),
        ('\n[core]\nstate = "data"\n', ["--state", "elsewhere"], "elsewhere"),
        ('\n[core]\nstate = "data"\n\n[env.staging]\n', ["--env", "staging"], "data"),
        ('\n[env.staging.core]\nstate = "staged"\n', ["--env", "staging"], "staged"),
    ],
)
def test_the_state_is_kept_where_the_configuration_or_the_command_says(
    project: Path, written: str, arguments: list[str], folder: str
) -> None:
    database = TOML[TOML.index("[[") :]
    staging = database.replace("[[d1", "[[env.staging.d1") if "staging" in written else ""
    (project / "wrangler.toml").write_text(TOML + written + staging)
    (project / "migrations").mkdir()
    (project / "migrations" / "0001_notes.sql").write_text("CREATE TABLE notes (id INTEGER PRIMARY KEY);\n")

    assert run("migrate", "apply", *arguments, folder=project).returncode == 0
    counted = run("sql", *arguments, "-c", "SELECT count(*) AS n FROM notes", folder=project)
    assert counted.returncode == 0, counted.stderr
    assert [path.parent.parent for path in project.glob("**/d1/*.sqlite")] == [project / folder]


def test_a_migration_that_fails_changes_nothing_and_says_where(project: Path) -> None:
    folder = project / "migrations"
    folder.mkdir()
    (folder / "0001_bad.sql").write_text("CREATE TABLE notes (id INTEGER);\nCREATE TABEL more (id INTEGER);\n")

    done = run("migrate", "apply", folder=project)

    assert done.returncode == 1
    assert "0001_bad.sql:2" in done.stderr
    assert "pending  0001_bad.sql" in run("migrate", "list", folder=project).stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["new"], "core migrate new add_email"),
        (["new", "!!!"], "no letter or digit"),
        (["list", "--binding", "NOPE"], "there is no database NOPE"),
        (["apply", "DB"], "--binding DB"),
    ],
)
def test_mistakes_are_told_with_the_right_words(project: Path, arguments: list[str], told: str) -> None:
    done = run("migrate", *arguments, folder=project)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_project_without_a_database_is_told_the_table_to_write(project: Path) -> None:
    (project / "wrangler.toml").write_text(TOML.partition("[[")[0])
    done = run("migrate", "list", folder=project)
    assert done.returncode == 2
    assert "[[d1_databases]]" in done.stderr


def test_a_changed_migration_is_told_and_reset_begins_anew(project: Path) -> None:
    folder = project / "migrations"
    folder.mkdir()
    first = folder / "0001_notes.sql"
    first.write_text("CREATE TABLE notes (id INTEGER);")
    assert "changed since" not in run("migrate", "apply", folder=project).stdout
    first.write_text("CREATE TABLE notes (id INTEGER, text TEXT);")

    told = "DB: changed since applied: 0001_notes.sql. The database is as they were then."
    listed = run("migrate", "list", folder=project)
    assert "applied  0001_notes.sql  changed since applied" in listed.stdout
    assert told in listed.stdout
    assert "core migrate reset" in listed.stdout
    assert told in run("migrate", "apply", folder=project).stdout
    checked = run("check", folder=project)
    assert f"note: {told}" in checked.stdout

    unsure = run("migrate", "reset", folder=project)
    assert (unsure.returncode, "--yes" in unsure.stderr) == (2, True)
    assert told in run("migrate", "list", folder=project).stdout
    reset = run("migrate", "reset", "--yes", folder=project)
    assert reset.returncode == 0, reset.stderr
    assert "applied  0001_notes.sql" in reset.stdout
    assert "changed since" not in run("migrate", "list", folder=project).stdout
    assert "changed since" not in run("check", folder=project).stdout


def test_reset_empties_what_workerd_keeps_unless_it_runs(project: Path) -> None:
    from core.backends.embedded.durable_object.ids import id_from_name
    from core.runtime.state_folder import lock_state

    (project / "migrations").mkdir()
    state = project / ".core" / "workerd"
    folder = state / "d1" / "D1Database"
    folder.mkdir(parents=True)
    kept = folder / f"{id_from_name('D1Database', None, 'another')}.sqlite"
    files = [folder / f"{id_from_name('D1Database', None, 'trial')}.sqlite{end}" for end in ("", "-wal", "-shm")]
    for file in (kept, *files):
        file.write_bytes(b"")

    lock = lock_state(state)
    refused = run("migrate", "reset", "--yes", folder=project)
    assert refused.returncode == 1
    assert f"in use by process {os.getpid()}" in refused.stderr
    assert all(file.exists() for file in files)
    os.close(lock)

    reset = run("migrate", "reset", "--yes", folder=project)
    assert reset.returncode == 0, reset.stderr
    assert "DB of workerd is empty" in reset.stdout
    assert [file.exists() for file in (kept, *files)] == [True, False, False, False]
