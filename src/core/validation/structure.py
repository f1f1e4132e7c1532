"""From plain JSON values to the type that was asked for, strictly, with every mistake and its path.

cattrs does the work; decided here is only which values are mistakes. JSON has types, so
nothing is converted that only looks alike: no "no" to True, no 1 to "1", no 1.5 to 1. Texts
that JSON has no type for (dates, UUIDs, decimals, enums) are read from their standard form.
With `strings=True`, for query strings, every scalar comes as a string and is read from it. A row of a
SQL database has no booleans, but 0 and 1, and has bytes; its lists and objects are JSON text, or several columns, which
`core.validation.nested` puts together.

A whole number that a client sends (`client=True`, and all strings) is one that every reader of JSON has exactly, from
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
from typing import TYPE_CHECKING, Any, TypeVar, get_origin

from typing_extensions import TypeForm

from core.errors import ValidationError
from core.validation.converters import Source, converter_of
from core.validation.kinds import members, name_of
from core.validation.mistakes import MOST_ISSUES, StructureError, Told, bounded, current, issues_of, within

if TYPE_CHECKING:
    from core.errors import Issue


T = TypeVar("T")

_hooks: dict[tuple[Any, Source], Callable[[Any], Any]] = {}


def structure(value: Any, type_: TypeForm[T], *, strings: bool = False, client: bool = False) -> T:
    """`value` as a `type_`. `client`: a client sent it.

    Raises StructureError with every mistake. A type that cannot be structured at all is a mistake of the
    program and raises TypeError, which names the type; so is a union of classes that nothing tells apart, which is
    a DeveloperError.
    """
    found: T = hook_of(type_, strings=strings, client=client)(value)
    return found


def hook_of(type_: Any, *, strings: bool = False, client: bool = False) -> Callable[[Any], Any]:
    """The function that structures `type_`: worked out once, then kept."""
    return _hook_from("strings" if strings else "client" if client else "json", type_)


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
    try:
        return structure(value, type_, strings=True)
    except StructureError as error:
        raise ValidationError(error.issues) from None


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
        return structure(value, type_, strings=True)
    except StructureError as error:
        raise ValidationError(
            [{"path": issue["path"].replace("_", "-"), "message": issue["message"]} for issue in error.issues]
        ) from None


def structure_row(row: dict[str, Any], type_: TypeForm[T]) -> T:
    """One row of a SQL database, by column name, as a `type_`; columns called `author.name` fill a class `author`.

    Raises as `structure` does.
    """
    hook = _hook_from("rows", type_)
    nest = _nesting(type_, row)
    found: T = hook(row if nest is None else nest(row))
    return found


def structure_rows(rows: list[dict[str, Any]], type_: TypeForm[T]) -> list[T]:
    """Rows as a list of `type_`. Raises as `structure` does, with every row's mistakes, as `results[3].email`."""
    hook = _hook_from("rows", type_)
    nest = _nesting(type_, rows[0]) if rows else None
    structured: list[T] = []
    issues: list[Issue] = []
    for index, row in enumerate(rows if nest is None else map(nest, rows)):
        if len(issues) >= MOST_ISSUES:
            break
        try:
            structured.append(hook(row))
        except StructureError as error:
            issues += within(f"results[{index}]", error.issues)
    if issues:
        raise StructureError(bounded(issues))
    return structured


def _nesting(type_: Any, row: Any) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """The function that puts the columns of inner classes together; None for a row that has none, as most have."""
    if row.__class__ is not dict or "." not in "".join(row):
        return None
    from core.validation.nested import nesting

    try:
        return nesting(type_, row)
    except ValueError as error:
        path, message = error.args
        raise StructureError([{"path": path, "message": message}]) from None


def _hook_from(source: Source, type_: Any) -> Callable[[Any], Any]:
    try:
        hook = _hooks.get((type_, source))
    except TypeError:  # an unhashable form, such as Annotated over a list
        return _make_hook(type_, source)
    if hook is None:
        hook = _hooks[(type_, source)] = _make_hook(type_, source)
    return hook


def list_fields(type_: Any) -> frozenset[str]:
    """The fields of an attrs class or TypedDict that hold several values, for query strings and forms."""
    try:
        return _list_fields(get_origin(type_) or type_)
    except (NameError, TypeError):
        return frozenset()


@cache
def _list_fields(cls: Any) -> frozenset[str]:
    from typing import get_type_hints

    aliases = {field.name: field.alias for field in getattr(cls, "__attrs_attrs__", ())}
    return frozenset(aliases.get(name, name) for name, hint in get_type_hints(cls).items() if _holds_several(hint))


def _holds_several(hint: Any) -> bool:
    several = (list, tuple, set, frozenset, deque, Sequence, MutableSequence, AbstractSet)
    return any((get_origin(member) or member) in several for member in members(hint))


def _make_hook(type_: Any, source: Source) -> Callable[[Any], Any]:
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

    def hook(value: Any) -> Any:
        try:
            return quick(value, type_)
        except Exception:
            pass
        # Only a value that is wrong is read twice: this pass collects the mistakes with their paths.
        before = current.set(Told())
        try:
            return telling(value, type_)
        except Exception as error:
            raise StructureError(bounded(issues_of(error, ""))) from None
        finally:
            current.reset(before)

    return hook
