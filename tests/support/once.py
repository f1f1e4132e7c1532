"""Work that several processes of one run of the tests need, and one of them does."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

__all__ = ["made_once"]


def made_once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder `name`, which the first process that asks for it fills with `make`. It is for all of them to read."""
    base = tmp_path_factory.getbasetemp()
    if base.name.startswith("popen-"):  # a process of pytest-xdist: the folder of the whole run is above its own
        base = base.parent
    folder = base / name
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = base / f"{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)  # of a process that failed
            partial.mkdir()
            make(partial)
            partial.rename(folder)
    return folder
