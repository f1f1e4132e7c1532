"""Every Python snippet of a page shows its imports: a name is imported, defined,
or marked as one of a snippet above.
"""

from __future__ import annotations

import importlib.util
import re
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]


@pytest.fixture(scope="module")
def snippets() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_snippets", ROOT / "docs" / "snippets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expanded(snippets: Any, page: str) -> str:
    """A page with every example in its place."""

    def put(found: re.Match[str]) -> str:
        file = next(base / found[1] for base in snippets.BASES if (base / found[1]).is_file())
        return str(snippets.section(file.read_text("utf-8"), found[2]).code) if file.suffix == ".py" else ""

    return str(snippets.INCLUDE.sub(put, snippets.completed(page)))


def mistakes(snippets: Any, page: str) -> list[str]:
    """The names that a snippet of a page has from nowhere."""
    found: list[str] = []
    above: set[str] = set()
    for block in snippets.FENCE.finditer(expanded(snippets, page)):
        code = textwrap.dedent(block[3])
        noted = {
            name for line in re.findall(rf"^{snippets.NOTE}(.+)$", code, re.MULTILINE) for name in line.split(", ")
        }
        first = code.strip().splitlines()[0]
        found += [f"{first}: nothing above has {name}" for name in sorted(noted - above)]
        found += [f"{first}: {name} is neither imported nor defined" for name in sorted(snippets.used(code) - noted)]
        above |= snippets.defined(code)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_snippet_has_what_it_uses(page: Path, snippets: ModuleType) -> None:
    assert mistakes(snippets, page.read_text("utf-8")) == []


def test_a_name_from_nowhere_is_found(snippets: ModuleType) -> None:
    page = (
        "```python\nfrom core import Request\n```\n\n```python\n# As above: Request, Env\napp.use(Request, Env)\n```\n"
    )
    assert mistakes(snippets, page) == [
        "# As above: Request, Env: nothing above has Env",
        "# As above: Request, Env: app is neither imported nor defined",
    ]


def test_a_part_of_an_example_has_its_imports_and_short_definitions(snippets: ModuleType) -> None:
    page = '```python\n--8<-- "docs/examples/middleware/sharing.py:app"\n```\n'
    code = snippets.completed(page).splitlines()
    assert "from core.middleware.cors import cors" in code
    assert "class Env(Bindings):" in code
    assert code.index("class Env(Bindings):") < code.index("app = create_app(Env)")
