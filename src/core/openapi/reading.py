"""Documents as others read them: their text, paths, references, `allOf`, alternatives, and texts for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from core.errors import DeveloperError, MissingExtraError
from core.http.json import JsonObject
from core.routing.pattern import Pattern, parse
from core.values import is_array, is_object

METHODS: Final = ("get", "put", "post", "delete", "patch", "head", "options", "trace", "query")
"""The methods that a path item has a place for, in lower case."""
Named: TypeAlias = tuple[str, Mapping[str, Any]]
"""A schema behind its references, and the name of the last of them."""

is_json: Final = re.compile(r"(application/([\w.!#$&^+-]+\+)?json|text/json)(;.*)?", re.IGNORECASE).fullmatch
"""What a content type of JSON matches."""
_FOR_PEOPLE: Final = frozenset(["error", "title", "detail", "message"])
"""The fields of an error, and of a problem of RFC 9457, that are for people."""
_WORDING: Final = re.compile(r"\s|^[A-Z][a-z]").search
"""A constant of such a field is a code, and a promise, when it looks like one: `no_user`, `NO_USER`."""


def plain_media(content_type: str) -> str:
    """A media type without its parameters, in lower case: that is how two of them are compared (RFC 9110, 8.3.1)."""
    return content_type.partition(";")[0].strip().lower()


def load_document(text: str, name: str, command: str, what: str = "an OpenAPI document") -> Mapping[str, Any]:
    """The document in the text of a file, JSON or YAML.

    Raises DeveloperError for anything but an object, with the `name` of the file and the `command` that writes it anew,
    and MissingExtraError for YAML where pyyaml is not installed.
    """
    try:
        found: Any = json.loads(text)
    except ValueError as not_json:
        if text.lstrip().startswith("{"):
            raise DeveloperError(f"{name} is not JSON: {not_json}. Write it anew: {command}") from None
        try:
            yaml: Any = import_module("yaml")
        except ImportError:
            raise MissingExtraError(
                f"{name} is not JSON, and reading YAML needs pyyaml: pip install 'core-edge[openapi]'"
            ) from None
        try:
            # Dates stay the texts that they are in JSON, and so do keys: a status is often written without quotes.
            loader = type("_Loader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": _without_dates(yaml.SafeLoader)})
            found = json.loads(json.dumps(yaml.load(text, loader)))
        except (yaml.YAMLError, TypeError, ValueError) as error:
            # The whole text of an error of YAML has several lines, and shows one of the file's.
            reason, mark = str(error), getattr(error, "problem_mark", None)
            if mark is not None:
                reason = f"{getattr(error, 'problem', '')}: line {mark.line + 1} column {mark.column + 1}"
            raise DeveloperError(f"{name} is neither JSON nor YAML: {reason}. Write it anew: {command}") from None
    if not is_object(found):
        raise DeveloperError(f"{name} is not {what}: it is not an object. Write it anew: {command}")
    return found


def objects_of(document: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The parts of a document that every reader goes through, with their places: each has to be an object."""
    for top in ("paths", "components"):
        whole: Mapping[str, Any] = {} if document.get(top) is None else document[top]
        yield top, whole
        for name, part in whole.items():
            yield f"{top} {name}", part
            for method in METHODS if top == "paths" else ():
                if method in part:
                    yield f"{method.upper()} {name}", part[method]
                    yield f"responses of {method.upper()} {name}", part[method].get("responses") or {}


def _without_dates(loader: Any) -> dict[object, object]:
    return {
        first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
        for first, known in loader.yaml_implicit_resolvers.items()
    }


def target(document: Mapping[str, object], value: object) -> Mapping[str, Any]:
    """The object behind a reference, or behind a chain of them.

    Raises DeveloperError for a reference to another file, and for one to nothing.
    """
    for _ in range(20):
        reference = value.get("$ref") if is_object(value) else None
        if not isinstance(reference, str):
            return value if is_object(value) else {}
        if not reference.startswith("#/"):
            raise DeveloperError(
                f"the document refers to {reference}, which is in another file. Bundle it into one document first, for "
                "example with `npx @redocly/cli bundle FILE -o openapi.json`"
            )
        value = document
        for part in reference[2:].split("/"):
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if is_array(value) and key.isdigit() and int(key) < len(value):
                value = value[int(key)]
            elif is_object(value) and key in value:
                value = value[key]
            else:
                raise DeveloperError(f"the document refers to {reference}, which it does not have. Add it")
    return {}


def section(document: Mapping[str, Any], name: str) -> Mapping[str, object]:
    """A section of the components of a document; empty where it has none."""
    components: Mapping[str, object] = document.get("components") or {}
    found: object = components.get(name)
    return found if is_object(found) else {}


class Operation(NamedTuple):
    """An operation of a document, its method in upper case, its path, and the path item that it is in."""

    method: str
    path: str
    item: Mapping[str, Any]
    operation: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name that it has, else its method and path."""
        return str(self.operation.get("operationId") or f"{self.method} {self.path}")

    def parameters(self, document: Mapping[str, object]) -> list[Mapping[str, Any]]:
        """The parameters of its path, and its own, behind their references."""
        given = [*self.item.get("parameters", ()), *self.operation.get("parameters", ())]
        return [target(document, one) for one in given]


def operations(document: Mapping[str, Any], *, sockets: bool = False) -> Iterator[Operation]:
    """The operations of a document, those with methods that a path item has no place for too; WebSockets if asked."""
    paths: Mapping[str, Any] = document.get("paths") or {}
    for path, given in paths.items():
        item = target(document, given)
        for method in METHODS:
            if method in item:
                yield Operation(method.upper(), path, item, item[method])
        for others in ("additionalOperations", "x-additional-operations"):
            for method, operation in item.get(others, {}).items():
                yield Operation(method, path, item, operation)
    for path, item in paths.items() if sockets else ():
        if "x-websocket" in item:
            yield Operation("WebSocket", path, item, item["x-websocket"])


def merged(document: Mapping[str, object], schema: object, depth: int = 0) -> Mapping[str, Any]:
    """The schema behind a reference, without `allOf`: its parts laid over each other."""
    found = target(document, schema)
    if not is_array(found.get("allOf")) or depth > 20:
        return found
    result: JsonObject = {}
    for part in [*found["allOf"], {key: value for key, value in found.items() if key != "allOf"}]:
        for key, value in merged(document, part, depth + 1).items():
            if key == "properties" and is_object(value):
                result[key] = {**result.get(key, {}), **value}
            elif key == "required" and is_array(value):
                result[key] = [*result.get(key, []), *value]
            elif key not in ("anyOf", "oneOf") or key not in result:
                result[key] = value
    return result


def alternatives(
    home: Mapping[str, object], schema: object, name: str = "", seen: frozenset[str] = frozenset()
) -> Iterator[Named]:
    """The kinds of value that a schema allows, one by one: constants too, and each once."""
    found: list[Named] = []
    if is_object(schema) and isinstance(reference := schema.get("$ref"), str):
        if reference not in seen:
            yield from alternatives(home, merged(home, schema), reference.rpartition("/")[2], seen | {reference})
        return
    whole = merged(home, schema)
    rest = {key: value for key, value in whole.items() if key not in ("anyOf", "oneOf", "enum", "nullable")}
    kinds = whole.get("type")
    if whole.get("nullable") is True:
        found.append(("", {"type": "null"}))
    if parts := whole.get("anyOf", whole.get("oneOf")):
        for part in parts:
            default = {"default": whole["default"]} if "default" in whole and "$ref" not in part else {}
            found += alternatives(home, {**part, **default}, "", seen)
    elif "enum" in whole:
        found += [(name, {**rest, "const": value}) for value in whole["enum"]]
    elif is_array(kinds):
        found += [(name, {**rest, "type": kind}) for kind in kinds]
    else:
        found.append((name, rest))
    for number, one in enumerate(found):
        if one not in found[:number]:
            yield one


def without_wording(value: object, field: str = "") -> Any:
    """A document whose texts for people are any text: their wording may change, and no client may depend on it.

    These are the constants of `error`, `title`, `detail` and `message` that are no codes, and any single constant of
    several words.
    """
    if is_array(value):
        return [without_wording(inner) for inner in value]
    if not is_object(value):
        return value
    texts = [value["const"]] if "const" in value else value.get("enum")
    if is_array(texts) and texts and all(isinstance(text, str) for text in texts):
        several_words = "const" in value and re.search(r"\s", texts[0])
        if several_words or (field in _FOR_PEOPLE and any(map(_WORDING, texts))):
            return {**{key: inner for key, inner in value.items() if key not in ("const", "enum")}, "type": "string"}
    return {
        key: {name: without_wording(one, name) for name, one in inner.items()}
        if key == "properties" and is_object(inner)
        else without_wording(inner)
        for key, inner in value.items()
    }


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
