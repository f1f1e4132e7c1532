"""The schemas that a document refers to by name: classes, and the bodies of errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Final, TypeAlias

import attrs

from core.http.json import JsonObject
from core.openapi.facts import ClassFacts, Effect, classes_in, is_required, object_of, objects_in
from core.openapi.reading import operations, section
from core.validation.schema import Schema, json_type
from core.values import is_array, is_object

Key: TypeAlias = tuple[str, str]
_ERROR: Final = "$error"
_OF_EACH: Final = frozenset(["error", "message", "detail", "type", "title", "status", "instance"])
"""The fields that an error has whatever it is about."""


class Components:
    """Schemas by name. Until they are `written`, a reference is a key in the place of the name.

    `problem` is told of every value that has no type, and of every validator that is not read.
    """

    def __init__(self, classes: Mapping[str, ClassFacts], problem: Callable[[Effect, str], None]) -> None:
        self.classes = classes
        self.problem = problem
        self._used: dict[Key, Schema] = {}
        self._wanted: dict[Key, list[str]] = {}
        """The names of each, the best first."""
        self._operations: dict[Key, set[str]] = {}
        """The operations that answer each error."""

    def final(
        self, schema: Schema, at: Effect, *, reading: bool = False, within: str = "", discriminator: str = ""
    ) -> Schema:
        """A schema with references in the place of classes. `reading` is for values that clients send, `within` the
        class that it is in, `discriminator` the field that a class in a union is told by.
        """
        if "$unknown" in schema:
            reason = f"{schema['$unknown']}, in the class {within}" if within else schema["$unknown"]
            self.problem(at, f"the type of a value is not known ({reason}). Give it a type")
            return {}
        if "$class" in schema:
            extra = {key: value for key, value in schema.items() if key in ("description", "default")}
            return {**self._class(schema["$class"], at, reading=reading, discriminator=discriminator), **extra}
        result: Schema = {}
        final = partial(self.final, at=at, reading=reading, within=within)
        for key, value in schema.items():
            if key == "properties":
                result[key] = {name: final(part) for name, part in value.items()}
            elif key in ("items", "additionalProperties", "contentSchema") and is_object(value):
                result[key] = final(value)
            elif key == "anyOf":
                discriminator = self._discriminator(value) if reading else ""
                result[key] = [final(part, discriminator=discriminator) for part in value]
            elif key == "prefixItems":
                result[key] = [*map(final, value)]
            elif key in ("const", "enum"):
                kind = json_type(value)
                result = {**result, **({"type": kind} if kind is not None else {}), key: value}
            elif key == "$unread":
                for each in value:
                    self.problem(
                        at,
                        f"the validator {each}, in the class {within}, does not say what it holds. Use one of attrs, or "
                        "say it: describe(validator, holds={…})",
                    )
            else:
                result[key] = value
        return result

    def _discriminator(self, members: Sequence[Schema]) -> str:
        """The field by whose constants objects are read as one of several classes. "" where others tell them apart."""
        classes = [self.classes[each["$class"]] for each in members if "$class" in each]
        fields = [{field.name: _constants(field.schema) for field in facts.fields if facts.total} for facts in classes]
        for name in fields[0] if len(fields) > 1 else ():
            held = [each.get(name, ()) for each in fields]
            if all(held) and not any(all(value in each for each in held) for value in held[0]):
                return name
        return ""

    def _class(self, name: str, at: Effect, *, reading: bool, discriminator: str) -> Schema:
        facts = self.classes[name]
        fields = (attrs.evolve(field, default=None) if field.name == discriminator else field for field in facts.fields)
        facts = attrs.evolve(facts, fields=tuple(fields))
        differs = reading and self._differs(facts, ())
        key = (name, f"Input{discriminator}" if differs else "")
        if key not in self._used:
            self._used[key] = {}
            self._wanted[key] = _names_of(facts)
            whole = object_of(facts, reading=differs)
            # What a class does not say is a problem of the class, where that is the program's.
            place = Effect(path=facts.place[0], line=facts.place[1]) if facts.place[0] else at
            self._used[key].update(self.final(whole, place, reading=differs, within=facts.name))
        return {"$ref": key}

    def error(self, names: Sequence[str], schema: Schema, operation: str) -> Schema:
        """A reference to the body of an error, which has names of its own; the last is that of its status."""
        key = (_ERROR, json.dumps(schema, default=list, sort_keys=True))
        self._used.setdefault(key, schema)
        self._operations.setdefault(key, set()).add(operation)
        wanted = self._wanted.setdefault(key, [*names])
        if wanted[-1] != names[-1]:
            wanted[-1] = "Error"  # of several statuses
        return {"$ref": key}

    def _differs(self, facts: ClassFacts, seen: tuple[str, ...]) -> bool:
        """Return True if a value may be sent in another shape than it is received:
        fields with defaults may be left out.
        """
        if any(
            is_required(facts, field, reading=False) != is_required(facts, field, reading=True) or not field.is_read
            for field in facts.fields
        ):
            return True
        inner = {found for part in facts.parts for found in classes_in(part)}
        return any(self._differs(self.classes[each], (*seen, each)) for each in inner.difference(seen))

    def written(self, *places: JsonObject, committed: Committed) -> dict[str, Schema]:
        """All of them by their names; the references in `places`, and in the schemas themselves, become links."""
        names = self._names(committed.names(places[0], self._used))
        result = {names[key]: schema for key, schema in self._used.items()}
        for each in objects_in([*places, result]):
            if isinstance(each.get("$ref"), tuple):
                each["$ref"] = f"#/components/schemas/{names[each['$ref']]}"
        return dict(sorted(result.items()))

    def _names(self, committed: Mapping[Key, str]) -> dict[Key, str]:
        """Names that tell them apart, whatever the order: those that they had, else their classes' or errors', with
        more of the module's name in front of what is called the same, or the error's own fields behind it.
        """
        names: dict[Key, str] = dict(committed)
        taken = set(committed.values())
        for key, wanted in self._wanted.items():
            if key[0] == _ERROR:
                wanted.append(wanted[0])
        deepest = max(map(len, self._wanted.values()), default=0)
        for depth in range(deepest + 1):
            found: dict[str, list[Key]] = {}
            for key, wanted in self._wanted.items():
                if key not in names:
                    suffix = "Input" if key[1] and (key[0], "") in self._used else ""
                    name = re.sub(r"[^A-Za-z0-9._-]", "_", wanted[min(depth, len(wanted) - 1)] + suffix)
                    found.setdefault(name, []).append(key)
            is_last = depth == deepest
            for name, keys in sorted(self._disambiguated(found, taken).items() if is_last else found.items()):
                for number, key in enumerate(sorted(keys), 1 if name in taken else 0):
                    if is_last or (len(keys) == 1 and name not in taken):
                        names[key] = f"{name}{number + 1}" if number else name
                        taken.add(names[key])
        return names

    def _disambiguated(self, found: Mapping[str, Sequence[Key]], taken: Container[str]) -> dict[str, list[Key]]:
        """Errors of one name, each with what it tells and not all of them do, else with the operation that it is of."""
        apart: dict[str, list[Key]] = {}
        for name, keys in found.items():
            traits = {key: _traits(self._used[key]) for key in keys if key[0] == _ERROR}
            shared = set[str].intersection(*map(set, traits.values())) if traits and name not in taken else ()
            alike: dict[str, list[Key]] = {}
            for key in keys:
                more = "And".join(each for each in traits.get(key, ()) if each not in shared)
                alike.setdefault(f"{name}With{more}" if more else name, []).append(key)
            for longer, same in alike.items():
                for key in same:
                    only = self._operations.get(key, ()) if len(same) > 1 or longer in taken else ()
                    own = _camel(*only) if len(only) == 1 else ""
                    apart.setdefault(f"{own}{name}" if own else longer, []).append(key)
        return apart


def _constants(schema: Schema) -> Sequence[object]:
    return [schema["const"]] if "const" in schema else schema.get("enum", ())


def _traits(body: Schema) -> list[str]:
    """What an error tells beside its message, as parts of a name: fields, with constants that are words, and the number
    of a code. A code that is a word is in its name already.
    """
    own = {name: part.get("const") for name, part in body.get("properties", {}).items() if name not in _OF_EACH}
    return [
        _camel(f"{name} {const}" if isinstance(const, int if name == "code" else str) else name)
        for name, const in own.items()
    ]


def _camel(text: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", text))


def _names_of(facts: ClassFacts) -> list[str]:
    """The names of a class: its own, and those with more and more of its module's in front."""
    return [*accumulate(map(_camel, reversed(facts.outer)), lambda name, part: part + name, initial=facts.name)]


class Committed:
    """The names of the document that is committed: of operations by method and path, and of schemas by their places."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schemas = section(document, "schemas")
        self._paths: Mapping[str, Mapping[str, object]] = {
            _without_names(path): item for path, item in document.get("paths", {}).items()
        }
        self._operations: Mapping[tuple[str, str], Mapping[str, object]] = {
            (_without_names(each.path), each.method.upper()): each.operation
            for each in operations(document, sockets=True)
        }

    def operation(self, path: str, method: str) -> Mapping[str, Any]:
        """The operation as it was; empty for a new one. The names of parameters in its path do not matter."""
        return self._operations.get((_without_names(path), method.upper()), {})

    def names(self, paths: Mapping[str, object], used: Mapping[Key, Schema]) -> dict[Key, str]:
        """The names that schemas had in the same places."""
        found: dict[Key, str] = {}
        taken: set[str] = set()

        def meet(new: object, old: object) -> None:
            if is_object(new) and is_object(old):
                key, link = new.get("$ref"), old.get("$ref")
                if isinstance(key, tuple) and isinstance(link, str):
                    name = link.rpartition("/")[2]
                    if key in found or name in taken:
                        return
                    found[key] = name
                    taken.add(name)
                    meet(used[key], self._schemas.get(name, {}))
                    return
                for name in new.keys() & old.keys():
                    meet(new[name], old[name])
            elif is_array(new) and is_array(old):
                # What stayed as it was is met first: of others that came or went, the place is another one now.
                left, moved = [*old], list[Any]()
                for one in new:
                    same = next((each for each in left if alike(one, each)), None)
                    if same is None:
                        moved.append(one)
                    else:
                        left.remove(same)
                        meet(one, same)
                for one, other in zip(moved, left, strict=False):
                    meet(one, other)

        def alike(new: object, old: object) -> bool:
            key, link = (each.get("$ref") if is_object(each) else None for each in (new, old))
            if isinstance(key, tuple) and isinstance(link, str):
                return bool(_unnamed(used[key]) == _unnamed(self._schemas.get(link.rpartition("/")[2])))
            return new == old

        for path, item in paths.items():
            meet(item, self._paths.get(_without_names(path), {}))
        return found


def _unnamed(schema: object) -> object:
    """A schema without the names of others in it."""
    if is_object(schema):
        return {name: None if name == "$ref" else _unnamed(inner) for name, inner in schema.items()}
    return [*map(_unnamed, schema)] if is_array(schema) else schema


def _without_names(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)
