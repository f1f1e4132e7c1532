"""The results that a run of mypy leaves for the next, which are never those of another configuration or database."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from core.analysis.results import Results
from core.analysis.settings import Project

SQL = "SELECT name FROM users"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0001.sql").write_text("CREATE TABLE users (name TEXT NOT NULL);\n")
    (tmp_path / ".dev.vars").write_text("KEY=not-for-the-cache\n")
    (tmp_path / "wrangler.toml").write_text(
        'name = "shop"\nmain = "app.py"\n[[d1_databases]]\nbinding = "DB"\ndatabase_name = "shop"\ndatabase_id = "1"\n'
    )
    return tmp_path


def _results(shop: Path) -> Results:
    return Results(str(shop / "cache"), "1")


def _statement(shop: Path) -> tuple[str, Any] | None:
    project = Project(str(shop / "mypy.ini"), (), _results(shop))
    found = project.statement(str(shop / "app.py"), "DB", SQL)
    project.keep_statements(str(shop / "app.py"))
    return found


def _kept(shop: Path) -> list[bytes]:
    return [path.read_bytes() for path in (shop / "cache" / "core-plugin").iterdir()]


def test_the_facts_about_a_statement_are_those_of_a_run_that_keeps_nothing(shop: Path) -> None:
    fresh = Project(str(shop / "mypy.ini")).statement(str(shop / "app.py"), "DB", SQL)
    assert fresh is not None
    assert _statement(shop) == fresh
    kept = _kept(shop)
    assert len(kept) == 2
    assert _statement(shop) == fresh
    assert sorted(_kept(shop)) == sorted(kept)


def test_a_database_whose_migrations_changed_is_asked_again(shop: Path) -> None:
    _statement(shop)
    (shop / "migrations" / "0002.sql").write_text("ALTER TABLE users RENAME COLUMN name TO nick;\n")
    found = _statement(shop)
    assert found is not None
    assert [problem.message for problem in found[1].problems] != []


def test_a_configuration_that_changed_is_read_again(shop: Path) -> None:
    _statement(shop)
    text = (shop / "wrangler.toml").read_text()
    (shop / "wrangler.toml").write_text(text.replace('"DB"', '"ORDERS"') + "[vars]\nORIGIN = 1\n")
    project = Project(str(shop / "mypy.ini"), (), _results(shop))
    assert {*project.configured_for(str(shop / "app.py")).configurations[0].bindings} == {"ORDERS", "ORIGIN", "KEY"}


def test_no_secret_is_kept(shop: Path) -> None:
    _statement(shop)
    assert all(b"not-for-the-cache" not in content for content in _kept(shop))
    assert any(b"KEY" in content for content in _kept(shop))


def test_a_result_of_another_key_or_version_is_none(shop: Path) -> None:
    _results(shop).write("a", "key", {"b": 1})
    assert _results(shop).read("a", "key") == {"b": 1}
    assert _results(shop).read("a", "other") is None
    assert _results(shop).read("b", "key") is None
    assert Results(str(shop / "cache"), "2").read("a", "key") is None


class _Runs:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("ran",)


@pytest.mark.parametrize("content", [pickle.dumps(_Runs()), b"", b"\x80\x05", pickle.dumps({"a": 1})[:-3]])
def test_a_file_that_is_no_result_is_none_and_runs_nothing(
    shop: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    _results(shop).write("a", "key", 1)
    (file,) = (shop / "cache" / "core-plugin").iterdir()
    file.write_bytes(file.read_bytes()[:64] + content)
    assert _results(shop).read("a", "key") is None
    assert not (shop / "ran").exists()
