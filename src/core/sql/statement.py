"""The facts about one statement, as the checks take them.

They may come from a cache, so nothing of what reads SQL is loaded for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeVar

from core.values import frozen

T = TypeVar("T")
Storage = Literal["integer", "real", "text", "blob"]
"""SQLite's storage classes: kinds of values, not of columns."""
ANY: Final[frozenset[Storage]] = frozenset(["integer", "real", "text", "blob"])


class Column(NamedTuple):
    """A column of a result, and while a statement is read the value of an expression.

    `storage` holds the storage classes that it may have: none for NULL alone, `ANY` for a value of which that is not
    known; of a result, none there too. `null` says why `about` may be NULL, or nothing; `never` that it is proven not
    to be. `source` is the table's column that it is, as `users.email`, and `declared` that one's type; "" for an
    expression, which is `text`. `arms` has the columns of a UNION's parts that it is one of. `hides` is another of the
    same name, which is not in a row: the last one is.

    `join` is the source of an outer join without whose row it is NULL. Of such a column `own` says why it may be NULL
    where there is a row, and `full` that it is not. `allowed` are the texts that its CHECK allows, as far as no
    condition may have left some of them out.
    """

    storage: frozenset[Storage] = frozenset()
    null: str = ""
    about: str = ""
    never: bool = False
    source: str = ""
    declared: str = ""
    text: str = ""
    arms: tuple[Column, ...] = ()
    join: str = ""
    own: str = ""
    full: bool = False
    allowed: tuple[str, ...] = ()
    name: str = ""
    hides: str = ""


class Slot(NamedTuple):
    """A place of a parameter: beside a column that it is compared with or stored in, in LIMIT, given to json_each, or
    where it is asked whether it is NULL (`null`). A value that is read outside of an assignment of UPDATE … SET has one
    more (`outside`): it cannot be UNSET.

    `exact` says that the column holds its own storage class alone: in a STRICT table, or as the key of one. `allowed`
    are the texts that its CHECK allows, where the value has to be one of them.
    """

    number: int
    use: str
    column: str = ""
    storage: frozenset[Storage] = frozenset()
    full: bool = False
    exact: bool = False
    allowed: tuple[str, ...] = ()


@frozen
class SqlProblem:
    """A mistake in a statement, and the character of the text `at` which it is.

    `table` is the name of a table that no migration makes: a program may make it itself.
    """

    message: str
    at: int = 0
    table: str = ""


class Text(NamedTuple):
    """One of the texts that a program may put together, with the choices that it is made of: the value and its text."""

    text: str
    chosen: frozenset[tuple[str, str]] = frozenset()


@frozen
class Statement:
    """The facts about a string given to `prepare`.

    `takes` is the number of values to bind, None where that is not known. `columns` are those of its rows: none at
    all for a statement without rows, None where that is not known. `slots` are the places of its parameters, as far as
    they are understood. `certain`: it gives a row for certain; None where that is not known. `unknown` is a table whose
    migration fails, and `newer` the version of SQLite that it needs, where this one is older.
    """

    problems: tuple[SqlProblem, ...] = ()
    takes: int | None = None
    columns: tuple[Column, ...] | None = None
    slots: tuple[Slot, ...] = ()
    certain: bool | None = None
    unknown: str = ""
    newer: str = ""

    @classmethod
    def either(cls, statements: Mapping[Text, Statement]) -> Statement:
        """The facts that hold for each of several statements, and the mistakes of those that a choice certainly makes:
        of the others nobody can tell whether their choices go together.
        """
        every = list(statements.values())
        if len(every) == 1:
            return every[0]
        items = {item for text in statements for item in text.chosen}
        among = ([one for text, one in statements.items() if item in text.chosen] for item in items)
        wrong = {one.problems[0] for some in among if all(one.problems for one in some) for one in some[:1]}
        return cls(
            tuple(
                SqlProblem(problem.message, table=problem.table)
                for problem in sorted(wrong, key=lambda one: one.message)
            ),
            _same([one.takes for one in every], None),
            _same([one.columns for one in every], None),
            _same([one.slots for one in every], ()),
            _same([one.certain for one in every], None),
            max(one.unknown for one in every),
            max(one.newer for one in every),
        )

    def column(self, name: str) -> Column | None:
        """The column of that name; of several, the last one, as in a row."""
        for column in reversed(self.columns or ()):
            if column.name == name:
                return column
        return None


def _same(values: Sequence[T], otherwise: T) -> T:
    return values[0] if all(value == values[0] for value in values[1:]) else otherwise
