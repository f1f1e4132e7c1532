"""What a statement means against a database's migrations: its mistakes, how many values it takes, what its rows hold.

SQLite itself is asked, through the standard library, and a user's statement is only ever compiled (`EXPLAIN`), never
run. What SQLite cannot be asked that way is read from a copy of the schema in which the declared type of every column
says where the column stands: such a tag goes through joins, subqueries, views and WITH unharmed, and is lost as soon
as a column becomes part of an expression. What is not known for certain is not said.

This file knows no type checker and no source file; texts of findings are decided here, once.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Literal, NamedTuple

import attrs

from core.config.migrations import (
    REFUSED_STATEMENTS,
    Migrated,
    MigrationProblem,
    TableColumn,
    TableInfo,
    allowed_pragma,
    migrate,
    migration_digest,
    pragma_name,
)
from core.config.sql_plain import read_plain
from core.config.sql_text import (
    Clauses,
    Item,
    Reference,
    StatementText,
    Token,
    clauses_of,
    common_tables_of,
    culprit,
    parameter_count,
    quoted,
    statements_of,
)
from core.values import frozen

__all__ = [
    "Column",
    "RowField",
    "Schema",
    "SqlProblem",
    "Statement",
    "blank_schema",
    "check_column",
    "check_row",
    "check_scalar",
    "check_values",
    "schema_of",
    "storage_of",
]

PARAMETERS_AT_MOST: Final = 100
BYTES_AT_MOST: Final = 100_000
_LIMITS: Final = (
    (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, PARAMETERS_AT_MOST),
    (sqlite3.SQLITE_LIMIT_COLUMN, 100),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 5),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
)

_KEPT: Final = 256
"""How many statements are kept: one is asked about several times, but soon after another."""

_COLUMNS_KEPT: Final = 4096

Storage = Literal["integer", "real", "text", "blob"]
"""What SQLite calls a storage class: the kind of a value, not of its column."""


@frozen
class SqlProblem:
    """A mistake in a statement. `line` counts from 0, within the statement's own text."""

    message: str
    line: int = 0


@frozen
class Column:
    """A column of a result.

    `source` is the table's column that it is, as `users.email`, or "" for an expression. `storage` holds the storage
    classes that it may have, or nothing where that is not known. `null` says why it may be NULL, or nothing.
    """

    name: str
    source: str = ""
    declared: str = ""
    storage: frozenset[Storage] = frozenset()
    null: str = ""


@frozen
class Statement:
    """What is known of a text given to `prepare`.

    `takes` is the number of values to bind, None where that is not known. `columns` are those of its rows: none at
    all for a statement without rows, None where that is not known.
    """

    problems: tuple[SqlProblem, ...] = ()
    takes: int | None = None
    columns: tuple[Column, ...] | None = None

    def column(self, name: str) -> Column | None:
        """The column of that name; of several, the last one, as in a row."""
        for column in reversed(self.columns or ()):
            if column.name == name:
                return column
        return None


_schemas: dict[str, Schema] = {}
_blank: list[Schema] = []


def blank_schema() -> Schema:
    """The schema of a database of which nothing is known: what is wrong in any database is still told."""
    if not _blank:
        _blank.append(Schema(migrate(Path("/nowhere"))))
    return _blank[0]


def schema_of(folder: Path) -> Schema:
    """The schema that the migrations in `folder` make. Kept as long as not one of the files changes."""
    digest = migration_digest(folder)
    schema = _schemas.get(digest)
    if schema is None:
        if len(_schemas) >= 16:
            _schemas.pop(next(iter(_schemas)))
        schema = _schemas[digest] = Schema(migrate(folder), digest)
    return schema


class Schema:
    """A database, as far as its migrations tell."""

    def __init__(self, migrated: Migrated, digest: str = "") -> None:
        self.migrated = migrated
        self.digest = digest
        self._shadow: _Shadow | None = None
        self._statements: dict[str, Statement] = {}
        self._columns: dict[tuple[str, str, int, str], Column] = {}
        for limit, value in _LIMITS:
            migrated.connection.setlimit(limit, value)

    @property
    def problems(self) -> tuple[MigrationProblem, ...]:
        """What is wrong with the migrations themselves."""
        return self.migrated.problems

    @property
    def known(self) -> bool:
        """Whether there are migrations and all of them ran, so that a table which is not there is a mistake."""
        return self.migrated.trusted

    def analyse(self, sql: str) -> Statement:
        """All that can be said about `sql`, the text of one `prepare`. Kept for a while."""
        with self.migrated.lock:
            statement = self._statements.get(sql)
            if statement is None:
                if len(self._statements) >= _KEPT:
                    self._statements.clear()
                statement = self._statements[sql] = self.plain(sql) or self.whole(sql)
            return statement

    # -- one text

    def plain(self, sql: str) -> Statement | None:
        """What `whole` says, of a statement so plain that it can be told at once; else nothing."""
        read = read_plain(sql, self.migrated.tables) if self.known and len(sql) <= BYTES_AT_MOST else None
        if read is None or read.takes > PARAMETERS_AT_MOST:
            return None
        if self.refusal(f"EXPLAIN {sql}", () if read.numbered else (None,) * read.takes) is not None:
            return None
        why = _Missing(read.clauses, self.migrated.tables)
        columns: list[Column] = []
        for name, number, at in read.columns:
            if at < 0:
                columns.append(Column(name))
            else:
                item = read.clauses.items[number]
                table = self.migrated.tables[item.name]
                columns.append(self.column(name, table, at, why.null(name, table, table.columns[at], item)))
        return Statement(takes=read.takes, columns=tuple(columns))

    def refusal(self, text: str, values: tuple[None, ...] = ()) -> str | None:
        """What SQLite says against a text that begins with EXPLAIN, or nothing."""
        try:
            self.migrated.connection.execute(text, values)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            message = str(error)
            return None if message.startswith("Incorrect number of bindings") else message
        return None

    def column(self, name: str, table: TableInfo, at: int, null: str) -> Column:
        """A table's column as one of a result. The same few come again and again."""
        key = (name, table.name, at, null)
        column = self._columns.get(key)
        if column is None:
            declared = table.columns[at]
            if len(self._columns) >= _COLUMNS_KEPT:
                self._columns.clear()
            column = self._columns[key] = Column(
                name, f"{table.name}.{declared.name}", declared.declared, storage_of(declared), null
            )
        return column

    def whole(self, sql: str) -> Statement:
        """What can be said of any text."""
        size = len(sql.encode("utf-8", "replace"))
        if size > BYTES_AT_MOST:
            return Statement((SqlProblem(f"the text has {size} bytes. D1 takes {BYTES_AT_MOST} at most"),))
        if "\0" in sql:
            return Statement((SqlProblem("the text has a NUL character. Leave it out"),))
        parts = list(statements_of(sql))
        if not any(part.tokens for part in parts):
            return Statement((SqlProblem("the text holds no statement. Write one"),))
        problems: list[SqlProblem] = []
        for part in parts:
            if not part.tokens:
                problems.append(
                    SqlProblem(
                        "D1 takes what follows a semicolon for another statement, and finds none there. Leave out the "
                        "comment or the second semicolon",
                        sql.count("\n", 0, part.start),
                    )
                )
        real = [part for part in parts if part.tokens]
        result = Statement()
        changes_schema = False
        for index, part in enumerate(real):
            last = index == len(real) - 1
            if not last and parameter_count(part.tokens):
                problems.append(
                    SqlProblem(
                        "of several statements in one text, only the last may have parameters. Prepare each by itself, "
                        "and run them with batch()",
                        sql.count("\n", 0, part.tokens[0].start),
                    )
                )
            result = _One(self, sql, part, self.known and not changes_schema).read()
            problems += result.problems
            changes_schema = changes_schema or part.tokens[0].word in ("CREATE", "ALTER", "DROP")
        return attrs.evolve(result, problems=tuple(problems), columns=None if problems else result.columns)

    def shadow(self) -> _Shadow:
        """The copy of the schema with tagged columns."""
        if self._shadow is None:
            self._shadow = _Shadow(self.migrated)
        return self._shadow


# One statement ------------------------------------------------------------------------------------------------------

_SCHEMA_WORDS: Final = frozenset(["CREATE", "ALTER", "DROP", "REINDEX", "ANALYZE"])
_ROWS: Final = frozenset(["SELECT", "VALUES"])
_ROWIDS: Final = frozenset(["ROWID", "OID", "_ROWID_"])
_CHANGES: Final = frozenset(["INSERT", "REPLACE", "UPDATE", "DELETE"])

# Mistakes that no table has a part in: these are said of a database without migrations too.
_GRAMMAR: Final = re.compile(
    r"syntax error$|^incomplete input$|^unrecognized token|^too many |^variable number must|^Expression tree is too"
)

# What SQLite learned after 3.37, by the text that shows it. On an older one, such a statement is not judged.
_NEWER: Final[Sequence[tuple[tuple[int, int, int], re.Pattern[str]]]] = (
    ((3, 38, 0), re.compile(r"->")),
    ((3, 39, 0), re.compile(r"\b(RIGHT|FULL)\b|\bDISTINCT\s+FROM\b", re.IGNORECASE)),
    ((3, 44, 0), re.compile(r"\w\s*\([^()]*(\([^()]*\)[^()]*)*\bORDER\s+BY\b", re.IGNORECASE)),
    ((3, 46, 0), re.compile(r"\b(0[xX][0-9A-Fa-f]+|\d+)_\w")),
    ((3, 47, 0), re.compile(r"\bWITHIN\s+GROUP\b", re.IGNORECASE)),
    ((3, 48, 0), re.compile(r"\bI?IF\s*\(", re.IGNORECASE)),
)


class _One:
    """One statement of a text, being read."""

    def __init__(self, schema: Schema, whole: str, part: StatementText, known: bool) -> None:
        self.schema = schema
        self.migrated: Migrated = schema.migrated
        self.whole = whole
        self.part = part
        self.tokens: tuple[Token, ...] = part.tokens
        self.known = known
        self.problems: list[SqlProblem] = []

    def read(self) -> Statement:
        first = self.tokens[0]
        word = first.word
        takes = parameter_count(self.tokens)
        if word in REFUSED_STATEMENTS:
            self.say(f"D1 refuses {word}. Run the statements together with batch(), which is a transaction", first)
            return self.finish(0)
        if word in ("ATTACH", "DETACH", "VACUUM"):
            self.say(f"D1 does not authorize {word}", first)
            return self.finish(0)
        if word == "PRAGMA":
            name = pragma_name(self.tokens)
            if not allowed_pragma(name):
                self.say(f"D1 does not authorize PRAGMA {name}", first)
            return self.finish(None)
        if word == "CREATE" and len(self.tokens) > 1 and self.tokens[1].word in ("TEMP", "TEMPORARY"):
            self.say("D1 does not authorize temporary tables. Use WITH for a table of one statement", first)
            return self.finish(0)
        for token in self.tokens:
            if token.kind == "parameter" and token.text[0] != "?":
                self.say(
                    f"D1 does not support named parameters: write ? or ?1 in place of {token.text}, and bind the values "
                    "in that order",
                    token,
                )
                return self.finish(None)
        if takes > PARAMETERS_AT_MOST:
            self.say(f"the statement takes {takes} values. D1 takes {PARAMETERS_AT_MOST} at most", first)
            return self.finish(None)
        error = self.compile()
        if error is not None:
            self.explain(error)
            return self.finish(takes if not self.problems else None)
        if word in _SCHEMA_WORDS or word == "EXPLAIN" or not self.known:
            return Statement(takes=takes, columns=None if word == "EXPLAIN" or not self.known else ())
        return Statement(takes=takes, columns=self.columns())

    def say(self, message: str, token: Token | None) -> None:
        line = self.whole.count("\n", 0, token.start) if token is not None else 0
        self.problems.append(SqlProblem(message, line))

    def finish(self, takes: int | None) -> Statement:
        return Statement(tuple(self.problems), takes)

    # -- asking SQLite

    def safe(self, replace: dict[int, str] | None = None, tokens: Sequence[Token] | None = None) -> str:
        """The statement with its quoted names as what can only be a name; `replace` gives other tokens by their start."""
        parts: list[str] = []
        at = self.part.start
        end = self.part.start + len(self.part.text)
        if tokens is not None:
            at, end = tokens[0].start, tokens[-1].end
        if not replace and '"' not in self.part.text:
            return self.whole[at:end].strip()
        for token in self.tokens if tokens is None else tokens:
            text = (replace or {}).get(token.start)
            if text is None and token.text[0] == '"':
                # Without this a misspelt "name" would be a string, where D1 says that there is no such column.
                text = quoted(token.name or "")
            if text is None:
                continue
            parts += [self.whole[at : token.start], text]
            at = token.end
        parts.append(self.whole[at:end])
        return "".join(parts).strip()

    def compile(self, text: str | None = None) -> str | None:
        """What SQLite says against the statement, or nothing."""
        text = self.safe() if text is None else text
        return self.schema.refusal(text if self.tokens[0].word == "EXPLAIN" else f"EXPLAIN {text}")

    def explain(self, error: str) -> None:
        """Turn what SQLite says into a finding, unless it may be wrong."""
        if not self.known and not _GRAMMAR.search(error):
            return
        if self.tokens[0].word in _SCHEMA_WORDS and not _GRAMMAR.search(error):
            return  # made at run time, over tables that may be made at run time
        for version, pattern in _NEWER:
            if sqlite3.sqlite_version_info < version and pattern.search(self.part.text):
                return
        if match := re.fullmatch(r"no such table: (?:main\.)?(.+)", error):
            self.no_such_table(match[1])
        elif match := re.fullmatch(r"no such column: (.+)", error):
            self.no_such_column(match[1])
        elif match := re.fullmatch(r"table (.+) has no column named (.+)", error):
            table = self.migrated.tables.get(match[1].lower())
            near = _near(match[2], [c.name for c in table.columns] if table is not None else [])
            self.say(f"{error}.{near or _those(table)}", self.find(match[2]))
        elif match := re.fullmatch(r"no such function: (.+)", error):
            near = _near(match[1], self.migrated.functions)
            self.say(f"{error}.{near or ' D1 has those of SQLite, and takes no others'}", self.find(match[1]))
        elif error.endswith("syntax error"):
            at = culprit(self.tokens, error, lambda tokens: self.compile(self.safe(tokens=tokens)))
            self.say(f"{error}. Correct the statement there", at or self.tokens[0])
        elif error == "incomplete input":
            self.say("the statement breaks off. Write its end", self.tokens[-1])
        elif match := re.fullmatch(r"not authorized to use function: (.+)", error):
            self.say(f"D1 does not authorize the function {match[1]}()", self.find(match[1]))
        elif error.startswith("not authorized"):
            self.say("D1 does not authorize this statement", self.tokens[0])
        elif error.startswith("ambiguous column name"):
            self.say(f"{error}. Name its table too, as in users.id", self.named_in(error))
        else:
            self.say(error, self.named_in(error))

    def no_such_table(self, name: str) -> None:
        bare = name.rpartition(".")[2]
        lower = bare.lower()
        if lower.startswith(("sqlite_", "_cf_")) or lower == "d1_migrations":
            return
        tables = [table.name for table in self.migrated.tables.values()]
        near = _near(bare, tables)
        if not near:
            listed = _listed(sorted(tables))
            near = f" The migrations make {listed}" if tables else " The migrations make no table"
        self.say(f"no such table: {name}.{near}", self.find(bare))

    def no_such_column(self, name: str) -> None:
        qualifier, _, column = name.rpartition(".")
        token = self.find(column)
        if token is not None and token.text[0] == '"':
            self.say(f"no such column: {name}. Double quotes make a name; write '{column}' for a text", token)
            return
        tables = list(self.tables_near(qualifier.rpartition(".")[2].lower()))
        near = _near(column, [known.name for table in tables for known in table.columns])
        if not near and len(tables) == 1:
            near = _those(tables[0])
        self.say(f"no such column: {name}.{near or ' Name a column of a table in this statement'}", token)

    def tables_near(self, alias: str) -> Iterator[TableInfo]:
        """The tables that `alias` may mean, or all tables of the statement where there is none."""
        items = clauses_of(self.tokens).items
        named = [(item.alias, item.name) for item in items]
        for index, token in enumerate(self.tokens[:-1]):
            if token.word in ("INTO", "UPDATE") and (name := self.tokens[index + 1].name) is not None:
                named.append((name.lower(), name.lower()))
        for known_as, name in named:
            if alias in ("", known_as) and name in self.migrated.tables:
                yield self.migrated.tables[name]

    def find(self, name: str) -> Token | None:
        """The first token that spells a name."""
        wanted = name.lower()
        return next((token for token in self.tokens if (token.name or "").lower() == wanted), None)

    def named_in(self, error: str) -> Token | None:
        return self.find(error.rpartition(": ")[2].rpartition(".")[2].removesuffix("()")) or self.tokens[0]

    # -- what the rows hold

    def columns(self) -> tuple[Column, ...] | None:
        """The columns of the rows; nothing for a statement without rows."""
        verb, at = _verb(self.tokens)
        if verb in _ROWS:
            return self.selected(self.tokens)
        if verb in _CHANGES:
            returning = _returning(self.tokens, at)
            if returning is None:
                return ()
            target = _target(self.tokens, at)
            if target is None or at:
                return None
            return self.returned(verb, target, self.tokens[returning + 1 :])
        return None

    def returned(self, verb: str, target: Token, listed: Sequence[Token]) -> tuple[Column, ...] | None:
        """The columns of RETURNING, as those of a SELECT of the same list from the changed table."""
        if not listed:
            return None
        table = quoted(target.name or "")
        text = f"SELECT {self.safe(tokens=listed)} FROM {table}"
        one = _of(self.schema, text)
        columns = one.selected(one.tokens)
        if columns is None:
            return None
        # What was just written is not NULL because the column could be: only where nothing else names it.
        rest = {(t.name or "").lower() for t in self.tokens if t.start < listed[0].start}
        return tuple(
            attrs.evolve(column, null="")
            if verb in ("INSERT", "REPLACE") or column.source.rpartition(".")[2].lower() in rest
            else column
            for column in columns
        )

    def selected(self, tokens: Sequence[Token]) -> tuple[Column, ...] | None:
        """The columns of a SELECT."""
        nulls = {token.start: "NULL" for token in tokens if token.kind == "parameter"}
        clauses = clauses_of(tokens)
        common = common_tables_of(tokens)
        found = self.schema.shadow().columns(self, nulls, clauses, common)
        if found is None or any(token.word in _ROWIDS for token in tokens):
            # What the copy does not take, and the names of a key that it has not, are asked of the schema itself.
            names = self.names(self.safe(nulls))
            if names is None:
                return None
            if found is None or len(found[0]) != len(names):
                return tuple(Column(name) for name in names)
            found = names, found[1]
        why = _Missing(clauses, self.migrated.tables, common)
        columns: list[Column] = []
        for name, tag in zip(*found, strict=True):
            if tag is None:
                columns.append(Column(name))
            else:
                table = self.migrated.tables[tag.table]
                item = clauses.items[tag.item] if tag.item is not None else None
                null = why.null(name, table, table.columns[tag.column], item)
                columns.append(self.schema.column(name, table, tag.column, null))
        return tuple(columns)

    def names(self, text: str) -> list[str] | None:
        """The names of the columns, through a view that is never selected from."""
        connection, gate = self.migrated.connection, self.migrated.gate
        gate.open = True
        try:
            rows = _view(connection, text)
        except sqlite3.Error:
            return None
        finally:
            gate.open = False
        return _names([row[1] for row in rows])


class _Missing:
    """Why columns of a statement may be NULL, as far as its FROM clauses and conditions tell."""

    def __init__(self, clauses: Clauses, tables: Mapping[str, TableInfo], common: frozenset[str] = frozenset()) -> None:
        self.clauses = clauses
        self.tables = tables
        self.judged: bool = clauses.understood and not clauses.compound & {"EXCEPT", "INTERSECT"}
        self.aliases: set[str] = {item.alias for item in clauses.items if item.name not in common}

    def null(self, name: str, table: TableInfo, declared: TableColumn, item: Item | None) -> str:
        """Why the column may be NULL, or nothing where no one can say that it may."""
        if item is None or not self.judged:
            return ""
        if item.outer and not any(self.narrows(reference, item, table) for reference in self.clauses.references):
            join = "the outer join" if not item.aliased else f"the outer join of {item.alias}"
            return f"is NULL where {join} finds no row"
        if not declared.nullable:
            return ""
        spelt = (declared.name.lower(), name.lower())
        for reference in self.clauses.references:
            if reference.name in spelt and (
                not item.top or self.unclear(reference) or reference.qualifier == item.alias or not reference.top
            ):
                return ""
            if not item.top and reference.top and self.unclear(reference):
                return ""  # it may be the same column, renamed on its way out
        return "can be NULL"

    def unclear(self, reference: Reference) -> bool:
        """Whether a name does not say which table it is of."""
        return reference.qualifier is None or reference.qualifier not in self.aliases

    def narrows(self, reference: Reference, item: Item, table: TableInfo) -> bool:
        """Whether a condition may drop the rows in which an item is missing."""
        if not reference.drops or (item.enclosed and reference.scope == item.scope):
            return False  # in parentheses of its own it drops rows before they are joined
        if reference.qualifier == item.alias:
            return True
        if not self.unclear(reference):
            return False
        return (
            not item.top
            or reference.qualifier is not None
            or reference.name in table.places
            or not any(
                other is not item and (found := self.tables.get(other.name)) and reference.name in found.places
                for other in self.clauses.items
            )
        )


def _of(schema: Schema, text: str) -> _One:
    part = next(iter(statements_of(text)))
    return _One(schema, text, part, True)


def _verb(tokens: Sequence[Token]) -> tuple[str, int]:
    """The word that says what a statement does, and where it stands: behind WITH and its queries."""
    if tokens[0].word != "WITH":
        return tokens[0].word, 0
    depth = 0
    for index, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth and token.word in _ROWS | _CHANGES:
            return token.word, index
    return "", 0


def _returning(tokens: Sequence[Token], at: int) -> int | None:
    depth = 0
    for index, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth and index > at and token.word == "RETURNING":
            return index
    return None


def _target(tokens: Sequence[Token], at: int) -> Token | None:
    """The table that a statement changes."""
    for index in range(at + 1, len(tokens)):
        token = tokens[index]
        if token.word in ("OR", "ROLLBACK", "ABORT", "REPLACE", "FAIL", "IGNORE", "INTO", "FROM"):
            continue
        if index + 2 < len(tokens) and tokens[index + 1].text == ".":
            return tokens[index + 2]
        return token if token.name is not None else None
    return None


def _view(connection: sqlite3.Connection, text: str) -> list[tuple[int, str, str]]:
    """What `PRAGMA table_info` says of a view over `text`."""
    connection.execute(f"CREATE TEMP VIEW core_result AS {text}")
    try:
        return [row[:3] for row in connection.execute("PRAGMA temp.table_info(core_result)")]
    finally:
        # SQLite looks through all views when it makes one, so none may be left.
        connection.execute("DROP VIEW temp.core_result")


def _names(given: Sequence[str]) -> list[str]:
    """The names as a query has them: a view adds `:1` to the second column of a name, in whatever case."""
    names: list[str] = []
    seen: set[str] = set()
    for name in given:
        base, colon, number = name.rpartition(":")
        names.append(base if colon and number.isdigit() and base.lower() in seen else name)
        seen.add(names[-1].lower())
    return names


# The copy -----------------------------------------------------------------------------------------------------------


@frozen
class _Tag:
    """Where a column of a result comes from: a table in lower case, its column, and the item of the FROM clause."""

    table: str
    column: int
    item: int | None


_TAG: Final = re.compile(r"core_(\d+)_(\d+)_(\d+|v)$")


class _Shadow:
    """The tables again, empty and without their constraints, as often as a statement names them."""

    def __init__(self, migrated: Migrated) -> None:
        self.connection: sqlite3.Connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=0
        )
        self.tables: list[tuple[str, TableInfo]] = list(migrated.tables.items())
        self.index: dict[str, int] = {name: index for index, (name, _) in enumerate(self.tables)}
        self.made: set[tuple[str, int]] = set()
        for name, table in self.tables:
            if table.view:
                try:
                    self.connection.execute(table.sql)
                except sqlite3.Error:
                    continue
            elif not name.startswith("sqlite_"):
                self._create(table.name, name, table, "v")

    def _create(self, as_name: str, key: str, table: TableInfo, item: str) -> None:
        if not table.columns:
            return
        columns = ", ".join(
            f"{quoted(column.name)} {_affinity(column.declared)} core_{self.index[key]}_{index}_{item}"
            for index, column in enumerate(table.columns)
        )
        self.connection.execute(f"CREATE TABLE {quoted(as_name)} ({columns})")

    def columns(
        self, one: _One, nulls: dict[int, str], clauses: Clauses, common: frozenset[str]
    ) -> tuple[list[str], list[_Tag | None]] | None:
        """The names of a SELECT's columns, and where each comes from: None for an expression, or where no one can tell."""
        replace = dict(nulls)
        for number, item in enumerate(clauses.items):
            name = item.name
            if name not in self.index or name in common or self.tables[self.index[name]][1].view:
                continue
            copy = f"core {number} {name}"
            if (name, number) not in self.made:
                self.made.add((name, number))
                self._create(copy, name, self.tables[self.index[name]][1], str(number))
            alias = "" if item.aliased else f" AS {quoted(item.table.name or '')}"
            replace[item.table.start] = quoted(copy) + alias
            if item.schema is not None:
                replace[item.schema.start] = "main"
        try:
            rows = _view(self.connection, one.safe(replace))
        except sqlite3.Error:
            return None
        tags: list[_Tag | None] = []
        for _, _, declared in rows:
            match = _TAG.search(declared or "")
            if match is None:
                tags.append(None)
            else:
                table, column, item_number = match.groups()
                tags.append(
                    _Tag(self.tables[int(table)][0], int(column), None if item_number == "v" else int(item_number))
                )
        return _names([row[1] for row in rows]), tags


def _affinity(declared: str) -> str:
    """SQLite's rules (https://www.sqlite.org/datatype3.html#determination_of_column_affinity), as a word for each."""
    upper = declared.upper()
    if "INT" in upper:
        return "INT"
    if "CHAR" in upper or "CLOB" in upper or "TEXT" in upper:
        return "TEXT"
    if "BLOB" in upper or not upper:
        return "BLOB"
    if "REAL" in upper or "FLOA" in upper or "DOUB" in upper:
        return "REAL"
    return "NUM"


def storage_of(column: TableColumn) -> frozenset[Storage]:
    """The storage classes that a column's values have, where its declared type says so; else nothing."""
    upper = column.declared.upper()
    match _affinity(upper):
        case "INT":
            return frozenset(["integer"])
        case "TEXT":
            return frozenset(["text"])
        case "REAL":
            return frozenset(["real"])
        case "BLOB" if upper:
            return frozenset(["blob"])
        case "NUM" if "BOOL" in upper:
            return frozenset(["integer"])
        case "NUM" if "DEC" in upper or "NUMERIC" in upper:
            return frozenset(["integer", "real"])
        case _:
            return frozenset()  # no type at all, ANY, or DATE, which people keep texts and numbers in


# Against what the program does with it ------------------------------------------------------------------------------

Kind = Literal["int", "float", "bool", "str", "date", "bytes", "json", "none", "any"]
"""What a field takes. `date` stands for all that is read from a text: dates, times, UUIDs; `json` for lists and objects,
which no column gives; `any` for what is not known."""

_FROM: Final[dict[str, frozenset[Storage]]] = {
    "int": frozenset(["integer"]),
    "bool": frozenset(["integer"]),
    "float": frozenset(["integer", "real"]),
    "str": frozenset(["text"]),
    "date": frozenset(["text"]),
    "bytes": frozenset(["blob"]),
    "json": frozenset(),
    "none": frozenset(),
}
_FITS: Final[dict[Storage, str]] = {"integer": "int", "real": "float", "text": "str", "blob": "bytes"}


class RowField(NamedTuple):
    """A field of the class that rows become. `shown` is its type as written; `required` says that it has no default."""

    name: str
    shown: str
    kinds: frozenset[Kind]
    required: bool = True

    @property
    def optional(self) -> bool:
        """Whether it takes NULL."""
        return bool(self.kinds & {"none", "any"})


def check_values(statement: Statement, given: int | None) -> str | None:
    """What is wrong with the number of values given to `bind`; None where `given` is, for a statement never bound."""
    takes = statement.takes
    if takes is None or takes == (given or 0):
        return None
    values = "1 value" if takes == 1 else f"{takes} values"
    if given is None:
        return f"the statement takes {values}, and nothing was bound. Call bind() with {'it' if takes == 1 else 'them'}"
    if takes == 0:
        return f"the statement takes no values, but bind() gives {given}. Write a ? for each, or leave bind() out"
    return f"the statement takes {values}, but bind() gives {given}. Give one for each ? of the statement"


def check_column(statement: Statement, name: str) -> str | None:
    """What is wrong with `first("name")`."""
    if statement.columns is None or statement.problems:
        return None
    if not statement.columns:
        return f'first("{name}") asks for a column, but the statement gives no rows. Add RETURNING, or call run()'
    if statement.column(name) is not None:
        return None
    names = [column.name for column in statement.columns]
    return f'the result has no column "{name}".{_near(name, names) or f" It has {_listed(names)}"}'


def check_row(statement: Statement, title: str, fields: Iterable[RowField]) -> list[tuple[str, str]]:
    """What is wrong with `first(T)` and `all(T)`: a field of `T` and the message, for each. The field is "" for all."""
    if statement.columns is None or statement.problems:
        return []
    if not statement.columns:
        return [("", f"{title} is read from rows, but the statement gives none. Add RETURNING, or call run()")]
    names = [column.name for column in statement.columns]
    found: list[tuple[str, str]] = []
    for field in fields:
        column = statement.column(field.name)
        if column is None:
            if field.required:
                near = _near(field.name, names)
                fix = near or f" It has {_listed(names)}: select it, or give the field a default"
                found.append((field.name, f"{title}.{field.name} is not in the result.{fix}"))
        elif message := _mismatch(title, column, field):
            found.append((field.name, message))
    return found


def check_scalar(statement: Statement, shown: str, kinds: frozenset[Kind]) -> str | None:
    """What is wrong with `first(T)` of a scalar `T`: rows are objects, never bare values."""
    if statement.problems or not kinds or kinds & {"any", "json"}:
        return None
    return f'a row is an object, and never {shown}. Ask for one column by its name: first("column")'


def _mismatch(title: str, column: Column, field: RowField) -> str | None:
    kinds = field.kinds
    if column.storage and "any" not in kinds and not any(_FROM[kind] & column.storage for kind in kinds):
        fits = " or ".join(_FITS[storage] for storage in sorted(column.storage))
        return (
            f"{title}.{field.name}: {field.shown} cannot hold {column.source}, which is {column.declared}. "
            f"Make it {_optional(fits, column)}"
        )
    if column.null and not field.optional:
        return (
            f"{title}.{field.name}: {field.shown} cannot hold NULL, but {column.source} {column.null}. "
            f"Make it {field.shown} | None"
        )
    return None


def _optional(fits: str, column: Column) -> str:
    return f"{fits} | None" if column.null else fits


# Words --------------------------------------------------------------------------------------------------------------


def _near(name: str, known: Iterable[str]) -> str:
    by_lower = {other.lower(): other for other in known}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return f" Did you mean {by_lower[near[0]]}?" if near else ""


def _those(table: TableInfo | None) -> str:
    if table is None or not table.columns:
        return ""
    return f" {table.name} has {_listed([column.name for column in table.columns])}"


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:12])
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(shown) + more
