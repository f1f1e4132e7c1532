"""`core routes`: the table of routes, each with everything that runs before its handler."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from core.cli.project import add_project_options, find_configuration
from core.cli.style import Style, table

__all__ = ["add", "run"]

_DESCRIPTION = """\
List the routes in the order in which they are tried, each with the middleware that runs before its handler.
`*` marks routes behind an authenticator, `?` those that look for a user and let everyone in."""


def add(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser("routes", help="list the routes", description=_DESCRIPTION)
    parser.add_argument("--format", choices=("table", "json"), default="table", help="(default: %(default)s)")
    add_project_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from core.assembly.project import find_app, import_main, read_configuration
    from core.dev.options import Options
    from core.dev.report import report, to_text
    from core.errors import ConfigurationError

    options = Options(config=find_configuration(args.config), environment=args.environment)
    configuration = read_configuration(options)
    try:
        module = import_main(configuration)
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as error:  # the developer's own code may raise anything
        sys.stderr.write(f"{to_text(report(error, root=options.root))}\n")
        return 1
    routes = find_app(module, configuration).routes
    if args.format == "json":
        rows = [
            {
                "method": route.method,
                "path": route.path,
                "handler": route.handler,
                "middleware": list(route.middleware),
                "authenticated": route.authenticated,
                "optional": route.optional,
                "public": route.public,
            }
            for route in routes
        ]
        print(json.dumps(rows, indent=2))
        return 0
    if not routes:
        print('No routes yet. @app.get("/") over an async function makes one.')
        return 0
    paint = Style(sys.stdout)
    lines = table(
        [("METHOD", "PATH", "HANDLER", "", "MIDDLEWARE")]
        + [
            (
                route.method,
                route.path,
                route.handler,
                "*" if route.authenticated else "?" if route.optional else "",
                " > ".join(route.middleware) or "-",
            )
            for route in routes
        ],
        indent="",
    )
    print(paint.bold(lines[0]))
    print("\n".join(lines[1:]))
    return 0
