"""A document that is taken up: in next to no time while nothing has changed,
and never after an edit of anything it is made of.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.openapi import MOST, copy_of_users, times
from tests.support.command_line import run_alone
from tests.support.libraries import with_libraries

SHOWS_IMPORTS = {"PYTHONPROFILEIMPORTTIME": "1", "PYTEST_CURRENT_TEST": ""}


PROGRAM = {
    "wrangler.toml": """
name = "notes"
main = "src/main.py"

[[d1_databases]]
binding = "DB"
database_id = "notes"
""",
    "migrations/0001_notes.sql": "CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT NOT NULL);",
    ".dev.vars": "SECRET=x",
    "src/main.py": """
import attrs
from access import refuse
from core import Bindings, CoreError, D1Database, Request, Response, create_app
from core.middleware.timeout import timeout

@attrs.frozen
class Env(Bindings):
    DB: D1Database

@attrs.frozen
class Asked:
    limit: int = 20

app = create_app(Env)
app.use(timeout(duration=5000))

@app.get("/notes/:id")
async def show(req: Request[Env], res: Response) -> None:
    note = await req.env.DB.prepare("SELECT id, title FROM notes WHERE id = ?").bind(req.params["id"]).first()
    if note is None:
        raise CoreError(404, "Note not found")
    if req.query.parse(Asked).limit > 20:
        refuse()
    res.json(note)
""",
    "src/access.py": """
from core import CoreError

def refuse() -> None:
    raise CoreError(403, "Too much")
""",
}


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program, described once."""
    folder = with_libraries(tmp_path_factory.mktemp("kept"))
    for name, text in PROGRAM.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    assert not is_taken_up(folder)[0]
    return folder


def taken_up_again(folder: Path) -> str:
    """The document of an earlier run. A run is not kept while another program changes a folder of the import path."""
    found = (is_taken_up(folder) for _ in range(3))
    return next(document for taken_up, document in found if taken_up)


def is_taken_up(folder: Path) -> tuple[bool, str]:
    """Return True if the document is that of an earlier run, and the document."""
    done = run_alone("openapi", folder=folder, **SHOWS_IMPORTS)
    assert done.returncode == 0, done.stderr[-2000:]
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    anew = "core.openapi.document" in imported
    heavy = {"access", "mypy", "attrs"}
    assert heavy & imported == (heavy if anew else set())
    return not anew, done.stdout


def change(path: Path, old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        text = (folder / path).read_text("utf-8")
        assert old in text
        (folder / path).write_text(text.replace(old, new), "utf-8")

    return edit


def unseen(folder: Path) -> None:
    """An edit that neither the time of the file nor its size shows."""
    file = folder / "src/access.py"
    state = file.stat()
    text = file.read_text("utf-8")
    file.write_text(text.replace("Too much", "Too many"), "utf-8")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


def added(name: str, text: str) -> Callable[[Path], None]:
    def add(folder: Path) -> None:
        (folder / name).write_text(text, "utf-8")

    return add


MAIN = Path("src/main.py")
EDITS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a docstring": (change(MAIN, "    note = await", '    """Show one."""\n    note = await'), "Show one."),
    "a handler": (change(MAIN, '404, "Note not found"', '410, "Note not found"'), '"410"'),
    "a helper": (change(Path("src/access.py"), "CoreError(403", "CoreError(402"), '"402"'),
    "a field": (change(MAIN, "    limit: int = 20", "    limit: int = 21"), '"default": 21'),
    "the middleware": (change(MAIN, "timeout(duration=", "timeout(status=524, duration="), '"524"'),
    "the schema": (change(Path("migrations/0001_notes.sql"), "title TEXT", "title INTEGER"), ""),
    "a migration": (added("migrations/0003_more.sql", "CREATE TABLE more (id INTEGER PRIMARY KEY);\n"), ""),
    "the configuration": (change(Path("wrangler.toml"), 'name = "notes"', 'name = "lists"'), '"title": "lists"'),
    "local secrets": (change(Path(".dev.vars"), "SECRET", "# more\nSECRET"), ""),
    "the version": (added("pyproject.toml", '[project]\nname = "notes"\nversion = "2.5.0"\n'), '"version": "2.5.0"'),
    "mypy's options": (added(".mypy.ini", "[mypy]\npretty = True\n"), ""),
    "a module in front of another": (added("src/colorsys.py", ""), ""),
}


@pytest.mark.slow
def test_nothing_stale_is_taken_up(notes: Path) -> None:
    taken_up_again(notes)
    for what, (edit, expected) in EDITS.items():
        edit(notes)
        taken_up, document = is_taken_up(notes)
        assert not taken_up, what
        assert expected in document, what
        assert taken_up_again(notes) == document, what
    unseen(notes)
    assert not is_taken_up(notes)[0]


def test_a_file_that_was_only_touched_changes_nothing(notes: Path) -> None:
    is_taken_up(notes)
    os.utime(notes / MAIN)
    taken_up_again(notes)
    other = {**SHOWS_IMPORTS, "NOTES_REGION": "north"}
    assert "core.openapi.document" in run_alone("openapi", folder=notes, **other).stderr, (
        "an import may read a variable"
    )


def test_what_no_file_tells_is_never_kept(notes: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    shutil.copytree(notes, folder, ignore=shutil.ignore_patterns(".core"))
    main = folder / "src/main.py"
    main.write_text(f"{main.read_text('utf-8')}\n\nimport subprocess\n\nsubprocess.run(['true'])\n", "utf-8")
    assert not is_taken_up(folder)[0]
    assert not is_taken_up(folder)[0]


@pytest.mark.slow
def test_a_run_without_a_change_costs_little_more_than_one_of_mypy(tmp_path: Path) -> None:
    folder = with_libraries(copy_of_users(tmp_path))
    times(folder, 2)
    ours, theirs = times(folder, 3)
    assert ours <= MOST * theirs
