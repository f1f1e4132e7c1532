"""The command line, run to its end: in a process of its own as its users run it, or for most tests in a fork of the
process that runs the tests, which has the framework imported already and takes a fraction of the time.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryFile

from tests.support.starting import forked, in_fork

import core.cli
from core.program import ask


def run(*arguments: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `core` in a fork; its output is kept. The programs that it starts are forks too."""
    with TemporaryFile("w+", encoding="utf-8") as out, TemporaryFile("w+", encoding="utf-8") as error:

        def command() -> str:
            for stream, file in ((1, out), (2, error)):
                os.dup2(file.fileno(), stream)
            sys.stdout, sys.stderr = open(1, "w", encoding="utf-8"), open(2, "w", encoding="utf-8")  # noqa: SIM115
            os.environ.update(environment)
            os.chdir(folder or ".")
            sys.path.insert(0, os.getcwd())
            sys.argv = ["core", *arguments]
            # What pytest has set for its own process.
            warnings.simplefilter("ignore")
            logging.root.handlers.clear()
            ask._start = forked
            try:
                code: object = core.cli.main(arguments)
            except SystemExit as end:
                code = end.code or 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
            return str(code)

        code = in_fork(command)
        out.seek(0)
        error.seek(0)
        return subprocess.CompletedProcess(["core", *arguments], int(code or 1), out.read(), error.read())


def run_alone(*arguments: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `core` in a process of its own; its output is kept."""
    return subprocess.run(
        [sys.executable, "-m", "core.cli", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
