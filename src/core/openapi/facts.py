"""Facts about a program: what a request meets on its way, the fields of classes, and what the application holds.

A `Schema` is JSON Schema 2020-12 with two additions that never reach a document: `{"$class": name}` stands for a class
of `ClassFacts`, and `{"$unknown": reason}` for a value that the type checker knows nothing about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from core.description import Description
from core.http.json import JsonObject
from core.validation.schema import Schema
from core.values import is_array, is_object

TEXT: Final[Schema] = {"type": "string"}
BODIES: Final = frozenset(["json", "form", "text", "bytes", "stream"])
"""How a body is read: methods of a request, and parts of it (`Read`)."""
NOTHING: Final = Description(False, False, None, None, None, None)
MAY_BE_EMPTY: Final = "x-may-be-empty"
"""What a document says of an answer with a body that is sent without one too, for which OpenAPI has no word."""


@attrs.frozen
class Held:
    """Something that the application holds while it runs: a function, a type, an object or a constant.

    `name` is the full name of the function's code, of the type, or of the object's class; "" for a constant, and for
    what nothing is known of.
    """

    kind: str
    """function, type, object or constant."""
    name: str = ""
    place: tuple[str, int] = ("", 0)
    """The file and first line of a function."""
    constant: Any = None
    holds: Mapping[str, Held] = attrs.Factory(dict[str, "Held"])
    """The variables around a function, and the arguments that a partial gives by name; the attributes of an object."""
    given: Sequence[Held] = ()
    """The arguments that a partial or a bound method gives; those of a generic type, and the members of a union; the
    items of a tuple, list or set, and the keys of a dict.
    """


Way: TypeAlias = frozenset[tuple[str, str, str]]
"""What one way through a function has read of the request: parts and names, and what is known of them by a condition:
`+` where it is there, `-` where it is not, else "".
"""
Levels: TypeAlias = Sequence[Mapping[str, Held]]
"""The error handlers of routers, the nearest first: functions by the classes that they are for, by full names."""


@attrs.frozen(kw_only=True)
class Effect:
    """Something that happens on the way of a request, with its file and line; no file for one of the framework's."""

    path: str = ""
    line: int = 0


@attrs.frozen(kw_only=True)
class Answer(Effect):
    """Something sent on a response. `media_type` is None for an answer without a body, `status` empty if not known."""

    status: tuple[int, ...]
    media_type: str | None = None
    body: Schema | None = None
    item: Schema | None = None
    """For server-sent events: one event."""
    headers: dict[str, Schema] = attrs.Factory(dict[str, Schema])
    """A header that is put on the response after it was sent is added here."""


@attrs.frozen(kw_only=True)
class Raise(Effect):
    """An error that is raised: a `CoreError(…)`, a class of its own, or another exception.

    `status` is empty where it is not known, and for an exception that has none.
    """

    status: tuple[int, ...] = ()
    message: Schema = attrs.Factory(lambda: {"type": "string"})
    metadata: Schema = attrs.Factory(lambda: {"type": "object", "properties": {}, "required": []})
    """What stands in the body beside the message, as an object."""
    headers: dict[str, Schema] = attrs.Factory(dict[str, Schema])
    classes: tuple[str, ...] = ("core.errors.CoreError", "builtins.Exception", "builtins.BaseException")
    """The class of the error and its bases, by full name."""
    levels: Levels | None = None
    """The error handlers of the routers around; None until that is known."""
    passed: bool = False
    """True for one that an error handler hands to `next`."""


@attrs.frozen(kw_only=True)
class Read(Effect):
    """Something read of a request: `part` is json, form, text, bytes, stream, query, path, header or cookie, all of it
    or one `name`. It is security for the credentials that the framework's authenticator `name` reads. A name without a
    schema is asked for alone, as by `name in req.query`; without both, a query, header or cookie has a name that is not
    known.
    """

    part: str
    name: str | None = None
    schema: Schema | None = None
    required: bool = False


@attrs.frozen(kw_only=True)
class Passed(Effect):
    """A function let the request go on behind a condition: what it had read by then, on each of its ways."""

    ways: frozenset[Way]


@attrs.frozen(kw_only=True)
class Open(Effect):
    """A place where the program goes on in code that is not followed: any answer may come of it, or any error."""

    reason: str
    sends: bool = True
    """False if the code that is not followed has no response to send on."""
    answers: bool = True
    """False where what is answered is known, and only a part of it is not."""


@attrs.frozen
class Field:
    """One field of a class, under the name that JSON has for it; `schema` has its constraints and description."""

    name: str
    schema: Schema
    default: tuple[object, ...] | None = None
    """None for a field that has to be there, else the default, or () for one that JSON does not have."""
    is_read: bool = True
    """True if a client may send it; one that the class works out itself is only written."""
    may_be_unset: bool = False
    """True if it is not written where it is UNSET."""


@attrs.frozen
class ClassFacts:
    """A class whose instances are JSON objects: an attrs class, dataclass or TypedDict. Or a type that has itself in it
    by the name that it is given, as `Json` may be, which is `alias` and has no fields.
    """

    name: str
    """As a document calls it, where no other class is called the same."""
    outer: tuple[str, ...] = ()
    """The names of the packages, the module and the classes that it is in."""
    fields: tuple[Field, ...] = ()
    total: bool = True
    """True if an instance that is written has every field; a TypedDict may leave those with a default out."""
    description: str | None = None
    place: tuple[str, int] = ("", 0)
    alias: Schema | None = None

    @property
    def parts(self) -> Sequence[Schema]:
        """The schemas that it is made of."""
        return [*(field.schema for field in self.fields), *([self.alias] if self.alias is not None else [])]


@attrs.frozen
class ClassDetails:
    """What a class says of its fields when it runs, by attribute, in the words of JSON Schema: bounds, and under
    `$default` what is used for one that is left out. `members` are an enum's values, in order.
    """

    fields: Mapping[str, Schema] = attrs.Factory(dict[str, Schema])
    members: Mapping[str, object] = attrs.Factory(JsonObject)


@attrs.frozen
class Security:
    """One way to authenticate: `scheme` is a security scheme object of OpenAPI, under `name` in the document."""

    name: str
    scheme: Mapping[str, object]


@attrs.frozen
class MiddlewareFacts:
    """A middleware or an authenticator before a handler: the function behind it, and its declared answers."""

    function: Held | None = None
    answers: tuple[Raise, ...] = ()
    headers: tuple[str, ...] = ()
    """Those that it puts on every response behind it."""
    tags: bool = False
    """True for `etag()`, which tags what is sent whole, and answers 304 in its place."""
    security: Security | None = None
    authenticates: bool = False
    optional: bool = False
    """True if a request without credentials goes on."""
    limits_bodies: bool = False
    errors: Levels = ()
    """The error handlers of the routers that it is in."""


@attrs.frozen
class RouteFacts:
    """One route of the application's own table. `path` is in the framework's words, as `/users/:id`."""

    method: str
    path: str
    handler: Held
    name: str
    """The full name of the function that somebody wrote, behind its decorators."""
    middleware: tuple[MiddlewareFacts, ...] = ()
    module: str | None = None
    """The module that the route is tagged with, None for that of the application itself."""
    websocket: bool = False
    public: bool = False
    errors: Levels = ()
    """The error handlers of the routers that it is registered on."""
    said: Description = NOTHING
    """What `describe` says; each type of an answer is `Held`."""


@attrs.frozen
class ApplicationFacts:
    """The application: its routes, and the functions that answer errors and paths that no route has."""

    routes: Sequence[RouteFacts]
    title: str
    version: str = "0.1.0"
    description: str | None = None
    error_handlers: Mapping[str, Held] = attrs.Factory(dict[str, Held])
    """Functions by the classes of errors that they answer, by full names."""
    not_found: Held | None = None
    method_not_allowed: bool = False
    problem_details: bool = False
    mounts: Sequence[str] = ()
    """The prefixes that other applications answer."""
    authenticators: Mapping[str, MiddlewareFacts] = attrs.Factory(dict[str, MiddlewareFacts])
    """The framework's authenticators that the program keeps in variables, by their full names:
    its functions may call them.
    """
    classes: Mapping[str, ClassDetails] = attrs.Factory(dict[str, ClassDetails])
    servers: Sequence[str] = ()
    middleware: tuple[MiddlewareFacts, ...] = ()
    """Those before every path, which a path that no route has meets too."""


def object_of(facts: ClassFacts, *, reading: bool = False) -> Schema:
    """A class as an object, with other classes still under their names in it. A default is for those who send it."""
    if facts.alias is not None:
        return facts.alias
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for field in facts.fields:
        if reading and not field.is_read:
            continue
        default = {"default": field.default[0]} if reading and field.default else {}
        properties[field.name] = {**field.schema, **default}
        if is_required(facts, field, reading=reading):
            required.append(field.name)
    words = {"description": facts.description} if facts.description else {}
    return {"type": "object", **words, "properties": properties, **({"required": required} if required else {})}


def is_required(facts: ClassFacts, field: Field, *, reading: bool) -> bool:
    """Return True if an object of a class that is read, or that is written, has a field for certain."""
    return field.default is None if reading or not facts.total else not field.may_be_unset


def classes_in(schema: object) -> Iterator[str]:
    """The names of the classes that a schema has in it, without those inside of them."""
    return (each["$class"] for each in objects_in(schema) if "$class" in each)


def objects_in(value: object) -> Iterator[JsonObject]:
    """Every object of a value of JSON, the outer ones first."""
    if is_object(value):
        yield value
    for inner in value.values() if is_object(value) else value if is_array(value) else ():
        yield from objects_in(inner)
