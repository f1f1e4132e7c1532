"""A file of a cache: whole, or as it was."""

from __future__ import annotations

import os
from pathlib import Path

from core.program.cache import write_cache


def test_it_makes_the_folder_and_leaves_nothing_but_the_file(tmp_path: Path) -> None:
    file = tmp_path / "of" / "a tool" / "results.json"
    write_cache(file, b"first")
    write_cache(str(file), b"second")
    assert [path.read_bytes() for path in file.parent.iterdir()] == [b"second"]


def test_who_reads_meanwhile_has_the_old_content_whole(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    write_cache(file, b"first")
    with file.open("rb") as reader:
        write_cache(file, b"second")
        assert reader.read() == b"first"


def test_a_place_that_cannot_be_written_stays_empty(tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    write_cache(tmp_path / "a file" / "results.json", b"first")
    assert os.listdir(tmp_path) == ["a file"]
