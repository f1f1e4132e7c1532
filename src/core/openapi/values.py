"""The schema of a value as a document has it: the value that a function returns, and objects laid over each other,
worked out.

An unknown value becomes a problem at the line of the effect that has the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from core.openapi.components import Components
from core.openapi.effects import Found, Program
from core.openapi.facts import Schema, any_of, is_object

__all__ = ["Problem", "Values"]


@attrs.frozen(order=True)
class Problem:
    """Something that the document cannot say, at its line."""

    path: str
    line: int
    message: str


class Values:
    """Schemas of one document, and the problems with them."""

    def __init__(self, program: Program, components: Components) -> None:
        self._program = program
        self._components = components
        self.problems: set[Problem] = set()

    def final(self, schema: Schema, each: Found, *, reading: bool = False) -> Schema:
        """A schema that may stand in a document. `reading` is for values that clients send."""

        def unknown(reason: str) -> None:
            self.problem(each, f"the type of a value is not known ({reason}). Give it a type")

        return self._components.final(self._resolved(schema, unknown, ()), unknown, reading=reading)

    def _resolved(self, schema: Schema, unknown: Callable[[str], None], seen: tuple[str, ...]) -> Schema:
        """A schema without stand-ins for another one: the value that a function returns, objects laid over each
        other.
        """
        if "$returns" in schema:
            name = schema["$returns"]
            found = self._program.functions.get(name)
            if found is None or found[0].returns is None or name in seen:
                return self._resolved(schema["$otherwise"], unknown, seen)
            return self._resolved(found[0].returns, unknown, (*seen, name))
        if "$merge" in schema:
            return self._merged([self._resolved(part, unknown, seen) for part in schema["$merge"]])
        result: Schema = {}
        for key, value in schema.items():
            if key == "properties":
                result[key] = {name: self._resolved(part, unknown, seen) for name, part in value.items()}
            elif key in ("items", "additionalProperties") and is_object(value):
                result[key] = self._resolved(value, unknown, seen)
            elif key == "anyOf":
                result = {**result, **any_of([self._resolved(part, unknown, seen) for part in value])}
            elif key == "prefixItems":
                result[key] = [self._resolved(part, unknown, seen) for part in value]
            else:
                result[key] = value
        return result

    def _merged(self, parts: Sequence[Schema]) -> Schema:
        """Several objects as one; of two properties of one name the later counts, as in Python."""
        properties: dict[str, Schema] = {}
        required: list[str] = []
        others: list[Schema] = []
        for part in parts:
            alternatives = [self._whole(each) for each in part.get("anyOf", [part])]
            for each in alternatives:
                extra = each.get("additionalProperties")
                if extra is None and "properties" not in each and each != {"type": "null"}:
                    extra = each if "$unknown" in each else {"$unknown": "the value unpacked here"}
                certain = set[str](each.get("required", ()) if len(alternatives) == 1 else ())
                for name, schema in each.get("properties", {}).items():
                    earlier = properties.get(name)
                    properties[name] = schema if earlier is None or name in certain else any_of([earlier, schema])
                    if name in certain and name not in required:
                        required.append(name)
                if extra is not None:
                    others.append(extra)
                    for name in properties.keys() - each.get("properties", {}).keys():
                        properties[name] = any_of([properties[name], extra])
        result: Schema = {"type": "object", "properties": properties, "required": required}
        if others:
            result["additionalProperties"] = any_of(others)
        return result

    def _whole(self, schema: Schema) -> Schema:
        name = schema.get("$class", "")
        return self._components.object_of(name) if name in self._program.classes else schema

    def problem(self, each: Found, message: str) -> None:
        """Add a problem at the line of an effect, if that is the program's."""
        if each.path:
            self.problems.add(Problem(each.path, each.effect.line, message))
