"""A typed client in Python, written from an OpenAPI document: methods return bodies, and raise errors.

The client that is written needs the standard library alone, and is the same for the same document. Documents of other
tools work too, in version 3.0 to 3.2, as far as their bodies are JSON, forms, text, bytes or streams of them. Schemas
of equal shape are one class, and texts for people are any text, so that a reworded error breaks no client.

What a document decides is built as a syntax tree and unparsed at the end, never written as text: a document of somebody
else's cannot leave the node that it is in.
"""

# A document is JSON of somebody else's: its values are checked before use, and have no type before.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ast
import json
import keyword
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from http import HTTPStatus
from importlib import import_module, resources
from typing import Any, Final, TypeAlias, cast
from unicodedata import normalize
from urllib.parse import unquote

import attrs

from core.errors import DeveloperError, MissingExtraError
from core.openapi.reading import merged, operations, target, without_wording

Schema: TypeAlias = Mapping[str, Any]
_Kinds: TypeAlias = tuple[ast.expr, ...]
"""An annotation: the members of a union."""
_Parameter: TypeAlias = tuple[ast.arg, ast.expr | None]
"""A parameter and its default."""
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
_ABOUT: Final = """

Written by `core client` from the API's OpenAPI document: change the document and write it again. It needs Python 3.11
or newer, and nothing else.
"""
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
        writer.document = without_wording(document)
        return writer.write()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DeveloperError(
            f"{writer.place}: the document is not valid OpenAPI there ({error}). Find the mistake with "
            "`pip install openapi-spec-validator` and `openapi-spec-validator FILE`"
        ) from error
    except RecursionError:
        raise DeveloperError(
            f"{writer.place}: the document is nested too deeply there, or has a union of too many kinds. Give the parts "
            "names of their own under components.schemas"
        ) from None


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
        self.taken: set[str] = {*re.findall(r"\b[A-Z]\w*", self.template), "None", "True", "False"}
        """Names of the module that are given away."""
        self.reserved: Final = {_camel(name) for name in self._section("schemas")}
        """Names of the document: no class that it has no name for takes one of them."""
        self.classes: list[ast.ClassDef] = []
        self.aliases: list[ast.stmt] = []
        self.errors: dict[str, tuple[ast.ClassDef, list[_Kinds]]] = {}
        """The class of each status of an error, and its bodies."""
        self.operations: ast.Dict = ast.Dict([], [])
        self.bodies: list[ast.stmt] = []
        self.methods: dict[str, list[tuple[ast.stmt, ast.stmt]]] = {"": []}
        """The methods of Client and of AsyncClient by tag; those without one under ""."""
        self.functions: set[str] = {"answer"}
        self._names: dict[str, _Kinds] = {}
        """The name of a reference: a class or an alias."""
        self._pending: set[str] = set()
        self.place: str = "the schemas"
        """The part of the document that is being read."""

    def write(self) -> str:
        """The whole module."""
        for name in self._section("schemas"):
            self._reference(f"#/components/schemas/{_escaped(name)}")
        self.place = "the paths"
        for method, path, item, operation in operations(self.document):
            self.place = f"{method} {path}"
            self._operation(path, method, item, operation)
        for made, kinds in self.errors.values():
            made.body.append(_field("body", _joined(kinds)))
        self._merge()
        info = self.document.get("info") or {}
        title = _line(f"A client of {info.get('title', 'an API')} {info.get('version', '')}")
        classes = [_written(one) for one in self.classes]
        if self.aliases:
            classes.append("\n".join(map(_written, self.aliases)))
        spaces, members = self._namespaces()
        table = _field("_OPERATIONS", (_expression("Mapping[str, _Operation]"),), self.operations)
        parts = {
            "ABOUT": _written(_docstring(title + _ABOUT)),
            "CLASSES": "\n\n\n".join(classes) or "# There are none.",
            "ERRORS": "\n\n\n".join(_written(self.errors[one][0]) for one in sorted(self.errors))
            or "# There are none.",
            "OPERATIONS": _written(table),
            "BODIES": "".join(f"{_written(one, '    ')}\n" for one in self.bodies),
            "NAMESPACES": "".join(f"{_written(one)}\n\n\n" for one in spaces),
            "SECURITY": "".join(f"{_written(one)}\n\n\n" for one in self._security()),
        }
        for number, prefix in enumerate(("", "ASYNC_")):
            parts[f"{prefix}MEMBERS"] = "".join(f"{_written(one[number], ' ' * 8)}\n" for one in members)
            parts[f"{prefix}METHODS"] = "".join(f"\n{_written(one[number], '    ')}\n" for one in self.methods[""])
        whole = re.sub(r"@@(\w+)@@", lambda found: parts[found[1]], self.template)
        return whole.rstrip("\n") + "\n"

    def _merge(self) -> None:
        """Make one class of those that have the same fields; names of schemas are kept as aliases."""
        given = [one.id for kinds in self._names.values() for one in kinds if isinstance(one, ast.Name)]
        alike = {made.name: [made.name] for made in self.classes}
        methods = [one for methods in self.methods.values() for both in methods for one in both]
        errors = [made for made, _ in self.errors.values()]
        trees: list[ast.stmt] = [*self.classes, *self.aliases, *self.bodies, *errors, *methods]
        names = _names_in(trees)
        while True:
            shapes: dict[str, str] = {}
            same: dict[str, str] = {}
            for made in self.classes:
                shape = "\n".join(ast.unparse(one) for one in made.body if isinstance(one, ast.AnnAssign))
                first = shapes.setdefault(shape, made.name)
                if first != made.name:
                    same[made.name] = first
                    alike[first] += alike.pop(made.name)
            if not same:
                break
            self.classes = [made for made in self.classes if made.name not in same]
            _rename(names, same)
        wanted = {
            made.name: [name for name in alike[made.name] if name in given] or alike[made.name] for made in self.classes
        }
        chosen = self._chosen(alike, wanted)
        for made in self.classes:
            name = made.name
            if name in chosen:
                made.body = [one for one in made.body if one is not made.body[0] or isinstance(one, ast.AnnAssign)]
                made.name = chosen[name]
            self.aliases += [
                _alias(ast.Name(each), (ast.Name(made.name),))
                for each in wanted[name]
                if each in given and each != made.name
            ]
        _rename(names, chosen)
        for tree in trees:
            _Unions().visit(tree)

    def _chosen(self, alike: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """The names of the classes that stand for several."""
        chosen: dict[str, str] = {}
        first: dict[str, Collection[str]] = {}
        # Where several share the same words, the one with the fewest fields has these words alone.
        for made in sorted(self.classes, key=lambda made: len(_fields_of(made))):
            if len(alike[made.name]) == 1:
                continue
            fields, common = _fields_of(made), _common(wanted[made.name], made, {one.name for one in self.classes})
            more = [name for name in fields if name not in first.setdefault(common, fields.keys())]
            if 0 < len(more) < 3:
                common = f"{common}With{_camel('_and_'.join(more))}"
            chosen[made.name] = _unique(common, (self.taken | self.reserved) - {*alike[made.name]})
            self.taken.add(chosen[made.name])
        return chosen

    def _namespaces(self) -> tuple[list[ast.stmt], list[tuple[ast.stmt, ast.stmt]]]:
        """The classes with the methods of each tag, and the attributes of the clients that have them."""
        taken = set(self.functions)
        spaces: list[ast.stmt] = []
        members: list[tuple[ast.stmt, ast.stmt]] = []
        for tag in [tag for tag in self.methods if tag]:
            attribute = _unique(_identifier(tag), taken)
            taken.add(attribute)
            both: list[ast.stmt] = []
            for number, (prefix, send) in enumerate(
                (("", "Callable[..., Any]"), ("Async", "Callable[..., Awaitable[Any]]"))
            ):
                name = self._class_name(prefix, _camel(tag), "Api")
                init = f"def __init__(self, send: {send}) -> None:\n    self._send: {send} = send"
                methods = [one[number] for one in self.methods[tag]]
                spaces.append(_class(name, f"The operations of {tag}", [*ast.parse(init).body, *methods]))
                field: Any = _field(
                    attribute, (ast.Name(name),), ast.Call(ast.Name(name), [_expression("self._send")], [])
                )
                field.target = ast.Attribute(ast.Name("self"), attribute)
                both.append(field)
            members.append((both[0], both[1]))
        return spaces, members

    def _section(self, name: str) -> Mapping[str, Any]:
        found = (self.document.get("components") or {}).get(name)
        return found if isinstance(found, dict) else {}

    def _class_name(self, *wanted: str, reserved: bool = False) -> str:
        """A name that is free. Only the schema of that name may have a `reserved` one."""
        name = _unique(_camel(" ".join(wanted)), self.taken if reserved else self.taken | self.reserved)
        self.taken.add(name)
        return name

    def _item_name(self, name: str) -> str:
        """The name of an item of the array `name`: `ErrorIssue` of `ErrorIssues`."""
        one = _camel(_singular(name))
        return f"{name}Item" if one == _camel(name) or one in self.taken | self.reserved else one

    # -- operations

    def _operation(self, path: str, method: str, item: Mapping[str, Any], operation: Mapping[str, Any]) -> None:
        name = _unique(_identifier(operation.get("operationId") or f"{method}_{path}", _FIELDS), self.functions)
        self.functions.add(name)
        returned: list[tuple[_Body, str]] = []
        raised: list[str] = []
        replies = ast.Dict([], [])
        for status, is_error, response in self._responses(operation):
            body = self._response_body(
                method, response.get("content") or {}, f"{_camel(name)}{f'{status}Error' if is_error else 'Answer'}"
            )
            error = "ApiError" if is_error else "None"
            if not is_error:
                returned.append((body, status))
            elif status != "default":
                error = self._error(status, body)
                raised.append(error)
            replies.keys.append(ast.Constant(status))
            replies.values.append(ast.Tuple([ast.Constant(body.how), ast.Constant(body.media), ast.Name(error)]))
            self.bodies.append(_field(f"{name}_{status}", body.annotation))
        self.operations.keys.append(ast.Constant(name))
        self.operations.values.append(
            ast.Call(ast.Name("_Operation"), [ast.Constant(method), ast.Constant(path), replies], [])
        )
        text = operation.get("summary") or operation.get("description")
        said = _line(str(text)) if text else ""
        if raised:
            said = f"{said} Raises {', '.join(dict.fromkeys(raised))}.".strip()
        request = self._request(name, path, item, operation)
        both = [_method(name, said, returned, request, prefix) for prefix in ("", "Async")]
        tag = next((tag for tag in operation.get("tags") or () if isinstance(tag, str)), "")
        self.methods.setdefault(tag, []).append((both[0], both[1]))

    def _error(self, status: str, body: _Body) -> str:
        """The class of an error by its status, which answers this body too."""
        if status not in self.errors:
            made: Any = ast.parse("class name(ApiError): pass").body[0]
            made.name = self._class_name(_phrase(status))
            made.body = [_docstring(f"The API answers {status}.")]
            self.errors[status] = made, []
        made, kinds = self.errors[status]
        kinds.append(body.annotation)
        return str(made.name)

    def _responses(self, operation: Mapping[str, Any]) -> Iterator[tuple[str, bool, Mapping[str, Any]]]:
        """The responses in order, each with whether it is an error: `default` is one where another is a success."""
        responses = (operation.get("responses") or {}).items()
        given = {str(status).upper(): target(self.document, one) for status, one in responses}
        succeeds = any(status.startswith(("2", "3")) for status in given)
        for status, response in sorted(given.items(), key=lambda one: (one[0] == "DEFAULT", "X" in one[0], one[0])):
            if re.fullmatch(r"[1-5]([0-9]{2}|XX)", status):
                yield status, status[0] in "45", response
            elif status == "DEFAULT":
                yield "default", succeeds, response

    def _response_body(self, method: str, content: Mapping[str, Any], name: str) -> _Body:
        if not content or method == "HEAD":
            return _Body("", "none", (ast.Constant(None),))
        media, given = _preferred(content)
        schema = given.get("schema") or {}
        if "itemSchema" in given or media == "text/event-stream" or media in _LINES:
            how, item = ("events", self._event(given)) if media == "text/event-stream" else ("lines", None)
            if item is None:
                item = given.get("itemSchema") or merged(self.document, schema).get("items") or {}
            annotation = self._type(item, f"{name}Item")
            if how == "events" and _is_str(annotation):
                how = "events-text"
            return _Body(media, how, annotation)
        if _JSON(media) or (media == "*/*" and not _is_text(merged(self.document, schema))):
            return _Body(media, "json", self._type(schema, name))
        text = media.startswith("text/") or media.partition(";")[0].endswith(("xml", "javascript", "yaml"))
        return _Body(media, "text", (ast.Name("str"),)) if text else _Body(media, "bytes", (ast.Name("bytes"),))

    def _event(self, content: Mapping[str, Any]) -> Schema:
        """The schema of the data of an event: JSON where it is said to be, text otherwise."""
        item = merged(self.document, content.get("itemSchema") or {})
        found: list[Schema] = []
        for one in _alternatives(item) or [item]:
            data = merged(self.document, merged(self.document, one).get("properties", {}).get("data", {}))
            text: Schema = {} if _JSON(data.get("contentMediaType", "")) else {"type": "string"}
            described = data.get("contentSchema", content.get("x-item-schema", text))
            found.append(described if isinstance(described, dict) else {})
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _request(
        self, name: str, path: str, item: Mapping[str, Any], operation: Mapping[str, Any]
    ) -> tuple[list[_Parameter], list[_Parameter], list[ast.keyword]]:
        """The parameters of a method, positional and named ones, and the named arguments of its `_send`."""
        given = [target(self.document, one) for one in [*item.get("parameters", ()), *operation.get("parameters", ())]]
        by_place = {(one.get("in"), one.get("name")): one for one in given}
        # The path has its own say: one that is not declared is a parameter all the same.
        for missing in re.findall(r"\{([^{}]*)\}", path):
            by_place.setdefault(("path", missing), {"schema": {"type": "string"}})
        words = {"path": "path_values", "query": "query", "header": "headers", "cookie": "cookies"}
        places: dict[str, list[tuple[ast.expr, ...]]] = {place: [] for place in words}
        taken = set(_PARAMETERS)
        positional: list[_Parameter] = []
        named: list[_Parameter] = []
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
                either = (ast.Name("str"), ast.Name("int")) if _is_str(annotation) else annotation
                positional.append(_parameter(python, either, required=True))
            else:
                named.append(_parameter(python, annotation, required=bool(parameter.get("required"))))
            style = (ast.Constant(_style(parameter)),) if place == "query" else ()
            places[place].append((ast.Constant(str(json_name)), ast.Name(python), *style))
        named.sort(key=lambda one: one[1] is not None)
        sent: list[ast.keyword] = []
        for place, values in places.items():
            if values:
                keys = [one[0] for one in values]
                pairs = ast.List([ast.Tuple(list(one)) for one in values])
                sent.append(
                    ast.keyword(
                        words[place], pairs if place == "query" else ast.Dict([*keys], [one[1] for one in values])
                    )
                )
        request = target(self.document, operation.get("requestBody") or {})
        body = self._request_body(name, request.get("content") or {})
        if body is not None:
            positional.append(_parameter("body", body.annotation, required=bool(request.get("required"))))
            sent += [ast.keyword("media", ast.Constant(body.media)), ast.keyword("body", ast.Name("body"))]
        return positional, named, sent

    def _request_body(self, name: str, content: Mapping[str, Any]) -> _Body | None:
        if not content:
            return None
        media, given = _preferred(content)
        schema = given.get("schema") or given.get("itemSchema") or {}
        if _JSON(media) or media in _FORMS or (media == "*/*" and not _is_text(merged(self.document, schema))):
            written = "application/json" if media == "*/*" else media
            annotation = self._type(schema, f"{_camel(name)}Body", files=media == "multipart/form-data")
            return _Body(written, "json", annotation)
        if media.startswith("text/"):
            return _Body(media, "text", (ast.Name("str"),))
        return _Body("application/octet-stream" if "*" in media else media, "bytes", (ast.Name("Content"),))

    def _security(self) -> Iterator[ast.stmt]:
        """A function for each security scheme, which makes the credentials that `Client` sends along."""
        for name, given in self._section("securitySchemes").items():
            scheme = target(self.document, given)
            function = _unique(_identifier(name), {*self.taken, *_MODULE(self.template)})
            kind, way = scheme.get("type"), str(scheme.get("scheme", "")).lower()
            parameters, use, key = ["token"], "headers", "Authorization"
            value: ast.expr = ast.Name("token")
            if kind == "http" and way == "basic":
                parameters = ["name", "password"]
                value = _expression('"Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()')
            elif (kind == "http" and way == "bearer") or kind in ("oauth2", "openIdConnect"):
                value = ast.BinOp(ast.Constant("Bearer "), ast.Add(), value)
            elif kind == "http" and re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", way):
                value = ast.BinOp(ast.Constant(f"{way.capitalize()} "), ast.Add(), value)
            elif kind == "apiKey" and scheme.get("in") == "cookie":
                parameters, key = ["value"], "Cookie"
                value = ast.BinOp(ast.Constant(f"{scheme.get('name')}="), ast.Add(), ast.Name("value"))
            elif kind == "apiKey":
                parameters, key, value = ["value"], str(scheme.get("name")), ast.Name("value")
                use = "query" if scheme.get("in") == "query" else "headers"
            else:
                continue
            self.taken.add(function)
            made: Any = ast.parse("def name() -> dict[str, str]: pass").body[0]
            made.name = function
            made.args.args = [ast.arg(one, ast.Name("str")) for one in parameters]
            called = f"`Client(transport, {use}={function}({', '.join(parameters)}))`"
            returned = ast.Return(ast.Dict([ast.Constant(key)], [value]))
            made.body = [_docstring(f"The credentials of a request: {called}."), returned]
            yield made

    # -- types

    def _reference(self, reference: str, *, files: bool = False) -> _Kinds:
        key = f"{reference} with files" if files else reference
        if key in self._names:
            return self._names[key]
        if key in self._pending:
            return (_ANY,)  # an alias within itself, which type checkers do not all follow
        schema = target(self.document, {"$ref": reference})
        wanted = _camel(unquote(reference.rpartition("/")[2]))
        whole = merged(self.document, schema)
        if _is_object(whole) and not _alternatives(whole):
            name = self._class_name(wanted, reserved=True)
            self._names[key] = (ast.Name(name),)
            self._object(name, whole, files=files)
            return self._names[key]
        self._pending.add(key)
        annotation = self._type(schema, wanted, files=files)
        self._pending.discard(key)
        if any(isinstance(kind, ast.Subscript) for kind in annotation) or len(annotation) != 1:
            alias = ast.Name(self._class_name(wanted, reserved=True))
            self.aliases.append(_alias(alias, annotation))
            annotation = (alias,)
        self._names[key] = annotation
        return annotation

    def _type(self, given: Any, name: str, *, files: bool = False) -> _Kinds:
        """The annotation of a schema."""
        if not isinstance(given, dict):  # `true` is a schema too
            return (_ANY,)
        schema: Schema = given
        if schema.get("nullable") is True:
            rest = {key: value for key, value in schema.items() if key != "nullable"}
            if isinstance(rest.get("enum"), list):
                rest["enum"] = [value for value in rest["enum"] if value is not None]
            return _joined([self._type(rest, name, files=files), (ast.Constant(None),)])
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]), files=files)
        parts = [part for part in schema.get("allOf") or () if isinstance(part, dict) and part.keys() - _ANNOTATIONS]
        if len(parts) == 1 and not schema.keys() - _ANNOTATIONS - {"allOf"}:
            return self._type(parts[0], name, files=files)
        schema = merged(self.document, schema)
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
            item = self._type(schema.get("items") or {}, self._item_name(name), files=files)
            return (_of("list", _union(item)),)
        if kinds_given == "string":
            if files and "contentMediaType" in schema and "contentEncoding" not in schema:
                return (ast.Name("File"), ast.Name("bytes"))
            kind = _FORMATS.get(str(schema.get("format")), "str")
            return (ast.Name("File"), ast.Name("bytes")) if files and kind == "bytes" else (_expression(kind),)
        if kinds_given in _SCALARS:
            return (_expression(_SCALARS[str(kinds_given)]),)
        if _is_object(schema):
            cls = self._class_name(name)
            self._object(cls, schema, files=files)
            return (ast.Name(cls),)
        if kinds_given == "object":
            extra = schema.get("additionalProperties")
            inner = self._type(extra if isinstance(extra, dict) else {}, f"{name}Value", files=files)
            return (_of("dict", ast.Name("str"), _union(inner)),)
        return (_ANY,)

    def _object(self, name: str, schema: Schema, *, files: bool) -> None:
        made = _class(name, str(schema.get("description") or ""), [], "@dataclass(frozen=True, kw_only=True)")
        self.classes.append(made)  # before the classes inside it
        required = set(schema.get("required") or ())
        taken = set(_FIELDS)
        for json_name, inner in (schema.get("properties") or {}).items():
            python = _unique(_identifier(json_name, _FIELDS), taken)
            taken.add(python)
            kinds = self._type(inner, _inside(name, _camel(json_name)), files=files)
            options: dict[str, ast.expr] = {}
            if json_name not in required:
                kinds, options["default"] = _joined([kinds, (ast.Name("Unset"),)]), _UNSET
            elif (constant := _only(kinds)) is not None:
                options["default"] = constant
            if python != json_name:
                options["metadata"] = ast.Dict([ast.Constant("json")], [ast.Constant(json_name)])
            value = _options(options) if "metadata" in options else options.get("default")
            made.body.append(_field(python, kinds, value))
            if isinstance(inner, dict) and (description := inner.get("description")):
                made.body.append(_docstring(_line(str(description))))
        extra = schema.get("additionalProperties")
        if extra is True or (isinstance(extra, dict) and extra):
            kind = _of("dict", ast.Name("str"), _union(self._type(extra, f"{name}Value", files=files)))
            options = {"default_factory": kind, "metadata": ast.Dict([ast.Constant("rest")], [ast.Constant(True)])}
            made.body.append(_field(_unique("additional_properties", taken), (kind,), _options(options)))


# -- nodes


def _expression(text: str) -> ast.expr:
    """The tree of an expression that is written in this file."""
    return ast.parse(text, mode="eval").body


_ANY: Final = ast.Name("Any")
_UNSET: Final = ast.Name("UNSET")


def _of(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Subscript(ast.Name(name), arguments[0] if len(arguments) == 1 else ast.Tuple(list(arguments)))


def _union(kinds: Iterable[ast.expr]) -> ast.expr:
    return reduce(lambda left, right: ast.BinOp(left, ast.BitOr(), right), kinds)


def _joined(kinds: Iterable[_Kinds]) -> _Kinds:
    """A union, each kind once, and None and Unset last."""
    single = {ast.unparse(part): part for kind in kinds for part in kind}
    if "Any" in single or not single:
        return (_ANY,)
    last = {"None": 1, "Unset": 2}
    return tuple(single[text] for text in sorted(single, key=lambda text: last.get(text, 0)))


def _is_str(kinds: _Kinds) -> bool:
    return len(kinds) == 1 and isinstance(kinds[0], ast.Name) and kinds[0].id == "str"


def _literal(values: Sequence[Any]) -> _Kinds:
    if any(not isinstance(value, str | int | bool | None) for value in values):
        kinds = {"float" if isinstance(value, int | float) else "Any" for value in values}
        return (ast.Name(kinds.pop()),) if len(kinds) == 1 else (_ANY,)
    plain = {repr(value): ast.Constant(value) for value in values if value is not None}
    none = (ast.Constant(None),) if None in values else ()
    return _joined([(_of("Literal", *plain.values()),) if plain else (), none])


def _field(name: str, kinds: _Kinds, value: ast.expr | None = None) -> ast.stmt:
    return ast.AnnAssign(ast.Name(name), _union(kinds), value, simple=1)


def _options(options: Mapping[str, ast.expr]) -> ast.expr:
    return ast.Call(ast.Name("field"), [], [ast.keyword(name, value) for name, value in options.items()])


def _parameter(name: str, kinds: _Kinds, *, required: bool) -> _Parameter:
    if required:
        return ast.arg(name, _union(kinds)), None
    return ast.arg(name, _union(_joined([kinds, (ast.Name("Unset"),)]))), _UNSET


def _alias(name: ast.Name, kinds: _Kinds) -> ast.stmt:
    return ast.AnnAssign(name, ast.Name("TypeAlias"), _union(kinds), simple=1)


def _docstring(text: str) -> ast.stmt:
    return ast.Expr(ast.Constant(text))


def _class(name: str, description: str, body: Sequence[ast.stmt], decorator: str = "") -> ast.ClassDef:
    made: Any = ast.parse(f"{decorator}\nclass name: pass").body[0]
    made.name = name
    made.body = [*([_docstring(_line(description))] if description else []), *body]
    return cast("ast.ClassDef", made)


def _method(
    name: str,
    said: str,
    returned: Sequence[tuple[_Body, str]],
    request: tuple[list[_Parameter], list[_Parameter], list[ast.keyword]],
    prefix: str,
) -> ast.stmt:
    """A method of Client, or of AsyncClient with the prefix "Async"."""
    kinds: list[_Kinds] = [] if returned else [(ast.Constant(None),)]
    for body, _ in returned:
        item = _union(body.annotation)
        if body.how.startswith("events"):
            item = _of("Event", item)
        is_stream = body.how not in ("json", "text", "none")
        kinds.append((_of(f"{prefix}Stream", item),) if is_stream else body.annotation)
    positional, named, sent = request
    made: Any = ast.parse(f"{prefix and 'async '}def name(self) -> None: return answer").body[0]
    made.name, made.returns = name, _union(_joined(kinds))
    made.args.args += [one for one, _ in positional]
    made.args.defaults = [default for _, default in positional if default is not None]
    made.args.kwonlyargs = [one for one, _ in named]
    made.args.kw_defaults = [default for _, default in named]
    asked: ast.expr = ast.Call(_expression("self._send"), [ast.Constant(name)], sent)
    made.body.insert(0, _field("answer", _joined(kinds), ast.Await(asked) if prefix else asked))
    if said:
        made.body.insert(0, _docstring(said))
    return cast("ast.stmt", made)


def _only(kinds: _Kinds) -> ast.expr | None:
    """The value of a constant: of an annotation that allows no other."""
    if len(kinds) == 1 and isinstance(one := kinds[0], ast.Subscript) and ast.unparse(one.value) == "Literal":
        return one.slice if isinstance(one.slice, ast.Constant | ast.UnaryOp) else None
    return None


def _names_in(nodes: Iterable[ast.AST]) -> list[ast.Name]:
    """The names in annotations, those that several nodes share once."""
    found: dict[int, ast.Name] = {}
    for node in [inner for outer in nodes for inner in ast.walk(outer)]:
        roots: list[ast.expr | None] = []
        match node:
            case ast.AnnAssign(annotation=ast.Name(id="TypeAlias"), value=value):
                roots = [value]
            case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=annotation):
                roots = [annotation]
            case ast.FunctionDef(returns=returns) | ast.AsyncFunctionDef(returns=returns):
                roots = [returns]
            case ast.keyword(arg="default_factory", value=value):
                roots = [value]
            case _:
                pass
        for root in filter(None, roots):
            found |= {id(one): one for one in ast.walk(root) if isinstance(one, ast.Name)}
    return [*found.values()]


def _rename(names: Iterable[ast.Name], renamed: Mapping[str, str]) -> None:
    for name in names:
        name.id = renamed.get(name.id, name.id)


def _common(names: Sequence[str], made: ast.ClassDef, classes: Collection[str]) -> str:
    """The words that all names end in. Where they say nothing, the fields are named, those that have other classes
    alone if there are any; or the first name is taken.
    """
    words = [re.findall(r"[A-Z][^A-Z]*|[^A-Z]+", name.rstrip("0123456789")) for name in names]
    count = 0
    while all(len(one) > count and one[-1 - count] == words[0][-1 - count] for one in words):
        count += 1
    common = "".join(words[0][len(words[0]) - count :])
    if common in ("Answer", "Body", "Item", "Value"):
        fields = _fields_of(made)
        telling = [
            name
            for name, kind in fields.items()
            if any(isinstance(one, ast.Name) and one.id in classes for one in ast.walk(kind))
        ]
        fitting = telling or [*fields]
        return _camel("_".join([*fitting, common])) if len(fitting) < 3 else names[0]
    return common if len(common) > 3 and common.isidentifier() else names[0]


def _fields_of(made: ast.ClassDef) -> dict[str, ast.expr]:
    """The annotation of each field."""
    return {ast.unparse(one.target): one.annotation for one in made.body if isinstance(one, ast.AnnAssign)}


def _singular(name: str) -> str:
    """A plural's singular; a word that is none stays."""
    for ending, one in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if name.lower().endswith(ending) and len(name) > len(ending) + 1:
            return name[: -len(ending)] + one
    return name[:-1] if re.search(r"[^siu]s$", name) else name


def _inside(name: str, attribute: str) -> str:
    """The name of the class of an attribute: `LoginErrors` of `errors` in `LoginError`, whose word says it once."""
    last = re.split(r"(?=[A-Z])", name)[-1]
    stem = name.removesuffix(last) if _singular(attribute) == last != attribute else name
    return f"{stem} {attribute}"


class _Unions(ast.NodeTransformer):
    """Unions with each member once: two of them may have become one class."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if not isinstance(node.op, ast.BitOr):
            return self.generic_visit(node)
        members = {ast.unparse(one): one for one in map(self.visit, _members(node))}
        return _union(members.values())


def _phrase(status: str) -> str:
    """The name of an error. Python's own phrases differ between its versions."""
    later = {
        "413": "Content Too Large",
        "414": "URI Too Long",
        "416": "Range Not Satisfiable",
        "422": "Unprocessable Content",
    }
    if not status.isdigit():
        return "Client Error" if status[0] == "4" else "Server Error"
    known = {str(int(one)): one.phrase for one in HTTPStatus}
    return later.get(status) or known.get(status, f"Status {status}").replace("'", "")


def _written(node: ast.AST, indent: str = "") -> str:
    """A node as text, each of its parts on a line of its own where one line is too long for all."""
    inner = f"{indent}    "
    match node:
        case ast.ClassDef(name=name, body=body):
            bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
            lines = [f"@{ast.unparse(one)}" for one in node.decorator_list] + [f"class {name}{bases}:"]
            for each in body or [ast.Pass()]:
                lines += [""] if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) else []
                lines.append(_written(each, inner))
            return "\n".join(lines)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
            head = f"{indent}{word} {node.name}"
            returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
            parts = _arguments(node.args)
            lines = [_bracketed(head, "(", parts, f"){returns}:", indent), *(_written(one, inner) for one in node.body)]
            return "\n".join(lines)
        case ast.AnnAssign(target=target, annotation=annotation, value=value):
            head = f"{indent}{ast.unparse(target)}: "
            if value is None:
                return head + _expressed(annotation, indent, len(head))
            head += f"{ast.unparse(annotation)} = "
            return head + _expressed(value, indent, len(head))
        case _:
            # In a module of its own a text is a docstring.
            return indent + ast.unparse(ast.Module([cast("ast.stmt", node)], []))


def _arguments(given: ast.arguments) -> list[str]:
    def shown(one: ast.arg, default: ast.expr | None) -> str:
        return ast.unparse(one) if default is None else f"{ast.unparse(one)} = {ast.unparse(default)}"

    defaults = [None] * (len(given.args) - len(given.defaults)) + given.defaults
    positional = [shown(*pair) for pair in zip(given.args, defaults, strict=True)]
    named = [shown(*pair) for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return [*positional, *(["*", *named] if named else [])]


def _expressed(node: ast.expr, indent: str, before: int) -> str:
    """An expression behind `before` characters."""
    flat = ast.unparse(node)
    if before + len(flat) <= _WIDTH:
        return flat
    inner = f"{indent}    "
    match node:
        case ast.Await(value=value):
            return f"await {_expressed(value, indent, before + 6)}"
        case ast.Call(func=func, args=args, keywords=keywords):
            parts = [_expressed(one, inner, len(inner)) for one in args]
            parts += [
                f"{one.arg}={_expressed(one.value, inner, len(inner) + len(one.arg or '') + 1)}" for one in keywords
            ]
            return _bracketed(ast.unparse(func), "(", parts, ")", indent)
        case ast.Dict(keys=keys, values=values):
            shown = [(f"{ast.unparse(key)}: ", one) for key, one in zip(keys, values, strict=True) if key]
            parts = [f"{key}{_expressed(one, inner, len(inner) + len(key) + 1)}" for key, one in shown]
            return _bracketed("", "{", parts, "}", indent)
        case ast.List(elts=elts):
            return _bracketed("", "[", [ast.unparse(one) for one in elts], "]", indent)
        case ast.BinOp(op=ast.BitOr()):
            members = [ast.unparse(one) for one in _members(node)]
            return "\n".join(["(", f"{inner}{members[0]}", *(f"{inner}| {one}" for one in members[1:]), f"{indent})"])
        case _:
            return flat


def _members(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_members(node.left), *_members(node.right)]
    return [node]


def _bracketed(head: str, opening: str, parts: Sequence[str], closing: str, indent: str) -> str:
    """Parts in brackets, on one line where they fit and one a line where they do not."""
    whole = f"{head}{opening}{', '.join(parts)}{closing}"
    if "\n" not in whole and len(whole) <= _WIDTH:
        return whole
    lines = [f"{indent}    {part}," for part in parts]
    return "\n".join([f"{head}{opening}", *lines, f"{indent}{closing}"])


def _preferred(content: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The media type that a client speaks: JSON where it may, then forms that may have files, then other forms."""
    order = sorted(content, key=lambda media: 0 if _JSON(media) else 1 + [*_FORMS, media].index(media))
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


def _line(text: str) -> str:
    """A text as one line, a sentence."""
    return f"{' '.join(''.join(one if one.isprintable() else ' ' for one in text).split()).rstrip('.')}."


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
