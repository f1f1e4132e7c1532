"""`core record`: tests of requests that `core dev` has seen."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from core.cli.project import add_project_options, number_of, project_options

DESCRIPTION: Final = """\
Write a pytest of requests that `core dev` has seen, one file for each. A request is sent again over the data that the
bindings had, loaded into the fakes, and rows, keys and objects are taken away while the answer and what it writes stay
the same. The test seeds what is left, sends the request, and asserts the answer and the writes.

Secrets, tokens, cookies and passwords are replaced. A value of .dev.vars is never written."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("keys", nargs="*", metavar="KEY", help="a request, by the key that the explorer's address has")
    parser.add_argument(
        "--last",
        metavar="N",
        type=number_of(1, 5000, "a number of requests: 1 to 5000"),
        default=1,
        help="the latest N requests (default: %(default)s)",
    )
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", type=Path, help="where to write (default: tests/recorded of the project)"
    )
    add_project_options(parser)


def run(args: argparse.Namespace) -> int:
    from core.dev.recording import record

    options = project_options(args)
    return record(options, args.keys, args.last, args.output or options.root / "tests" / "recorded")
