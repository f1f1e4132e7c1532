"""A SQL database, as a handler sees it: `D1Database`, its statements, and the values they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, overload, runtime_checkable

from typing_extensions import TypeForm, TypeVar

from core.bindings import binding_call
from core.values import frozen

if TYPE_CHECKING:
    from core.validation.unset import Unset

    T = TypeVar("T")
    R1 = TypeVar("R1")
    R2 = TypeVar("R2")
    R3 = TypeVar("R3")
    R4 = TypeVar("R4")
    R5 = TypeVar("R5")

__all__ = [
    "D1Database",
    "D1DatabaseSession",
    "D1ExecResult",
    "D1Meta",
    "D1PreparedStatement",
    "D1Result",
    "D1Row",
    "D1SessionConstraint",
    "D1Value",
]

R = TypeVar("R", default=dict[str, Any])


D1Value: TypeAlias = bool | int | float | str | bytes | bytearray | memoryview | Sequence[int] | None
"""A value that can be bound. A sequence of numbers from 0 to 255 is a blob."""

D1Row: TypeAlias = dict[str, Any]
"""A row by column name. Its values are None, int, float, str or bytes."""

D1SessionConstraint: TypeAlias = Literal["first-primary", "first-unconstrained"]
"""The target of a session's first query: the primary database, or the nearest copy."""


@frozen
class D1Meta:
    """The database's metadata about a query.

    `duration`: milliseconds inside the database. `changes`: rows that this statement changed, those of triggers and
    cascades included; 0 for a SELECT. `last_row_id`: the rowid of the connection's last INSERT, whichever statement
    that was. `changed_db`: whether anything was written. `size_after`: bytes. `rows_read`, `rows_written`: what is
    billed. `served_by` and what follows it: which instance answered, and how; None where the place does not say.
    """

    served_by: str
    duration: float
    changes: int
    last_row_id: int
    changed_db: bool
    size_after: int
    rows_read: int
    rows_written: int
    served_by_region: str | None = None
    served_by_primary: bool | None = None
    total_attempts: int | None = None
    timings: Mapping[str, float] | None = None


@frozen
class D1Result(Generic[R]):
    """The rows of a query, and the database's report about it. `success` is always True: a failure is raised."""

    results: list[R]
    meta: D1Meta
    success: bool = True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # The meta takes as long to make as a row to write, and few ask for it: a backend may leave `_meta` in its
            # place, a function and what it makes the meta of.
            late = self.__dict__.pop("_meta", None) if name == "meta" else None
            if late is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            make, given = late
            meta = self.__dict__["meta"] = make(given)
            return meta


@frozen
class D1ExecResult:
    """The number of lines that an `exec` ran, and the milliseconds they took."""

    count: int
    duration: float


@runtime_checkable
class D1PreparedStatement(Protocol[R]):
    """A statement with the values bound to it. It can be run any number of times, and nothing changes it.

    `R` is the type of its rows: a dict by column name, until `as_(T)` says otherwise.

    Nothing is checked before it runs. Then everything raises `D1Error`, with SQLite's own message:
    `D1_ERROR: UNIQUE constraint failed: users.email: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)`.

    Limits: 100 parameters, 100 columns, 100 000 bytes of SQL, 2 000 000 bytes a text or blob, 50 MB a result.
    """

    def bind(self, *values: D1Value | Unset) -> D1PreparedStatement[R]:
        """Return a new statement with `values` for `?`, `?1`, `?2`, ... in place of any bound before.

        Assignments of `UPDATE … SET` whose values are UNSET are left out; where all are, the row stays as it is, and
        RETURNING answers.

        Every number is bound as SQLite's REAL, bool included, as on the platform: `7 / ?` with 2 is 3.5, and a TEXT
        column gets `"5.0"` of 5, while an INTEGER column stores 5. NaN and the infinities become NULL.

        Raises `D1TypeError` (also a TypeError) at once for a value of another kind, for UNSET in any other place, and
        for an int beyond 2**53 - 1, which no number of the platform can hold.
        """
        ...

    def as_(self, type_: TypeForm[T], /) -> D1PreparedStatement[T]:
        """Return a new statement whose rows become `T`: in `first()`, `one()`, `all()`, `run()`, and in a `batch`.

        For two statements of a batch:

            users, count = await db.batch((db.prepare("SELECT id, name FROM users").as_(User), counted.as_(Count)))
        """
        ...

    @overload
    async def first(self, /) -> R | None: ...
    @overload
    async def first(self, column: str, /) -> Any: ...
    @overload
    async def first(self, type_: TypeForm[T], /) -> T | None: ...
    @binding_call
    async def first(self, column_or_type: Any = None, /) -> Any:
        """Return the first row, or its `column`, or the row as a `T`; None without rows. No LIMIT is added.

        Raises `D1Error` (`D1_COLUMN_NOTFOUND`) for a column that the row has not, and `StructureError` (every
        mistake, each with its path) for a row that is not a `T`.
        """
        raise AssertionError

    @overload
    async def one(self, /, *, error: Exception | None = None) -> R: ...
    @overload
    async def one(self, column: str, /, *, error: Exception | None = None) -> Any: ...
    @overload
    async def one(self, type_: TypeForm[T], /, *, error: Exception | None = None) -> T: ...
    @binding_call
    async def one(self, column_or_type: Any = None, /, *, error: Exception | None = None) -> Any:
        """Return the first row as `first` does, where there has to be one.

        Without rows it raises `error`, by default `CoreError(404, "Not Found")`, which answers the client.
        """
        raise AssertionError

    @overload
    async def all(self, /) -> D1Result[R]: ...
    @overload
    async def all(self, type_: TypeForm[T], /) -> D1Result[T]: ...
    @binding_call
    async def all(self, type_: Any = None, /) -> Any:
        """Return every row, each a dict or a `T`. Of columns of one name, the last one is in the dict.

        In a `T`, 0 and 1 may fill a bool, whole numbers a float, text a datetime, and JSON text a list, a dict, a
        class or a TypedDict, as `json()` and `json_group_array()` make it, with 0 and 1 for a bool. Columns with a dot
        in their names fill inner classes: `SELECT u.name AS "author.name"` the `name` of `author: Author`; of an
        `author: Author | None` it is None if and only if all of its columns are NULL. Raises `StructureError` for a row
        that is not a `T`, with `results[3].author.name` as the path.
        """
        raise AssertionError

    @binding_call
    async def run(self) -> D1Result[R]:
        """Run the statement. The same as `all()`: a statement with rows gives them here too."""
        raise AssertionError

    @binding_call
    async def raw(self, column_names: bool = False) -> list[list[Any]]:
        """Return every row as a list of its values; with `column_names`, the names come first, also without rows."""
        raise AssertionError


if TYPE_CHECKING:
    _S: TypeAlias = D1PreparedStatement[R]


class _Queries(Protocol):
    """Statements of a database, or of one session with it."""

    def prepare(self, sql: str, /) -> D1PreparedStatement:
        """Return a statement for `sql`. Nothing is checked yet.

        Several statements in one text run one after the other, all or nothing; the rows are the last one's, and only
        the last may have parameters.
        """
        ...

    @overload
    async def batch(self, statements: tuple[_S[R1]], /) -> tuple[D1Result[R1]]: ...
    @overload
    async def batch(self, statements: tuple[_S[R1], _S[R2]], /) -> tuple[D1Result[R1], D1Result[R2]]: ...
    @overload
    async def batch(
        self, statements: tuple[_S[R1], _S[R2], _S[R3]], /
    ) -> tuple[D1Result[R1], D1Result[R2], D1Result[R3]]: ...
    @overload
    async def batch(
        self, statements: tuple[_S[R1], _S[R2], _S[R3], _S[R4]], /
    ) -> tuple[D1Result[R1], D1Result[R2], D1Result[R3], D1Result[R4]]: ...
    @overload
    async def batch(
        self, statements: tuple[_S[R1], _S[R2], _S[R3], _S[R4], _S[R5]], /
    ) -> tuple[D1Result[R1], D1Result[R2], D1Result[R3], D1Result[R4], D1Result[R5]]: ...
    @overload
    async def batch(self, statements: list[_S[R]], /) -> list[D1Result[R]]: ...
    @binding_call
    async def batch(self, statements: Any, /) -> Any:
        """Run statements in one transaction and return their results, in order: a list for a list, a tuple for a tuple.

        In a tuple, of five at most for a type checker, each result has the rows of its own statement, as `as_` says; in
        a list all have rows of one type.

        A failure undoes all of them, and raises the failing statement's `D1Error`. A statement of another database
        runs on this one. Raises `D1Error` for an empty list.
        """
        raise AssertionError


@runtime_checkable
class D1DatabaseSession(_Queries, Protocol):
    """Queries in an order: each sees at least the data that the ones before it saw, whichever replica answers."""

    def get_bookmark(self) -> str | None:
        """Return where the session is, for a later `with_session`; None before anything ran."""
        ...


@runtime_checkable
class D1Database(_Queries, Protocol):
    """A SQL database, which is SQLite with foreign keys on.

    ATTACH, temporary tables, most PRAGMAs, and virtual tables other than fts5 are refused, and so are BEGIN and
    SAVEPOINT: `batch` is the transaction.
    """

    @binding_call
    async def exec(self, sql: str, /) -> D1ExecResult:
        """Run a string **line by line**, without parameters, in one transaction: for fixtures and small repairs.

        A statement must not go over two lines. The error always says line 1, as the platform's does.
        """
        raise AssertionError

    def with_session(self, constraint_or_bookmark: str | None = None, /) -> D1DatabaseSession:
        """Return a session, beginning anywhere, at the primary (`"first-primary"`), or at a bookmark."""
        ...
