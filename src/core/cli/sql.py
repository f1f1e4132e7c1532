"""`core sql` and `core seed`: statements for the databases of this machine, from a prompt, an argument or a file.

A file is one transaction, as a batch of the platform is: it changes everything or nothing. The prompt runs each
statement by itself. The state is that of `core dev`, or with `--workerd` that of `core dev --runtime workerd`.
"""

from __future__ import annotations

import argparse
import signal
import sqlite3
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.cli.project import add_project_options, find_databases, only_database, project_options
from core.cli.style import tell_error
from core.dev.terminal import Style, table
from core.errors import D1Error, UsageError

if TYPE_CHECKING:
    from core.backends.embedded.store import Store

DESCRIPTION: Final = """\
Run SQL on a local database. Without FILE and --command: a prompt, where a statement ends with a semicolon and `.exit`
(or Ctrl-D) ends it; .tables lists the tables. A FILE (`-` is the standard input) and a --command are one transaction: with
a mistake in them nothing is changed."""
_WIDEST: Final = 60
_FIRST_WORDS: Final = "SELECT INSERT UPDATE DELETE CREATE DROP ALTER WITH REPLACE PRAGMA EXPLAIN VALUES"

Execute = Callable[[list[str]], "list[_Rows]"]
"""Runs statements in one transaction. Raises D1Error."""
_Rows = tuple[Sequence[str], Sequence[Sequence[object]]]
"""The columns and the rows of a statement; no columns where it gives no rows."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="a file of statements; - is the standard input")
    parser.add_argument("-c", "--command", metavar="SQL", help="run these statements")
    add_sql_options(parser)


def add_sql_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--binding", metavar="NAME", help="the database (default: the only one)")
    parser.add_argument(
        "--workerd", action="store_true", help="the state of `core dev --runtime workerd`, which must not be running"
    )
    add_project_options(parser)


def run(args: argparse.Namespace) -> int:
    if args.file is not None and args.command is not None:
        raise UsageError("give a FILE or --command, not both")
    text, where = (args.command, "--command") if args.file is None else read_file(args.file)
    with opened(args) as (name, execute):
        if text is not None:
            return run_text(text, where, execute)
        return _prompt(name, execute)


def read_file(file: str) -> tuple[str, str]:
    """The text of a file, or of the standard input, and its name in messages. Raises UsageError."""
    from shlex import quote

    if file == "-":
        return sys.stdin.read(), "<stdin>"
    if not file.strip():
        raise UsageError("the name of the FILE is empty. Give the path of a file of SQL")
    try:
        return Path(file).read_text("utf-8"), file
    except (OSError, ValueError) as error:
        wanted = _statement_of(file)
        if wanted is not None:
            raise UsageError(f"a FILE was expected, not a statement. Write core sql -c {quote(wanted)}") from None
        problem, fix = f"there is no file {file}", "Give the path of a file of SQL"
        if not isinstance(error, FileNotFoundError):
            problem = f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
        elif not Path(file).suffix:
            fix = f"A statement is written with -c: core sql -c {quote(file)}"
        raise UsageError(f"{problem}. {fix}") from None


def _statement_of(given: str) -> str | None:
    """The statement that stands in the place of a file, with its first word as it was meant; None for a path."""
    from difflib import get_close_matches

    first, *rest = given.split(maxsplit=1) or [given]
    verbs = get_close_matches(first.upper(), _FIRST_WORDS.split(), n=1, cutoff=0.75) if rest else []
    return None if not verbs else given if first.upper() == verbs[0] else f"{verbs[0]} {rest[0]}"


def run_text(text: str, where: str, execute: Execute) -> int:
    """Run the statements of a string as one transaction, and print their rows. Returns the exit code."""
    from core.statements.tokens import statements_of

    statements = [each for each in statements_of(text) if each.tokens]
    try:
        results = execute([each.text for each in statements])
    except D1Error as error:
        tell_error(f"{where}: {str(error).removesuffix('.')}. Nothing was changed: correct it and run it again")
        return 1
    for columns, rows in results:
        _show(columns, rows)
    return 0


@contextmanager
def opened(args: argparse.Namespace) -> Generator[tuple[str, Execute]]:
    """The name of the database that the options mean, and what runs statements on it. Raises UsageError."""
    import asyncio

    from core.assembly.embedded import d1_name
    from core.assembly.project import open_bindings
    from core.backends.embedded.d1 import EmbeddedD1Database
    from core.config.load import load
    from core.runtime.state_folder import WorkerdStore

    options = project_options(args)
    configuration = load(options.config, environment=options.environment)
    name = only_database(find_databases(configuration, args.binding))
    if args.workerd:
        state, id = WorkerdStore(options.root / ".core" / "workerd"), d1_name(configuration.bindings[name].entry)
        if not state.file("d1", id).is_file():
            raise UsageError(f"{name} has no state of workerd yet. Run `core dev --runtime workerd` once")
        store: Store = state
        database: Any = EmbeddedD1Database(store, id)
    else:
        store, bindings = open_bindings(options.state_folder, configuration)
        database = bindings.values[name]
    connection = database.engine.database.connection

    async def batch(statements: list[str]) -> list[_Rows]:
        # By the engine: the results of a binding have one column of a name, and a join has two.
        answers = await database.perform(lambda: database.engine.transaction([(text, ()) for text in statements]))
        return [(columns if rows else (), rows) for columns, rows, _ in answers]

    with store:
        yield name, lambda statements: _until_interrupted(connection, lambda: asyncio.run(batch(statements)))


def _until_interrupted(connection: sqlite3.Connection, work: Callable[[], list[_Rows]]) -> list[_Rows]:
    """Return `work()`. Ctrl-C ends its statement at once, and is raised: Python alone would wait for its end."""
    heard: list[int] = []
    connection.set_progress_handler(lambda: bool(heard), 100_000)
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        return work()
    except Exception:
        if not heard:
            raise
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


# -- the prompt


def _prompt(name: str, execute: Execute) -> int:
    if sys.stdin.isatty():
        with suppress(ImportError):
            import_module("readline")  # which gives `input` a history
        print(f"{name}: a statement ends with a semicolon, .exit ends the prompt.")
    failed = False
    for statement in _statements(name):
        try:
            for columns, rows in execute([statement]):
                _show(columns, rows)
        except KeyboardInterrupt:
            if not sys.stdin.isatty():
                raise
            print("Stopped")
        except D1Error as error:
            failed = True
            tell_error(str(error))
    return 1 if failed and not sys.stdin.isatty() else 0


def _statements(name: str) -> Iterator[str]:
    """The statements that are typed, until the end of the input."""
    typed = ""
    while True:
        try:
            line = input((f"{name}> " if not typed else " " * len(name) + "> ") if sys.stdin.isatty() else "")
        except EOFError:
            if typed.strip():
                yield typed
            return
        if not typed and line.strip() in (".exit", ".quit"):
            return
        if not typed and line.strip() == ".tables":
            line = (
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                "AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' ORDER BY name;"
            )
        typed = f"{typed}{line}\n"
        if sqlite3.complete_statement(typed):
            yield typed
            typed = ""


# -- writing


def _show(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    if columns:
        paint = Style(sys.stdout)
        head, *lines = table([tuple(columns), *(tuple(map(_cell, row)) for row in rows)], indent="")
        print(paint(head, "bold"), *lines, sep="\n")


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value[:16].hex()}{'…' if len(value) > 16 else ''}'"
    text = "".join(char if char.isprintable() else " " for char in str(value))
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
