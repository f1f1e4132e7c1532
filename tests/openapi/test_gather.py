"""A program from one run to the next: what changed is seen, and the order of everything is that of the source."""

from __future__ import annotations

import importlib
import json
import random
import sys
from pathlib import Path

import mypy.build  # first, or mypy's modules import each other in a circle  # noqa: F401
import pytest
from tests.support.command_line import run
from tests.support.libraries import with_libraries

from core.errors import DeveloperError
from core.openapi.document import describe
from core.openapi.gather import gather
from core.openapi.routes import application_facts
from core.openapi.written import as_json

MAIN = """
import kinds
from core import Request, Response, create_app

app = create_app()

@app.get("/")
async def show(req: Request, res: Response) -> None:
    res.json(kinds.one())
"""
KINDS = """
import enum
from typing import TypedDict

class Zone(enum.Enum):
    WEST = "west"
    EAST = "east"
    NORTH = "north"

class Row(TypedDict):
    zeta: int
    alpha: str
    zone: Zone

def one() -> Row:
    return {"zeta": 1, "alpha": "a", "zone": Zone.EAST}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with_libraries(tmp_path)
    (tmp_path / "wrangler.toml").write_text('name = "kinds"\nmain = "app.py"\n')
    (tmp_path / "app.py").write_text(MAIN)
    (tmp_path / "kinds.py").write_text(KINDS)
    return tmp_path


def document(root: Path) -> str:
    done = run("openapi", folder=root)
    assert done.returncode == 0, done.stderr
    return done.stdout


def document_here(root: Path) -> str:
    """The same without a process of its own, which spends most of its time on imports."""
    for name in ("app", "kinds"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    app = importlib.import_module("app").app
    facts = application_facts(app, title="kinds", module="app")
    gathered = gather("app", source=root, root=root, classes=facts.classes)
    return as_json(describe(facts, gathered.program).document)


def test_a_document_is_the_same_cold_and_warm_and_after_edits_in_any_order(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After edits in any order the document is the same, byte for byte, unless they mean something."""
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # edits follow each other within a second
    first = document(root)
    assert first == document_here(root)
    assert first.index('"zeta"') < first.index('"alpha"') < first.index('"zone"'), "as it is written"
    assert first.index('"west"') < first.index('"east"')
    chance = random.Random(2)
    for _ in range(20):
        name = chance.choice(["app.py", "kinds.py"])
        file = root / name
        text = file.read_text()
        match chance.randrange(4):
            case 0:
                file.write_text(text + f"# {chance.random()}\n")
            case 1:
                file.write_text(text + f"\ndef more_{chance.randrange(10**9)}() -> int:\n    return 1\n")
            case 2:
                file.write_text({"app.py": MAIN, "kinds.py": KINDS}[name])
            case _:
                file.write_text(text.replace("alpha: str", "alpha: int").replace('"a"', "1"))
                other = document_here(root)
                assert (other == first) == (name == "app.py")
                file.write_text(text)
        assert document_here(root) == first
    assert document(root) == first


def test_a_variable_of_another_module_is_the_same_by_its_own_name_and_through_the_module(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    (root / "kinds.py").write_text('SHOP = "X-Shop"\nAGE = "X-Age"\nGONE = 410\n')
    (root / "app.py").write_text("""
import kinds as known
from core import CoreError, Request, Response, create_app
from kinds import AGE

app = create_app()

@app.get("/")
async def show(req: Request, res: Response) -> None:
    res.headers[known.SHOP] = "1"
    res.header(AGE, "1").text("here")
    raise CoreError(known.GONE)
""")
    responses = json.loads(document_here(root))["paths"]["/"]["get"]["responses"]
    assert [*responses["200"]["headers"]] == ["X-Shop", "X-Age"]
    assert "410" in responses


def test_a_program_that_mypy_cannot_read_is_told(root: Path) -> None:
    (root / "app.py").write_text("def (")
    with pytest.raises(DeveloperError, match=r"app\.py:1: error"):
        gather("app", source=root, root=root)
