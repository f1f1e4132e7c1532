"""Answers of a build's workers that are kept: bytecode, and what packages do without their compiled modules."""

from __future__ import annotations

import zipfile
from pathlib import Path

import attrs
import pytest
from tests.runtime.conftest import Background, entry_at

from core.errors import DeveloperError
from core.runtime.build_worker import cached_bytecode, digest_of, prepare
from core.runtime.collect import Collected, collect
from core.runtime.make import Inspection, check_compiled, inspect
from core.runtime.plan import Plan
from core.runtime.toolchain import KEY, Toolchain


def collected(project: Path, main: str = "") -> Collected:
    """An application that imports a package which was installed with a compiled module."""
    project.mkdir(exist_ok=True)
    (project / "main.py").write_text(f"import markupsafe\n{main}")
    found = collect(project, project=project)
    assert [*map(str.lower, found.compiled)] == ["markupsafe"]
    return found


def test_the_standard_library_is_compiled_once_for_an_installation(
    tools: Toolchain, background: Background, tmp_path: Path
) -> None:
    installed = attrs.evolve(tools, root=tmp_path)
    background.run(prepare(installed))
    assert installed.adapters
    with zipfile.ZipFile(installed.compiled_library) as library:
        names = library.namelist()
    assert {"json/__init__.py", "json/__init__.pyc", "asyncio/events.pyc"} <= {*names}
    assert "sqlite3/__init__.pyc" not in names  # no application needs it to start
    background.run(prepare(attrs.evolve(installed, workerd=tmp_path / "nowhere")))


def test_the_bytecode_of_packages_is_kept_by_their_sources(
    tools: Toolchain, background: Background, tmp_path: Path
) -> None:
    (tmp_path / "main.py").write_text("import core\napp = core.create_app()\n")
    found = collect(tmp_path, project=tmp_path)
    background.run(prepare(tools))
    entry = entry_at(tmp_path / "main.py")
    installed = attrs.evolve(tools, root=tmp_path / "root")
    installed.root.mkdir()
    for file in tools.root.glob(f"*-{KEY}.*"):
        (installed.root / file.name).symlink_to(file)

    def seen() -> Inspection:
        return background.run(inspect(found, entry, plan=Plan(), toolchain=installed))

    first = seen()
    kept = cached_bytecode(installed, found.packaged)
    assert kept.keys() == first.bytecode.keys() - {"__pycache__/main.cpython-314.pyc"}
    assert "core/__pycache__/app.cpython-314.pyc" in kept
    assert seen().bytecode == first.bytecode
    edited = {**found.packaged, "core/app.py": b"edited = True\n"}
    assert kept.keys() - cached_bytecode(installed, edited).keys() == {"core/__pycache__/app.cpython-314.pyc"}


def test_a_worker_is_asked_once_for_the_same_packages(tools: Toolchain, background: Background, tmp_path: Path) -> None:
    background.run(prepare(tools))
    first = collected(tmp_path / "project")
    without_worker = attrs.evolve(tools, workerd=tmp_path / "nowhere")

    told: list[str] = []
    background.run(check_compiled(first, tmp_path, tools, told.append))
    background.run(check_compiled(first, tmp_path, without_worker, told.append))
    assert [line.lower().split()[:2] for line in told] == [["trying", "markupsafe"]]
    edited = collected(tmp_path / "project", "edited = True\n")
    background.run(check_compiled(edited, tmp_path, without_worker))

    changed = attrs.evolve(first, files={**first.files, "markupsafe/__init__.py": b"import markupsafe._speedups\n"})
    with pytest.raises(FileNotFoundError, match="nowhere"):
        background.run(check_compiled(changed, tmp_path, without_worker))
    for toolchain in (tools, without_worker):
        with pytest.raises(DeveloperError, match=r"its module .*_speedups is compiled"):
            background.run(check_compiled(changed, tmp_path, toolchain))

    cache = tmp_path / ".core" / "cache" / "compiled.json"
    cache.write_bytes(cache.read_bytes()[:-3])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        background.run(check_compiled(first, tmp_path, without_worker))
    background.run(check_compiled(first, tmp_path, tools))
    background.run(check_compiled(first, tmp_path, without_worker))


def test_a_key_tells_apart_where_a_part_ends() -> None:
    assert digest_of([b"ab", b"c"]) != digest_of([b"a", b"bc"])
