"""Settings of all tests: which of them `make check` leaves out, and how properties are tried."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is, and nothing of the code. CI tries the same examples every
# time, so that a red run is the change's doing; everyone else's runs look for new ones.
settings.register_profile("core", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("core")

HERE = Path(__file__).parent

SLOW = ("backends", "cli", "examples", "explorer", "dev", "mypy_plugin", "newcomer", "openapi", "typing")
"""Folders whose tests start processes, servers, browsers or type checkers."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what takes long as `slow`. Several processes begin with that, and fill the end with what is quick."""
    folders = [HERE / folder for folder in SLOW]
    for item in items:
        if any(folder in item.path.parents for folder in folders):
            item.add_marker(pytest.mark.slow)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)
