"""The errors of the framework: those for clients, for developers, and of bindings.

Two trees. `CoreError` is for the client: a status, a message and metadata
that become the JSON answer. `DeveloperError` is for the author of an application:
it is named after the mistake, and its message ends with how to fix it.
`BindingError` is beside them: the failure of a binding of the platform, in the
platform's own words, so that a handler can tell a full key from a missing table.

One file, since `except` names them all from one module, and the trees are compared by being read side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, TypedDict

__all__ = [
    "AiError",
    "AlreadySentError",
    "AuthenticationError",
    "BindingError",
    "BindingSyntaxError",
    "BindingTypeError",
    "BindingValueError",
    "ConfigurationError",
    "CoreError",
    "D1Error",
    "D1TypeError",
    "DeveloperError",
    "DurableObjectError",
    "DurableObjectTypeError",
    "DurableObjectValueError",
    "EnvError",
    "HandlerError",
    "Issue",
    "KVError",
    "KVSyntaxError",
    "KVTypeError",
    "MissingExtraError",
    "NextCalledTwiceError",
    "NothingSentError",
    "OptionError",
    "OrderError",
    "PathError",
    "QueueError",
    "QueueTypeError",
    "R2Error",
    "R2SyntaxError",
    "R2TypeError",
    "R2ValueError",
    "RegistrationError",
    "UnsupportedBindingError",
    "UsageError",
    "ValidationError",
]

_NO_HEADERS: Mapping[str, str] = {}


def plain_status(status: object) -> int | None:
    """A status as a plain int: http.HTTPStatus is one too. None for anything but an int, True and False included."""
    return int(status) if isinstance(status, int) and not isinstance(status, bool) else None


def _error_status(given: object) -> int:
    status = plain_status(given)
    if status is None or not 400 <= status <= 599:
        raise ValueError(
            f"CoreError({given!r}, …): the status must be an int from 400 to 599, an error's. Write "
            f'CoreError(404, "{given if isinstance(given, str) else "Not Found"}")'
        )
    return status


# Python 3.13 renamed these after RFC 9110; here they have that name on every version.
_PHRASES: Final[Mapping[int, str]] = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}


def phrase_of(status: int) -> str:
    """The reason phrase of an error's status (RFC 9110, section 15). An unknown one is treated as 400 or 500."""
    if status in _PHRASES:
        return _PHRASES[status]
    from http import HTTPStatus

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return HTTPStatus.BAD_REQUEST.phrase if status < 500 else HTTPStatus.INTERNAL_SERVER_ERROR.phrase


class CoreError(Exception):
    """An answer to the client: `status`, and the JSON body `{"error": message, **metadata}`.

    Raise it anywhere in a handler or a middleware. Without a message it has the standard phrase of its status, "Not
    Found" for 404. `headers` go onto the response. Metadata may have any name but `headers`; `error` is always the
    message, also when the metadata has a key of that name.

        raise CoreError(404)
        raise CoreError(403, "Forbidden", code="INSUFFICIENT_PERMISSIONS")

    Raises ValueError for a status outside 400 to 599, which no error can have.
    """

    status: int
    message: str
    headers: Mapping[str, str]
    metadata: dict[str, Any]

    def __init__(
        self, status: int, message: str | None = None, /, *, headers: Mapping[str, str] | None = None, **metadata: Any
    ) -> None:
        if type(status) is not int or not 400 <= status <= 599:
            status = _error_status(status)
        if message is None:
            message = phrase_of(status)
        super().__init__(status, message)
        self.status = status
        self.message = message
        self.headers = _NO_HEADERS if headers is None else headers
        self.metadata = metadata

    def __str__(self) -> str:
        return self.message

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body of the default answer."""
        # The message first, and always the message, also when the metadata has a key of that name.
        body: dict[str, Any] = {"error": self.message, **self.metadata}
        body["error"] = self.message
        return body


class Issue(TypedDict):
    """One mistake in the data that a client sent."""

    path: str
    """The place of the mistake, such as `items[0].email`; empty for the whole value."""
    message: str


class ValidationError(CoreError):
    """A client's input has mistakes: 422 with the body `{"error": "Validation failed", "issues": [{"path": …, "message": …}]}`.

    Reading a body, a query, a form or headers as a type raises it. An application may raise it for what only the
    application can know:

        raise ValidationError([{"path": "email", "message": "is already in use"}])
    """

    issues: list[Issue]

    def __init__(
        self,
        issues: Sequence[Issue],
        /,
        *,
        status: int = 422,
        message: str = "Validation failed",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.issues = list(issues)
        super().__init__(status, message, headers=headers, issues=self.issues)


class AuthenticationError(CoreError):
    """401 `{"error": "Unauthorized"}`: the credentials of a request are wrong, or there are none at all (`missing`).

    An authenticator of your own raises it so that `optional(…)` can tell the two apart. `challenge` is the value of
    `WWW-Authenticate`, which a 401 must have (RFC 9110, section 15.5.2).
    """

    missing: bool

    def __init__(self, challenge: str = "Bearer", /, *, missing: bool = False) -> None:
        super().__init__(401, "Unauthorized", headers={"WWW-Authenticate": challenge})
        self.missing = missing


class DeveloperError(Exception):
    """A mistake in the application's own code or configuration. The message ends with how to fix it."""


class RegistrationError(DeveloperError):
    """Something was registered that can never work."""


class PathError(RegistrationError, ValueError):
    """A path or prefix that is not one: `/a/:`, two parameters of one name, a `*` that is not last."""


class HandlerError(RegistrationError, TypeError):
    """A callable that is neither handler `(req, res)` nor middleware `(req, res, next)`, or that is not async."""


class OptionError(RegistrationError, ValueError):
    """An option of a middleware or of the application that cannot be honoured."""


class OrderError(RegistrationError):
    """A middleware that reads a name that only a later one provides."""


class ConfigurationError(DeveloperError):
    """Mistakes in a configuration file, all of them at once, one per entry of `problems`."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class EnvError(DeveloperError):
    """`Env` cannot be built from the bindings there are; all that is missing or of the wrong kind, at once."""

    location: tuple[str, int] | None = None
    """The file and line of the class, where a tool knows them."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class UsageError(DeveloperError):
    """The command itself was wrong: an argument, or the place where it was given."""


class MissingExtraError(DeveloperError, ImportError):
    """A part of the framework whose extra is not installed. The message is the install command."""


class AlreadySentError(DeveloperError):
    """A response was sent twice, or changed after it left."""


class NextCalledTwiceError(DeveloperError):
    """A middleware called its `next` a second time."""


class NothingSentError(DeveloperError):
    """A chain ended without sending anything and without calling `next`."""

    location: tuple[str, int] | None = None
    """The file and line of the step that is to blame, where its source shows which one."""


# https://developers.cloudflare.com/d1/best-practices/retry-queries/, the same of KV and R2, and the embedded engines' own.
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
    "held by another process for more than",
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
        """True where the same call may succeed when it is made again: a lost connection, a reset, too many calls.

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
            if error.constraint == "UNIQUE" and error.columns == ("users.email",):
                raise CoreError(409, "Email already in use") from error
    """

    @property
    def constraint(self) -> Literal["UNIQUE", "PRIMARY KEY", "NOT NULL", "CHECK", "FOREIGN KEY"] | None:
        """The kind of constraint that was broken; None for every other error, a trigger's RAISE included.

        A message without SQLite's extended code does not distinguish a primary key from another unique key: it is "UNIQUE" then.
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
    """An object bucket refused; `code` is the platform's number, for example 10012."""

    code: int | None = None


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


class UnsupportedBindingError(DeveloperError):
    """A kind of binding that this backend cannot give. The message says which backend can."""
