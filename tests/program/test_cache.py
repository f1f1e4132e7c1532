"""Results that are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.program import cache as module
from core.program.cache import Cache, stamp, stamps


def test_a_result_is_found_by_its_name_and_key(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.write("routes", ["a", 1], {"found": [1, 2]})
    cache.write("findings", ["b"], [])
    assert cache.read("routes", ["a", 1]) == {"found": [1, 2]}
    assert Cache(tmp_path).read("findings", ["b"]) == []
    assert cache.read("routes", ["a", 2]) is None
    assert cache.read("absent", ["a"]) is None


def test_another_version_of_the_framework_finds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    cache.write("routes", [], 1)
    monkeypatch.setattr(module, "own_version", lambda: "another")
    assert cache.read("routes", []) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"key": 1}', b"\xff", b"null"])
def test_a_broken_file_is_none(tmp_path: Path, content: bytes) -> None:
    cache = Cache(tmp_path)
    cache.write("routes", [], 1)
    (cache.folder / "routes.json").write_bytes(content)
    assert cache.read("routes", []) is None


def test_the_folder_is_no_part_of_the_repository(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.write("routes", [], 1)
    assert (cache.folder / ".gitignore").read_text() == "*\n"


def test_a_stamp_is_of_the_content(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text("a = 1\n")
    before = stamp(str(file))
    state = file.stat()
    file.write_text("a = 2\n")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert stamp(str(file)) != before  # of the same time and the same size
    file.write_text("a = 1\n")
    assert stamp(str(file)) == before


def test_the_stamp_of_a_folder_is_of_its_names(tmp_path: Path) -> None:
    before = stamp(str(tmp_path))
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / ".mypy_cache").mkdir()
    (tmp_path / "notes.md").write_text("")
    assert stamp(str(tmp_path)) == before
    (tmp_path / ".dev.vars").write_text("")
    assert stamp(str(tmp_path)) != before


def test_a_result_lasts_until_one_of_its_files_changes(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    file, absent = tmp_path / "app.py", tmp_path / "other.py"
    file.write_text("a = 1")
    made_of = [str(file), str(absent), str(tmp_path)]
    cache.write("routes", [], 1, files=made_of)
    assert cache.read("routes", []) == 1
    absent.write_text("")
    assert cache.read("routes", []) is None
    cache.write("routes", [], 2, files=made_of)
    file.write_text("a = 2")
    assert cache.read("routes", []) is None


def test_a_file_that_was_written_meanwhile_keeps_nothing(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    file = tmp_path / "app.py"
    file.write_text("a = 1")
    written = file.stat().st_mtime_ns
    cache.write("routes", [], 1, files=[str(file)], since=written)
    assert cache.read("routes", []) is None
    cache.write("routes", [], 1, files=[str(file)], since=written + 1)
    assert cache.read("routes", []) == 1


def test_what_is_not_there_has_an_empty_stamp(tmp_path: Path) -> None:
    assert stamps([str(tmp_path / "absent")]) == {str(tmp_path / "absent"): ""}
