"""A finding: its place, its code and its level, and how mypy prints it."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from core.config.checks import CHECKS, Code, Severity

if TYPE_CHECKING:
    from core.config.model import Configuration
    from core.errors import ConfigurationError


class Unread(NamedTuple):
    """A `statement` or `handler` that nothing could be said about, and why: it is neither right nor wrong."""

    file: str
    line: int
    why: str
    what: str = "statement"


# A tuple and not an attrs class: the mypy plugin reads it in every run, and does not import attrs for it.
class Finding(NamedTuple):
    """One thing that cannot work. `environment` is the named environment it belongs to, None for the top level.

    `end_line` is the last line of the expression, 0 where that is not known: a text over several lines has no other
    place for the comment that switches a finding off. `typed` is mypy's code of the error in which a type checker tells
    the same.
    """

    code: Code
    message: str
    file: str
    line: int
    column: int = 0
    severity: Severity = "error"
    environment: str | None = None
    end_line: int = 0
    typed: str = ""

    @property
    def text(self) -> str:
        """`file:line: error: message  [code]`, as mypy prints it."""
        return f"{self.file}:{self.line}: {self.severity}: {self.message}  [{self.code}]"


def syntax_error(file: str, line: int, message: str) -> Finding:
    """The finding about a file that is no Python."""
    from core.explain.misuse import fix_for_syntax

    return Finding("core-import", f"syntax error: {message}. {fix_for_syntax(message) or 'Fix it'}", file, line)


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """By file, line, column, code and text; a message is there once on a line, at its first column."""
    ordered = sorted(set(findings), key=lambda f: (f.file, f.line, f.column, f.code, f.message, f.environment or ""))
    once: dict[object, Finding] = {}
    for finding in ordered:
        once.setdefault(finding._replace(column=0), finding)
    return [*once.values()]


def level_of(code: Code, configurations: Sequence[Configuration], file: str = "") -> str:
    """The level that `[core.checks]` gives a code in a file, or in the whole project: `off`, `warning` or `error`.

    A table of a path that the file is at or below, or of a pattern that it matches, says more than the setting of the
    project; of several such tables the last that names the code counts. Paths start from the configuration file.
    """
    checks: Mapping[str, str | Mapping[str, str]] = configurations[0].worker.core.checks if configurations else {}
    level = checks.get(code, CHECKS[code].level)
    tables = [(pattern, table) for pattern, table in checks.items() if not isinstance(table, str) and code in table]
    if file and tables:
        path = os.path.relpath(os.path.abspath(file), configurations[0].directory.resolve()).replace(os.sep, "/")
        level = next((table[code] for pattern, table in reversed(tables) if _matches(path, pattern)), level)
    return level if isinstance(level, str) else CHECKS[code].level


def is_wanted(code: Code, configurations: Sequence[Configuration]) -> bool:
    """Return True if a code is on anywhere in the project, so that a costly search for it is needed."""
    checks: Mapping[str, str | Mapping[str, str]] = configurations[0].worker.core.checks if configurations else {}
    levels = [table.get(code, "off") for table in checks.values() if not isinstance(table, str)]
    return any(level != "off" for level in (level_of(code, configurations), *levels))


def _matches(path: str, pattern: str) -> bool:
    pattern = pattern.removeprefix("./").rstrip("/")
    return path == pattern or path.startswith(f"{pattern}/") or fnmatchcase(path, pattern)


_PLACE: Final = re.compile(r"(?P<file>.+?):(?:(?P<line>\d+):)? (?P<text>.*)", re.DOTALL)


def configuration_findings(error: ConfigurationError, path: Path) -> list[Finding]:
    """The mistakes of a configuration file as findings, each at its line of the file that has it."""
    findings: list[Finding] = []
    for problem in error.problems:
        match = _PLACE.fullmatch(problem)
        file, line, text = path, 1, problem
        if match is not None:
            file = path.parent / match["file"] if match["file"] != path.name else path
            line, text = int(match["line"] or 1), match["text"]
        findings.append(Finding("core-env", text, str(file), line))
    return findings


def levelled(findings: Iterable[Finding], configurations: Sequence[Configuration]) -> Iterator[Finding]:
    """The findings as errors or warnings, as the project wants its codes."""
    for finding in findings:
        level = level_of(finding.code, configurations, finding.file)
        if level != "off":
            yield finding if level == "error" else finding._replace(severity="warning")


_IGNORE: Final = re.compile(r"#\s*(?:type:\s*ignore|core:\s*ignore(?=\[))(?:\[(?P<codes>[^\]]*)\])?")


def is_ignored(finding: Finding) -> bool:
    """Return True if the line of a finding, or the last one of its expression, switches it off: with the comment that
    mypy goes by, `# type: ignore[core-env]`, or one that mypy does not read, `# core: ignore[core-worker]`.
    """
    for line in {finding.line, finding.end_line} if finding.file.endswith(".py") else ():
        match = _IGNORE.search(linecache.getline(finding.file, line))
        codes = {code.strip() for code in (match["codes"] or "").split(",")} - {""} if match is not None else set[str]()
        if match is not None and (not codes or codes & {finding.code, "core"}):
            return True
    return False
