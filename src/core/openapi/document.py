"""From facts to an OpenAPI document, version 3.2 or 3.1 (https://spec.openapis.org/oas/).

Paths, operations and their names are put together here; what happens on the way of a request is read by `functions.py`.
A value that nobody knows is `{}`, code that is not followed may answer anything, and each is a problem at its line.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from core.http.json import JsonObject
from core.openapi import requests
from core.openapi.components import Committed, Components
from core.openapi.credentials import SecuritySchemes
from core.openapi.facts import ApplicationFacts, Effect, RouteFacts
from core.openapi.failures import MALFORMED, NOT_ALLOWED, UNEXPECTED
from core.openapi.functions import Reader
from core.openapi.program import Program
from core.openapi.reading import METHODS, openapi_path, openapi_paths, parameter_patterns
from core.openapi.responses import Responses

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_DEEPEST: Final = 2**14
"""Calls inside calls of Python, as in mypy's own command: an elif is inside of the one before it."""


@attrs.frozen(order=True)
class Problem:
    """Something that the document cannot say, at its line."""

    path: str
    line: int
    message: str


@attrs.frozen
class Described:
    """A document, the problems in it, and where its operations and answers stand in the code.

    `places` has the file and line of each operation under its id and "", and of each of its answers under the status.
    """

    document: JsonObject
    problems: Sequence[Problem]
    places: Mapping[tuple[str, str], tuple[str, int]] = attrs.Factory(dict[tuple[str, str], tuple[str, int]])


def describe(
    application: ApplicationFacts,
    program: Program,
    *,
    version: str = "3.2",
    committed: Mapping[str, object] | None = None,
) -> Described:
    """The document of an application, and everything in it that is not known. `version` is "3.2" or "3.1".

    Operations and schemas are called as in `committed`, the document that is committed, where that has them.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEEPEST))
    try:
        return _Writer(application, program, version, committed or {}).write()
    finally:
        sys.setrecursionlimit(limit)


class _Writer:
    def __init__(
        self, application: ApplicationFacts, program: Program, version: str, committed: Mapping[str, object]
    ) -> None:
        self.application = application
        self.version = version
        self.program = program
        self.reader = Reader(program, application)
        self.problems: set[Problem] = set()
        self.paths: dict[str, JsonObject] = {}
        self.tags: dict[str, str | None] = {}
        self.committed = Committed(committed)
        self.components = Components(program.schemas.classes, self._problem)
        self.responses = Responses(self.reader, self.components, version)
        self.security = SecuritySchemes(self.reader, self.components)

    def write(self) -> Described:
        """The whole document."""
        paths, tags = self.paths, self.tags
        for route, name in zip(self.application.routes, operation_ids(self.application.routes), strict=True):
            for path in openapi_paths(route.path):
                self._route(route, name if path == openapi_path(route.path) else f"{name}_without", path)
        levels = [level for route in self.application.routes for level in route.errors]
        for level in (self.application.error_handlers, *levels):
            for cls in level.keys() - self.reader.met - {*UNEXPECTED.classes}:
                if not cls.startswith("core."):
                    reason = (
                        f"nothing that is read raises {cls.removeprefix('builtins.')}, so no operation has what is "
                        "answered here. Raise it, or another error, in the program where it comes from"
                    )
                    self._problem(Effect(path=level[cls].place[0], line=level[cls].place[1]), reason)
        words = {tag: inspect.cleandoc(doc or "") for tag, doc in tags.items()}
        info = {"title": self.application.title, "version": self.application.version}
        self.reader.method = ""
        unmatched = self.responses.unmatched
        responses = {"NotFound": unmatched("No route has this path and method", self.responses.missing())}
        if self.application.method_not_allowed:
            said = "The path has routes for other methods, which `Allow` names"
            responses["MethodNotAllowed"] = unmatched(said, [NOT_ALLOWED])
        schemas = self.components.written(paths, responses, committed=self.committed)
        schemes = dict(sorted(self.security.schemes.items()))
        document = {
            "openapi": "3.1.1" if self.version == "3.1" else "3.2.0",
            "info": info | _stated(description=inspect.cleandoc(self.application.description or "")),
            "paths": paths,
            **_stated(
                servers=[{"url": url} for url in self.application.servers],
                **{"x-mounted": [*self.application.mounts]},
                tags=[{"name": tag, **_stated(description=words[tag])} for tag in tags],
            ),
            "components": _stated(schemas=schemas, responses=responses, securitySchemes=schemes),
        }
        return Described(document, sorted(self.problems), self.responses.places)

    def _problem(self, at: Effect, message: str) -> None:
        if at.path:
            self.problems.add(Problem(at.path, at.line, message))

    # -- one route

    def _route(self, route: RouteFacts, name: str, path: str) -> None:
        item = self.paths.setdefault(path, {})
        if route.websocket:
            if "x-websocket" not in item:
                item["x-websocket"] = self._operation(route, name, path, "websocket")
            return
        methods = _METHODS if route.method == "*" else (route.method,)
        for method in methods:
            # Of two routes the first registered one answers.
            key, home = method.lower(), item
            if key not in METHODS or (key == "query" and self.version == "3.1"):
                key = method
                home = item.setdefault(
                    "x-additional-operations" if self.version == "3.1" else "additionalOperations", {}
                )
            if key not in home:
                unique = name if len(methods) == 1 else f"{name}_{method.lower()}"
                home[key] = self._operation(route, unique, path, key)

    def _operation(self, route: RouteFacts, name: str, path: str, method: str) -> JsonObject:
        before = self.committed.operation(path, method)
        name = route.said.operation_id or before.get("operationId") or name
        self.responses.places.setdefault((name, ""), route.handler.place)
        operation: dict[str, object] = {"operationId": name}
        module = route.module or ""
        own = module.rpartition(".")[2]
        if named := route.said.tags or before.get("tags") or ([own] if own else []):
            operation["tags"] = [*named]
            for each in named:
                self.tags.setdefault(each, self.program.docstring_of(module) if module and each == own else None)
        summary, description = prose(self.program.docstring_of(route.name))
        operation["summary"] = summary or name.replace("_", " ").strip().capitalize()
        if description:
            operation["description"] = description
        if route.said.deprecated:
            operation["deprecated"] = True
        self.reader.method = "GET" if route.websocket else method.upper()
        patterns = parameter_patterns(route.path)
        unmatched: list[Effect] = [MALFORMED] if ":" in route.path or "*" in route.path else []
        if any(f"{{{parameter}}}" in path for parameter in patterns):
            # A path that does not match the pattern is one that no route has.
            unmatched += self.responses.missing()
        found = self.reader.route(route, unmatched)
        security = self.security.of(route)
        schemes = [self.security.schemes[name] for way in security for name in way]
        keys = {(each.get("in"), str(each.get("name")).lower()) for each in schemes}
        parameters = requests.parameters(self.components, path, found, patterns)
        if asked := [each for each in parameters if (each["in"], each["name"].lower()) not in keys]:
            operation["parameters"] = asked
        if not route.websocket:
            if body := requests.body(self.components, found, method):
                operation["requestBody"] = body
            operation["responses"] = self.responses.of(route, found, name)
        if security or route.public:
            operation["security"] = security
        return operation


def _stated(**members: object) -> JsonObject:
    """The members of an object that say something."""
    return {name: each for name, each in members.items() if each}


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


def prose(doc: str | None) -> tuple[str, str]:
    """A docstring's first paragraph on one line, and the rest of it."""
    if not doc:
        return "", ""
    first, _, rest = inspect.cleandoc(doc).partition("\n\n")
    return " ".join(first.split()), rest.strip()
