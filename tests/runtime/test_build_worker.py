"""Answers of a build's workers that are kept: about packages with compiled modules, and CPython itself."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from tests.runtime.conftest import Background

from core.runtime.build_worker import base_of, digest_of, glue_of
from core.runtime.bundle import BundleError
from core.runtime.collect import Collected, collect
from core.runtime.make import check_compiled
from core.runtime.toolchain import Toolchain


def collected(project: Path, main: str = "") -> Collected:
    """An application that imports a package which was installed with a compiled module."""
    project.mkdir(exist_ok=True)
    (project / "main.py").write_text(f"import markupsafe\n{main}")
    found = collect(project, project=project)
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


def test_a_worker_is_asked_once_for_the_same_packages(tools: Toolchain, background: Background, tmp_path: Path) -> None:
    glue = background.run(glue_of(tools))
    first = collected(tmp_path / "project")
    without_worker = attrs.evolve(tools, workerd=tmp_path / "nowhere")

    told: list[str] = []
    background.run(check_compiled(first, tmp_path, tools, glue, told.append))
    background.run(check_compiled(first, tmp_path, without_worker, glue, told.append))
    assert [line.lower().split()[:2] for line in told] == [["trying", "markupsafe"]]
    edited = collected(tmp_path / "project", "edited = True\n")
    background.run(check_compiled(edited, tmp_path, without_worker, glue))

    changed = attrs.evolve(first, files={**first.files, "markupsafe/__init__.py": b"import markupsafe._speedups\n"})
    with pytest.raises(FileNotFoundError, match="nowhere"):
        background.run(check_compiled(changed, tmp_path, without_worker, glue))
    for toolchain in (tools, without_worker):
        with pytest.raises(BundleError, match=r"its module .*_speedups is compiled"):
            background.run(check_compiled(changed, tmp_path, toolchain, glue))

    cache = tmp_path / ".core" / "cache" / "compiled.json"
    cache.write_bytes(cache.read_bytes()[:-3])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        background.run(check_compiled(first, tmp_path, without_worker, glue))
    background.run(check_compiled(first, tmp_path, tools, glue))
    background.run(check_compiled(first, tmp_path, without_worker, glue))


def test_a_key_tells_apart_where_a_part_ends() -> None:
    assert digest_of([b"ab", b"c"]) != digest_of([b"a", b"bc"])
