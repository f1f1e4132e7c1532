"""Rules that types cannot express: ranges, names, dates, and names that are given twice."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from math import isfinite
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any, Final

from core.config.addresses import connection_problem
from core.config.bindings import named_bindings
from core.config.checks import CODES, LEVELS
from core.config.document import Document, Problems, Table, as_list, as_table
from core.config.toml_text import KeyPath
from core.config.words import as_attribute, did_you_mean, dotted, listed, section_of, type_name

_WORKER_NAME: Final = re.compile(r"[a-z0-9_][a-z0-9_-]*")
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


def check_level(document: Document, environment: str | None, problems: Problems) -> None:
    """Check, on the raw data, the rules that types cannot express, so that one mistake does not hide another."""
    level, data = document.level(environment)
    if environment is not None and not _WORKER_NAME.fullmatch(environment.lower()):
        problems.add(level, ": an environment is called by letters, digits, - and _. Rename it.")
    _check_names(document, level, data, problems)
    for path, value in _walk(data, level):
        section = section_of(path)
        limits = _RANGES.get(section)
        if limits is not None and type(value) in (int, float) and not limits[0] <= value <= limits[1]:
            low, high, unit = limits
            problems.add(path, f" = {value} must be {low:g} to {high:,} {unit}.")
        match section:
            case ("name",) if isinstance(value, str) and not _WORKER_NAME.fullmatch(value):
                fixed = re.sub(r"[^a-z0-9_-]+", "-", value.lower()).strip("-") or "my-worker"
                problems.add(path, f' = "{value}" must be lower-case letters, digits, - and _. Write "{fixed}".')
            case ("core", "checks", _) if isinstance(value, dict):
                pass  # the levels of the files at a path
            case ("core", "checks", code) | ("core", "checks", _, code) if code not in CODES:
                hint = did_you_mean(code, CODES, f"There are {listed(CODES, 'and')}.")
                problems.add(path, f": there is no finding of that code. {hint}")
            case ("core", "checks", _) | ("core", "checks", _, _) if isinstance(value, str) and value not in LEVELS:
                problems.add(path, f' = "{value}" must be "off", "warning" or "error".')
            case ("compatibility_date",) if isinstance(value, str) and not _is_date(value):
                problems.add(path, f' = "{value}" is not a date. Write YYYY-MM-DD, for example "2026-04-01".')
            case ("ratelimits", "simple", "period") if type(value) is int and value not in (10, 60):
                problems.add(path, f" = {value} must be 10 or 60 seconds.")
            case ("triggers", "crons") if isinstance(value, str) and len(value.split()) != 5:
                problems.add(path, f' = "{value}" must have five fields. Write "*/5 * * * *" for every five minutes.')
            case ("triggers", "crons") if isinstance(value, str) and (problem := _cron_problem(value)):
                problems.add(path, f' = "{value}": {problem}.')
            case ("hyperdrive", "localConnectionString") if isinstance(value, str) and connection_problem(value):
                problems.add(
                    path,
                    f" cannot be used: {connection_problem(value)}. Write "
                    "postgres://user:password@127.0.0.1:5432/database, with special characters as %40.",
                )
            case ("vars", *_) if isinstance(value, dt.date | dt.time) or (
                isinstance(value, float) and not isfinite(value)
            ):
                problems.add(path, f" is {type_name(value)}, which JSON does not have. Put it in quotes.")
            case _:
                pass
    main, base = (data.get(key, document.data.get(key)) for key in ("main", "base_dir"))
    own = next(((*level, key) for key in ("base_dir", "main") if key in data), None)
    both = isinstance(main, str) and isinstance(base, str)
    if own is not None and both and not PurePosixPath(normpath(main)).is_relative_to(normpath(base)):
        problems.add(own, f': main = "{main}" is not in base_dir = "{base}". Write the folder that it is in.')
    if "route" in data and "routes" in data:
        problems.add((*level, "route"), " and routes say the same. Keep routes.")
    seen: dict[str, KeyPath] = {}
    for index, consumer in enumerate(as_list(as_table(data.get("queues")).get("consumers"))):
        queue, path = as_table(consumer).get("queue"), (*level, "queues", "consumers", index)
        if isinstance(queue, str) and seen.setdefault(queue, path) != path:
            first = document.line(seen[queue])
            problems.add(path, f': the queue "{queue}" has a consumer on line {first} already. Remove one.')


def _walk(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    items: Iterable[tuple[str | int, object]] = [*as_table(value).items(), *enumerate(as_list(value))]
    for key, item in items:
        if path == () and key == "env":
            continue
        yield (*path, key), item
        yield from _walk(item, (*path, key))


def _check_names(document: Document, level: KeyPath, data: Table, problems: Problems) -> None:
    """Binding names: such as an attribute can have, and each but once in an environment."""
    first: dict[str, KeyPath] = {}
    for _, name, path, _ in sorted(named_bindings(data, level), key=lambda item: document.line(item[2]) or 0):
        fixed = as_attribute(name)
        if fixed != name:
            problems.add(path, f': "{name}" cannot be the name of an attribute on Env. Write {fixed} instead.')
        elif name in first:
            line = document.line(first[name])
            where = f"line {line}" if line is not None else dotted(first[name])
            problems.add(path, f": {name} is the name of another binding on {where} already. Rename one of them.")
        else:
            first[name] = path


def _cron_problem(text: str) -> str | None:
    from core.errors import OptionError
    from core.events.cron import Cron

    try:
        Cron.parse(text)
    except OptionError as error:
        return str(error).removeprefix(f'cron expression "{text}"').lstrip(": ")
    return None


def _is_date(text: str) -> bool:
    with suppress(ValueError):
        return dt.date.fromisoformat(text).isoformat() == text  # which reads further forms of ISO 8601
    return False
