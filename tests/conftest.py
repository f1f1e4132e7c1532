"""Settings of all tests: which of them `make check` leaves out, and how properties are tried."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.support.libraries import checked_libraries
from tests.support.once import made_once

# How long an example takes says how busy the machine is, and nothing of the code. CI tries the same examples every
# time, so that a red run is the change's doing; everyone else's runs look for new ones: ten in `make check`, and
# thousands in `make fuzz`.
settings.register_profile(
    "core",
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
settings.register_profile("quick", settings.get_profile("core"), max_examples=10)
settings.register_profile("fuzz", settings.get_profile("core"), max_examples=5000, derandomize=False)
settings.load_profile("core")

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would every program that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Looking for garbage took an eighth of the time of tests that run in this process, and a sixth of collecting them.
gc.set_threshold(50_000)
gc.disable()

HERE = Path(__file__).parent

RUNTIME = HERE / "runtime"
"""Folder whose own files have the tests inside workerd, and its folders tests of what makes and starts workers."""

SLOW = (
    *("backends", "cli", "examples", "explorer", "dev", "messages", "mypy_plugin", "openapi", "program", "typing"),
    *("attacks/test_abandoned.py", "attacks/test_linear.py", "attacks/test_surrogates.py", "hosts/test_otel.py"),
    *("mcp/test_conformance.py", "mcp/test_imports.py", "runtime/tools/test_compiled.py"),
    *("runtime/tools/test_keeper.py", "test_docstrings.py", "testing/simulation"),
)
"""Folders and files whose tests start processes, servers, browsers or type checkers, import the libraries of those, try
hundreds of schedules, send long texts, or read every file.
"""

QUICK = ("", *(f"/test_{name}.py" for name in ("declared", "findings", "generate", "places")))
"""Files of `program`, and itself, that `make check` takes all the same: 80 tests in a second."""

FIRST = ("newcomer", "runtime")
"""Folders whose tests mostly wait, for a package registry or a worker: they begin first, beside what computes."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out folders and files of which no test would run: importing them takes as long as the quick tests."""
    expression = str(config.option.markexpr)
    slow = collection_path != HERE and is_slow(collection_path)
    runtime = collection_path.parent == RUNTIME and collection_path.name.startswith("test_")
    return True if (slow and expression.startswith("not slow")) or (runtime and "not runtime" in expression) else None


@cache
def folder_of(path: Path) -> str:
    """The folder of `tests/` that a file is in; "" for any other file. Kept, since a file has many tests."""
    return path.relative_to(HERE).parts[0] if path.is_relative_to(HERE) else ""


@cache
def is_slow(path: Path) -> bool:
    """True for a file or folder that `make check` leaves out, and for everything in it."""
    name = str(path).removeprefix(f"{HERE}/")
    within = any(name == slow or name.startswith(f"{slow}/") for slow in SLOW)
    return within and not (name.startswith("program") and name.removeprefix("program") in QUICK)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what takes long as `slow`. Several processes begin with that, and fill the end with what is quick.

    The documentation is built once, by the first file of tests that reads it, which is the first of all. The others
    come when it is there, so that no process waits for it, and none is left alone with the longest of them.
    """
    readers = list(dict.fromkeys(item.path for item in items if "site" in getattr(item, "fixturenames", ())))

    def turn(item: pytest.Item) -> int:
        if folder_of(item.path) in FIRST or item.path in readers[:1]:
            return 0
        if item.path in readers:
            return 1
        return 2 if item.get_closest_marker("slow") else 3

    for item in items:
        if is_slow(item.path) or "pytester" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    if hasattr(config, "workerinput"):
        items.sort(key=turn)


@pytest.fixture(scope="session")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """mypy's cache for the strict projects of this process. It has `core` and its libraries, which one process of the
    run has checked.
    """
    made = made_once(tmp_path_factory, "mypy", checked_libraries)
    return Path(shutil.copytree(made / "cache", tmp_path_factory.mktemp("mypy-of-one") / "cache"))


@pytest.fixture(scope="module")
def frozen_heap() -> None:
    """Leave what is there already out of the hundreds of collections of garbage of a module."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish() -> None:
    """Look for garbage from now on, and leave what was collected out of it: that stays until the end."""
    gc.collect()
    gc.freeze()
    gc.enable()
