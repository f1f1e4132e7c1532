"""The names of a document: paths, operations, tags, errors, and the prose of docstrings."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus

from core.errors import phrase_of
from core.openapi.facts import RouteFacts
from core.routing.pattern import Pattern, parse


def openapi_path(path: str) -> str:
    """`/users/:id` as OpenAPI writes it: `/users/{id}`.

    A rest is called `path`, other wildcards `any1`, `any2` and so on.
    """
    return _written(parse(path))


def openapi_paths(path: str) -> list[str]:
    """The same with each optional parameter left out too, since OpenAPI knows none in a path."""
    return [_written(variant) for variant in parse(path).variants]


def parameter_patterns(path: str) -> dict[str, str]:
    """The regular expressions that a path demands of its parameters: `[0-9]+` of `/users/:id{[0-9]+}`."""
    pattern = parse(path)
    checks = dict(pattern.checks)
    return {name: checks[index] for name, index in pattern.names if index in checks}


def _written(pattern: Pattern) -> str:
    names = {index: name for name, index in pattern.names}
    unnamed = [index for index, part in enumerate(pattern.parts) if part is None and index not in names]
    names |= {index: f"any{number}" for number, index in enumerate(unnamed, 1)}
    parts = [f"{{{names[index]}}}" if part is None else part for index, part in enumerate(pattern.parts)]
    return "/" + "/".join([*parts, "{path}"] if pattern.rest else parts)


def operation_ids(routes: Sequence[RouteFacts]) -> list[str]:
    """The names of the handlers; with their module's where two are called the same, else by method and path."""
    whole = [route.name.replace(".<locals>", "").replace(".__call__", "").split(".") for route in routes]
    ways = [
        [parts[-1].strip("<>") for parts in whole],
        ["_".join(parts[-2:]).replace("<", "").replace(">", "") for parts in whole],
        ["_".join([route.method.lower(), *re.findall(r"[A-Za-z0-9]+", openapi_path(route.path))]) for route in routes],
    ]
    counts = [Counter(way) for way in ways]
    return [
        next((way[at] for way, count in zip(ways, counts, strict=True) if count[way[at]] == 1), f"{ways[2][at]}_{at}")
        for at in range(len(routes))
    ]


def tag(module: str) -> str:
    """The tag of a module: the last part of its name."""
    return module.rpartition(".")[2]


def prose(doc: str | None) -> tuple[str, str]:
    """A docstring's first paragraph on one line, and the rest of it."""
    if not doc:
        return "", ""
    first, _, rest = inspect.cleandoc(doc).partition("\n\n")
    return " ".join(first.split()), rest.strip()


def phrase(status: int) -> str:
    """The standard phrase of a status, the same under every version of Python."""
    if status not in {*HTTPStatus}:
        return "An answer of the application"
    return phrase_of(status) if status >= 400 else HTTPStatus(status).phrase


def error_name(words: str) -> str:
    """The name of an error by its message: `EMAIL_TAKEN` and `Email taken` are `EmailTakenError`."""
    parts = re.findall(r"[A-Za-z0-9]+", words)
    name = "".join(part[:1].upper() + (part[1:].lower() if words.isupper() else part[1:]) for part in parts[:8])
    if not name or name[0].isdigit():
        return ""
    return name if name.endswith("Error") else f"{name}Error"
