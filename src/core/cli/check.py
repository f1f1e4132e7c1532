"""`core check`: the program against its configuration file, by its own start and without a type checker."""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.cli.project import add_configuration, configurations_of, find_configuration
from core.cli.style import shown_path, tell_error
from core.dev.terminal import Style, core_version
from core.errors import ConfigurationError, DeveloperError, UsageError

if TYPE_CHECKING:
    from watchfiles import Change

    from core.config.model import Configuration
    from core.program.findings import Finding
    from core.program.module_rules import Memory
    from core.program.proof import Proof

DESCRIPTION: Final = """\
Prove the program against its configuration file: Env in both directions and in every environment, names of bindings,
path parameters, queues, crons, the order of middleware, SQL against the migrations, and modules that a worker's Python lacks.
Imports the module that `main` names, in a process of its own, and reads the texts of its functions. The findings are those of the mypy plugin, and so are the options: `env` and
`environments` of [core-mypy] in mypy.ini or [tool.core-mypy] in pyproject.toml.

[core.checks] in the configuration file makes a code "off", "warning" or "error", for both.

At the end stands what was proven, and what was not read: handlers whose function is not found, statements whose text or database is
not known, each with its place as a note. --strict makes them errors, as CI should have it.

--watch checks again after every change of a file, and only the modules that the change affects."""


_COLOURS: Final = {"error": "red", "warning": "yellow", "note": "blue"}
_STEP: Final = 10
_DEBOUNCE: Final = 100
"""Milliseconds without a further change after which a change counts, and after which it counts in any case."""


def _is_watched(change: Change, path: str) -> bool:
    """Return True if the findings may depend on a file, and it is not in a folder of an environment or of the tools."""
    parts = Path(path).parts
    if {"node_modules", "__pycache__", "site-packages", ".git", ".core", ".mypy_cache"} & set(parts):
        return False
    ends = (".py", ".sql", ".toml", ".ini", ".cfg", ".json", ".jsonc")
    return parts[-1].endswith(ends) or parts[-1].startswith((".dev.vars", ".env"))


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="further files or folders to check")
    parser.add_argument("--format", choices=("text", "json", "sarif"), default="text", help="(default: %(default)s)")
    parser.add_argument(
        "--env-class", action="append", default=[], metavar="NAME", help="full name or pattern of an Env class"
    )
    parser.add_argument("--watch", action="store_true", help="check again after every change, until Ctrl-C")
    parser.add_argument(
        "--strict", action="store_true", help="handlers and statements that were not read are errors (core-unread)"
    )
    add_configuration(parser, "check this environment only (default: all)")


def run(args: argparse.Namespace) -> int:
    from core.program.cache import Cache
    from core.program.module_rules import Memory, without_collecting

    missing = [path for path in args.paths if not path.exists()]
    if missing:
        raise UsageError(f"{missing[0]} is not a file or folder. Give the path of Python files to check")
    path = find_configuration(args.config)
    with without_collecting():
        return _watch(args, path) if args.watch else _look(args, path, Memory(Cache(path.parent)))


def _look(args: argparse.Namespace, path: Path, memory: Memory) -> int:
    import attrs

    from core.program.findings import configuration_findings
    from core.program.proof import Options, Proof, prove
    from core.program.settings import find_settings

    configurations: list[Configuration] = []
    try:
        settings = find_settings(path.parent)
        configurations = configurations_of(path, args.environment)
        if settings is not None and args.environment is None:
            configurations = settings.chosen(configurations)
    except ConfigurationError as error:
        proof = Proof(configuration_findings(error, path), 0, 0, 0)
    except DeveloperError as error:
        tell_error(str(error))
        return 2
    else:
        options = Options(args.env_class, args.paths) if args.env_class else Options.of(settings, args.paths)
        proof = prove(configurations, options, memory)
        unread = list(proof.not_read(configurations, strict=args.strict))
        proof = attrs.evolve(proof, findings=[*proof.findings, *unread])
    print(_FORMATS[args.format](proof, path, configurations))
    if args.format == "text":
        _say_changed_migrations(configurations)
    if not configurations:
        return 2
    return 1 if any(finding.severity == "error" for finding in proof.findings) else 0


def _watch(args: argparse.Namespace, path: Path) -> int:
    """Look again after every change of a file, until Ctrl-C."""
    try:
        from watchfiles import watch
    except ImportError:
        tell_error("core check --watch needs watchfiles. Install core-edge[dev]")
        return 2
    from core.program.module_rules import Memory

    memory = Memory()
    folders = {path.parent.resolve(), *(given.resolve() for given in args.paths)}
    # Watching begins first, so that no change is missed while the program is looked at.
    changes = watch(
        *folders,
        watch_filter=_is_watched,
        step=_STEP,
        debounce=_DEBOUNCE,
        yield_on_timeout=True,
        rust_timeout=1,
        raise_interrupt=False,
    )
    next(changes, None)
    while True:
        print("Checking…", flush=True)
        code = _look(args, path, memory)
        sys.stdout.flush()
        # Modules that were read anew leave the old ones behind, in circles. There is time for that after the answer.
        gc.collect()
        if next((True for change in changes if change), None) is None:
            return code


def _say_changed_migrations(configurations: Sequence[Configuration]) -> None:
    """The local databases may have another schema than the SQL was proven against."""
    if not any((one.directory / one.worker.core.state).is_dir() for one in configurations):
        return
    from core.assembly.project import changed_locally

    for note in dict.fromkeys(note for configuration in configurations for note in changed_locally(configuration)):
        print(f"note: {note}.")


def _text(proof: Proof, path: Path, configurations: Sequence[Configuration]) -> str:
    paint = Style(sys.stdout)
    findings = proof.findings
    lines: list[str] = []
    for finding in findings:
        place = paint(f"{shown_path(finding.file)}:{finding.line}:", "bold")
        severity = paint(f"{finding.severity}:", "bold", _COLOURS[finding.severity])
        lines.append(f"{place} {severity} {finding.message}  {paint(f'[{finding.code}]', 'dim')}")
    if not configurations:
        lines.append(f"{shown_path(path)} cannot be used. {_count(len(findings), 'mistake')}.")
    else:
        counts = {level: sum(one.severity == level for one in findings) for level in ("error", "warning")}
        if any(counts.values()):
            files = len({one.file for one in findings if one.severity != "note"})
            counted = " and ".join(_count(number, level) for level, number in counts.items() if number)
            lines.append(f"Found {counted} in {_count(files, 'file')}.")
        lines += _proven(proof, path, configurations, agrees=not any(counts.values()))
    return "\n".join(lines)


def _proven(proof: Proof, path: Path, configurations: Sequence[Configuration], *, agrees: bool) -> Iterator[str]:
    """What was proven, and the number of what was not read."""
    from core.program.envs import declares_bindings
    from core.program.extensions import unchecked_in

    proven = ", ".join(_count(number, noun[:-1]) for noun, number in _counts(proof)["proven"].items() if number)
    lost = ", ".join(_count(number, noun[:-1]) for noun, number in _counts(proof)["unread"].items() if number)
    counted = f"{proven or 'nothing'} proven{f'; not read: {lost}' if lost else ''}."
    if not agrees:
        if proven or lost:
            yield f"{counted[0].upper()}{counted[1:]}"
        return
    names = [one.environment or "the top level" for one in configurations]
    yield from (f"{shown_path(path)}: {part.key}: {part.reason}" for part in unchecked_in(configurations))
    where = f"{shown_path(path)} ({', '.join(names)})"
    if proven:
        yield f"The program agrees with {where}: {counted}"
    else:
        yield f"Nothing of the program was compared with {where}: it has no name, no handler, no statement."
    if not proof.names and declares_bindings(configurations) is not None:
        yield "None of its bindings was compared: no Env of the program was understood."


def _counts(proof: Proof) -> dict[str, dict[str, int]]:
    unread = [one.what for one in dict.fromkeys(proof.unread)]
    return {
        "proven": {"handlers": proof.handlers, "statements": proof.statements, "names": proof.names},
        "unread": {"handlers": unread.count("handler"), "statements": unread.count("statement")},
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


_MEMBERS: Final = ("line", "column", "severity", "code", "message", "environment")


def _json(proof: Proof, path: Path, configurations: Sequence[Configuration]) -> str:
    rows = [
        {"file": shown_path(finding.file), **{name: getattr(finding, name) for name in _MEMBERS}}
        for finding in proof.findings
    ]
    return json.dumps({"findings": rows, **_counts(proof)}, indent=2, ensure_ascii=False)


def _sarif(proof: Proof, path: Path, configurations: Sequence[Configuration]) -> str:
    """The Static Analysis Results Interchange Format, version 2.1.0 (OASIS)."""
    from core.config.checks import CHECKS, CODES

    results = [
        {
            "ruleId": finding.code,
            "ruleIndex": CODES.index(finding.code),
            "level": finding.severity,
            "message": {"text": finding.message},
            "locations": [{"physicalLocation": _place(finding)}],
        }
        for finding in proof.findings
    ]
    driver = {
        "name": "core check",
        "semanticVersion": core_version("0.0.0"),
        "rules": [
            {"id": code, "name": code.title().replace("-", ""), "shortDescription": {"text": CHECKS[code].rule}}
            for code in CODES
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": _counts(proof),
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False)


def _place(finding: Finding) -> dict[str, object]:
    from urllib.parse import quote

    file = shown_path(finding.file)
    uri = Path(file).as_uri() if os.path.isabs(file) else quote(Path(file).as_posix())
    region: dict[str, int] = {"startLine": max(finding.line, 1)}
    if finding.column > 0:
        region["startColumn"] = _code_points(finding)
    return {"artifactLocation": {"uri": uri}, "region": region}


def _code_points(finding: Finding) -> int:
    """A finding's column in characters, as SARIF counts: Python's own columns are bytes of UTF-8."""
    try:
        line = Path(finding.file).read_bytes().splitlines()[finding.line - 1]
    except (OSError, IndexError):
        return finding.column
    return len(line[: finding.column - 1].decode("utf-8", "replace")) + 1


_FORMATS: Final = {"text": _text, "json": _json, "sarif": _sarif}
