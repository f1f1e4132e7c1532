"""What a worker loads of `core.mcp`: nothing where it makes no server, and with one only what every server needs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from benchmarks.mcp import IMPORT, READY

WITHOUT = f"{READY}\napp = create_app()\nasync def show(req, res): ...\napp.get('/', show)\napp.check()"
MODULES = ["", ".answers", ".content", ".messages", ".registered", ".server"]


def loaded(program: str) -> set[str]:
    shown = "\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program + shown], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


def test_an_application_without_a_server_loads_nothing_of_it() -> None:
    assert not [name for name in loaded(WITHOUT) if name.startswith("core.mcp")]


@pytest.mark.parametrize("made", ["", "\napp = create_app()\nmcp = MCP(app, 'notes')\napp.check()"])
def test_a_server_loads_six_modules_of_it_and_no_library(made: str) -> None:
    added = loaded(f"{READY}\n{IMPORT}{made}") - loaded(READY)
    assert sorted(name for name in added if name.startswith("core.mcp")) == [f"core.mcp{name}" for name in MODULES]
    assert {name for name in added if not name.startswith("core.")} == set()


def test_a_server_with_subscriptions_loads_what_it_takes_to_be_an_object() -> None:
    added = loaded(f"{READY}\n{IMPORT}, Subscriptions") - loaded(f"{READY}\n{IMPORT}")
    assert {name for name in added if name.startswith("core.mcp")} == {"core.mcp.subscriptions"}
