"""The data of modules that is kept beside mypy's cache, and taken until something changes that it was made from."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.analysis.kept import Kept
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
    kept.write("1", files, folders, started)
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


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    shop = _project(tmp_path)
    (shop / ".mypy_cache").write_text("a file")
    _made(shop, _settled())
    assert _read(shop) is None
