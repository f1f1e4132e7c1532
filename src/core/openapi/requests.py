"""The input of an operation: its parameters and its body, by all that is read of a request on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from core.http.json import JsonObject
from core.openapi.components import Components
from core.openapi.facts import BODIES, Effect, Read
from core.validation.schema import Schema, any_of, without_null

_SILENT_HEADERS: Final = frozenset(["accept", "authorization", "content-type", "cookie", "host"])
"""Headers that are no parameters: other parts of a document say them, or every client sends them by itself."""
_BODILESS: Final = frozenset(["get", "head", "delete", "options", "trace"])
_WORDS: Final = {"query": "query", "header": "headers", "cookie": "cookies"}


def parameters(
    components: Components, path: str, found: Sequence[Effect], patterns: Mapping[str, str]
) -> list[JsonObject]:
    """Everything that is read of the path, the query, the headers and the cookies.

    `patterns` are those that the route demands of parameters of the path.
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
        if not isinstance(read, Read) or read.part not in ("query", "path", "header", "cookie"):
            continue
        place = read.part
        if read.name is not None:
            if place == "header" and read.name.lower() in _SILENT_HEADERS:
                continue
            key = (place, read.name.lower() if place == "header" else read.name)
            schema = read.schema or {"type": "string"}
            if key not in result:
                result[key] = {"name": read.name, "in": place, "schema": schema}
            elif schema.get("type") == "array" and result[key]["schema"] == {"type": "string"}:
                result[key]["schema"] = schema
            if read.schema is None:
                asked.add(key)
                result[key].pop("required", None)
            elif read.required and key not in asked:
                result[key]["required"] = True
        elif read.schema is None:
            components.problem(
                read,
                f"the name of what is read of the {_WORDS[place]} is not known. Give a constant, or a Literal type",
            )
        elif place != "cookie":
            for field in _fields(components, read.schema, place, read):
                key = (place, field["name"])
                if place == "path" and key in result and field["schema"].get("type") == "string":
                    field["schema"] = {**result[key]["schema"], **field["schema"]}
                if place != "path" or key in result:
                    result[key] = {**result.get(key, {}), **field}
    return list(result.values())


def _fields(components: Components, schema: Schema, place: str, each: Read) -> Iterator[JsonObject]:
    """Each field of a class that a query string is read into."""
    facts = components.classes.get(schema.get("$class", ""))
    if facts is None:
        components.problem(each, f"the {place} is read into a type without fields. Read it into an attrs class")
        return
    for field in facts.fields:
        if not field.is_read:
            continue
        name = field.name.replace("_", "-") if place == "header" else field.name
        parameter: JsonObject = {"name": name, "in": place}
        # A text that is sent is never null: who means None leaves it out.
        whole = without_null(field.schema, field.schema)
        if field.default and field.default != (None,):
            whole = {**whole, "default": field.default[0]}
        if "description" in whole:
            parameter["description"] = whole.pop("description")
        if place == "path" or field.default is None:
            parameter["required"] = True
        parameter["schema"] = components.final(whole, each, reading=True)
        yield parameter


def body(components: Components, found: Sequence[Effect], method: str) -> JsonObject | None:
    """Everything that is read of the body, by media type; None where nothing is.

    What reads the bytes of every request, to prove a signature for example, demands none of those that have no body
    (RFC 9110, section 9.3).
    """
    content: JsonObject = {}
    fields: dict[str, Schema] = {}
    for read in found:
        if not isinstance(read, Read) or read.part not in BODIES:
            continue
        if method in _BODILESS and read.part not in ("json", "form"):
            continue
        schema = components.final(read.schema, read, reading=True) if read.schema is not None else {}
        match read.part:
            case "json":
                if read.schema is None:
                    components.problem(read, "the body is read as JSON of any type. Say which: await req.json(T)")
                add_body(content, "application/json", schema)
            case "form":
                for media in ("multipart/form-data", "application/x-www-form-urlencoded"):
                    content.setdefault(media, {"schema": {"type": "object"}})
                    if read.name is None and schema:
                        content[media] = {"schema": schema}
                if read.name is not None:
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
            texts = {name: text for name, field in fields.items() if (text := _as_text(field)) is not None}
            own = {"type": "object", "properties": fields if media == "multipart/form-data" else texts}
            read_into = content[media]["schema"]
            parts = [
                each for each in (read_into, own) if each.keys() - {"type", "properties"} or each.get("properties")
            ]
            content[media] = {"schema": {"allOf": parts} if len(parts) > 1 else parts[0] if parts else own}
    return {"required": True, "content": content} if content else None


def _as_text(field: Schema) -> Schema | None:
    """A field of a form that has no files; None for one that is always a file."""
    if "items" in field:
        items = _as_text(field["items"])
        return {**field, "items": items} if items is not None else None
    parts = [part for part in field.get("anyOf", [field]) if "contentMediaType" not in part]
    return any_of(parts) if parts else None


def add_body(content: JsonObject, media_type: str, schema: Schema) -> None:
    """Another body of a media type: the alternatives stand side by side."""
    before = content.get(media_type, {}).get("schema")
    content[media_type] = {"schema": schema if before is None else any_of([before, schema])}
