"""`core backup`: the state of a node, copied while the node runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

DESCRIPTION: Final = """\
Copy a state folder (of `core serve`, with or without --python, or of `core dev`) into a new folder or a .tar.gz, while it
is in use: every database as SQLite's own backup copies it, with all that was acknowledged when its turn came, and the
files beside it. Each database is whole; two databases may be some moments apart. `core restore` puts it back.

In a cluster the state is in the bucket: back up the bucket."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("state", metavar="STATE", type=Path, help="the state folder, such as .core/python")
    parser.add_argument("target", metavar="TARGET", type=Path, help="a new folder, or a new file that ends in .tar.gz")


def run(args: argparse.Namespace) -> int:
    from core.runtime.backup import back_up

    made = back_up(args.state, args.target)
    print(f"{args.target}: {made.databases} databases and {made.files} files, {made.size / 1e6:.1f} MB")
    return 0
