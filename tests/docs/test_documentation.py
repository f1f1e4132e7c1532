"""The documentation builds strictly, has every public name, and shows every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zlib
from importlib import import_module
from pathlib import Path

import pytest

import core
from core.cli import COMMANDS

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built documentation. A broken link, an unknown name or a page that no menu has would fail here."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def inventory(site: Path) -> set[str]:
    """Every name that the reference has an entry for."""
    data = (site / "objects.inv").read_bytes()
    text = zlib.decompress(data.split(b"\n", 4)[4]).decode()
    return {line.split(" ", 1)[0] for line in text.splitlines()}


def home(package: str, name: str) -> str:
    value = getattr(import_module(package), name)
    return f"{getattr(value, '__module__', package)}.{name}"


@pytest.mark.parametrize("package", ["core", "core.http", "core.testing"])
def test_every_public_name_is_in_the_reference(package: str, inventory: set[str]) -> None:
    names = [
        name
        for name in import_module(package).__all__
        if not isinstance(getattr(import_module(package), name), type(core))
    ]

    missing = [name for name in names if not {f"{package}.{name}", home(package, name)} & inventory]

    assert missing == []


def test_every_middleware_is_in_the_reference(inventory: set[str]) -> None:
    missing: list[str] = []
    for file in sorted((ROOT / "src" / "core" / "middleware").glob("*.py")):
        if file.stem not in ("__init__", "options"):
            module = import_module(f"core.middleware.{file.stem}")
            names = [name for name in module.__all__ if callable(getattr(module, name)) and not name[0].isupper()]
            missing += [f"{module.__name__}.{name}" for name in names if f"{module.__name__}.{name}" not in inventory]
    assert missing == []


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
