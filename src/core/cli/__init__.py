"""The command line: its commands, and the meaning of its exit codes.

A command's module is imported when it is asked for, so that `core --help` costs next to nothing. Each has
`DESCRIPTION`, `add(parser)` and `run(args) -> int`, and `EXIT_CODES` where these are not the common ones.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

from core.cli.style import shown_path, tell_error
from core.dev.terminal import Style, core_version, drop_output, write_lines_at_once

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "new": ("Begin", "make a small project that runs, with its tests"),
    "dev": ("Develop", "serve the application here, with embedded bindings, and reload it"),
    "routes": ("Develop", "list the routes, with everything that runs before them"),
    "migrate": ("Develop", "list, make and apply the migrations of SQL databases"),
    "sql": ("Develop", "run SQL on a local database, from a prompt or a file"),
    "seed": ("Develop", "put the first rows into a local database, from seed.sql"),
    "record": ("Check", "write tests of requests that `core dev` has seen"),
    "check": ("Check", "prove Env, names and SQL against the configuration file"),
    "types": ("Check", "write the Env class that the configuration file asks for"),
    "openapi": ("Check", "describe the API as OpenAPI, from its types"),
    "client": ("Develop", "write a typed client of an API from its OpenAPI document"),
    "build": ("Deploy", "make a bundle that workerd runs by itself"),
    "serve": ("Deploy", "run a bundle in workerd, or the application on CPython"),
    "backup": ("Deploy", "copy a node's state while it runs"),
    "restore": ("Deploy", "make a state folder from a backup"),
    "completion": ("Begin", "print the completion script of a shell"),
}
"""Each with its group and its line in the overview."""

_EXIT_CODES: Final = (
    "Exit codes: 0 all is well, 1 something was found or failed,\n"
    "2 the command or the configuration file was wrong, 130 interrupted with Ctrl-C."
)
_WRONG_PLACE: Final = (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
"""The errors of a place where a command cannot write, or read."""


class CoreParser(argparse.ArgumentParser):
    """One style of help for every command; a mistake is told with the way to the right words."""

    commands: Mapping[str, argparse.ArgumentParser]

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("formatter_class", _Formatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(*args, **options)
        self.register("type", Path, _path_of)

    def error(self, message: str) -> NoReturn:
        """Print the mistake and end with exit code 2."""
        tell_error(f"{message}{self._near(message)}")
        names = [*getattr(self, "commands", ())]
        sys.stderr.write(f"See `{' '.join([self.prog, *names])} --help`.\n")
        raise SystemExit(2)

    def _near(self, message: str) -> str:
        """Return the options or values that are spelt much like those that were not recognized."""
        from difflib import get_close_matches

        value = re.search(r"invalid choice: '(.+?)' \(choose from (.+)\)", message)
        if value is not None:
            words, known = [value[1]], re.findall(r"[\w-]+", value[2])
        else:
            found = message.partition("unrecognized arguments: ")[2]
            parsers = [self, *getattr(self, "commands", {}).values()]
            known = [option for parser in parsers for option in parser._option_string_actions]
            words = [word.partition("=")[0] for word in found.split() if word.startswith("-")]
        near = [match for word in words for match in get_close_matches(word, known, n=1, cutoff=0.65)]
        return f". Did you mean {' '.join(near)}?" if near else ""


def _path_of(text: str) -> Path:
    if not text:  # as of a variable that is not set: to Python it is the current folder
        raise argparse.ArgumentTypeError("the path is empty. Name one")
    return Path(text)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str, **options: Any) -> None:
        options["max_help_position"] = 30
        super().__init__(prog, **options)

    def start_section(self, heading: str | None) -> None:
        super().start_section(heading and heading[0].upper() + heading[1:])


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, as in `core routes >&-`
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - it is the stream until the process ends
    write_lines_at_once()
    try:
        code = _run(arguments)
        # Here and not while Python ends, where a pipe that is closed can only be complained about.
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        drop_output()
        return 1
    except OSError as error:
        if isinstance(error, _WRONG_PLACE) and error.filename:
            tell_error(f"{shown_path(error.filename)} cannot be used: {error.strerror}. Name another file or folder")
            return 2
        if error.errno != errno.ENOSPC:
            raise
        drop_output()
        tell_error(
            f"{error.filename or 'the output'} cannot be written: {error.strerror}. Make room there, or write elsewhere"
        )
        return 1


def ended(code: int) -> NoReturn:
    """End the process with the exit code of a command: as Python does, but without taking its objects apart.

    For the syntax trees of a program that is up to a fifth of the time of `core check`. And obstore's threads still
    hand answers to Python then: one that meets an interpreter on its way down aborts the process, and a restore that
    had done all of its work ended with 134 now and then (PyO3/pyo3-async-runtimes#40).
    """
    import atexit
    import threading

    threading._shutdown()  # type: ignore[attr-defined]  # what Python itself calls first: waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["help"] and len(arguments) > 1:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(_overview())
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        sys.stdout.write(f"core {core_version()}\n")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        return _unknown(name)
    args = parser_for(name).parse_args(arguments)
    from core.errors import BindingError, ConfigurationError, DeveloperError, UsageError

    run: Callable[[argparse.Namespace], int] = import_module(f"core.cli.{name}").run
    try:
        return run(args)
    except (DeveloperError, BindingError) as error:
        tell_error(str(error))
        return 2 if isinstance(error, UsageError | ConfigurationError) else 1


def parser_for(*names: str) -> CoreParser:
    parser = CoreParser(prog="core", epilog=_EXIT_CODES)
    subparsers = parser.add_subparsers(dest="command", parser_class=CoreParser)
    for name in names:
        module = import_module(f"core.cli.{name}")
        epilog = getattr(module, "EXIT_CODES", _EXIT_CODES)
        module.add(subparsers.add_parser(name, help=COMMANDS[name][1], description=module.DESCRIPTION, epilog=epilog))
    parser.commands = subparsers.choices
    return parser


def _unknown(name: str) -> int:
    from difflib import get_close_matches

    near = get_close_matches(name, [*COMMANDS, "--help", "--version"], n=1)
    hint = f" Did you mean `core {near[0]}`?" if near else ""
    tell_error(f"there is no {'option' if name.startswith('-') else 'command'} `{name}`.{hint}\nSee `core --help`.")
    return 2


def _overview() -> str:
    paint = Style(sys.stdout)
    lines = [
        f"{paint('core', 'bold')} {core_version()}: typed HTTP APIs on an edge worker runtime, in Python",
        "",
        f"{paint('Usage', 'bold')}: core COMMAND [options]",
    ]
    groups: dict[str, list[str]] = {}
    for name, (group, _) in COMMANDS.items():
        groups.setdefault(group, []).append(name)
    for group, names in groups.items():
        lines += ["", paint(group, "bold")]
        lines += [f"  {paint(name.ljust(11), 'cyan')} {COMMANDS[name][1]}" for name in names]
    lines += ["", "`core COMMAND --help` lists the options of a command.", _EXIT_CODES, ""]
    return "\n".join(lines)
