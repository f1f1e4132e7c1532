"""`core seed`: the rows to begin with, from the file that a project keeps for them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from core.cli.project import find_configuration
from core.cli.sql import add_sql_options, opened, read_file, run_text
from core.errors import UsageError

DESCRIPTION: Final = """\
Run seed.sql, beside the configuration file, on a local database, as one transaction. Write statements that may run again:
INSERT OR IGNORE, or ON CONFLICT DO NOTHING. `core migrate reset` and then `core seed` is a fresh start."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="another file than seed.sql")
    add_sql_options(parser)


def run(args: argparse.Namespace) -> int:
    file = args.file
    if file is None:
        path = find_configuration(args.config).parent / "seed.sql"
        if not path.is_file():
            raise UsageError(f"there is no {path.name} beside the configuration file. Write one, or name a FILE")
        file = str(path)
    text, where = read_file(file)
    with opened(args) as (name, execute):
        code = run_text(text, Path(where).name, execute)
        if code == 0:
            print(f"{name}: seeded from {Path(where).name}")
        return code
