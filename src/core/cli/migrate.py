"""`core migrate`: the migrations of the SQL databases, listed, made and applied to the embedded databases."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.cli.project import add_project_options, find_databases, only_database, project_options
from core.cli.style import Progress
from core.dev.terminal import Style
from core.errors import UsageError

if TYPE_CHECKING:
    from core.config.model import Configuration
    from core.dev.options import Options

DESCRIPTION: Final = """\
Migrations are the .sql files of a database's migrations_dir, applied in order, each in one transaction and once.
They are applied to the embedded database of `core dev`; the platform's own tool applies them there. `list` and `apply`
say which were changed since they were applied. `reset` empties the embedded databases and applies all anew, and empties
those of `core dev --runtime workerd`, which applies them when it starts."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "apply", "new", "reset"), help="the action")
    parser.add_argument("name", nargs="?", help="for `new`: the name of the migration, as in add_email")
    parser.add_argument("--binding", metavar="NAME", help="one database only (default: all; `new` needs it if several)")
    parser.add_argument("--yes", action="store_true", help="for `reset`: do not ask")
    add_project_options(parser)


def run(args: argparse.Namespace) -> int:
    from core.config.load import load

    options = project_options(args)
    configuration = load(options.config, environment=options.environment)
    databases = find_databases(configuration, args.binding)
    if args.action == "new":
        return _new(configuration, only_database(databases), args.name)
    if args.name is not None:
        raise UsageError(f"`core migrate {args.action}` takes no name. Choose a database with --binding {args.name}")
    if args.action == "reset":
        if not (args.yes or _agreed(databases)):
            sys.stderr.write("nothing was changed\n")
            return 1
        _empty_in_workerd(options.root / ".core" / "workerd", configuration, databases)
    return asyncio.run(_with_databases(options, configuration, databases, args.action))


def _empty_in_workerd(state: Path, configuration: Configuration, names: list[str]) -> None:
    from core.assembly.embedded import d1_name
    from core.runtime.state_folder import empty_databases

    by_id = {d1_name(configuration.bindings[name].entry): name for name in names}
    for emptied in empty_databases(state, by_id):
        print(f"{Style(sys.stdout)(by_id[emptied], 'bold')} of workerd is empty; it is migrated at the next start")


def _agreed(databases: list[str]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(f"this empties {', '.join(databases)}, and there is nobody to ask. Say so with --yes")
    asked = f"Empty the local database {', '.join(databases)} and apply all migrations? [y/N] "
    return input(asked).lower() in ("y", "yes")


async def _with_databases(options: Options, configuration: Configuration, names: list[str], action: str) -> int:
    from core.assembly.project import changed_note, late_note, migrations_of, open_bindings
    from core.backends.embedded import migrations

    paint = Style(sys.stdout)
    store, bindings = open_bindings(options.state_folder, configuration)
    with store:
        for name in names:
            database: Any = bindings.values[name]
            entry = configuration.bindings[name].entry
            folder, table = configuration.migrations_directory(entry), entry.migrations_table
            files = migrations_of(configuration, name)
            print(f"{paint(name, 'bold')} {paint(str(folder), 'dim')}")
            if action == "reset":
                database.engine.database.insist(database.engine.clear)
            differing = migrations.changed(database.engine.database.path, files, table=table)
            for file, last in await migrations.late(database, files, table=table):
                print(f"{paint('note', 'yellow')}: {late_note(name, file, last)}.")
            if action != "list":
                with Progress() as bar:
                    done = await migrations.apply(
                        database, files, table=table, progress=lambda file, at, of: bar.show(file.name, at - 1, of)
                    )
                for file in done:
                    print(f"  {paint('applied', 'green')}  {file.name}")
                if not done:
                    print("  nothing to apply")
            else:
                remarks = dict.fromkeys((file.name for file in files), "")
                remarks |= dict.fromkeys((file.name for file in differing), "  changed since applied")
                applied = await migrations.applied(database, table=table)
                pending = await migrations.pending(database, files, table=table)
                for applied_name in applied:
                    remark = paint(remarks.get(applied_name, "  its file is gone"), "yellow")
                    print(f"  {paint('applied', 'green')}  {applied_name}{remark}")
                for file in pending:
                    print(f"  {paint('pending', 'yellow')}  {file.name}")
                if not applied and not pending:
                    print("  no migrations yet: core migrate new NAME")
            if differing:
                print(f"{paint('note', 'yellow')}: {changed_note(name, differing)}.")
    return 0


def _new(configuration: Configuration, database: str, name: str | None) -> int:
    from core.assembly.project import migrations_of

    if name is None:
        raise UsageError("give the migration a name: core migrate new add_email")
    slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    if not slug:
        raise UsageError(f"{name!r} has no letter or digit for a file name. Give the migration a name, as in add_email")
    folder = configuration.migrations_directory(configuration.bindings[database].entry)
    numbers = [
        int(found[0]) for file in migrations_of(configuration, database) if (found := re.match(r"\d+", file.name))
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{max(numbers, default=0) + 1:04d}_{slug}.sql"
    path.write_text(f"-- {name}\n", "utf-8")
    print(path)
    return 0
