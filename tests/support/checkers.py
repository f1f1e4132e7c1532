"""Five type checkers, each over all folders that it is given in one run: the lines at which it finds an error."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

__all__ = ["CHECKERS", "Found", "marked"]

Found = set[tuple[str, int]]
"""Files, by the folder that they are in and their name, with a line."""


def mypy(*folders: Path) -> Found:
    ran = run("mypy", "--strict", "--no-error-summary", *files(*folders))
    return lines(r"(?m)^([^:\n]+):(\d+): error:", ran)


def pyright(*folders: Path) -> Found:
    settings = ROOT / ".mypy_cache" / f"pyright-{folders[0].name}.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(
        json.dumps(
            {
                # It takes no absolute paths.
                "include": [os.path.relpath(folder, settings.parent) for folder in folders],
                "typeCheckingMode": "strict",
                "reportUnusedExpression": "none",
                "reportUnusedFunction": "none",
                "reportUnnecessaryComparison": "none",
                "venvPath": str(BIN.parents[1]),
                "venv": BIN.parent.name,
                "extraPaths": [str(ROOT / "src")],
            }
        )
    )
    report = json.loads(run("pyright", "-p", str(settings), "--outputjson"))
    return {
        (name_of(Path(found["file"])), found["range"]["start"]["line"] + 1)
        for found in report["generalDiagnostics"]
        if found["severity"] == "error"
    }


def ty(*folders: Path) -> Found:
    options = ["--output-format", "concise", "--color", "never", "--python", str(BIN.parent)]
    ran = run("ty", "check", *options, *map(str, folders))
    return lines(r"(?m)^([^:\n]+):(\d+):\d+: error", ran)


def pyrefly(*folders: Path) -> Found:
    ran = run(
        "pyrefly", "check", "--output-format", "json", "--python-interpreter-path", sys.executable,
        "--search-path", str(ROOT / "src"), *files(*folders),
    )  # fmt: skip
    return {(name_of(Path(found["path"])), found["line"]) for found in json.loads(ran)["errors"]}


def zuban(*folders: Path) -> Found:
    return lines(r"(?m)^([^:\n]+):(\d+)(?::\d+)?: error:", run("zuban", "check", "--strict", *files(*folders)))


CHECKERS: dict[str, Callable[..., Found]] = {
    checker.__name__: checker for checker in (mypy, pyright, ty, pyrefly, zuban)
}


def files(*folders: Path) -> list[str]:
    """The files one by one: a folder that mypy.ini leaves out is left out when it is named as a folder, too."""
    return sorted(str(file) for folder in folders for file in folder.glob("*.py"))


def name_of(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"


def run(tool: str, *arguments: str) -> str:
    done = subprocess.run([str(BIN / tool), *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300)
    # One of them leaves with 1 when it found errors; anything above is a failure of its own.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def lines(pattern: str, output: str) -> Found:
    return {(name_of(Path(found[1])), int(found[2])) for found in re.finditer(pattern, output)}


def marked(folder: Path, checker: str = "mypy") -> Found:
    """The lines at which a checker is to find an error."""
    return {
        (name_of(file), number)
        for file in folder.glob("*.py")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if line.endswith("# E") or ("# E, but for " in line and not line.endswith(f" {checker}"))
    }
