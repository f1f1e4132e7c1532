"""`core dev`: serve the application on this machine, with embedded bindings, and again after every change."""

from __future__ import annotations

import argparse
from typing import Final

from core.cli.project import add_log_format, add_project_options, port_of, project_options
from core.errors import DeveloperError

DESCRIPTION: Final = """\
Serve the application over HTTP with its bindings embedded: their state is kept in a folder beside the
configuration file, nothing leaves this machine. When a source or the configuration changes, the application is
loaded again.

At the address's /_core/ is the explorer: requests as they happen, KV, SQL, objects, queues, triggers."""

EXIT_CODES: Final = """\
Exit codes: 0 stopped with Ctrl-C or SIGTERM, background work finished; 1 it could not start;
2 the command or the configuration file was wrong; 130 a second Ctrl-C cut background work short."""


def add(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("address")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    group.add_argument(
        "--port",
        type=port_of,
        default=None,
        help="port to listen on, 0 for a free one (default: 8787, or the next free)",
    )
    add_project_options(parser)
    group = parser.add_argument_group("behaviour")
    group.add_argument(
        "--runtime",
        choices=("embedded", "workerd"),
        default="embedded",
        help="where it runs: in this Python, or as it is deployed, in workerd (default: %(default)s)",
    )
    add_log_format(group)
    group.add_argument("--no-reload", dest="reload", action="store_false", help="do not load again on changes")
    group.add_argument("--no-migrate", dest="migrate", action="store_false", help="say pending migrations, apply none")
    explorer = group.add_mutually_exclusive_group()
    explorer.add_argument(
        "--explorer",
        dest="explorer",
        action="store_true",
        default=None,
        help="explorer and error pages on a public address too, behind a token",
    )
    explorer.add_argument("--no-explorer", dest="explorer", action="store_false", help="no explorer, no error pages")


def run(args: argparse.Namespace) -> int:
    import errno
    import secrets
    import sys

    import attrs

    from core.dev.options import Start
    from core.dev.reload import supervise
    from core.dev.terminal import Style
    from core.runtime.listening import open_listener

    given = {name: getattr(args, name) for name in ("host", "reload", "explorer", "migrate", "log_format")}
    port = 8787 if args.port is None else args.port
    options = attrs.evolve(project_options(args), port=port, token=secrets.token_urlsafe(24), **given)
    if options.log_format == "json":
        from core.hosts.output import log_as_json

        # Where another process serves, that one is told the same.
        serves = args.runtime != "workerd" and not options.reload
        log_as_json(stdout="core.dev", stderr="core.dev", past_python=serves)
    ports = [options.port] if args.port is not None else range(options.port, options.port + 20)
    for port in ports:
        try:
            listener = open_listener(options.host, port)
            break
        except DeveloperError as error:
            if getattr(error.__cause__, "errno", None) != errno.EADDRINUSE:
                raise
    else:
        raise DeveloperError(f"port {ports[-1]} is taken. Choose another one with --port, or 0 for any that is free")
    with listener:
        if args.runtime == "workerd":
            from core.dev.workerd import serve_in_workerd

            return serve_in_workerd(options, listener)
        from core.runtime.state_folder import shared_state

        with shared_state(options.state_folder) as holder:
            if holder is not None:
                print(
                    f"{Style(sys.stdout)('warning', 'yellow')} {options.state_folder} is in use by process {holder} too. Both "
                    "serve one state, and each batch, cron and Durable Object is in one of them alone: end that one, or "
                    "choose another folder with --state",
                    flush=True,
                )
            options = attrs.evolve(options, shares_state=holder is not None)
            if options.reload:
                return supervise(options, listener)
            from core.dev.server import serve

            return serve(options, listener, Start())
