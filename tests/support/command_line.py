"""The command line, and pytest, run to their ends: in a process of its own as its users run it, or for most tests in a
fork of the process that runs the tests, which has the framework imported already and takes a fraction of the time.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType

import pytest
from tests.support.nested import PLAIN
from tests.support.starting import forked, in_fork

import core.cli
from core.program import ask


def run(*arguments: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `core` in a fork; its output is kept."""
    return _forked(core.cli.main, ["core", *arguments], folder, environment)


def run_pytest(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run pytest in a fork; its output is kept."""
    return _forked(pytest.main, ["pytest", *PLAIN, *arguments], folder)


def run_alone(*arguments: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `core` in a process of its own; its output is kept."""
    return subprocess.run(
        [sys.executable, "-m", "core", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def _forked(
    main: Callable[[list[str]], int],
    command: Sequence[str],
    folder: Path | None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Run the `main` of a command. The programs that it starts are forks too."""
    with TemporaryFile("w+", encoding="utf-8") as out, TemporaryFile("w+", encoding="utf-8") as error:

        def work() -> str:
            for stream, file in ((1, out), (2, error)):
                os.dup2(file.fileno(), stream)
            sys.stdout, sys.stderr = open(1, "w", encoding="utf-8"), open(2, "w", encoding="utf-8")  # noqa: SIM115
            os.environ.update(environment)
            os.chdir(folder or ".")
            sys.path.insert(0, os.getcwd())
            sys.argv = [*command]
            # What pytest has set for its own process.
            warnings.simplefilter("ignore")
            logging.root.handlers.clear()
            ask._start = forked
            try:
                code: object = main([*command[1:]])
            except SystemExit as end:
                code = end.code or 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
            return str(int(code) if isinstance(code, int) else 1)

        code = in_fork(work)
        out.seek(0)
        error.seek(0)
        return subprocess.CompletedProcess(command, int(code or 1), out.read(), error.read())
