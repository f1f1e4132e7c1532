"""The codes of findings, by which `[core.checks]`, the mypy plugin, `core check` and its SARIF rules name them.

A new code is written here and nowhere else in the program. It needs a page, docs/reference/checks/CODE.md, with a
wrong and a right example; tests/program/test_pages.py names a missing one. Imports nothing of the configuration: the
mypy plugin loads this file in every run, also where there is nothing to check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

Code: TypeAlias = Literal[
    "core-env",
    "core-import",
    "core-binding",
    "core-params",
    "core-order",
    "core-route",
    "core-user",
    "core-queue",
    "core-sql",
    "core-scan",
    "core-handler",
    "core-await",
    "core-worker",
    "core-openapi",
    "core-unread",
]
Severity: TypeAlias = Literal["error", "warning", "note"]
LEVELS: Final = ("off", "warning", "error")
"""The levels that a project may give a code in `[core.checks]`."""


class Check(NamedTuple):
    """`rule` is the message of a finding, for SARIF; `title` mypy's name of the code, None where mypy does not have it.
    `level` is the level where a project sets no other."""

    rule: str
    title: str | None
    level: Literal["off", "warning", "error"] = "error"


CHECKS: Final[Mapping[Code, Check]] = {
    "core-env": Check("Env and the configuration file differ", "Check Env against the configuration file"),
    "core-import": Check(
        "The program cannot be imported, or has no application where main says",
        "Check that the program can be imported",
    ),
    "core-binding": Check(
        "A binding named by a string is not on Env, or is of another kind", "Check names of bindings given as strings"
    ),
    "core-params": Check(
        "A handler asks for a path parameter that its path does not have",
        "Check path parameters and the order of handlers",
    ),
    "core-order": Check("A middleware reads a value that only a later one provides", "Check the order of middleware"),
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
    "core-handler": Check(
        "A handler, a call of the framework or a class does not have the shape that works",
        "Check defaults that all instances of a class share",
    ),
    "core-await": Check("A call is not awaited", "Check calls that are not awaited"),
    "core-worker": Check("The program uses a module or function that a worker's Python lacks", None),
    "core-openapi": Check("The document of the API has a value whose type is not known", None, "warning"),
    "core-unread": Check("A handler or a statement could not be read, so that nothing is said of it", None, "off"),
}
CODES: Final[tuple[Code, ...]] = tuple(sorted(CHECKS))
