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

A field of an attrs class has the name of its alias, except in a row, whose names are the columns'. Its validators
say their mistakes beside those of other fields. After `MOST_ISSUES` mistakes nothing more is looked at, so that a
document full of them costs little more than a good one.

cattrs is imported with the first value, not before: most requests have no body.

Two passes read every kind of value: a quick one, and one that names the mistakes of what the quick one refused. A kind
that only one of them knew would be refused without a word.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from functools import partial, singledispatch
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, Union, Unpack, cast, get_args, get_origin

from typing_extensions import TypeForm, is_typeddict

from core.errors import DeveloperError, ValidationError
from core.validation.unset import Unset

if TYPE_CHECKING:
    from cattrs import Converter

    from core.errors import Issue

MOST_ISSUES: Final = 100
"""The largest number of mistakes reported for one value."""

T = TypeVar("T")
_DICTS: Final = (Mapping, MutableMapping, Counter, defaultdict)
"""Mappings that are read as a dict first."""
_EXACT: Final = range(-(2**53) + 1, 2**53)
_Source = Literal["json", "client", "strings", "rows", "text"]
"""`text`: JSON text in a row, which SQL wrote, whose 0 and 1 are booleans."""

_hooks: dict[tuple[Any, _Source], Callable[[Any], Any]] = {}
_converters: dict[tuple[_Source, bool], Converter] = {}


class StructureError(ValueError):
    """A value is not of the type asked for. `issues` lists the mistakes as `{"path": …, "message": …}`.

    There are `MOST_ISSUES` at most, and then one more that says so.
    """

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__("; ".join(f"{issue['path'] or 'the value'} {issue['message']}" for issue in issues))
        self.issues = issues


class _Mismatch(ValueError):
    """One value of the wrong kind. Its text is written here and may be shown to a client."""


class _Enough(Exception):
    """Raised in place of looking further once there are enough mistakes; it is none itself."""


class _Told:
    """The number of mistakes that one reading has found, and the fields that it has read of the current object."""

    __slots__ = ("count", "fields")

    def __init__(self) -> None:
        self.count = 0
        self.fields: dict[str, Any] = {}

    def add(self, errors: Sequence[BaseException]) -> None:
        # The members of a group were counted where the group was made.
        self.count += sum(map(_is_one, errors))


def _is_one(error: BaseException) -> bool:
    return not isinstance(error, (_Enough, BaseExceptionGroup))


_telling: ContextVar[_Told] = ContextVar("core_structure_telling")


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
        raise StructureError(_bounded(issues))
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


def within(path: str, issues: Sequence[Issue]) -> list[Issue]:
    """The mistakes in a part of a value, with their paths in the whole of it."""
    found: list[Issue] = []
    for issue in issues[:MOST_ISSUES]:
        dot = "." if issue["path"] and issue["path"][0] != "[" else ""
        found.append({"path": f"{path}{dot}{issue['path']}", "message": issue["message"]})
    return [*found, *issues[MOST_ISSUES:]]  # the last says that there are more, of the whole


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
    aliases = {field.name: field.alias for field in getattr(get_origin(type_) or type_, "__attrs_attrs__", ())}
    return frozenset(aliases.get(name, name) for name, hint in hints.items() if _holds_several(hint))


def _holds_several(hint: Any) -> bool:
    if _is_union(hint):
        return any(_holds_several(member) for member in get_args(hint))
    return (get_origin(hint) or hint) in (list, tuple, set, frozenset, deque, Sequence, MutableSequence, AbstractSet)


def _make_hook(type_: Any, source: _Source) -> Callable[[Any], Any]:
    from cattrs.errors import StructureHandlerNotFoundError

    fast, detailed = _converter(source, detailed=False), _converter(source, detailed=True)
    if type_ is Any or type_ is object:
        return lambda value: value
    try:
        quick = fast.get_structure_hook(type_)
        telling = detailed.get_structure_hook(type_)
    except StructureHandlerNotFoundError as error:
        from core.errors.mistakes import unreadable

        raise TypeError(unreadable(_name(error.type_))) from None

    def hook(value: Any) -> Any:
        try:
            return quick(value, type_)
        except Exception:
            pass
        # Only a value that is wrong is read twice: this pass collects the mistakes with their paths.
        before = _telling.set(_Told())
        try:
            return telling(value, type_)
        except Exception as error:
            raise StructureError(_bounded(_issues(error, ""))) from None
        finally:
            _telling.reset(before)

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
    from typing import get_type_hints

    from cattrs import Converter
    from cattrs.cols import (
        is_any_set,  # pyright: ignore[reportUnknownVariableType]  # its type names a TypeVar of cattrs
        is_frozenset,
        is_mapping,
        is_sequence,
        mapping_structure_factory,  # pyright: ignore[reportUnknownVariableType]  # as above
    )
    from cattrs.errors import StructureHandlerNotFoundError
    from cattrs.gen import make_dict_structure_fn, override
    from cattrs.gen.typeddicts import (
        make_dict_structure_fn as make_typeddict_structure_fn,  # pyright: ignore[reportUnknownVariableType]  # as above
    )

    strings, rows = source == "strings", source == "rows"
    converter = Converter(detailed_validation=detailed)
    # cattrs asks first for hooks that go by a class and its ancestors, and has some of its own: to those an enum of
    # texts is any str, and a datetime is a date. Here every hook goes by the type itself.
    dispatch: Any = converter._structure_func  # it has no public name
    dispatch._single_dispatch = singledispatch(dispatch._single_dispatch.dispatch(object))
    dispatch.clear_cache()
    read_int = _int_of_text if strings else _int_of_client if source == "client" else _int
    read_float = _float_of_text if strings else _float
    converter.register_structure_hook_factory(_is_subclass_of_scalar, partial(_subclass_of_scalar, converter))
    for type_, hook in {
        str: _str,
        int: read_int,
        float: read_float,
        bool: _bool_of_text if strings else _bool_of_number if rows else _bool_of_sql if source == "text" else _bool,
        None: _none,
        type(None): _none,
        bytes: _bytes if rows else _refuse_bytes,
        dt.time: partial(_from_text, dt.time.fromisoformat, "must be a time (ISO 8601)"),
        dt.datetime: partial(_from_text, dt.datetime.fromisoformat, "must be a date and time (ISO 8601)"),
        dt.date: partial(_from_text, dt.date.fromisoformat, "must be a date (ISO 8601)"),
        uuid.UUID: partial(_from_text, uuid.UUID, "must be a UUID"),
        decimal.Decimal: partial(_decimal, decimal.Decimal),
    }.items():
        converter.register_structure_hook_func(partial(_is, type_), cast("Callable[[Any, Any], Any]", hook))
    converter.register_structure_hook_func(
        lambda t: isinstance(t, type) and issubclass(t, enum.Enum), partial(_enum, strings)
    )
    converter.register_structure_hook_func(_is_literal, partial(_literal, strings))
    converter.register_structure_hook_func(partial(_is, object), lambda value, _: value)
    converter.register_structure_hook_factory(_is_optional, partial(_optional, converter))

    # A string is iterable and a list has items, so each container checks first which values it is made from.
    def guarded(inner: Callable[[Any, Any], Any], kind: type, wording: str) -> Callable[[Any, Any], Any]:
        hook = _guard(_counting(inner) if detailed else inner, kind, wording)
        return partial(_of_json_text, hook, detailed, wording) if rows else hook

    converter.register_structure_hook_factory(_is_mixed_union, partial(_union, converter, guarded))

    def given(type_: Any) -> Callable[[Any, Any], Any]:
        # What was left out is never a value, and no text stands for it.
        if type_ is Unset:
            raise StructureHandlerNotFoundError("", type_)
        rest: Any = Union[tuple(member for member in get_args(type_) if member is not Unset)]  # noqa: UP007  # at run time
        read = converter.get_structure_hook(rest)
        return lambda value, _: read(value, rest)

    def sequences(type_: Any) -> Callable[[Any, Any], Any]:
        element = next(iter(get_args(type_)), Any)
        if detailed:
            return guarded(partial(_read_list, converter, element), list, "must be an array")
        names: dict[str, Any] = {"element": element}
        try:
            names["read"] = converter.get_structure_hook(element)
        except RecursionError:  # its class is being written
            names["read"] = converter.structure
        check = _check(element, source)
        item = f"v if {check} else read(v, element)" if check else "v" if element is Any else "read(v, element)"
        hook: Callable[[Any, Any], Any]
        hook = eval(f"lambda o, t: [{item} for v in o] if o.__class__ is list else other(o, t)", names)
        names["other"] = guarded(lambda value, t: hook([*value], t), list, "must be an array")
        return hook

    def gathered(build: Callable[[Any], Any]) -> Callable[[Any], Callable[[Any, Any], Any]]:
        def factory(type_: Any) -> Callable[[Any, Any], Any]:
            inner = sequences(type_)
            return lambda value, t: build(inner(value, t))

        return factory

    def fixed_tuple(type_: Any) -> Callable[[Any, Any], Any]:
        if any(getattr(part, "__unpacked__", False) or get_origin(part) is Unpack for part in get_args(type_)):
            from core.errors.mistakes import UNPACKED

            raise DeveloperError(UNPACKED)
        size = len(get_args(type_))
        inner = converter.gen_structure_hetero_tuple(type_)

        def of_size(value: Any, t: Any) -> Any:
            if len(value) != size:
                raise _Mismatch(f"must have {size} item{'' if size == 1 else 's'}")
            return inner(value, t)

        return guarded(of_size, list, "must be an array")

    def named_tuple(type_: Any) -> Callable[[Any, Any], Any]:
        hints = get_type_hints(type_)
        made: Any = tuple
        shape = made[tuple(hints.get(name, Any) for name in type_._fields)]
        inner = fixed_tuple(shape)
        return lambda value, _: type_(*inner(value, shape))

    def mapping(type_: Any) -> Callable[[Any, Any], Any]:
        # Not the converter's own gen_structure_mapping: it puts its own hook in the place of the one around it.
        made: Any = get_origin(type_) or type_
        arguments = get_args(type_)
        shape: Any = type_
        build: Any = None
        if made is Counter:
            shape, build = cast("Any", dict)[arguments[0] if arguments else Any, int], Counter
        elif made is defaultdict:
            shape = cast("Any", dict)[arguments] if arguments else dict
            empty = get_origin(arguments[1]) or arguments[1] if arguments else None
            build = partial(cast("Any", defaultdict), empty if callable(empty) else None)
        inner: Any = mapping_structure_factory(shape, converter, dict if made in _DICTS else made)
        hook = guarded(partial(_read_mapping, inner) if detailed else inner, dict, "must be an object")
        return hook if build is None else lambda value, _: build(hook(value, shape))

    def of_class(type_: Any) -> Callable[[Any, Any], Any]:
        fields = _fields_of(type_)
        _refuse_shared_defaults(get_origin(type_) or type_)
        renamed = {} if rows else {field.name: field.alias for field in fields if field.alias != field.name}
        read: dict[str, Any] = (
            {field.name: partial(_read_field, converter, field) for field in fields} if detailed else {}
        )
        given: dict[str, Any] = {
            name: override(rename=renamed.get(name), struct_hook=read.get(name)) for name in {**renamed, **read}
        }
        inner = cast("Any", make_dict_structure_fn)(type_, converter, _cattrs_use_alias=False, **given)
        hook: Any = guarded(partial(_read_object, inner, renamed) if detailed else inner, dict, "must be an object")
        if not detailed:
            hook = _class_hook(inner, source, hook)
        # Where cattrs looks for the names by which it distinguishes the classes of a union.
        hook.overrides = given
        return cast("Callable[[Any, Any], Any]", hook)

    def annotated(type_: Any) -> Callable[[Any, Any], Any]:
        plain = get_args(type_)[0]
        inner = converter.get_structure_hook(plain)
        return lambda value, _: inner(value, plain)

    factories: list[tuple[Callable[[Any], bool], Callable[[Any], Callable[[Any, Any], Any]]]] = [
        (lambda t: t is not str and t is not bytes and is_sequence(t) and not _is_tuple(t), sequences),
        (lambda t: (get_origin(t) or t) is deque, gathered(deque)),
        (_is_tuple, lambda t: gathered(tuple)(t) if _is_open_tuple(t) else fixed_tuple(t)),
        (_is_named_tuple, named_tuple),
        (is_any_set, gathered(set)),
        (is_frozenset, gathered(frozenset)),
        (is_mapping, mapping),
        (_is_class, of_class),
        (
            lambda t: is_typeddict(get_origin(t) or t),
            lambda t: guarded(cast("Any", make_typeddict_structure_fn)(t, converter), dict, "must be an object"),
        ),
        (lambda t: t is Unset or (Unset in get_args(t) and _is_union(t)), given),
        # Last, and so asked first: what is annotated looks like its origin, but has other arguments.
        (lambda t: _is(Annotated, get_origin(t)), annotated),
    ]
    for predicate, factory in factories:
        converter.register_structure_hook_factory(predicate, factory)
    return converter


def _is_class(type_: Any) -> bool:
    """A class with fields: of attrs, or a dataclass."""
    from attrs import has

    cls = get_origin(type_) or type_
    return has(cls) or (isinstance(cls, type) and hasattr(cls, "__dataclass_fields__"))


def _fields_of(type_: Any) -> Sequence[Any]:
    """The fields of a class as attrs has them."""
    from cattrs import _compat  # it has no public name

    found: Sequence[Any] = cast("Any", _compat).adapted_fields(get_origin(type_) or type_)
    return found


def _refuse_shared_defaults(cls: Any) -> None:
    """Refuse a list, a dict or a set as a default: all instances would share it. Raises DeveloperError."""
    from inspect import formatannotation

    for field in _fields_of(cls):
        if type(field.default) in (list, dict, set) and field.converter is None:
            kind = type(field.default).__name__
            type_ = field.type if isinstance(field.type, str) else formatannotation(field.type)
            from core.errors.mistakes import shared_default

            raise DeveloperError(shared_default(cls.__name__, field.name, type_, kind))


def _of_json_text(inner: Callable[[Any, Any], Any], detailed: bool, wording: str, value: Any, type_: Any) -> Any:
    """A list, an object or a class in a row: from the JSON that its text is."""
    if value.__class__ is not str:
        return inner(value, type_)
    import json

    try:
        parsed = json.loads(value)
    except ValueError:
        raise _Mismatch(f"{wording}, as JSON text") from None
    return _converter("text", detailed=detailed).get_structure_hook(type_)(parsed, type_)


def _guard(inner: Callable[[Any, Any], Any], kind: type, wording: str) -> Callable[[Any, Any], Any]:
    def hook(value: Any, type_: Any) -> Any:
        if not isinstance(value, kind):
            raise _Mismatch(wording)
        return inner(value, type_)

    return hook


# -- the quick pass: what is of its type already takes no call


def _check(type_: Any, source: _Source) -> str | None:
    """The condition, in Python, under which the value `v` is a `type_` as it is. None where it has to be made."""
    if _is_optional(type_):
        check = _check(next(member for member in get_args(type_) if member is not type(None)), source)
        return check and f"(v is None or {check})"
    if type_ not in (str, int, float, bool) or source == "strings" or (source == "rows" and type_ is bool):
        return None
    exact = f" and {_EXACT[0]} <= v <= {_EXACT[-1]}" if type_ is int and source == "client" else ""
    return f"v.__class__ is {type_.__name__}{exact}"


def _class_hook(written: Any, source: _Source, other: Any) -> Any:
    """The hook of a class that cattrs has written, with conditions in place of calls. `other` reads what is no dict.

    Lines that look otherwise in some later cattrs stay as they are.
    """
    import linecache

    names: dict[str, Any] = written.__globals__

    def condition(found: re.Match[str]) -> str:
        call, name, value = found.group(0, 1, 2)
        check = _check(names[f"__c_type_{name}"], source)
        if check is None:
            return call
        return f"v if {check.replace('v', f'(v := {value})', 1)} else {call.replace(value, 'v', 1)}"

    lines: list[str] = cast("Any", linecache.cache)[written.__code__.co_filename][2]
    lines[1:] = [
        "  if o.__class__ is not dict: return __core_other(o, _)",
        *[re.sub(r"__c_structure_(\w+)\((o\[.+?\]), __c_type_\1\)", condition, line) for line in lines[1:]],
    ]
    names["__core_other"] = other
    exec(compile("\n".join(lines), written.__code__.co_filename, "exec"), names)
    return names[written.__name__]


# -- telling mistakes: what the second pass, which knows already that there is one, does in place of cattrs


def _counting(inner: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def hook(value: Any, type_: Any) -> Any:
        told = _telling.get()
        if told.count >= MOST_ISSUES:
            raise _Enough
        around, told.fields = told.fields, {}
        try:
            return inner(value, type_)
        except ExceptionGroup as error:
            told.add(error.exceptions)
            raise
        finally:
            told.fields = around

    return hook


def _read_list(converter: Converter, element: Any, value: list[Any], _: Any) -> list[Any]:
    from cattrs.errors import IterableValidationError, IterableValidationNote

    told = _telling.get()
    read = converter.get_structure_hook(element)
    structured: list[Any] = []
    errors: list[Exception] = []
    own = 0
    for index, item in enumerate(value):
        try:
            structured.append(read(item, element))
        except Exception as error:
            error.add_note(IterableValidationNote("", index, element))
            errors.append(error)
            own += _is_one(error)
            if told.count + own >= MOST_ISSUES:
                break
    if errors:
        raise IterableValidationError("", errors, list)  # pyright: ignore[reportCallIssue]  # pyright goes by the constructor of ExceptionGroup
    return structured


def _read_mapping(inner: Callable[[Any, Any], Any], value: dict[Any, Any], type_: Any) -> Any:
    from cattrs.errors import IterableValidationError

    # Some at a time, since cattrs does not stop at a mistake.
    entries, errors = iter(value.items()), list[Exception]()
    while some := dict(islice(entries, MOST_ISSUES)):
        try:
            inner(some, type_)
        except IterableValidationError as error:
            errors += error.exceptions
            if _telling.get().count + sum(map(_is_one, errors)) >= MOST_ISSUES:
                break
    if errors:
        raise IterableValidationError("", errors, dict)  # pyright: ignore[reportCallIssue]  # pyright goes by the constructor of ExceptionGroup
    return inner(value, type_)


def _read_field(converter: Converter, field: Any, value: Any, type_: Any) -> Any:
    """The value of a field, remembered for the validators of its object."""
    from cattrs.errors import StructureHandlerNotFoundError

    told = _telling.get()
    read = value
    if type_ is not None:
        try:
            hook = converter.get_structure_hook(type_)
        except StructureHandlerNotFoundError:
            if field.converter is None:
                raise
        else:
            read = hook(value, type_)
    told.fields[field.name] = read
    return read


def _read_object(
    inner: Callable[[Any, Any], Any], renamed: Mapping[str, str], value: dict[Any, Any], type_: Any
) -> Any:
    """An object of a class: a group of all mistakes, those of validators too, each with its field's name."""
    from cattrs.errors import AttributeValidationNote, BaseValidationError, ClassValidationError

    try:
        return inner(value, type_)
    except BaseValidationError as group:
        cls = get_origin(type_) or type_
        by_field: dict[str, Exception] = {}
        others: list[Exception] = []
        for error in group.exceptions:
            note = next((n for n in getattr(error, "__notes__", ()) if isinstance(n, AttributeValidationNote)), None)
            if note is None:
                others.append(error)
            else:
                by_field[note.name] = error
                note.name = renamed.get(note.name, note.name)
        errors: list[Exception] = []
        found = _ask_validators(cls, _telling.get().fields, by_field.keys())
        for field in _fields_of(cls):
            if field.name in by_field:
                errors.append(by_field[field.name])
            for error in found.get(field.name, ()):
                error.add_note(AttributeValidationNote("", renamed.get(field.name, field.name), field.type))
                errors.append(error)
        # What it raised when it was made is one of those, unless it was the work of all fields together.
        raise ClassValidationError("", errors or others, cls) from None  # pyright: ignore[reportCallIssue]  # pyright goes by the constructor of ExceptionGroup


def _ask_validators(cls: Any, given: Mapping[str, Any], wrong: Any) -> dict[str, list[Exception]]:
    """Run the converters and validators of a class over the fields that could be read."""
    found: dict[str, list[Exception]] = {}
    try:
        instance = cls.__new__(cls)
    except TypeError:  # a class that wants to be made in another way
        return found
    fields = _fields_of(cls)
    for field in fields:
        if field.name in wrong:
            continue
        try:
            if field.name in given:
                value = given[field.name]
            elif (default := field.default) is None or type(default).__name__ != "Factory":
                value = default
            else:
                value = default.factory(instance) if default.takes_self else default.factory()
            if field.converter is not None:
                convert = getattr(field.converter, "converter", None)
                value = field.converter(value) if convert is None else field.converter.__call__(value, instance, field)
            object.__setattr__(instance, field.name, value)
        except Exception as error:
            if field.name in given:
                found[field.name] = [_as_told(error)]
    for field in fields:
        if field.validator is None or field.name not in given or field.name in found:
            continue
        # Several come as one that asks them in order. Past the first mistake only those count that were written for
        # whoever sends the value: a later one may count on the checks of an earlier one.
        said: list[Exception] = []
        for validate in getattr(field.validator, "_validators", (field.validator,)):
            try:
                _ask(validate, instance, field, getattr(instance, field.name))
            except Exception as error:
                if isinstance(error, AttributeError) and wrong:
                    continue  # it looks at a field that could not be read
                if not said or isinstance(error, ValueError):
                    said.append(_as_told(error))
        if said:
            found[field.name] = said
    return found


def _ask(validate: Any, instance: Any, field: Any, value: Any) -> None:
    """Run a validator. Of `deep_iterable`, which stops at the first item without its place, every item is asked."""
    each = getattr(validate, "member_validator", None)
    if each is None or not isinstance(value, list | tuple):
        validate(instance, field, value)
        return
    from cattrs.errors import IterableValidationError, IterableValidationNote

    if validate.iterable_validator is not None:
        validate.iterable_validator(instance, field, value)
    errors: list[Exception] = []
    for index, item in enumerate(cast("Sequence[Any]", value)):
        try:
            each(instance, field, item)
        except Exception as error:
            told = _as_told(error)
            told.add_note(IterableValidationNote("", index, field.type))
            errors.append(told)
        if len(errors) == MOST_ISSUES:
            break
    if errors:
        raise IterableValidationError("", errors, list)  # pyright: ignore[reportCallIssue]  # pyright goes by the constructor of ExceptionGroup


def _as_told(error: Exception) -> Exception:
    # A KeyError is how cattrs says that a name is missing.
    return _Mismatch("is not valid") if isinstance(error, KeyError) else error


def _is(exact: object, type_: Any) -> bool:
    return type_ is exact


def _is_literal(type_: Any) -> bool:
    return _is(Literal, get_origin(type_))


def _is_tuple(type_: Any) -> bool:
    return type_ is tuple or get_origin(type_) is tuple


def _is_named_tuple(type_: Any) -> bool:
    names: object = getattr(type_, "_fields", None)
    return isinstance(type_, type) and issubclass(type_, tuple) and names is not None


def _is_open_tuple(type_: Any) -> bool:
    arguments = get_args(type_)
    return (not arguments and get_origin(type_) is None) or (len(arguments) == 2 and arguments[1] is ...)


# -- scalars


def _str(value: Any, _: Any) -> str:
    if value.__class__ is str:
        return value
    raise _Mismatch("must be a string")


def _int(value: Any, _: Any) -> int:
    if value.__class__ is int:
        return value
    raise _Mismatch("must be an integer")


def _int_of_client(value: Any, _: Any) -> int:
    if value.__class__ is int:
        if value in _EXACT:
            return value
        raise _Mismatch("must be a whole number from -(2^53-1) to 2^53-1")
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


def _bool_of_sql(value: Any, _: Any) -> bool:
    if value.__class__ in (int, bool) and value in (0, 1):
        return bool(value)
    raise _Mismatch("must be true or false")


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
        return _int_of_client(int(value), _)
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


def _is_subclass_of_scalar(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, (str, int, float))


def _subclass_of_scalar(converter: Converter, type_: Any) -> Callable[[Any, Any], Any]:
    base: Any = next(base for base in (str, int, float) if issubclass(type_, base))
    read = converter.get_structure_hook(base)
    return lambda value, _: type_(read(value, base))


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
    """A union of several kinds of value, `T | None` being none: cattrs has its own words for what fits none of them."""
    return _is_union(type_) and len([member for member in get_args(type_) if member is not type(None)]) > 1


def _is_optional(type_: Any) -> bool:
    return _is_union(type_) and not _is_mixed_union(type_)


def _optional(converter: Converter, type_: Any) -> Callable[[Any, Any], Any]:
    """The hook of `T | None`, with that of `T`: cattrs asks for it with the first value, too late to refuse a type."""
    member = next(member for member in get_args(type_) if member is not type(None))
    read = converter.get_structure_hook(member)
    return lambda value, _: None if value is None else read(value, member)


def _is_union(type_: Any) -> bool:
    from types import UnionType

    return get_origin(type_) in (Union, UnionType)


def _union(converter: Converter, guarded: Callable[..., Any], type_: Any) -> Callable[[Any, Any], Any]:
    members = get_args(type_)
    classes = [member for member in members if _is_class(member)]
    rest: list[Any] = [member for member in members if member not in classes]
    if len(classes) <= 1:
        rest += classes
    # Structured are exact kinds only, so at most the order of texts and numbers matters: narrow ones come first.
    rest.sort(key=_width)
    hooks = [(member, converter.get_structure_hook(member)) for member in rest]
    if len(classes) > 1:
        together: Any = cast("Any", Union)[tuple(classes)]
        by_fields = guarded(_classes(converter, classes), dict, "must be an object")
        if not rest:
            return cast("Callable[[Any, Any], Any]", by_fields)
        hooks.append((together, by_fields))
        hooks.sort(key=lambda one: _width(one[0]))
    wording = "must be " + " or ".join(dict.fromkeys(_name(member) for member in members))

    def hook(value: Any, _: Any) -> Any:
        failures: list[Exception] = []
        told = _telling.get(None)
        before = 0 if told is None else told.count
        for member, read in hooks:
            try:
                return read(value, member)
            except Exception as error:
                failures.append(error)
                if told is not None:
                    told.count = before  # mistakes of one member are none where another fits
        # Where one member alone is made from an object or array, its own mistakes say more than the union's.
        telling: list[Exception] = [error for error in failures if isinstance(error, ExceptionGroup)]
        if len(telling) == 1:
            if told is not None:
                told.add(_leaves(telling[0]))
            raise telling[0]
        raise _Mismatch(wording)

    return hook


def _classes(converter: Converter, classes: Sequence[Any]) -> Callable[[Any, Any], Any]:
    """Make the hook that reads an object as the one of several classes whose fields it has.

    Raises DeveloperError where no field tells them apart.
    """
    from cattrs.disambiguators import create_default_dis_func

    try:
        class_of: Any = create_default_dis_func(converter, *classes)
    except TypeError:
        from core.errors.mistakes import alike

        raise DeveloperError(alike([_name(cls) for cls in classes])) from None
    wording = f"must be {' or '.join(map(_name, classes))}: {_told_by(classes)}"

    def hook(value: dict[str, Any], _: Any) -> Any:
        try:
            cls = class_of(value)
        except Exception:
            raise _Mismatch(wording) from None
        # Asked for when it is needed, since a class may have itself among its fields.
        return converter.get_structure_hook(cls)(value, cls)

    return hook


def _told_by(classes: Sequence[Any]) -> str:
    """The fields by which a client's object is one of several classes."""
    fields = [{field.alias: field.type for field in _fields_of(cls)} for cls in classes]
    common = [name for name in fields[0] if all(_is_literal(each.get(name)) for each in fields)]
    if common:
        values = [_shown(getattr(value, "value", value)) for each in fields for value in get_args(each[common[0]])]
        return f'"{common[0]}" is one of {", ".join(dict.fromkeys(values))}'
    own = [
        (cls, next((name for name in each if sum(name in other for other in fields) == 1), None))
        for cls, each in zip(classes, fields, strict=True)
    ]
    return " or ".join(f'with "{name}" it is {_name(cls)}' for cls, name in own if name)


def _width(type_: Any) -> int:
    if type_ is str:
        return 3  # a date is a string too, so text comes last
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
    return getattr(origin or type_, "__name__", None) or str(type_)


# -- mistakes


def _bounded(issues: list[Issue]) -> list[Issue]:
    if len(issues) < MOST_ISSUES:
        return issues
    more = f"may have more mistakes: these are the first {MOST_ISSUES}"
    return [*issues[:MOST_ISSUES], {"path": "", "message": more}]


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions for leaf in _leaves(inner)]


def _issues(error: BaseException, path: str) -> list[Issue]:
    from cattrs.errors import AttributeValidationNote, BaseValidationError, IterableValidationNote

    if isinstance(error, BaseValidationError):
        found: list[Issue] = []
        for inner in error.exceptions:
            if isinstance(inner, _Enough):
                continue
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
    # Names in a mapping are the client's, and there may be a hundred mistakes below a long one.
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}…"
    return f"{path}.{name}" if path else name


_LONGEST: Final = 100
_LONGEST_MESSAGE: Final = 500


def _message(error: BaseException) -> str:
    # A validator's ValueError was written for whoever sends the value; attrs' own carry the attribute, the
    # validator and the value behind the text. Any other error may say more than a client should know.
    if isinstance(error, ValueError) and error.args and isinstance(error.args[0], str):
        text = error.args[0] if isinstance(error, _Mismatch) else _in_our_words(error)
        return text if isinstance(error, _Mismatch) or len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"
    if isinstance(error, TypeError):
        return "is of the wrong type"
    return "is not valid"


_BOUND: Final = re.compile(r"(Length of )?'\w+' must be ([<>]=?) (.*?): .*", re.DOTALL)
_SIGNS: Final = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def _in_our_words(error: ValueError) -> str:
    """What a validator said, without what attrs' own say of the program: a field's name in Python, the value again."""
    text: str = error.args[0]
    given: Any = error.args[2] if len(error.args) == 4 else None
    if isinstance(given, re.Pattern):
        return f"must match {cast('re.Pattern[str]', given).pattern}"
    if isinstance(given, list | tuple | range | AbstractSet | dict):
        shown = map(_shown, islice(cast("Iterable[object]", given), _LONGEST))
        # A set has no order of its own.
        return f"must be one of {', '.join(sorted(shown) if isinstance(given, AbstractSet) else shown)}"
    bound = _BOUND.fullmatch(text)
    return text if bound is None else f"must be {_SIGNS[bound[2]]} {bound[3]}{' long' if bound[1] else ''}"
