"""The converters of cattrs that read each kind of value: one for each source, and each in two passes.

The quick pass takes what is of its type already without a call. The other names the mistakes of what the quick one
refused. A kind that only one of them knew would be refused without a word.
"""

from __future__ import annotations

from _thread import get_ident
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import cache, partial, singledispatch
from itertools import repeat
from operator import is_
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, Unpack, cast, get_args, get_origin

from typing_extensions import is_typeddict

from core.errors import DeveloperError
from core.validation import kinds, scalars
from core.validation.mistakes import Mismatch, read_all, read_object
from core.validation.unions import optional, union
from core.validation.unset import Unset

if TYPE_CHECKING:
    from cattrs import Converter

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
    )
    from cattrs.errors import StructureHandlerNotFoundError
    from cattrs.gen import override

    strings, rows = source == "strings", source == "rows"
    converter = Converter(detailed_validation=detailed)
    # cattrs asks first for hooks that go by a class and its ancestors, and has some of its own: to those an enum of
    # texts is any str, and a datetime is a date. Here every hook goes by the type itself.
    dispatch: Any = converter._structure_func  # it has no public name
    dispatch._single_dispatch = singledispatch(dispatch._single_dispatch.dispatch(object))
    dispatch.clear_cache()
    read = converter.structure
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
        converter.register_structure_hook_func(partial(is_, type_), cast("Callable[[Any, Any], Any]", hook))
    converter.register_structure_hook_func(
        lambda t: isinstance(t, type) and issubclass(t, enum.Enum), partial(scalars.enum_member, strings)
    )
    converter.register_structure_hook_func(kinds.is_literal, partial(scalars.literal, strings))
    converter.register_structure_hook_func(partial(is_, object), lambda value, _: value)
    converter.register_structure_hook_factory(kinds.is_optional, partial(optional, converter))

    # A string is iterable and a list has items, so each container checks first which values it is made from.
    def guarded(inner: Callable[[Any, object], object], kind: type, wording: str) -> Callable[[object, object], object]:
        def hook(value: object, type_: object) -> object:
            if not isinstance(value, kind):
                raise Mismatch(wording)
            return inner(value, type_)

        return partial(_of_json_text, hook, detailed, wording) if rows else hook

    converter.register_structure_hook_factory(kinds.is_mixed_union, partial(union, converter, guarded))

    def read_as(type_: object) -> Callable[[object, object], object]:
        hook = converter.get_structure_hook(type_)
        return lambda value, _: hook(value, type_)

    def given(type_: object) -> Callable[[object, object], object]:
        # What was left out is never a value, and no text stands for it.
        if type_ is Unset:
            raise StructureHandlerNotFoundError("", type_)
        return read_as(Union[tuple(member for member in get_args(type_) if member is not Unset)])  # noqa: UP007  # at run time

    def sequences(type_: Any) -> Callable[[Any, Any], Any]:
        element = next(iter(get_args(type_)), Any)

        def told(value: list[object], _: object) -> object:
            return [*read_all(read, enumerate(value), repeat(element)).values()]

        if detailed:
            return guarded(told, list, "must be an array")
        names: dict[str, Any] = {}
        item = expression(converter, source, names, "v", element)
        hook: Any = eval(f"lambda o, t: [{item} for v in o] if o.__class__ is list else other(o, t)", names)
        names["other"] = guarded(lambda value, t: hook([*value], t), list, "must be an array")
        return cast("Callable[[Any, Any], Any]", hook)

    def gathered(build: Callable[[Any], object]) -> Callable[[object], Callable[[object, object], object]]:
        def factory(type_: object) -> Callable[[object, object], object]:
            inner = sequences(type_)
            return lambda value, t: build(inner(value, t))

        return factory

    def fixed_tuple(type_: Any) -> Callable[[Any, Any], Any]:
        if any(getattr(part, "__unpacked__", False) or get_origin(part) is Unpack for part in get_args(type_)):
            from core.errors.mistakes import UNPACKED

            raise DeveloperError(UNPACKED)
        parts = get_args(type_)
        names: dict[str, Any] = {}
        items = [expression(converter, source, names, f"o[{n}]", part) for n, part in enumerate(parts)]
        quick: Any = eval(f"lambda o: ({''.join(f'{item}, ' for item in items)})", names)

        def of_size(value: list[object], _: object) -> object:
            if len(value) != len(parts):
                raise Mismatch(f"must have {len(parts)} item{'' if len(parts) == 1 else 's'}")
            return (*read_all(read, enumerate(value), parts).values(),) if detailed else quick(value)

        return guarded(of_size, list, "must be an array")

    def named_tuple(type_: Any) -> Callable[[Any, Any], Any]:
        hints = get_type_hints(type_)
        made: Any = tuple
        form = made[tuple(hints.get(name, Any) for name in type_._fields)]
        inner = fixed_tuple(form)
        return lambda value, _: type_(*inner(value, form))

    def mapping(type_: object) -> Callable[[object, object], object]:
        build: Any = get_origin(type_) or type_
        key, item = (*get_args(type_), Any, Any)[:2]
        if build is Counter:
            item, build = int, cast("Any", Counter)
        elif build is defaultdict:
            empty: Any = get_origin(item) or item
            build = partial(cast("Any", defaultdict), empty if callable(empty) and item is not Any else None)
        elif build in (Mapping, MutableMapping):
            build = dict
        named = key if key in (str, Any) else cast("Any", Annotated)[key, _KEY]

        def entry(pair: Any, _: object) -> tuple[object, object]:
            inner = read(pair[1], item)
            return read(pair[0], named), inner

        def told(value: dict[Any, object], _: object) -> dict[Any, object]:
            pairs = ((key, (key, part)) for key, part in value.items())
            return dict(read_all(entry, pairs, repeat(None)).values())

        names: dict[str, Any] = {}
        entries: Any = told
        if not detailed:
            name, part = (expression(converter, source, names, at, each) for at, each in (("k", named), ("v", item)))
            entries = eval(f"lambda o, t: {{{name}: {part} for k, v in o.items()}}", names)
        return guarded(
            entries if build is dict else lambda value, t: build(entries(value, t)), dict, "must be an object"
        )

    def annotated(type_: Any) -> Callable[[Any, Any], Any]:
        inner = get_args(type_)[0]
        hook = converter.get_structure_hook(inner)
        if type_.__metadata__[-1] is not _KEY:
            return lambda value, _: hook(value, inner)
        # JSON has texts for keys alone, whatever they stand for; a value that never was JSON has keys of its own.
        text = converter_of("strings", detailed=detailed).get_structure_hook(inner)
        return lambda value, _: (text if value.__class__ is str else hook)(value, inner)

    def written(names: dict[str, Any], lines: list[str], result: str) -> Callable[[Any, Any], Any]:
        """The function that reads an object, as `lines` and a `result` say."""
        check = "if o.__class__ is not dict: return other(o, t)"
        exec(
            "\n  ".join(["def hook(o, t):", check, *(["more = {}"] if lines else []), *lines, f"return {result}"]),
            names,
        )
        names["other"] = guarded(lambda value, t: names["hook"]({**value}, t), dict, "must be an object")
        return cast("Callable[[Any, Any], Any]", names["hook"])

    def of_class(type_: Any) -> Callable[[Any, Any], Any]:
        """The hook of a class, or of a TypedDict, which is made as a dict."""
        cls = get_origin(type_) or type_
        make: Any = cls if kinds.is_class(cls) else dict
        fields = kinds.fields_of(type_) or ()
        _refuse_shared_defaults(cls, fields)
        known = [(field.name if rows else field.key, field) for field in fields]
        hook: Any
        if detailed:
            hook = guarded(lambda value, _: read_object(read, known, value, make), dict, "must be an object")
        else:
            names: dict[str, Any] = {"make": make}
            lines: list[str] = []
            arguments: list[str] = []
            for key, field in known:
                if not field.is_read:
                    continue
                convert = getattr(field.made_as, "converter", None)
                part = expression(converter, source, names, f"o[{key!r}]", field.type, convert)
                if field.is_required and make is cls:
                    arguments.append(f"{field.key}={part}" if field.made_as.kw_only else part)
                else:
                    check = "" if field.is_required else f"if {key!r} in o: "
                    lines.append(f"{check}more[{field.key!r}] = {part}")
            called = f"make({', '.join([*arguments, *(['**more'] if lines else [])])})"
            hook = written(names, lines, called if make is cls else "more")
        # Where cattrs looks for the names by which it distinguishes the classes of a union.
        hook.overrides = {field.name: override(rename=key) for key, field in known}
        return cast("Callable[[Any, Any], Any]", hook)

    being_made: set[Any] = set()

    def once(factory: Callable[[Any], Callable[[Any, Any], Any]]) -> Callable[[Any], Callable[[Any, Any], Any]]:
        """Raises RecursionError for a type that has itself in it: `expression` asks for its hook later then."""

        def make(type_: Any) -> Callable[[Any, Any], Any]:
            key = get_ident(), type_
            if key in being_made:
                raise RecursionError
            being_made.add(key)
            try:
                return factory(type_)
            finally:
                being_made.discard(key)

        return make

    factories: list[tuple[Callable[[Any], bool], Callable[[Any], Callable[[Any, Any], Any]]]] = [
        (lambda t: t is not str and t is not bytes and is_sequence(t) and not kinds.is_tuple(t), sequences),
        (lambda t: (get_origin(t) or t) is deque, gathered(deque)),
        (kinds.is_tuple, lambda t: gathered(tuple)(t) if kinds.is_open_tuple(t) else fixed_tuple(t)),
        (kinds.is_named_tuple, named_tuple),
        (is_any_set, gathered(set)),
        (is_frozenset, gathered(frozenset)),
        (is_mapping, mapping),
        (lambda t: kinds.is_class(t) or is_typeddict(get_origin(t) or t), once(of_class)),
        (lambda t: t is Unset or (Unset in get_args(t) and kinds.is_union(t)), given),
        # Last, and so asked first: what is annotated looks like its origin, but has other arguments.
        (lambda t: get_origin(t) is Annotated, annotated),
        (lambda t: kinds.named(t) is not None, once(lambda t: read_as(kinds.named(t)))),
    ]
    for predicate, factory in factories:
        converter.register_structure_hook_factory(predicate, factory)
    return converter


def _refuse_shared_defaults(cls: Any, fields: Sequence[kinds.Field]) -> None:
    """Refuse a list, a dict or a set as a default: all instances would share it. Raises DeveloperError."""
    from inspect import formatannotation

    for field in fields:
        default = getattr(field.made_as, "default", None)
        if type(default) in (list, dict, set) and getattr(field.made_as, "converter", None) is None:
            from core.errors.mistakes import shared_default

            type_ = formatannotation(field.type)
            raise DeveloperError(shared_default(cls.__name__, field.name, type_, type(default).__name__))


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


def _condition(type_: Any, source: Source, name: str) -> str | None:
    """The condition, in Python, under which the value `name` is a `type_` as it is. None where it has to be made."""
    if kinds.is_optional(type_):
        check = _condition(next(each for each in get_args(type_) if each is not type(None)), source, name)
        return check and f"({name} is None or {check})"
    if type_ not in (str, int, float, bool) or source == "strings" or (source == "rows" and type_ is bool):
        return None
    exact = f" and {scalars.EXACT[0]} <= {name} <= {scalars.EXACT[-1]}" if type_ is int and source == "client" else ""
    return f"{name}.__class__ is {type_.__name__}{exact}"


def expression(
    converter: Converter, source: Source, names: dict[str, Any], place: str, type_: Any, convert: object = None
) -> str:
    """The expression that makes a `type_` of the value at `place`. What it calls is put into `names`.

    `convert` is what makes another value of it afterwards, which may take what nothing else reads.
    """
    from cattrs.errors import StructureHandlerNotFoundError

    if type_ is Any:
        return place
    number = len(names)
    try:
        hook = converter.get_structure_hook(type_, cache_result=False)
    except RecursionError:  # its class is being written
        hook = converter.structure
    except StructureHandlerNotFoundError:
        if convert is None:
            raise
        return place
    names |= {f"read{number}": hook, f"type{number}": type_}
    name = place if place.isidentifier() else "v"
    check = _condition(type_, source, name)
    if check is None:
        return f"read{number}({place}, type{number})"
    check = check if name == place else check.replace(name, f"({name} := {place})", 1)
    return f"{name} if {check} else read{number}({name}, type{number})"
