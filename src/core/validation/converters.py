"""The converters of cattrs that read each kind of value: one for each source, and each in two passes.

The quick pass takes what is of its type already without a call. The other names the mistakes of what the quick one
refused. A kind that only one of them knew would be refused without a word.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, MutableMapping
from functools import cache, partial, singledispatch
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    TypedDict,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
)

from typing_extensions import is_typeddict

from core.errors import DeveloperError
from core.validation import kinds, scalars
from core.validation.mistakes import Mismatch, counting, read_field, read_list, read_mapping, read_object
from core.validation.unions import optional, union
from core.validation.unset import Unset

if TYPE_CHECKING:
    from cattrs import Converter


_DICTS: Final = (Mapping, MutableMapping, Counter, defaultdict)
"""Mappings that are read as a dict first."""

_KEY: Final = "core: the key of a mapping"

Source = Literal["json", "client", "strings", "rows", "text"]
"""`text`: JSON text in a row, which SQL wrote, whose 0 and 1 are booleans."""


def preload() -> None:
    """Make the converters, whose making takes longer than a start of all else, for a memory snapshot to have them."""
    for source in get_args(Source):
        for detailed in (False, True):
            converter_of(source, detailed=detailed)


@cache
def converter_of(source: Source, *, detailed: bool) -> Converter:
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
    read_int: Callable[[Any, Any], Any] = partial(scalars.exactly, int, "must be an integer")
    read_bool: Callable[[Any, Any], Any] = partial(scalars.exactly, bool, "must be true or false")
    if strings:
        read_int, read_bool = scalars.integer_of_text, scalars.boolean_of_text
    elif source == "client":
        read_int = scalars.integer_of_client
    elif source != "json":
        read_bool = partial(scalars.boolean_of_sql, "must be 0 or 1" if rows else "must be true or false")
    converter.register_structure_hook_factory(
        scalars.is_subclass_of_scalar, partial(scalars.subclass_of_scalar, converter)
    )
    for type_, hook in {
        str: partial(scalars.exactly, str, "must be a string"),
        int: read_int,
        float: scalars.number_of_text if strings else scalars.number,
        bool: read_bool,
        None: scalars.null,
        type(None): scalars.null,
        bytes: partial(scalars.exactly, bytes, "must be a blob") if rows else scalars.no_blob,
        dt.time: partial(scalars.from_text, dt.time.fromisoformat, "must be a time (ISO 8601)"),
        dt.datetime: partial(scalars.from_text, dt.datetime.fromisoformat, "must be a date and time (ISO 8601)"),
        dt.date: partial(scalars.from_text, dt.date.fromisoformat, "must be a date (ISO 8601)"),
        uuid.UUID: partial(scalars.from_text, uuid.UUID, "must be a UUID"),
        decimal.Decimal: partial(scalars.decimal_number, decimal.Decimal),
    }.items():
        converter.register_structure_hook_func(
            partial(kinds.is_exactly, type_), cast("Callable[[Any, Any], Any]", hook)
        )
    converter.register_structure_hook_func(
        lambda t: isinstance(t, type) and issubclass(t, enum.Enum), partial(scalars.enum_member, strings)
    )
    converter.register_structure_hook_func(kinds.is_literal, partial(scalars.literal, strings))
    converter.register_structure_hook_func(partial(kinds.is_exactly, object), lambda value, _: value)
    converter.register_structure_hook_factory(kinds.is_optional, partial(optional, converter))

    # A string is iterable and a list has items, so each container checks first which values it is made from.
    def guarded(inner: Callable[[Any, object], object], kind: type, wording: str) -> Callable[[object, object], object]:
        read = counting(inner) if detailed else inner

        def hook(value: object, type_: object) -> object:
            if not isinstance(value, kind):
                raise Mismatch(wording)
            return read(value, type_)

        return partial(_of_json_text, hook, detailed, wording) if rows else hook

    converter.register_structure_hook_factory(kinds.is_mixed_union, partial(union, converter, guarded))

    def read_as(type_: object) -> Callable[[object, object], object]:
        read = converter.get_structure_hook(type_)
        return lambda value, _: read(value, type_)

    def given(type_: object) -> Callable[[object, object], object]:
        # What was left out is never a value, and no text stands for it.
        if type_ is Unset:
            raise StructureHandlerNotFoundError("", type_)
        return read_as(Union[tuple(member for member in get_args(type_) if member is not Unset)])  # noqa: UP007  # at run time

    def sequences(type_: Any) -> Callable[[Any, Any], Any]:
        element = next(iter(get_args(type_)), Any)
        if detailed:
            return guarded(partial(read_list, converter, element), list, "must be an array")
        names: dict[str, Any] = {"element": element}
        try:
            names["read"] = converter.get_structure_hook(element)
        except RecursionError:  # its class is being written
            names["read"] = converter.structure
        check = condition_of(element, source)
        item = f"v if {check} else read(v, element)" if check else "v" if element is Any else "read(v, element)"
        hook: Callable[[Any, Any], Any]
        hook = eval(f"lambda o, t: [{item} for v in o] if o.__class__ is list else other(o, t)", names)
        names["other"] = guarded(lambda value, t: hook([*value], t), list, "must be an array")
        return hook

    def gathered(build: Callable[[Any], object]) -> Callable[[object], Callable[[object, object], object]]:
        def factory(type_: object) -> Callable[[object, object], object]:
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
                raise Mismatch(f"must have {size} item{'' if size == 1 else 's'}")
            return inner(value, t)

        return guarded(of_size, list, "must be an array")

    def named_tuple(type_: Any) -> Callable[[Any, Any], Any]:
        hints = get_type_hints(type_)
        made: Any = tuple
        form = made[tuple(hints.get(name, Any) for name in type_._fields)]
        inner = fixed_tuple(form)
        return lambda value, _: type_(*inner(value, form))

    def mapping(type_: object) -> Callable[[object, object], object]:
        # Not the converter's own gen_structure_mapping: it puts its own hook in the place of the one around it.
        made: Any = get_origin(type_) or type_
        arguments = get_args(type_)
        form: Any = type_
        build: Any = None
        if made is Counter:
            form, build = cast("Any", dict)[arguments[0] if arguments else Any, int], Counter
        elif made is defaultdict:
            form = cast("Any", dict)[arguments] if arguments else dict
            empty = get_origin(arguments[1]) or arguments[1] if arguments else None
            build = partial(cast("Any", defaultdict), empty if callable(empty) else None)
        if get_args(form):
            key, item = get_args(form)
            form = cast("Any", dict)[Annotated[key, _KEY], item]
        inner: Any = mapping_structure_factory(form, converter, dict if made in _DICTS else made)
        hook = guarded(partial(read_mapping, inner) if detailed else inner, dict, "must be an object")
        return hook if build is None else lambda value, _: build(hook(value, form))

    def annotated(type_: Any) -> Callable[[Any, Any], Any]:
        inner = get_args(type_)[0]
        read = converter.get_structure_hook(inner)
        if type_.__metadata__[-1] is not _KEY or inner is str:
            return lambda value, _: read(value, inner)
        # JSON has texts for keys alone, whatever they stand for; a value that never was JSON has keys of its own.
        text = converter_of("strings", detailed=detailed).get_structure_hook(inner)
        return lambda value, _: (text if value.__class__ is str else read)(value, inner)

    def of_class(type_: Any) -> Callable[[Any, Any], Any]:
        fields = kinds.attrs_fields(type_)
        _refuse_shared_defaults(get_origin(type_) or type_)
        renamed = {} if rows else {field.name: field.alias for field in fields if field.alias != field.name}
        read: dict[str, Any] = (
            {field.name: partial(read_field, converter, field) for field in fields} if detailed else {}
        )
        given: dict[str, Any] = {
            name: override(rename=renamed.get(name), struct_hook=read.get(name)) for name in {**renamed, **read}
        }
        inner = cast("Any", make_dict_structure_fn)(type_, converter, _cattrs_use_alias=False, **given)
        hook: Any = guarded(partial(read_object, inner, renamed) if detailed else inner, dict, "must be an object")
        if not detailed:
            hook = _class_hook(inner, source, hook)
        # Where cattrs looks for the names by which it distinguishes the classes of a union.
        hook.overrides = given
        return cast("Callable[[Any, Any], Any]", hook)

    def typed_dict(type_: Any) -> Callable[[Any, Any], Any]:
        form = _form_of(type_)
        names = form.__annotations__.keys()
        inner = cast("Any", make_typeddict_structure_fn)(form, converter)

        def known(value: Any, t: Any) -> Any:  # cattrs copies every name
            return inner(value if value.keys() <= names else {key: value[key] for key in value if key in names}, t)

        return guarded(known, dict, "must be an object")

    being_made: set[Any] = set()

    def alias(type_: object) -> Callable[[object, object], object]:
        meant = kinds.named(type_)
        if type_ in being_made:  # it has itself in it
            return lambda value, _: converter.get_structure_hook(meant)(value, meant)
        being_made.add(type_)
        try:
            return read_as(meant)
        finally:
            being_made.discard(type_)

    factories: list[tuple[Callable[[Any], bool], Callable[[Any], Callable[[Any, Any], Any]]]] = [
        (lambda t: t is not str and t is not bytes and is_sequence(t) and not kinds.is_tuple(t), sequences),
        (lambda t: (get_origin(t) or t) is deque, gathered(deque)),
        (kinds.is_tuple, lambda t: gathered(tuple)(t) if kinds.is_open_tuple(t) else fixed_tuple(t)),
        (kinds.is_named_tuple, named_tuple),
        (is_any_set, gathered(set)),
        (is_frozenset, gathered(frozenset)),
        (is_mapping, mapping),
        (kinds.is_class, of_class),
        (lambda t: is_typeddict(get_origin(t) or t), typed_dict),
        (lambda t: t is Unset or (Unset in get_args(t) and kinds.is_union(t)), given),
        # Last, and so asked first: what is annotated looks like its origin, but has other arguments.
        (lambda t: kinds.is_exactly(Annotated, get_origin(t)), annotated),
        (lambda t: kinds.named(t) is not None, alias),
    ]
    for predicate, factory in factories:
        converter.register_structure_hook_factory(predicate, factory)
    return converter


@cache
def _form_of(type_: Any) -> Any:
    """A TypedDict of the keys that another one has, whose class knows of each whether it is required."""
    from core.validation.schema import fields_of

    keys = fields_of(type_) or {}
    marked = {name: Required[hint] if required else NotRequired[hint] for name, (hint, _, required) in keys.items()}
    return TypedDict((get_origin(type_) or type_).__name__, marked)  # type: ignore[operator]  # made while it runs


def _refuse_shared_defaults(cls: Any) -> None:
    """Refuse a list, a dict or a set as a default: all instances would share it. Raises DeveloperError."""
    from inspect import formatannotation

    for field in kinds.attrs_fields(cls):
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
        raise Mismatch(f"{wording}, as JSON text") from None
    return converter_of("text", detailed=detailed).get_structure_hook(type_)(parsed, type_)


def condition_of(type_: Any, source: Source) -> str | None:
    """The condition, in Python, under which the value `v` is a `type_` as it is. None where it has to be made."""
    if kinds.is_optional(type_):
        check = condition_of(next(member for member in get_args(type_) if member is not type(None)), source)
        return check and f"(v is None or {check})"
    if type_ not in (str, int, float, bool) or source == "strings" or (source == "rows" and type_ is bool):
        return None
    exact = f" and {scalars.EXACT[0]} <= v <= {scalars.EXACT[-1]}" if type_ is int and source == "client" else ""
    return f"v.__class__ is {type_.__name__}{exact}"


def _class_hook(written: Any, source: Source, other: Any) -> Any:
    """The hook of a class that cattrs has written, with conditions in place of calls. `other` reads what is no dict.

    Lines that look otherwise in some later cattrs stay as they are.
    """
    import linecache

    names: dict[str, Any] = written.__globals__

    def condition(found: re.Match[str]) -> str:
        call, name, value = found.group(0, 1, 2)
        check = condition_of(names[f"__c_type_{name}"], source)
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
