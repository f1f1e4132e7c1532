"""A document that is taken up: in next to no time while nothing has changed,
and never after an edit of anything it is made of.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.openapi import MOST, copy_of_users, times
from hypothesis import given
from hypothesis import strategies as st
from tests.support.command_line import run

from core.openapi.kept import Kept

SHOWS_IMPORTS = {"PYTHONPROFILEIMPORTTIME": "1", "PYTEST_CURRENT_TEST": ""}


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, described once."""
    folder = copy_of_users(tmp_path_factory.mktemp("kept"))
    assert not is_taken_up(folder)[0]
    return folder


def taken_up_again(folder: Path) -> str:
    """The document of an earlier run. A run is not kept while another program changes a folder of the import path."""
    found = (is_taken_up(folder) for _ in range(3))
    return next(document for taken_up, document in found if taken_up)


def is_taken_up(folder: Path) -> tuple[bool, str]:
    """Return True if the document is that of an earlier run, and the document."""
    done = run("openapi", folder=folder, **SHOWS_IMPORTS)
    assert done.returncode == 0, done.stderr[-2000:]
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    anew = "core.openapi.document" in imported
    heavy = {"users_api.env", "mypy", "attrs"}
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
    file = folder / "src/users_api/background.py"
    state = file.stat()
    text = file.read_text("utf-8")
    file.write_text(text.swapcase() if text.isupper() else text.replace("e", "a", 1), "utf-8")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


def added(name: str, text: str) -> Callable[[Path], None]:
    def add(folder: Path) -> None:
        (folder / name).write_text(text, "utf-8")

    return add


ROUTES = Path("src/users_api/routes/users.py")
EDITS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a docstring": (change(ROUTES, "    user = await", '    """Show one."""\n    user = await'), ""),
    "a handler": (change(ROUTES, '404, "User not found"', '410, "User not found"'), '"410"'),
    "a helper": (change(Path("src/users_api/auth.py"), "CoreError(403", "CoreError(402"), '"402"'),
    "a field": (change(ROUTES, "    limit: int = 20", "    limit: int = 21"), '"default": 21'),
    "the middleware": (
        change(Path("src/users_api/main.py"), "timeout(duration=", "timeout(status=524, duration="),
        '"524"',
    ),
    "the schema": (change(Path("migrations/0001_users.sql"), "name TEXT", "name TEXT COLLATE NOCASE"), ""),
    "a migration": (added("migrations/0003_more.sql", "CREATE TABLE more (id INTEGER PRIMARY KEY);\n"), ""),
    "the configuration": (change(Path("wrangler.toml"), 'name = "users"', 'name = "people"'), '"title": "people"'),
    "local secrets": (change(Path(".dev.vars"), "JWT_SECRET", "# more\nJWT_SECRET"), ""),
    "the version": (added("pyproject.toml", '[project]\nname = "users"\nversion = "2.5.0"\n'), '"version": "2.5.0"'),
    "mypy's options": (added(".mypy.ini", "[mypy]\nstrict = True\n"), ""),
    "a module in front of another": (added("src/colorsys.py", ""), ""),
}


@pytest.mark.slow
def test_nothing_stale_is_taken_up(users: Path) -> None:
    taken_up_again(users)
    for what, (edit, expected) in EDITS.items():
        edit(users)
        taken_up, document = is_taken_up(users)
        assert not taken_up, what
        assert expected in document, what
        assert taken_up_again(users) == document, what
    unseen(users)
    assert not is_taken_up(users)[0]


def test_a_file_that_was_only_touched_changes_nothing(users: Path) -> None:
    is_taken_up(users)
    os.utime(users / ROUTES)
    taken_up_again(users)
    other = {**SHOWS_IMPORTS, "USERS_API_REGION": "north"}
    assert "core.openapi.document" in run("openapi", folder=users, **other).stderr, "an import may read a variable"


def test_what_no_file_tells_is_never_kept(users: Path, tmp_path: Path) -> None:
    folder = tmp_path / "users"
    shutil.copytree(users, folder, ignore=shutil.ignore_patterns(".core"))
    main = folder / "src/users_api/main.py"
    main.write_text(f"{main.read_text('utf-8')}\n\nimport subprocess\n\nsubprocess.run(['true'])\n", "utf-8")
    assert not is_taken_up(folder)[0]
    assert not is_taken_up(folder)[0]


@pytest.mark.slow
def test_a_run_without_a_change_costs_little_more_than_one_of_mypy(tmp_path: Path) -> None:
    folder = copy_of_users(tmp_path)
    times(folder, 2)
    ours, theirs = times(folder, 3)
    assert ours <= MOST * theirs


FILES = st.dictionaries(
    st.sampled_from(["a.py", "b.py", "inner/c.py", "inner/d.sql", "e.toml"]), st.text("xy\n", max_size=3), min_size=1
)


@given(FILES, FILES)
def test_a_result_is_taken_up_if_and_only_if_all_files_are_as_they_were(
    before: dict[str, str], after: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        times = 10**18, 10**18

        def lay_out(files: dict[str, str]) -> None:
            for old in [*root.rglob("*.*")]:
                if ".core" not in old.parts:
                    old.unlink()
            (root / "inner").mkdir(exist_ok=True)
            for path, text in files.items():
                (root / path).write_text(text)
                os.utime(root / path, ns=times)  # so that a time never shows a change

        lay_out(before)
        kept = Kept(root, "test", {"which": "this"})
        with kept.watching() as watch:
            watch.start += 10**15  # the files were made this moment, but before the run
            for path in before:
                (root / path).read_text()
            assert [*root.iterdir(), *(root / "inner").iterdir()]
        kept.keep("the result", watch, followed=[], folders=[], without=str(root / ".core"))
        assert kept.take_up() == "the result"
        assert Kept(root, "test", {"which": "another"}).take_up() is None
        lay_out(after)
        assert kept.take_up() == ("the result" if before == after else None)


def test_a_file_that_changes_while_it_is_read_is_not_kept(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "test", {})
    file = tmp_path / "a.py"
    file.write_text("1")
    with kept.watching() as watch:
        file.read_text()
        file.write_text("2")
        os.utime(file, ns=(watch.start, watch.start + 1))
    kept.keep("1", watch, followed=[], folders=[], without="/nowhere")
    assert kept.take_up() is None


def test_one_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    kept = Kept(tmp_path, "test", {})
    with kept.watching() as watch:
        pass
    kept.keep([1], watch, followed=[], folders=[], without="/nowhere")
    assert kept.take_up() == [1]
    (file,) = (tmp_path / ".core" / "test").glob("*.json")
    for text in ("", "{", "[]", '{"key": 1}', file.read_text()[:-2]):
        file.write_text(text)
        assert kept.take_up() is None
