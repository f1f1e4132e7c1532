"""`core serve`: an application in production on one's own hardware: a bundle in workerd, or its files on CPython."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, Final

from core.cli.project import add_cluster, add_configuration, add_log_format, find_bundle, given_of, number_of, port_of
from core.errors import UsageError
from core.hosts.limits import Limits

DESCRIPTION: Final = """\
Run a bundle that `core build` made: one workerd, several that share a port, or a node of a cluster whose state lives
in an S3-compatible bucket. With --python, run the application of the configuration file on CPython with the embedded
bindings: one process for each processor, and one for Durable Objects, queue consumers and crons, which exist once.

A process that ends, hangs or can answer no more is replaced. On SIGTERM the health endpoint says 503, WebSockets are
closed with 1001, requests in flight are finished, and in a cluster the objects are handed over. SIGHUP replaces the
processes one after the other with the bundle, or with --python the files, of that moment, and refuses no connection
meanwhile.

A secret is in the environment of this process, by its name; or in the file that NAME_FILE names there; or in the file NAME
of --secrets-dir. With --cluster, CORE_CLUSTER_KEY is the secret that all nodes share, at least 32 characters (for example
from `openssl rand -hex 32`), and the bucket's credentials are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Nodes talk
unencrypted: keep them on a private network."""

_TIMEOUTS = (
    ("--head-timeout", "head_seconds", "end a connection that has not sent the whole head of a request"),
    ("--body-timeout", "body_seconds", "end a connection that neither sends nor takes a byte of a body"),
    ("--idle-timeout", "idle_seconds", "end a kept connection without a request"),
)

_count = number_of(1, 64, "a number of processes: 1 to 64")
_connections = number_of(1, 1_000_000, "a number of connections: 1 to 1000000")

EXIT_CODES: Final = """\
Exit codes: 0 stopped with Ctrl-C or SIGTERM, requests in flight finished; 1 it could not start;
2 the command was wrong."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", nargs="?", type=Path, help="the bundle (default: dist)")
    group = parser.add_argument_group("CPython")
    group.add_argument("--python", action="store_true", help="run the application's files on CPython, without a bundle")
    add_configuration(group)
    group.add_argument(
        "--workers", metavar="N", type=_count, help="processes that answer requests (default: one for each processor)"
    )
    for option, name, help in _TIMEOUTS:
        default = f"; 0 never does (default: {getattr(Limits(), name):g})"
        group.add_argument(option, metavar="SECONDS", type=_seconds, help=f"{help}{default}")
    group.add_argument(
        "--max-connections",
        metavar="N",
        type=_connections,
        help="connections that each process has open at once; who comes beyond is answered 503 (default: "
        f"{Limits().connections})",
    )
    group = parser.add_argument_group("address")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    group.add_argument("--port", type=port_of, default=8787, help="port to listen on (default: %(default)s)")
    group.add_argument(
        "--health",
        metavar="HOST:PORT",
        type=_address,
        default="127.0.0.1:8788",
        help="where GET / says whether it can answer; a port alone is one of 127.0.0.1 (default: %(default)s)",
    )
    group.add_argument(
        "--metrics",
        action="store_true",
        help="count requests, bindings, queues and objects: GET /metrics at the health address, as OpenMetrics",
    )
    group.add_argument(
        "--client-address-header",
        metavar="NAME",
        type=_header,
        help="the header in which the proxy in front gives the client's address; without a proxy, leave it out",
    )
    group.add_argument(
        "--forwarded-proto-header",
        metavar="NAME",
        type=_header,
        help="the header in which the proxy in front says http or https, such as X-Forwarded-Proto",
    )
    group.add_argument(
        "--public-url",
        metavar="URL",
        type=_origin,
        help="scheme and host that clients know, such as https://example.com, whatever a request says",
    )
    group = parser.add_argument_group("processes")
    group.add_argument(
        "--state",
        metavar="FOLDER",
        type=Path,
        help="where state is kept (default: .core/serve; with --python .core/python)",
    )
    group.add_argument("--processes", metavar="N", type=_count, help="how many workerd (default: 1)")
    group.add_argument(
        "--stop-timeout", metavar="SECONDS", type=_seconds, default=8.0, help="time to stop in (default: %(default)s)"
    )
    group.add_argument(
        "--hang-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=60.0,
        help="replace a process that has not answered for that long; 0 never does (default: %(default)s)",
    )
    group.add_argument(
        "--memory",
        metavar="SIZE",
        type=_size,
        help="replace a process that takes more, such as 800M or 2G (default: never)",
    )
    add_log_format(group)
    group.add_argument(
        "--secrets-dir",
        metavar="FOLDER",
        help="where each secret is a file of its name, such as /run/secrets (default: $CREDENTIALS_DIRECTORY, if systemd "
        "sets it)",
    )
    group.add_argument("--no-migrate", dest="migrate", action="store_false", help="apply no pending SQL migrations")
    group.add_argument(
        "--private-network", action="store_true", help="let the application's own fetch reach private addresses"
    )
    group = parser.add_argument_group("cluster")
    add_cluster(group)
    group.add_argument(
        "--cluster-address",
        metavar="HOST:PORT",
        help="where other nodes reach this one; the next ports for further processes (default: 127.0.0.1:0)",
    )
    group.add_argument(
        "--new-cluster-key",
        action="store_true",
        help="take CORE_CLUSTER_KEY for the cluster's key from now on; every other node must be stopped",
    )


def run(args: argparse.Namespace) -> int:
    if args.log_format == "json":
        from core.hosts.output import log_as_json

        log_as_json(stderr="core.serve")
    if args.forwarded_proto_header is not None and args.public_url is not None:
        raise UsageError("--public-url has the scheme already. Remove --forwarded-proto-header")
    if args.new_cluster_key and args.cluster is None:
        raise UsageError("--new-cluster-key changes the key of a cluster. Name it with --cluster s3://bucket/prefix")
    unfit = _WORKERD_ONLY if args.python else _PYTHON_ONLY
    given = given_of(args, unfit)
    if given:
        where = "a bundle in workerd" if args.python else "--python"
        raise UsageError(
            f"{', '.join(given)} is for {where} alone. Leave it out{'' if args.python else ', or add --python'}"
        )
    return _run_python(args) if args.python else _run_bundle(args)


_CLUSTER = ("--cluster", "--cluster-endpoint", "--cluster-region", "--cluster-address", "--new-cluster-key")
_WORKERD_ONLY = ("BUNDLE", "--processes", "--private-network", *_CLUSTER)
_PYTHON_ONLY = ("--config", "--env", "--workers", "--max-connections", *(option for option, _, _ in _TIMEOUTS))


def _run_python(args: argparse.Namespace) -> int:
    import asyncio
    import os

    from core.cli.project import find_configuration
    from core.runtime.cpython.supervisor import serve_python
    from core.runtime.options import PythonOptions

    config = find_configuration(args.config)
    given = {name: getattr(args, option[2:].replace("-", "_")) for option, name, _ in _TIMEOUTS}
    given["connections"] = args.max_connections
    options = PythonOptions(
        config=config,
        environment=args.environment,
        state=(args.state or config.parent / ".core" / "python").resolve(),
        workers=args.workers or os.cpu_count() or 1,
        limits=Limits(**{name: value for name, value in given.items() if value is not None}),
        **_common(args),
    )
    return asyncio.run(serve_python(options))


def _run_bundle(args: argparse.Namespace) -> int:
    import asyncio

    from core.runtime.bundle import Bundle
    from core.runtime.options import ServeOptions, cluster_of
    from core.runtime.service import serve
    from core.runtime.toolchain import toolchain

    bundle = Bundle.read(find_bundle(args.bundle))
    address = args.cluster_address or "127.0.0.1:0"
    options = ServeOptions(
        state=(args.state or Path(".core/serve")).resolve(),
        processes=args.processes or 1,
        private_network=args.private_network,
        cluster=None if args.cluster is None else cluster_of(args, address, args.stop_timeout),
        new_cluster_key=args.new_cluster_key,
        **_common(args),
    )
    return asyncio.run(serve(toolchain(), bundle, options))


def _common(args: argparse.Namespace) -> dict[str, Any]:
    from core.runtime.options import Front

    names = ("host", "port", "health", "stop_timeout", "hang_timeout", "memory", "migrate", "metrics", "log_format")
    front = Front(args.client_address_header, args.forwarded_proto_header, args.public_url)
    return {"front": front, **{name: getattr(args, name) for name in (*names, "secrets_dir")}}


def _address(text: str) -> tuple[str, int]:
    host, _, port = (f"127.0.0.1:{text}" if text.isdecimal() else text).rpartition(":")
    if not host:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, for example 127.0.0.1:8788")
    return host.strip("[]"), port_of(port)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if 0 <= seconds < 1e9:
        return seconds
    raise argparse.ArgumentTypeError(f"{text} is not a time: a number of seconds, 0 or more")


def _size(text: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]{0,5})([MG])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text} is not a size: a number with M or G behind it, such as 800M")
    return int(found[1]) << {"M": 20, "G": 30}[found[2]]


def _header(text: str) -> str:
    from core.http.headers import is_token

    if not is_token(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a header")
    return text.lower()


def _origin(text: str) -> str:
    from core.http.url import URL

    try:
        url = URL(text)
    except TypeError:
        url = None
    if url is None or url.protocol not in ("http:", "https:") or text.rstrip("/") != url.origin:
        raise argparse.ArgumentTypeError(f"{text} is not an origin: scheme and host alone, such as https://example.com")
    return url.origin
