"""A database as its migrations make it, and the statements that were judged against it."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import attrs

from core.sql.analysis import StatementAnalysis
from core.sql.catalog import Migrated, migrate
from core.sql.migrations import migration_digest
from core.sql.rules import MAX_SQL_BYTES
from core.sql.scans import scan_problems
from core.sql.statement import SqlProblem, Statement
from core.statements.tokens import statements_of

_KEPT: Final = 4096
"""The number of statements kept: `core check --watch` and `dmypy` ask about those of a whole project after every edit.
"""


@cache
def blank_schema() -> Schema:
    """The schema of a database of which nothing is known: mistakes in any database are still reported."""
    return Schema(migrate(Path("/nowhere")))


def schema_of(folder: Path) -> Schema:
    """The schema that the migrations in `folder` make. Kept as long as not one of the files changes."""
    return _schema_of(folder, migration_digest(folder))


@lru_cache(16)
def _schema_of(folder: Path, _digest: str) -> Schema:
    return Schema(migrate(folder))


class Schema:
    """A database, as far as its migrations tell."""

    def __init__(self, migrated: Migrated) -> None:
        self.migrated = migrated
        self._analysed = lru_cache(_KEPT)(self._analyse)

    def analyse(self, sql: str) -> Statement:
        """All that can be said about `sql`, the text of one `prepare`. Kept for a while."""
        with self.migrated.lock:
            return self._analysed(sql)

    def analyse_lines(self, sql: str) -> Statement:
        """What can be said about the text of one `exec`, which runs a statement in each line, without values."""
        problems: list[SqlProblem] = []
        unknown, newer, at = "", "", 0
        lines = sql.split("\n")
        for line in lines:
            if line.strip() or not sql.strip():
                one = self.analyse(line)
                unknown, newer = unknown or one.unknown, max(newer, one.newer)
                for problem in one.problems:
                    is_cut = len(lines) > 1 and ("syntax error" in problem.message or "breaks off" in problem.message)
                    more = ". exec() runs each line by itself: write a statement on one line" if is_cut else ""
                    problems.append(attrs.evolve(problem, message=problem.message + more, at=problem.at + at))
                if one.takes:
                    problems.append(SqlProblem("exec() binds no values. Write prepare(…).bind(…) in its place", at))
            at += len(line) + 1
        return Statement(tuple(problems), columns=(), unknown=unknown, newer=newer)

    def scans(self, sql: str) -> tuple[str, ...]:
        """The tables that a statement reads without an index; none where the schema or the statement is not known."""
        return scan_problems(self.migrated, sql) if self.migrated.trusted and not self.analyse(sql).problems else ()

    def _analyse(self, sql: str) -> Statement:
        size = len(sql.encode("utf-8", "replace"))
        if size > MAX_SQL_BYTES:
            return Statement((SqlProblem(f"the text has {size} bytes. D1 takes {MAX_SQL_BYTES} at most"),))
        if "\0" in sql:
            return Statement((SqlProblem("the text has a NUL character. Leave it out"),))
        parts = statements_of(sql)
        if not any(part.tokens for part in parts):
            return Statement((SqlProblem("the text holds no statement. Write one"),))
        nothing = (
            "D1 takes the text after a semicolon for another statement, and finds none there. Leave out the comment or the "
            "second semicolon"
        )
        problems = [SqlProblem(nothing, part.start) for part in parts if not part.tokens]
        real = [part for part in parts if part.tokens]
        result = Statement()
        changes_schema = False
        for part in real:
            if part is not real[-1] and part.parameters:
                message = (
                    "of several statements in one text, only the last may have parameters. Prepare each by itself, and run "
                    "them with batch()"
                )
                problems.append(SqlProblem(message, part.start + part.tokens[0].start))
            result = StatementAnalysis(self.migrated, part, self.migrated.trusted and not changes_schema).read()
            problems += result.problems
            changes_schema = changes_schema or part.tokens[0].word in ("CREATE", "ALTER", "DROP")
        return attrs.evolve(result, problems=tuple(problems), columns=None) if problems else result
