"""The codes of findings: what `[core.checks]`, the mypy plugin, `core check` and its SARIF rules go by.

A new code is written here and nowhere else in the program. It needs a page, docs/reference/checks/CODE.md, with a
wrong and a right example; tests/analysis/test_pages.py says what is missing. Imports nothing of the configuration: the
mypy plugin loads this file in every run, also where there is nothing to check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

__all__ = ["CHECKS", "CODES", "Check", "Code", "LEVELS", "Severity"]

Code: TypeAlias = Literal[
    "core-env",
    "core-binding",
    "core-params",
    "core-order",
    "core-route",
    "core-user",
    "core-queue",
    "core-sql",
    "core-scan",
    "core-worker",
    "core-openapi",
]
Severity: TypeAlias = Literal["error", "warning"]
LEVELS: Final = ("off", "warning", "error")
"""The levels that a project may give a code in `[core.checks]`."""


class Check(NamedTuple):
    """`rule` is what a finding says, for SARIF; `title` what mypy lists the code as, None where mypy does not have it.
    `level` is what it is where a project says nothing else."""

    rule: str
    title: str | None
    level: Literal["off", "warning", "error"] = "error"


CHECKS: Final[Mapping[Code, Check]] = {
    "core-env": Check("Env and the configuration file differ", "Check Env against the configuration file"),
    "core-binding": Check(
        "A binding named by a string is not on Env, or is of another kind", "Check names of bindings given as strings"
    ),
    "core-params": Check(
        "A handler asks for a path parameter that its path does not have",
        "Check path parameters and the order of handlers",
    ),
    "core-order": Check("A middleware reads what only a later one provides", "Check the order of middleware"),
    "core-route": Check("A route that no request reaches, or a mount of nothing", "Check that routes can be reached"),
    "core-user": Check("A handler wants a user where there is no authenticator", None),
    "core-queue": Check(
        "The producer and the consumer of a queue do not agree", "Check consumers of queues against producers"
    ),
    "core-sql": Check(
        "A statement cannot work on the database that the migrations make", "Check SQL against the migrations"
    ),
    "core-scan": Check(
        "A statement reads a whole table, or sorts without an index", "Check that statements use indexes", "off"
    ),
    "core-worker": Check("The program uses what a worker's Python has not", None),
    "core-openapi": Check("The document of the API has a value whose type is not known", None, "warning"),
}
CODES: Final[tuple[Code, ...]] = tuple(sorted(CHECKS))
