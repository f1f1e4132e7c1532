"""Five type checkers, each over a folder in one run: the lines at which it finds an error."""

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


def mypy(folder: Path) -> Found:
    ran = run(
        "mypy", "--strict", "--no-error-summary", "--cache-dir", str(ROOT / ".mypy_cache" / "typing"), *files(folder)
    )
    return lines(r"(?m)^([^:\n]+):(\d+): error:", ran)


def pyright(folder: Path) -> Found:
    settings = ROOT / ".mypy_cache" / f"pyright-{folder.name}.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(
        json.dumps(
            {
                "include": [os.path.relpath(folder, settings.parent)],  # it takes no absolute path
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
        (Path(found["file"]).name, found["range"]["start"]["line"] + 1)
        for found in report["generalDiagnostics"]
        if found["severity"] == "error"
    }


def ty(folder: Path) -> Found:
    ran = run("ty", "check", "--output-format", "concise", "--color", "never", "--python", str(BIN.parent), str(folder))
    return lines(r"(?m)^([^:\n]+):(\d+):\d+: error", ran)


def pyrefly(folder: Path) -> Found:
    ran = run(
        "pyrefly", "check", "--output-format", "json", "--python-interpreter-path", sys.executable,
        "--search-path", str(ROOT / "src"), *files(folder),
    )  # fmt: skip
    return {(Path(found["path"]).name, found["line"]) for found in json.loads(ran)["errors"]}


def zuban(folder: Path) -> Found:
    return lines(r"(?m)^([^:\n]+):(\d+)(?::\d+)?: error:", run("zuban", "check", "--strict", *files(folder)))


CHECKERS: dict[str, Callable[[Path], Found]] = {
    checker.__name__: checker for checker in (mypy, pyright, ty, pyrefly, zuban)
}


def files(folder: Path) -> list[str]:
    """The files one by one: a folder that mypy.ini leaves out is left out when it is named as a folder, too."""
    return sorted(map(str, folder.glob("*.py")))


def run(tool: str, *arguments: str) -> str:
    done = subprocess.run([str(BIN / tool), *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300)
    # One of them leaves with 1 when it found errors; anything above is a failure of its own.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def lines(pattern: str, output: str) -> Found:
    return {(Path(found[1]).name, int(found[2])) for found in re.finditer(pattern, output)}


def marked(folder: Path) -> Found:
    return {
        (file.name, number)
        for file in folder.glob("*.py")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if line.endswith("# E")
    }
