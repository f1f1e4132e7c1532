"""Two documents of one API compared: the changes for a client, and whether they break one.

A request may only take more than before, and an answer may only give less variety than before: each change is a row
of `rules.py`. Identity is method and path: names of path parameters, of schemas and of operations, and texts for
people, are no promise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

import attrs

from core.openapi.reading import Named, Operation, alternatives, operations, target, without_wording
from core.openapi.rules import LEVELS, RULES, Level
from core.values import is_object

Schema: TypeAlias = Mapping[str, Any]
_TEXT: Final[Schema] = {"type": "string"}
_ANNOTATIONS: Final = frozenset(["default", "description", "examples", "title"])
UPPER: Final = (
    "maximum",
    "exclusiveMaximum",
    "formatMaximum",
    "formatExclusiveMaximum",
    "maxLength",
    "maxItems",
    "maxProperties",
)
LOWER: Final = tuple(word.replace("max", "min").replace("Max", "Min") for word in UPPER)
"""The bounds of a value in the words of JSON Schema, and for dates and decimal numbers those of `format`."""
_REQUIREMENTS: Final = (
    "pattern",
    "multipleOf",
    "not",
    "propertyNames",
    "patternProperties",
    "dependentRequired",
    "contains",
    "contentMediaType",
    "contentEncoding",
)
"""The words of JSON Schema that are only compared: whether another one refuses more is not known."""


@attrs.frozen
class Change:
    """One difference: the operation's id and its change, in words, and for one that is more than a "change" what it
    breaks and the fix. `status` is that of the answer it is in.
    """

    level: Level
    operation: str
    message: str
    advice: str = ""
    status: str | None = None

    def __str__(self) -> str:
        return f"`{self.operation}` {self.message}"


@attrs.frozen
class _At:
    """The place that is compared: its operation, the part of it, the field in that, and the answer's status."""

    operation: str
    part: str = ""
    field: str = ""
    status: str | None = None
    is_text: bool = False
    """True for a parameter: every value is sent as text."""

    @property
    def subject(self) -> str:
        if not self.field:
            return self.part
        return f"`{self.field.removeprefix('.')}`" + (f" of {self.part}" if self.part != "the body" else "")

    def within(self, name: str) -> _At:
        return attrs.evolve(self, field=f"{self.field}{name}")

    def change(self, rule: str, *values: str) -> Change:
        levels, words, advice = RULES[rule]
        answered = self.status is not None
        level = LEVELS[levels[answered]]
        said = words.split(" | ")[-1 if answered else 0].format(*values)
        return Change(level, self.operation, said, "" if level == "change" else advice, self.status)


def compare(old: Mapping[str, object], new: Mapping[str, object]) -> list[Change]:
    """Return the changes from one document to another, those that break a client first. Empty for none that count."""
    order: list[Level] = [*LEVELS.values()]
    changes = dict.fromkeys(_Comparison(old, new).changes())
    return sorted(changes, key=lambda change: order.index(change.level))


class _Comparison:
    """The documents, by their age; the texts for people in them are any text."""

    def __init__(self, *documents: Mapping[str, object]) -> None:
        self._documents: tuple[Mapping[str, object], ...] = documents
        self._answers: tuple[Mapping[str, object], ...] = tuple(map(without_wording, documents))
        self._under_way: set[tuple[str, str, bool]] = set()

    def changes(self) -> Iterator[Change]:
        before, after = map(_operations, self._documents)
        answers = [*map(_operations, self._answers)]
        for key in {**before, **after}:
            one = before.get(key) or after[key]
            if key not in before or key not in after:
                rule = "operation gone" if key in before else "operation new"
                yield _At(one.name).change(rule, f"{one.method} {one.path}")
                continue
            operation, later = one.operation, after[key].operation
            at = _At(after[key].name)
            for word, value in (("operationId", str(operation.get("operationId"))), ("tags", ""), ("deprecated", "")):
                if operation.get(word) != later.get(word):
                    yield at.change(word, value)
            yield from self._parameters(at, operation, later)
            yield from self._request(at, operation.get("requestBody"), later.get("requestBody"))
            yield from self._responses(at, *(side[key].operation.get("responses", {}) for side in answers))
            yield from self._security(at, operation, later)

    def _parameters(self, at: _At, *operations: Mapping[str, Any]) -> Iterator[Change]:
        before, after = (
            {(one["in"], str(one.get("place", one["name"]))): one for one in operation.get("parameters", ())}
            for operation in operations
        )
        for key in {**after, **before}:
            parameter = after.get(key) or before[key]
            subject = f"the {parameter['in']} parameter {parameter['name']}"
            earlier, required = before.get(key), bool(parameter.get("required"))
            if key not in after:
                yield at.change("parameter gone", subject)
                continue
            if earlier is None:
                yield at.change("parameter demanded" if required else "parameter new", subject)
                continue
            if required is not bool(earlier.get("required")):
                yield at.change("required" if required else "optional", subject)
            inside = attrs.evolve(at, part=subject, is_text=True)
            yield from self._schema(inside, earlier.get("schema", {}), parameter.get("schema", {}))

    def _request(self, at: _At, *bodies: object) -> Iterator[Change]:
        old, new = (target(home, body) for home, body in zip(self._documents, bodies, strict=True))
        if not new:
            yield from [at.change("body gone")] if old else []
        elif bool(new.get("required")) is not bool(old.get("required")):
            yield at.change("body demanded" if new.get("required") else "body optional")
        elif not old:
            yield at.change("body new")
        if old and new:
            yield from self._contents(attrs.evolve(at, part="the body"), old, new)

    def _responses(self, at: _At, *sides: Mapping[str, object]) -> Iterator[Change]:
        before, after = (
            {status: target(home, one) for status, one in side.items()}
            for home, side in zip(self._answers, sides, strict=True)
        )
        for status in {**before, **after}:
            inside = attrs.evolve(at, status=status, part=f"the body of {status}")
            old, new = before.get(status), after.get(status)
            if old is None:
                yield inside.change("status new", status)
            elif new is None:
                yield inside.change("success gone" if status[0] in "23" else "error gone", status)
            else:
                yield from self._headers(inside, old.get("headers", {}), new.get("headers", {}))
                yield from self._contents(inside, old, new)

    def _headers(self, at: _At, old: Schema, new: Schema) -> Iterator[Change]:
        for name in {**old, **new}:
            inside = attrs.evolve(at, part=f"the header {name} of {at.status}")
            header, later = old.get(name), new.get(name)
            if header is None:
                yield at.change("header new", inside.part)
                continue
            if later is None:
                yield inside.change("required header gone" if header.get("required") else "header gone", inside.part)
                continue
            if header.get("required") and not later.get("required"):
                yield inside.change("optional", inside.part)
            yield from self._schema(inside, header.get("schema", {}), later.get("schema", {}))

    def _contents(self, at: _At, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
        before, after = old.get("content", {}), new.get("content", {})
        for media in {**before, **after}:
            if media not in before or media not in after:
                yield at.change("media gone" if media in before else "media new", media, str(at.status))
                continue
            for word in ("schema", "itemSchema"):
                yield from self._schema(at, before[media].get(word, {}), after[media].get(word, {}))

    def _security(self, at: _At, *operations: Mapping[str, Any]) -> Iterator[Change]:
        before, after = (
            _ways(home, operation.get("security", home.get("security")))
            for home, operation in zip(self._documents, operations, strict=True)
        )
        for way, shown in before.items():
            if way not in after and "" not in after:  # whoever needs no credentials may send some
                yield at.change("way gone", shown)
        for way, shown in after.items():
            if way not in before:
                yield at.change("way new", shown)

    # -- schemas

    def _schema(self, at: _At, old: object, new: object) -> Iterator[Change]:
        homes = self._documents if at.status is None else self._answers
        before, after = ([*alternatives(home, given)] for home, given in zip(homes, (old, new), strict=True))
        gone, added = list(before), list(after)
        for one in before:
            for other in after:
                if one in gone and other in added and _is_pair(one, other, before, after):
                    gone.remove(one)
                    added.remove(other)
                    yield from self._pair(at, one, other)
        less = [one for one in gone if not any(self._fits(homes, at, one, other) for other in after)]
        back = homes[::-1]
        more = [other for other in added if not any(self._fits(back, at, other, one) for one in before)]
        if less:
            yield at.change("less", at.subject, _shown(less))
        if more:
            among_constants = len(before) > 1 and all("const" in schema for _, schema in [*before, *more])
            yield at.change("one more" if among_constants else "more", at.subject, _shown(more))

    def _pair(self, at: _At, old: Named, new: Named) -> Iterator[Change]:
        """Two schemas of one kind. Those within themselves are compared once."""
        key = old[0], new[0], at.status is None
        if all(key[:2]) and key in self._under_way:
            return
        self._under_way.add(key)
        before, after = old[1], new[1]
        if before.get("type") == "array":
            yield from self._schema(at.within("[]"), before.get("items", {}), after.get("items", {}))
            both = zip(before.get("prefixItems", ()), after.get("prefixItems", ()), strict=False)
            for number, (one, other) in enumerate(both):
                yield from self._schema(at.within(f"[{number}]"), one, other)
        if _is_object(before):
            yield from self._objects(at, before, after)
        if "contentSchema" in before or "contentSchema" in after:
            yield from self._schema(at, before.get("contentSchema", _TEXT), after.get("contentSchema", _TEXT))
        if json.dumps(before.get("default")) != json.dumps(after.get("default")):
            shown = json.dumps(after["default"], ensure_ascii=False) if "default" in after else "nothing"
            yield at.change("default of a parameter" if at.is_text else "default", at.subject, shown)
        for word in ("format", *_REQUIREMENTS):
            if before.get(word) != after.get(word):
                kind = "format" if word == "format" else "requirement"
                kind += "" if word in before and word in after else " new" if word in after else " gone"
                shown = str(after.get(word)) if word == "format" else word if word == "pattern" else f"`{word}`"
                yield at.change(kind, at.subject, shown)
        for word in (*UPPER, *LOWER):
            first = 0 if word == "minLength" else None
            one, other = before.get(word, first), after.get(word, first)
            if one != other:
                grows = one is not None and other is not None and _amount(other) > _amount(one)
                tighter = one is None or (other is not None and grows is (word in LOWER))
                rule = "bound new" if one is None else "tighter" if tighter else "looser"
                yield at.change(rule, at.subject, f"no {word}" if other is None else f"{word} {other}")
        self._under_way.discard(key)

    def _objects(self, at: _At, old: Schema, new: Schema) -> Iterator[Change]:
        before, after = old.get("properties", {}), new.get("properties", {})
        required, requires = set(old.get("required", ())), set(new.get("required", ()))
        for field in {**before, **after}:
            inside = at.within(f".{field}")
            if field not in before:
                yield at.change("field demanded" if field in requires else "field new", inside.subject)
                continue
            if field not in after:
                gone = "required field gone" if field in required else "field gone"
                closed = at.status is None and new.get("additionalProperties") is False
                yield at.change("field refused" if closed else gone, inside.subject)
                continue
            yield from self._schema(inside, before[field], after[field])
            if (field in required) is not (field in requires):
                yield at.change("required" if field in requires else "optional", inside.subject)
        extra, later = old.get("additionalProperties"), new.get("additionalProperties")
        if is_object(extra) and is_object(later):
            yield from self._schema(at.within("{}"), extra, later)
        elif later is False and extra is not False:
            yield at.change("closed", at.subject)

    def _fits(self, homes: Sequence[Schema], at: _At, one: Named, other: Named) -> bool:
        """Return True if every value of one schema is one of another, as far as it can be told."""
        part, whole = one[1], other[1]
        if part == whole or not whole.keys() - _ANNOTATIONS:
            return True
        kind, wanted = part.get("type", "string" if isinstance(part.get("const"), str) else None), whole.get("type")
        if "const" in whole or not kind:
            return False
        if at.is_text and wanted == "string" and kind not in ("array", "object"):
            return not whole.keys() & {"pattern", "format", "maxLength"}
        if kind != wanted:
            return (kind, wanted) == ("integer", "number")
        if kind == "object":
            needed, have = set(whole.get("required", ())), part.get("properties", {})
            return needed <= set(part.get("required", ())) and all(
                self._all_fit(homes, at, have[field], given)
                for field, given in whole.get("properties", {}).items()
                if field in have
            )
        return self._all_fit(homes, at, part.get("contentSchema", {}), whole.get("contentSchema", {}))

    def _all_fit(self, homes: Sequence[Schema], at: _At, part: object, whole: object) -> bool:
        parts, wholes = (list(alternatives(home, given)) for home, given in zip(homes, (part, whole), strict=True))
        return all(any(self._fits(homes, at, one, other) for other in wholes) for one in parts)


def _amount(bound: object) -> Any:
    """A bound to be compared: of a text with a decimal number the number. Dates and times are in order as texts."""
    try:
        return Decimal(bound) if isinstance(bound, str) else bound
    except InvalidOperation:
        return bound


def _kind(named: Named) -> str:
    if "const" in named[1]:
        return json.dumps(named[1]["const"], ensure_ascii=False)
    return "object" if _is_object(named[1]) else str(named[1].get("type", "any value"))


def _constants(named: Named) -> str:
    """The kind of a schema, and the constants that tell an object from others: those of its fields."""
    fields: Mapping[str, Any] = named[1].get("properties", {})
    shown = [f"{name} {json.dumps(field['const'])}" for name, field in sorted(fields.items()) if "const" in field]
    return " and ".join(shown) or _kind(named)


def _is_pair(one: Named, other: Named, before: Sequence[Named], after: Sequence[Named]) -> bool:
    """Return True for the same part of both schemas: that of its name, or the only one of its kind or constants."""
    if _kind(one) != _kind(other):
        return False
    alone = any(
        what(one) == what(other) and all(sum(what(each) == what(one) for each in side) == 1 for side in (before, after))
        for what in (_kind, _constants)
    )
    return alone or (one[0] == other[0] != "")


def _operations(document: Mapping[str, Any]) -> dict[tuple[str, str], Operation]:
    """The operations by method and path, whatever the names of its parameters; WebSockets and mounts as well."""
    found = {("mount", prefix): Operation("mount", prefix, {}, {}) for prefix in document.get("x-mounted", ())}
    for each in operations(document, sockets=True):
        numbers = {name: number for number, name in enumerate(re.findall(r"\{([^{}]*)\}", each.path))}
        numbered = [
            {**one, "place": numbers.get(one.get("name"))} if one.get("in") == "path" else one
            for one in each.parameters(document)
        ]
        key = each.method, re.sub(r"\{[^{}]*\}", "{}", each.path)
        found[key] = each._replace(operation={**each.operation, "parameters": numbered})
    return found


def _is_object(schema: Schema) -> bool:
    return schema.get("type") == "object" or "properties" in schema


def _shown(parts: Sequence[Named]) -> str:
    words = [
        _kind(part) if "const" in part[1] else part[0] or str(part[1].get("format") or _constants(part))
        for part in parts
    ]
    return " or ".join(dict.fromkeys(words))


def _ways(document: Mapping[str, Any], given: Sequence[Mapping[str, object]] | None) -> dict[str, str]:
    """The ways to authenticate, by what clients send: the name of a scheme is no promise. "" is for nothing."""
    schemes = document.get("components", {}).get("securitySchemes", {})
    ways: dict[str, str] = {}
    for way in given or [{}]:
        sent = sorted(json.dumps([schemes.get(name, name), scopes], sort_keys=True) for name, scopes in way.items())
        ways["".join(sent)] = " and ".join(way) or "requests without credentials"
    return ways
