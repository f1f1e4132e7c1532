"""Statements in the shapes that public programs on D1 use, read from files: `corpus/*.sql`, one subject each.

The shapes are those of public programs, read and written anew; tables, columns and values are our own. A file has its
tables, a line `-- statements`, and one statement on each line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

from core.statements.tokens import tokens_of, words

__all__ = ["CORPUS", "Subject", "shape"]

# https://www.sqlite.org/lang_keywords.html, those that a statement of the corpus can have.
_KEYWORDS: Final = words(
    "ALL AND AS ASC BETWEEN BY CASE CAST COLLATE CONFLICT CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DEFAULT "
    "DELETE DESC DISTINCT DO ELSE END ESCAPE EXCEPT EXCLUDE EXISTS FAIL FILTER FIRST FOLLOWING FROM FULL GLOB GROUP GROUPS "
    "HAVING IGNORE IN INDEXED INNER INSERT INTERSECT INTO IS ISNULL JOIN LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL "
    "NOT NOTHING NOTNULL NULL NULLS OFFSET ON OR ORDER OUTER OVER PARTITION PRECEDING RANGE RECURSIVE REPLACE RETURNING "
    "RIGHT ROW ROWS SELECT SET THEN UNBOUNDED UNION UPDATE USING VALUES WHEN WHERE WINDOW WITH"
)


@attrs.frozen
class Subject:
    """The tables of one file, and its statements."""

    name: str
    tables: str
    statements: tuple[str, ...]


def shape(statement: str) -> str:
    """The tokens of a statement: every name, of a function too, is `n`, every literal `1`, every parameter `?`."""
    shown = {"word": "n", "quoted": "n", "string": "1", "number": "1", "parameter": "?"}
    return " ".join(
        token.word if token.word in _KEYWORDS else shown.get(token.kind, token.text) for token in tokens_of(statement)
    )


def _read(file: Path) -> Subject:
    tables, _, statements = file.read_text("utf-8").partition("-- statements\n")
    return Subject(file.stem, tables, tuple(line.removesuffix(";") for line in statements.splitlines()))


CORPUS: Final = tuple(_read(file) for file in sorted((Path(__file__).parent / "corpus").glob("*.sql")))
