"""The schemas that a document refers to by name: classes, and the bodies of errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from core.openapi.facts import ClassFacts, Schema, any_of, is_array, is_object, json_type

__all__ = ["Components", "constrained"]

Details = Mapping[str, Mapping[str, Schema]]
_ANNOTATIONS: Final = ("default", "description")


class Components:
    """Schemas by name. Until they are `written`, a reference is a key in the place of the name."""

    def __init__(self, classes: Mapping[str, ClassFacts], details: Details) -> None:
        self._classes = classes
        self._details = details
        self._used: dict[tuple[str, ...], Schema] = {}
        self._wanted: dict[tuple[str, ...], str] = {}

    def final(self, schema: Schema, unknown: Callable[[str], None], *, reading: bool) -> Schema:
        """A schema with references in the place of classes. `reading` is for values that clients send, and `unknown` is
        told of every value that has no type.
        """
        if "$unknown" in schema:
            unknown(schema["$unknown"])
            return {}
        if "$class" in schema:
            return self._class(schema["$class"], unknown, reading=reading)
        result: Schema = {}
        for key, value in schema.items():
            if key == "properties":
                result[key] = {name: self.final(part, unknown, reading=reading) for name, part in value.items()}
            elif key in ("items", "additionalProperties", "contentSchema") and is_object(value):
                result[key] = self.final(value, unknown, reading=reading)
            elif key in ("anyOf", "prefixItems"):
                result[key] = [self.final(part, unknown, reading=reading) for part in value]
            elif key in ("const", "enum"):
                kind = json_type(value)
                result = {**result, **({"type": kind} if kind is not None else {}), key: value}
            else:
                result[key] = value
        return result

    def _class(self, name: str, unknown: Callable[[str], None], *, reading: bool) -> Schema:
        facts = self._classes.get(name)
        if facts is None:
            unknown(name)
            return {}
        differs = reading and self._differs(name, ())
        key = (name, "Input" if differs else "")
        if key not in self._used:
            self._used[key] = {}
            self._wanted[key] = facts.name

            def within(reason: str) -> None:
                unknown(f"{reason}, in the class {facts.name}")

            whole = self.object_of(name, reading=reading and differs)
            self._used[key].update(self.final(whole, within, reading=reading and differs))
        return {"$ref": key}

    def object_of(self, name: str, *, reading: bool = False) -> Schema:
        """A class as an object, with other classes still under their names in it."""
        facts, told = self._classes[name], self.details_of(name)
        fields = [field for field in facts.fields if field.is_read or not reading]
        properties = {
            field.name: constrained(field.schema, told.get(field.attribute), reading=reading) for field in fields
        }
        required = [field.name for field in fields if not field.has_default or (facts.total and not reading)]
        schema: Schema = {"type": "object", **told.get("", {}), "properties": properties}
        if required:
            schema["required"] = required
        return schema

    def details_of(self, name: str) -> Mapping[str, Schema]:
        """Return the facts in a class's text about its fields, by attribute."""
        return self._details.get(name.partition("[")[0], {})

    def error(self, name: str, schema: Schema) -> Schema:
        """A reference to the body of an error, which has a name of its own."""
        key = ("$error", json.dumps(schema, default=list))
        self._used.setdefault(key, schema)
        self._wanted.setdefault(key, name)
        return {"$ref": key}

    def _differs(self, name: str, seen: tuple[str, ...]) -> bool:
        """Return True if a value may be sent in another shape than it is received:
        fields with defaults may be left out.
        """
        facts = self._classes.get(name)
        if facts is None or name in seen:
            return False
        if any((facts.total and field.has_default) or not field.is_read for field in facts.fields):
            return True
        inner = {found for field in facts.fields for found in _classes_in(field.schema)}
        return any(self._differs(other, (*seen, name)) for other in inner)

    def written(self, *places: dict[str, Any]) -> dict[str, Schema]:
        """All of them by their names; the references in `places`, and in the schemas themselves, become links."""
        names = self._names()
        result = {names[key]: schema for key, schema in self._used.items()}

        def link(value: Any) -> None:
            if is_object(value):
                if isinstance(value.get("$ref"), tuple):
                    value["$ref"] = f"#/components/schemas/{names[value['$ref']]}"
                for inner in value.values():
                    link(inner)
            elif is_array(value):
                for inner in value:
                    link(inner)

        for place in places:
            link(place)
        link(result)
        return dict(sorted(result.items()))

    def _names(self) -> dict[tuple[str, ...], str]:
        """Names that tell them apart, whatever the order: two classes of one name have their modules' beside it."""
        alike: dict[str, list[tuple[str, ...]]] = {}
        for key, name in self._wanted.items():
            alike.setdefault(name, []).append(key)
        names: dict[tuple[str, ...], str] = {}
        for short, keys in alike.items():
            several = len({key[0] for key in keys}) > 1 or keys[0][0] == "$error"
            for number, key in enumerate(sorted(keys)):
                name = short
                if key[0] == "$error":
                    name = short if len(keys) == 1 else f"{short}{number + 1}"
                elif several:
                    module = key[0].partition("[")[0].split(".")
                    name = f"{module[-2]}_{short}" if len(module) > 1 else short
                if key[1] == "Input" and (key[0], "") in self._used:
                    name = f"{name}Input"
                name = re.sub(r"[^A-Za-z0-9._-]", "_", name)
                while name in names.values():
                    name += "_"
                names[key] = name
        return names


def constrained(schema: Schema, told: Schema | None, *, reading: bool = True) -> Schema:
    """A field's schema with its class's description. A default is for those who send it."""
    if not told:
        return schema
    demands = {key: value for key, value in told.items() if key not in _ANNOTATIONS}
    result = _with_demands(schema, demands)
    if reading and "default" in told:
        result = {**result, "default": told["default"]}
    if "description" in told:
        result = {**result, "description": told["description"]}
    return result


def _with_demands(schema: Schema, demands: Schema) -> Schema:
    if not demands:
        return schema
    if "anyOf" in schema:
        parts: Sequence[Schema] = schema["anyOf"]
        return {
            **schema,
            "anyOf": [part if part.get("type") == "null" else _with_demands(part, demands) for part in parts],
        }
    result = dict(schema)
    for key, value in demands.items():
        if key in ("$min_len", "$max_len"):
            word = {"array": "Items", "object": "Properties"}.get(schema.get("type", ""), "Length")
            result[f"{key[1:4]}{word}"] = value
        elif key == "items":
            result["items"] = _with_demands(schema.get("items", {}), value)
        elif key == "enum":
            result = {**any_of({"const": item} for item in value)}
        else:
            result[key] = value
    return result


def _classes_in(schema: Any) -> Iterator[str]:
    if is_object(schema):
        if "$class" in schema:
            yield schema["$class"]
        for value in schema.values():
            yield from _classes_in(value)
    elif is_array(schema):
        for value in schema:
            yield from _classes_in(value)
