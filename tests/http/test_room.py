"""The room itself: its names, and what importing it loads."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from core import http

NOT_BEFORE_THEY_ARE_NEEDED = {
    "cattrs",
    "core.http.domain",
    "email",
    "encodings.idna",
    "encodings.punycode",
    "html",
    "http.cookies",
    "ipaddress",
    "secrets",
    "urllib",
    "uuid",
}


def test_importing_the_values_loads_nothing_that_costs() -> None:
    program = (
        "import sys; from core import http; http.Request('http://a/b?c'); http.json.dumps([1]); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "core.http.request" in loaded
    assert NOT_BEFORE_THEY_ARE_NEEDED.isdisjoint(loaded)


@pytest.mark.parametrize("name", ["", ".cookies", ".headers", ".json"])
def test_public_names_are_there_once(name: str) -> None:
    module = importlib.import_module(f"core.http{name}")
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)
    assert {"Headers", "Request", "Response"} <= set(http.__all__)
