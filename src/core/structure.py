"""From plain JSON values to the type that was asked for, strictly, with every mistake and its path.

cattrs does the work; what is decided here is what counts as a mistake. JSON has types, so
nothing is converted that only looks alike: no "no" to True, no 1 to "1", no 1.5 to 1. Texts
that JSON has no type for (dates, UUIDs, decimals, enums) are read from their standard form.
With `strings=True`, for query strings, every scalar comes as a text and is read from it. A row of a
SQL database has no booleans, but 0 and 1, and has bytes.

cattrs is imported with the first value, not before: most requests have no body.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from typing_extensions import TypeForm, is_typeddict

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["Issue", "StructureError", "hook_of", "list_fields", "structure", "structure_row", "structure_rows"]

T = TypeVar("T")
Issue = dict[str, str]
_Source = Literal["json", "strings", "rows"]

_hooks: dict[tuple[Any, _Source], Callable[[Any], Any]] = {}
_converters: dict[tuple[_Source, bool], Converter] = {}


class StructureError(ValueError):
    """A value is not of the type asked for. `issues` lists every mistake as `{"path": …, "message": …}`."""

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__("; ".join(f"{issue['path'] or 'the value'} {issue['message']}" for issue in issues))
        self.issues = issues


class _Mismatch(ValueError):
    """One value of the wrong kind. Its text is written here and may be shown to a client."""


def structure(value: Any, type_: TypeForm[T], *, strings: bool = False) -> T:
    """`value` as a `type_`.

    Raises StructureError with every mistake. A type that cannot be structured at all is a mistake of the
    program and raises TypeError, which names the type.
    """
    return cast("T", hook_of(type_, strings=strings)(value))


def hook_of(type_: Any, *, strings: bool = False) -> Callable[[Any], Any]:
    """The function that structures `type_`: worked out once, then kept."""
    return _hook_from("strings" if strings else "json", type_)


def structure_row(row: dict[str, Any], type_: TypeForm[T]) -> T:
    """One row of a SQL database, by column name, as a `type_`. Raises as `structure` does."""
    return cast("T", _hook_from("rows", type_)(row))


def structure_rows(rows: list[dict[str, Any]], type_: TypeForm[T]) -> list[T]:
    """Rows as a list of `type_`. Raises as `structure` does, with every row's mistakes, as `results[3].email`."""
    hook = _hook_from("rows", type_)
    structured: list[T] = []
    issues: list[Issue] = []
    for index, row in enumerate(rows):
        try:
            structured.append(hook(row))
        except StructureError as error:
            for issue in error.issues:
                dot = "." if issue["path"] and issue["path"][0] != "[" else ""
                issues.append({"path": f"results[{index}]{dot}{issue['path']}", "message": issue["message"]})
    if issues:
        raise StructureError(issues)
    return structured


def _hook_from(source: _Source, type_: Any) -> Callable[[Any], Any]:
    try:
        hook = _hooks.get((type_, source))
    except TypeError:  # an unhashable form, such as Annotated over a list
        return _make_hook(type_, source)
    if hook is None:
        hook = _hooks[(type_, source)] = _make_hook(type_, source)
    return hook


def list_fields(type_: Any) -> frozenset[str]:
    """The fields of an attrs class or TypedDict that hold several values, for query strings and forms."""
    from typing import get_type_hints

    try:
        hints = get_type_hints(get_origin(type_) or type_)
    except (NameError, TypeError):
        return frozenset()
    return frozenset(name for name, hint in hints.items() if _holds_several(hint))


def _holds_several(hint: Any) -> bool:
    if _is_union(hint):
        return any(_holds_several(member) for member in get_args(hint))
    return (get_origin(hint) or hint) in (list, tuple, set, frozenset, Sequence)


def _make_hook(type_: Any, source: _Source) -> Callable[[Any], Any]:
    from cattrs.errors import StructureHandlerNotFoundError

    fast, detailed = _converter(source, detailed=False), _converter(source, detailed=True)
    if type_ is Any or type_ is object:
        return lambda value: value
    try:
        quick = fast.get_structure_hook(type_)
        telling = detailed.get_structure_hook(type_)
    except StructureHandlerNotFoundError as error:
        raise TypeError(
            f"{_name(error.type_)} cannot be read from JSON. Use attrs classes, TypedDicts, lists, dicts, unions, "
            "Literals, enums, dates, UUIDs, decimals and scalars"
        ) from None

    def hook(value: Any) -> Any:
        try:
            return quick(value, type_)
        except Exception:
            pass
        # Only a value that is wrong is read twice: this pass collects all mistakes with their paths.
        try:
            return telling(value, type_)
        except Exception as error:
            raise StructureError(_issues(error, "")) from None

    return hook


def _converter(source: _Source, *, detailed: bool) -> Converter:
    converter = _converters.get((source, detailed))
    if converter is None:
        converter = _converters[source, detailed] = _build(source, detailed)
    return converter


def _build(source: _Source, detailed: bool) -> Converter:
    import datetime as dt
    import decimal
    import enum
    import uuid

    from attrs import has
    from cattrs import Converter
    from cattrs.cols import (
        is_any_set,  # pyright: ignore[reportUnknownVariableType]  # its type names a TypeVar of cattrs
        is_frozenset,
        is_mapping,
        is_sequence,
        list_structure_factory,
    )
    from cattrs.gen import make_dict_structure_fn
    from cattrs.gen.typeddicts import (
        make_dict_structure_fn as make_typeddict_structure_fn,  # pyright: ignore[reportUnknownVariableType]  # as above
    )

    strings, rows = source == "strings", source == "rows"
    converter = Converter(detailed_validation=detailed)
    for type_, hook in {
        str: _str,
        int: _int_of_text if strings else _int,
        float: _float_of_text if strings else _float,
        bool: _bool_of_text if strings else _bool_of_number if rows else _bool,
        type(None): _none,
        bytes: _bytes if rows else _refuse_bytes,
        dt.time: partial(_from_text, dt.time.fromisoformat, "must be a time (ISO 8601)"),
        uuid.UUID: partial(_from_text, uuid.UUID, "must be a UUID"),
        decimal.Decimal: partial(_decimal, decimal.Decimal),
    }.items():
        converter.register_structure_hook(type_, cast("Callable[[Any, Any], Any]", hook))
    # A datetime is a date as well, so these two go by the class itself and not by its ancestors.
    for exact, read, wording in (
        (dt.datetime, dt.datetime.fromisoformat, "must be a date and time (ISO 8601)"),
        (dt.date, dt.date.fromisoformat, "must be a date (ISO 8601)"),
    ):
        converter.register_structure_hook_func(
            partial(_is, exact), cast("Callable[[Any, Any], Any]", partial(_from_text, read, wording))
        )
    converter.register_structure_hook_func(
        lambda t: isinstance(t, type) and issubclass(t, enum.Enum), partial(_enum, strings)
    )
    converter.register_structure_hook_func(_is_literal, partial(_literal, strings))
    converter.register_structure_hook_factory(_is_mixed_union, partial(_union, converter))

    # A text is iterable and a list has items, so each container says first what it is made from.
    def members(type_: Any) -> Callable[[Any, Any], Any]:
        arguments = get_args(type_)
        element = arguments[0] if arguments else Any
        return list_structure_factory(list[element], converter)  # type: ignore[valid-type]  # made at run time

    def sequences(type_: Any) -> Callable[[Any, Any], Any]:
        return _guard(members(type_), list, "must be an array")

    def gathered(build: Callable[[Any], Any]) -> Callable[[Any], Callable[[Any, Any], Any]]:
        def factory(type_: Any) -> Callable[[Any, Any], Any]:
            inner = sequences(type_)
            return lambda value, t: build(inner(value, t))

        return factory

    def fixed_tuple(type_: Any) -> Callable[[Any, Any], Any]:
        size = len(get_args(type_))
        inner = converter.gen_structure_hetero_tuple(type_)

        def of_size(value: Any, t: Any) -> Any:
            if len(value) != size:
                raise _Mismatch(f"must have {size} item{'' if size == 1 else 's'}")
            return inner(value, t)

        return _guard(of_size, list, "must be an array")

    factories: list[tuple[Callable[[Any], bool], Callable[[Any], Callable[[Any, Any], Any]]]] = [
        (lambda t: t is not str and t is not bytes and is_sequence(t) and not _is_tuple(t), sequences),
        (_is_tuple, lambda t: gathered(tuple)(t) if _is_open_tuple(t) else fixed_tuple(t)),
        (is_any_set, gathered(set)),
        (is_frozenset, gathered(frozenset)),
        (is_mapping, lambda t: _guard(converter.gen_structure_mapping(t), dict, "must be an object")),
        (
            lambda t: has(get_origin(t) or t),
            lambda t: _guard(make_dict_structure_fn(t, converter), dict, "must be an object"),
        ),
        (
            lambda t: is_typeddict(get_origin(t) or t),
            lambda t: _guard(cast("Any", make_typeddict_structure_fn)(t, converter), dict, "must be an object"),
        ),
    ]
    for predicate, factory in factories:
        converter.register_structure_hook_factory(predicate, factory)
    return converter


def _guard(inner: Callable[[Any, Any], Any], kind: type, wording: str) -> Callable[[Any, Any], Any]:
    def hook(value: Any, type_: Any) -> Any:
        if not isinstance(value, kind):
            raise _Mismatch(wording)
        return inner(value, type_)

    return hook


def _is(exact: object, type_: Any) -> bool:
    return type_ is exact


def _is_literal(type_: Any) -> bool:
    return _is(Literal, get_origin(type_))


def _is_tuple(type_: Any) -> bool:
    return type_ is tuple or get_origin(type_) is tuple


def _is_open_tuple(type_: Any) -> bool:
    arguments = get_args(type_)
    return not arguments or (len(arguments) == 2 and arguments[1] is ...)


# -- scalars


def _str(value: Any, _: Any) -> str:
    if value.__class__ is str:
        return value
    raise _Mismatch("must be a string")


def _int(value: Any, _: Any) -> int:
    if value.__class__ is int:
        return value
    raise _Mismatch("must be an integer")


def _float(value: Any, _: Any) -> float:
    if value.__class__ is float:
        return value
    if value.__class__ is int:
        try:
            return float(value)
        except OverflowError:
            raise _Mismatch("is too large for a number") from None
    raise _Mismatch("must be a number")


def _bool(value: Any, _: Any) -> bool:
    if value is True or value is False:
        return value
    raise _Mismatch("must be true or false")


def _bool_of_number(value: Any, _: Any) -> bool:
    if value.__class__ in (int, bool) and value in (0, 1):
        return bool(value)
    raise _Mismatch("must be 0 or 1")


def _none(value: Any, _: Any) -> None:
    if value is not None:
        raise _Mismatch("must be null")


def _bytes(value: Any, _: Any) -> bytes:
    if value.__class__ is bytes:
        return value
    raise _Mismatch("must be a blob")


def _refuse_bytes(_: Any, __: Any) -> bytes:
    raise _Mismatch("must be bytes, which JSON has not: send base64 text in a str field")


def _int_of_text(value: Any, _: Any) -> int:
    # int() takes blanks, underscores and other scripts' digits as well; a query string has none of them.
    if isinstance(value, str) and value.isascii() and value[value[:1] in "+-" :].isdigit() and len(value) <= 400:
        return int(value)
    raise _Mismatch("must be an integer")


def _float_of_text(value: Any, _: Any) -> float:
    if isinstance(value, str) and value.isascii() and value.strip() == value and "_" not in value:
        try:
            number = float(value)
        except ValueError:
            pass
        else:
            if math.isfinite(number):
                return number
    raise _Mismatch("must be a number")


def _bool_of_text(value: Any, _: Any) -> bool:
    if value in ("true", "1"):
        return True
    if value in ("false", "0"):
        return False
    raise _Mismatch("must be true or false")


def _from_text(read: Callable[[str], Any], wording: str, value: Any, _: Any) -> Any:
    if isinstance(value, str):
        try:
            return read(value)
        except ValueError:
            pass
    raise _Mismatch(wording)


def _decimal(decimal: Callable[[str], Any], value: Any, _: Any) -> Any:
    if isinstance(value, str) or value.__class__ in (int, float):
        try:
            number = decimal(str(value))
        except ArithmeticError:
            pass
        else:
            if number.is_finite():
                return number
    raise _Mismatch("must be a decimal number")


def _enum(strings: bool, value: Any, type_: Any) -> Any:
    for member in type_:
        if _same(member.value, value, strings):
            return member
    raise _Mismatch("must be one of " + ", ".join(_shown(member.value) for member in type_))


def _literal(strings: bool, value: Any, type_: Any) -> Any:
    for member in get_args(type_):
        if _same(getattr(member, "value", member), value, strings):
            return member
    raise _Mismatch("must be one of " + ", ".join(_shown(getattr(m, "value", m)) for m in get_args(type_)))


def _same(wanted: Any, value: Any, strings: bool) -> bool:
    if strings and not isinstance(wanted, str):
        return isinstance(value, str) and _shown(wanted) == value
    return wanted.__class__ is value.__class__ and bool(wanted == value)


def _shown(value: Any) -> str:
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    return f'"{value}"' if isinstance(value, str) else str(value)


# -- unions


def _is_mixed_union(type_: Any) -> bool:
    """A union that cattrs does not tell apart by itself: anything but `T | None` and classes alone."""
    from attrs import has

    if not _is_union(type_):
        return False
    members = [member for member in get_args(type_) if member is not type(None)]
    return len(members) > 1 and not all(has(get_origin(member) or member) for member in members)


def _is_union(type_: Any) -> bool:
    from types import UnionType

    return get_origin(type_) in (Union, UnionType)


def _union(converter: Converter, type_: Any) -> Callable[[Any, Any], Any]:
    from attrs import has

    members = get_args(type_)
    classes = [member for member in members if has(get_origin(member) or member)]
    rest: list[Any] = [member for member in members if member not in classes]
    if len(classes) > 1:
        rest.append(Union[tuple(classes)])  # noqa: UP007 - made at run time; cattrs tells classes apart by their fields
    else:
        rest += classes
    # Structured are exact kinds only, so at most the order of texts and numbers matters: narrow ones come first.
    rest.sort(key=_width)
    hooks = [(member, converter.get_structure_hook(member)) for member in rest]
    wording = "must be " + " or ".join(_name(member) for member in members)

    def hook(value: Any, _: Any) -> Any:
        failures: list[Exception] = []
        for member, read in hooks:
            try:
                return read(value, member)
            except Exception as error:
                failures.append(error)
        # Where one member alone is made from an object or array, its own mistakes say more than the union's.
        telling: list[Exception] = [error for error in failures if isinstance(error, ExceptionGroup)]
        if len(telling) == 1:
            raise telling[0]
        raise _Mismatch(wording)

    return hook


def _width(type_: Any) -> int:
    if type_ is str:
        return 3  # a date is a text too, so text comes last
    if type_ is float:
        return 2  # and an integer is a number
    return 1


def _name(type_: Any) -> str:
    simple = {str: "a string", int: "an integer", float: "a number", bool: "true or false", type(None): "null"}
    if type_ in simple:
        return simple[type_]
    origin = get_origin(type_)
    if origin in (list, tuple, set, frozenset):
        return "an array"
    if origin is dict:
        return "an object"
    return getattr(type_, "__name__", None) or str(type_)


# -- mistakes


def _issues(error: BaseException, path: str) -> list[Issue]:
    from cattrs.errors import AttributeValidationNote, BaseValidationError, IterableValidationNote

    if isinstance(error, BaseValidationError):
        found: list[Issue] = []
        for inner in error.exceptions:
            note = next((n for n in getattr(inner, "__notes__", ()) if type(n) is not str), None)
            at = path
            if isinstance(note, IterableValidationNote):
                # A mapping's key is named as a field is, a list's place by its number.
                at = f"{path}[{note.index}]" if isinstance(note.index, int) else _below(path, str(note.index))
            elif isinstance(note, AttributeValidationNote):
                at = _below(path, note.name)
            if isinstance(inner, KeyError):
                found.append({"path": at if note is not None else path, "message": "is required"})
            else:
                found += _issues(inner, at)
        return found
    return [{"path": path, "message": _message(error)}]


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _message(error: BaseException) -> str:
    # A validator's ValueError was written for whoever sends the value; attrs' own carry the attribute, the
    # validator and the value behind the text. Any other error may say more than a client should know.
    if isinstance(error, ValueError) and error.args and isinstance(error.args[0], str):
        return error.args[0]
    if isinstance(error, TypeError):
        return "is of the wrong type"
    return "is not valid"
