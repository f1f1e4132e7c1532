"""The data of modules that is kept beside mypy's cache, and taken until something changes that it was made from."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.analysis.kept import Kept
from core.analysis.results import Results
from core.analysis.settings import Project

LATER = 10**10
"""Nanoseconds after which the files of a test count as left alone."""


def _project(root: Path) -> Path:
    shop = root / "shop"
    (shop / "migrations").mkdir(parents=True)
    (shop / "inner").mkdir()
    (shop / "mypy.ini").write_text("[mypy]\nplugins = core.mypy_plugin\n")
    (shop / "wrangler.toml").write_text('name = "shop"\nmain = "app.py"\n[durable_objects]\nbindings = []\n')
    (shop / ".dev.vars").write_text("KEY=1\n")
    (shop / "migrations" / "0001.sql").write_text("CREATE TABLE users (id INTEGER PRIMARY KEY);\n")
    (shop / "app.py").write_text('from core import create_app\napp = create_app()\napp.db.prepare("SELECT 1")\n')
    (shop / "inner" / "routes.py").write_text('from core import Router\nrouter = Router()\nrouter.get("/a/:id")\n')
    return shop


def _made(shop: Path, started: int) -> Kept:
    project = Project(str(shop / "mypy.ini"))
    found = project.all_data()
    assert found is not None
    kept = Kept(str(shop / ".mypy_cache"), "shop")
    kept.data, files, folders = found
    kept.version = "1"
    kept.write(files, folders, started)
    return kept


def _read(shop: Path) -> Kept | None:
    kept = Kept(str(shop / ".mypy_cache"), "shop")
    return kept if kept.read() else None


def _settled() -> int:
    return time.time_ns() + LATER


def test_the_data_of_the_last_run_is_that_of_the_next(tmp_path: Path) -> None:
    shop = _project(tmp_path)
    made = _made(shop, _settled())
    (shop / "__pycache__").mkdir()
    (shop / ".git").mkdir()
    read = _read(shop)
    assert read is not None
    assert (read.data, read.version) == (made.data, "1")
    assert read.data[str(shop / "app.py")] is not None


CHANGES: dict[str, Callable[[Path], object]] = {
    "a module": lambda shop: (shop / "app.py").write_text("from core import create_app\n"),
    "a module of the same length": lambda shop: (shop / "app.py").write_bytes(b"#" * (shop / "app.py").stat().st_size),
    "a new module": lambda shop: (shop / "inner" / "more.py").write_text("class A(B): ...\n"),
    "a module less": lambda shop: (shop / "inner" / "routes.py").unlink(),
    "a new folder": lambda shop: (shop / "other").mkdir(),
    "the configuration": lambda shop: (shop / "wrangler.toml").write_text('name = "other"\nmain = "app.py"\n'),
    "a nearer configuration": lambda shop: (shop / "inner" / "wrangler.json").write_text("{}"),
    "the options": lambda shop: (shop / "mypy.ini").write_text("[mypy]\n[core-mypy]\nenv = a.Env\n"),
    "a secret": lambda shop: (shop / ".dev.vars").write_text("OTHER=1\n"),
    "a new file of secrets": lambda shop: (shop / ".env.local").write_text("OTHER=1\n"),
    "a migration": lambda shop: (shop / "migrations" / "0001.sql").write_text("CREATE TABLE posts (id INTEGER);\n"),
    "a new migration": lambda shop: (shop / "migrations" / "0002.sql").write_text("DROP TABLE users;\n"),
    "a project around": lambda shop: (shop.parent / "pyproject.toml").write_text("[project]\n"),
    "a broken file": lambda shop: (shop / ".mypy_cache" / "core-plugin.json").write_text('{"key": [], "stamps'),
    "another file": lambda shop: (shop / ".mypy_cache" / "core-plugin.json").write_text("[]"),
    "no file": lambda shop: (shop / ".mypy_cache" / "core-plugin.json").unlink(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_nothing_is_taken_after_a_change(tmp_path: Path, name: str) -> None:
    shop = _project(tmp_path)
    _made(shop, _settled())
    CHANGES[name](shop)
    assert _read(shop) is None


def test_nothing_is_kept_of_files_that_may_change_within_their_last_time(tmp_path: Path) -> None:
    shop = _project(tmp_path)
    _made(shop, time.time_ns())
    assert _read(shop) is None


def test_what_was_asked_otherwise_is_not_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = _project(tmp_path)
    _made(shop, _settled())
    assert not Kept(str(shop / ".mypy_cache"), "another").read()
    package = tmp_path / "site" / "extension-1.0.dist-info"
    package.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(package.parent), *sys.path])
    assert _read(shop) is None
    _made(shop, _settled())
    assert _read(shop) is not None
    (package / "entry_points.txt").write_text("[core.extensions]\n")
    assert _read(shop) is None


def test_the_version_is_known_until_a_file_of_the_plugin_changes(tmp_path: Path) -> None:
    shop = _project(tmp_path)
    own = tmp_path / "rule.py"
    own.write_text("A = 1\n")
    kept = Kept(str(shop / ".mypy_cache"), "shop")
    kept.version, kept.made_of = "1", [str(own)]
    kept.write([str(shop / "app.py")], {}, _settled())
    (shop / "app.py").write_text("from core import create_app\n")
    read = Kept(str(shop / ".mypy_cache"), "shop")
    assert (read.read(), read.version, read.made_of) == (False, "1", [str(own)])
    own.write_text("A = 10\n")
    read = Kept(str(shop / ".mypy_cache"), "shop")
    assert (read.read(), read.version, read.made_of) == (False, "", ())


LINKS = """\
from core import Request
from inner.routes import show


def home(req: Request) -> str:
    return req.url_for(show, id=7)
"""
ROUTES = """\
from core import App, Router

router = Router()


@router.get("/:id")
def show(req: object, res: object) -> None: ...


def mounted(app: App) -> None:
    app.use(prefix(), router)
"""
EDITS: dict[str, Callable[[Path], object]] = {
    **CHANGES,
    "nothing": lambda shop: None,
    "a route": lambda shop: (shop / "inner" / "routes.py").write_text(ROUTES.replace("/:id", "/:name")),
    "a prefix": lambda shop: (shop / "more.py").write_text('def prefix() -> str:\n    return "/:tenant"\n'),
    "a table": lambda shop: (shop / "more.py").write_text('SQL = "CREATE TABLE users (id)"\n'),
    "no route": lambda shop: (shop / "inner" / "routes.py").write_text("def show() -> None: ...\n"),
}


def _results(shop: Path) -> Results:
    return Results(str(shop / ".mypy_cache"), "1")


@pytest.mark.parametrize("name", EDITS)
def test_the_data_after_an_edit_is_that_of_a_run_that_keeps_nothing(tmp_path: Path, name: str) -> None:
    shop = _project(tmp_path)
    (shop / "links.py").write_text(LINKS)
    (shop / "inner" / "routes.py").write_text(ROUTES)
    first = Project(str(shop / "mypy.ini"), (), _results(shop))
    first.all_data()
    first.keep_sources(_settled())
    _made(shop, _settled())
    kept = _results(shop).read("sources", "")
    assert {*kept} == {str(shop / name) for name in ("app.py", "links.py", "inner/routes.py")}
    EDITS[name](shop)
    again = Project(str(shop / "mypy.ini"), (), _results(shop))
    fresh = Project(str(shop / "mypy.ini"))
    assert again.all_data() == fresh.all_data()
    assert again.sources == fresh.sources


def test_facts_of_a_source_that_may_change_within_its_last_time_are_not_kept(tmp_path: Path) -> None:
    shop = _project(tmp_path)
    project = Project(str(shop / "mypy.ini"), (), _results(shop))
    project.all_data()
    project.keep_sources(time.time_ns())
    assert _results(shop).read("sources", "") is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    shop = _project(tmp_path)
    (shop / ".mypy_cache").write_text("a file")
    _made(shop, _settled())
    assert _read(shop) is None
