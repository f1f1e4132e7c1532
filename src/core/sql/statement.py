"""The facts about one statement, as the checks take them.

They may come from a cache, so nothing of what reads SQL is loaded for them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from core.values import frozen

__all__ = ["Column", "Slot", "SqlProblem", "Statement", "Storage"]

Storage = Literal["integer", "real", "text", "blob"]
"""SQLite's storage classes: kinds of values, not of columns."""


@frozen
class Column:
    """A column of a result.

    `source` is the table's column that it is, as `users.email`, or "" for an expression, which is `text`. `storage`
    holds the storage classes that it may have, or nothing where that is not known. `null` says why `about` may be NULL,
    or nothing; `never` that it is proven not to be. `arms` has the columns of a UNION's parts that it is one of.
    """

    name: str
    source: str = ""
    declared: str = ""
    storage: frozenset[Storage] = frozenset()
    null: str = ""
    about: str = ""
    never: bool = False
    text: str = ""
    arms: tuple[Column, ...] = ()


class Slot(NamedTuple):
    """A place of a parameter: beside a column that it is compared with or stored in, in LIMIT, given to json_each, or
    where it is asked whether it is NULL (`null`).

    `exact` says that the column holds its own storage class alone: in a STRICT table, or as the key of one.
    """

    number: int
    use: str
    column: str = ""
    storage: frozenset[Storage] = frozenset()
    full: bool = False
    exact: bool = False


@frozen
class SqlProblem:
    """A mistake in a statement. `line` counts from 0, within the statement's own text.

    `table` is the name of a table that no migration makes: a program may make it itself.
    """

    message: str
    line: int = 0
    table: str = ""


@frozen
class Statement:
    """The facts about a string given to `prepare`.

    `takes` is the number of values to bind, None where that is not known. `columns` are those of its rows: none at
    all for a statement without rows, None where that is not known. `slots` are the places of its parameters, as far as
    they are understood. `certain`: it gives a row for certain; None where that is not known.
    """

    problems: tuple[SqlProblem, ...] = ()
    takes: int | None = None
    columns: tuple[Column, ...] | None = None
    slots: tuple[Slot, ...] = ()
    certain: bool | None = None

    def column(self, name: str) -> Column | None:
        """The column of that name; of several, the last one, as in a row."""
        for column in reversed(self.columns or ()):
            if column.name == name:
                return column
        return None
