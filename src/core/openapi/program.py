"""What values are in JSON, where the code is more precise than its type.

A dict that is written out keeps its fields although its type is `dict[str, object]`, a column of a statement has the
type that the migrations give it, and an error's body has the constants that it was made of. Everything else has the
type that it has in this call (`frames.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

from mypy.constant_fold import constant_fold_expr
from mypy.nodes import (
    ARG_NAMED,
    AssignmentExpr,
    AwaitExpr,
    CallExpr,
    ConditionalExpr,
    DictExpr,
    DictionaryComprehension,
    Expression,
    GeneratorExpr,
    IndexExpr,
    ListComprehension,
    ListExpr,
    MemberExpr,
    NameExpr,
    Node,
    OpExpr,
    RefExpr,
    SetComprehension,
    SetExpr,
    SliceExpr,
    StarExpr,
    TupleExpr,
    TypeInfo,
)

from core.openapi.facts import TEXT, Held, Raise, classes_in
from core.openapi.failures import default_body, object_of
from core.openapi.raised import Raised
from core.openapi.schemas import is_vague, nearest
from core.openapi.solving import attrs_fields
from core.openapi.trees import argument, called
from core.openapi.values import Frame, Value, bounded, once
from core.validation.schema import Schema, any_of, json_type, without_null

_AS_DICT: Final = frozenset(["attr.asdict", "attrs.asdict", "attr._funcs.asdict", "dataclasses.asdict"])
_KEEPS_VALUES: Final = frozenset(["recurse", "retain_collection_types"])
"""The arguments of `asdict` that leave fields and values as they are."""
_MOMENT: Final[Schema] = {"type": "string", "format": "date-time"}
_ZONES: Final[Mapping[str, tuple[int, str] | None]] = {
    "datetime.datetime": (7, "tzinfo"),
    "datetime.datetime.now": (0, "tz"),
    "datetime.datetime.fromtimestamp": (1, "tz"),
    "datetime.datetime.combine": (2, "tzinfo"),
    "datetime.datetime.strptime": None,
    "datetime.datetime.today": None,
    "datetime.datetime.utcnow": None,
    "datetime.datetime.utcfromtimestamp": None,
}
"""The argument that gives a `datetime` its time zone, by what makes one; None for what takes none.

A time and a text may have one of their own: what is made of them has no format rather than one that may be wrong.
"""


class Program(Raised):
    """The expressions of a program, each in the frame of the call that it is read for."""

    @cached_property
    def _extended(self) -> frozenset[str]:
        """The classes with subclasses in the program that have more fields: JSON has those of the instance."""
        return frozenset(
            base.fullname
            for info in self.classes
            for base in info.mro[1:]
            if attrs_fields(base) and attrs_fields(info).keys() - attrs_fields(base).keys()
        )

    def _says_little(self, schema: Schema) -> bool:
        """Return True if the code may say more than a type does, also by fields that only a subclass has."""
        return is_vague(schema) or any(name.partition("[")[0] in self._extended for name in classes_in(schema))

    def declared(self, held: Held) -> Schema:
        """The schema of a type of the running program."""
        return self.schemas.of(self.schemas.type_from(held, self.lookup))

    @once
    def schema_of(self, value: Value) -> Schema:
        """The JSON of a value."""
        if value.held is not None and value.held.kind == "constant":
            # Its type alone, since another environment may start with another value.
            return {"type": json_type(value.held.constant)}
        if value.keys is not None:
            return object_of({name: self.schema_of(each) for name, each in value.keys.items()})
        return self.schema(*value.place) if value.place is not None else self.schemas.of(value.type)

    def structured(self, call: CallExpr, frame: Frame) -> Schema:
        """Return the type that a request is read into: the T of `req.json(T)` and `req.query.parse(T)`."""
        asked = self.asked_for(call, frame)
        return self.schemas.of(asked if asked is not None else self.type_of(call, frame))

    def _plain(self, expression: Expression, frame: Frame) -> Schema:
        schema = self.schemas.of(self.type_of(expression, frame))
        # A moment without a zone is written without the offset that the format demands (RFC 3339).
        return TEXT if schema == _MOMENT and self._is_naive(expression, frame) else schema

    @bounded(False)
    def _is_naive(self, expression: Expression, frame: Frame) -> bool:
        """Return True for a `datetime` that is seen to be made without a time zone."""
        made = self.made(Value(expression, frame))
        if made is not None and (name := called(made[0])) in _ZONES:
            zone = _ZONES[name]
            return zone is None or argument(made[0], *zone) is None
        return made is not None and any(self._is_naive(*each) for each in self.returned(*made))

    def schema(self, expression: Expression, frame: Frame) -> Schema:
        """Return the JSON schema of an expression's value."""
        own = self._own(expression, frame)
        if own is not None:
            return own
        plain = self._plain(expression, frame)
        found = self._behind(expression, plain, frame) if self._says_little(plain) else ()
        return nearest(any_of(found), plain) if found else plain

    @bounded(None)
    def _own(self, expression: Expression, frame: Frame) -> Schema | None:
        """What an expression says itself, of whatever type it is."""
        match expression:
            case DictExpr():
                declared = self.schemas.of(self.type_of(expression, frame))
                # It is a TypedDict where one is asked for.
                return declared if "$class" in declared else self._dict(expression, frame)
            case ListExpr() | SetExpr():
                items = [self.schema(item, frame) for item in expression.items]
                return {"type": "array", "items": any_of(items) if items else {}}
            case StarExpr(expr=inner):
                return self._items(inner, frame) or {"$unknown": "the items of an unpacked value"}
            case TupleExpr() if not any(isinstance(item, StarExpr) for item in expression.items):
                parts = [self.schema(item, frame) for item in expression.items]
                return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
            case ListComprehension(generator=inner) | SetComprehension(generator=inner) | AssignmentExpr(value=inner):
                return self.schema(inner, frame)
            case GeneratorExpr():
                return {"type": "array", "items": self.schema(expression.left_expr, frame)}
            case DictionaryComprehension():
                return {"type": "object", "additionalProperties": self.schema(expression.value, frame)}
            case ConditionalExpr():
                return any_of([self.schema(expression.if_expr, frame), self.schema(expression.else_expr, frame)])
            case AwaitExpr(expr=CallExpr() as call) | (CallExpr() as call):
                return self._called(expression, call, frame)
            case MemberExpr():
                return self._attribute(expression, frame)
            case NameExpr() if (value := self.bound(expression, frame)) is not None:
                plain = self._plain(expression, frame)
                # A name is the constant that it was given, an argument the one that this call hands over.
                if plain.get("type") in ("string", "integer") or "enum" in plain:
                    return self.schema_of(value) if {"const", "enum"} & self.schema_of(value).keys() else plain
            case OpExpr(op="|"):
                both = [self.schema(expression.left, frame), self.schema(expression.right, frame)]
                if all("properties" in part or "$class" in part for part in both):
                    return self.schemas.merged(both)
            case OpExpr(op="or"):
                first = self.schema(expression.left, frame)
                if "$unknown" not in first:
                    return any_of([*_true_parts(first), self.schema(expression.right, frame)])
            case _:
                pass
        return None

    @bounded(())
    def _behind(self, expression: Expression, plain: Schema, frame: Frame) -> Sequence[Schema]:
        """What there is behind an expression whose type says little."""
        match expression:
            case NameExpr(node=node) if node is not None:
                return [self._assigned(expression, node, plain, frame)]
            case MemberExpr(name=name) if name not in self.filled_elsewhere:
                return [*map(self.schema_of, self.ways(expression, frame))]
            case IndexExpr(index=key) if not isinstance(key, SliceExpr):
                return self._values(expression.base, key, frame)
            case AwaitExpr(expr=CallExpr() as call) | (CallExpr() as call):
                pass
            case _:
                return ()
        callee, args = call.callee, call.args
        if called(call) in ("builtins.list", "builtins.sorted", "builtins.tuple") and args and is_vague(plain):
            items = self._items(args[0], frame)
            return [{"type": "array", "items": items}] if items is not None else ()
        returned = self.returned(call, frame)
        if returned and not (isinstance(callee, RefExpr) and isinstance(callee.node, TypeInfo)):
            return [self.schema(*each) for each in returned]
        if isinstance(callee, MemberExpr) and callee.name in ("get", "pop") and args:
            otherwise = self.schema(args[1], frame) if len(args) > 1 else {"type": "null"}
            return self._values(callee.expr, args[0], frame, otherwise)
        return ()

    def _items(self, several: Expression, frame: Frame) -> Schema | None:
        """The JSON of the items of a value: as the code has it, else by their type."""
        each = self.item_of(several, frame, "typing.Iterable")
        return self.schema(several, frame).get("items") or (self.schemas.of(each) if each is not None else None)

    def _assigned(self, name: NameExpr, node: Node, plain: Schema, frame: Frame) -> Schema:
        """What was assigned to a name."""
        value = self.bound(name, frame)
        if value is None:
            if ways := self.ways(name, frame):
                return any_of(map(self.schema_of, ways))
            through = frame.notes.through(name)
            whole = self.schema(through, frame) if through is not None else {}
            items: Schema = whole.get("items", plain)
            return items
        followed = self.schema_of(value)
        home = next(
            (at for at in frame.chain() if node in at.values or node in at.notes.assigned), value.frame or frame
        )
        notes = home.notes
        if "$unknown" not in plain and {"type": "null"} not in plain.get("anyOf", ()):
            followed = without_null(followed, followed)  # which the code has ruled out by now
        added = notes.items.get(node, [])
        if None in added or node in self.filled_elsewhere:
            return plain
        if appended := notes.appended.get(node, []):
            first = [followed["items"]] if followed.get("items") else []
            rest = [self.schema(each, home) for each in appended]
            return {**followed, "items": any_of([*first, *rest])} if "items" in followed else plain
        if not added:
            return followed
        if "properties" not in followed:
            return plain
        properties: dict[str, Schema] = dict(followed["properties"])
        required: list[str] = list(followed["required"])
        for item in added:
            assert item is not None
            key, expression, always = item
            schema = self.schema(expression, home)
            there = properties.get(key)
            if there is None and always and expression.line < name.line:
                required.append(key)
            properties[key] = schema if there is None else any_of([there, schema])
        return {**followed, "properties": properties, "required": required}

    def _called(self, expression: Expression, call: CallExpr, frame: Frame) -> Schema | None:
        """What a call of a function that is known here gives."""
        name, args = called(call), call.args
        if name in _AS_DICT and args and _KEEPS_VALUES.issuperset(call.arg_names[1:]):
            made = self.schema(args[0], frame)
            if not self.schemas.is_renamed(made):
                return made
        if name == "builtins.dict" and args and all(kind == ARG_NAMED for kind in call.arg_kinds):
            given = zip(call.arg_names, args, strict=True)
            return object_of({str(key): self.schema(value, frame) for key, value in given})
        if name == "builtins.str" and args and (errors := self.for_clients(args[0], frame)):
            return any_of(each.message for each in errors)
        asked = self.asked_for(call, frame)
        if asked is not None:
            return self.schemas.of(asked)
        is_row = isinstance(call.callee, MemberExpr) and call.callee.name == "first" and not args
        return self._rows(call, frame) if is_row and is_vague(self._plain(expression, frame)) else None

    def _rows(self, call: CallExpr, frame: Frame) -> Schema | None:
        """The row of `first()`, and one row of `all()`: of a column alone, mypy's plugin says the type."""
        found = self.rows_of(call, frame.module)
        if found is None or not isinstance(call.callee, MemberExpr) or call.callee.name not in ("first", "all", "run"):
            return None
        row = object_of(dict(found.columns))
        return row if found.certain or call.callee.name != "first" else any_of([row, {"type": "null"}])

    def _attribute(self, expression: MemberExpr, frame: Frame) -> Schema | None:
        """`err.body` of an error, and `found.results` of a statement."""
        owner, name = expression.expr, expression.name
        if name in _PARTS and (errors := self.for_clients(owner, frame)):
            return any_of(map(_PARTS[name], errors))
        if raised := self.errors(owner, frame):
            known = [self.class_constant(self.lookup(each.classes[0]), name) for each in raised]
            if all(isinstance(each, str | int) for each in known):
                return any_of({"const": each} for each in known)
        made = self.made(Value(owner, frame)) if name == "results" else None
        row = self._rows(*made) if made is not None and self._says_little(self._plain(expression, frame)) else None
        return {"type": "array", "items": row} if row is not None else None

    def _values(
        self, container: Expression, key: Expression, frame: Frame, otherwise: Schema | None = None
    ) -> list[Schema]:
        """What a list or dict has under a key, or all that it has where the key varies, and what is taken otherwise."""
        whole = self.schema(container, frame)
        parts = [self.schemas.whole(part) for part in whole.get("anyOf", [whole])]
        name = constant_fold_expr(key, "")
        found: list[Schema] = [part["properties"][name] for part in parts if name in part.get("properties", ())]
        is_known = isinstance(name, str) and all(part.keys() & {"properties"} for part in parts)
        if not found and (not is_known or any("additionalProperties" in part for part in parts)):
            found = [each for part in parts for each in part.get("properties", {}).values()]
            found += [part[word] for part in parts for word in ("additionalProperties", "items") if word in part]
        is_there = all(name in part.get("required", ()) for part in parts)
        return found if is_there or otherwise is None else [*found, otherwise]

    def _dict(self, expression: DictExpr, frame: Frame) -> Schema:
        parts, others, unpacked = list[Schema](), list[Schema](), 0
        for key, value in expression.items:
            schema = self.schema(value, frame)
            if key is None:
                parts.append(schema)
                unpacked = len(parts)
                continue
            known = self.schema(key, frame)
            name = known["const"] if "const" in known else constant_fold_expr(key, "")
            if isinstance(name, str):
                parts.append(object_of({name: schema}))
            else:
                others.append(schema)
        if others:  # any of them may be what was unpacked before
            parts.insert(unpacked, {"type": "object", "additionalProperties": any_of(others)})
        return self.schemas.merged(parts or [object_of({})])


_PARTS: Final[Mapping[str, Callable[[Raise], Schema]]] = {
    "body": lambda error: default_body(error, 0, problem=False),
    "headers": lambda error: object_of(error.headers),
    "message": lambda error: error.message,
    "metadata": lambda error: error.metadata,
    "status": lambda error: any_of({"const": each} for each in error.status) if error.status else {"type": "integer"},
}


def _true_parts(schema: Schema) -> list[Schema]:
    """The alternatives of a schema that are not null and no constant such as "" or 0."""
    parts: list[Schema] = [*schema["anyOf"]] if set(schema) == {"anyOf"} else [schema]
    single = [[{"const": value} for value in part["enum"]] if set(part) == {"enum"} else [part] for part in parts]
    return [each for part in single for each in part if each.get("type") != "null" and each.get("const", True)]
