"""The errors that a route answers with beside those that its code makes, and the body that an error handler writes for
an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from core.errors import phrase_of
from core.openapi.facts import ERROR_BODY, Answer, ClassFacts, Raise, Read, Schema, is_object

__all__ = [
    "CORE_ERROR",
    "DEFAULT_ANSWER",
    "DEFAULT_PROBLEM",
    "INVALID",
    "ISSUES",
    "NOT_ALLOWED",
    "NOT_FOUND",
    "UNAUTHORIZED",
    "UNEXPECTED",
    "error",
    "implied",
    "is_caught",
    "substituted",
]

CORE_ERROR: Final = ("core.errors.CoreError", "builtins.Exception", "builtins.BaseException")
_VALIDATION: Final = ("core.errors.ValidationError", *CORE_ERROR)
ISSUES: Final[Schema] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "message": {"type": "string"}},
        "required": ["path", "message"],
    },
}


def error(status: int, message: str | None, classes: tuple[str, ...] = CORE_ERROR, **metadata: Schema) -> Raise:
    """An error of the framework's own. Without a message it has one of several."""
    return Raise(0, (status,), {"type": "string"} if message is None else {"const": message}, metadata, {}, classes)


INVALID: Final = error(422, "Validation failed", _VALIDATION, issues=ISSUES)
"""The error for a client's value of another shape."""
DEFAULT_ANSWER: Final = Answer(0, None, "application/json", {ERROR_BODY: "body"})
"""The answer to an error where the application has no error handler."""
DEFAULT_PROBLEM: Final = Answer(0, None, "application/problem+json", {ERROR_BODY: "problem"})
"""The same in an application with `problem_details`."""
UNEXPECTED: Final = error(500, "Internal Server Error", ("builtins.Exception", "builtins.BaseException"))
UNAUTHORIZED: Final = error(401, "Unauthorized", ("core.errors.AuthenticationError", *CORE_ERROR))
NOT_FOUND: Final = error(404, "Not Found")
NOT_ALLOWED: Final = error(405, "Method Not Allowed")


def implied(reads: Iterable[Read], classes: Mapping[str, ClassFacts], *, limited: bool) -> Iterator[Raise]:
    """The errors of reading a request.

    `limited`: whether a middleware has its own bound on bodies, and its own error.
    """
    for read in reads:
        found: list[Raise] = []
        if read.part == "json":
            found.append(error(400, "Invalid JSON"))
            if not limited:
                found.append(error(413, "Payload Too Large"))
        if read.part == "form" and read.schema is None:
            found += [error(400, None), error(413, None), error(415, "Unsupported Media Type")]
        if read.schema is not None and _may_fail(read, classes):
            found.append(NOT_FOUND if read.part == "params" else INVALID)
        yield from (each for each in found if not is_caught(each, read.caught))


def _may_fail(read: Read, classes: Mapping[str, ClassFacts]) -> bool:
    """Return True if a value that is read into a type can be wrong. A string is never wrong in a query."""
    if read.part == "json":
        return read.schema != {}
    if "-" in read.part:
        return False
    facts = classes.get((read.schema or {}).get("$class", ""))
    return facts is None or any(not field.has_default or field.schema != {"type": "string"} for field in facts.fields)


def is_caught(raised: Raise, caught: Sequence[str]) -> bool:
    """Return True if code that catches these classes keeps an error to itself."""
    return not set(raised.classes).isdisjoint(caught) or "builtins.BaseException" in caught


def substituted(schema: Schema, raised: Raise | None, status: int) -> Schema:
    """The body that an error handler writes, with the error in it; None is an error of which nothing is known."""
    if ERROR_BODY in schema:
        match schema[ERROR_BODY]:
            case "message":
                return raised.message if raised is not None else {"type": "string"}
            case "status":
                return {"const": status}
            case "problem":
                return _problem(raised, status)
            case _:
                message: Schema = raised.message if raised is not None else {"type": "string"}
                own = {"error": message, **(raised.metadata if raised is not None else {})}
                return {"type": "object", "properties": own, "required": list(own)}
    result: Schema = {}
    for key, value in schema.items():
        if key == "properties":
            result[key] = {name: substituted(part, raised, status) for name, part in value.items()}
        elif key in ("items", "additionalProperties") and is_object(value):
            result[key] = substituted(value, raised, status)
        elif key in ("anyOf", "prefixItems", "$merge"):
            result[key] = [substituted(part, raised, status) for part in value]
        else:
            result[key] = value
    return result


def _problem(raised: Raise | None, status: int) -> Schema:
    """An error as problem details (RFC 9457), as `core.answers.answer_problem` writes them."""
    title: Schema = {"const": phrase_of(status)}
    own: dict[str, Schema] = {"type": {"const": "about:blank"}, "title": title, "status": {"const": status}}
    message: Schema = raised.message if raised is not None else {"type": "string"}
    required = list(own)
    if message != title:
        own["detail"] = message
        if "const" in message:  # any other text may be the title, which is not said twice
            required.append("detail")
    metadata: dict[str, Schema] = {} if raised is None else {**raised.metadata}
    metadata.pop("status", None)
    return {"type": "object", "properties": {**own, **metadata}, "required": [*dict.fromkeys([*required, *metadata])]}
