"""`core routes`: the table of routes, each with everything that runs before its handler."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from core.cli.project import add_project_options, find_configuration
from core.cli.style import say_refused
from core.dev.terminal import Style
from core.dev.terminal import table as columns
from core.http.json import JsonObject

if TYPE_CHECKING:
    from core.program.table import Table

DESCRIPTION: Final = """\
List the routes in the order in which they are tried, each with the middleware that runs before its handler.
`*` marks routes behind an authenticator, `?` those that look for a user and let everyone in. TOOLS are those of MCP
that call a route, and all of a server at the server's own."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("table", "json"), default="table", help="(default: %(default)s)")
    add_project_options(parser)


def run(args: argparse.Namespace) -> int:
    from core.config.load import load
    from core.program.ask import ask
    from core.program.entry import entry_of

    table = ask(entry_of(load(find_configuration(args.config), environment=args.environment)))
    rows = [*_rows(table)]
    if args.format == "json":
        print(json.dumps(rows, indent=2))
    elif rows:
        _print(rows)
    elif not table.refusals:
        print('No routes yet. @app.get("/") over an async function makes one.')
    return say_refused(table)


def _rows(table: Table) -> Iterator[JsonObject]:
    for route in table.app.routes if table.app is not None else ():
        names = [table.callbacks[index].name for index in route.middleware]
        yield {
            "method": route.method,
            "path": route.path,
            "handler": table.callbacks[route.handler].name if route.handler is not None else names.pop(),
            "middleware": names,
            "authenticated": route.authenticated,
            "optional": route.optional,
            "public": route.public,
            "tools": list(route.tools),
        }


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    paint = Style(sys.stdout)
    width = 6 if any(row["tools"] for row in rows) else 5
    cells = [
        (
            row["method"],
            row["path"],
            row["handler"],
            "*" if row["authenticated"] else "?" if row["optional"] else "",
            " > ".join(row["middleware"]) or "-",
            ", ".join(row["tools"]),
        )
        for row in rows
    ]
    titles = ("METHOD", "PATH", "HANDLER", "", "MIDDLEWARE", "TOOLS")
    lines = columns([row[:width] for row in (titles, *cells)], indent="")
    print(paint(lines[0], "bold"), *lines[1:], sep="\n")
