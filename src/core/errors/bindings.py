"""The errors of bindings: a call that the platform refused, in the platform's own words.

Programs take them from `core.errors`. They stand apart since most of them are met by no worker, and making a class
takes longer than anything else while a module is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

# https://developers.cloudflare.com/d1/best-practices/retry-queries/, the same of KV and R2, and the embedded engines'
# own.
_TRANSIENT = (
    "Network connection lost",
    "storage caused object to be reset",
    "reset because its code was updated",
    "failed: 429 Too Many Requests",
    "failed: 500 ",
    "failed: 502 ",
    "failed: 503 ",
    "failed: 504 ",
    "(10001)",  # R2: an internal error
    "(10043)",  # R2: unavailable
    "(10058)",  # R2: too many requests
    "has held the database for more than",
    "database or disk is full",
    "No space left on device",
    "Disk quota exceeded",
    "internal error; reference = ",  # workerd: it failed itself, as where an object's commit does not reach the bucket
)

_MALFORMED_ETAGS = (
    "Comma was expected to separate etags",
    "Weak etags must start with W/",
    "Unclosed double quote for Etag",
    "Invalid ETag in ",
)


class BindingError(Exception):
    """A binding refused, in the words of the real runtime.

    `js_name` is the name that the error has in JavaScript (`Error`, `TypeError`, `RangeError`, `SyntaxError`), and
    `cause_message` the message of its cause, where the platform gives one.
    """

    js_name: str = "Error"
    cause_message: str | None = None
    _retryable: bool | None = None

    @property
    def retryable(self) -> bool:
        """True where the same call may succeed when it is made again: a lost connection, a reset, an internal error.

        The call may have had its effect before it failed, so repeat only what may happen twice. It is what the runtime
        says of its error where it says so (Durable Objects), else what the platform documents of its messages. Wait
        before you try again, longer each time.
        """
        if self._retryable is not None:
            return self._retryable
        # Where the platform's words begin: a message may quote a client's data.
        said = str(self)[:200]
        return any(words in said for words in _TRANSIENT)

    @retryable.setter
    def retryable(self, value: bool) -> None:
        self._retryable = value


class BindingTypeError(BindingError, TypeError):
    """A value of a type that the binding does not take (JavaScript's TypeError)."""

    js_name = "TypeError"


class BindingValueError(BindingError, ValueError):
    """A value out of the range that the binding takes (JavaScript's RangeError)."""

    js_name = "RangeError"


class BindingSyntaxError(BindingError, ValueError):
    """A value that was asked for as JSON is none (JavaScript's SyntaxError)."""

    js_name = "SyntaxError"


class KVError(BindingError):
    """A key-value namespace refused."""


class KVTypeError(KVError, BindingTypeError):
    """A key or a value of a kind that a key-value namespace does not take."""


class KVSyntaxError(KVError, BindingSyntaxError):
    """A value in a key-value namespace was asked for as JSON and is none."""


if TYPE_CHECKING:
    _Constraint: TypeAlias = Literal["UNIQUE", "PRIMARY KEY", "NOT NULL", "CHECK", "FOREIGN KEY"]

# SQLite's extended codes, as they end the message. A trigger's RAISE has a code of its own, whatever its text says.
_CONSTRAINTS: Final[Mapping[str, _Constraint]] = {
    "UNIQUE": "UNIQUE",
    "ROWID": "UNIQUE",
    "PRIMARYKEY": "PRIMARY KEY",
    "NOTNULL": "NOT NULL",
    "CHECK": "CHECK",
    "FOREIGNKEY": "FOREIGN KEY",
}
_NAMED: Final[tuple[_Constraint, ...]] = ("UNIQUE", "NOT NULL", "CHECK", "FOREIGN KEY")
_WITH_COLUMNS: Final = frozenset({"UNIQUE", "PRIMARY KEY", "NOT NULL"})


class D1Error(BindingError):
    """A SQL database refused; the message begins with `D1_`.

    Which constraint a statement broke, if it was one, is in `constraint` and `columns`:

        except D1Error as error:
            if error.constraint == "FOREIGN KEY":
                raise CoreError(404, "No such author") from error
            raise

    A value that is taken, which is "UNIQUE" or "PRIMARY KEY", becomes a 409 in `with conflict("email"):`.
    """

    @property
    def constraint(self) -> Literal["UNIQUE", "PRIMARY KEY", "NOT NULL", "CHECK", "FOREIGN KEY"] | None:
        """The kind of constraint that was broken; None for every other error, a trigger's RAISE included.

        A message without SQLite's extended code does not distinguish a primary key from another unique key: it is
        "UNIQUE" then.
        """
        return self._broken[0]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the constraint as SQLite names them, `("users.email",)`, in the order of the constraint.

        Empty where it names none: for CHECK and FOREIGN KEY, and for a unique index with an expression in it.
        """
        return self._broken[1]

    @cached_property
    def _broken(self) -> tuple[_Constraint | None, tuple[str, ...]]:
        constraint: _Constraint | None
        message, extended, code = str(self).removesuffix(")").rpartition(" (extended: SQLITE_CONSTRAINT_")
        if extended:
            constraint = _CONSTRAINTS.get(code)
        else:
            # Only where the message begins so: an exec's quotes the statement, and with it any text of a client's.
            message = code
            said = message.removeprefix("D1_ERROR: ")
            constraint = next((kind for kind in _NAMED if said.startswith(f"{kind} constraint failed")), None)
        if constraint not in _WITH_COLUMNS:
            return constraint, ()
        # From the end, for the same reason.
        names = message.removesuffix(": SQLITE_CONSTRAINT").rpartition(" constraint failed: ")[2]
        return constraint, () if names.startswith("index '") else tuple(names.split(", "))


class D1TypeError(D1Error, BindingTypeError):
    """A value of a kind that cannot be bound, or a batch of values that are not statements."""

    # The platform raises a plain Error with the code in the message: `D1_TYPE_ERROR: ...`.
    js_name = "Error"


class R2Error(BindingError):
    """An object bucket refused."""

    @cached_property
    def code(self) -> int | None:
        """The platform's number, for example 10012, which its message ends with."""
        number = str(self).rpartition(" (")[2].removesuffix(")")
        return int(number) if type(self) is R2Error and number.isdecimal() else None

    @property
    def status(self) -> int | None:
        """400 where a header that was handed on as a condition is malformed, which is its client's mistake."""
        # The runtime's own errors, which have no code.
        return 400 if str(self).startswith(_MALFORMED_ETAGS) else None


class R2TypeError(R2Error, BindingTypeError):
    """A value or an option of a kind that an object bucket does not take, or a body that was read already."""


class R2ValueError(R2Error, BindingValueError):
    """An option of an object bucket out of its range."""


class R2SyntaxError(R2Error, BindingSyntaxError):
    """An object was asked for as JSON and is none."""


class QueueError(BindingError):
    """A queue refused a message or a batch."""


class QueueTypeError(QueueError, BindingTypeError):
    """A message of a kind that its content type, or a queue, does not take."""


class DurableObjectError(BindingError):
    """A Durable Object or its storage refused."""


class DurableObjectTypeError(DurableObjectError, BindingTypeError):
    """An id, a key or a value of a kind that Durable Objects do not take."""


class DurableObjectValueError(DurableObjectError, BindingValueError):
    """A key, a value or a number of them beyond what the storage of a Durable Object takes."""


class AiError(BindingError):
    """A model refused, or could not be reached; `status` is that of its answer, where there was one."""

    status: int | None = None
