"""The responses of an operation: everything that is answered on its way, each error as the error handlers write it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import attrs

from core.errors import phrase_of
from core.http.json import JsonObject
from core.openapi.components import Components
from core.openapi.facts import MAY_BE_EMPTY, Answer, Effect, Open, Raise, RouteFacts
from core.openapi.failures import NOT_FOUND, UNEXPECTED
from core.openapi.functions import Reader
from core.openapi.requests import add_body
from core.validation.schema import Schema

_ANYTHING: Final = ("2XX", "3XX", "4XX", "5XX")


class Responses:
    """The responses of one document. `places` has where each of them stands in the code, as `Described` says."""

    def __init__(self, reader: Reader, components: Components, version: str) -> None:
        self.reader = reader
        self.components = components
        self.version = version
        self.places: dict[tuple[str, str], tuple[str, int]] = {}
        self._here = ""
        """The operation that is being written."""

    def of(self, route: RouteFacts, found: Sequence[Effect], name: str) -> dict[str, JsonObject]:
        """The responses of a route, by status, of everything that happens on its way."""
        self._here = name
        responses: dict[str, JsonObject] = {}
        errors = [each for each in found if isinstance(each, Raise)]
        for each in found:
            if isinstance(each, Answer) or (isinstance(each, Open) and route.said.answers is None):
                self._add(responses, each)
        unexpected = self._unexpected(responses, route)
        for each in errors:
            self._add(responses, each, unexpected)
        if route.said.answers is not None:
            self._declare(responses, route)
        elif set(responses) == {"default"} and (functions := self.reader.program.named.get(route.name)):
            reason = (
                f"{name} sends nothing that can be seen here. Send on `res`, call a function with it, or say what is "
                "answered: describe(handler, answers={…})"
            )
            self._open(responses, Open(path=route.handler.place[0], line=functions[0].line, reason=reason))
        for status, response in responses.items():
            if f"{status[0]}XX" in responses:
                # A status of its own comes before a range, and what is not known may answer that status as well.
                response["content"] = {"*/*": {"schema": {}}}
            if "content" not in response:  # it is always empty
                response.pop(MAY_BE_EMPTY, None)
        return dict(sorted(responses.items()))

    def _declare(self, responses: dict[str, JsonObject], route: RouteFacts) -> None:
        """The answers that `describe` says, in the place of those that were found."""
        path, line = route.handler.place
        for status, held in (route.said.answers or {}).items():
            responses.pop(str(status), None)
            schema = self.reader.program.declared(held) if held.kind != "constant" else None
            media = None if schema is None else "application/json"
            self._answer(responses, Answer(path=path, line=line, status=(status,), media_type=media, body=schema))

    def _open(self, responses: dict[str, JsonObject], each: Open) -> None:
        """Anything may be answered here, or any error."""
        self.components.problem(each, each.reason)
        if not each.answers:
            return
        for key in _ANYTHING if each.sends else _ANYTHING[2:]:
            responses.setdefault(key, {"description": "Not known", "content": {"*/*": {"schema": {}}}})

    def _answer(self, responses: dict[str, JsonObject], answer: Answer, raised: Raise | None = None) -> None:
        at = raised if raised is not None and raised.path else answer
        for status in answer.status:
            key = str(status)
            if at.path:
                self.places.setdefault((self._here, key), (at.path, at.line))
            response = responses.setdefault(key, {"description": phrase(status)})
            self._add_headers(response, answer, raised)
            if answer.media_type is None:
                response[MAY_BE_EMPTY] = True
                continue
            content = response.setdefault("content", {})
            if answer.item is not None:
                content["text/event-stream"] = self._events(self.components.final(answer.item, at))
                continue
            body = self.components.final(answer.body or {}, at)
            is_error = raised is not None or not answer.path  # the framework's own has no place in the program
            add_body(content, answer.media_type, self._named(body, status) if is_error else body)

    def _add_headers(self, response: JsonObject, answer: Answer, raised: Raise | None) -> None:
        at = raised if raised is not None and raised.path else answer
        for name, known in {**answer.headers, **(raised.headers if raised is not None else {})}.items():
            schema = self.components.final({"type": "string"} if "const" in known else known, at)
            response.setdefault("headers", {}).setdefault(name, {"schema": schema})

    def _events(self, event: Schema) -> Schema:
        if self.version == "3.1":  # which knows no streams
            data = event.get("properties", {}).get("data", {"type": "string"})
            return {"schema": {"type": "string"}, "x-item-schema": data.get("contentSchema", data)}
        return {"itemSchema": event}

    def _add(
        self, responses: dict[str, JsonObject], effect: Effect, unexpected: Collection[tuple[str, int, int]] = ()
    ) -> None:
        match effect:
            case Answer():
                self._answer(responses, effect)
            case Open():
                self._open(responses, effect)
            case Raise():
                for raised, answer in self.reader.answers(effect):
                    if isinstance(answer, Open):
                        self._open(responses, answer)
                        continue
                    found: dict[str, JsonObject] = {}
                    for status in answer.status:
                        # An exception without a status that no branch is for is answered as one that nobody foresaw.
                        shared = not raised.status and (answer.path, answer.line, status) in unexpected
                        one = attrs.evolve(answer, status=(status,))
                        self._answer(found if shared else responses, one, raised)
                    _add_to_default(responses, found)
            case _:
                pass

    def _unexpected(self, responses: dict[str, JsonObject], route: RouteFacts) -> Collection[tuple[str, int, int]]:
        """What `default` says: any route may fail in a way that nobody foresaw. Returns its lines and statuses."""
        found: dict[str, JsonObject] = {}
        places: set[tuple[str, int, int]] = set()
        for answered, answer in self.reader.answers(
            attrs.evolve(UNEXPECTED, levels=route.errors, headers=self.reader.staged)
        ):
            if isinstance(answer, Open):
                self._open(responses, answer)
                continue
            places |= {(answer.path, answer.line, status) for status in answer.status}
            self._answer(found, answer, answered)
        responses.setdefault("default", {"description": "An error that nobody foresaw"})
        _add_to_default(responses, found)
        return places

    def missing(self) -> list[Effect]:
        """What happens to a path that no route has; the default answer is one that no error handler sees."""
        own = self.reader.application.not_found
        return (self.reader.alone(own, status=404) if own is not None else []) or [self.reader.default(NOT_FOUND)]

    def unmatched(self, description: str, found: Sequence[Effect]) -> JsonObject:
        """What is answered to a path that no route has, for what is `found` there."""
        self._here = ""
        responses: dict[str, JsonObject] = {}
        for each in self.reader.unmatched(found):
            self._add(responses, each)
        result: JsonObject = {"description": description}
        for response in responses.values():
            if headers := response.get("headers"):
                result["headers"] = {**result.get("headers", {}), **headers}
            for media, content in response.get("content", {}).items():
                add_body(result.setdefault("content", {}), media, content.get("schema", {}))
        return result

    def _named(self, body: Schema, status: int) -> Schema:
        """The body of an error as a component, called after its code or message, or after its status."""
        said = [each for field in ("code", "error", "message", "detail") for each in _said(body, field)]
        names = [name for each in (*said, error_phrase(status)) if (name := error_name(each))]
        return self.components.error(names or ["Error"], body, self._here) if "properties" in body else body


def _said(body: Schema, field: str) -> Iterator[str]:
    """The constants of a field of an error, those of objects inside it too."""
    for name, schema in body.get("properties", {}).items():
        if name == field and isinstance(schema.get("const"), str):
            yield schema["const"]
        yield from _said(schema, field)


def _add_to_default(responses: dict[str, JsonObject], found: Mapping[str, JsonObject]) -> None:
    """Let `default` say what is answered to an error that nobody foresaw; a status below 500 has its own place."""
    for status, response in found.items():
        default = responses["default"]
        if int(status) < 500:
            responses.setdefault(status, response)
        for name, header in response.get("headers", {}).items():
            default.setdefault("headers", {}).setdefault(name, header)
        for media, content in response.get("content", {}).items():
            add_body(default.setdefault("content", {}), media, content["schema"])


def phrase(status: int) -> str:
    """The standard phrase of a status, the same under every version of Python."""
    if status not in {*HTTPStatus}:
        return "An answer of the application"
    return phrase_of(status) if status >= 400 else HTTPStatus(status).phrase


def error_phrase(status: int) -> str:
    """The name of an error: the standard phrase of its status, else its number."""
    return phrase_of(status) if status in {*HTTPStatus} else f"Status {status}"


def error_name(words: str) -> str:
    """The name of an error by its message: `EMAIL_TAKEN` and `Email taken` are `EmailTakenError`."""
    parts = re.findall(r"[A-Za-z0-9]+", words)
    name = "".join(part[:1].upper() + (part[1:].lower() if words.isupper() else part[1:]) for part in parts[:8])
    if not name or name[0].isdigit():
        return ""
    return name if name.endswith("Error") else f"{name}Error"
