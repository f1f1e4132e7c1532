"""`core restore`: a state folder from a copy that `core backup` made."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

__all__ = ["add", "run"]

_DESCRIPTION = """\
Make a state folder from a backup. Every file is compared with its hash, and every database is checked by SQLite, before
the folder is there. A folder that has a state already is refused; with --replace it is moved aside, to a name that is
told, unless a node has it."""


def add(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser("restore", help="make a state folder from a backup", description=_DESCRIPTION)
    parser.add_argument(
        "backup", metavar="BACKUP", type=Path, help="the copy that `core backup` made: a folder or a .tar.gz"
    )
    parser.add_argument("state", metavar="STATE", type=Path, help="the state folder to make")
    parser.add_argument("--replace", action="store_true", help="move a state that is there aside")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from core.runtime.backup import restore

    made, aside = restore(args.backup, args.state, replace=args.replace)
    if aside is not None:
        print(f"the state that was there is in {aside}")
    print(f"{args.state}: {made.databases} databases and {made.files} files")
    return 0
