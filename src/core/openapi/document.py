"""From facts to an OpenAPI document, version 3.2 or 3.1 (https://spec.openapis.org/oas/).

A route answers with the responses of its handler and with the errors raised on the way, by the handler, by everything
that it calls and by the middleware before it, each error as the application's error handler writes it. A value that
nobody knows is `{}` and a problem at its line.

One file, since one writer adds to one document: an answer, its error and its schema are written where a route is met.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from core.openapi.components import Components
from core.openapi.effects import Found, Program
from core.openapi.facts import Answer, FunctionFacts, ModuleFacts, Raise, Read, Schema, StagedHeader
from core.openapi.failures import (
    CORE_ERROR,
    NOT_ALLOWED,
    NOT_FOUND,
    UNAUTHORIZED,
    UNEXPECTED,
    error,
    implied,
    is_caught,
    substituted,
)
from core.openapi.handled import Handled, Levels, is_general
from core.openapi.names import (
    described,
    error_name,
    openapi_path,
    openapi_paths,
    operation_ids,
    parameter_patterns,
    phrase,
    prose,
    tag,
    words,
)
from core.openapi.requests import Requests, add_body
from core.openapi.values import Problem, Values

__all__ = [
    "ApplicationFacts",
    "Described",
    "RouteFacts",
    "Security",
    "StepFacts",
    "describe",
]

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_FIXED: Final = frozenset(["get", "put", "post", "delete", "options", "head", "patch", "trace"])
"""Methods with a place of their own in a path item; 3.2 has `query` and `additionalOperations` beside them."""
_CHALLENGE: Final = "www-authenticate"


@attrs.frozen
class Security:
    """One way to authenticate: `scheme` is a security scheme object of OpenAPI, under `name` in the document."""

    name: str
    scheme: Mapping[str, Any]


@attrs.frozen
class StepFacts:
    """A middleware or an authenticator before a handler: the function behind it, and its declared answers."""

    function: str | None = None
    answers: tuple[Answer | Raise | StagedHeader, ...] = ()
    security: Security | None = None
    authenticates: bool = False
    optional: bool = False
    """True if a request without credentials goes on."""
    limits_bodies: bool = False
    errors: Levels = ()
    """The error handlers of the routers that it is in."""


@attrs.frozen
class RouteFacts:
    """One route of the application's own table. `path` is in the framework's words, as `/users/:id`."""

    method: str
    path: str
    handler: str
    steps: tuple[StepFacts, ...] = ()
    module: str | None = None
    """The module that the route is tagged with, None for that of the application itself."""
    websocket: bool = False
    public: bool = False
    place: tuple[str, int] = ("", 0)
    """The file and line of the handler."""
    errors: Levels = ()
    """The error handlers of the routers that it is registered on."""


@attrs.frozen
class ApplicationFacts:
    """The application: its routes, and the functions that answer errors and paths that no route has."""

    routes: Sequence[RouteFacts]
    title: str
    version: str = "0.1.0"
    description: str | None = None
    error_handlers: Mapping[str, str] = attrs.Factory(dict[str, str])
    """Functions by the classes of errors that they answer, by full names."""
    not_found: str | None = None
    method_not_allowed: bool = False
    problem_details: bool = False
    mounts: Sequence[str] = ()
    """The prefixes that other applications answer."""
    authenticators: Mapping[str, StepFacts] = attrs.Factory(dict[str, StepFacts])
    """The framework's authenticators that the program keeps in variables, by their full names:
    its functions may call them.
    """


@attrs.frozen
class Described:
    """A document, the problems in it, and where its operations and answers stand in the code.

    `places` has the file and line of each operation under its id and "", and of each of its answers under the status.
    """

    document: dict[str, Any]
    problems: Sequence[Problem]
    places: Mapping[tuple[str, str], tuple[str, int]] = attrs.Factory(dict[tuple[str, str], tuple[str, int]])


def describe(application: ApplicationFacts, modules: Iterable[ModuleFacts], *, version: str = "3.2") -> Described:
    """The document of an application, and everything in it that is not known. `version` is "3.2" or "3.1"."""
    return _Writer(application, modules, version).write()


class _Writer:
    def __init__(self, application: ApplicationFacts, modules: Iterable[ModuleFacts], version: str) -> None:
        self.application = application
        self.version = version
        self.program = Program([*modules, _called(application.authenticators)])
        self.components = Components(self.program.classes, self.program.details)
        self.values = Values(self.program, self.components)
        self.handled = Handled(self.program, application.error_handlers, problem_details=application.problem_details)
        self.requests = Requests(self.program, self.components, self.values)
        self.places: dict[tuple[str, str], tuple[str, int]] = {}
        self.schemes: dict[str, Mapping[str, Any]] = {}
        self._here = ""
        """The operation that is being written."""

    def write(self) -> Described:
        """The whole document."""
        paths: dict[str, dict[str, Any]] = {}
        tags: dict[str, str | None] = {}
        names = operation_ids([route.handler for route in self.application.routes])
        for route, name in zip(self.application.routes, names, strict=True):
            self._here = name
            if route.module is not None:
                tags.setdefault(tag(route.module), self.program.docs.get(route.module))
            for path in openapi_paths(route.path):
                self._route(route, name if path == openapi_path(route.path) else f"{name}_without", path, paths)
        info: dict[str, Any] = {"title": self.application.title, "version": self.application.version}
        if self.application.description:
            info["description"] = inspect.cleandoc(self.application.description)
        document: dict[str, Any] = {
            "openapi": "3.1.1" if self.version == "3.1" else "3.2.0",
            "info": info,
            "paths": paths,
        }
        if self.application.mounts:
            document["x-mounted"] = [*self.application.mounts]
        if tags:
            document["tags"] = [{"name": tag, **described(doc)} for tag, doc in tags.items()]
        self._here = ""
        responses = {"NotFound": self._not_found()}
        if self.application.method_not_allowed:
            responses["MethodNotAllowed"] = self._not_allowed()
        components: dict[str, Any] = {}
        if schemas := self.components.written(paths, responses):
            components["schemas"] = schemas
        components["responses"] = responses
        if self.schemes:
            components["securitySchemes"] = dict(sorted(self.schemes.items()))
        document["components"] = components
        return Described(document, sorted(self.values.problems), self.places)

    # -- one route

    def _route(self, route: RouteFacts, name: str, path: str, paths: dict[str, dict[str, Any]]) -> None:
        item = paths.setdefault(path, {})
        self.places.setdefault((name, ""), route.place)
        if route.websocket:
            item.setdefault("x-websocket", self._operation(route, name, path))
            return
        methods = _METHODS if route.method == "*" else (route.method,)
        for method in methods:
            # Of two routes the first registered one answers.
            key, home = method.lower(), item
            if key not in _FIXED and not (key == "query" and self.version != "3.1"):
                key = method
                home = item.setdefault(
                    "x-additional-operations" if self.version == "3.1" else "additionalOperations", {}
                )
            if key not in home:
                unique = name if len(methods) == 1 else f"{name}_{method.lower()}"
                home[key] = self._operation(route, unique, path)

    def _operation(self, route: RouteFacts, name: str, path: str) -> dict[str, Any]:
        function = self.program.functions.get(route.handler)
        if function is None:
            self.values.problems.add(
                Problem(
                    *route.place,
                    f"{name} answers with a function outside the program, {route.handler}: its answers are not known. "
                    "Write the handler in the program and call that function in it",
                )
            )
        operation: dict[str, Any] = {"operationId": name}
        if route.module is not None:
            operation["tags"] = [tag(route.module)]
        summary, description = prose(function[0].doc if function is not None else None)
        operation["summary"] = summary or words(name)
        if description:
            operation["description"] = description
        found = [*self._steps(route), *_within(route.errors, self.program.effects(route.handler))]
        if parameters := self.requests.parameters(path, found, parameter_patterns(route.path)):
            operation["parameters"] = parameters
        if not route.websocket:
            if body := self.requests.body(found):
                operation["requestBody"] = body
            operation["responses"] = self._responses(route, found, name)
        security = self._security(route)
        if security or route.public:
            operation["security"] = security
        return operation

    def _steps(self, route: RouteFacts) -> Iterator[Found]:
        for step in route.steps:
            yield from _within(step.errors, map(Found, step.answers))
            if step.function is not None:
                yield from _within(step.errors, self.program.effects(step.function))

    # -- authentication

    def _security(self, route: RouteFacts) -> list[dict[str, list[str]]]:
        demanded: dict[str, list[str]] = {}
        optional: dict[str, list[str]] = {}
        unknown = False
        for step in (*route.steps, StepFacts(route.handler)):
            security, is_optional = self._recognised(step)
            if security is None:
                unknown = unknown or step.authenticates
                continue
            name = security.name
            asked = [self.schemes[known].get("scheme") for known in (*demanded, *optional)]
            if step.security is None and security.scheme.get("scheme") in asked:
                continue  # whose token one before it has verified
            if self.schemes.get(name, security.scheme) != security.scheme:
                name = f"{name}_{(step.function or '').rpartition('.')[2] or 'other'}"
            self.schemes[name] = security.scheme
            (optional if is_optional or self._may_be_nobody(step) else demanded)[name] = []
        if unknown and not demanded:
            demanded, optional = optional, {}  # an authenticator that looks into the session
        if not demanded and not optional:
            return []
        return [demanded, {**demanded, **optional}] if optional else [demanded]

    def _may_be_nobody(self, step: StepFacts) -> bool:
        """True for an authenticator of the application's own that may return None:
        nobody in particular is let in too.
        """
        function, _ = self.program.functions.get(step.function or "", (None, ""))
        returns = function.returns if function is not None and step.authenticates else None
        return returns is not None and {"type": "null"} in returns.get("anyOf", (returns,))

    def _recognised(self, step: StepFacts) -> tuple[Security | None, bool]:
        """Return the security scheme of a step, and whether it is optional: its own, or that of an authenticator of the
        framework that it calls, or by its challenge, or by the parts of a request that it reads.
        """
        if step.security is not None:
            return step.security, step.optional
        found = self.program.effects(step.function) if step.function is not None else []
        for each in found:
            if isinstance(each.effect, Read) and each.effect.part == "security":
                called = self.application.authenticators[each.effect.name or ""]
                if called.security is not None:
                    return called.security, called.optional or is_caught(UNAUTHORIZED, each.effect.caught)
        for each in found:
            if isinstance(each.effect, Raise) and 401 in each.effect.status:
                for name, value in each.effect.headers.items():
                    scheme = str(value.get("const", "")).partition(" ")[0].lower()
                    if name.lower() == _CHALLENGE and scheme:
                        return Security(scheme, {"type": "http", "scheme": scheme}), step.optional
        if not step.authenticates:
            return None, step.optional
        for each in found:
            if isinstance(each.effect, Read) and each.effect.name is not None:
                where, _, _ = each.effect.part.partition("-")
                if where in ("header", "cookie"):
                    name = each.effect.name
                    return Security(name.lower(), {"type": "apiKey", "in": where, "name": name}), step.optional
        return None, step.optional

    # -- responses

    def _responses(self, route: RouteFacts, found: Sequence[Found], name: str) -> dict[str, Any]:
        staged = sorted({each.effect.name for each in found if isinstance(each.effect, StagedHeader)})
        responses: dict[str, dict[str, Any]] = {}
        for each in found:
            if isinstance(each.effect, Answer):
                self._answer(responses, each, each.effect, None, staged)
        errors = [(each, each.effect) for each in found if isinstance(each.effect, Raise)]
        limited = any(step.limits_bodies for step in route.steps)
        reads = [(each, each.effect) for each in found if isinstance(each.effect, Read)]
        for each, read in reads:
            errors += [(each, raised) for raised in implied([read], self.program.classes, limited=limited)]
        if ":" in route.path or "*" in route.path:
            errors.append((Found(UNEXPECTED), error(400, "Malformed path")))
        for each, raised in errors:
            self._error(responses, each, raised)
        self._unexpected(responses, route.errors)
        if set(responses) == {"default"} and route.handler in self.program.functions:
            path, line = self.program.functions[route.handler][1], self.program.functions[route.handler][0].line
            self.values.problems.add(
                Problem(
                    path, line, f"{name} sends nothing that can be seen here. Send on `res`, or call a function with it"
                )
            )
        return dict(sorted(responses.items()))

    def _answer(
        self,
        responses: dict[str, dict[str, Any]],
        each: Found,
        answer: Answer,
        raised: Raise | None,
        staged: Sequence[str] = (),
        at: Found | None = None,
    ) -> None:
        statuses = answer.status if answer.status is not None else (raised.status if raised is not None else None)
        if statuses is None:
            self.values.problem(
                each, "an error that was caught is answered here, and which is not known. Use @app.on_error"
            )
            return
        if answer.is_passed_on:
            self.values.problem(
                each, "a response is passed on, and which is not known. Make it here to have it described"
            )
            for key in ("2XX", "3XX", "4XX", "5XX"):
                responses.setdefault(key, {"description": "Passed on", "content": {"*/*": {"schema": {}}}})
            return
        if not statuses:
            self.values.problem(each, "the status of this answer is not known. Give a number, or a Literal type")
            return
        headers = {**answer.headers, **(raised.headers if raised is not None else {})}
        for status in statuses:
            key = str(status)
            place = each if at is None else at
            if place.path:
                self.places.setdefault((self._here, key), (place.path, place.effect.line))
            response = responses.setdefault(key, {"description": phrase(status)})
            for name in [*headers, *staged]:
                known = headers.get(name, {"type": "string"})
                schema = self.values.final({"type": "string"} if "const" in known else known, each)
                response.setdefault("headers", {}).setdefault(name, {"schema": schema})
            if answer.media_type is None:
                continue
            content = response.setdefault("content", {})
            if answer.item is not None:
                content["text/event-stream"] = self._events(self.values.final(answer.item, each))
                continue
            body = self.values.final(substituted(answer.body or {}, raised, status), each)
            if raised is not None:
                body = self._named(body)
            add_body(content, answer.media_type, body)

    def _events(self, event: Schema) -> Schema:
        """The media type of server-sent events, each with its data as JSON."""
        if self.version == "3.1":  # which knows no streams
            return {"schema": {"type": "string"}, "x-item-schema": event}
        plain = event.get("type") == "string"  # a string is sent as it is
        data: Schema = {"type": "string"}
        if not plain:
            data = {**data, "contentMediaType": "application/json", "contentSchema": event}
        item = {"type": "object", "properties": {"data": data}, "required": ["data"]}
        return {"itemSchema": item}

    def _error(self, responses: dict[str, dict[str, Any]], each: Found, raised: Raise) -> None:
        is_for_clients = CORE_ERROR[0] in raised.classes
        if is_for_clients and not raised.status:
            self.values.problem(each, "the status of this error is not known. Give a number, or a Literal type")
        if not raised.status and not self.handled.is_answered(raised, each.errors):
            return  # which is an unexpected one
        for found, answer in self.handled.answers(raised, each.errors):
            if answer.status is None and not raised.status:
                continue
            # The unknown value is in the error, or in the error handler.
            self._answer(responses, each if each.path or found is None else found, answer, raised, at=each)

    def _unexpected(self, responses: dict[str, dict[str, Any]], levels: Levels) -> None:
        """Any route may fail in a way that nobody foresaw: the answer to that is `default`."""
        found: dict[str, dict[str, Any]] = {}
        for each in self.handled.unexpected(levels):
            if isinstance(each.effect, Raise) and CORE_ERROR[0] in each.effect.classes:
                self._error(found, attrs.evolve(each, errors=levels), each.effect)
            elif isinstance(each.effect, Answer) and each.effect.status is not None and is_general(each.effect):
                self._answer(found, each, each.effect, UNEXPECTED)
        if not found:
            self._answer(found, Found(UNEXPECTED), self.handled.default, UNEXPECTED)
        default = responses.setdefault("default", {"description": "An error that nobody foresaw"})
        for response in found.values():
            for media, content in response.get("content", {}).items():
                add_body(default.setdefault("content", {}), media, content["schema"])

    def _not_found(self) -> dict[str, Any]:
        """The answer to a path that no route has."""
        name = self.application.not_found
        responses: dict[str, dict[str, Any]] = {}
        for each in self.program.effects(name) if name is not None else []:
            if isinstance(each.effect, Answer):
                self._answer(responses, each, each.effect, None)
            elif isinstance(each.effect, Raise):
                self._error(responses, each, each.effect)
        if name is None:  # which no error handler sees
            default = self.handled.default
            body = substituted(default.body or {}, NOT_FOUND, 404)
            self._answer(responses, Found(NOT_FOUND), Answer(0, (404,), default.media_type, body), None)
        return _whatever("No route has this path and method", responses)

    def _not_allowed(self) -> dict[str, Any]:
        """The answer to a path that has routes for other methods."""
        responses: dict[str, dict[str, Any]] = {}
        self._error(responses, Found(NOT_ALLOWED), NOT_ALLOWED)
        response = _whatever("The path has routes for other methods, which `Allow` names", responses)
        return {**response, "headers": {"Allow": {"schema": {"type": "string"}}}}

    def _named(self, body: Schema) -> Schema:
        """The body of an error as a component, called after its message; `Error` where that is any text."""
        properties = body.get("properties", {})
        for field in ("code", "error"):
            words = properties.get(field, {}).get("const")
            if isinstance(words, str) and (name := error_name(words)):
                return self.components.error(name, body)
        return self.components.error("Error", body) if properties else body


def _called(authenticators: Mapping[str, StepFacts]) -> ModuleFacts:
    """Authenticators of the framework as functions, so that the program's functions that call them answer as they
    do.
    """
    functions = [
        FunctionFacts(name, 0, None, (Read(0, "security", name), *facts.answers))
        for name, facts in authenticators.items()
    ]
    return ModuleFacts("", "", functions=tuple(functions))


def _whatever(description: str, responses: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Several responses as one, whatever their status."""
    result: dict[str, Any] = {"description": description}
    for response in responses.values():
        for media, content in response.get("content", {}).items():
            add_body(result.setdefault("content", {}), media, content.get("schema", {}))
    return result


def _within(levels: Levels, found: Iterable[Found]) -> Iterator[Found]:
    """Effects with the error handlers around them."""
    for each in found:
        yield attrs.evolve(each, errors=levels) if levels else each
