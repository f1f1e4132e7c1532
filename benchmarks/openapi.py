"""The processor time of `core openapi` beside mypy's: `python -m benchmarks.openapi [--rounds 5]`.

Both read a copy of examples/users, in processes of their own that take turns: first with nothing cached, then without
a change, then after an edit of one module. Bound: without a change at most 1.2 times mypy. Exit status 1 when it is
broken.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

MOST = 1.2
USERS = Path(__file__).resolve().parent.parent / "examples" / "users"
EDITED = Path("src/users_api/routes/users.py")


def spent(command: list[str], folder: Path) -> float:
    """Return the seconds of processor time that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def copy_of_users(folder: Path) -> Path:
    """A copy of the example, without what was cached for it."""
    ignored = shutil.ignore_patterns(".core", ".mypy_cache", "__pycache__")
    return shutil.copytree(USERS, folder / "users", ignore=ignored)


def times(folder: Path, rounds: int, edit: Callable[[int], None] | None = None) -> tuple[float, float]:
    """Return the least time of `core openapi` and of mypy in a folder, each after `edit`."""
    ours, theirs = ["core", "openapi", "-o", "openapi.json"], ["mypy", "--cache-dir", ".mypy_cache/plain", "src"]
    found: list[tuple[float, float]] = []
    for number in range(rounds):
        if edit is not None:
            edit(number)
        found.append((spent(ours, folder), spent(theirs, folder)))
    return min(core for core, _ in found), min(mypy for _, mypy in found)


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds: int = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = copy_of_users(Path(name).resolve())
        edited = folder / EDITED
        text = edited.read_text("utf-8")

        def edit(number: int) -> None:
            edited.write_text(f"{text}\nX{number} = {number}\n", "utf-8")

        table = {"nothing cached": times(folder, 1)}
        times(folder, 1)
        table["no change"] = unchanged = times(folder, rounds)
        table["one module edited"] = times(folder, rounds, edit)
    print("| | `core openapi` | mypy | ratio |\n| --- | ---: | ---: | ---: |")
    for title, (core, mypy) in table.items():
        print(f"| {title} | {core:.2f} s | {mypy:.2f} s | {core / mypy:.2f} |")
    return 0 if unchanged[0] <= MOST * unchanged[1] else 1


if __name__ == "__main__":
    sys.exit(main())
