"""From a configuration file to `Configuration`, or to one error that lists every mistake in it.

cattrs structures the tables, strictly: nothing is converted. Decided here are the words for each mistake, its line,
what named environments inherit, and which bindings there are. What the tables are is `model.py`'s.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeAlias, Union, cast, get_args, get_origin

import attrs
from cattrs import BaseConverter, Converter
from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError, IterableValidationError
from cattrs.gen import make_dict_structure_fn, override

from core.config import model
from core.config.jsonc_text import JsoncError, parse_jsonc
from core.config.model import (
    INHERITED_KEYS,
    KINDS,
    TOP_LEVEL_KEYS,
    UNCHECKED_KEYS,
    Binding,
    Configuration,
    Kind,
    Unchecked,
    Worker,
)
from core.config.secrets import LocalSecrets, read_local_secrets
from core.config.toml_text import KeyPath, toml_lines
from core.errors import ConfigurationError

__all__ = ["FILE_NAMES", "discover", "load", "load_all"]

FILE_NAMES: Final = ("wrangler.json", "wrangler.jsonc", "wrangler.toml")
"""The names of a configuration file, in the order in which the platform's tools look for them."""

Table: TypeAlias = Mapping[str, Any]


def discover(start: Path) -> Path:
    """The configuration file of a project: `start` itself if it is a file, else the nearest one in or above it.

    Raises ConfigurationError when there is none.
    """
    start = start.absolute()
    if start.is_file():
        return start
    for directory in (start, *start.parents):
        for name in FILE_NAMES:
            if (directory / name).is_file():
                return directory / name
    raise ConfigurationError(
        [f"{start}: no wrangler.toml, wrangler.json or wrangler.jsonc here or above. Write one with name and main"]
    )


def load(path: Path, *, environment: str | None = None) -> Configuration:
    """Read one environment of a configuration file; None is the top level.

    All of the file is checked, the other environments too. Raises ConfigurationError with every mistake, each with
    file, line, key path and fix.
    """
    everything = load_all(path)
    for configuration in everything:
        if configuration.environment == environment:
            return configuration
    names = [configuration.environment for configuration in everything if configuration.environment is not None]
    near = get_close_matches(environment or "", names, n=1)
    if near:
        hint = f"Did you mean {near[0]}?"
    elif names:
        hint = f"There is {_or(names)}."
    else:
        hint = f"Write [env.{environment}], or leave the environment out."
    raise ConfigurationError([f"{path.name}: there is no environment {environment}. {hint}"])


def load_all(path: Path) -> list[Configuration]:
    """Read every environment of a configuration file: the top level first, then the named ones in their order.

    Raises ConfigurationError with every mistake.
    """
    document = _read(path)
    problems = _Problems(document)
    top = _structure_worker(document, (), problems)
    workers: list[tuple[str | None, Worker]] = [(None, top)]
    if not isinstance(document.data.get("env", {}), dict):
        problems.add(("env",), "env must be a table of environments. Write [env.staging].")
    for name, own in _table(document.data.get("env")).items():
        if not isinstance(own, dict):
            problems.add(("env", name), f"env.{name} must be a table. Write [env.{name}].")
            continue
        workers.append((name, _inherit(top, _structure_worker(document, ("env", name), problems), name, document.data)))
    secrets: dict[str | None, LocalSecrets] = {}
    for level, _ in workers:
        _check_level(document, level, problems)
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
            bindings=_bindings(document, name, worker, secrets[name]),
            unchecked=_unchecked(document, name, worker),
            digest=_digest(document, secrets[name]),
            lines={_dotted(path): line for path, line in document.lines.items()},
        )
        for name, worker in workers
    ]


# Reading ------------------------------------------------------------------------------------------------------------


@attrs.frozen
class _Document:
    path: Path
    data: dict[str, Any]
    lines: Mapping[KeyPath, int]
    content: bytes

    @property
    def is_json(self) -> bool:
        return self.path.suffix != ".toml"

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of the nearest table around it that has one."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return None


def _read(path: Path) -> _Document:
    name = path.name
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        _fail(f"{name}: there is no such file: {path}. Write one with name and main, or name another file.")
    except IsADirectoryError:
        _fail(f"{name}: this is a directory: {path}. Name the file itself, for example {path / 'wrangler.toml'}.")
    except OSError as error:
        _fail(f"{name}: this cannot be read: {error.strerror}: {path}. Make it a readable file.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        _fail(f"{name}:{line}: this is not UTF-8 (byte 0x{content[error.start]:02x}). Save the file as UTF-8.")
    try:
        if path.suffix == ".toml":
            data: Any = tomllib.loads(text)
            lines = toml_lines(text)
        else:
            data, lines = parse_jsonc(text)
    except tomllib.TOMLDecodeError as error:
        _fail(_broken_toml(name, text, error))
    except JsoncError as error:
        _fail(f"{name}:{error.line}: this is not JSON (column {error.column}): {error.message}.")
    except RecursionError:
        _fail(f"{name}: this is nested too deeply to be read. Make it flatter.")
    if not isinstance(data, dict):
        _fail(f"{name}:1: this must be a JSON object, not {_found(data)}. Begin it with {{.")
    return _Document(path, cast("dict[str, Any]", data), lines, content)


_TOML_PLACE: Final = re.compile(r"(?P<what>.*?) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)")


def _broken_toml(name: str, text: str, error: tomllib.TOMLDecodeError) -> str:
    match = _TOML_PLACE.fullmatch(str(error))
    if match is None:
        return f"{name}: this is not TOML: {error}."
    line = int(match["line"] or text.rstrip("\n").count("\n") + 1)
    column = f" (column {match['column']})" if match["column"] else ""
    source = text.split("\n")[line - 1].strip() if line <= text.count("\n") + 1 else ""
    shown = f": {source[:60]}" if source else ""
    what = match["what"][:1].lower() + match["what"][1:]
    return f"{name}:{line}: this is not TOML{column}: {what}{shown}. Texts stand in quotes, and each key on its line."


def _fail(problem: str) -> NoReturn:
    raise ConfigurationError([problem])


class _Problems:
    """The mistakes so far, in the order of the file."""

    def __init__(self, document: _Document) -> None:
        self.document = document
        self.found: list[tuple[int, str]] = []
        self.foreign: list[str] = []

    def add(self, path: KeyPath, text: str) -> None:
        line = self.document.line(path)
        place = self.document.path.name if line is None else f"{self.document.path.name}:{line}"
        self.found.append((line or 0, f"{place}: {text}"))

    def raise_all(self) -> None:
        """Raise ConfigurationError if there is a mistake."""
        if self.found or self.foreign:
            self.found.sort(key=lambda item: item[0])
            raise ConfigurationError([*dict.fromkeys(text for _, text in self.found), *self.foreign])


# Structuring --------------------------------------------------------------------------------------------------------


class _Mismatch(ValueError):
    """A value of the wrong type; the text says what it must be, and the fix."""


# The two fixes that need the key's own path, which only the one who tells knows.
_MANY: Final = "Write it as an array of tables."
_ONE: Final = "Write it as one table."


_MODEL_KEYS: Final = frozenset(a.name for a in attrs.fields(Worker)) - {"unchecked"}


def _structure_worker(document: _Document, level: KeyPath, problems: _Problems) -> Worker:
    """One level of the file, the top or a named environment, without what it inherits."""
    data: Any = document.data
    for key in level:
        data = data[key]
    known: dict[str, Any] = {}
    unchecked: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", data).items():
        if level and key in TOP_LEVEL_KEYS:
            problems.add(
                (*level, key), f"{_dotted((*level, key))} cannot differ by environment. Move it to the top level."
            )
        elif key in _MODEL_KEYS:
            known[key] = value
        elif key != "env":
            near = get_close_matches(key, [*_MODEL_KEYS, *UNCHECKED_KEYS, *TOP_LEVEL_KEYS], n=1, cutoff=0.75)
            if key not in UNCHECKED_KEYS and near:
                problems.add(
                    (*level, key),
                    f"{_dotted((*level, key))} is not a key of the configuration. Did you mean {near[0]}?",
                )
            else:
                unchecked[key] = value
    worker = Worker()
    try:
        worker = _converter.structure(known, Worker)
    except ClassValidationError as error:
        for path, text in _told(error, level, known, document.is_json):
            problems.add(path, text)
    return attrs.evolve(worker, unchecked=unchecked)


def _inherit(top: Worker, own: Worker, environment: str, data: Table) -> Worker:
    """An environment with what it takes from the top level. Its name has the environment's name at its end."""
    said = data["env"][environment]
    changes: dict[str, Any] = {
        a.name: getattr(top, a.name)
        for a in attrs.fields(Worker)
        if a.name not in said and (a.name in INHERITED_KEYS or a.name in TOP_LEVEL_KEYS)
    }
    # `route` and `routes` are two spellings of one key.
    if "route" in said or "routes" in said:
        changes |= {key: getattr(own, key) for key in ("route", "routes")}
    if "name" not in said and top.name:
        changes["name"] = f"{top.name}-{environment}"
    inherited = {k: v for k, v in top.unchecked.items() if k in INHERITED_KEYS or k in TOP_LEVEL_KEYS}
    return attrs.evolve(own, **changes, unchecked={**inherited, **own.unchecked})


def _scalar(kind: type, title: str) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return value
        raise _Mismatch(f"must be {title}, not {_found(value)}. {_scalar_fix(kind, value)}")

    return structure


def _scalar_fix(kind: type, value: Any) -> str:
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


def _literal(value: Any, type_: Any) -> Any:
    choices = get_args(type_)
    if isinstance(value, str) and value in choices:
        return value
    near = get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    hint = f' Did you mean "{near[0]}"?' if near else ""
    found = f'"{value}"' if isinstance(value, str) else _found(value)
    wanted = _or([f'"{choice}"' for choice in choices])
    raise _Mismatch(f"must be {wanted}, not {found}.{hint}")


def _is_literal(type_: Any) -> bool:
    return get_origin(type_) is cast(Any, Literal)


def _is_choice(type_: Any) -> bool:
    """Whether a union has more than None in it to choose from: `str | Route`, `bool | Sequence[str]`."""
    return get_origin(type_) in _UNIONS and len([arg for arg in get_args(type_) if arg is not type(None)]) > 1


_UNIONS: Final = (Union, type(int | str))


def _choice(value: Any, type_: Any) -> Any:
    """A union by the JSON type of the value."""
    arms = [arg for arg in get_args(type_) if arg is not type(None)]
    for arm in arms:
        plain = get_origin(arm) or arm
        if type(value) is plain or (plain is Sequence and isinstance(value, list)):
            return _converter.structure(value, arm)
        if attrs.has(plain) and isinstance(value, dict):
            return _converter.structure(value, arm)
    raise _Mismatch(f"must be {_or([_title(arm) for arm in arms])}, not {_found(value)}.")


def _title(type_: Any) -> str:
    if attrs.has(type_):
        return "a table"
    if get_origin(type_) is Sequence:
        return "a list of strings"
    return {str: "a string", bool: "true or false"}.get(type_, str(type_))


def _is_sequence(type_: Any) -> bool:
    return get_origin(type_) is Sequence


def _sequence_of(type_: Any, converter: BaseConverter) -> Callable[[Any, Any], Any]:
    (element,) = get_args(type_)
    listed = tuple[element, ...]  # type: ignore[valid-type]  # built when the program runs

    def structure(value: Any, _: Any) -> Any:
        if isinstance(value, list):
            return converter.structure(value, listed)
        if isinstance(value, dict) and attrs.has(element):
            raise _Mismatch(f"must be an array of tables, not one table. {_MANY}")
        found = _found(cast("object", value))
        what = "tables" if attrs.has(element) else "strings"
        raise _Mismatch(f"must be a list of {what}, not {found}. {_list_fix(element, value)}")

    return structure


def _list_fix(element: Any, value: Any) -> str:
    if element is str and isinstance(value, str):
        return f'Write ["{value}"].'
    return _MANY if attrs.has(element) else 'Write ["…"].'


def _is_mapping(type_: Any) -> bool:
    return get_origin(type_) is Mapping


def _mapping_of(type_: Any, _: BaseConverter) -> Callable[[Any, Any], Any]:
    _, element = get_args(type_)

    def structure(value: object, _: Any) -> Any:
        if not isinstance(value, dict):
            raise _Mismatch(f"must be a table, not {_found(value)}. Write its keys below its header.")
        for key, item in _table(value).items():
            if element is not Any and not isinstance(item, str):
                raise _Mismatch(f"must have strings only, but {key} is {_found(item)}. {_scalar_fix(str, item)}")
        return dict(_table(value))

    return structure


def _table_of(class_: Any, converter: BaseConverter) -> Callable[[Any, Any], Any]:
    renamed: Any = {a.name: override(rename=a.name[:-1]) for a in attrs.fields(class_) if a.name.endswith("_")}
    inner = make_dict_structure_fn(class_, converter, _cattrs_forbid_extra_keys=True, **renamed)

    def structure(value: Any, type_: Any) -> Any:
        if isinstance(value, dict):
            return inner(cast("dict[str, Any]", value), type_)
        if isinstance(value, list):
            raise _Mismatch(f"must be one table, not a list. {_ONE}")
        raise _Mismatch(f"must be a table, not {_found(value)}. {_table_fix(class_, value)}")

    return structure


def _table_fix(class_: Any, value: Any) -> str:
    names = [a.name for a in attrs.fields(class_)]
    if isinstance(value, str) and names[0] in ("binding", "name"):
        return f'Write {names[0]} = "{value}" in it.'
    return f"It has {_and(names)}."


def _unsafe_binding(value: Any, _: Any) -> model.UnsafeBinding:
    if not isinstance(value, dict):
        raise _Mismatch(f"must be a table, not {_found(value)}. Write name and type in it.")
    table = cast("dict[str, Any]", value)
    for key in ("name", "type"):
        if not isinstance(table.get(key), str):
            raise _Mismatch(
                f'needs {key}, a string, for example {key} = "{"LIMITER" if key == "name" else "ratelimit"}".'
            )
    rest = {key: item for key, item in table.items() if key not in ("name", "type")}
    return model.UnsafeBinding(name=table["name"], type=table["type"], options=rest)


def _make_converter() -> Converter:
    converter = Converter(detailed_validation=True, forbid_extra_keys=True)
    for kind, title in ((str, "a string"), (int, "a whole number"), (float, "a number"), (bool, "true or false")):
        converter.register_structure_hook(kind, _scalar(kind, title))
    # Hooks that are registered later are asked first.
    for applies, factory in ((attrs.has, _table_of), (_is_sequence, _sequence_of), (_is_mapping, _mapping_of)):
        converter.register_structure_hook_factory(applies, factory)
    converter.register_structure_hook_func(_is_literal, _literal)
    converter.register_structure_hook_func(_is_choice, _choice)
    converter.register_structure_hook(model.UnsafeBinding, _unsafe_binding)
    return converter


_converter: Final = _make_converter()


# Telling ------------------------------------------------------------------------------------------------------------


def _told(
    error: BaseException, path: KeyPath, value: Any, is_json: bool, class_: Any = Worker
) -> Iterator[tuple[KeyPath, str]]:
    """Every mistake below an error of cattrs, with its key path and its words."""
    match error:
        case ClassValidationError():
            yield from _told_of_class(error, path, value, is_json)
        case IterableValidationError():
            noted, _ = error.group_exceptions()
            for inner, note in noted:
                index = cast("int", note.index)
                yield from _told(inner, (*path, index), value[index], is_json, note.type)
        case _Mismatch():
            yield path, f"{_dotted(path)} {_with_headers(str(error), path, is_json)}"
        case _:
            yield path, f"{_dotted(path)} cannot be read: {error}."


def _told_of_class(
    error: ClassValidationError, path: KeyPath, value: Any, is_json: bool
) -> Iterator[tuple[KeyPath, str]]:
    noted, others = error.group_exceptions()
    class_ = error.cl
    keys = [a.name.removesuffix("_") for a in attrs.fields(class_)]
    missing = [note.name.removesuffix("_") for inner, note in noted if isinstance(inner, KeyError)]
    for inner in others:
        if isinstance(inner, ForbiddenExtraKeysError):
            for key in sorted(inner.extra_fields):
                near = get_close_matches(key, keys, n=1)
                if near:
                    hint = f"Did you mean {near[0]}?"
                    # The key under its wrong name is not missing as well.
                    missing = [name for name in missing if name != near[0]]
                else:
                    hint = f"It has {_and(keys)}."
                yield (*path, key), f"{_dotted((*path, key))} is not a key of {_name_of(path, is_json)}. {hint}"
        else:
            yield from _told(inner, path, value, is_json)
    for name in missing:
        yield path, f"{_dotted((*path, name))} is missing. {_need(class_, name, path, is_json)}"
    for inner, note in noted:
        if not isinstance(inner, KeyError):
            name = note.name.removesuffix("_")
            yield from _told(inner, (*path, name), value[name], is_json, note.type)


def _with_headers(text: str, path: KeyPath, is_json: bool) -> str:
    """The fixes that show how the table itself is written."""
    name = ".".join(str(key) for key in path if isinstance(key, str))
    many, one = (f'"{name}": [{{ … }}]', f'"{name}": {{ … }}') if is_json else (f"[[{name}]]", f"[{name}]")
    return text.replace(_MANY, f"Write {many}.").replace(_ONE, f"Write {one}.")


def _need(class_: Any, name: str, path: KeyPath, is_json: bool) -> str:
    """Why a key is needed, with an example."""
    kind = _kind_at(path)
    if kind is not None and name == kind.key:
        title = kind.title
        return (
            f"Every {title} needs the name of its attribute on Env, for example {_pair(name, kind.example, is_json)}."
        )
    what, example = _NEEDS.get((class_.__name__, name), ("it", "…"))
    title = _TITLES.get(class_.__name__) or (kind.title if kind is not None else f"{_dotted(path)}")
    return f"Every {title} needs {what}, for example {_pair(name, example, is_json)}."


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
    ("RateLimitTable", "namespace_id"): ("a number of its own, as a text", "1001"),
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


def _section(path: KeyPath) -> tuple[str, ...]:
    """A key path without environment and without indexes: the section it is in."""
    names = [key for key in path if isinstance(key, str)]
    return tuple(names[2:] if names[:1] == ["env"] else names)


def _kind_at(path: KeyPath) -> Kind | None:
    section = _section(path)
    return next((kind for kind in KINDS.values() if kind.section == section), None)


def _name_of(path: KeyPath, is_json: bool) -> str:
    """The table at a path, as it is written."""
    names = [str(key) for key in path if isinstance(key, str)]
    if is_json:
        return f'"{".".join(names)}"'
    dotted = ".".join(names)
    return f"[[{dotted}]]" if path and isinstance(path[-1], int) else f"[{dotted}]"


def _dotted(path: KeyPath) -> str:
    """A key path in words: `kv_namespaces[1].binding`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f".{key}" if text else key
    return text


# Rules beyond types -------------------------------------------------------------------------------------------------

_BINDING_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORKER_NAME: Final = re.compile(r"[a-z0-9_][a-z0-9_-]*")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")

_RANGES: Final[Mapping[tuple[str, ...], tuple[float, float, str]]] = {
    ("queues", "producers", "delivery_delay"): (0, 86_400, "seconds"),
    ("queues", "consumers", "max_batch_size"): (1, 100, "messages"),
    ("queues", "consumers", "max_batch_timeout"): (0, 60, "seconds"),
    ("queues", "consumers", "max_retries"): (0, 100, "retries"),
    ("queues", "consumers", "retry_delay"): (0, 86_400, "seconds"),
    ("queues", "consumers", "max_concurrency"): (1, 250, "invocations"),
    ("ratelimits", "simple", "limit"): (1, 2**31 - 1, "requests"),
    ("observability", "head_sampling_rate"): (0, 1, "of all requests"),
    ("observability", "logs", "head_sampling_rate"): (0, 1, "of all requests"),
    ("observability", "traces", "head_sampling_rate"): (0, 1, "of all requests"),
    ("dev", "port"): (0, 65_535, "as a port"),
    ("dev", "inspector_port"): (0, 65_535, "as a port"),
}


def _check_level(document: _Document, environment: str | None, problems: _Problems) -> None:
    """What types cannot say, on the raw data, so that one mistake does not hide another."""
    level: KeyPath = () if environment is None else ("env", environment)
    data: Any = document.data
    for key in level:
        data = data[key]
    if environment is not None and not _WORKER_NAME.fullmatch(environment.lower()):
        problems.add(level, f"env.{environment}: an environment is called by letters, digits, - and _. Rename it.")
    _check_names(document, level, data, problems)
    for path, value in _walk(data, level):
        section = _section(path)
        limits = _RANGES.get(section)
        if limits is not None and type(value) in (int, float) and not limits[0] <= value <= limits[1]:
            low, high, unit = limits
            problems.add(path, f"{_dotted(path)} = {value} must be {low:g} to {high:,} {unit}.")
        match section:
            case ("name",) if isinstance(value, str) and not _WORKER_NAME.fullmatch(value):
                fixed = re.sub(r"[^a-z0-9_-]+", "-", value.lower()).strip("-") or "my-worker"
                problems.add(
                    path,
                    f'{_dotted(path)} = "{value}" must be lower-case letters, digits, - and _. Write "{fixed}".',
                )
            case ("compatibility_date",) if isinstance(value, str) and not _is_date(value):
                problems.add(
                    path, f'{_dotted(path)} = "{value}" is not a date. Write YYYY-MM-DD, for example "2026-04-01".'
                )
            case ("ratelimits", "simple", "period") if type(value) is int and value not in (10, 60):
                problems.add(path, f"{_dotted(path)} = {value} must be 10 or 60 seconds.")
            case ("triggers", "crons") if isinstance(value, str) and len(value.split()) != 5:
                problems.add(
                    path,
                    f'{_dotted(path)} = "{value}" must have five fields. Write "*/5 * * * *" for every five minutes.',
                )
            case ("vars", *_) if isinstance(value, dt.date | dt.time | float) and not _is_json(value):
                problems.add(path, f"{_dotted(path)} is {_found(value)}, which JSON does not have. Put it in quotes.")
            case _:
                pass
    if "route" in data and "routes" in data:
        problems.add((*level, "route"), f"{_dotted((*level, 'route'))} and routes say the same. Keep routes.")
    seen: dict[str, int] = {}
    for index, consumer in enumerate(_list(_table(data.get("queues")).get("consumers"))):
        queue = _table(consumer).get("queue")
        if isinstance(queue, str):
            if queue in seen:
                path = (*level, "queues", "consumers", index)
                first = document.line((*level, "queues", "consumers", seen[queue]))
                problems.add(
                    path, f'{_dotted(path)}: the queue "{queue}" has a consumer on line {first} already. Remove one.'
                )
            seen.setdefault(queue, index)


def _table(value: Any) -> dict[str, Any]:
    """The value if it is a table, else an empty one: its type is someone else's complaint."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return [*cast("Iterable[Any]", value)] if isinstance(value, list) else []


def _walk(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    items: Iterable[tuple[str | int, Any]] = [*_table(value).items(), *enumerate(_list(value))]
    for key, item in items:
        if path == () and key == "env":
            continue
        yield (*path, key), item
        yield from _walk(item, (*path, key))


def _check_names(document: _Document, level: KeyPath, data: Table, problems: _Problems) -> None:
    """Binding names: such as an attribute can have, and each but once in an environment."""
    first: dict[str, KeyPath] = {}
    for _, name, path, _ in sorted(_named(data, level), key=lambda item: document.line(item[2]) or 0):
        if not _BINDING_NAME.fullmatch(name):
            fixed = re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("0123456789") or "BINDING"
            problems.add(
                path, f'{_dotted(path)}: "{name}" cannot be the name of an attribute on Env. Write {fixed} instead.'
            )
        elif name in first:
            line = document.line(first[name])
            where = f"line {line}" if line is not None else _dotted(first[name])
            problems.add(
                path, f"{_dotted(path)}: {name} is the name of another binding on {where} already. Rename one of them."
            )
        else:
            first[name] = path


def _named(data: Table, level: KeyPath) -> Iterator[tuple[Kind, str, KeyPath, Any]]:
    """Every binding of a level that has a name: its kind, its name, where the name is, and its entry."""
    for kind in KINDS.values():
        value: Any = data
        for key in kind.section:
            value = _table(value).get(key)
        path: KeyPath = (*level, *kind.section)
        if kind.name == "secret":
            for index, name in enumerate(_list(_table(value).get("required"))):
                if isinstance(name, str):
                    yield kind, name, (*path, "required", index), None
        elif kind.name in ("var", "wasm_module", "text_blob", "data_blob"):
            for name, item in _table(value).items():
                yield kind, name, (*path, name), item
        elif kind.many:
            for index, entry in enumerate(_list(value)):
                name = _table(entry).get(kind.key)
                if isinstance(name, str):
                    yield kind, name, (*path, index, kind.key), entry
        else:
            name = _table(value).get(kind.key)
            if isinstance(name, str):
                yield kind, name, (*path, kind.key), value


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return _DATE.fullmatch(text) is not None


def _is_json(value: Any) -> bool:
    return isinstance(value, float) and value == value and abs(value) != float("inf")


# Bindings -----------------------------------------------------------------------------------------------------------


def _bindings(
    document: _Document, environment: str | None, worker: Worker, secrets: LocalSecrets
) -> Mapping[str, Binding]:
    level: KeyPath = () if environment is None else ("env", environment)
    data: Any = document.data
    for key in level:
        data = data[key]
    bindings: dict[str, Binding] = {}
    found = [(item, level) for item in _named(data, level)]
    if environment is not None:
        # Static files and what only the top level can say come down to every environment.
        inherited = ({*INHERITED_KEYS, *TOP_LEVEL_KEYS} - set(data)) & set(document.data)
        found += [(item, ()) for item in _named({key: document.data[key] for key in inherited}, ())]
    for (kind, name, path, raw), at in found:
        table = kind.table(environment if at else None, json=document.is_json)
        entry = _entry(worker, kind, path[len(at) :], raw)
        bindings[name] = Binding(name, kind.name, table, document.path, document.line(path), entry)
    for name, secret in secrets.names.items():
        if name not in bindings:
            bindings[name] = Binding(name, "secret", "", secret.file, secret.line)
    return bindings


def _entry(worker: Worker, kind: Kind, path: KeyPath, raw: Any) -> Any:
    """The structured table of a binding, or the value of a variable."""
    value: Any = worker
    for key in path[: len(kind.section)]:
        if not hasattr(value, str(key)):
            return raw
        value = getattr(value, str(key))
    if kind.name == "var":
        return raw
    if kind.name == "secret":
        return None
    index = path[len(kind.section)]
    return value[index] if kind.many and isinstance(index, int) else value


def _unchecked(document: _Document, environment: str | None, worker: Worker) -> list[Unchecked]:
    level: KeyPath = () if environment is None else ("env", environment)
    entries: list[Unchecked] = []
    for key in worker.unchecked:
        path: KeyPath = (*level, key) if (*level, key) in document.lines else (key,)
        known = key in UNCHECKED_KEYS
        reason = "core does not check it" if known else "core does not know it, and does not check it"
        if key != "$schema":
            entries.append(Unchecked(_dotted(path), document.line(path), reason))
    for kind, section in (("dispatch_namespace", worker.dispatch_namespaces), ("unsafe", worker.unsafe.bindings)):
        if section:
            path = (*level, *KINDS[kind].section)
            entries.append(Unchecked(_dotted(path), document.line(path), "core has no type for it"))
    return entries


def _digest(document: _Document, secrets: LocalSecrets) -> str:
    names = [f"{name}:{secret.file.name}:{secret.line}" for name, secret in secrets.names.items()]
    return hashlib.sha256(document.content + "\n".join(names).encode()).hexdigest()


# Words --------------------------------------------------------------------------------------------------------------


def _found(value: object) -> str:
    """The type of a value, as people who write the file call it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "a table"
        case dt.datetime() | dt.date() | dt.time():
            return "a date or time"
        case _:
            return "null"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _or(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
