"""One statement against a database's migrations: its mistakes, the number of its values, the columns of its rows.

SQLite itself is asked, through the standard library, and a user's statement is only ever compiled (`EXPLAIN`), never
run. An uncertain problem is not reported. This file knows no type checker and no source file; the texts of
findings are decided here, once.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final

from core.sql.catalog import SCHEMA_WORDS, Migrated, TableInfo
from core.sql.functions import AGGREGATES
from core.sql.location import locate
from core.sql.messages import did_you_mean, listed
from core.sql.rules import (
    MAX_PARAMETERS,
    MAX_PATTERN_BYTES,
    PRAGMAS,
    REFUSED_FUNCTIONS,
    TRANSACTION_STATEMENTS,
    absent_tables,
    allows_pragma,
    refusal,
)
from core.sql.statement import ANY, Column, Slot, SqlProblem, Statement, Storage
from core.sql.syntax import Change, Derived, Join, Name, Operator, Query, Table, Unclear, inside, read_statement
from core.sql.values import values_of
from core.statements.given import never_unset
from core.statements.tokens import StatementText, Token, outside, parameter_count, quoted, statements_of, verb_of

_BEFORE_TABLES: Final = frozenset(["FROM", "JOIN", "INTO", "UPDATE"])
_ROWS: Final = frozenset(["SELECT", "VALUES"])

_STEPS_AT_MOST: Final = 1_000_000  # the instructions of SQLite after which a question for names is given up
_BATCH: Final = "Run the statements together with batch(), which is a transaction"
_FIXES: Final = {"D1 does not authorize temporary tables": ". Use WITH for a table of one statement"}

# Mistakes that no table has a part in: these are said of a database without migrations too.
_GRAMMAR: Final = re.compile(
    r"syntax error$|^incomplete input$|^unrecognized token|^too many |^variable number must|^Expression tree is too|^not authorized"
)

_NO_COLUMN: Final = Column()
_AGGREGATE: Final = rf"\b({'|'.join(sorted(AGGREGATES))})"
# The features of SQLite since 3.37, by the text that shows it and the words of an older one against it. There, a
# statement with that mistake is not judged; any other mistake in it is one on D1 too.
_NEWER: Final[Sequence[tuple[str, re.Pattern[str], re.Pattern[str]]]] = tuple(
    (".".join(map(str, version[:2])), re.compile(text, re.IGNORECASE), re.compile(error, re.IGNORECASE))
    for version, text, error in (
        ((3, 38, 0), r"->", r'near ">+": syntax error'),
        ((3, 39, 0), r"\b(RIGHT|FULL)\b|\bDISTINCT\s+FROM\b", r".*: syntax error|.*\bJOINs? .*"),
        ((3, 44, 0), rf"{_AGGREGATE}\s*\([^()]*(\([^()]*\)[^()]*)*\bORDER\s+BY\b", r'near "ORDER": syntax error'),
        ((3, 46, 0), r"\b(0x[0-9a-f]+|\d+)_\w", r"unrecognized token.*|.*: syntax error"),
        ((3, 47, 0), r"\bWITHIN\s+GROUP\b", r".*: syntax error"),
        ((3, 48, 0), r"\bI?IF\s*\(", r"no such function: I?IF|wrong number of arguments to function I?IF\(\)"),
    )
    if sqlite3.sqlite_version_info < version
)


class StatementAnalysis:
    """One statement of a string, being read."""

    def __init__(self, migrated: Migrated, part: StatementText, known: bool) -> None:
        self.migrated = migrated
        self.part = part
        self.tokens: tuple[Token, ...] = part.tokens
        names = ((token.name or "").lower() for token in part.tokens) if known and migrated.unmade else ()
        self.unknown: str = next((name for name in names if name in migrated.unmade), "")
        self.known: bool = known and not self.unknown
        self.newer: str = ""
        self.problems: list[SqlProblem] = []
        self.names: Sequence[str] | None = None  # of its columns, where SQLite told them when it compiled it

    @cached_property
    def tree(self) -> Query | Change | None:
        """The statement as it is read; None for one that is not understood."""
        try:
            return read_statement(self.part.text, self.tokens)
        except Unclear:
            return None

    def read(self) -> Statement:
        """Return all that can be said about the statement."""
        first, word = self.tokens[0], self.tokens[0].word
        takes = self.part.parameter_count
        refused = refusal(self.part)
        if refused is not None:
            fix = f". {_BATCH}" if word in TRANSACTION_STATEMENTS else _FIXES.get(refused, "")
            self._say(refused + fix, first)
            return self._finish(None if "PRAGMA" in refused else 0)
        if word == "PRAGMA" or (word == "EXPLAIN" and any(token.word == "PRAGMA" for token in self.tokens[1:4])):
            return self._finish(None)  # some pragmas act while they are compiled
        for token in self.tokens:
            if token.kind == "parameter" and token.text[0] != "?":
                self._say(
                    f"D1 does not support named parameters: write ? or ?1 in place of {token.text}, and bind the values "
                    "in that order",
                    token,
                )
                return self._finish(None)
        if takes > MAX_PARAMETERS:
            self._say(f"the statement takes {takes} values. D1 takes {MAX_PARAMETERS} at most", first)
            return self._finish(None)
        for token in absent_tables(self.part):
            name = token.name or ""
            if name.lower() not in self.migrated.tables and self.tokens[0].word != "WITH":
                self._say(f"no such table: {name}. SQLite may have it, and D1 is built without", token)
        if self.problems:
            return self._finish(None)
        error = self._compile(takes)
        if error is not None:
            self._explain(error)
        else:
            self._judge_run()
        if error is not None or self.problems:
            return self._finish(takes if not self.problems else None)
        if word == "EXPLAIN" or not self.known:
            return Statement(takes=takes, unknown=self.unknown)
        if word in SCHEMA_WORDS:
            return Statement(takes=takes, columns=())
        read = values_of(self.tree, self.part, self.migrated.tables)
        self.problems += read.problems
        if self.problems:
            return self._finish(takes)
        outside = tuple(Slot(number, "outside") for number in sorted(never_unset(self.tokens)))
        slots = (*read.slots, *outside)
        return Statement(takes=takes, columns=self._columns(read.columns), slots=slots, certain=read.certain)

    def _judge_run(self) -> None:
        """Find the mistakes that SQLite only refuses when it runs: long patterns, and pragmas read as tables."""
        text = self.part.text.upper()
        if "LIKE" not in text and "GLOB" not in text and "PRAGMA_" not in text:
            return
        for index, (before, token) in enumerate(pairwise(self.tokens), start=1):
            if before.word in ("LIKE", "GLOB") and token.kind == "string" and len(token.text) > MAX_PATTERN_BYTES // 4:
                size = len(token.text[1:-1].replace("''", "'").encode("utf-8", "replace"))
                if size > MAX_PATTERN_BYTES:
                    self._say(
                        f"the pattern has {size} bytes. D1 takes {MAX_PATTERN_BYTES} at most: compare with instr() or "
                        "substr()",
                        token,
                    )
            elif before.word in ("FROM", "JOIN") and token.text[:7].lower() == "pragma_":
                self._judge_pragma_table(token, self.tokens[index + 1 : index + 4])

    def _judge_pragma_table(self, table: Token, following: Sequence[Token]) -> None:
        """Judge `pragma_name` and `pragma_name('argument')` in a FROM clause."""
        name = table.text[7:].lower()
        if table.text.lower() in self.migrated.tables:
            return
        if name in PRAGMAS:
            marks = [token.text for token in following]
            if marks[:1] != ["("]:
                argument = None
            elif marks[2:] == [")"] and following[1].kind == "string" and PRAGMAS[name] != "none":
                argument = marks[1][1:-1]
            else:
                return
            if allows_pragma(name, argument):
                return
        self._say(f"D1 does not authorize PRAGMA {name}", table)

    def _say(self, message: str, token: Token, table: str = "") -> None:
        at = self.part.start + token.start
        self.problems.append(SqlProblem(message, at, table))

    def _finish(self, takes: int | None) -> Statement:
        return Statement(tuple(self.problems), takes, unknown=self.unknown, newer=self.newer)

    # -- asking SQLite

    def _safe_text(self, tokens: Sequence[Token] | None = None) -> str:
        """The statement, or some tokens of it, with its quoted names in a form that can only be a name."""
        tokens = self.tokens if tokens is None else tokens
        text = self.part.text
        at, end = tokens[0].start, tokens[-1].end
        if '"' not in text:
            return text[at:end]
        parts: list[str] = []
        for token in tokens:
            if token.text[0] == '"':
                # Without this a misspelt "name" would be a string, here as in D1, and nobody would be told.
                parts += [text[at : token.start], quoted(token.name or "")]
                at = token.end
        return "".join([*parts, text[at:end]])

    def _compile(self, takes: int) -> str | None:
        """Return SQLite's message about the statement, or None."""
        text = self._safe_text()
        if self.known and self.tokens[0].word == "SELECT" and all(token.word != "LIMIT" for token in self.tokens):
            self.names = self._described(f"{text} LIMIT 0", takes)
        try:
            if self.names is None:
                self.migrated.connection.execute(text if self.tokens[0].word == "EXPLAIN" else f"EXPLAIN {text}")
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            message = str(error)
            return None if message.startswith("Incorrect number of bindings") else message
        return None

    def _explain(self, error: str) -> None:
        """Turn an error of SQLite into a finding, unless it may be wrong."""
        if (called := re.fullmatch(r"no such function: (.+)", error)) and called[1].lower() in REFUSED_FUNCTIONS:
            error = f"not authorized to use function: {called[1]}"
        is_late = self.tokens[0].word in SCHEMA_WORDS  # it runs over tables that may be made at run time too
        if (is_late or not self.known) and not _GRAMMAR.search(error):
            return
        text = self.part.text
        self.newer = next((since for since, new, old in _NEWER if new.search(text) and old.fullmatch(error)), "")
        if self.newer:
            return
        place = self._place_of(error)
        if match := re.fullmatch(r"no such table: (?:main\.)?(.+)", error):
            self._no_such_table(match[1], place)
        elif match := re.fullmatch(r"no such column: (.+)", error):
            self._no_such_column(match[1], place)
        elif match := re.fullmatch(r"table (.+) has no column named (.+)", error):
            table = self.migrated.tables.get(match[1].lower())
            near = did_you_mean(match[2], [c.name for c in table.columns] if table is not None else [])
            self._say(f"{error}.{near or _those(table)}", place)
        elif match := re.fullmatch(r"no such function: (.+)", error):
            near = did_you_mean(match[1], self.migrated.functions)
            self._say(f"{error}.{near or ' D1 has those of SQLite, and takes no others'}", place)
        elif error.endswith("syntax error"):
            way = "Write ? for each value in place of %s" if 'near "%"' in error else "Correct the statement there"
            self._say(f"{error}. {way}", place)
        elif error == "incomplete input":
            self._say("the statement breaks off. Write its end", self.tokens[-1])
        elif match := re.fullmatch(r"not authorized to use function: (.+)", error):
            self._say(f"D1 does not authorize the function {match[1]}()", place)
        elif error.startswith("not authorized"):
            self._say("D1 does not authorize this statement", self.tokens[0])
        elif error.startswith("ambiguous column name"):
            self._say(f"{error}. Name its table too, as in users.id", place)
        else:
            self._say(error, place)

    def _no_such_table(self, name: str, place: Token) -> None:
        bare = name.rpartition(".")[2]
        lower = bare.lower()
        if lower.startswith(("sqlite_", "_cf_")) or lower == "d1_migrations":
            return
        if lower in self.migrated.unmade:  # a trigger writes into it
            self.unknown = lower
            return
        tables = [table.name for key, table in self.migrated.tables.items() if not key.startswith("sqlite_")]
        near = did_you_mean(bare, tables)
        if not near:
            near = f" The migrations make {listed(sorted(tables))}" if tables else " The migrations make no table"
        self._say(f"no such table: {name}.{near}", place, lower)

    def _no_such_column(self, name: str, place: Token) -> None:
        qualifier, _, column = name.rpartition(".")
        if place.text[0] == '"':
            self._say(f"no such column: {name}. SQLite takes it for a text: write that as '{column}'", place)
            return
        alias = qualifier.rpartition(".")[2].lower()
        sources = list(self._sources())
        tables = [table for named, table in sources if table is not None and alias in ("", named.lower())]
        near = did_you_mean(column, [known.name for table in tables for known in table.columns])
        if not near and len(tables) == 1:
            near = _those(tables[0])
        named = list(dict.fromkeys(named for named, _ in sources))
        if alias and alias not in map(str.lower, named):
            right = did_you_mean(qualifier, named)
            near = f"{right[:-1]}.{column}?" if right else f" The statement reads {listed(named)}" if named else ""
        self._say(f"no such column: {name}.{near or ' Name a column of a table in this statement'}", place)

    def _sources(self) -> Iterator[tuple[str, TableInfo | None]]:
        """The sources of the statement by the names that a column may be qualified with; None for a query's rows."""
        tables = self.migrated.tables
        for part in inside(self.tree):
            match part:
                case Table(name=name, alias=alias):
                    yield alias, tables.get(name)
                case Derived(alias=alias) if alias:
                    yield alias, None
                case Change(table=name, alias=alias, inserts=inserts):
                    yield alias, tables.get(name)
                    if inserts and any(token.word == "CONFLICT" for token in self.tokens):
                        yield "excluded", tables.get(name)
                case _:
                    pass

    def _place_of(self, error: str) -> Token:
        """The token that SQLite complains of: where it says so, the first that spells the name in its message."""
        name = error.rpartition(" named ")[2].rpartition(": ")[2].rpartition(".")[2].removesuffix("()").lower()
        named = [(before, token) for before, token in pairwise(self.tokens) if (token.name or "").lower() == name]
        if error.startswith("no such table"):
            named.sort(key=lambda pair: pair[0].word not in _BEFORE_TABLES)
        return locate(self.part, error) or next((token for _, token in named), self.tokens[0])

    # -- the values of rows

    def _columns(self, values: Sequence[Column] | None) -> tuple[Column, ...] | None:
        """The columns of the rows, out of the known `values`; nothing for a statement without rows."""
        names: Sequence[str] | None = None
        if verb_of(self.tokens)[0] in _ROWS:
            names = self.names or self._names()
        elif isinstance(self.tree, Change):
            if not self.tree.returning:
                return ()
            at = next(at for at, token in outside(self.tokens) if token.word == "RETURNING")
            # Named as those of a SELECT of the same list from the changed table.
            text = f"SELECT {self._safe_text(self.tokens[at + 1 :])} FROM {quoted(self.tree.table)}"
            names = StatementAnalysis(self.migrated, statements_of(text)[0], True)._names()
        if names is None:
            return None
        if values is None or len(values) != len(names):
            return tuple(Column(name=name) for name in names)
        columns: dict[str, Column] = {}
        found: list[Column] = []
        for name, value in zip(names, values, strict=True):
            column = _column(name, value)
            one, other = (each.source or each.text for each in (column, columns.get(name, _NO_COLUMN)))
            if one and other and one != other and not self._are_equal(name):
                column = column._replace(hides=other)
            columns[name] = column
            found.append(column)
        return tuple(found)

    def _are_equal(self, name: str) -> bool:
        """True if a condition says that two columns of a name have one value, `a.name = b.name`, or a join may."""
        for part in inside(self.tree):
            match part:
                case Join(using=using) if using:
                    return True
                case Operator("=", [Name(_, one), Name(_, other)]) if one == other == name.lower():
                    return True
                case _:
                    pass
        return False

    def _names(self) -> list[str] | None:
        """The names of the columns of a SELECT: of the same one that gives no row."""
        tokens = self.tokens[: next((at for at, token in outside(self.tokens) if token.word == "LIMIT"), None)]
        takes = parameter_count(tokens)
        # VALUES takes no LIMIT.
        wrapped = f"SELECT * FROM ({self._safe_text()}) LIMIT 0"
        return self._described(f"{self._safe_text(tokens)} LIMIT 0", takes) or self._described(wrapped, takes)

    def _described(self, text: str, takes: int) -> list[str] | None:
        """The names of the columns that SQLite gives a query that takes so many values."""
        connection = self.migrated.connection
        # What is read behind a join may be made before the LIMIT counts, and a WITH RECURSIVE may have no end.
        connection.set_progress_handler(lambda: True, _STEPS_AT_MOST)
        try:
            return [column[0] for column in connection.execute(text, [None] * takes).description]
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            return None
        finally:
            connection.set_progress_handler(None, 0)


def _column(name: str, value: Column) -> Column:
    """The column of a result, with the known facts of its values; of a UNION it is that of the first part."""
    arms = tuple(_column(name, arm) for arm in value.arms)
    first = arms[0] if arms else value
    null, about = ("", "") if value.never else (value.null, value.about)
    if arms and null:
        null, about = next(((arm.null, arm.about) for arm in arms if arm.null), ("", ""))
    return value._replace(
        name=name,
        storage=value.storage if value.storage != ANY else frozenset[Storage](),
        null=null,
        about=about,
        join=value.join if null else "",
        own=value.own if null else "",
        full=value.full and null != "",
        source=first.source,
        declared=first.declared,
        arms=arms,
    )


def _those(table: TableInfo | None) -> str:
    if table is None or not table.columns:
        return ""
    return f" {table.name} has {listed([column.name for column in table.columns])}"
