"""`core restore`: a state folder from a copy that `core backup` made, or what it has moved into a cluster."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from core.cli.project import add_cluster, find_bundle, given_of
from core.errors import UsageError

DESCRIPTION: Final = """\
Make a state folder from a backup. Every file is compared with its hash, and every database is checked by SQLite, before
the folder is there. A folder that has a state already is refused; with --replace it is moved aside, to a name that is
told, unless a node has it.

With --cluster and no STATE, write what the backup has into the bucket of a cluster, before the first of its nodes starts:
KV with expirations and metadata, D1 with its schema and record of migrations, waiting queue messages, Durable Objects
with values, tables and alarms, and the objects of R2 with their metadata. The backup may be of workerd or of CPython.
What is there already is left as it is: the command may be run again when it was interrupted, and refuses an object that
has other contents. CORE_CLUSTER_KEY and the bucket's credentials are as for `core serve`."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "backup", metavar="BACKUP", type=Path, help="the copy that `core backup` made: a folder or a .tar.gz"
    )
    parser.add_argument("state", metavar="STATE", nargs="?", type=Path, help="the state folder to make")
    parser.add_argument("--replace", action="store_true", help="move a state that is there aside")
    group = parser.add_argument_group("cluster")
    add_cluster(group)
    group.add_argument("--bundle", metavar="FOLDER", type=Path, help="the bundle that the nodes run (default: dist)")
    group.add_argument(
        "--skip", metavar="NAME", action="append", default=[], help="a binding whose data stays behind; repeatable"
    )
    group.add_argument("--secrets-dir", metavar="FOLDER", help="where each secret is a file of its name")


def run(args: argparse.Namespace) -> int:
    if (args.state is None) == (args.cluster is None):
        raise UsageError(
            "name one place to restore to: the folder STATE, or a cluster with --cluster s3://bucket/prefix"
        )
    if args.cluster is not None:
        return _into_cluster(args)
    for option in given_of(args, _CLUSTER_ONLY):
        raise UsageError(f"{option} is for a cluster. Name it with --cluster instead of STATE")
    from core.runtime.backup import restore

    made, aside = restore(args.backup, args.state, replace=args.replace)
    if aside is not None:
        print(f"the state that was there is in {aside}")
    print(f"{args.state}: {made.databases} databases and {made.files} files")
    return 0


_CLUSTER_ONLY = ("--cluster-endpoint", "--cluster-region", "--bundle", "--skip", "--secrets-dir")


def _into_cluster(args: argparse.Namespace) -> int:
    import asyncio

    from core.runtime.backup import unpacked
    from core.runtime.bundle import Bundle
    from core.runtime.moving.cluster import STOP, move_into_cluster
    from core.runtime.options import cluster_of
    from core.runtime.toolchain import toolchain

    if args.replace:
        raise UsageError(
            "--replace is for a folder: in a cluster nothing is replaced. Name another prefix of the bucket"
        )
    bundle = Bundle.read(find_bundle(args.bundle, " with --bundle"))
    cluster = cluster_of(args, "127.0.0.1:0", STOP)
    with unpacked(args.backup) as state:
        asyncio.run(move_into_cluster(toolchain(), bundle, cluster, state, skip=args.skip, say=print))
    return 0
