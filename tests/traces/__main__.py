"""`python -m tests.traces DIR`: replay a folder of traces and say how many fit. Behind `make traces DIR=…`.

Only `exact` programs bind: they make the count and the exit status. The others are for choosing by, and their
matches are only told. A program that cannot be run is named and not counted, and the exit status is 1 then. `--strict`
compares advisory values and SQLite's offsets too.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.traces.harness import DATA, NotRunError, Program, adapter_for, empty_folder, load, replay, strays


def replay_all(programs: list[Program], not_run: dict[str, str], *, strict: bool = False) -> dict[str, list[str]]:
    """The problems of each program, by its id. One that cannot be run has none: it has a line in `not_run`."""
    problems: dict[str, list[str]] = {}
    for program in programs:
        try:
            problems[program["id"]] = replay_one(program, strict=strict)
        except NotRunError as error:
            not_run[program["id"]] = str(error)
    return problems


def replay_one(program: Program, *, strict: bool = False, on_disk: bool = False) -> list[str]:
    """The problems of one program, in an event loop and a working directory of its own."""
    with empty_folder() as working, empty_folder() as state:
        try:
            adapter = adapter_for(program["group"], state if on_disk else None)
        except LookupError as error:
            raise NotRunError(str(error)) from None
        adapter.strict = strict
        problems = asyncio.run(replay(program, adapter))
        return problems + [f"left the file {name} behind" for name in strays(working)]


@contextmanager
def quiet() -> Generator[None]:
    """Log nothing: what a program makes a binding log belongs to the program, and the count comes last."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def main(arguments: list[str]) -> int:
    """Print what does not fit, and the count."""
    parser = argparse.ArgumentParser(prog="python -m tests.traces", description=__doc__)
    parser.add_argument(
        "folder", type=Path, nargs="?", default=DATA, help="a folder of traces (default: the project's)"
    )
    parser.add_argument("--strict", action="store_true", help="compare advisory values and SQLite's offsets too")
    parser.add_argument("--all", action="store_true", help="show what does not fit in programs that do not bind")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is not a folder")
    programs = load(options.folder)
    with quiet():
        not_run: dict[str, str] = {}
        problems = replay_all(programs, not_run, strict=options.strict)
    for name, why in not_run.items():
        print(f"not run: {name}: {why}")
    missed = any(program["portability"] == "exact" and program["id"] in not_run for program in programs)
    programs = [program for program in programs if program["id"] in problems]
    fits = {program["id"]: not problems[program["id"]] for program in programs}
    for program in programs:
        if program["portability"] == "exact" or options.all:
            for problem in problems[program["id"]]:
                print(problem)
    for kind in ("js-types", "platform"):
        others = [program["id"] for program in programs if program["portability"] == kind]
        print(f"{kind} programs, which do not bind: {sum(map(fits.__getitem__, others))} of {len(others)} fit")
    exact = [program["id"] for program in programs if program["portability"] == "exact"]
    good = sum(map(fits.__getitem__, exact))
    print(f"traces replayed: {good} of {len(exact)}")
    return 0 if good == len(exact) and not missed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
