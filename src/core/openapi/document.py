"""From facts to an OpenAPI document, version 3.2 or 3.1 (https://spec.openapis.org/oas/).

A route answers with everything that happens on its way (`functions.py`), each error as the error handlers write it. A
value that nobody knows is `{}`, code that is not followed may answer anything, and each is a problem at its line.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from core.openapi.components import Components, Kept
from core.openapi.facts import (
    MAY_BE_EMPTY,
    Answer,
    ApplicationFacts,
    Effect,
    Open,
    Raise,
    Read,
    RouteFacts,
    Security,
    StepFacts,
)
from core.openapi.failures import CORE_ERROR, NOT_ALLOWED, NOT_FOUND, UNEXPECTED, default_body, error
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
from core.validation.schema import Schema

if TYPE_CHECKING:
    from core.openapi.followed import Followed

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_FIXED: Final = frozenset(["get", "put", "post", "delete", "options", "head", "patch", "trace"])
"""Methods with a place of their own in a path item; 3.2 has `query` and `additionalOperations` beside them."""
_CHALLENGE: Final = "www-authenticate"
_ANYTHING: Final = ("2XX", "3XX", "4XX", "5XX")


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

    document: dict[str, Any]
    problems: Sequence[Problem]
    places: Mapping[tuple[str, str], tuple[str, int]] = attrs.Factory(dict[tuple[str, str], tuple[str, int]])


def describe(
    application: ApplicationFacts,
    program: Followed,
    *,
    version: str = "3.2",
    kept: Mapping[str, Any] | None = None,
) -> Described:
    """The document of an application, and everything in it that is not known. `version` is "3.2" or "3.1".

    Operations and schemas are called as in `kept`, the document that is committed, where that has them.
    """
    return _Writer(application, program, version, kept or {}).write()


class _Writer:
    def __init__(self, application: ApplicationFacts, program: Followed, version: str, kept: Mapping[str, Any]) -> None:
        from core.openapi.functions import Reader  # which loads mypy

        self.application = application
        self.version = version
        self.program = program
        self.reader = Reader(program, application)
        self.problems: set[Problem] = set()
        self.kept = Kept(kept)
        self.components = Components(program.schemas.classes, self._problem)
        self.requests = Requests(program.schemas.classes, self.components, self._problem)
        self.places: dict[tuple[str, str], tuple[str, int]] = {}
        self.schemes: dict[str, Mapping[str, Any]] = {}
        self._here = ""
        """The operation that is being written."""

    def write(self) -> Described:
        """The whole document."""
        paths: dict[str, dict[str, Any]] = {}
        tags: dict[str, str | None] = {}
        for route, name in zip(self.application.routes, operation_ids(self.application.routes), strict=True):
            for path in openapi_paths(route.path):
                self._route(route, name if path == openapi_path(route.path) else f"{name}_without", path, paths, tags)
        for level in (
            self.application.error_handlers,
            *(level for route in self.application.routes for level in route.errors),
        ):
            for cls in level.keys() - self.reader.met - {*UNEXPECTED.classes}:
                if not cls.startswith("core."):
                    where, line = level[cls].place
                    name = cls.removeprefix("builtins.")
                    self._problem(
                        Effect(path=where, line=line),
                        f"nothing that is read raises {name}, so no operation "
                        "has what is answered here. Raise it, or another error, in the program where it comes from",
                    )
        info: dict[str, Any] = {"title": self.application.title, "version": self.application.version}
        if self.application.description:
            info["description"] = inspect.cleandoc(self.application.description)
        document: dict[str, Any] = {
            "openapi": "3.1.1" if self.version == "3.1" else "3.2.0",
            "info": info,
            "paths": paths,
        }
        if self.application.servers:
            document["servers"] = [{"url": url} for url in self.application.servers]
        if self.application.mounts:
            document["x-mounted"] = [*self.application.mounts]
        if tags:
            document["tags"] = [{"name": tag, **described(doc)} for tag, doc in tags.items()]
        self._here = ""
        responses = {"NotFound": self._not_found()}
        if self.application.method_not_allowed:
            responses["MethodNotAllowed"] = self._not_allowed()
        components: dict[str, Any] = {}
        if schemas := self.components.written(paths, responses, kept=self.kept):
            components["schemas"] = schemas
        components["responses"] = responses
        if self.schemes:
            components["securitySchemes"] = dict(sorted(self.schemes.items()))
        document["components"] = components
        return Described(document, sorted(self.problems), self.places)

    def _problem(self, at: Effect, message: str) -> None:
        """Add a problem at the line of an effect, if that is the program's."""
        if at.path:
            self.problems.add(Problem(at.path, at.line, message))

    # -- one route

    def _route(
        self,
        route: RouteFacts,
        name: str,
        path: str,
        paths: dict[str, dict[str, Any]],
        tags: dict[str, str | None],
    ) -> None:
        item = paths.setdefault(path, {})
        if route.websocket:
            if "x-websocket" not in item:
                item["x-websocket"] = self._operation(route, name, path, "websocket", tags)
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
                home[key] = self._operation(route, unique, path, key, tags)

    def _operation(
        self, route: RouteFacts, name: str, path: str, method: str, tags: dict[str, str | None]
    ) -> dict[str, Any]:
        before = self.kept.operation(path, method)
        self._here = name = route.operation_id or before.get("operationId") or name
        function = self.program.named.get(route.name, [None])[0]
        self.places.setdefault((name, ""), route.handler.place)
        operation: dict[str, Any] = {"operationId": name}
        named = route.tags or before.get("tags") or ([tag(route.module)] if route.module is not None else [])
        if named:
            operation["tags"] = [*named]
            for each in named:
                module = route.module if route.module is not None and each == tag(route.module) else None
                tags.setdefault(each, self.program.docstring_of(module) if module is not None else None)
        summary, description = prose(self.program.docstring_of(route.name))
        operation["summary"] = summary or words(name)
        if description:
            operation["description"] = description
        if route.deprecated:
            operation["deprecated"] = True
        found = self.reader.route(route)
        patterns = parameter_patterns(route.path)
        if parameters := self.requests.parameters(path, found, patterns):
            operation["parameters"] = parameters
        if not route.websocket:
            if body := self.requests.body(found):
                operation["requestBody"] = body
            if any(f"{{{parameter}}}" in path for parameter in patterns):
                # A path that does not match the pattern is one that no route has.
                found += self._missing()
            operation["responses"] = self._responses(route, found, name, function)
        security = self._security(route)
        if security or route.public:
            operation["security"] = security
        return operation

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
                name = f"{name}_{step.function.name.rpartition('.')[2] if step.function is not None else 'other'}"
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
        if step.function is None or not step.authenticates:
            return False
        return {"type": "null"} in (returned := self.reader.returned(step.function)).get("anyOf", (returned,))

    def _recognised(self, step: StepFacts) -> tuple[Security | None, bool]:
        """Return the security scheme of a step, and whether it is optional: its own, or that of an authenticator of the
        framework that it calls, or by the part of a request that it reads, or by its challenge.
        """
        if step.security is not None or step.function is None:
            return step.security, step.optional
        found = self.reader.alone(step.function)
        reads = [each for each in found if isinstance(each, Read) and each.name is not None]
        for each in reads:
            if each.part == "security":
                called = self.application.authenticators[each.name or ""]
                if called.security is not None:
                    return called.security, not each.required
        read = [(each.part.partition("-")[0], each.name or "") for each in reads]
        named = [(where, name) for where, name in read if where in ("header", "cookie", "query")]
        own = [(where, name) for where, name in named if name.lower() != "authorization"]
        if step.authenticates and own and len(own) == len(named):
            where, name = own[0]
            return Security(name.lower(), {"type": "apiKey", "in": where, "name": name}), step.optional
        for raised in found:
            if isinstance(raised, Raise) and 401 in raised.status:
                for name, value in raised.headers.items():
                    scheme = str(value.get("const", "")).partition(" ")[0].lower()
                    if name.lower() == _CHALLENGE and scheme:
                        return Security(scheme, {"type": "http", "scheme": scheme}), step.optional
        if step.authenticates and named:
            where, name = named[0]
            return Security(name.lower(), {"type": "apiKey", "in": where, "name": name}), step.optional
        return None, step.optional

    # -- responses

    def _responses(
        self, route: RouteFacts, found: Sequence[Effect], name: str, function: object
    ) -> dict[str, dict[str, Any]]:
        responses: dict[str, dict[str, Any]] = {}
        for each in found:
            if isinstance(each, Answer):
                self._answer(responses, each)
            elif isinstance(each, Open) and route.answers is None:
                self._open(responses, each)
        unexpected = self._unexpected(responses, route)
        raised = [each for each in found if isinstance(each, Raise)]
        if ":" in route.path or "*" in route.path:
            raised.append(attrs.evolve(error(400, "Malformed path"), levels=()))
        for each in raised:
            self._error(responses, each, unexpected)
        if route.answers is not None:
            self._declare(responses, route)
        elif set(responses) == {"default"} and function is not None:
            path, line = route.handler.place
            self._open(
                responses,
                Open(
                    path=path,
                    line=getattr(function, "line", line),
                    reason=f"{name} sends nothing that can be seen here. Send on `res`, call a function with it, or say "
                    "what is answered: describe(handler, answers={…})",
                ),
            )
        for response in responses.values():
            if "content" not in response:  # it is always empty
                response.pop(MAY_BE_EMPTY, None)
        return dict(sorted(responses.items()))

    def _declare(self, responses: dict[str, dict[str, Any]], route: RouteFacts) -> None:
        """The answers that `describe` says, in the place of those that were found."""
        path, line = route.handler.place
        for status, held in (route.answers or {}).items():
            responses.pop(str(status), None)
            schema = self.program.schema_of(held) if held.kind != "constant" else None
            media = None if schema is None else "application/json"
            self._answer(responses, Answer(path=path, line=line, status=(status,), media_type=media, body=schema))

    def _open(self, responses: dict[str, dict[str, Any]], each: Open) -> None:
        """Anything may be answered here, or any error."""
        self._problem(each, each.reason)
        for key in _ANYTHING if each.sends else _ANYTHING[2:]:
            responses.setdefault(key, {"description": "Not known", "content": {"*/*": {"schema": {}}}})

    def _answer(self, responses: dict[str, dict[str, Any]], answer: Answer, raised: Raise | None = None) -> None:
        at = raised if raised is not None and raised.path else answer
        headers = {**answer.headers, **(raised.headers if raised is not None else {})}
        for status in answer.status:
            key = str(status)
            if at.path:
                self.places.setdefault((self._here, key), (at.path, at.line))
            response = responses.setdefault(key, {"description": phrase(status)})
            for name, known in headers.items():
                schema = self.components.final({"type": "string"} if "const" in known else known, at)
                response.setdefault("headers", {}).setdefault(name, {"schema": schema})
            if answer.media_type is None:
                response[MAY_BE_EMPTY] = True
                continue
            content = response.setdefault("content", {})
            if answer.item is not None:
                content["text/event-stream"] = self._events(self.components.final(answer.item, at))
                continue
            body = self.components.final(answer.body or {}, at)
            add_body(content, answer.media_type, self._named(body, status) if raised is not None else body)

    def _events(self, event: Schema) -> Schema:
        """The media type of server-sent events."""
        if self.version == "3.1":  # which knows no streams
            data = event.get("properties", {}).get("data", {"type": "string"})
            return {"schema": {"type": "string"}, "x-item-schema": data.get("contentSchema", data)}
        return {"itemSchema": event}

    def _error(
        self, responses: dict[str, dict[str, Any]], raised: Raise, unexpected: Sequence[tuple[str, int]] = ()
    ) -> None:
        for answered, answer in self.reader.answers(raised):
            if answer is None:
                default = self._default(answered)
                if default is not None:
                    self._answer(responses, default, answered)
                    continue
            elif isinstance(answer, Answer):
                # An exception without a status that no branch is for is answered as one that nobody foresaw.
                if answered.status or (answer.path, answer.line) not in unexpected:
                    self._answer(responses, answer, answered)
                continue
            if CORE_ERROR in answered.classes and not answered.status:
                reason = "the status of this error is not known. Give a number, or a Literal type"
                self._open(responses, Open(path=answered.path, line=answered.line, reason=reason, sends=False))
            elif isinstance(answer, Open):
                self._open(responses, answer)

    def _default(self, raised: Raise) -> Answer | None:
        """The answer to an error that no error handler answers; None for one without a status."""
        problem = self.application.problem_details
        media = "application/problem+json" if problem else "application/json"
        if not raised.status:
            return None
        bodies = [default_body(raised, status, problem=problem) for status in raised.status]
        whole = bodies[0] if all(body == bodies[0] for body in bodies) else {"anyOf": bodies}
        return Answer(status=raised.status, media_type=media, body=whole)

    def _unexpected(self, responses: dict[str, dict[str, Any]], route: RouteFacts) -> Sequence[tuple[str, int]]:
        """What `default` says: any route may fail in a way that nobody foresaw. Returns where that is answered."""
        found: dict[str, dict[str, Any]] = {}
        places: list[tuple[str, int]] = []
        for answered, answer in self.reader.answers(attrs.evolve(UNEXPECTED, levels=route.errors)):
            if isinstance(answer, Open):
                self._open(responses, answer)
                continue
            whole = answer if answer is not None else self._default(answered)
            if whole is not None:
                places.append((whole.path, whole.line))
                self._answer(found, whole, answered)
        default = responses.setdefault("default", {"description": "An error that nobody foresaw"})
        for status, response in found.items():
            if int(status) < 500:
                responses.setdefault(status, response)
            for media, content in response.get("content", {}).items():
                add_body(default.setdefault("content", {}), media, content["schema"])
        return places

    def _missing(self) -> list[Effect]:
        """What happens to a path that no route has; the default answer is one that no error handler sees."""
        default = self._default(NOT_FOUND)
        assert default is not None
        return self.reader.not_found() or [default]

    def _not_found(self) -> dict[str, Any]:
        """The answer to a path that no route has."""
        responses: dict[str, dict[str, Any]] = {}
        for each in self._missing():
            if isinstance(each, Answer):
                self._answer(responses, each)
            elif isinstance(each, Raise):
                self._error(responses, each)
            elif isinstance(each, Open):
                self._open(responses, each)
        return _whatever("No route has this path and method", responses)

    def _not_allowed(self) -> dict[str, Any]:
        """The answer to a path that has routes for other methods."""
        responses: dict[str, dict[str, Any]] = {}
        self._error(responses, attrs.evolve(NOT_ALLOWED, levels=()))
        response = _whatever("The path has routes for other methods, which `Allow` names", responses)
        return {**response, "headers": {"Allow": {"schema": {"type": "string"}}}}

    def _named(self, body: Schema, status: int) -> Schema:
        """The body of an error as a component, called after its code or message, or after its status."""
        said = [each for field in ("code", "error", "message", "detail") for each in _said(body, field)]
        names = [name for each in (*said, phrase(status)) if (name := error_name(each))]
        return self.components.error(names or ["Error"], body) if "properties" in body else body


def _said(body: Schema, field: str) -> Iterator[str]:
    """The constants of a field of an error, those of objects inside it too."""
    for name, schema in body.get("properties", {}).items():
        if name == field and isinstance(schema.get("const"), str):
            yield schema["const"]
        yield from _said(schema, field)


def _whatever(description: str, responses: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Several responses as one, whatever their status."""
    result: dict[str, Any] = {"description": description}
    for response in responses.values():
        for media, content in response.get("content", {}).items():
            add_body(result.setdefault("content", {}), media, content.get("schema", {}))
    return result
