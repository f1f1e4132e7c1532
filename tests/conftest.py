"""What all tests share: which of them `make check` leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent

SLOW = ("backends", "cli", "examples", "explorer", "hosts/dev", "mypy_plugin", "newcomer", "typing")
"""Folders whose tests start processes, servers, browsers or type checkers."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes long as `slow`."""
    folders = [HERE / folder for folder in SLOW]
    for item in items:
        if any(folder in item.path.parents for folder in folders):
            item.add_marker(pytest.mark.slow)
