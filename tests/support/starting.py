"""Starts of programs for many small tests: the process is a fork of the one that runs the tests.

It does what `python -m core.program.start` does, with the framework imported already, in a tenth of the time.
`tests/program/test_start.py` starts real ones.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import core.program.start
from core.explain.frames import is_own
from core.program import ask
from core.program.entry import Entry
from core.program.importing import file_of
from core.program.table import Table, from_json, to_json

ROOT = Path(__file__).resolve().parents[2]
OF_PROGRAMS = tuple(
    str(ROOT / name)
    for name in ("docs", "examples", "tests/explorer/workshop", "tests/openapi/strangers", "tests/runtime")
)


def _foreign(file: str) -> bool:
    """Return True for what belongs to a program: an example, or one that a test wrote."""
    return file.startswith(OF_PROGRAMS) or (is_own(file) and not file.startswith(str(ROOT)))


_ours: set[str] = set()
"""The names of modules that no program has. A process that was forked copies each page of memory that it writes to, as
Python does to whatever it looks at: thousands of modules took longer than the fork.
"""


def in_fork(work: Callable[[], str]) -> str:
    """What `work` gives in a process in which no program has been imported; "" where it fails."""
    # Other tests of the process have imported programs too, from folders that pytest has put on the path.
    files = {name: file_of(sys.modules[name]) for name in [*sys.modules] if name not in _ours}
    foreign = [name for name, file in files.items() if _foreign(file)]
    _ours.update(name for name, file in files.items() if file and not _foreign(file))
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            gc.disable()
            # Python knows the bytecode of a file by its size and by the second of its change: of two edits of one size
            # within a second, the second would run as the first.
            sys.dont_write_bytecode = True
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            os.close(reads)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            held = [sys.modules.pop(name) for name in foreign]  # noqa: F841  # to throw a module away writes to all of it
            sys.path[:] = [folder for folder in sys.path if not _foreign(os.path.join(folder, ""))]
            with os.fdopen(writes, "w") as out:
                out.write(work())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def forked(entry: Entry, python: str, assume: bool, seconds: float) -> Table:
    """The table of a program."""
    table = from_json(in_fork(lambda: to_json(core.program.start.Start(entry, assume=assume).table())))
    assert table is not None
    return table


@pytest.fixture(autouse=True)
def quick_starts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let programs be started by a fork, but for the tests of starts themselves."""
    if request.path.name != "test_start.py":
        monkeypatch.setattr(ask, "_start", forked)
