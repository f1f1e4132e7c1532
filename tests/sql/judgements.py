"""Statements that D1 allows and refuses. The checks, the embedded engine and workerd have to judge them alike.

Those that the first two once judged differently are all here: page_size, functions, and arguments of pragmas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

SETUP: Final = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, n INTEGER REFERENCES t)",
    "CREATE INDEX i ON t (a)",
    "CREATE VIRTUAL TABLE f USING fts5(body)",
    "INSERT INTO t VALUES (1, 'x', 1)",
)


def _columns(count: int) -> str:
    return ", ".join("1" for _ in range(count))


def _pragmas(name: str, *arguments: str) -> list[str]:
    return [f"PRAGMA {name}{argument}" for argument in arguments]


_BOOLEAN: Final = ("foreign_keys", "defer_foreign_keys", "recursive_triggers", "case_sensitive_like")
_NAMED: Final = ("table_info", "table_xinfo", "index_list", "index_info", "index_xinfo", "foreign_key_list")

ALLOWED: Final[Sequence[str]] = [
    "SELECT abs(1), hex('a'), upper('a'), coalesce(1, 2), iif(1, 2, 3), printf('%d', 1), sign(1), typeof(1), random()",
    "SELECT date('now'), datetime(0, 'unixepoch'), strftime('%Y', 'now'), current_timestamp",
    "SELECT count(*), total(n), group_concat(a), max(n) FROM t",
    "SELECT row_number() OVER (), lag(n) OVER (), ntile(2) OVER () FROM t",
    "SELECT ceil(1.5), pow(2, 3), log(10), log2(8), sqrt(4), pi(), trunc(1.5)",
    "SELECT json('{}'), json_extract('{}', '$.a'), '{}' -> 'a', '{}' ->> 'a', json_group_array(n) FROM t",
    "SELECT value FROM json_each('[1]')",
    "SELECT bm25(f), highlight(f, 0, '', ''), snippet(f, 0, '', '', '', 3) FROM f WHERE f MATCH 'x'",
    "SELECT concat('a', 'b'), concat_ws(',', 'a', 'b'), octet_length('a'), unhex('41'), unixepoch()",
    "SELECT jsonb('{}'), string_agg(a, ',') FROM t",
    "SELECT 1; SELECT 2;",
    ";;SELECT 1",
    "EXPLAIN QUERY PLAN SELECT a FROM t",
    "EXPLAIN PRAGMA table_info(t)",
    "EXPLAIN PRAGMA page_size",
    "ANALYZE",
    "REINDEX i",
    "CREATE TABLE q (a, b AS (abs(a)))",
    "CREATE TABLE q (a DEFAULT (abs(-1)), b DEFAULT CURRENT_TIMESTAMP)",
    "CREATE VIRTUAL TABLE q USING fts5(a)",
    "CREATE VIRTUAL TABLE q USING FTS5(a)",
    "CREATE VIRTUAL TABLE q USING fts5vocab(f, 'row')",
    "CREATE VIRTUAL TABLE q USING rtree(a, b, c)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS main.q USING rtree_i32(a, b, c)",
    "CREATE TRIGGER q AFTER INSERT ON t BEGIN SELECT 1; END",
    "ALTER TABLE t RENAME TO q",
    "SELECT name FROM sqlite_master",
    "PRAGMA page_size",
    "PRAGMA main.page_size",
    "SELECT * FROM pragma_page_size",
    "SELECT * FROM pragma_table_info('t')",
    "PRAGMA data_version",
    "PRAGMA optimize",
    "PRAGMA optimize = 0x10",
    "PRAGMA optimize = -1",
    "PRAGMA quick_check",
    "PRAGMA quick_check(t)",
    "PRAGMA foreign_key_check",
    "PRAGMA foreign_key_check(t)",
    "PRAGMA table_list",
    "PRAGMA Table_Info(t)",
    *(f"PRAGMA {name}(t)" for name in _NAMED),
    "PRAGMA table_info('t')",
    'PRAGMA main.table_info = "t"',
    *(
        pragma
        for name in _BOOLEAN
        for pragma in _pragmas(name, "", " = 1", " = ON", " = 'on'", " = onwards", "(0)", "(+1)", "(0x10)", " = yes")
    ),
    f"SELECT {_columns(100)}",
    " UNION ALL ".join(["SELECT 1"] * 5),
    "SELECT " + " + ".join("1" * 100),
    f"SELECT coalesce({_columns(32)})",
    "SELECT a LIKE '" + "x" * 50 + "', a GLOB '" + "é" * 25 + "' FROM t",
    "SELECT '" + "x" * (100_000 - len("SELECT ''")) + "'",
]

REFUSED: Final[Sequence[str]] = [
    "CREATE TABLE q (a DEFAULT (1 + length(sqlite_version())))",
    "CREATE TABLE q (a DEFAULT (sqlite_version()))",
    *(f"SELECT {call}" for call in ("sqlite_version()", "sqlite_source_id()", "sqlite_compileoption_get(1)")),
    "SELECT sqlite_compileoption_used('a')",
    "SELECT load_extension('a')",
    "SELECT sqlite_log(1, 'a')",
    "SELECT sqlite_offset(a) FROM t",
    *(f"SELECT {name}(n) FROM t" for name in ("subtype", "ceiling", "log10", "soundex", "unistr", "unistr_quote")),
    *(f"SELECT {name}(a) FROM t" for name in ("json_pretty", "json_error_position", "fts3_tokenizer", "rtreedepth")),
    *(f"SELECT {name}(f) FROM f WHERE f MATCH 'x'" for name in ("matchinfo", "offsets", "optimize", "fts5")),
    "SELECT fts5_source_id()",
    "SELECT fts5_locale('a', 'b')",
    "SELECT fts5_get_locale(f, 0) FROM f",
    "SELECT fts5_insttoken(a) FROM t",
    "SELECT power(2, 3)",
    "SELECT if(1, 2, 3)",
    "SELECT rtreenode(2, 'a')",
    "SELECT rtreecheck('t')",
    "CREATE TABLE q (a, b AS (sqlite_version()))",
    "CREATE TABLE q (a CHECK (sqlite_version() > a))",
    *("BEGIN", "begin immediate", "COMMIT", "END", "ROLLBACK", "SAVEPOINT x", "RELEASE x", "EXPLAIN BEGIN"),
    *("ATTACH ':memory:' AS x", "DETACH x", "VACUUM", "VACUUM INTO 'x'", "EXPLAIN ATTACH ':memory:' AS x"),
    "CREATE TEMP TABLE q (a)",
    "CREATE TEMPORARY VIEW q AS SELECT 1",
    "CREATE TABLE temp.q (a)",
    "CREATE TEMP TRIGGER q AFTER INSERT ON t BEGIN SELECT 1; END",
    "CREATE TABLE _cf_q (a)",
    "CREATE TABLE _CF_q (a)",
    "CREATE VIEW _cf_q AS SELECT 1",
    "CREATE INDEX _cf_q ON t (a)",
    "CREATE TRIGGER _cf_q AFTER INSERT ON t BEGIN SELECT 1; END",
    "ALTER TABLE t RENAME TO _cf_q",
    'ALTER TABLE t RENAME TO "_cf_q";',
    *(f"CREATE VIRTUAL TABLE q USING {module}" for module in ("fts3(a)", "fts4(a)", "dbstat", "geopoly(a)", "no(a)")),
    *(
        f"PRAGMA {name}"
        for name in ("journal_mode", "user_version", "cache_size", "database_list", "encoding", "integrity_check")
    ),
    "PRAGMA nope",
    "SELECT * FROM pragma_function_list",
    "SELECT * FROM pragma_table_info",
    "SELECT * FROM pragma_optimize('t')",
    *_pragmas("page_size", " = 1", " = 4096", "(4096)"),
    "PRAGMA temp.page_size",
    *_pragmas("data_version", " = 1", "(t)", " = 'on'"),
    *_pragmas("optimize", "(t)", " = 1.5", " = yes"),
    *_pragmas("quick_check", "(_cf_KV)"),
    *_pragmas("foreign_key_check", "(_cf_KV)"),
    *(pragma for name in _NAMED for pragma in _pragmas(name, "", "(_cf_KV)")),
    "PRAGMA temp.table_info(t)",
    *(pragma for name in _BOOLEAN for pragma in _pragmas(name, "(t)", " = maybe", " = -1", " = 2", "('t')")),
    "SELECT :a",
    "SELECT ?101",
    f"SELECT {_columns(101)}",
    "CREATE TABLE q (" + ", ".join(f"c{index}" for index in range(101)) + ")",
    " UNION ALL ".join(["SELECT 1"] * 6),
    "SELECT " + " + ".join("1" * 101),
    f"SELECT coalesce({_columns(33)})",
    "SELECT a LIKE '" + "x" * 51 + "' FROM t",
    "SELECT a GLOB '" + "é" * 26 + "' FROM t",
    "SELECT '" + "x" * (100_001 - len("SELECT ''")) + "'",
]
