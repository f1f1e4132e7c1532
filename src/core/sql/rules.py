"""The rules of D1: the functions, pragmas, statements, virtual tables and sizes that it allows.

The checks read these tables to predict D1, the embedded engine to be it. They are those of workerd's own SQLite
(https://github.com/cloudflare/workerd, `src/workerd/util/sqlite.c++`), with the limits that D1 publishes
(https://developers.cloudflare.com/d1/platform/limits/), which are lower. Only `refusal` reads a statement, as far as
its first words tell; nothing here runs one.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from itertools import pairwise
from typing import Final, Literal

from core.sql import functions
from core.statements.tokens import StatementText, Token, enclosed, words

# Limits -------------------------------------------------------------------------------------------------------------

MAX_SQL_BYTES: Final = 100_000
MAX_PARAMETERS: Final = 100
MAX_COLUMNS: Final = 100
MAX_PATTERN_BYTES: Final = 50
"""The longest pattern of LIKE and GLOB."""

LIMITS: Final[Mapping[int, int]] = {
    sqlite3.SQLITE_LIMIT_LENGTH: 2_000_000,
    # One more for the blank or so that is put before a statement.
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: MAX_SQL_BYTES + 1,
    sqlite3.SQLITE_LIMIT_COLUMN: MAX_COLUMNS,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 5,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 32,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: MAX_PATTERN_BYTES,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: MAX_PARAMETERS,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
"""SQLite's own limits, as D1 sets them: the arguments of `Connection.setlimit`."""

# Statements ---------------------------------------------------------------------------------------------------------

TRANSACTION_STATEMENTS: Final = words("BEGIN COMMIT END ROLLBACK SAVEPOINT RELEASE")
"""The first words of statements that D1 refuses because the transactions are its own."""

REFUSED_STATEMENTS: Final = words("ATTACH DETACH VACUUM")
"""The first words of other statements that fail on D1, whatever follows them."""

VIRTUAL_TABLES: Final = words("fts5 fts5vocab rtree rtree_i32")
"""The modules that CREATE VIRTUAL TABLE may use."""

# Functions ----------------------------------------------------------------------------------------------------------

FUNCTIONS: Final = frozenset({*functions.FUNCTIONS, *functions.AGGREGATES, *functions.WINDOWS}) | words(
    """
    coalesce ifnull iif nullif load_extension max_scalar min_scalar current_date current_time current_timestamp
    -> ->> json_each json_tree match bm25
    sqlite_rename_column sqlite_rename_table sqlite_rename_test sqlite_drop_column sqlite_rename_quotefix
    """
)
"""The functions that SQL may call, in lower case. The last five are called by ALTER TABLE."""

REFUSED_FUNCTIONS: Final = words(
    """
    sqlite_version sqlite_source_id sqlite_compileoption_get sqlite_compileoption_used sqlite_log sqlite_offset
    load_extension soundex subtype ceiling log10 power if unistr unistr_quote json_pretty json_error_position
    fts3_tokenizer matchinfo offsets optimize fts5 fts5_source_id fts5_locale fts5_get_locale fts5_insttoken
    rtreecheck rtreenode rtreedepth
    """
)
"""SQLite's functions that always fail on D1. A SQLite that lacks one of them says "no such function" of it instead.

D1 authorizes load_extension(), but no extension can be loaded.
"""

ABSENT_TABLES: Final = words("dbstat sqlite_stmt sqlite_dbpage fts3tokenize bytecode tables_used")
"""The tables that many a SQLite brings along, and D1's is built without."""


def absent_tables(statement: StatementText) -> list[Token]:
    """The tables of a statement that are there on no D1, unless somebody made one of that name."""
    tokens = statement.tokens
    return [
        token
        for before, token in pairwise(tokens)
        if (before.word in ("FROM", "JOIN") or before.text == ",") and (token.name or "").lower() in ABSENT_TABLES
    ]


def refused_default(statement: StatementText) -> Token | None:
    """The function that always fails in a `DEFAULT (…)` of a table: SQLite's authorizer is not asked about it there."""
    tokens = statement.tokens if statement.keyword in ("CREATE", "ALTER") else ()
    places = (at for at, token in enumerate(tokens, 1) if token.word == "DEFAULT")
    calls = (token for at in places for token, after in pairwise(enclosed(tokens, at)) if after.text == "(")
    return next((call for call in calls if (call.name or "").lower() in REFUSED_FUNCTIONS - FUNCTIONS), None)


# Pragmas ------------------------------------------------------------------------------------------------------------

PragmaForm = Literal["none", "boolean", "name", "optional", "number", "any"]
"""The argument that a pragma takes: none at all, a boolean or none, a table or index, such a name or none, a number or
none, anything."""

PRAGMAS: Final[Mapping[str, PragmaForm]] = {
    "data_version": "none",
    "page_size": "none",
    **dict.fromkeys(
        words(
            "case_sensitive_like foreign_keys defer_foreign_keys ignore_check_constraints legacy_alter_table "
            "recursive_triggers reverse_unordered_selects"
        ),
        "boolean",
    ),
    **dict.fromkeys(words("table_info table_xinfo foreign_key_list index_info index_list index_xinfo"), "name"),
    "foreign_key_check": "optional",
    "quick_check": "optional",
    "optimize": "number",
    "table_list": "any",
}

_BOOLEANS: Final = ("true", "false", "yes", "no", "on", "off", "1", "0")
_NUMBER: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|[0-9]+)")


def allows_pragma(name: str, argument: str | None) -> bool:
    """Return whether D1 allows `PRAGMA name`, with the argument as SQLite reads it: without its quotes."""
    match PRAGMAS.get(name.lower()):
        case None:
            return False
        case "none":
            return argument is None
        case "boolean":
            return argument is None or argument.strip("'\"").lower().startswith(_BOOLEANS)
        case "name":
            return argument is not None and not is_reserved(argument)
        case "optional":
            return argument is None or not is_reserved(argument)
        case "number":
            return argument is None or _NUMBER.fullmatch(argument) is not None
        case "any":
            return True


# A statement's first words ------------------------------------------------------------------------------------------


def refusal(statement: StatementText) -> str | None:
    """Return why D1 refuses a statement, where its first words tell, without the way to fix it."""
    tokens = statement.tokens
    if statement.keyword == "EXPLAIN":
        tokens = tokens[3:] if [token.word for token in tokens[1:3]] == ["QUERY", "PLAN"] else tokens[1:]
    word = tokens[0].word if tokens else ""
    if word in TRANSACTION_STATEMENTS:
        return f"D1 refuses {word}"
    if word in REFUSED_STATEMENTS:
        return f"D1 does not authorize {word}"
    if word == "PRAGMA":
        return _pragma_refusal(tokens)
    if word == "CREATE" and len(tokens) > 1:
        if tokens[1].word in ("TEMP", "TEMPORARY"):
            return "D1 does not authorize temporary tables"
        if tokens[1].word == "VIRTUAL":
            return _module_refusal(tokens)
    if renames_to_reserved(statement):
        return "D1 does not authorize names that begin with _cf_"
    default = refused_default(statement)
    return f"D1 does not authorize the function {default.name}" if default is not None else None


def renames_to_reserved(statement: StatementText) -> bool:
    """Return whether an ALTER TABLE gives a table a reserved name: SQLite's authorizer sees the old one."""
    if statement.keyword != "ALTER":
        return False
    last = statement.tokens[-3:]
    return [token.word for token in last[:2]] == ["RENAME", "TO"] and is_reserved(last[2].name or last[2].text[1:])


def _pragma_refusal(tokens: tuple[Token, ...]) -> str | None:
    """Judge `PRAGMA name`, `PRAGMA name = argument`, `PRAGMA name(argument)`, each with a schema or without."""
    schema = "main"
    rest = tokens[1:]
    if len(rest) > 2 and rest[1].text == ".":
        schema, rest = (rest[0].name or rest[0].text).lower(), rest[2:]
    if not rest:
        return None  # SQLite finds the mistake
    name = rest[0].name or rest[0].text
    given = (token for token in rest[2:] if token.text not in (")", "+"))
    texts = (token.text[1:-1] if token.kind == "string" else token.name or token.text for token in given)
    argument = "".join(texts) if len(rest) > 2 else None
    if schema == "main" and allows_pragma(name, argument):
        return None
    if schema != "main":
        return f"D1 does not authorize PRAGMA {schema}.{name}"
    if name.lower() not in PRAGMAS:
        return f"D1 does not authorize PRAGMA {name}"
    return f"D1 does not authorize PRAGMA {name} {'without an argument' if argument is None else f'with the argument {argument}'}"


def _module_refusal(tokens: tuple[Token, ...]) -> str | None:
    for before, token in pairwise(tokens):
        if before.word == "USING":
            module = token.name or token.text
            if module.lower() in VIRTUAL_TABLES:
                return None
            return f"D1 does not authorize virtual tables of the module {module}"
    return None  # SQLite finds the mistake


# SQLite's authorizer ------------------------------------------------------------------------------------------------

_ON_TWO_NAMES: Final = frozenset(
    {sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_INDEX, sqlite3.SQLITE_CREATE_TRIGGER, sqlite3.SQLITE_DROP_TRIGGER}
)
_ON_NAMES: Final = _ON_TWO_NAMES | {
    getattr(sqlite3, f"SQLITE_{name}")
    for name in words("ALTER_TABLE CREATE_TABLE DROP_TABLE CREATE_VIEW DROP_VIEW REINDEX READ INSERT UPDATE DELETE")
}
_TRANSACTIONS: Final = frozenset({sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT})


def is_reserved(name: str | None) -> bool:
    """Return whether a name is the platform's own, or missing where one is needed."""
    return name is None or name.lower().startswith("_cf_")


def is_transaction(action: int) -> bool:
    """Return whether an authorizer is asked for BEGIN, COMMIT, SAVEPOINT or their like."""
    return action in _TRANSACTIONS


def allows(action: int, first: str | None, second: str | None, database: str | None) -> bool:
    """Whether D1 allows an action, as an authorizer is asked: https://www.sqlite.org/c3ref/c_alter_table.html."""
    if action in (sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_DETACH):
        # These two give the name of the database first.
        first, second, database = second, None, first
    if database == "temp":
        return action in (sqlite3.SQLITE_READ, sqlite3.SQLITE_UPDATE) and not is_reserved(first)
    if database not in (None, "main"):
        return False
    match action:
        case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE | sqlite3.SQLITE_ANALYZE:
            return True
        case sqlite3.SQLITE_FUNCTION:
            return (second or "").lower() in FUNCTIONS
        case sqlite3.SQLITE_PRAGMA:
            return allows_pragma(first or "", second)
        case sqlite3.SQLITE_CREATE_VTABLE | sqlite3.SQLITE_DROP_VTABLE:
            return (second or "").lower() in VIRTUAL_TABLES
        case _:
            return (
                action in _ON_NAMES
                and not is_reserved(first)
                and (action not in _ON_TWO_NAMES or not is_reserved(second))
            )


# Messages -----------------------------------------------------------------------------------------------------------

NO_TRANSACTION: Final = (
    "To execute a transaction, please use the state.storage.transaction() or state.storage.transactionSync() APIs "
    "instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. The JavaScript API is safer because it will "
    "automatically roll back on exceptions, and because it interacts correctly with Durable Objects' automatic "
    "atomic write coalescing."
)
NO_STATEMENT: Final = "No SQL statements detected."
NO_EMPTY_STATEMENT: Final = "SQL code did not contain a statement."
WRONG_COUNT: Final = "Wrong number of parameter bindings for SQL query."
NOT_AUTHORIZED: Final = "not authorized: SQLITE_AUTH"
TOO_LONG: Final = "statement too long: SQLITE_TOOBIG"
ONLY_LAST_HAS_PARAMETERS: Final = (
    "When executing multiple SQL statements in a single call, only the last statement can have parameters."
)
