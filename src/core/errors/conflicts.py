"""The answer to a value that another row has already: a 409 in place of the database's error.

Decided here: clients read the names of columns that the handler chose, and never a value, a table or SQLite's message.
"""

from __future__ import annotations

from typing import Final

from core.errors import Issue, ValidationError


class conflict:  # it is written as `contextlib.suppress` is
    """Answer 409 where a statement inside would store a value that has to be unique a second time.

        with conflict("email"):
            user = await insert.bind(new.name, new.email).one(User)

    The client gets `{"error": "Conflict", "issues": [{"path": "email", "message": "is already taken"}]}`, one issue for
    each of the `columns` that the constraint has. `columns` are the names that clients may be told, as the table has
    them: where a constraint has none of these, the `D1Error` goes on, and so does every other error. For a unique
    index over an expression, such as `lower(email)`, SQLite names no column: it is told where `columns` is one name.

    Several statements and a `batch` may be inside. It keeps nothing, so one in a variable may be used any number of
    times. Raises TypeError without a column.
    """

    def __init__(self, *columns: str, message: str = "is already taken") -> None:
        if not columns:
            raise TypeError('conflict() needs the columns that clients may be told: conflict("email")')
        self._columns: Final = columns
        self._message: Final = message

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object, /) -> None:
        if error is None:
            return
        from core.errors.bindings import D1Error

        if not isinstance(error, D1Error) or error.constraint not in ("UNIQUE", "PRIMARY KEY"):
            return
        broken = [name.rpartition(".")[2] for name in error.columns]
        taken = [name for name in self._columns if name in broken]
        if not broken and len(self._columns) == 1:
            taken = [*self._columns]
        if taken:
            issues: list[Issue] = [{"path": name, "message": self._message} for name in taken]
            raise ValidationError(issues, status=409, message="Conflict") from error
