"""From plain JSON values to the type that was asked for, strictly, with every mistake and its path.

cattrs finds the reader of each type; decided here is which values are mistakes. JSON has types, so
nothing is converted that only looks alike: no "no" to True, no 1 to "1", no 1.5 to 1. Texts
that JSON has no type for (dates, UUIDs, decimals, enums) are read from their standard form.
From `strings`, of a query or a form, every scalar comes as a string and is read from it. A row of a
SQL database, which `core.validation.rows` reads, has no booleans, but 0 and 1, and has bytes; its lists and objects are
JSON text, or several columns.

A whole number that a client sends (`client`, and all strings) is one that every reader of JSON has exactly, from
-(2^53-1) to 2^53-1 (RFC 8259, section 6, and RFC 7493): D1 and JavaScript have no larger ones. What the application
stored itself, and what others signed, is read as it is.

A field of an attrs class has the name of its alias, except in a row, whose names are the columns'.

cattrs is imported with the first value, not before: most requests have no body.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableSequence, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

from typing_extensions import TypeForm

from core.errors import Issue, ValidationError
from core.validation.converters import Source, converter_of
from core.validation.kinds import fields_of, members, name_of
from core.validation.mistakes import StructureError, bounded, issues_of, within
from core.values import is_object

T = TypeVar("T")

_hooks: dict[Source, dict[Any, Callable[[Any], Any]]] = {source: {} for source in get_args(Source)}


def structure(value: object, type_: TypeForm[T], source: Source = "json") -> T:
    """`value` as a `type_`.

    Raises StructureError with every mistake. A type that cannot be structured at all is a mistake of the
    program and raises TypeError, which names the type; so is a union of classes that nothing tells apart, which is
    a DeveloperError.
    """
    found: T = hook_of(type_, source)(value)
    return found


def structure_sent(value: object, type_: TypeForm[T], key: str | None = None, source: Source = "client") -> T:
    """What a client sent as a `type_`, or its member `key`, as a class with that one field would read it.

    Raises ValidationError with every mistake.
    """
    hook: Callable[[object], T] | None
    try:  # as `hook_of` has it, without the call
        hook = _hooks[source][type_]
    except (KeyError, TypeError):
        hook = None  # and is looked for outside of here, so that no mistake is caused by this one
    if hook is None:
        hook = hook_of(type_, source)
    try:
        if key is None:
            return hook(value)
        if not is_object(value):
            issues: list[Issue] = [{"path": "", "message": "must be an object"}]
        elif key not in value:
            issues = [{"path": key, "message": "is required"}]
        else:
            return hook(value[key])
    except StructureError as error:
        issues = error.issues if key is None else within(key, error.issues)
    raise ValidationError(issues)


def structure_texts(pairs: Iterable[tuple[str, str]], type_: TypeForm[T]) -> T:
    """The names and texts of a query or a form as a `type_`: the first of a name, or all where its field is a list.

    Raises ValidationError with every mistake.
    """
    lists = list_fields(type_)
    value: dict[str, Any] = {}
    for name, text in pairs:
        if name in lists:
            value.setdefault(name, []).append(text)
        else:
            value.setdefault(name, text)
    return structure_sent(value, type_, source="strings")


def structure_headers(headers: Mapping[str, str], type_: TypeForm[T]) -> T:
    """Headers by lower-case name as a `type_`, whose field `if_match` is the header `If-Match`: a text, or where the
    field is a list the values between the commas.

    Raises ValidationError with every mistake, at the header's name.
    """
    lists = list_fields(type_)
    value: dict[str, object] = {}
    for name, text in headers.items():
        key = name.replace("-", "_")
        value[key] = [part.strip() for part in text.split(",") if part.strip()] if key in lists else text
    try:
        return structure_sent(value, type_, source="strings")
    except ValidationError as error:
        for issue in error.issues:
            issue["path"] = issue["path"].replace("_", "-")
        raise


def hook_of(type_: object, source: Source = "json") -> Callable[[object], Any]:
    """The function that structures `type_` from a source: worked out once, then kept."""
    hooks = _hooks[source]
    try:
        hook = hooks.get(type_)
    except TypeError:  # an unhashable form, such as Annotated over a list
        return _make_hook(type_, source)
    if hook is None:
        hook = hooks[type_] = _make_hook(type_, source)
    return hook


def list_fields(type_: object) -> frozenset[str]:
    """The fields of an attrs class or TypedDict that hold several values, for query strings and forms."""
    try:
        return _list_fields(type_)
    except (NameError, TypeError):
        return frozenset()


@cache
def _list_fields(type_: object) -> frozenset[str]:
    return frozenset(field.key for field in fields_of(type_) or () if _holds_several(field.type))


def _holds_several(hint: object) -> bool:
    several = (list, tuple, set, frozenset, deque, Sequence, MutableSequence, AbstractSet)
    return any((get_origin(member) or member) in several for member in members(hint))


def _make_hook(type_: object, source: Source) -> Callable[[object], object]:
    from cattrs.errors import StructureHandlerNotFoundError

    fast, detailed = converter_of(source, detailed=False), converter_of(source, detailed=True)
    if type_ is Any or type_ is object:
        return lambda value: value
    try:
        quick = fast.get_structure_hook(type_)
        telling = detailed.get_structure_hook(type_)
    except StructureHandlerNotFoundError as error:
        from core.errors.mistakes import unreadable

        raise TypeError(unreadable(name_of(error.type_))) from None

    def hook(value: object) -> object:
        try:
            return quick(value, type_)
        except Exception:
            pass
        # Only a value that is wrong is read twice: this pass collects the mistakes with their paths.
        try:
            return telling(value, type_)
        except Exception as error:
            raise StructureError(bounded(issues_of(error))) from None

    return hook
