"""Responses held against a document: those that do not fit, and the declared answers that were never given."""

# A document is JSON of somebody else's: its values are checked before use, and have no type before.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

from core.errors import DeveloperError, MissingExtraError
from core.openapi.examples import REQUEST, Examples
from core.openapi.facts import MAY_BE_EMPTY
from core.openapi.reading import is_json, load_document, openapi_paths, operations, plain_media, target


class ContractError(AssertionError):
    """A response that the document does not allow: either the code is wrong, or the document is not up to date."""


@attrs.frozen
class Declared:
    """One answer that a document declares: an operation and a status."""

    operation: str
    status: str

    def __str__(self) -> str:
        return f"{self.operation} {self.status}"


@attrs.frozen(eq=False)
class _Operation:
    name: str
    method: str
    pattern: re.Pattern[str]
    loose: re.Pattern[str]
    """The same for texts that the parameters do not allow: the application's 404 is that of the operation then."""
    responses: Mapping[str, object]
    literal: int
    """The number of characters of its path outside parameters: of two that match, the one with more is meant."""


class Contract:
    """A document to hold responses against.

        contract = Contract.read("openapi.json")
        problems = contract.problems("GET", "/users/1", 200, {"content-type": "application/json"}, b"{}")

    Raises DeveloperError for a file that is missing or not an OpenAPI document.
    """

    def __init__(self, document: Mapping[str, object], *, path: Path | None = None) -> None:
        try:
            self._schemas: Any = import_module("jsonschema")
        except ImportError:
            raise MissingExtraError(
                "comparing responses with openapi.json needs jsonschema: pip install 'core-edge[openapi]'"
            ) from None
        if not str(document.get("openapi", "")).startswith("3."):
            raise DeveloperError("the contract is not an OpenAPI document. Write one: core openapi -o openapi.json")
        self.document: Mapping[str, Any] = document
        self.path: Path | None = path
        self.reached: set[Declared] = set()
        self.examples: Examples | None = None
        """The bodies that were sent and answered, for examples in the document; None keeps none."""
        self._operations: list[_Operation] = list(_operations(document))
        self._hidden: list[tuple[str, re.Pattern[str]]] = []
        self._validators: dict[int, object] = {}

    @classmethod
    def read(cls, path: str | Path) -> Contract:
        """The contract of a file, JSON or YAML."""
        command = f"core openapi -o {path}"
        try:
            text = Path(path).read_text("utf-8")
        except FileNotFoundError:
            raise DeveloperError(f"{path} does not exist. Write it: {command}") from None
        except ValueError as error:
            raise DeveloperError(f"{path} is not UTF-8: {error}. Write it anew: {command}") from None
        return cls(load_document(text, str(path), command), path=Path(path))

    def check(
        self,
        method: str,
        path: str,
        status: int,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        sent: bytes | None = None,
    ) -> None:
        """Compare a response, and remember that its answer was given.
        A `body` of None is not looked at: it is a stream.

        `sent` is the body of the request, if it is JSON, for the examples. Raises ContractError with everything that
        does not fit.
        """
        problems = self.problems(method, path, status, headers, body)
        if problems:
            raise ContractError(
                "\n".join(problems)
                + f"\nWrite the document anew if the response is meant: core openapi -o {self.path or 'openapi.json'}"
            )
        operation = self._find(method, path)
        if self.examples is not None and operation is not None:
            self.examples.note(operation.name, str(status), _media_of(headers), body)
            if status < 300:
                self.examples.note(operation.name, REQUEST, "application/json", sent)

    def hide(self, method: str, path: str) -> None:
        """Leave out a route, `/users/:id`, that is not to be in the document: see `core.describe`."""
        for each in openapi_paths(path):
            pattern = re.sub(r"\\\{\w+\\\}", "[^/]*", re.escape(each)).removesuffix("/") + "/?"
            self._hidden.append((method, re.compile(pattern)))

    @property
    def declared(self) -> Sequence[Declared]:
        """Every answer with a status of its own, in the document's order."""
        return [
            Declared(operation.name, status)
            for operation in self._operations
            for status in operation.responses
            if status != "default"
        ]

    @property
    def unreached(self) -> Sequence[Declared]:
        """The declared answers that no response was one of."""
        return [answer for answer in self.declared if answer not in self.reached]

    def problems(
        self, method: str, path: str, status: int, headers: Mapping[str, str], body: bytes | None
    ) -> list[str]:
        """Return the problems of a response, by the document. `path` is without the query."""
        operation = self._find(method, path)
        if operation is None:
            if method == "OPTIONS" or self._is_mounted(path) or self._is_hidden(method, path):
                return []  # a preflight, which middleware answers, or another application
            # Middleware may refuse what no route has, and the framework refuses malformed escapes.
            return (
                [] if 400 <= status < 500 else [f"{method} {path} answers {status}, but the document has no such path"]
            )
        where = f"{operation.name} ({method} {path})"
        # An unforeseen error is a failure of the server; any other status has to be declared.
        keys = (str(status), f"{status // 100}XX", *(["default"] if status >= 500 else []))
        key = next((key for key in keys if key in operation.responses), None)
        if key is None:
            return [f"{where} answers {status}, which is not declared"]
        self.reached.add(Declared(operation.name, key))
        if method == "HEAD":
            return []
        return [
            f"{where} {status}: {problem}"
            for problem in self._body(target(self.document, operation.responses[key]), headers, body)
        ]

    def _is_hidden(self, method: str, path: str) -> bool:
        return any(each in (method, "*") and pattern.fullmatch(path) for each, pattern in self._hidden)

    def _is_mounted(self, path: str) -> bool:
        mounts: Sequence[str] = self.document.get("x-mounted", ())
        return any(path == prefix or path.startswith(f"{prefix.rstrip('/')}/") for prefix in mounts)

    def _body(self, response: Mapping[str, Any], headers: Mapping[str, str], body: bytes | None) -> Iterator[str]:
        content = response.get("content", {})
        media = _media_of(headers)
        if not content:
            if body is None or body:
                yield f"has a body ({media or 'without a content type'}), but none is declared"
            return
        if body == b"" and response.get(MAY_BE_EMPTY):
            return
        known = {plain_media(name): described for name, described in content.items()}
        # Bytes without a type are application/octet-stream (RFC 9110, section 8.3).
        assumed = media or "application/octet-stream"
        names = (assumed, f"{assumed.partition('/')[0]}/*", "*/*")
        described = next((known[name] for name in names if name in known), None)
        if described is None:
            yield f"is {media or 'without a content type'}, but {', '.join(content)} is declared"
            return
        if body is None or not is_json(media):
            return
        try:
            value = json.loads(body)
        except ValueError:
            yield "has a body that is not JSON"
            return
        schema = described.get("schema", {})
        for error in self._validator(schema).iter_errors(value):
            place = error.json_path.removeprefix("$").removeprefix(".")
            best = min(error.context, key=lambda inner: len(list(inner.path))) if error.context else None
            detail = f"{error.message}" + (f" ({best.message})" if best is not None else "")
            yield f"{place + ': ' if place else ''}{_short(detail)}"
        yield from self._unknown(value, schema, "")

    def _unknown(self, value: object, schema: Mapping[str, Any], place: str) -> Iterator[str]:
        """Fields that the document lacks: a schema allows them, but a document that leaves them out is behind."""
        schema = target(self.document, schema)
        alternatives = schema.get("anyOf") or schema.get("oneOf")
        if alternatives:
            fitting = [each for each in alternatives if self._validator(each).is_valid(value)]
            yield from min((list(self._unknown(value, each, place)) for each in fitting), key=len, default=())
            return
        if "allOf" in schema:  # its parts know of each other's fields nothing
            return
        if isinstance(value, dict) and "properties" in schema and "additionalProperties" not in schema:
            properties = schema["properties"]
            for name, inner in value.items():
                where = f"{place}.{name}" if place else name
                if name not in properties:
                    yield f"{where} is not declared"
                else:
                    yield from self._unknown(inner, properties[name], where)
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                yield from self._unknown(inner, schema.get("items", {}), f"{place}[{number}]")

    def _validator(self, schema: Mapping[str, object]) -> Any:
        validator = self._validators.get(id(schema))
        if validator is None:
            whole = {**schema, "components": self.document.get("components", {})}
            kind = self._schemas.Draft202012Validator
            validator = self._validators[id(schema)] = kind(whole, format_checker=kind.FORMAT_CHECKER)
        return validator

    def _find(self, method: str, path: str) -> _Operation | None:
        method = "GET" if method == "HEAD" else method
        path = path.removesuffix("/")  # which is ignored: no parameter at the end is empty
        alike = [each for each in self._operations if each.method == method and each.loose.fullmatch(path)]
        found = [each for each in alike if each.pattern.fullmatch(path)]
        return max(found or alike, key=lambda operation: operation.literal, default=None)


def _media_of(headers: Mapping[str, str]) -> str:
    return plain_media(next((value for name, value in headers.items() if name.lower() == "content-type"), ""))


def _operations(document: Mapping[str, object]) -> Iterator[_Operation]:
    for each in operations(document):
        parts = re.split(r"(\{[^}]*\})", each.path.rstrip("/"))
        texts = {
            f"{{{parameter['name']}}}": _text_of(parameter)
            for parameter in each.parameters(document)
            if parameter.get("in") == "path"
        }
        demanded, loose = (
            re.compile("".join(known.get(part, "[^/]*") if part.startswith("{") else re.escape(part) for part in parts))
            for known in (texts, {name: ".*" for name, text in texts.items() if text == ".*"})
        )
        literal = sum(len(part) for part in parts if not part.startswith("{"))
        yield _Operation(each.name, each.method, demanded, loose, each.operation.get("responses", {}), literal)


def _text_of(parameter: Mapping[str, Any]) -> str:
    """Return the regular expression of a parameter's text in a path:
    a string that does not match is a path of its own.
    """
    demanded = parameter.get("schema", {}).get("pattern")
    if isinstance(demanded, str):
        with contextlib.suppress(re.error):  # a pattern of another language's, which Python cannot read
            return f"(?:{re.compile(demanded.removeprefix('^').removesuffix('$')).pattern})"
    return ".*" if "slashes included" in parameter.get("description", "") else "[^/]*"


def _short(text: str) -> str:
    return text if len(text) <= 300 else text[:299] + "…"
