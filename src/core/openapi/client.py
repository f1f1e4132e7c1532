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
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, Final, cast

import attrs

from core.errors import DeveloperError
from core.openapi.client_classes import FIELDS, Classes, Schema, alternatives, is_text
from core.openapi.client_source import (
    Kinds,
    Parameter,
    annotated,
    argument,
    camel,
    class_of,
    docstring,
    expression,
    identifier,
    is_str,
    joined,
    of,
    phrase,
    sentence,
    union,
    unique,
    written,
)
from core.openapi.facts import MAY_BE_EMPTY
from core.openapi.reading import is_json, merged, operations, plain_media, section, target, without_wording

_PARAMETERS: Final = frozenset(["answer", "body", "dict", "list", "self"])
_LINES: Final = frozenset(
    ["application/jsonl", "application/x-ndjson", "application/x-jsonlines", "application/json-seq"]
)
_FORMS: Final = ("multipart/form-data", "application/x-www-form-urlencoded")
_DELIMITERS: Final[Mapping[str, str]] = {"spaceDelimited": " ", "pipeDelimited": "|"}
_SENDS: Final[Mapping[str, str]] = {"": "Callable[..., Any]", "Async": "Callable[..., Awaitable[Any]]"}
"""The type of what sends the requests of Client and of AsyncClient, by what stands before the names of the latter."""
_ABOUT: Final = """

Written by `core client` from the API's OpenAPI document: change the document and write it again. It needs Python 3.11
or newer, and nothing else.
"""
_MODULE: Final = re.compile(
    r"(?m)^(?:async def|def|import|import \w+ as) (\w+)|\b(?:dataclass|field|fields|quote)\b"
).findall


def write_client(document: Mapping[str, object]) -> str:
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
    annotation: Kinds


class _Writer:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.template = (resources.files("core.openapi") / "client_template.py.in").read_text("utf-8")
        self.taken: set[str] = {*re.findall(r"\b[A-Z]\w*", self.template), "None", "True", "False"}
        """Names of the module that are given away."""
        self.classes = Classes({}, self.taken)
        self.errors: dict[str, tuple[ast.ClassDef, list[Kinds]]] = {}
        """The class of each status of an error, and its bodies."""
        self.operations: ast.Dict = ast.Dict([], [])
        self.bodies: list[ast.stmt] = []
        self.methods: dict[str, list[list[ast.stmt]]] = {"": []}
        """The methods of Client and of AsyncClient by tag; those without one under ""."""
        self.functions: set[str] = {"answer"}
        self.place: str = "the schemas"
        """The part of the document that is being read."""

    def write(self) -> str:
        """The whole module."""
        self.document = without_wording(self.document)
        self.classes = Classes(self.document, self.taken)
        for name in section(self.document, "schemas"):
            pointer = name.replace("~", "~0").replace("/", "~1").replace("%", "%25")
            self.classes.reference(f"#/components/schemas/{pointer}")
        self.place = "the paths"
        for method, path, item, operation in operations(self.document):
            self.place = f"{method} {path}"
            self._operation(path, method, item, operation)
        for made, kinds in self.errors.values():
            made.body.append(annotated("body", joined(kinds)))
        self.classes.finish()
        info = self.document.get("info") or {}
        title = sentence(f"A client of {info.get('title', 'an API')} {info.get('version', '')}")
        classes = [written(one) for one in self.classes.made]
        if self.classes.aliases:
            classes.append("\n".join(map(written, self.classes.aliases)))
        spaces, members = self._namespaces()
        table = annotated("_OPERATIONS", (expression("Mapping[str, _Operation]"),), self.operations)
        parts = {
            "ABOUT": written(docstring(title + _ABOUT)),
            "CLASSES": "\n\n\n".join(classes) or "# There are none.",
            "ERRORS": "\n\n\n".join(written(self.errors[one][0]) for one in sorted(self.errors)) or "# There are none.",
            "OPERATIONS": written(table),
            "BODIES": "".join(f"{written(one, '    ')}\n" for one in self.bodies),
            "NAMESPACES": "".join(f"{written(one)}\n\n\n" for one in spaces),
            "SECURITY": "".join(f"{written(one)}\n\n\n" for one in self._security()),
        }
        for number, prefix in enumerate(("", "ASYNC_")):
            parts[f"{prefix}MEMBERS"] = "".join(f"{written(one[number], ' ' * 8)}\n" for one in members)
            parts[f"{prefix}METHODS"] = "".join(f"\n{written(one[number], '    ')}\n" for one in self.methods[""])
        whole = re.sub(r"@@(\w+)@@", lambda found: parts[found[1]], self.template)
        return whole.rstrip("\n") + "\n"

    def _namespaces(self) -> tuple[list[ast.stmt], list[list[ast.stmt]]]:
        """The classes with the methods of each tag, and the attributes of the clients that have them."""
        taken = set(self.functions)
        spaces: list[ast.stmt] = []
        members: list[list[ast.stmt]] = []
        for tag in [tag for tag in self.methods if tag]:
            attribute = unique(identifier(tag), taken)
            taken.add(attribute)
            both: list[ast.stmt] = []
            for (prefix, send), methods in zip(_SENDS.items(), zip(*self.methods[tag], strict=True), strict=True):
                name = self.classes.class_name(prefix, camel(tag), "Api")
                init = f"def __init__(self, send: {send}) -> None:\n    self._send: {send} = send"
                spaces.append(class_of(name, f"The operations of {tag}", [*ast.parse(init).body, *methods]))
                made = ast.Call(ast.Name(name), [expression("self._send")], [])
                field: Any = annotated(attribute, (ast.Name(name),), made)
                field.target = ast.Attribute(ast.Name("self"), attribute)
                both.append(field)
            members.append(both)
        return spaces, members

    # -- operations

    def _operation(self, path: str, method: str, item: Mapping[str, object], operation: Mapping[str, Any]) -> None:
        name = unique(identifier(operation.get("operationId") or f"{method}_{path}", FIELDS), self.functions)
        self.functions.add(name)
        returned: list[_Body] = []
        raised: list[str] = []
        replies = ast.Dict([], [])
        for status, is_error, response in self._responses(operation):
            words = "" if status == "default" else phrase(status).removesuffix(" Error")
            kind = f"{words} Error" if is_error else words if returned and status.isdigit() else "Answer"
            bodies = [*self._response_bodies(method, response, f"{camel(name)} {kind}")]
            error = "ApiError" if is_error else "None"
            if not is_error:
                returned += bodies
            elif status != "default":
                error = self._error(status, bodies)
                raised.append(error)
            how = ast.Dict([ast.Constant(each.media) for each in bodies], [ast.Constant(each.how) for each in bodies])
            replies.keys.append(ast.Constant(status))
            replies.values.append(ast.Tuple([ast.Name(error), how]))
            for number, body in enumerate(bodies):
                self.bodies.append(annotated(f"{name}_{status}_{number}", body.annotation))
        made = ast.Call(ast.Name("_Operation"), [ast.Constant(method), ast.Constant(path), replies], [])
        self.operations.keys.append(ast.Constant(name))
        self.operations.values.append(made)
        text = operation.get("summary") or operation.get("description")
        said = sentence(str(text)) if text else ""
        if raised:
            said = f"{said} Raises {', '.join(dict.fromkeys(raised))}.".strip()
        request = self._request(name, path, item, operation)
        tag = next((tag for tag in operation.get("tags") or () if isinstance(tag, str)), "")
        both = [_method(name, said, returned, request, prefix) for prefix in _SENDS]
        self.methods.setdefault(tag, []).append(both)

    def _error(self, status: str, bodies: Sequence[_Body]) -> str:
        """The class of an error by its status, which answers these bodies too."""
        if status not in self.errors:
            made: Any = ast.parse("class name(ApiError): pass").body[0]
            made.name = self.classes.class_name(phrase(status))
            made.body = [docstring(f"The API answers {status}.")]
            self.errors[status] = made, []
        made, kinds = self.errors[status]
        kinds += [body.annotation for body in bodies]
        return str(made.name)

    def _responses(self, operation: Mapping[str, Any]) -> Iterator[tuple[str, bool, Mapping[str, Any]]]:
        """The responses in order, each with whether it is an error: `default` is one beside others."""
        responses = (operation.get("responses") or {}).items()
        given = {str(status).upper(): target(self.document, one) for status, one in responses}
        for status, response in sorted(given.items(), key=lambda one: (one[0] == "DEFAULT", "X" in one[0], one[0])):
            if re.fullmatch(r"[1-5]([0-9]{2}|XX)", status):
                yield status, status[0] in "45", response
            elif status == "DEFAULT":
                yield "default", len(given) > 1, response

    def _response_bodies(self, method: str, response: Mapping[str, Any], name: str) -> Iterator[_Body]:
        content: Mapping[str, object] = {} if method == "HEAD" else response.get("content") or {}
        for number, (media, given) in enumerate(_preferred(content)):
            body = self._response_body(media, given, name)
            if number and body.how in ("text", "bytes") and not is_text(merged(self.document, given.get("schema"))):
                continue  # an object that the client cannot read, as one in XML: it asks for the first alone
            if body.how == "json" and response.get(MAY_BE_EMPTY):
                body = _Body(media, "json-or-empty", joined([body.annotation, (ast.Constant(None),)]))
            yield body
        if not content:
            yield _Body("", "none", (ast.Constant(None),))

    def _response_body(self, media: str, given: Mapping[str, Any], name: str) -> _Body:
        plain, schema = plain_media(media), given.get("schema") or {}
        if plain == "text/event-stream":
            annotation = self.classes.type_of(self._event(given), f"{name}Item")
            return _Body(media, "events-text" if is_str(annotation) else "events", annotation)
        if "itemSchema" in given or plain in _LINES:
            item = given.get("itemSchema") or merged(self.document, schema).get("items") or {}
            return _Body(media, "lines", self.classes.type_of(item, f"{name}Item"))
        if is_json(media) or (media == "*/*" and not is_text(merged(self.document, schema))):
            return _Body(media, "json", self.classes.type_of(schema, name))
        text = plain.startswith("text/") or plain.endswith(("xml", "javascript", "yaml"))
        return _Body(media, "text", (ast.Name("str"),)) if text else _Body(media, "bytes", (ast.Name("bytes"),))

    def _event(self, content: Mapping[str, object]) -> Schema:
        """The schema of the data of an event: JSON where it is said to be, text otherwise."""
        item = merged(self.document, content.get("itemSchema") or {})
        found: list[Schema] = []
        for one in alternatives(item) or [item]:
            data = merged(self.document, merged(self.document, one).get("properties", {}).get("data", {}))
            text: Schema = {} if is_json(data.get("contentMediaType", "")) else {"type": "string"}
            described = data.get("contentSchema", content.get("x-item-schema", text))
            found.append(described if isinstance(described, dict) else {})
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _request(
        self, name: str, path: str, item: Mapping[str, Any], operation: Mapping[str, Any]
    ) -> tuple[list[Parameter], list[Parameter], list[ast.keyword]]:
        """The parameters of a method, positional and named ones, and the named arguments of its `_send`."""
        given = [target(self.document, one) for one in [*item.get("parameters", ()), *operation.get("parameters", ())]]
        by_place = {(one.get("in"), one.get("name")): one for one in given}
        # The path has its own say: one that is not declared is a parameter all the same.
        for missing in re.findall(r"\{([^{}]*)\}", path):
            by_place.setdefault(("path", missing), {"schema": {"type": "string"}})
        words = {"path": "path_values", "query": "query", "header": "headers", "cookie": "cookies"}
        places: dict[str, list[tuple[ast.expr, ...]]] = {place: [] for place in words}
        taken = set(_PARAMETERS)
        positional: list[Parameter] = []
        named: list[Parameter] = []
        for (place, json_name), parameter in by_place.items():
            place = "query" if place == "querystring" else str(place)
            if place not in places or (place == "header" and str(json_name).lower() in ("accept", "content-type")):
                continue
            python = unique(identifier(str(json_name), _PARAMETERS), taken)
            taken.add(python)
            content = parameter.get("content") or {}
            described: Mapping[str, object] = next(iter(content.values()), {})
            schema = parameter.get("schema") or described.get("schema") or {}
            annotation = self.classes.type_of(schema, f"{camel(name)} {camel(python)}")
            if place == "path":
                either = (ast.Name("str"), ast.Name("int")) if is_str(annotation) else annotation
                positional.append(argument(python, either, required=True))
            else:
                named.append(argument(python, annotation, required=bool(parameter.get("required"))))
            style = (ast.Constant(_style(parameter)),) if place == "query" else ()
            places[place].append((ast.Constant(str(json_name)), ast.Name(python), *style))
        named.sort(key=lambda one: one[1] is not None)
        sent: list[ast.keyword] = []
        for place, values in places.items():
            if values:
                pairs: ast.expr = ast.List([ast.Tuple(list(one)) for one in values])
                if place != "query":
                    pairs = ast.Dict([one[0] for one in values], [one[1] for one in values])
                sent.append(ast.keyword(words[place], pairs))
        request = target(self.document, operation.get("requestBody") or {})
        body = self._request_body(name, request.get("content") or {})
        if body is not None:
            positional.append(argument("body", body.annotation, required=bool(request.get("required"))))
            sent += [ast.keyword("media", ast.Constant(body.media)), ast.keyword("body", ast.Name("body"))]
        return positional, named, sent

    def _request_body(self, name: str, content: Mapping[str, object]) -> _Body | None:
        if not content:
            return None
        media, given = _preferred(content)[0]
        schema = given.get("schema") or given.get("itemSchema") or {}
        if is_json(media) or media in _FORMS or (media == "*/*" and not is_text(merged(self.document, schema))):
            written = "application/json" if media == "*/*" else media
            annotation = self.classes.type_of(schema, f"{camel(name)}Body", files=media == "multipart/form-data")
            return _Body(written, "json", annotation)
        if media.startswith("text/"):
            return _Body(media, "text", (ast.Name("str"),))
        return _Body("application/octet-stream" if "*" in media else media, "bytes", (ast.Name("Content"),))

    def _security(self) -> Iterator[ast.stmt]:
        """A function for each security scheme, which makes the credentials that `Client` sends along."""
        for name, given in section(self.document, "securitySchemes").items():
            scheme = target(self.document, given)
            function = unique(identifier(name), {*self.taken, *_MODULE(self.template)})
            kind, way = scheme.get("type"), str(scheme.get("scheme", "")).lower()
            parameters, use, key, prefix = ["token"], "headers", "Authorization", ""
            if kind == "http" and way == "basic":
                parameters = ["name", "password"]
            elif (kind == "http" and way == "bearer") or kind in ("oauth2", "openIdConnect"):
                prefix = "Bearer "
            elif kind == "http" and re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", way):
                prefix = f"{way.capitalize()} "
            elif kind == "apiKey" and scheme.get("in") == "cookie":
                parameters, key, prefix = ["value"], "Cookie", f"{scheme.get('name')}="
            elif kind == "apiKey":
                parameters, key = ["value"], str(scheme.get("name"))
                use = "query" if scheme.get("in") == "query" else "headers"
            else:
                continue
            value: ast.expr = ast.Name(parameters[0])
            if len(parameters) == 2:
                value = expression('"Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()')
            elif prefix:
                value = ast.BinOp(ast.Constant(prefix), ast.Add(), value)
            self.taken.add(function)
            made: Any = ast.parse("def name() -> dict[str, str]: pass").body[0]
            made.name = function
            made.args.args = [ast.arg(one, ast.Name("str")) for one in parameters]
            called = f"`Client(transport, {use}={function}({', '.join(parameters)}))`"
            returned = ast.Return(ast.Dict([ast.Constant(key)], [value]))
            made.body = [docstring(f"The credentials of a request: {called}."), returned]
            yield made


def _method(
    name: str,
    said: str,
    returned: Sequence[_Body],
    request: tuple[list[Parameter], list[Parameter], list[ast.keyword]],
    prefix: str,
) -> ast.stmt:
    kinds: list[Kinds] = [] if returned else [(ast.Name("NoReturn"),)]
    for body in returned:
        item = of("Event", union(body.annotation)) if body.how.startswith("events") else union(body.annotation)
        is_stream = body.how.startswith(("events", "lines", "bytes"))
        kinds.append((of(f"{prefix}Stream", item),) if is_stream else body.annotation)
    positional, named, sent = request
    made: Any = ast.parse(f"{prefix and 'async '}def name(self) -> None: return answer").body[0]
    made.name, made.returns = name, union(joined(kinds))
    made.args.args += [one for one, _ in positional]
    made.args.defaults = [default for _, default in positional if default is not None]
    made.args.kwonlyargs = [one for one, _ in named]
    made.args.kw_defaults = [default for _, default in named]
    asked: ast.expr = ast.Call(expression("self._send"), [ast.Constant(name)], sent)
    sending = ast.Await(asked) if prefix else asked
    made.body = [annotated("answer", joined(kinds), sending), *made.body] if returned else [ast.Raise(sending)]
    made.body = [*([docstring(said)] if said else []), *made.body]
    return cast("ast.stmt", made)


def _preferred(content: Mapping[str, object]) -> list[tuple[str, Mapping[str, Any]]]:
    """The media types, as a client speaks them: JSON where it may, then forms that may have files, then other forms."""
    order = sorted(content, key=lambda media: 0 if is_json(media) else 1 + [*_FORMS, media].index(media))
    return [(media, given if isinstance(given := content[media], dict) else {}) for media in order]


def _style(parameter: Mapping[str, Any]) -> str:
    """Return the style in which `_pairs` writes a parameter of a query."""
    if parameter.get("content"):
        return "json"
    style = parameter.get("style", "form")
    if style == "form":
        return "form" if parameter.get("explode", True) else ","
    return _DELIMITERS.get(style, str(style))
