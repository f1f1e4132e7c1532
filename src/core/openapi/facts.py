"""Facts about a program: the responses, errors, inputs and calls of each function, and the fields of each class.

Facts are plain values that survive as JSON, one file of them for each module, beside the type checker's cache. They
say nothing about routes: which function answers which request is the application's own table (`routes.py`).

A `Schema` is JSON Schema 2020-12 with additions that never reach a document: `{"$class": name}` stands for a class of
`ModuleFacts.classes`, `{"$returns": function}` for the value that a function returns, `{"$merge": […]}` for objects
laid over each other, and `{"$unknown": reason}` for a value that the type checker knows nothing about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import attrs
import cattrs
from typing_extensions import TypeIs

__all__ = [
    "Answer",
    "Call",
    "ClassFacts",
    "ERROR_BODY",
    "Effect",
    "Field",
    "FunctionFacts",
    "METHODS",
    "ModuleFacts",
    "Raise",
    "Read",
    "Schema",
    "StagedHeader",
    "any_of",
    "from_json",
    "is_array",
    "is_object",
    "json_type",
    "target",
    "to_json",
]

Schema: TypeAlias = dict[str, Any]

METHODS: Final = ("get", "put", "post", "delete", "patch", "head", "options", "trace", "query")
"""The methods that a path item has a place for, in lower case."""

ERROR_BODY: Final = "$error"
"""`{"$error": "body"}` in a schema: the body of the error that an error handler answers; "message" and "status" are
parts of it."""


@attrs.frozen
class Answer:
    """Something sent on a response."""

    line: int
    status: tuple[int, ...] | None
    """The statuses it may have; None for that of the error that an error handler answers."""
    media_type: str | None
    """None for an answer without a body."""
    body: Schema | None = None
    item: Schema | None = None
    """For server-sent events: the data of one event."""
    headers: Mapping[str, Schema] = attrs.Factory(dict[str, Schema])
    errors: tuple[str, ...] = ()
    """In an error handler: the class of the error at this place, narrowed by the type checker."""
    is_passed_on: bool = False
    """True for a response of somewhere else, of which neither status nor body is known."""
    kind: str = "answer"


@attrs.frozen
class Raise:
    """An error that is made here: a `CoreError(…)`, a class of its own, or another exception that is raised.

    `status` is empty where it is not known, and for an exception that has none.
    """

    line: int
    status: tuple[int, ...]
    message: Schema
    metadata: Mapping[str, Schema] = attrs.Factory(dict[str, Schema])
    headers: Mapping[str, Schema] = attrs.Factory(dict[str, Schema])
    classes: tuple[str, ...] = ("core.errors.CoreError", "builtins.Exception", "builtins.BaseException")
    """The class of the error and its bases, by full name."""
    caught: tuple[str, ...] = ()
    """The classes that the code around it catches."""
    kind: str = "raise"


@attrs.frozen
class Read:
    """Something read of a request: `part` is json, form, text, bytes, stream, query, params, headers, or one name of
    them: query-name, form-name, header-name, cookie-name. It is security for the credentials that the framework's
    authenticator `name` reads."""

    line: int
    part: str
    name: str | None = None
    schema: Schema | None = None
    required: bool = False
    caught: tuple[str, ...] = ()
    kind: str = "read"


@attrs.frozen
class Call:
    """A call of another function of a program, by its full name."""

    line: int
    target: str
    caught: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    """The class of an error made by this call of its `__init__`, and its bases."""
    kind: str = "call"


@attrs.frozen
class StagedHeader:
    """A header put on every response of the function that leaves behind it."""

    line: int
    name: str
    kind: str = "header"


Effect: TypeAlias = Answer | Raise | Read | Call | StagedHeader


@attrs.frozen
class FunctionFacts:
    """One function: where it is, its docstring, and its effects in order."""

    name: str
    line: int
    doc: str | None = None
    effects: tuple[Effect, ...] = ()
    returns: Schema | None = None
    """The value it returns, where its code is more precise than its annotation: a dict written out field by field."""


@attrs.frozen
class Field:
    """One field of a class, under the name that JSON has for it."""

    name: str
    schema: Schema
    has_default: bool = False
    is_read: bool = True
    """True if a client may send it; one that the class works out itself is only written."""
    attribute: str = ""


@attrs.frozen
class ClassFacts:
    """A class whose instances are JSON objects: an attrs class, dataclass or TypedDict."""

    name: str
    fields: tuple[Field, ...] = ()
    total: bool = True
    """True if an instance that is written has every field; a TypedDict may leave those with a default out."""


@attrs.frozen
class ModuleFacts:
    """Everything that one module says."""

    module: str
    path: str
    doc: str | None = None
    functions: tuple[FunctionFacts, ...] = ()
    classes: Mapping[str, ClassFacts] = attrs.Factory(dict[str, ClassFacts])
    details: Mapping[str, Mapping[str, Schema]] = attrs.Factory(dict[str, dict[str, Schema]])
    """Facts that only the text of a class has, by class and attribute: requirements of validators, defaults,
    docstrings. Under "" is the description of the class.
    """
    overrides: Mapping[str, tuple[str, ...]] = attrs.Factory(dict[str, tuple[str, ...]])
    """Methods by the methods of bases in whose place they are called."""


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Return True if a value of JSON is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Return True if a value of JSON is an array."""
    return isinstance(value, list)


def target(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema, a path item or a parameter of a document, or the one that it refers to."""
    for _ in range(20):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        found: Any = document
        for part in reference.removeprefix("#/").split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~"), {})
        schema = found
    return schema


def any_of(schemas: Iterable[Schema]) -> Schema:
    """One schema for several, each once; constants become an enum."""
    flat: list[Schema] = []
    for schema in schemas:
        for part in schema["anyOf"] if set(schema) == {"anyOf"} else [schema]:
            for single in [{"const": value} for value in part["enum"]] if set(part) == {"enum"} else [part]:
                if not any(_is_same(single, other) for other in flat):
                    flat.append(single)
    whole = {schema["type"] for schema in flat if set(schema) == {"type"}}
    flat = [part for part in flat if set(part) != {"const"} or json_type(part["const"]) not in whole]
    constants = [part["const"] for part in flat if set(part) == {"const"}]
    if len(constants) > 1:
        rest = [part for part in flat if set(part) != {"const"}]
        booleans = len(constants) == 2 and all(isinstance(value, bool) for value in constants)
        flat = [{"type": "boolean"} if booleans else {"enum": constants}, *rest]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _is_same(one: Schema, other: Schema) -> bool:
    # In Python 1 == True.
    return one == other and type(one.get("const")) is type(other.get("const"))


def json_type(value: object) -> str | None:
    """Return JSON Schema's name for the type of a constant; of all constants of a list, where they share one."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case None:
            return "null"
        case _ if is_array(value):
            kinds = {json_type(item) for item in value}
            return kinds.pop() if len(kinds) == 1 else None
        case _:
            return None


_EFFECTS: Final = {"answer": Answer, "raise": Raise, "read": Read, "call": Call, "header": StagedHeader}


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter()

    def effect(value: Any, _: object) -> Any:
        return converter.structure(value, _EFFECTS[value["kind"]])

    converter.register_structure_hook_func(lambda kind: kind == Effect, effect)
    return converter


_CONVERTER = _converter()


def to_json(facts: ModuleFacts) -> Any:
    """Facts as JSON."""
    return _CONVERTER.unstructure(facts)


def from_json(value: Any) -> ModuleFacts:
    """Facts that `to_json` wrote. Raises cattrs' errors for anything else."""
    return _CONVERTER.structure(value, ModuleFacts)
