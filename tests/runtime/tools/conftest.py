"""An application to serve with `core serve --python`, whose files a test may change."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Command

SHOP = Path(__file__).parent / "shop"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The application's files, to be changed."""
    return Path(shutil.copytree(SHOP, tmp_path / "shop", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture
def serve(shop: Path) -> Iterator[Callable[..., Command]]:
    """Start `core serve --python` on free ports; it is stopped at the end of the test."""
    started: list[Command] = []

    def serve(*options: str, **given: Any) -> Command:
        arguments = ["serve", "--python", "--port", "0", "--health", "127.0.0.1:0", "--workers", "2", *options]
        started.append(Command(*arguments, folder=shop, **given))
        return started[-1]

    yield serve
    for command in started:
        if command.process.poll() is None:
            command.finish()
