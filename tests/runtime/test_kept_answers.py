"""Answers of a build's workers, kept beside the toolchain: about packages with compiled modules, and CPython itself."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from tests.runtime.conftest import Background

from core.runtime import kept_answers
from core.runtime.build_worker import base_of, glue_of
from core.runtime.bundle import BundleError
from core.runtime.collect import Collected, collect
from core.runtime.make import check_compiled
from core.runtime.toolchain import Toolchain


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CORE_RUNTIME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "compiled.json"


def collected(project: Path, main: str = "") -> Collected:
    """An application that imports a package which was installed with a compiled module."""
    project.mkdir(exist_ok=True)
    (project / "main.py").write_text(f"import markupsafe\n{main}")
    found = collect(project / "main.py", project=project)
    assert [*map(str.lower, found.compiled)] == ["markupsafe"]
    return found


def test_cpython_without_an_application_is_kept_until_its_worker_changes(
    tools: Toolchain, background: Background, tmp_path: Path
) -> None:
    glue = background.run(glue_of(tools))
    first = background.run(base_of(attrs.evolve(tools, root=tmp_path), glue))
    without_worker = attrs.evolve(tools, root=tmp_path, workerd=tmp_path / "nowhere")
    assert background.run(base_of(without_worker, glue)) == first
    with pytest.raises(FileNotFoundError, match="nowhere"):
        background.run(base_of(without_worker, glue[1:]))


def test_a_worker_is_asked_once_for_the_same_packages(
    tools: Toolchain, background: Background, tmp_path: Path, cache: Path
) -> None:
    glue = background.run(glue_of(tools))
    first = collected(tmp_path / "project")
    without_worker = attrs.evolve(tools, workerd=tmp_path / "nowhere")

    told: list[str] = []
    background.run(check_compiled(first, tools, glue, told.append))
    background.run(check_compiled(first, without_worker, glue, told.append))
    assert [line.lower().split()[:2] for line in told] == [["trying", "markupsafe"]]
    edited = collected(tmp_path / "project", "edited = True\n")
    background.run(check_compiled(edited, without_worker, glue))

    changed = attrs.evolve(first, files={**first.files, "markupsafe/__init__.py": b"import markupsafe._speedups\n"})
    with pytest.raises(FileNotFoundError, match="nowhere"):
        background.run(check_compiled(changed, without_worker, glue))
    for toolchain in (tools, without_worker):
        with pytest.raises(BundleError, match=r"its module .*_speedups is compiled"):
            background.run(check_compiled(changed, toolchain, glue))

    cache.write_bytes(cache.read_bytes()[:-3])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        background.run(check_compiled(first, without_worker, glue))
    background.run(check_compiled(first, tools, glue))
    background.run(check_compiled(first, without_worker, glue))


def test_the_oldest_answers_go_first(cache: Path) -> None:
    for number in range(70):
        kept_answers.keep(str(number), {"package": [str(number), None]})
    assert [*json.loads(cache.read_bytes())] == [str(number) for number in range(6, 70)]
    assert kept_answers.kept("5") is None
    assert kept_answers.kept("69") == {"package": ["69", None]}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"1": 2}', b"\xff"])
def test_a_file_that_is_no_cache_is_rewritten(content: bytes, cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_bytes(content)
    assert kept_answers.kept("1") is None
    kept_answers.keep("2", {})
    assert kept_answers.kept("2") == {}
    assert [file.name for file in cache.parent.iterdir()] == ["compiled.json"]


def test_a_folder_that_cannot_be_written_keeps_nothing(cache: Path) -> None:
    cache.parent.write_text("a file")
    kept_answers.keep("1", {})
    assert kept_answers.kept("1") is None


def test_a_key_tells_apart_where_a_part_ends() -> None:
    assert kept_answers.key_of([b"ab", b"c"]) != kept_answers.key_of([b"a", b"bc"])
