"""From facts to an OpenAPI document, version 3.2 or 3.1 (https://spec.openapis.org/oas/).

A route answers with what its handler sends and with what is raised on the way, by the handler, by everything that
it calls and by the middleware before it, each error as the application's error handler writes it. A value that nobody
knows is `{}` and a problem at its line.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import attrs

from core.openapi.components import Components, constrained
from core.openapi.facts import (
    Answer,
    Call,
    ClassFacts,
    Effect,
    FunctionFacts,
    ModuleFacts,
    Raise,
    Read,
    Schema,
    StagedHeader,
    any_of,
    is_object,
)
from core.openapi.failures import (
    CORE_ERROR,
    DEFAULT_ANSWER,
    NOT_FOUND,
    UNEXPECTED,
    error,
    implied,
    is_caught,
    substituted,
)
from core.routing.pattern import Pattern, parse

__all__ = [
    "ApplicationFacts",
    "Described",
    "Problem",
    "RouteFacts",
    "Security",
    "StepFacts",
    "describe",
    "openapi_path",
]

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_FIXED: Final = frozenset(["get", "put", "post", "delete", "options", "head", "patch", "trace"])
"""Methods with a place of their own in a path item; 3.2 has `query` and `additionalOperations` beside them."""
_SILENT_HEADERS: Final = frozenset(["accept", "authorization", "content-type", "cookie"])
"""Header parameters that OpenAPI says to leave out: other parts of a document say them."""
_BODIES: Final = frozenset(["json", "form", "form-name", "text", "bytes", "stream"])
_CHALLENGE: Final = "www-authenticate"


@attrs.frozen
class Security:
    """One way to authenticate: `scheme` is a security scheme object of OpenAPI, under `name` in the document."""

    name: str
    scheme: Mapping[str, Any]


@attrs.frozen
class StepFacts:
    """A middleware or an authenticator before a handler: the function behind it, and what it declares to answer."""

    function: str | None = None
    answers: tuple[Answer | Raise | StagedHeader, ...] = ()
    security: Security | None = None
    authenticates: bool = False
    optional: bool = False
    """True if a request without credentials goes on."""
    limits_bodies: bool = False


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


@attrs.frozen
class ApplicationFacts:
    """The application: its routes, and the functions that answer errors and paths that no route has."""

    routes: Sequence[RouteFacts]
    title: str
    version: str = "0.1.0"
    description: str | None = None
    error_handler: str | None = None
    not_found: str | None = None


@attrs.frozen(order=True)
class Problem:
    """Something that the document cannot say, at its line."""

    path: str
    line: int
    message: str


@attrs.frozen
class Described:
    """A document, what is missing in it, and where its operations and answers stand in the code.

    `places` has the file and line of each operation under its id and "", and of each of its answers under the status.
    """

    document: dict[str, Any]
    problems: Sequence[Problem]
    places: Mapping[tuple[str, str], tuple[str, int]] = attrs.Factory(dict[tuple[str, str], tuple[str, int]])


def describe(application: ApplicationFacts, modules: Iterable[ModuleFacts], *, version: str = "3.2") -> Described:
    """The document of an application, and everything in it that is not known. `version` is "3.2" or "3.1"."""
    return _Writer(application, modules, version).write()


@attrs.frozen
class _Found:
    """An effect with the file of the function that has it; "" for one of the framework's own."""

    effect: Effect
    path: str = ""
    function: str = ""


class _Writer:
    def __init__(self, application: ApplicationFacts, modules: Iterable[ModuleFacts], version: str) -> None:
        self.application = application
        self.version = version
        self.functions: dict[str, tuple[FunctionFacts, str]] = {}
        self.classes: dict[str, ClassFacts] = {}
        self.docs: dict[str, str | None] = {}
        self.overrides: dict[str, list[str]] = {}
        details: dict[str, Mapping[str, Schema]] = {}
        for module in modules:
            self.docs[module.module] = module.doc
            for function in module.functions:
                self.functions[function.name] = (function, module.path)
            self.classes.update(module.classes)
            details.update(module.details)
            for method, others in module.overrides.items():
                self.overrides.setdefault(method, []).extend(others)
        self.problems: set[Problem] = set()
        self.places: dict[tuple[str, str], tuple[str, int]] = {}
        self.schemes: dict[str, Mapping[str, Any]] = {}
        self.components = Components(self.classes, details)
        self._flat: dict[str, list[_Found]] = {}
        self._here = ""
        """The operation that is being written."""

    def write(self) -> Described:
        """The whole document."""
        paths: dict[str, dict[str, Any]] = {}
        tags: dict[str, str | None] = {}
        names = _operation_ids(self.application.routes)
        for route, name in zip(self.application.routes, names, strict=True):
            self._here = name
            if route.module is not None:
                tags.setdefault(_tag(route.module), self.docs.get(route.module))
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
        if tags:
            document["tags"] = [{"name": tag, **_described(doc)} for tag, doc in tags.items()]
        self._here = ""
        responses = {"NotFound": self._not_found()}
        components: dict[str, Any] = {}
        if schemas := self.components.written(paths, responses):
            components["schemas"] = schemas
        components["responses"] = responses
        if self.schemes:
            components["securitySchemes"] = dict(sorted(self.schemes.items()))
        document["components"] = components
        return Described(document, sorted(self.problems), self.places)

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
        function = self.functions.get(route.handler)
        if function is None:
            self.problems.add(
                Problem(
                    *route.place,
                    f"{name} answers with a function outside the program, {route.handler}: what it answers is not known. "
                    "Write the handler in the program and call that function in it",
                )
            )
        operation: dict[str, Any] = {"operationId": name}
        if route.module is not None:
            operation["tags"] = [_tag(route.module)]
        summary, description = _prose(function[0].doc if function is not None else None)
        operation["summary"] = summary or _words(name)
        if description:
            operation["description"] = description
        found = [*self._steps(route), *self._effects(route.handler)]
        if parameters := self._parameters(path, found):
            operation["parameters"] = parameters
        if not route.websocket:
            if body := self._request_body(found):
                operation["requestBody"] = body
            operation["responses"] = self._responses(route, found, name)
        security = self._security(route)
        if security or route.public:
            operation["security"] = security
        return operation

    def _steps(self, route: RouteFacts) -> Iterator[_Found]:
        for step in route.steps:
            for answer in step.answers:
                yield _Found(answer)
            if step.function is not None:
                yield from self._effects(step.function)

    def _effects(self, name: str) -> list[_Found]:
        """The effects of a function and of all that it calls, without the errors that are caught on the way."""
        if name in self._flat:
            return self._flat[name]
        self._flat[name] = []  # one that calls itself has nothing new to say
        found = self.functions.get(name)
        result: list[_Found] = []
        for effect in found[0].effects if found is not None else ():
            match effect:
                case Call():
                    for inner in self._effects(effect.target):
                        raised = inner.effect
                        if isinstance(raised, Raise):
                            if effect.classes and inner.function == effect.target:
                                raised = attrs.evolve(raised, classes=effect.classes)
                                inner = attrs.evolve(inner, effect=raised, function=name)
                            if is_caught(raised, effect.caught):
                                continue
                        elif isinstance(raised, Read) and effect.caught:
                            inner = attrs.evolve(
                                inner, effect=attrs.evolve(raised, caught=(*raised.caught, *effect.caught))
                            )
                        result.append(inner)
                case Raise() if is_caught(effect, effect.caught):
                    pass
                case _:
                    result.append(_Found(effect, found[1] if found is not None else "", name))
        for other in self.overrides.get(name, ()):
            result += self._effects(other)
        self._flat[name] = result
        return result

    # -- authentication

    def _security(self, route: RouteFacts) -> list[dict[str, list[str]]]:
        demanded: dict[str, list[str]] = {}
        optional: dict[str, list[str]] = {}
        unknown = False
        for step in route.steps:
            security = step.security or self._recognised(step)
            if security is None:
                unknown = unknown or step.authenticates
                continue
            name = security.name
            if self.schemes.get(name, security.scheme) != security.scheme:
                name = f"{name}_{(step.function or '').rpartition('.')[2] or 'other'}"
            self.schemes[name] = security.scheme
            (optional if step.optional or self._may_be_nobody(step) else demanded)[name] = []
        if unknown and not demanded:
            demanded, optional = optional, {}  # an authenticator that looks into the session
        if not demanded and not optional:
            return []
        return [demanded, {**demanded, **optional}] if optional else [demanded]

    def _may_be_nobody(self, step: StepFacts) -> bool:
        """True for an authenticator of the application's own that may return None: nobody in particular is let in too."""
        function, _ = self.functions.get(step.function or "", (None, ""))
        returns = function.returns if function is not None and step.authenticates else None
        return returns is not None and {"type": "null"} in returns.get("anyOf", ())

    def _recognised(self, step: StepFacts) -> Security | None:
        """Return the security scheme of the application's own authenticator: by its challenge, or by the parts of a
        request it reads.
        """
        found = self._effects(step.function) if step.function is not None else []
        for each in found:
            if isinstance(each.effect, Raise) and 401 in each.effect.status:
                for name, value in each.effect.headers.items():
                    scheme = str(value.get("const", "")).partition(" ")[0].lower()
                    if name.lower() == _CHALLENGE and scheme:
                        return Security(scheme, {"type": "http", "scheme": scheme})
        if not step.authenticates:
            return None
        for each in found:
            if isinstance(each.effect, Read) and each.effect.name is not None:
                where, _, _ = each.effect.what.partition("-")
                if where in ("header", "cookie"):
                    name = each.effect.name
                    return Security(name.lower(), {"type": "apiKey", "in": where, "name": name})
        return None

    # -- requests

    def _parameters(self, path: str, found: Sequence[_Found]) -> list[dict[str, Any]]:
        result: dict[tuple[str, str], dict[str, Any]] = {}
        for name in re.findall(r"\{([^}]+)\}", path):
            result["path", name] = {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            if name == "path" and path.endswith("{path}"):
                result["path", name]["description"] = "The rest of the path, slashes included."
        for each in found:
            if not isinstance(each.effect, Read):
                continue
            read = each.effect
            where, _, single = read.what.partition("-")
            if single and where != "form" and read.name is not None:
                if where == "header" and read.name.lower() in _SILENT_HEADERS:
                    continue
                key = (where, read.name.lower() if where == "header" else read.name)
                parameter: dict[str, Any] = {
                    "name": read.name,
                    "in": where,
                    "schema": read.schema or {"type": "string"},
                }
                if key not in result:
                    result[key] = parameter
                elif parameter["schema"].get("type") == "array" and result[key]["schema"] == {"type": "string"}:
                    result[key]["schema"] = parameter["schema"]
                if read.required:
                    result[key]["required"] = True
            elif read.what in ("query", "params", "headers") and read.schema is not None:
                place = {"params": "path", "headers": "header"}.get(read.what, "query")
                for field in self._fields(read.schema, place, each):
                    key = (place, field["name"])
                    if place != "path" or key in result:
                        result[key] = {**result.get(key, {}), **field}
        return list(result.values())

    def _fields(self, schema: Schema, place: str, each: _Found) -> Iterator[dict[str, Any]]:
        """Each field of a class that a query string is read into."""
        facts = self.classes.get(schema.get("$class", ""))
        if facts is None:
            self._problem(each, f"the {place} is read into a type without fields. Read it into an attrs class")
            return
        told = self.components.details_of(schema["$class"])
        for field in facts.fields:
            if not field.is_read:
                continue
            name = field.name.replace("_", "-") if place == "header" else field.name
            parameter: dict[str, Any] = {"name": name, "in": place}
            whole = constrained(field.schema, told.get(field.attribute))
            if "description" in whole:
                parameter["description"] = whole.pop("description")
            if place == "path" or not field.has_default:
                parameter["required"] = True
            parameter["schema"] = self._final(whole, each, reading=True)
            yield parameter

    def _request_body(self, found: Sequence[_Found]) -> dict[str, Any] | None:
        content: dict[str, Any] = {}
        fields: dict[str, Schema] = {}
        for each in found:
            if not isinstance(each.effect, Read) or each.effect.what not in _BODIES:
                continue
            read = each.effect
            schema = self._final(read.schema, each, reading=True) if read.schema is not None else {}
            match read.what:
                case "json":
                    if read.schema is None:
                        self._problem(each, "the body is read as JSON of any type. Say which: await req.json(T)")
                    _add(content, "application/json", schema)
                case "form" | "form-name":
                    for media in ("application/x-www-form-urlencoded", "multipart/form-data"):
                        content.setdefault(media, {"schema": {"type": "object"}})
                        if read.what == "form" and schema:
                            content[media] = {"schema": schema}
                    if read.what == "form-name" and read.name is not None:
                        fields.setdefault(read.name, schema)
                case "text":
                    _add(content, "text/plain", {"type": "string"})
                case _:
                    _add(
                        content,
                        "application/octet-stream",
                        {"type": "string", "contentMediaType": "application/octet-stream"},
                    )
        for media in content:
            if fields and media in ("application/x-www-form-urlencoded", "multipart/form-data"):
                if "contentMediaType" in str(fields) and media != "multipart/form-data":
                    continue
                own = {"type": "object", "properties": fields}
                read_into = content[media]["schema"]
                content[media] = {"schema": own if read_into == {"type": "object"} else {"allOf": [read_into, own]}}
        return {"required": True, "content": content} if content else None

    # -- responses

    def _responses(self, route: RouteFacts, found: Sequence[_Found], name: str) -> dict[str, Any]:
        staged = sorted({each.effect.name for each in found if isinstance(each.effect, StagedHeader)})
        responses: dict[str, dict[str, Any]] = {}
        for each in found:
            if isinstance(each.effect, Answer):
                self._answer(responses, each, each.effect, None, staged)
        errors = [(each, each.effect) for each in found if isinstance(each.effect, Raise)]
        limited = any(step.limits_bodies for step in route.steps)
        reads = [(each, each.effect) for each in found if isinstance(each.effect, Read)]
        for each, read in reads:
            errors += [(each, raised) for raised in implied([read], self.classes, limited=limited)]
        if ":" in route.path or "*" in route.path:
            errors.append((_Found(UNEXPECTED), error(400, "Malformed path")))
        for each, raised in errors:
            self._error(responses, each, raised)
        self._unexpected(responses)
        if set(responses) == {"default"} and route.handler in self.functions:
            path, line = self.functions[route.handler][1], self.functions[route.handler][0].line
            self.problems.add(
                Problem(
                    path, line, f"{name} sends nothing that can be seen here. Send on `res`, or call a function with it"
                )
            )
        return dict(sorted(responses.items()))

    def _answer(
        self,
        responses: dict[str, dict[str, Any]],
        each: _Found,
        answer: Answer,
        raised: Raise | None,
        staged: Sequence[str] = (),
        at: _Found | None = None,
    ) -> None:
        statuses = answer.status if answer.status is not None else (raised.status if raised is not None else None)
        if statuses is None:
            self._problem(each, "an error that was caught is answered here, and which is not known. Use @app.on_error")
            return
        if not statuses:
            self._problem(each, "the status of this answer is not known. Give a number, or a Literal type")
            return
        headers = {**answer.headers, **(raised.headers if raised is not None else {})}
        for status in statuses:
            key = str(status)
            place = each if at is None else at
            if place.path:
                self.places.setdefault((self._here, key), (place.path, place.effect.line))
            response = responses.setdefault(key, {"description": _phrase(status)})
            for name in [*headers, *staged]:
                known = headers.get(name, {"type": "string"})
                schema = self._final({"type": "string"} if "const" in known else known, each)
                response.setdefault("headers", {}).setdefault(name, {"schema": schema})
            if answer.media_type is None:
                continue
            content = response.setdefault("content", {})
            if answer.item is not None:
                content["text/event-stream"] = self._events(self._final(answer.item, each))
                continue
            body = self._final(substituted(answer.body or {}, raised, status), each)
            if raised is not None:
                body = self._named(body)
            _add(content, answer.media_type, body)

    def _events(self, event: Schema) -> Schema:
        """The media type of server-sent events, each with its data as JSON."""
        if self.version == "3.1":  # which knows no streams
            return {"schema": {"type": "string"}, "x-item-schema": event}
        plain = event.get("type") == "string"  # a text is sent as it is
        data: Schema = {"type": "string"}
        if not plain:
            data = {**data, "contentMediaType": "application/json", "contentSchema": event}
        item = {"type": "object", "properties": {"data": data}, "required": ["data"]}
        return {"itemSchema": item}

    def _error(self, responses: dict[str, dict[str, Any]], each: _Found, raised: Raise) -> None:
        is_for_clients = CORE_ERROR[0] in raised.classes
        if is_for_clients and not raised.status:
            self._problem(each, "the status of this error is not known. Give a number, or a Literal type")
        if not raised.status and not self._is_handled(raised):
            return  # which is an unexpected one
        for found, answer in self._handled(raised):
            if answer.status is None and not raised.status:
                continue
            # What is not known stands in the error, or in the error handler.
            self._answer(responses, each if each.path or found is None else found, answer, raised, at=each)

    def _is_handled(self, raised: Raise) -> bool:
        handler = self.application.error_handler
        return handler is not None and any(
            _shares(raised, found.effect.errors) for found in self._effects(handler) if isinstance(found.effect, Answer)
        )

    def _handled(self, raised: Raise) -> Iterator[tuple[_Found | None, Answer]]:
        """Return the application's answer to an error: from its own handler, or the default answer."""
        handler = self.application.error_handler
        answers = [
            (found, found.effect)
            for found in (self._effects(handler) if handler is not None else [])
            if isinstance(found.effect, Answer)
        ]
        # The first branch that is for an error of this class answers it, as in the code.
        first = next((answer.errors for _, answer in answers if _shares(raised, answer.errors)), ())
        chosen = [(found, answer) for found, answer in answers if answer.errors == first]
        if CORE_ERROR[0] in raised.classes and not first:
            chosen = [(found, answer) for found, answer in chosen if answer.status is None] or chosen
        yield from chosen
        if not chosen:
            yield None, DEFAULT_ANSWER

    def _unexpected(self, responses: dict[str, dict[str, Any]]) -> None:
        """Any route may fail in a way that nobody foresaw: the answer to that is `default`."""
        found: dict[str, dict[str, Any]] = {}
        handler = self.application.error_handler
        effects = self._effects(handler) if handler is not None else []
        for each in effects:
            if isinstance(each.effect, Raise) and CORE_ERROR[0] in each.effect.classes:
                self._error(found, each, each.effect)
            elif isinstance(each.effect, Answer) and each.effect.status is not None and _is_general(each.effect):
                self._answer(found, each, each.effect, UNEXPECTED)
        if not found:
            for _, answer in [(None, DEFAULT_ANSWER)]:
                self._answer(found, _Found(UNEXPECTED), answer, UNEXPECTED)
        default = responses.setdefault("default", {"description": "An error that nobody foresaw"})
        for response in found.values():
            for media, content in response.get("content", {}).items():
                _add(default.setdefault("content", {}), media, content["schema"])

    def _not_found(self) -> dict[str, Any]:
        """Return the answers to a path that no route has."""
        name = self.application.not_found
        responses: dict[str, dict[str, Any]] = {}
        for each in self._effects(name) if name is not None else [_Found(NOT_FOUND)]:
            if isinstance(each.effect, Answer):
                self._answer(responses, each, each.effect, None)
            elif isinstance(each.effect, Raise):
                self._error(responses, each, each.effect)
        result: dict[str, Any] = {"description": "No route has this path and method"}
        for response in responses.values():
            for media, content in response.get("content", {}).items():
                _add(result.setdefault("content", {}), media, content.get("schema", {}))
        return result

    # -- schemas

    def _final(self, schema: Schema, each: _Found, *, reading: bool = False) -> Schema:
        def unknown(reason: str) -> None:
            self._problem(each, f"the type of a value is not known ({reason}). Give it a type")

        return self.components.final(self._resolved(schema, unknown, ()), unknown, reading=reading)

    def _resolved(self, schema: Schema, unknown: Callable[[str], None], seen: tuple[str, ...]) -> Schema:
        """A schema without what stands for another one: what a function returns, objects laid over each other."""
        if "$returns" in schema:
            name = schema["$returns"]
            found = self.functions.get(name)
            if found is None or found[0].returns is None or name in seen:
                return self._resolved(schema["$otherwise"], unknown, seen)
            return self._resolved(found[0].returns, unknown, (*seen, name))
        if "$merge" in schema:
            return self._merged([self._resolved(part, unknown, seen) for part in schema["$merge"]])
        result: Schema = {}
        for key, value in schema.items():
            if key == "properties":
                result[key] = {name: self._resolved(part, unknown, seen) for name, part in value.items()}
            elif key in ("items", "additionalProperties") and is_object(value):
                result[key] = self._resolved(value, unknown, seen)
            elif key == "anyOf":
                result = {**result, **any_of([self._resolved(part, unknown, seen) for part in value])}
            elif key == "prefixItems":
                result[key] = [self._resolved(part, unknown, seen) for part in value]
            else:
                result[key] = value
        return result

    def _merged(self, parts: Sequence[Schema]) -> Schema:
        """Several objects as one; of two properties of one name the later counts, as in Python."""
        properties: dict[str, Schema] = {}
        required: list[str] = []
        others: list[Schema] = []
        for part in parts:
            alternatives = [self._whole(each) for each in part.get("anyOf", [part])]
            for each in alternatives:
                extra = each.get("additionalProperties")
                if extra is None and "properties" not in each and each != {"type": "null"}:
                    extra = each if "$unknown" in each else {"$unknown": "what is unpacked here"}
                certain = set[str](each.get("required", ()) if len(alternatives) == 1 else ())
                for name, schema in each.get("properties", {}).items():
                    earlier = properties.get(name)
                    properties[name] = schema if earlier is None or name in certain else any_of([earlier, schema])
                    if name in certain and name not in required:
                        required.append(name)
                if extra is not None:
                    others.append(extra)
                    for name in properties.keys() - each.get("properties", {}).keys():
                        properties[name] = any_of([properties[name], extra])
        result: Schema = {"type": "object", "properties": properties, "required": required}
        if others:
            result["additionalProperties"] = any_of(others)
        return result

    def _whole(self, schema: Schema) -> Schema:
        name = schema.get("$class", "")
        return self.components.object_of(name) if name in self.classes else schema

    def _named(self, body: Schema) -> Schema:
        """The body of an error as a component, called after what it says; `Error` where that is any text."""
        properties = body.get("properties", {})
        for field in ("code", "error"):
            words = properties.get(field, {}).get("const")
            if isinstance(words, str) and (name := _pascal(words)):
                return self.components.error(name, body)
        return self.components.error("Error", body) if properties else body

    def _problem(self, each: _Found, message: str) -> None:
        if each.path:
            self.problems.add(Problem(each.path, each.effect.line, message))


# Errors -------------------------------------------------------------------------------------------------------------


def _shares(raised: Raise, kinds: Sequence[str]) -> bool:
    return not set(raised.classes).isdisjoint(kinds)


def _is_general(answer: Answer) -> bool:
    return not answer.errors or not set(answer.errors).isdisjoint(UNEXPECTED.classes)


def _pascal(words: str) -> str:
    """The name of an error by what it says: `EMAIL_TAKEN` and `Email taken` are `EmailTakenError`."""
    parts = re.findall(r"[A-Za-z0-9]+", words)
    name = "".join(part[:1].upper() + (part[1:].lower() if words.isupper() else part[1:]) for part in parts[:8])
    if not name or name[0].isdigit():
        return ""
    return name if name.endswith("Error") else f"{name}Error"


# Small things -------------------------------------------------------------------------------------------------------


def openapi_path(path: str) -> str:
    """`/users/:id` as OpenAPI writes it: `/users/{id}`. A rest is called `path`, other wildcards `any1`, `any2` and so on."""
    return _written(parse(path))


def openapi_paths(path: str) -> list[str]:
    """The same with each optional parameter left out too, since OpenAPI knows none in a path."""
    return [_written(variant) for variant in parse(path).variants]


def _written(pattern: Pattern) -> str:
    names = {index: name for name, index in pattern.names}
    unnamed = [index for index, part in enumerate(pattern.parts) if part is None and index not in names]
    names |= {index: f"any{number}" for number, index in enumerate(unnamed, 1)}
    parts = [f"{{{names[index]}}}" if part is None else part for index, part in enumerate(pattern.parts)]
    return "/" + "/".join([*parts, "{path}"] if pattern.rest else parts)


def _add(content: dict[str, Any], media_type: str, schema: Schema) -> None:
    """Another body of a media type: the alternatives stand side by side."""
    before = content.get(media_type, {}).get("schema")
    content[media_type] = {"schema": schema if before is None else any_of([before, schema])}


def _operation_ids(routes: Sequence[RouteFacts]) -> list[str]:
    """The names of the handlers; with their module's where two are called the same, then with a number."""
    last = [route.handler.rpartition(".")[2] for route in routes]
    names: list[str] = []
    for route, name in zip(routes, last, strict=True):
        if last.count(name) > 1:
            parts = route.handler.replace(".<locals>", "").split(".")
            name = "_".join(parts[-2:])
        unique, number = name, 1
        while unique in names:
            number += 1
            unique = f"{name}_{number}"
        names.append(unique)
    return names


def _tag(module: str) -> str:
    return module.rpartition(".")[2]


def _described(doc: str | None) -> dict[str, str]:
    return {"description": inspect.cleandoc(doc)} if doc else {}


def _prose(doc: str | None) -> tuple[str, str]:
    """A docstring's first paragraph on one line, and the rest of it."""
    if not doc:
        return "", ""
    first, _, rest = inspect.cleandoc(doc).partition("\n\n")
    return " ".join(first.split()), rest.strip()


def _words(name: str) -> str:
    return name.replace("_", " ").strip().capitalize()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "An answer of the application"
