"""From a configuration file to `Configuration`, or to one error that lists every mistake in it.

Tables become the classes of `model.py`, strictly: nothing is converted, and every mistake has its words and its fix. A
table is read key by key. One that is a key but for a letter is a mistake, and is taken for that key; any other is the
platform's business, and unchecked.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import attrs

from core.bindings.kinds import KINDS, header
from core.config import model
from core.config.bindings import bindings_of
from core.config.document import Document, Problems, Table, as_list, as_table, read_document
from core.config.keys import TOP_LEVEL_KEYS, UNCHECKED_IN, UNCHECKED_KEYS, inherit, one_letter, types_of, unchecked_of
from core.config.model import Configuration, Worker
from core.config.rules import check_level
from core.config.secrets import LocalSecret, read_local_secrets
from core.config.toml_text import KeyPath
from core.config.words import did_you_mean, dotted, listed, section_of, type_name
from core.errors import ConfigurationError


def load(path: Path, *, environment: str | None = None) -> Configuration:
    """Read one environment of a configuration file; None is the top level.

    All of the file is checked, the other environments too. Raises ConfigurationError with every mistake, each with
    file, line, key path and fix.
    """
    everything = load_all(path)
    for configuration in everything:
        if configuration.environment == environment:
            return configuration
    names = everything[0].environments
    way = f"There is {listed(names, 'or')}." if names else f"Write [env.{environment}], or leave the environment out."
    hint = did_you_mean(environment or "", names, way)
    raise ConfigurationError([f"{path.name}: there is no environment {environment}. {hint}"])


def load_all(path: Path) -> list[Configuration]:
    """Read every environment of a file, the top level first. Raises ConfigurationError with every mistake."""
    document = read_document(path)
    problems = Problems(document)
    top = _worker_of_level(document, None, problems)
    workers: list[tuple[str | None, Worker]] = [(None, top)]
    if not isinstance(document.data.get("env", {}), dict):
        problems.add(("env",), " must be a table of environments. Write [env.staging].")
    for name, own in as_table(document.data.get("env")).items():
        if not isinstance(own, dict):
            problems.add(("env", name), f" must be a table. Write [env.{name}].")
            continue
        workers.append((name, inherit(top, _worker_of_level(document, name, problems), name, document.data)))
    secrets: dict[str | None, Mapping[str, LocalSecret]] = {}
    for level, _ in workers:
        check_level(document, level, problems)
        try:
            secrets[level] = read_local_secrets(path.parent, level)
        except ConfigurationError as error:
            problems.foreign += [problem for problem in error.problems if problem not in problems.foreign]
    problems.raise_all()
    names = [name for name, _ in workers if name is not None]
    return [
        Configuration(
            path=path,
            environment=name,
            environments=names,
            worker=worker,
            bindings=bindings_of(document, name, worker, secrets[name]),
            unchecked=unchecked_of(document, name, worker, problems.unknown),
            digest=_digest(document, secrets[name]),
            lines={dotted(path): line for path, line in document.lines.items()},
        )
        for name, worker in workers
    ]


def _digest(document: Document, secrets: Mapping[str, LocalSecret]) -> str:
    names = [f"{name}:{secret.file.name}:{secret.line}" for name, secret in secrets.items()]
    return hashlib.sha256(document.content + "\n".join(names).encode()).hexdigest()


# One level of the file -----------------------------------------------------------------------------------------------


def _worker_of_level(document: Document, environment: str | None, problems: Problems) -> Worker:
    """One level of the file, the top or a named environment, without the keys it inherits."""
    level, data = document.level(environment)
    own = {key: value for key, value in data.items() if not level or key not in TOP_LEVEL_KEYS}
    for key in [key for key in data if key not in own]:
        problems.add((*level, key), " cannot differ by environment. Move it to the top level.")
    worker: Worker = _table(own, Worker, level, problems)
    return worker


class _Mismatch(ValueError):
    """A value of the wrong type; the message says the right type, and the fix."""


def _read(value: object, type_: object, path: KeyPath, problems: Problems) -> object:
    """`value` as a `type_`. Where that is a mistake, the file is refused, and what this returns is not used."""
    try:
        return _structure(value, type_, path, problems)
    except _Mismatch as error:
        problems.add(path, f" {error}")
        return None


def _structure(value: object, type_: Any, path: KeyPath, problems: Problems) -> Any:
    origin, arguments = get_origin(type_), get_args(type_)
    if type_ is Any:
        return value
    if origin in _UNIONS:
        return _choice(value, [arm for arm in arguments if arm is not type(None)], path, problems)
    if origin is Literal:
        return _literal(value, arguments)
    if origin is Sequence:
        return _sequence(value, arguments[0], path, problems)
    if origin is Mapping:
        return _mapping(value, arguments[1])
    if type_ is model.UnsafeBinding:
        return _unsafe_binding(value)
    if not attrs.has(type_):
        if type(value) is type_ or (type_ is float and type(value) is int):
            return value
        raise _Mismatch(f"must be {_SCALARS[type_]}, not {type_name(value)}. {_scalar_fix(type_, value)}")
    if isinstance(value, dict):
        return _table(as_table(value), type_, path, problems)
    if isinstance(value, list):
        raise _Mismatch(f"must be one table, not a list. Write {_written(path, problems)}.")
    raise _Mismatch(f"must be a table, not {type_name(value)}. {_table_fix(type_, value)}")


_UNIONS: Final = (Union, UnionType)
_SCALARS: Final = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


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


def _literal(value: object, choices: Sequence[str]) -> str:
    if isinstance(value, str) and value in choices:
        return value
    near = get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    hint = f' Did you mean "{near[0]}"?' if near else ""
    found = f'"{value}"' if isinstance(value, str) else type_name(value)
    wanted = listed([f'"{choice}"' for choice in choices], "or")
    raise _Mismatch(f"must be {wanted}, not {found}.{hint}")


def _choice(value: object, arms: Sequence[Any], path: KeyPath, problems: Problems) -> object:
    """A union by the JSON type of the value. `T | None` is a `T` that may be null."""
    if len(arms) == 1:
        return None if value is None else _structure(value, arms[0], path, problems)
    is_list, is_table = isinstance(value, list), isinstance(value, dict)
    for arm in arms:
        if type(value) is arm or (is_list and get_origin(arm) is Sequence) or (is_table and attrs.has(arm)):
            return _structure(value, arm, path, problems)
    raise _Mismatch(f"must be {listed([_title(arm) for arm in arms], 'or')}, not {type_name(value)}.")


def _title(type_: Any) -> str:
    if attrs.has(type_):
        return "a table"
    return "a list of strings" if get_origin(type_) is Sequence else _SCALARS[type_]


def _sequence(value: object, element: Any, path: KeyPath, problems: Problems) -> tuple[object, ...]:
    if isinstance(value, list):
        return tuple(_read(item, element, (*path, index), problems) for index, item in enumerate(as_list(value)))
    if not attrs.has(element):
        shown = value if element is str and isinstance(value, str) else "…"
        raise _Mismatch(f'must be a list of strings, not {type_name(value)}. Write ["{shown}"].')
    found = "an array of tables, not one table"
    if not isinstance(value, dict):
        found = f"a list of tables, not {type_name(value)}"
    raise _Mismatch(f"must be {found}. Write {_written(path, problems, many=True)}.")


def _mapping(value: object, element: object) -> Table:
    if not isinstance(value, dict):
        raise _Mismatch(f"must be a table, not {type_name(value)}. Write its keys below its header.")
    table = as_table(value)
    inner = [arm for arm in get_args(element) if get_origin(arm) is Mapping]
    for key, item in table.items():
        if inner and isinstance(item, dict):
            _mapping(as_table(item), get_args(inner[0])[1])
        elif element is not Any and not isinstance(item, str):
            raise _Mismatch(f"must have strings only, but {key} is {type_name(item)}. {_scalar_fix(str, item)}")
    return table


def _unsafe_binding(value: object) -> model.UnsafeBinding:
    if not isinstance(value, dict):
        raise _Mismatch(f"must be a table, not {type_name(value)}. Write name and type in it.")
    table = as_table(value)
    for key, example in (("name", "LIMITER"), ("type", "ratelimit")):
        if not isinstance(table.get(key), str):
            raise _Mismatch(f'needs {key}, a string, for example {key} = "{example}".')
    rest = {key: item for key, item in table.items() if key not in ("name", "type")}
    return model.UnsafeBinding(name=table["name"], type=table["type"], options=rest)


# Tables --------------------------------------------------------------------------------------------------------------


def _table(table: Table, class_: Any, path: KeyPath, problems: Problems) -> Any:
    """A table as a `class_`. The keys that are none of the class's become mistakes, or `problems.unknown`."""
    types, unchecked = types_of(class_), UNCHECKED_IN.get(class_, frozenset())
    if class_ is Worker:
        unchecked = UNCHECKED_KEYS if path else UNCHECKED_KEYS | {"env"}
    keys = {name: name for name in table if name in types}
    for key in table:
        if key in types:
            continue
        near = None if key in unchecked else _near(key, {*types, *unchecked}, table, class_)
        if near is None and class_ not in _OURS:
            problems.unknown[*path, key] = key in unchecked
            continue
        title = "the configuration" if class_ is Worker else _header(path, problems, many=isinstance(path[-1], int))
        hint = f"It has {listed([*types], 'and')}." if near is None else f"Did you mean {near}?"
        problems.add((*path, key), f" is not a key of {title}. {hint}", misspelt=True)
        if near in types:
            keys[near] = key  # so that it is not missing as well
    given: dict[str, Any] = {}
    for field in attrs.fields(class_):
        name = field.name.removesuffix("_")
        if name in keys:
            given[field.name] = _read(table[keys[name]], types[name], (*path, keys[name]), problems)
        elif field.default is attrs.NOTHING:
            given[field.name] = None
            problems.add((*path, name), f" is missing. {_need(class_, name, path, problems.document.is_json)}")
    return class_(**given)


# Every key of these is known: the platform has them not.
_OURS: Final = frozenset({model.CoreSettings, model.AiServer})


def _near(key: str, names: Iterable[str], table: Table, class_: object) -> str | None:
    """The key that was meant: a letter away, not given yet, and of a type that takes the value."""
    for name in sorted(names):
        if name not in table and one_letter(key, name):
            type_ = types_of(class_).get(name)
            tried = Problems(Document(Path(), {}, {}, b""))
            if type_ is not None:
                _read(table[key], type_, (name,), tried)
            if len(tried.found) == tried.misspelt:
                return name
    return None


# Words for mistakes --------------------------------------------------------------------------------------------------


def _header(path: KeyPath, problems: Problems, *, many: bool) -> str:
    names = [key for key in path if isinstance(key, str)]
    return header(names, many=many, json=problems.document.is_json)


def _written(path: KeyPath, problems: Problems, *, many: bool = False) -> str:
    """A table, or a list of them, as it is written."""
    value = ("[{ … }]" if many else "{ … }") if problems.document.is_json else ""
    return f"{_header(path, problems, many=many)}{value and f': {value}'}"


def _table_fix(class_: object, value: object) -> str:
    names = [*types_of(class_)]
    if isinstance(value, str) and names[0] in ("binding", "name"):
        return f'Write {names[0]} = "{value}" in it.'
    return f"It has {listed(names, 'and')}."


def _need(class_: Any, name: str, path: KeyPath, is_json: bool) -> str:
    kind = next((kind for kind in KINDS.values() if kind.section == section_of(path)), None)
    if kind is not None and name == kind.key:
        title = kind.title
        return (
            f"Every {title} needs the name of its attribute on Env, for example {_pair(name, kind.example, is_json)}."
        )
    needed, example = _NEEDS.get((class_.__name__, name), ("it", "…"))
    title = _TITLES.get(class_.__name__) or (kind.title if kind is not None else f"{dotted(path)}")
    return f"Every {title} needs {needed}, for example {_pair(name, example, is_json)}."


def _pair(name: str, example: str | int | Mapping[str, int], is_json: bool) -> str:
    if is_json:
        return f'"{name}": {json.dumps(example, ensure_ascii=False)}'
    if isinstance(example, Mapping):
        return f"{name} = {{ {', '.join(f'{key} = {value}' for key, value in example.items())} }}"
    return f'{name} = "{example}"' if isinstance(example, str) else f"{name} = {example}"


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


_NEEDS: Final[Mapping[tuple[str, str], tuple[str, str | int | Mapping[str, int]]]] = {
    ("QueueProducer", "queue"): ("the name of its queue", "jobs"),
    ("QueueConsumer", "queue"): ("the name of its queue", "jobs"),
    ("DurableObjectTable", "class_name"): ("the name of its class", "Counter"),
    ("DurableObjectMigration", "tag"): ("a tag of its own", "v1"),
    ("RenamedClass", "from"): ("the old name", "Counter"),
    ("RenamedClass", "to"): ("the new name", "Tally"),
    ("ServiceTable", "service"): ("the name of the other worker", "auth"),
    ("RateLimitTable", "namespace_id"): ("a number of its own, as a string", "1001"),
    ("RateLimitTable", "simple"): ("its limit and period", {"limit": 100, "period": 60}),
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
