"""Two documents of one API compared: the changes for a client, and whether they break one.

A change breaks a client when a request that was right is refused, or when an answer has a value that the client cannot
expect: so a request may only take more than before, and an answer may only give less variety than before. The rules:

| change | in a request | in an answer |
| --- | --- | --- |
| a type takes more values (`string` to `string | null`, one more constant) | fine | breaks |
| a type takes fewer values | breaks | fine |
| a field is new | breaks if it is required | fine |
| a field is gone | fine | breaks |
| a field becomes required | breaks | fine |
| a field may be left out now | fine | breaks |

A path, a method, a status or a media type that is gone breaks, as does a security requirement that is new. A new
status, path or method does not. The wording of a message (the constant of `error`) is not a promise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from core.openapi.facts import METHODS, is_array, is_object, target

__all__ = ["Change", "compare"]

Schema: TypeAlias = Mapping[str, Any]
_BOUNDS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "minimum": lambda old, new: new > old,
    "exclusiveMinimum": lambda old, new: new > old,
    "minLength": lambda old, new: new > old,
    "minItems": lambda old, new: new > old,
    "maximum": lambda old, new: new < old,
    "exclusiveMaximum": lambda old, new: new < old,
    "maxLength": lambda old, new: new < old,
    "maxItems": lambda old, new: new < old,
}
"""True if a bound demands more than before."""


@attrs.frozen
class Change:
    """One difference: the operation's id and its change, in words. `status` is that of the answer it is in."""

    breaking: bool
    operation: str
    message: str
    status: str | None = None

    def __str__(self) -> str:
        return f"`{self.operation}` {self.message}"


@attrs.frozen
class _At:
    """The body or parameter that is compared: its operation, `reading` if clients send it, and its status."""

    operation: str
    reading: bool
    status: str | None = None


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return the changes from one document to another, those that break a client first. Empty for none that count."""
    changes = list(_Comparison(old, new).changes())
    return sorted(dict.fromkeys(changes), key=lambda change: not change.breaking)


class _Comparison:
    def __init__(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        self.old: Mapping[str, Any] = _without_wording(old)
        self.new: Mapping[str, Any] = _without_wording(new)
        self._under_way: set[tuple[str | None, str | None, bool]] = set()

    def changes(self) -> Iterator[Change]:
        before, after = _operations(self.old), _operations(self.new)
        for key, operation in before.items():
            name = _name(key, operation)
            if key not in after:
                yield Change(True, name, f"is gone ({key[0].upper()} {key[1]})")
            else:
                yield from self._operation(name, operation, after[key])
        for key, operation in after.items():
            if key not in before:
                yield Change(False, _name(key, operation), f"is new ({key[0].upper()} {key[1]})")

    def _operation(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
        yield from self._parameters(name, old, new)
        yield from self._request(name, old.get("requestBody"), new.get("requestBody"))
        yield from self._responses(name, old.get("responses", {}), new.get("responses", {}))
        yield from _security(name, old.get("security"), new.get("security"))

    # -- requests

    def _parameters(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
        before, after = _by_place(old), _by_place(new)
        for key, parameter in after.items():
            parameter_name = f"the {key[0]} parameter {key[1]}"
            if key not in before:
                required = bool(parameter.get("required"))
                yield Change(required, name, f"{'now demands' if required else 'also takes'} {parameter_name}")
                continue
            earlier = before[key]
            if parameter.get("required") and not earlier.get("required"):
                yield Change(True, name, f"now demands {parameter_name}, which could be left out")
            schemas = earlier.get("schema", {}), parameter.get("schema", {})
            yield from self._schema(_At(name, True), parameter_name, *schemas)
        for key in before:
            if key not in after:
                yield Change(False, name, f"no longer reads the {key[0]} parameter {key[1]}")

    def _request(self, name: str, old: Any, new: Any) -> Iterator[Change]:
        if not new:
            if old:
                yield Change(False, name, "no longer reads a body")
            return
        if not old:
            yield Change(bool(new.get("required")), name, "now reads a body")
            return
        if new.get("required") and not old.get("required"):
            yield Change(True, name, "now demands a body")
        for media, content in old.get("content", {}).items():
            later = new.get("content", {}).get(media)
            if later is None:
                yield Change(True, name, f"no longer takes {media}")
            else:
                schemas = content.get("schema", {}), later.get("schema", {})
                yield from self._schema(_At(name, True), "the body", *schemas)

    # -- answers

    def _responses(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
        for status, response in old.items():
            later = new.get(status)
            if later is None:
                yield Change(True, name, f"no longer answers {status}", status)
                continue
            for header in response.get("headers", {}):
                if header not in later.get("headers", {}):
                    yield Change(True, name, f"no longer sends the header {header} with {status}", status)
            contents = later.get("content", {})
            for media, content in response.get("content", {}).items():
                if media not in contents:
                    yield Change(True, name, f"no longer answers {status} as {media}", status)
                    continue
                for key in ("schema", "itemSchema"):
                    if key in content:
                        given = contents[media].get(key, {})
                        yield from self._schema(_At(name, False, status), f"of {status}", content[key], given)
        for status in new:
            if status not in old:
                yield Change(False, name, f"also answers {status}", status)

    # -- schemas

    def _schema(self, at: _At, where: str, old: Schema, new: Schema) -> Iterator[Change]:
        both = (old.get("$ref"), new.get("$ref"), at.reading)
        if both in self._under_way:
            return
        if None not in both:
            self._under_way.add(both)
        try:
            yield from self._inner(at, where, target(self.old, old), target(self.new, new))
        finally:
            self._under_way.discard(both)

    def _inner(self, at: _At, where: str, old: Schema, new: Schema) -> Iterator[Change]:
        before, after = _distinct(self.old, old), _distinct(self.new, new)
        if len(before) == 1 and len(after) == 1 and _is_object(before[0]) and _is_object(after[0]):
            yield from self._objects(at, where, before[0], after[0])
            return
        if len(before) == 1 and len(after) == 1 and before[0].get("type") == after[0].get("type") == "array":
            items = before[0].get("items", {}), after[0].get("items", {})
            yield from self._schema(at, where, *items)
            yield from self._bounds(at, where, before[0], after[0])
            return
        verb = "takes" if at.reading else "answers"
        subject = where if where.startswith(("the ", "`")) else f"the body {where}"
        gone = [part for part in before if not any(self._fits(self.old, part, self.new, other) for other in after)]
        added = [part for part in after if not any(self._fits(self.new, part, self.old, other) for other in before)]
        if gone:
            yield Change(at.reading, at.operation, f"no longer {verb} {_shown(gone)} as {subject}", at.status)
        if added:
            yield Change(not at.reading, at.operation, f"also {verb} {_shown(added)} as {subject}", at.status)
        if not gone and not added and len(before) == 1:
            yield from self._bounds(at, where, before[0], after[0])

    def _objects(self, at: _At, where: str, old: Schema, new: Schema) -> Iterator[Change]:
        reading = at.reading
        before, after = old.get("properties", {}), new.get("properties", {})
        demanded, demanding = set(old.get("required", ())), set(new.get("required", ()))
        of = "" if where == "the body" else f" {where}" if where.startswith("of ") else f" in {where}"
        for field, schema in before.items():
            if field not in after:
                verb = "reads" if reading else "answers"
                yield Change(not reading, at.operation, f"no longer {verb} `{field}`{of}", at.status)
                continue
            yield from self._schema(at, f"`{field}`{of}", schema, after[field])
            if field in demanded and field not in demanding:
                yield Change(not reading, at.operation, f"may leave out `{field}`{of}", at.status)
            elif field in demanding and field not in demanded and reading:
                yield Change(True, at.operation, f"now demands `{field}`{of}", at.status)
        for field in after:
            if field not in before:
                breaks = reading and field in demanding
                verb = ("now demands" if breaks else "also takes") if reading else "also answers"
                yield Change(breaks, at.operation, f"{verb} `{field}`{of}", at.status)
        extra = old.get("additionalProperties"), new.get("additionalProperties")
        if is_object(extra[0]) and is_object(extra[1]):
            yield from self._schema(at, f"a value{of}", extra[0], extra[1])

    def _bounds(self, at: _At, where: str, old: Schema, new: Schema) -> Iterator[Change]:
        for word, narrows in _BOUNDS.items():
            before, after = old.get(word), new.get(word)
            if before == after:
                continue
            narrower = before is None or (after is not None and narrows(before, after))
            breaks = narrower if at.reading else not narrower
            shown = "no longer has" if after is None else f"now has {after} as"
            yield Change(breaks, at.operation, f"{shown} {word} of {where}", at.status)
        for word in ("pattern", "format"):
            if old.get(word) != new.get(word):
                breaks = (word in new) if at.reading else (word in old)
                yield Change(breaks, at.operation, f"has another {word} of {where}", at.status)

    def _fits(self, home: Mapping[str, Any], part: Schema, other_home: Mapping[str, Any], other: Schema) -> bool:
        """Return True if every value of one schema is one of another, as far as it can be told."""
        part, other = target(home, part), target(other_home, other)
        if part == other or not other:
            return True
        if not part:
            return False
        values = [part["const"]] if "const" in part else part.get("enum", [])
        if values:
            allowed = [other["const"]] if "const" in other else other.get("enum")
            if allowed is not None:
                return all(value in allowed for value in values)
            return other.get("type") in (part.get("type"), "number" if part.get("type") == "integer" else None)
        if "const" in other or "enum" in other:
            return False
        if part.get("type") == "integer" and other.get("type") == "number":
            return True
        if part.get("type") != other.get("type"):
            return False
        if _is_object(part) and _is_object(other):
            needed = set(other.get("required", ()))
            have = part.get("properties", {})
            return needed <= set(part.get("required", ())) and all(
                any(
                    self._fits(home, one, other_home, two)
                    for two in _alternatives(other.get("properties", {}).get(field, {}))
                )
                for field, schema in have.items()
                for one in _alternatives(schema)
            )
        return True


def _operations(document: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {
        (method, path): item[method]
        for path, item in document.get("paths", {}).items()
        for method in METHODS
        if method in item
    }


def _name(key: tuple[str, str], operation: Mapping[str, Any]) -> str:
    return str(operation.get("operationId") or f"{key[0].upper()} {key[1]}")


def _by_place(operation: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {(parameter["in"], parameter["name"]): parameter for parameter in operation.get("parameters", ())}


def _alternatives(schema: Schema) -> Sequence[Schema]:
    """Return the alternatives that a schema allows, one by one: constants too."""
    found: list[Schema] = []
    for part in schema.get("anyOf", schema.get("oneOf", [schema])):
        kinds = part.get("type")
        if "enum" in part:
            found += [{"const": value, **({"type": kinds} if kinds else {})} for value in part["enum"]]
        elif is_array(kinds):
            found += [{**part, "type": kind} for kind in kinds]
        else:
            found.append(part)
    return found


def _is_object(schema: Schema) -> bool:
    return schema.get("type") == "object" or "properties" in schema


def _distinct(document: Mapping[str, Any], schema: Schema) -> Sequence[Schema]:
    """The alternatives of a schema, those that are the same once."""
    found: list[Schema] = []
    for part in _alternatives(schema):
        if not any(target(document, part) == target(document, other) for other in found):
            found.append(part)
    return found


def _without_wording(value: Any) -> Any:
    """A document whose messages of errors are any text: their wording is not a promise."""
    if is_object(value):
        result = {key: _without_wording(inner) for key, inner in value.items()}
        fields = result.get("properties")
        if is_object(fields) and {"const", "enum"} & set(fields.get("error", ())):
            result["properties"] = {**fields, "error": {"type": "string"}}
        return result
    return [_without_wording(inner) for inner in value] if is_array(value) else value


def _shown(parts: Sequence[Schema]) -> str:
    words: list[str] = []
    for part in parts:
        if "const" in part:
            words.append(json.dumps(part["const"], ensure_ascii=False))
        elif "$ref" in part:
            words.append(str(part["$ref"]).rpartition("/")[2])
        else:
            words.append(str(part.get("format") or part.get("type") or "any value"))
    return " or ".join(dict.fromkeys(words))


def _security(name: str, old: Sequence[Schema] | None, new: Sequence[Schema] | None) -> Iterator[Change]:
    nobody: Sequence[Schema] = [{}]
    before = {tuple(sorted(way)) for way in old or nobody}
    after = {tuple(sorted(way)) for way in new or nobody}
    for way in before - after:
        shown = " and ".join(way) if way else "requests without credentials"
        yield Change(True, name, f"no longer lets {shown} in")
    for way in after - before:
        shown = " and ".join(way) if way else "requests without credentials"
        yield Change(False, name, f"also lets {shown} in")
