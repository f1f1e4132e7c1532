"""The input of an operation: its parameters and its body, by everything that is read of a request on the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from core.http.json import JsonObject
from core.openapi.components import Components
from core.openapi.facts import ClassFacts, Effect, Read
from core.validation.schema import Schema, any_of

_SILENT_HEADERS: Final = frozenset(["accept", "authorization", "content-type", "cookie"])
"""Header parameters that OpenAPI says to leave out: other parts of a document say them."""
_BODIES: Final = frozenset(["json", "form", "form-name", "text", "bytes", "stream"])


class Requests:
    """Parameters and bodies of one document."""

    def __init__(
        self,
        classes: Mapping[str, ClassFacts],
        components: Components,
        problem: Callable[[Effect, str], None],
    ) -> None:
        self._classes = classes
        self._components = components
        self._problem = problem

    def parameters(self, path: str, found: Sequence[Effect], patterns: Mapping[str, str]) -> list[JsonObject]:
        """Everything that is read of the path, the query, the headers and the cookies. `patterns` are those that the
        route demands of parameters of the path.
        """
        result: dict[tuple[str, str], JsonObject] = {}
        asked = set[tuple[str, str]]()
        """What the program asks for before it reads it."""
        for name in re.findall(r"\{([^}]+)\}", path):
            text: Schema = {"type": "string"}
            if name in patterns:
                text["pattern"] = f"^(?:{patterns[name]})$"
            result["path", name] = {"name": name, "in": "path", "required": True, "schema": text}
            if name == "path" and path.endswith("{path}"):
                result["path", name]["description"] = "The rest of the path, slashes included."
        for read in found:
            if not isinstance(read, Read):
                continue
            where, _, single = read.part.partition("-")
            if single and where != "form" and read.name is not None:
                if where == "header" and read.name.lower() in _SILENT_HEADERS:
                    continue
                key = (where, read.name.lower() if where == "header" else read.name)
                parameter: JsonObject = {
                    "name": read.name,
                    "in": where,
                    "schema": read.schema or {"type": "string"},
                }
                if key not in result:
                    result[key] = parameter
                elif parameter["schema"].get("type") == "array" and result[key]["schema"] == {"type": "string"}:
                    result[key]["schema"] = parameter["schema"]
                if read.schema is None:
                    asked.add(key)
                    result[key].pop("required", None)
                elif read.required and key not in asked:
                    result[key]["required"] = True
            elif read.part in ("query", "params", "headers") and read.schema is not None:
                place = {"params": "path", "headers": "header"}.get(read.part, "query")
                for field in self._fields(read.schema, place, read):
                    key = (place, field["name"])
                    if place == "path" and key in result and field["schema"].get("type") == "string":
                        field["schema"] = {**result[key]["schema"], **field["schema"]}
                    if place != "path" or key in result:
                        result[key] = {**result.get(key, {}), **field}
        return list(result.values())

    def _fields(self, schema: Schema, place: str, each: Read) -> Iterator[JsonObject]:
        """Each field of a class that a query string is read into."""
        facts = self._classes.get(schema.get("$class", ""))
        if facts is None:
            self._problem(each, f"the {place} is read into a type without fields. Read it into an attrs class")
            return
        for field in facts.fields:
            if not field.is_read:
                continue
            name = field.name.replace("_", "-") if place == "header" else field.name
            parameter: JsonObject = {"name": name, "in": place}
            whole = {**field.schema, **({"default": field.default[0]} if field.default else {})}
            if "description" in whole:
                parameter["description"] = whole.pop("description")
            if place == "path" or field.default is None:
                parameter["required"] = True
            parameter["schema"] = self._components.final(whole, each, reading=True)
            yield parameter

    def body(self, found: Sequence[Effect]) -> JsonObject | None:
        """Everything that is read of the body, by media type; None where nothing is."""
        content: JsonObject = {}
        fields: dict[str, Schema] = {}
        for read in found:
            if not isinstance(read, Read) or read.part not in _BODIES:
                continue
            schema = self._components.final(read.schema, read, reading=True) if read.schema is not None else {}
            match read.part:
                case "json":
                    if read.schema is None:
                        self._problem(read, "the body is read as JSON of any type. Say which: await req.json(T)")
                    add_body(content, "application/json", schema)
                case "form" | "form-name":
                    for media in ("multipart/form-data", "application/x-www-form-urlencoded"):
                        content.setdefault(media, {"schema": {"type": "object"}})
                        if read.part == "form" and schema:
                            content[media] = {"schema": schema}
                    if read.part == "form-name" and read.name is not None:
                        fields.setdefault(read.name, schema)
                case "text":
                    add_body(content, "text/plain", {"type": "string"})
                case _:
                    add_body(
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


def add_body(content: JsonObject, media_type: str, schema: Schema) -> None:
    """Another body of a media type: the alternatives stand side by side."""
    before = content.get(media_type, {}).get("schema")
    content[media_type] = {"schema": schema if before is None else any_of([before, schema])}
