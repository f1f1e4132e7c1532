"""A typed client in Python, written from an OpenAPI document: one class for each answer, a union of them by status.

The client that is written needs the standard library alone, and is the same for the same document. Documents of other
tools work too, in version 3.0 to 3.2, as far as their bodies are JSON, forms, text, bytes or streams of JSON. An answer
that a document does not declare is an exception, so that the union of the declared ones is complete.

One file, since one writer gives away all names while it writes operations, bodies and types, each by the names that the
others have taken.
"""

# A document is JSON of somebody else's: its values are checked before use, and have no type before.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from importlib import import_module, resources
from typing import Any, Final, TypeAlias
from unicodedata import normalize
from urllib.parse import unquote

import attrs

from core.errors import DeveloperError, MissingExtraError

__all__ = ["load_document", "write_client"]

Schema: TypeAlias = Mapping[str, Any]
_Kinds: TypeAlias = tuple[str, ...]
"""An annotation: the members of a union, each written and never read again, since a document chooses what is in it."""
_METHODS: Final = ("get", "put", "post", "delete", "patch", "head", "options", "trace", "query")
_SCALARS: Final[Mapping[str, str]] = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None",
}  # fmt: skip
_FORMATS: Final[Mapping[str, str]] = {
    "date-time": "dt.datetime", "date": "dt.date", "time": "dt.time", "uuid": "UUID", "binary": "bytes",
}  # fmt: skip
_FIELDS: Final = frozenset(["bool", "bytes", "dict", "dt", "field", "float", "int", "list", "str"])
"""The names in a class's annotations: a field or method of that name would hide it from those after it."""
_PARAMETERS: Final = frozenset(["answer", "body", "dict", "list", "self"])
_ANNOTATIONS: Final = frozenset(
    ["default", "deprecated", "description", "example", "examples", "externalDocs", "readOnly", "title", "writeOnly", "xml"]
)  # fmt: skip
_JSON: Final = re.compile(r"(application/([\w.!#$&^+-]+\+)?json|text/json)(;.*)?", re.IGNORECASE).fullmatch
_LINES: Final = frozenset(
    ["application/jsonl", "application/x-ndjson", "application/x-jsonlines", "application/json-seq"]
)
_FORMS: Final = ("multipart/form-data", "application/x-www-form-urlencoded")
_DELIMITERS: Final[Mapping[str, str]] = {"spaceDelimited": " ", "pipeDelimited": "|"}
_WIDTH: Final = 100
_MODULE: Final = re.compile(
    r"(?m)^(?:async def|def|import|import \w+ as) (\w+)|\b(?:dataclass|field|fields|quote)\b"
).findall


def load_document(text: str) -> Mapping[str, Any]:
    """A document from the text of its file, JSON or YAML.

    Raises DeveloperError for any other file, and MissingExtraError for YAML where pyyaml is not installed.
    """
    try:
        found = json.loads(text)
    except ValueError as not_json:
        if text.lstrip().startswith("{"):
            raise DeveloperError(f"the document is not JSON: {not_json}. Write it anew: core openapi") from None
        try:
            yaml: Any = import_module("yaml")
        except ImportError:
            raise MissingExtraError(
                "reading a document in YAML needs pyyaml: pip install 'core-edge[openapi]'"
            ) from None
        try:
            # Dates stay the texts that they are in JSON.
            loader = type("_Loader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": _without_dates(yaml.SafeLoader)})
            found = yaml.load(text, loader)
        except yaml.YAMLError as error:
            raise DeveloperError(f"the document is neither JSON nor YAML: {error}. Check the file's name") from None
    if not isinstance(found, dict):
        raise DeveloperError("the file is not an OpenAPI document: it is not an object. Write one: core openapi")
    return found


def _without_dates(loader: Any) -> dict[Any, Any]:
    return {
        first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
        for first, known in loader.yaml_implicit_resolvers.items()
    }


def write_client(document: Mapping[str, Any]) -> str:
    """The source of a client of the API that a document describes.

    Raises DeveloperError for a document that is not OpenAPI of version 3, or refers to other files.
    """
    version = document.get("openapi")
    if not isinstance(version, str) or not version.startswith("3."):
        fix = "Give the file that `core openapi -o openapi.json` writes"
        if "swagger" in document:
            fix = "It is of version 2: convert it first, for example with `npx swagger2openapi FILE -o openapi.json`"
        raise DeveloperError(f"the file is not an OpenAPI document of version 3: it has no `openapi: 3.…`. {fix}")
    writer = _Writer(document)
    try:
        return writer.write()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DeveloperError(
            f"{writer.place}: the document is not valid OpenAPI there ({error}). Find the mistake with "
            "`pip install openapi-spec-validator` and `openapi-spec-validator FILE`"
        ) from error


@attrs.frozen
class _Body:
    """A body: its media type, how it is read (`json`, `text`, `bytes`, `events`, …), and its annotation."""

    media: str
    how: str
    annotation: _Kinds


class _Writer:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.template = (resources.files("core.openapi") / "client_template.py.in").read_text("utf-8")
        self.taken: set[str] = set(re.findall(r"\b[A-Z]\w*", self.template)) | {"None", "True", "False"}
        """Names of the module that are given away."""
        self.classes: list[str] = []
        self.aliases: list[str] = []
        self._names: dict[str, _Kinds] = {}
        """The name of a reference: a class or an alias."""
        self._pending: set[str] = set()
        self.place: str = "the schemas"
        """The part of the document that is being read."""

    def write(self) -> str:
        """The whole module."""
        for name in self._section("schemas"):
            self._reference(f"#/components/schemas/{_escaped(name)}")
        answers: list[str] = []
        methods: list[str] = []
        for path, method, item, operation in self._operations():
            self.place = f"{method} {path}"
            self._operation(path, method, item, operation, answers, methods)
        info = self.document.get("info") or {}
        parts = {
            "TITLE": _line(f"{info.get('title', 'an API')} {info.get('version', '')}".strip()),
            "CLASSES": "\n\n\n".join([*self.classes, *(["\n".join(self.aliases)] if self.aliases else [])])
            or "# There are none.",
            "ANSWERS": "\n\n\n".join(answers) or "# There are none.",
            "SECURITY": "".join(f"{one}\n\n\n" for one in self._security()),
            "METHODS": "".join(f"\n{one}\n" for one in methods),
        }
        whole = re.sub(r"@@(\w+)@@", lambda found: parts[found[1]], self.template)
        return whole.rstrip("\n") + "\n"

    def _section(self, name: str) -> Mapping[str, Any]:
        found = (self.document.get("components") or {}).get(name)
        return found if isinstance(found, dict) else {}

    def _operations(self) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
        self.place = "the paths"
        for path, given in (self.document.get("paths") or {}).items():
            item = self._target(given)
            for method in _METHODS:
                if method in item:
                    yield path, method.upper(), item, item[method]
            for method, operation in item.get("additionalOperations", {}).items():
                yield path, method, item, operation

    def _class_name(self, *wanted: str) -> str:
        name = _unique(_camel(" ".join(wanted)), self.taken)
        self.taken.add(name)
        return name

    # -- operations

    def _operation(
        self,
        path: str,
        method: str,
        item: Mapping[str, Any],
        operation: Mapping[str, Any],
        answers: list[str],
        methods: list[str],
    ) -> None:
        wanted = _identifier(operation.get("operationId") or f"{method}_{path}", _FIELDS)
        name = _unique(wanted, self.taken)
        self.taken.add(name)
        kinds: list[str] = []
        table: list[str] = []
        for status, response in self._responses(operation):
            cls = self._class_name(name, status)
            body = self._response_body(method, response.get("content") or {}, cls)
            answers.append(_answer(cls, status, _union(body.annotation), str(response.get("description", ""))))
            kinds.append(cls)
            table.append(f"{_text(status)}: ({cls}, {_text(f'{body.how} {body.media}'.strip())})")
        union = "None"
        if kinds:
            union = self._class_name(name, "answer")
            answers.append(_exploded(f"{union}: TypeAlias = ", "(", kinds, ")", "", " | ", bare=True))
        signature, sent = self._request(name, path, item, operation)
        text = operation.get("summary") or operation.get("description")
        lines = [_exploded(f"    async def {name}", "(", signature, f") -> {union}:", "    ")]
        if text:
            lines.append(f'        """{_line(str(text))}"""')
        arguments = [_text(method), _text(path), _exploded("", "{", table, "}", "            "), *sent]
        lines.append(_exploded(f"        answer: {union} = await self._send", "(", arguments, ")", "        "))
        methods.append("\n".join([*lines, "        return answer"]))

    def _responses(self, operation: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The responses that are answers of their own. `default` is one where no other is a success; where one is, it
        stands for errors that nobody foresaw, which are an exception.
        """
        given = {str(status).upper(): self._target(one) for status, one in (operation.get("responses") or {}).items()}
        succeeds = any(status.startswith(("2", "3")) for status in given)
        for status, response in sorted(given.items(), key=lambda one: (one[0] == "DEFAULT", "X" in one[0], one[0])):
            if re.fullmatch(r"[1-5]([0-9]{2}|XX)", status):
                yield status, response
            elif status == "DEFAULT" and not succeeds:
                yield "default", response

    def _response_body(self, method: str, content: Mapping[str, Any], name: str) -> _Body:
        if not content or method == "HEAD":
            return _Body("", "none", ("None",))
        media, given = _preferred(content)
        schema = given.get("schema") or {}
        if "itemSchema" in given or media == "text/event-stream" or media in _LINES:
            how, item = ("events", self._event(given)) if media == "text/event-stream" else ("lines", None)
            if item is None:
                item = given.get("itemSchema") or self._resolved(schema).get("items") or {}
            annotation = self._type(item, f"{name}Item")
            if how == "events" and annotation == ("str",):
                how = "events-text"
            return _Body(media, how, (f"AsyncGenerator[{_union(annotation)}, None]",))
        if _JSON(media) or (media == "*/*" and not _is_text(self._resolved(schema))):
            return _Body(media, "json", self._type(schema, f"{name}Body"))
        text = media.startswith("text/") or media.partition(";")[0].endswith(("xml", "javascript", "yaml"))
        return _Body(media, "text", ("str",)) if text else _Body(media, "bytes", ("bytes",))

    def _event(self, content: Mapping[str, Any]) -> Schema:
        """The schema of the data of an event: JSON where it is said to be, text otherwise."""
        data = self._resolved(self._merged(content.get("itemSchema") or {}).get("properties", {}).get("data", {}))
        described = data.get("contentSchema", content.get("x-item-schema"))
        if described is None:
            return {} if _JSON(data.get("contentMediaType", "")) else {"type": "string"}
        return described if isinstance(described, dict) else {}

    def _request(
        self, name: str, path: str, item: Mapping[str, Any], operation: Mapping[str, Any]
    ) -> tuple[list[str], list[str]]:
        """The parameters of a method, and the arguments of its `_send`."""
        given = [self._target(one) for one in [*item.get("parameters", ()), *operation.get("parameters", ())]]
        by_place = {(one.get("in"), one.get("name")): one for one in given}
        # The path has its own say: one that is not declared is a parameter all the same.
        for missing in re.findall(r"\{([^{}]*)\}", path):
            by_place.setdefault(("path", missing), {"schema": {"type": "string"}})
        places: dict[str, list[str]] = {"path": [], "query": [], "header": [], "cookie": []}
        taken = set(_PARAMETERS)
        positional: list[str] = []
        named: list[str] = []
        optional: list[str] = []
        for (place, json_name), parameter in by_place.items():
            place = "query" if place == "querystring" else str(place)
            if place not in places or (place == "header" and str(json_name).lower() in ("accept", "content-type")):
                continue
            python = _unique(_identifier(str(json_name), _PARAMETERS), taken)
            taken.add(python)
            content = parameter.get("content") or {}
            described: Mapping[str, Any] = next(iter(content.values()), {})
            schema = parameter.get("schema") or described.get("schema") or {}
            annotation = self._type(schema, f"{_camel(name)} {_camel(python)}")
            if place == "path":
                positional.append(f"{python}: {'str | int' if annotation == ('str',) else _union(annotation)}")
            elif parameter.get("required"):
                named.append(f"{python}: {_union(annotation)}")
            else:
                optional.append(f"{python}: {_union(_joined([annotation, ('Unset',)]))} = UNSET")
            if place == "query":
                places[place].append(f"({_text(str(json_name))}, {python}, {_text(_style(parameter))})")
            else:
                places[place].append(f"{_text(str(json_name))}: {python}")
        sent = [
            _exploded(f"{word}=", mark[0], values, mark[1], "            ")
            for word, mark, values in (
                ("path_values", "{}", places["path"]),
                ("query", "[]", places["query"]),
                ("headers", "{}", places["header"]),
                ("cookies", "{}", places["cookie"]),
            )
            if values
        ]
        request = self._target(operation.get("requestBody") or {})
        body = self._request_body(name, request.get("content") or {})
        if body is not None:
            required = request.get("required")
            positional.append(
                f"body: {_union(body.annotation)}"
                if required
                else f"body: {_union(_joined([body.annotation, ('Unset',)]))} = UNSET"
            )
            sent += [f"media={_text(body.media)}", "body=body"]
        keywords = [*named, *optional]
        return ["self", *positional, *(["*", *keywords] if keywords else [])], sent

    def _request_body(self, name: str, content: Mapping[str, Any]) -> _Body | None:
        if not content:
            return None
        media, given = _preferred(content)
        schema = given.get("schema") or given.get("itemSchema") or {}
        if _JSON(media) or media in _FORMS or (media == "*/*" and not _is_text(self._resolved(schema))):
            written = "application/json" if media == "*/*" else media
            annotation = self._type(schema, f"{_camel(name)}Body", files=media == "multipart/form-data")
            return _Body(written, "json", annotation)
        if media.startswith("text/"):
            return _Body(media, "text", ("str",))
        return _Body("application/octet-stream" if "*" in media else media, "bytes", ("bytes",))

    def _security(self) -> Iterator[str]:
        """A function for each security scheme, which makes the credentials that `Client` sends along."""
        for name, given in self._section("securitySchemes").items():
            scheme = self._target(given)
            function = _unique(_identifier(name), {*self.taken, *_MODULE(self.template)})
            kind, way = scheme.get("type"), str(scheme.get("scheme", "")).lower()
            if kind == "http" and way == "basic":
                parameters = "name: str, password: str"
                value = '"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()'
                use = "headers"
            elif (kind == "http" and way == "bearer") or kind in ("oauth2", "openIdConnect"):
                parameters, value, use = "token: str", '"Authorization": f"Bearer {token}"', "headers"
            elif kind == "http" and re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", way):
                parameters, use = "token: str", "headers"
                value = f'"Authorization": f"{_braced(way.capitalize())} {{token}}"'
            elif kind == "apiKey" and scheme.get("in") == "cookie":
                parameters, use = "value: str", "headers"
                value = f'"Cookie": f"{_braced(str(scheme.get("name")))}={{value}}"'
            elif kind == "apiKey":
                parameters, value = "value: str", f"{_text(str(scheme.get('name')))}: value"
                use = "query" if scheme.get("in") == "query" else "headers"
            else:
                continue
            self.taken.add(function)
            names = ", ".join(re.findall(r"(\w+): str", parameters))
            yield "\n".join(
                [
                    f"def {function}({parameters}) -> dict[str, str]:",
                    f'    """The credentials of a request: `Client(transport, {use}={function}({names}))`."""',
                    f"    return {{{value}}}",
                ]
            )

    # -- types

    def _target(self, value: Any) -> Mapping[str, Any]:
        """Return the schema behind a reference, or behind a chain of them."""
        for _ in range(20):
            reference = value.get("$ref") if isinstance(value, dict) else None
            if not isinstance(reference, str):
                return value if isinstance(value, dict) else {}
            if not reference.startswith("#/"):
                raise DeveloperError(
                    f"the document refers to {reference}, which is in another file. Bundle it into one document first, for "
                    "example with `npx @redocly/cli bundle FILE -o openapi.json`"
                )
            value = self.document
            for part in reference[2:].split("/"):
                key = unquote(part).replace("~1", "/").replace("~0", "~")
                if isinstance(value, list) and key.isdigit() and int(key) < len(value):
                    value = value[int(key)]
                elif isinstance(value, dict) and key in value:
                    value = value[key]
                else:
                    raise DeveloperError(f"the document refers to {reference}, which it does not have. Add it")
        return {}

    def _resolved(self, schema: Any) -> Schema:
        return self._merged(self._target(schema))

    def _reference(self, reference: str, *, files: bool = False) -> _Kinds:
        key = f"{reference} with files" if files else reference
        if key in self._names:
            return self._names[key]
        if key in self._pending:
            return ("Any",)  # an alias within itself, which type checkers do not all follow
        schema = self._target({"$ref": reference})
        wanted = _camel(unquote(reference.rpartition("/")[2]))
        merged = self._merged(schema)
        if _is_object(merged) and not _alternatives(merged):
            name = self._class_name(wanted)
            self._names[key] = (name,)
            self._object(name, merged, files=files)
            return (name,)
        self._pending.add(key)
        annotation = self._type(schema, wanted, files=files)
        self._pending.discard(key)
        if len(annotation) == 1 and "[" not in annotation[0]:
            self._names[key] = annotation
            return annotation
        name = self._class_name(wanted)
        self._names[key] = (name,)
        self.aliases.append(_exploded(f"{name}: TypeAlias = ", "(", annotation, ")", "", " | ", bare=True))
        return (name,)

    def _merged(self, schema: Any, depth: int = 0) -> Schema:
        """A schema without `allOf`: its parts laid over each other."""
        if not isinstance(schema, dict):
            return {}
        if not isinstance(schema.get("allOf"), list) or depth > 20:
            return schema
        merged: dict[str, Any] = {}
        for part in [*schema["allOf"], {key: value for key, value in schema.items() if key != "allOf"}]:
            for key, value in self._merged(self._target(part), depth + 1).items():
                if key == "properties" and isinstance(value, dict):
                    merged[key] = {**merged.get(key, {}), **value}
                elif key == "required" and isinstance(value, list):
                    merged[key] = [*merged.get(key, []), *value]
                elif key in ("anyOf", "oneOf") and key in merged:
                    continue
                else:
                    merged[key] = value
        return merged

    def _type(self, given: Any, name: str, *, files: bool = False) -> _Kinds:
        """The annotation of a schema."""
        if not isinstance(given, dict):  # `true` is a schema too
            return ("Any",)
        schema: Schema = given
        if schema.get("nullable") is True:
            rest = {key: value for key, value in schema.items() if key != "nullable"}
            if isinstance(rest.get("enum"), list):
                rest["enum"] = [value for value in rest["enum"] if value is not None]
            return _joined([self._type(rest, name, files=files), ("None",)])
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]), files=files)
        parts = [part for part in schema.get("allOf") or () if isinstance(part, dict) and part.keys() - _ANNOTATIONS]
        if len(parts) == 1 and not schema.keys() - _ANNOTATIONS - {"allOf"}:
            return self._type(parts[0], name, files=files)
        schema = self._merged(schema)
        alternatives = _alternatives(schema)
        if alternatives:
            base = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "discriminator")}
            whole = bool(base.keys() - _ANNOTATIONS - {"type"})
            kinds = [
                self._type(
                    {"allOf": [base, part]} if whole and not _is_null(part) else part, f"{name}{number}", files=files
                )
                for number, part in enumerate(alternatives, 1)
            ]
            return _joined(kinds)
        if "const" in schema:
            return _literal([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return _literal(schema["enum"])
        kinds_given = schema.get("type")
        if isinstance(kinds_given, list):
            return _joined([self._type({**schema, "type": kind}, name, files=files) for kind in kinds_given])
        if kinds_given == "array" or (kinds_given is None and "items" in schema):
            return (f"list[{_union(self._type(schema.get('items') or {}, f'{name}Item', files=files))}]",)
        if kinds_given == "string":
            if files and "contentMediaType" in schema and "contentEncoding" not in schema:
                return ("File", "bytes")
            kind = _FORMATS.get(str(schema.get("format")), "str")
            return ("File", "bytes") if files and kind == "bytes" else (kind,)
        if kinds_given in _SCALARS:
            return (_SCALARS[str(kinds_given)],)
        if _is_object(schema):
            cls = self._class_name(name)
            self._object(cls, schema, files=files)
            return (cls,)
        if kinds_given == "object":
            extra = schema.get("additionalProperties")
            kind = _union(self._type(extra if isinstance(extra, dict) else {}, f"{name}Value", files=files))
            return (f"dict[str, {kind}]",)
        return ("Any",)

    def _object(self, name: str, schema: Schema, *, files: bool) -> None:
        place = len(self.classes)
        self.classes.append("")  # before the classes inside it
        required = set(schema.get("required") or ())
        taken = set(_FIELDS)
        fields: list[tuple[bool, str]] = []
        for json_name, inner in (schema.get("properties") or {}).items():
            python = _unique(_identifier(json_name, _FIELDS), taken)
            taken.add(python)
            annotation = self._type(inner, f"{name} {_camel(json_name)}", files=files)
            metadata = f'metadata={{"json": {_text(json_name)}}}' if python != json_name else ""
            if json_name in required:
                fields.append(
                    (True, f"    {python}: {_union(annotation)}" + (f" = field({metadata})" if metadata else ""))
                )
            else:
                value = f"field(default=UNSET, {metadata})" if metadata else "UNSET"
                fields.append((False, f"    {python}: {_union(_joined([annotation, ('Unset',)]))} = {value}"))
        extra = schema.get("additionalProperties")
        if extra is True or (isinstance(extra, dict) and extra):
            kind = f"dict[str, {_union(self._type(extra, f'{name}Value', files=files))}]"
            rest = _unique("additional_properties", taken)
            fields.append((False, f'    {rest}: {kind} = field(default_factory={kind}, metadata={{"rest": True}})'))
        lines = ["@dataclass(frozen=True)", f"class {name}:"]
        if description := schema.get("description"):
            lines += [f'    """{_line(str(description))}"""', *([""] if fields else [])]
        lines += [line for _, line in sorted(fields, key=lambda one: not one[0])]
        self.classes[place] = "\n".join(lines)


def _answer(name: str, status: str, annotation: str, description: str) -> str:
    said = description
    if not said.strip() and status.isdigit():
        said = HTTPStatus(int(status)).phrase if status in {str(int(one)) for one in HTTPStatus} else status
    lines = ["@dataclass(frozen=True)", f"class {name}:", f'    """{_line(f"{status}: {said or status}")}"""', ""]
    none = " = None" if annotation == "None" else ""
    lines += [f"    body: {annotation}{none}"]
    lines += ["    headers: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)"]
    if status.isdigit():
        return "\n".join([*lines, f"    status: Literal[{status}] = {status}"])
    # A range has no literal: `isinstance` and `match` tell it apart.
    first = f"{status[0]}00" if status[0].isdigit() else "200"
    return "\n".join([*lines, f"    status: int = {first}"])


def _preferred(content: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The media type that a client speaks: JSON where it may, then forms, then whatever is first."""
    order = sorted(content, key=lambda media: 0 if _JSON(media) else 1 if media in _FORMS else 2)
    given = content[order[0]]
    return order[0], given if isinstance(given, dict) else {}


def _style(parameter: Mapping[str, Any]) -> str:
    """Return the style in which `_pairs` writes a parameter of a query."""
    if parameter.get("content"):
        return "json"
    style = parameter.get("style", "form")
    if style == "form":
        return "form" if parameter.get("explode", True) else ","
    return _DELIMITERS.get(style, str(style))


def _alternatives(schema: Schema) -> Sequence[Any]:
    """The kinds of value that a schema allows, where they differ in more than in the required ones of the same
    fields.
    """
    found: Sequence[Any] = schema.get("anyOf") or schema.get("oneOf") or ()
    if schema.get("properties") and not any(
        isinstance(one, dict) and one.keys() & {"$ref", "properties", "allOf", "type"} for one in found
    ):
        return ()
    return found


def _literal(values: Sequence[Any]) -> _Kinds:
    if any(not isinstance(value, str | int | bool | None) for value in values):
        kinds = {"float" if isinstance(value, int | float) else "Any" for value in values}
        return (kinds.pop(),) if len(kinds) == 1 else ("Any",)
    plain = [value for value in values if value is not None]
    literal = f"Literal[{', '.join(dict.fromkeys(_text(one) if isinstance(one, str) else repr(one) for one in plain))}]"
    return _joined([*([(literal,)] if plain else []), *([("None",)] if len(plain) < len(values) else [])])


def _joined(kinds: Iterable[_Kinds]) -> _Kinds:
    """A union, each kind once, and None and Unset last."""
    single = dict.fromkeys(part for kind in kinds for part in kind)
    if "Any" in single or not single:
        return ("Any",)
    return tuple(sorted(single, key=lambda kind: ("None", "Unset").index(kind) if kind in ("None", "Unset") else -1))


def _union(kinds: _Kinds) -> str:
    return " | ".join(kinds)


def _exploded(
    head: str, opening: str, parts: Sequence[str], closing: str, indent: str, comma: str = ", ", *, bare: bool = False
) -> str:
    """Parts in brackets, on one line where they fit and one a line where they do not."""
    inside = comma.join(parts)
    whole = f"{head}{inside}" if bare else f"{head}{opening}{inside}{closing}"
    if "\n" not in whole and len(indent + whole.lstrip()) <= _WIDTH:
        return whole
    if bare:
        lines = [f"{indent}    {parts[0]}", *(f"{indent}    | {part}" for part in parts[1:])]
    else:
        lines = [f"{indent}    {part}," if part != "*" else f"{indent}    *," for part in parts]
    return "\n".join([f"{head}{opening}", *lines, f"{indent}{closing}"])


def _line(text: str) -> str:
    """A string as one line that may stand in a docstring."""
    flat = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    flat = flat.replace("\\", "\\\\").replace('"""', "'''").rstrip(".")
    return f"{flat}."


def _text(value: str) -> str:
    """A string as Python has it, in double quotes."""
    # As in JSON, but for what JSON writes as two surrogates, which are two characters in Python.
    inside = "".join(json.dumps(one)[1:-1] if one <= "\uffff" else f"\\U{ord(one):08x}" for one in value)
    return f'"{inside}"'


def _braced(text: str) -> str:
    """A string as it is written in an f-string in double quotes."""
    return _text(text)[1:-1].replace("{", "{{").replace("}", "}}")


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1").replace("%", "%25")


def _is_object(schema: Schema) -> bool:
    return bool(schema.get("properties")) and schema.get("type", "object") == "object"


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _is_text(schema: Schema) -> bool:
    return schema.get("type") == "string" or not schema


def _identifier(name: str, hidden: Collection[str] = ()) -> str:
    """A name in snake case that Python takes; one of `hidden` has an underscore behind it."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", normalize("NFKC", name))
    # Python takes names that are equal under NFKC for one, so that is what they are compared by.
    snake = normalize("NFKC", re.sub(r"[\W_]+", "_", words).strip("_").lower()) or "value"
    if not snake.isidentifier():
        snake = re.sub(r"[^0-9a-z_]", "_", f"value_{snake}")
    return f"{snake}_" if keyword.iskeyword(snake) or snake in hidden else snake


def _camel(name: str) -> str:
    parts = [part for part in re.split(r"[\W_]+", normalize("NFKC", name)) if part]
    camel = normalize("NFKC", "".join(part[0].upper() + part[1:] for part in parts)) or "Value"
    return camel if camel.isidentifier() else re.sub(r"[^0-9a-zA-Z_]", "_", f"Value{camel}")


def _unique(name: str, taken: Collection[str]) -> str:
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name.rstrip('_')}_{number}" if name.islower() else f"{name}{number}"
    return unique
