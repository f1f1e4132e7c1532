"""Facts of a whole program from one run to the next: what changed is read anew, and everything else is what it was."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import mypy.build  # first, or mypy's modules import each other in a circle  # noqa: F401  # pyright: ignore[reportUnusedImport]
import pytest

from core.errors import DeveloperError
from core.mypy_plugin.gather import gather
from core.openapi.facts import Answer, ModuleFacts

MAIN = """
import below
from core import Request, Response

async def show(req: Request, res: Response) -> None:
    res.json(below.value())
"""
BELOW = """
def value() -> int:
    return 1
"""


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with the facts of one run, and a copy of both."""
    folder = tmp_path_factory.mktemp("gathered")
    root = folder / "root"
    root.mkdir()
    (root / "app.py").write_text(MAIN)
    (root / "below.py").write_text(BELOW)
    facts(root)
    shutil.copytree(root, folder / "copy")
    return folder


@pytest.fixture
def root(gathered: Path) -> Path:
    """The program as it was after that run."""
    shutil.rmtree(gathered / "root")
    return shutil.copytree(gathered / "copy", gathered / "root")


def facts(root: Path) -> dict[str, ModuleFacts]:
    return {module.module: module for module in gather("app", source=root, root=root).modules}


def body(root: Path) -> object:
    (answer,) = [each for each in facts(root)["app"].functions[0].effects if isinstance(each, Answer)]
    return answer.body


def test_facts_follow_what_changes_and_stay_where_nothing_does(root: Path) -> None:
    first = facts(root)
    assert facts(root) == first, "all from the cache"
    (root / "app.py").write_text(MAIN + "    # another comment\n")
    assert facts(root) == first, "a module that is checked again, beside one that is not"
    (root / "below.py").write_text(BELOW.replace("int", "str").replace("1", "'x'"))
    assert body(root) == {"type": "string"}, "an interface that changed under a module that did not"


def test_two_edits_of_one_size_in_one_second_are_both_seen(root: Path) -> None:
    """mypy compares whole seconds, and a run takes less than one."""
    file, now = root / "app.py", time.time()
    for status in (201, 202):
        file.write_text(MAIN.replace("res.json", f"res.status({status}).json"))
        os.utime(file, (now, now))
        (answer,) = [each for each in facts(root)["app"].functions[0].effects if isinstance(each, Answer)]
        assert answer.status == (status,)


def test_facts_that_are_gone_or_broken_are_read_anew(root: Path) -> None:
    first = facts(root)
    folder = root / ".mypy_cache" / "core-openapi" / "facts"
    (folder / "below.json").unlink()
    assert facts(root) == first
    (folder / "app.json").write_text("{")
    assert facts(root) == first


def test_facts_of_a_run_that_was_cut_short_are_read_anew(root: Path) -> None:
    first = facts(root)
    folder = root / ".mypy_cache" / "core-openapi" / "facts"
    (folder / "finished.json").unlink()
    (folder / "app.json").write_text((folder / "below.json").read_text())
    assert facts(root) == first


def test_another_version_of_the_framework_reads_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = facts(root)
    folder = root / ".mypy_cache" / "core-openapi" / "facts"
    (folder / "app.json").write_text((folder / "below.json").read_text())
    monkeypatch.setattr("core.mypy_plugin.gather.OWN_VERSION", "another")
    assert facts(root) == first


def test_a_program_that_mypy_cannot_read_is_told(root: Path) -> None:
    (root / "app.py").write_text("def (")
    with pytest.raises(DeveloperError, match=r"app\.py:1: error"):
        gather("app", source=root, root=root)
