"""`core check`: the program against its configuration file, without running it and without a type checker."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.cli.project import find_configuration
from core.errors import ConfigurationError, DeveloperError

if TYPE_CHECKING:
    from core.config.check import Finding
    from core.config.model import Configuration
    from core.mypy_plugin.settings import Settings

__all__ = ["add", "run"]

_DESCRIPTION = """\
Prove the program against its configuration file: Env in both directions and in every environment, names of bindings,
path parameters, queues, the order of middleware, and SQL against the migrations. Reads the files that `main` imports;
nothing of the application runs. The findings are those of the mypy plugin, and so are the options: `env` and
`environments` of [core-mypy] in mypy.ini or [tool.core-mypy] in pyproject.toml.

Exit codes: 0 nothing was found, 1 something was, 2 the configuration cannot be read or the command was wrong."""

_RULES: Final = {
    "core-binding": "A binding named by a text is not on Env, or is of another kind",
    "core-env": "Env and the configuration file differ",
    "core-order": "A middleware reads what only a later one provides",
    "core-params": "A handler asks for a path parameter that its path does not have",
    "core-queue": "The producer and the consumer of a queue do not agree",
    "core-sql": "A statement cannot work on the database that the migrations make",
}


def add(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "check", help="prove the program against its configuration", description=_DESCRIPTION
    )
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="further files or folders to check")
    parser.add_argument("--format", choices=("text", "json", "sarif"), default="text", help="(default: %(default)s)")
    parser.add_argument(
        "--env-class", action="append", default=[], metavar="NAME", help="full name or pattern of an Env class"
    )
    parser.add_argument("--config", metavar="FILE", type=Path, help="configuration file (default: the nearest above)")
    parser.add_argument("--env", metavar="NAME", dest="environment", help="check this environment only (default: all)")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from core.config.check import configuration_findings
    from core.config.program import Options, check_program

    missing = [path for path in args.paths if not path.exists()]
    try:
        if missing:
            raise DeveloperError(f"{missing[0]} is no file or folder. Give the path of Python files to check")
        path = find_configuration(args.config)
    except DeveloperError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    configurations: list[Configuration] = []
    try:
        settings = _settings(path.parent)
        configurations = _read(path, args.environment, () if settings is None else settings.environments)
    except ConfigurationError as error:
        findings = configuration_findings(error, path)
    except DeveloperError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    else:
        named = args.env_class or (settings.env if settings is not None else None)
        findings = check_program(configurations, Options(env=named, paths=args.paths))
    print(_FORMATS[args.format](findings, path, configurations))
    if not configurations:
        return 2
    return 1 if findings else 0


def _read(path: Path, environment: str | None, chosen: Sequence[str]) -> list[Configuration]:
    from core.config.load import load, load_all

    if environment is not None:
        return [load(path, environment=environment)]
    everything = load_all(path)
    return [c for c in everything if (c.environment or "top-level") in chosen] or everything


def _settings(folder: Path) -> Settings | None:
    """The options of the mypy plugin, which hold here too, where the project has them."""
    from core.mypy_plugin.settings import read_settings

    for directory in (folder, *folder.parents):
        for name, section in (
            ("mypy.ini", "[core-mypy]"),
            ("pyproject.toml", "[tool.core-mypy]"),
            ("setup.cfg", "[core-mypy]"),
        ):
            file = directory / name
            if file.is_file() and section in file.read_text("utf-8", "replace"):
                settings = read_settings(str(file))
                if settings.problems:
                    raise DeveloperError("; ".join(settings.problems))
                return settings
        if (directory / ".git").exists():
            break
    return None


def _relative(file: str) -> str:
    """The path as it is shortest to read from here."""
    try:
        relative = os.path.relpath(file)
    except ValueError:  # another drive
        return file
    return file if relative.startswith("..") else relative


def _text(findings: Sequence[Finding], path: Path, configurations: Sequence[Configuration]) -> str:
    from core.cli.style import Style

    paint = Style(sys.stdout)
    lines: list[str] = []
    for finding in findings:
        place = paint.bold(f"{_relative(finding.file)}:{finding.line}:")
        severity = paint.paint(f"{finding.severity}:", "bold", "red" if finding.severity == "error" else "yellow")
        lines.append(f"{place} {severity} {finding.message}  {paint.dim(f'[{finding.code}]')}")
    if not configurations:
        lines.append(f"{_relative(str(path))} cannot be used. {_count(len(findings), 'mistake')}.")
    elif findings:
        files = len({finding.file for finding in findings})
        lines.append(f"Found {_count(len(findings), 'error')} in {_count(files, 'file')}.")
    else:
        names = [c.environment or "the top level" for c in configurations]
        unchecked = {entry.key: entry.reason for c in configurations for entry in c.unchecked}
        lines += [f"{_relative(str(path))}: {key}: {reason}" for key, reason in unchecked.items()]
        lines.append(f"The program agrees with {_relative(str(path))} ({', '.join(names)}).")
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _json(findings: Sequence[Finding], path: Path, configurations: Sequence[Configuration]) -> str:
    rows = [
        {
            "file": _relative(finding.file),
            "line": finding.line,
            "column": finding.column,
            "severity": finding.severity,
            "code": finding.code,
            "message": finding.message,
            "environment": finding.environment,
        }
        for finding in findings
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False)


def _sarif(findings: Sequence[Finding], path: Path, configurations: Sequence[Configuration]) -> str:
    """The Static Analysis Results Interchange Format, version 2.1.0 (OASIS)."""
    codes = list(_RULES)
    results = [
        {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": finding.severity,
            "message": {"text": finding.message},
            "locations": [{"physicalLocation": _place(finding)}],
        }
        for finding in findings
    ]
    driver = {
        "name": "core check",
        "semanticVersion": _version(),
        "rules": [
            {"id": code, "name": _camel(code), "shortDescription": {"text": text}} for code, text in _RULES.items()
        ],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _place(finding: Finding) -> dict[str, object]:
    from urllib.parse import quote

    file = _relative(finding.file)
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


def _camel(code: str) -> str:
    return "".join(part.capitalize() for part in code.split("-"))


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("core-edge")
    except PackageNotFoundError:
        return "0.0.0"


_FORMATS: Final = {"text": _text, "json": _json, "sarif": _sarif}
