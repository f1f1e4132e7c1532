"""Fuzz the targets with atheris: `python -m tests.fuzz [--seconds 60] [target …]`.

Each target runs in a process of its own, over a corpus that is kept in `.core/fuzz/<target>` and
grows from run to run. A finding ends that target's run, leaves its bytes in `.core/fuzz/crash-*`, and
makes this command fail: it then belongs into `tests/fuzz/corpus/<target>/`, where the suite runs it
for ever. Needs `pip install atheris`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(".core/fuzz")
SEEDS = Path(__file__).parent / "corpus"


def main() -> int:
    """Run the targets that were named, or all, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help="which to run; all without any")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return fuzz(options.one, options.seconds)
    from tests.fuzz.targets import TARGETS

    failed: list[str] = []
    for name in options.targets or TARGETS:
        if name not in TARGETS:
            parser.error(f"no target {name}. There are {', '.join(TARGETS)}")
        print(f"== {name}", flush=True)
        ran = subprocess.run(
            [sys.executable, "-m", "tests.fuzz", "--one", name, "--seconds", str(options.seconds)], check=False
        )
        if ran.returncode:
            failed.append(name)
    if failed:
        print(f"findings in {', '.join(failed)}: their bytes are in {HERE}")
    return 1 if failed else 0


def fuzz(name: str, seconds: int) -> int:
    """Run one target in this process."""
    import importlib
    import logging

    # Installed by `make fuzz` alone, and without types.
    atheris: Any = importlib.import_module("atheris")
    logging.disable(logging.CRITICAL)
    with atheris.instrument_imports(include=["core", "python_multipart"]):
        from tests.fuzz.targets import TARGETS
    corpus = HERE / name
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = [str(SEEDS / name)] if (SEEDS / name).is_dir() else []
    atheris.Setup(
        [
            sys.argv[0],
            str(corpus),
            *seeds,
            f"-max_total_time={seconds}",
            "-max_len=600",
            "-timeout=10",
            "-print_final_stats=1",
            f"-artifact_prefix={HERE}/crash-{name}-",
        ],
        TARGETS[name],
    )
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
