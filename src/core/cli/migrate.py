"""`core migrate`: the migrations of the SQL databases, listed, made and applied to the embedded databases."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from typing import TYPE_CHECKING, Any

from core.cli.project import add_project_options, find_configuration
from core.cli.style import Style, show_progress

if TYPE_CHECKING:
    from core.backends.embedded.migrations import Migration
    from core.config.model import Configuration
    from core.hosts.dev.options import Options

__all__ = ["add", "run"]

_DESCRIPTION = """\
Migrations are the .sql files of a database's migrations_dir, applied in order, each in one transaction and once.
They are applied to the embedded database of `core dev`; the platform's own tool applies them there."""


def add(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser("migrate", help="migrations of SQL databases", description=_DESCRIPTION)
    parser.add_argument("action", choices=("list", "apply", "new"), help="what to do")
    parser.add_argument("name", nargs="?", help="for `new`: what the migration does, as in add_email")
    parser.add_argument("--binding", metavar="NAME", help="one database only (default: all; `new` needs it if several)")
    add_project_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from core.errors import DeveloperError
    from core.hosts.dev.options import Options
    from core.hosts.dev.project import read_configuration

    options = Options(
        config=find_configuration(args.config),
        environment=args.environment,
        state=None if args.state is None else args.state.resolve(),
    )
    configuration = read_configuration(options)
    databases = [name for name, binding in configuration.bindings.items() if binding.kind == "d1"]
    if args.binding is not None:
        if args.binding not in databases:
            known = ", ".join(databases) or "none"
            raise DeveloperError(f"there is no database {args.binding}. Databases of the configuration: {known}")
        databases = [args.binding]
    if not databases:
        raise DeveloperError('the configuration has no database. Write [[d1_databases]] binding = "DB"')
    if args.action == "new":
        return _new(configuration, databases, args.name)
    if args.name is not None:
        raise DeveloperError(
            f"`core migrate {args.action}` takes no name. Choose a database with --binding {args.name}"
        )
    return asyncio.run(_with_databases(options, configuration, databases, apply=args.action == "apply"))


async def _with_databases(options: Options, configuration: Configuration, names: list[str], *, apply: bool) -> int:
    from core.backends.embedded import migrations
    from core.hosts.dev.project import migrations_of, open_bindings

    paint = Style(sys.stdout)
    store, bindings = open_bindings(options, configuration)
    with store:
        for name in names:
            database: Any = bindings.values[name]
            folder = configuration.migrations_directory(configuration.bindings[name].entry)
            table = configuration.bindings[name].entry.migrations_table
            files = migrations_of(configuration, name)
            print(f"{paint.bold(name)} {paint.dim(str(folder))}")
            if apply:
                try:
                    done = await migrations.apply(database, files, table=table, progress=_show)
                    show_progress("", 1, 1)
                except migrations.MigrationError as error:
                    show_progress("", 1, 1)
                    sys.stderr.write(f"{paint.paint('error', 'bold', 'red')}: {error}\n")
                    return 1
                for file in done:
                    print(f"  {paint.green('applied')}  {file.name}")
                if not done:
                    print("  nothing to apply")
                continue
            applied = await migrations.applied(database, table=table)
            pending = [file.name for file in await migrations.pending(database, files, table=table)]
            known = {file.name for file in files}
            for file_name in applied:
                gone = "" if file_name in known else paint.yellow("  its file is gone")
                print(f"  {paint.green('applied')}  {file_name}{gone}")
            for file_name in pending:
                print(f"  {paint.yellow('pending')}  {file_name}")
            if not applied and not pending:
                print("  no migrations yet: core migrate new NAME")
    return 0


def _show(migration: Migration, index: int, count: int) -> None:
    show_progress(migration.name, index - 1, count)


def _new(configuration: Configuration, databases: list[str], name: str | None) -> int:
    from core.errors import DeveloperError
    from core.hosts.dev.project import migrations_of

    if len(databases) > 1:
        raise DeveloperError(f"there are several databases. Choose one with --binding: {', '.join(databases)}")
    if name is None:
        raise DeveloperError("say what the migration does: core migrate new add_email")
    slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not slug:
        raise DeveloperError(f"{name!r} has no letter or digit for a file name. Say what the migration does")
    folder = configuration.migrations_directory(configuration.bindings[databases[0]].entry)
    numbers = [
        int(found[0]) for file in migrations_of(configuration, databases[0]) if (found := re.match(r"\d+", file.name))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{max(numbers, default=0) + 1:04d}_{slug}.sql"
    path.write_text(f"-- {name}\n", "utf-8")
    print(path)
    return 0
