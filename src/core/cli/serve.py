"""`core serve`: a bundle in production on one's own hardware, in one workerd, several, or a cluster."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from core.errors import UsageError

__all__ = ["add", "run"]

_DESCRIPTION = """\
Run a bundle that `core build` made: one workerd, several that share a port, or a node of a cluster whose state lives
in an S3-compatible bucket. A process that ends, hangs or can answer no more is replaced. On SIGTERM the health endpoint says 503, requests in
flight are finished, and in a cluster the objects are handed over.

Secrets are read from the environment of this process, by their names. With --cluster, CORE_CLUSTER_KEY is the secret
that all nodes share, at least 32 characters (for example from `openssl rand -hex 32`), and the bucket's credentials
are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Nodes talk unencrypted: keep them on a private network."""

_EXIT_CODES = """\
Exit codes: 0 stopped with Ctrl-C or SIGTERM, requests in flight finished; 1 it could not start;
2 the command was wrong."""


def add(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "serve", help="run a bundle in workerd", description=_DESCRIPTION, epilog=_EXIT_CODES
    )
    parser.add_argument("bundle", nargs="?", type=Path, default=Path("dist"), help="the bundle (default: dist)")
    group = parser.add_argument_group("address")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    group.add_argument("--port", type=_port, default=8787, help="port to listen on (default: %(default)s)")
    group.add_argument(
        "--health",
        metavar="HOST:PORT",
        default="127.0.0.1:8788",
        help="where GET / says whether it can answer (default: %(default)s)",
    )
    group.add_argument(
        "--client-address-header",
        metavar="NAME",
        help="the header in which the proxy in front gives the client's address; without a proxy, leave it out",
    )
    group = parser.add_argument_group("processes")
    group.add_argument("--state", metavar="FOLDER", type=Path, help="where state is kept (default: .core/serve)")
    group.add_argument("--processes", metavar="N", type=_count, default=1, help="how many workerd (default: 1)")
    group.add_argument(
        "--stop-timeout", metavar="SECONDS", type=float, default=8.0, help="time to stop in (default: %(default)s)"
    )
    group.add_argument(
        "--hang-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=60.0,
        help="replace a process that has not answered for that long; 0 never does (default: %(default)s)",
    )
    group.add_argument("--no-migrate", dest="migrate", action="store_false", help="apply no pending SQL migrations")
    group.add_argument(
        "--private-network", action="store_true", help="let the application's own fetch reach private addresses"
    )
    group = parser.add_argument_group("cluster")
    group.add_argument("--cluster", metavar="URL", help="s3://bucket/prefix or gs://bucket/prefix")
    group.add_argument("--cluster-endpoint", metavar="URL", help="the address of an S3-compatible service")
    group.add_argument("--cluster-region", metavar="NAME", help="the bucket's region")
    group.add_argument(
        "--cluster-address",
        metavar="HOST:PORT",
        default="127.0.0.1:0",
        help="where other nodes reach this one; the next ports for further processes (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    import asyncio

    from core.runtime.bundle import Bundle
    from core.runtime.service import ClusterOptions, ServeOptions, serve
    from core.runtime.toolchain import toolchain

    host, _, port = args.health.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--health {args.health} is not HOST:PORT, for example 127.0.0.1:8788")
    bundle = Bundle.read(args.bundle)
    cluster = None
    if args.cluster is not None:
        cluster = ClusterOptions.checked(
            bucket=args.cluster,
            endpoint=args.cluster_endpoint,
            region=args.cluster_region,
            address=args.cluster_address,
        )
    options = ServeOptions(
        host=args.host,
        port=args.port,
        health=(host, int(port)),
        state=(args.state or Path(".core/serve")).resolve(),
        processes=args.processes,
        stop_seconds=args.stop_timeout,
        hang_seconds=args.hang_timeout,
        migrate=args.migrate,
        ip_header=args.client_address_header,
        private_network=args.private_network,
        cluster=cluster,
    )
    return asyncio.run(serve(toolchain(), bundle, options))


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 <= int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is not a port: a number from 0 to 65535")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if 0 <= seconds < 1e9:
        return seconds
    raise argparse.ArgumentTypeError(f"{text} is not a time: a number of seconds, 0 or more")


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= 64:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is not a number of processes: 1 to 64")
