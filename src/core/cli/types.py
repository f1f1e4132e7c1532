"""`core types`: the Env class that the configuration asks for, or the classes of rows, written or compared."""

from __future__ import annotations

import argparse
import io
import sys
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import Final

from core.cli.project import add_configuration, configurations_of, find_configuration
from core.cli.style import put, shown_path, tell_error
from core.errors import ConfigurationError, DeveloperError, UsageError

DESCRIPTION: Final = """\
Write the Env class that the configuration file asks for. Where the program has one already, it is brought up to date:
a missing attribute is added, one of the wrong kind is corrected, one whose binding is gone is removed. Payloads of queues,
secrets, further attributes, comments and order stay as they are.

--rows does the same for the classes that rows are read as: T of first(T), one(T), all(T) and as_(T). A class gets a field for each
column that all its statements give, a type that cannot hold its column is corrected, and a class that is nowhere is written
above its first use, or into the module that it is imported from. A type that fits stays, and so does everything else."""

EXIT_CODES: Final = """\
Exit codes: 0 the class is up to date (or was written), 1 --check found a difference, or --rows a problem that no class
can solve, 2 the command was wrong, 130 interrupted with Ctrl-C."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rows",
        nargs="*",
        metavar="PATH",
        type=Path,
        help="classes of rows: of the whole program, or of these files' queries",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; show the changes")
    parser.add_argument("--output", metavar="FILE", type=Path, help="the file of the class (default: where it is)")
    parser.add_argument("--class", dest="class_name", metavar="NAME", default="Env", help="(default: %(default)s)")
    add_configuration(parser, "this environment only (default: all)")


def run(args: argparse.Namespace) -> int:
    try:
        return _env(args) if args.rows is None else _rows(args)
    except ConfigurationError as error:
        for problem in error.problems:
            tell_error(problem)
    except DeveloperError as error:
        tell_error(str(error))
    return 2


def _rows(args: argparse.Namespace) -> int:
    from core.program.proof import find_rows
    from core.program.row_classes import with_rows

    if args.output is not None or args.class_name != "Env":
        raise UsageError("--output and --class are about Env. Leave them out, or leave --rows out")
    missing = [path for path in args.rows if not path.exists()]
    if missing:
        raise UsageError(f"{missing[0]} is not a file or folder. Give the path of Python files")
    configurations = configurations_of(find_configuration(args.config), args.environment)
    rows = find_rows(configurations, args.rows)
    changed = False
    for file, edits in sorted(rows.edits.items()):
        old, encode = _read(file)
        new = with_rows(old, edits)
        changed = put(file, old, new, check=args.check, encoded=encode) or changed
    if changed and rows.problems and not args.check:
        rows = find_rows(configurations, args.rows)  # the lines have moved
    problems = sorted(dict.fromkeys((p.file, p.line, p.message) for p in rows.problems))
    for name, line, message in problems:
        sys.stderr.write(f"{shown_path(name)}:{line}: error: {message}\n")
    if args.check and changed:
        print("Run `core types --rows`.")
    elif not changed and not problems:
        count = f"{rows.classes} class{'es' if rows.classes != 1 else ''}"
        print(f"{count} of rows up to date." if rows.classes else "No statement of the program is read as a class.")
    return 1 if problems or (args.check and changed) else 0


def _env(args: argparse.Namespace) -> int:
    from core.program.generate import new_env, update_env
    from core.program.proof import find_env

    configurations = configurations_of(find_configuration(args.config), args.environment)
    envs = find_env(configurations, args.class_name, args.output)
    if len(envs) > 1:
        files = ", ".join(sorted(env.location.file for env in envs))
        raise UsageError(f"several classes are called {args.class_name}: {files}. Choose one with --output")
    if not args.class_name.isidentifier():
        raise UsageError(f"{args.class_name} cannot be the name of a class. Give another with --class")
    if envs:
        file = Path(envs[0].location.file)
        old, encode = _read(file)
        new = update_env(old, envs[0], configurations)
    else:
        # Beside the entry file, or beside the configuration.
        folder = (configurations[0].directory / (configurations[0].worker.main or "main.py")).parent
        file = args.output or folder / "env.py"
        old, encode = _read(file) if file.is_file() else ("", str.encode)
        if old.strip():
            raise DeveloperError(
                f"{file} has no class {args.class_name} over Bindings. Name it with --class, or another file with --output"
            )
        new = new_env(configurations, class_name=args.class_name)
    if not put(file, old, new, check=args.check, encoded=encode):
        print(f"{shown_path(file)} is up to date.")
        return 0
    if args.check:
        print(f"{shown_path(file)} is not up to date. Run `core types`.")
    return int(args.check)


def _read(file: Path) -> tuple[str, Callable[[str], bytes]]:
    """The text of a Python file with plain ends of lines, and how to write it back: encoding and line ends are kept."""
    content = file.read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    text = content.decode(encoding)
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    return text.replace("\r\n", "\n"), lambda new: new.replace("\n", newline).encode(encoding)
