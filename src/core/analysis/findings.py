"""A finding: its place, its code and its level, and how mypy prints it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import attrs

from core.config.checks import CHECKS, Code, Severity
from core.config.model import Configuration
from core.errors import ConfigurationError
from core.values import frozen

__all__ = ["Finding", "Location", "configuration_findings", "level_of", "sort_findings"]


@attrs.frozen(order=True)
class Location:
    """A place in a source file. Lines and columns count from 1; 0 where it is not known."""

    file: str
    line: int = 0
    column: int = 0


@frozen
class Finding:
    """One thing that cannot work. `environment` is the named environment it belongs to, None for the top level."""

    code: Code
    message: str
    file: str
    line: int
    column: int = 0
    severity: Severity = "error"
    environment: str | None = None

    @property
    def text(self) -> str:
        """`file:line: error: message  [code]`, as mypy prints it."""
        return f"{self.file}:{self.line}: {self.severity}: {self.message}  [{self.code}]"


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Without repetitions, by file, line, column, code and text."""
    return sorted(set(findings), key=lambda f: (f.file, f.line, f.column, f.code, f.message))


def level_of(code: Code, configurations: Sequence[Configuration]) -> str:
    """Return the level that the project gives a code: `off`, `warning` or `error`."""
    level = CHECKS[code].level
    return configurations[0].worker.core.checks.get(code, level) if configurations else level


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
