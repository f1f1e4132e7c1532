"""The documentation builds strictly, has every public name, and shows every command."""

from __future__ import annotations

import ast
import re
import zlib
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest

import core
from core.cli import COMMANDS

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def inventory(site: Path) -> set[str]:
    """Every name that the reference has an entry for."""
    data = (site / "objects.inv").read_bytes()
    text = zlib.decompress(data.split(b"\n", 4)[4]).decode()
    return {line.split(" ", 1)[0] for line in text.splitlines()}


def documented() -> list[str]:
    """Every name that a page of the reference documents, under the place it is imported from."""
    pages = sorted((ROOT / "docs" / "reference").rglob("*.md"))
    return [path for page in pages for path in re.findall(r"^::: (.+)$", page.read_text("utf-8"), re.MULTILINE)]


def of_modules(package: str) -> dict[str, list[str]]:
    """The public names of each module of a package."""
    files = sorted((ROOT / "src" / Path(*package.split("."))).glob("[a-z]*.py"))
    modules = [import_module(f"{package}.{file.stem}") for file in files]
    return {module.__name__: getattr(module, "__all__", []) for module in modules}


def values(package: str, names: list[str]) -> dict[str, object]:
    return {f"{package}.{name}": getattr(import_module(package), name) for name in names}


def expected() -> dict[str, object]:
    """The names that the reference must have: those of the packages, and of the modules a program imports from."""
    found = {
        path: value
        for package in ("core", "core.http", "core.testing")
        for path, value in values(package, import_module(package).__all__).items()
        if not isinstance(value, type(core))
    }
    for module in ("core.errors", "core.mcp", "core.passwords", "core.pagination", "core.signing", "core.extensions"):
        found |= values(module, import_module(module).__all__)
    for module, names in of_modules("core.middleware").items():
        found |= {path: value for path, value in values(module, names).items() if path.endswith(f".{module.rpartition('.')[2]}")}  # fmt: skip
    for module, names in of_modules("core.bindings").items():
        if module not in ("core.bindings.kinds", "core.bindings.numbers", "core.bindings.queue_limits"):
            found |= {path: value for path, value in values(module, names).items() if path not in FOR_OTHER_ROOMS}
    return found


FOR_OTHER_ROOMS = {
    "core.bindings.absent.AbsentBinding",
    "core.bindings.durable_object.StorageOperations",
    "core.bindings.durable_object.object_class",
}
"""Public in `core.bindings` for backends and hosts, and of no use to a program."""


def test_every_public_name_is_in_one_place_of_the_reference() -> None:
    entries = documented()
    values = [*map(resolve_name, entries)]
    # A name that is the same object under two paths has one entry: strings and numbers are told apart by their path.
    same = [path for path, value in expected().items() if path not in entries and not any(value is v for v in values)]
    assert same == []
    assert sorted(path for path in entries if entries.count(path) > 1) == []
    classes = [value for value in values if isinstance(value, type)]
    assert [cls for cls in classes if classes.count(cls) > 1] == []


def test_the_reference_has_names_that_can_be_imported_and_nothing_private() -> None:
    for path in documented():
        module, _, name = path.rpartition(".")
        assert "._" not in path
        assert name in import_module(module).__all__, path
        if module not in ("core", "core.http", "core.testing"):
            shorter = [package for package in ("core", "core.testing") if name in import_module(package).__all__]
            shorter = [p for p in shorter if getattr(import_module(p), name) is getattr(import_module(module), name)]
            assert shorter == [], f"{path} is imported from {shorter}"


def test_every_name_that_an_example_imports_is_in_the_reference() -> None:
    entries = set(documented())
    missing: set[str] = set()
    for file in [*(ROOT / "docs" / "examples").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]:
        if file.name == "test_recipes.py":  # a test of the checker, and not an example
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "core":
                module = str(node.module)
                paths = {f"{module}.{name.name}" for name in node.names if module not in INNER}
                missing |= {path for path in paths - entries if not isinstance(resolve_name(path), type(core))}
    assert {
        path for path in missing if not any(resolve_name(path) is resolve_name(entry) for entry in entries)
    } == set()


INNER = {"core.backends.embedded.kv", "core.backends.embedded.store"}
"""The modules that an example of another backend, and not of an application, imports."""


def test_every_entry_was_built_and_is_in_the_overview(site: Path, inventory: set[str]) -> None:
    overview = (site / "reference" / "api" / "index.html").read_text("utf-8")
    assert [path for path in documented() if path not in inventory] == []
    assert [path for path in documented() if f'#{path}"' not in overview] == []


def test_every_command_with_every_option_is_in_the_reference(site: Path) -> None:
    html = (site / "reference" / "command-line" / "index.html").read_text("utf-8")
    for name in COMMANDS:
        assert f"usage: core {name}" in html
    for option in ("--no-reload", "--explorer", "--format", "--with", "--no-migrate"):
        assert option in html


def test_no_page_shows_the_marker_of_an_example_that_was_not_included(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(r"--8\s*(<|&lt;)", page.read_text("utf-8")), page


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="([^"]+)"|<link[^>]*rel="stylesheet"[^>]*href="([^"]+)"', page.read_text("utf-8"))  # fmt: skip
        assert not [address for pair in loaded for address in pair if address.startswith(("http:", "https:", "//"))], (
            page
        )
