"""The errors of the framework: those for clients, for developers, and of bindings.

Two trees. `CoreError` is for the client: a status, a message and metadata
that become the JSON answer. `DeveloperError` is for the author of an application:
it is named after the mistake, and its message ends with how to fix it.
`BindingError` is beside them, in `bindings.py`: the failure of a binding of the platform, in the
platform's own words, so that a handler can tell a full key from a missing table. `except` names them all from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypedDict

from core.values import lazily

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

if TYPE_CHECKING:
    from core.errors.bindings import (
        AiError,
        BindingError,
        BindingSyntaxError,
        BindingTypeError,
        BindingValueError,
        D1Error,
        D1TypeError,
        DurableObjectError,
        DurableObjectTypeError,
        DurableObjectValueError,
        KVError,
        KVSyntaxError,
        KVTypeError,
        QueueError,
        QueueTypeError,
        R2Error,
        R2SyntaxError,
        R2TypeError,
        R2ValueError,
    )
else:  # all that is not below
    __getattr__ = lazily(__name__, {"core.errors.bindings": " ".join(__all__)})


class Issue(TypedDict):
    """One mistake in the data that a client sent."""

    path: str
    """The place of the mistake, such as `items[0].email`; empty for the whole value."""
    message: str


_NO_HEADERS: Mapping[str, str] = {}


def plain_status(status: object) -> int | None:
    """A status as a plain int: http.HTTPStatus is one too. None for anything but an int, True and False included."""
    return int(status) if isinstance(status, int) and not isinstance(status, bool) else None


NULL_BODY_STATUSES: Final = frozenset({101, 204, 205, 304})
"""Statuses whose responses never carry a body (RFC 9110, Fetch)."""

REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
"""Statuses that send the client to another URL (Fetch)."""

CLIENT_GONE: Final = 499
"""The status of a request whose client went away before it was answered, as nginx has it. It is for logs and metrics:
no client reads it."""

# Python 3.13 renamed these after RFC 9110; here they have that name on every version. 499 is nginx's.
_PHRASES: Final[Mapping[int, str]] = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
    CLIENT_GONE: "Client Closed Request",
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
        self,
        status: int,
        message: str | None = None,
        /,
        *,
        headers: Mapping[str, str] | None = None,
        **metadata: object,
    ) -> None:
        if type(status) is not int or not 400 <= status <= 599:
            plain = plain_status(status)
            if plain is None or not 400 <= plain <= 599:
                from core.errors.mistakes import turned_status

                raise ValueError(turned_status(status))
            status = plain
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


class ValidationError(CoreError):
    """A client's input has mistakes: 422 with the body `{"error": "Validation failed", "issues": [{"path": …,
    "message": …}]}`.

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

    location: tuple[str, int] | None = None
    """The file and line to blame, where they are known and no traceback has them."""


class RegistrationError(DeveloperError):
    """Something was registered that can never work."""


class PathError(RegistrationError, ValueError):
    """A path or prefix that is not one: `/a/:`, two parameters of one name, a `*` that is not last."""


class HandlerError(RegistrationError, TypeError):
    """A callable that is neither handler `(req, res)` nor middleware `(req, res, next)`, or that is not async."""


class OptionError(RegistrationError, ValueError):
    """An option of a middleware or of the application that cannot be honoured."""


class OrderError(RegistrationError):
    """A middleware that reads a name that only a later one provides, or a cache before one that refuses clients."""


class ConfigurationError(DeveloperError):
    """Mistakes in a configuration file, all of them at once, one per entry of `problems`."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class EnvError(DeveloperError):
    """`Env` cannot be built from the bindings there are; all that is missing or of the wrong kind, at once."""

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

    unawaited: bool = False
    """True if the step did not await a call that would have answered."""


class UnsupportedBindingError(DeveloperError):
    """A kind of binding that this backend cannot give. The message says which backend can."""
