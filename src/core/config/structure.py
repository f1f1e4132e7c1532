"""Tables to the classes of `model.py`, strictly: cattrs converts nothing, and every mistake has its words and its
fix.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, Literal, Union, get_args, get_origin

import attrs
from cattrs import BaseConverter, Converter
from cattrs.errors import ClassValidationError, IterableValidationError
from cattrs.gen import make_dict_structure_fn, override

from core.bindings.kinds import KINDS
from core.config import model
from core.config.document import as_table
from core.config.model import Worker
from core.config.toml_text import KeyPath
from core.config.words import and_list, dotted, or_list, section_of, type_name


class _Mismatch(ValueError):
    """A value of the wrong type; the message says the right type, and the fix."""


# The two fixes that need the key's own path, which only the one who tells knows.
_MANY: Final = "Write it as an array of tables."
_ONE: Final = "Write it as one table."


def _scalar(kind: type, title: str) -> Callable[[object, object], object]:
    def structure(value: object, _: object) -> object:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return value
        raise _Mismatch(f"must be {title}, not {type_name(value)}. {_scalar_fix(kind, value)}")

    return structure


def _scalar_fix(kind: type, value: object) -> str:
    if kind is str:
        if isinstance(value, bool):
            return f'Write "{str(value).lower()}".'
        if isinstance(value, int | float | dt.date | dt.time):
            return f'Write "{value}".'
        return "Put it in quotes."
    if kind is bool:
        return "Write true or false, without quotes."
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value) and (kind is float or "." not in value):
        return f"Write {value}, without quotes."
    return "Write a whole number, without quotes." if kind is int else "Write a number, without quotes."


def _literal(value: object, type_: object) -> object:
    choices = get_args(type_)
    if isinstance(value, str) and value in choices:
        return value
    near = get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    hint = f' Did you mean "{near[0]}"?' if near else ""
    found = f'"{value}"' if isinstance(value, str) else type_name(value)
    wanted = or_list([f'"{choice}"' for choice in choices])
    raise _Mismatch(f"must be {wanted}, not {found}.{hint}")


def _is(origin: object) -> Callable[[object], bool]:
    return lambda type_: get_origin(type_) is origin


def _is_choice(type_: object) -> bool:
    """Return True if a union has more than None in it to choose from: `str | Route`, `bool | Sequence[str]`."""
    return get_origin(type_) in UNIONS and len([arg for arg in get_args(type_) if arg is not type(None)]) > 1


UNIONS: Final = (Union, type(int | str))


def _choice(value: object, type_: object) -> object:
    """A union by the JSON type of the value."""
    arms = [arg for arg in get_args(type_) if arg is not type(None)]
    for arm in arms:
        plain = get_origin(arm) or arm
        if type(value) is plain or (plain is Sequence and isinstance(value, list)):
            return converter.structure(value, arm)
        if attrs.has(plain) and isinstance(value, dict):
            return converter.structure(value, arm)
    raise _Mismatch(f"must be {or_list([_title(arm) for arm in arms])}, not {type_name(value)}.")


def _title(type_: Any) -> str:
    if attrs.has(type_):
        return "a table"
    if get_origin(type_) is Sequence:
        return "a list of strings"
    return {str: "a string", bool: "true or false"}.get(type_, str(type_))


def _sequence_of(type_: Any, converter: BaseConverter) -> Callable[[Any, Any], Any]:
    (element,) = get_args(type_)
    made: Any = tuple  # of a type that is known when the program runs
    listed = made[element, ...]

    def structure(value: object, _: object) -> object:
        given = value  # not narrowed by what follows
        if isinstance(value, list):
            return converter.structure(value, listed)
        if isinstance(value, dict) and attrs.has(element):
            raise _Mismatch(f"must be an array of tables, not one table. {_MANY}")
        found = type_name(given)
        elements = "tables" if attrs.has(element) else "strings"
        raise _Mismatch(f"must be a list of {elements}, not {found}. {_list_fix(element, value)}")

    return structure


def _list_fix(element: Any, value: Any) -> str:
    if element is str and isinstance(value, str):
        return f'Write ["{value}"].'
    return _MANY if attrs.has(element) else 'Write ["…"].'


def _mapping_of(type_: object, converter: BaseConverter) -> Callable[[object, object], object]:
    _, element = get_args(type_)
    inner = [arm for arm in get_args(element) if get_origin(arm) is Mapping]

    def structure(value: object, _: object) -> object:
        if not isinstance(value, dict):
            raise _Mismatch(f"must be a table, not {type_name(value)}. Write its keys below its header.")
        for key, item in as_table(value).items():
            if inner and isinstance(item, dict):
                converter.structure(item, inner[0])
            elif element is not Any and not isinstance(item, str):
                raise _Mismatch(f"must have strings only, but {key} is {type_name(item)}. {_scalar_fix(str, item)}")
        return dict(as_table(value))

    return structure


def _table_of(class_: Any, converter: BaseConverter) -> Callable[[Any, Any], Any]:
    renamed: Any = {a.name: override(rename=a.name[:-1]) for a in attrs.fields(class_) if a.name.endswith("_")}
    inner = make_dict_structure_fn(class_, converter, **renamed)

    def structure(value: Any, type_: Any) -> Any:
        given = value  # not narrowed by what follows
        if isinstance(value, dict):
            return inner(given, type_)
        if isinstance(value, list):
            raise _Mismatch(f"must be one table, not a list. {_ONE}")
        raise _Mismatch(f"must be a table, not {type_name(value)}. {_table_fix(class_, value)}")

    return structure


def _table_fix(class_: Any, value: Any) -> str:
    names = [a.name for a in attrs.fields(class_)]
    if isinstance(value, str) and names[0] in ("binding", "name"):
        return f'Write {names[0]} = "{value}" in it.'
    return f"It has {and_list(names)}."


def _unsafe_binding(value: Any, _: Any) -> model.UnsafeBinding:
    table = value  # not narrowed by what follows
    if not isinstance(value, dict):
        raise _Mismatch(f"must be a table, not {type_name(value)}. Write name and type in it.")
    for key in ("name", "type"):
        if not isinstance(table.get(key), str):
            raise _Mismatch(
                f'needs {key}, a string, for example {key} = "{"LIMITER" if key == "name" else "ratelimit"}".'
            )
    rest = {key: item for key, item in table.items() if key not in ("name", "type")}
    return model.UnsafeBinding(name=table["name"], type=table["type"], options=rest)


def _make_converter() -> Converter:
    converter = Converter(detailed_validation=True)
    for kind, title in ((str, "a string"), (int, "a whole number"), (float, "a number"), (bool, "true or false")):
        converter.register_structure_hook(kind, _scalar(kind, title))
    # Hooks that are registered later are asked first.
    for applies, factory in ((attrs.has, _table_of), (_is(Sequence), _sequence_of), (_is(Mapping), _mapping_of)):
        converter.register_structure_hook_factory(applies, factory)
    converter.register_structure_hook_func(_is(Literal), _literal)
    converter.register_structure_hook_func(_is_choice, _choice)
    converter.register_structure_hook(model.UnsafeBinding, _unsafe_binding)
    return converter


converter: Final = _make_converter()


# Words for mistakes --------------------------------------------------------------------------------------------------


def mistakes(
    error: BaseException, path: KeyPath, value: Any, is_json: bool, class_: Any = Worker
) -> Iterator[tuple[KeyPath, str]]:
    """Every mistake below an error of cattrs, with its key path and the words that go on from it."""
    match error:
        case ClassValidationError():
            yield from _mistakes_of_class(error, path, value, is_json)
        case IterableValidationError():
            noted, _ = error.group_exceptions()
            for inner, note in noted:
                index: Any = note.index
                yield from mistakes(inner, (*path, index), value[index], is_json, note.type)
        case _Mismatch():
            yield path, f" {_with_headers(str(error), path, is_json)}"
        case _:
            yield path, f" cannot be read: {error}."


def _mistakes_of_class(
    error: ClassValidationError, path: KeyPath, value: Any, is_json: bool
) -> Iterator[tuple[KeyPath, str]]:
    noted, others = error.group_exceptions()
    class_ = error.cl
    missing = [note.name.removesuffix("_") for inner, note in noted if isinstance(inner, KeyError)]
    for inner in others:
        yield from mistakes(inner, path, value, is_json)
    for name in missing:
        yield (*path, name), f" is missing. {_need(class_, name, path, is_json)}"
    for inner, note in noted:
        if not isinstance(inner, KeyError):
            name = note.name.removesuffix("_")
            yield from mistakes(inner, (*path, name), value[name], is_json, note.type)


def _with_headers(text: str, path: KeyPath, is_json: bool) -> str:
    """The fixes that show how the table itself is written."""
    name = ".".join(str(key) for key in path if isinstance(key, str))
    many, one = (f'"{name}": [{{ … }}]', f'"{name}": {{ … }}') if is_json else (f"[[{name}]]", f"[{name}]")
    return text.replace(_MANY, f"Write {many}.").replace(_ONE, f"Write {one}.")


def _need(class_: Any, name: str, path: KeyPath, is_json: bool) -> str:
    """Return the reason why a key is needed, with an example."""
    kind = next((kind for kind in KINDS.values() if kind.section == section_of(path)), None)
    if kind is not None and name == kind.key:
        title = kind.title
        return (
            f"Every {title} needs the name of its attribute on Env, for example {_pair(name, kind.example, is_json)}."
        )
    needed, example = _NEEDS.get((class_.__name__, name), ("it", "…"))
    title = _TITLES.get(class_.__name__) or (kind.title if kind is not None else f"{dotted(path)}")
    return f"Every {title} needs {needed}, for example {_pair(name, example, is_json)}."


def _pair(name: str, example: str | int, is_json: bool) -> str:
    value = f'"{example}"' if isinstance(example, str) and not example.startswith("{") else str(example)
    return f'"{name}": {value}' if is_json else f"{name} = {value}"


_TITLES: Final[Mapping[str, str]] = {
    "QueueConsumer": "queue consumer",
    "DurableObjectMigration": "migration",
    "RenamedClass": "renamed class",
    "SimpleLimit": "rate limit",
    "Route": "route",
    "TailConsumer": "tail consumer",
    "Outbound": "outbound worker",
    "AiServer": "AI server",
}


_NEEDS: Final[Mapping[tuple[str, str], tuple[str, str | int]]] = {
    ("QueueProducer", "queue"): ("the name of its queue", "jobs"),
    ("QueueConsumer", "queue"): ("the name of its queue", "jobs"),
    ("DurableObjectTable", "class_name"): ("the name of its class", "Counter"),
    ("DurableObjectMigration", "tag"): ("a tag of its own", "v1"),
    ("RenamedClass", "from"): ("the old name", "Counter"),
    ("RenamedClass", "to"): ("the new name", "Tally"),
    ("ServiceTable", "service"): ("the name of the other worker", "auth"),
    ("RateLimitTable", "namespace_id"): ("a number of its own, as a string", "1001"),
    ("RateLimitTable", "simple"): ("its limit and period", "{ limit = 100, period = 60 }"),
    ("SimpleLimit", "limit"): ("the number of requests", 100),
    ("SimpleLimit", "period"): ("its seconds, 10 or 60", 60),
    ("VectorizeTable", "index_name"): ("the name of its index", "articles"),
    ("HyperdriveTable", "id"): ("the id of its configuration", "0123456789abcdef0123456789abcdef"),
    ("WorkflowTable", "name"): ("a name of its own", "orders"),
    ("WorkflowTable", "class_name"): ("the name of its class", "Orders"),
    ("MtlsCertificateTable", "certificate_id"): ("the id of the certificate", "99f5fef1-6cc1-46b8-bd79-44a0d5082b8d"),
    ("DispatchNamespaceTable", "namespace"): ("the name of its namespace", "production"),
    ("SecretsStoreTable", "store_id"): ("the id of its store", "0123456789abcdef0123456789abcdef"),
    ("SecretsStoreTable", "secret_name"): ("the name of the secret there", "api-key"),
    ("Outbound", "service"): ("the name of the worker", "outbound"),
    ("Route", "pattern"): ("its pattern", "example.com/*"),
    ("TailConsumer", "service"): ("the name of the worker", "logs"),
    ("AiServer", "url"): ("the address of the server", "http://127.0.0.1:11434/v1"),
}
