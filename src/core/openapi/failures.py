"""The errors that the framework and Python make by themselves, and the body of one that no error handler answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from core.errors import phrase_of
from core.openapi.facts import Raise
from core.validation.schema import Schema

CORE_ERROR: Final = "core.errors.CoreError"
EXCEPTION: Final = "builtins.BaseException"
_ABOVE: Final = (CORE_ERROR, "builtins.Exception", EXCEPTION)
_ISSUES: Final[Schema] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "message": {"type": "string"}},
        "required": ["path", "message"],
    },
}


def object_of(properties: Schema) -> Schema:
    """An object that has all of these properties."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def error(
    status: int,
    message: str | None = None,
    *,
    cls: str | None = None,
    headers: Iterable[str] = (),
    **metadata: Schema,
) -> Raise:
    """An error of the framework's own, of the class `cls`. Without a message it has one of several."""
    return Raise(
        status=(status,),
        message={"type": "string"} if message is None else {"const": message},
        metadata=object_of(metadata),
        headers={name: {"type": "string"} for name in headers},
        classes=_ABOVE if cls is None else (cls, *_ABOVE),
    )


INVALID: Final = error(422, "Validation failed", cls="core.errors.ValidationError", issues=_ISSUES)
"""The error for a client's value of another shape."""
CONFLICT: Final = error(409, "Conflict", cls="core.errors.ValidationError", issues=_ISSUES)
"""The error of `with conflict(…)` for a value that is taken."""
UNEXPECTED: Final = Raise(
    status=(500,), message={"const": "Internal Server Error"}, classes=("builtins.Exception", "builtins.BaseException")
)
UNAUTHORIZED: Final = error(401, "Unauthorized", cls="core.errors.AuthenticationError", headers=["WWW-Authenticate"])
NOT_FOUND: Final = error(404, "Not Found")
MALFORMED: Final = error(400, "Malformed path")
NOT_ALLOWED: Final = error(405, "Method Not Allowed", headers=["Allow"])

_VALUE: Final = "builtins.ValueError"
OF_PYTHON: Final[Mapping[str, str]] = {
    "builtins.int": _VALUE,
    "builtins.float": _VALUE,
    "builtins.bytes.fromhex": _VALUE,
    "datetime.date.fromisoformat": _VALUE,
    "datetime.datetime.fromisoformat": _VALUE,
    "datetime.datetime.strptime": _VALUE,
    "datetime.time.fromisoformat": _VALUE,
    "uuid.UUID": _VALUE,
    "decimal.Decimal": "decimal.InvalidOperation",
    "json.loads": "json.decoder.JSONDecodeError",
    "base64.b64decode": "binascii.Error",
    "ipaddress.ip_address": _VALUE,
    "asyncio.timeouts.timeout": "builtins.TimeoutError",
    "asyncio.tasks.wait_for": "builtins.TimeoutError",
}
"""The errors of what programs call in Python most of all: of a text that means nothing, and of time that is up."""
LOOKUPS: Final = {
    "builtins.dict": "builtins.KeyError",
    "typing.Mapping": "builtins.KeyError",
    "core": "builtins.KeyError",
    "builtins.list": "builtins.IndexError",
    "builtins.str": "builtins.IndexError",
}
"""The error of `value[key]`, by the class of the value; `core` is what is read of a request."""
D1_ERROR: Final = "core.errors.bindings.D1Error"
BINDINGS: Final = {
    "core.bindings.ai": "core.errors.bindings.AiError",
    "core.bindings.d1": D1_ERROR,
    "core.bindings.durable_object": "core.errors.bindings.DurableObjectError",
    "core.bindings.kv": "core.errors.bindings.KVError",
    "core.bindings.queue": "core.errors.bindings.QueueError",
    "core.bindings.r2": "core.errors.bindings.R2Error",
}
"""The errors that a call of a binding may raise, by the module of its class: an error handler may make an answer of it.
"""


def is_caught(raised: Raise, caught: Sequence[str]) -> bool:
    """Return True if code that catches these classes keeps an error to itself."""
    return not set(raised.classes).isdisjoint(caught)


def default_body(raised: Raise, status: int, *, problem: bool) -> Schema:
    """The body of an error, as `core.dispatch.answers.answer_error` writes it, or as problem details (RFC 9457)."""
    fields: Schema = raised.metadata["properties"]
    if not problem:
        own = {"error": raised.message, **fields} | {"error": raised.message}  # first, and always
        required = [*dict.fromkeys(["error", *raised.metadata["required"]])]
        return {**raised.metadata, "properties": own, "required": required}
    title: Schema = {"const": phrase_of(status)}
    own = {"type": {"const": "about:blank"}, "title": title, "status": {"const": status}}
    required = list(own)
    if raised.message != title:
        own["detail"] = raised.message
        if "const" in raised.message:  # any other text may be the title, which is not said twice
            required.append("detail")
    metadata = {name: schema for name, schema in fields.items() if name != "status"}
    required = [*dict.fromkeys([*required, *(name for name in raised.metadata["required"] if name in metadata)])]
    return {**raised.metadata, "properties": {**own, **metadata}, "required": required}
