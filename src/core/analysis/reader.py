"""Envs read from plain syntax trees: their attributes with their kinds, and the types inside JSON variables.

The twin of `core.mypy_plugin.types` and `core.mypy_plugin.variables`, for programs that no type checker has read.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeAlias

from core.analysis.annotations import Annotation, Annotations, arms
from core.analysis.classes import ClassRef, Field
from core.analysis.envs import EnvAttribute, EnvShape
from core.analysis.findings import Location
from core.analysis.modules import Modules, Scope
from core.analysis.variables import JSON_KINDS, UNKNOWN, JsonField, JsonType

__all__ = ["Reader"]


class Reader(Annotations):
    """Reads the Envs of one program."""

    def __init__(self, modules: Modules, named: frozenset[str] | None = None) -> None:
        super().__init__(modules, named)
        self._shapes: dict[ClassRef, EnvShape] = {}

    def shape(self, class_: ClassRef, *, partial: bool = False) -> EnvShape:
        """An Env, or a Protocol that stands for one, as `core.analysis.envs` wants it."""
        found = self._shapes.get(class_)
        if found is not None:
            return found
        file = str(class_.module.path)
        home = Location(file, class_.node.lineno, class_.node.col_offset + 1)
        attributes: list[EnvAttribute] = []
        for field in self.fields(class_):
            annotation = self.annotation(field.annotation, field.owner.body)
            if annotation.class_var:
                continue
            own = field.owner == class_
            attributes.append(
                EnvAttribute(
                    name=field.alias,
                    kind=annotation.kind,
                    shown=annotation.shown,
                    location=Location(file, field.line, field.column) if own else home,
                    attribute=field.name,
                    optional=annotation.optional or field.has_default,
                    arguments=annotation.arguments,
                    literals=annotation.literals,
                    converted=field.converted,
                    inherited=not own and self.is_env(field.owner),
                    json=self._inside(annotation, field),
                )
            )
        shape = self._shapes[class_] = EnvShape(class_.node.name, home, attributes, partial)
        return shape

    def _inside(self, annotation: Annotation, field: Field) -> JsonType:
        """Return the type of the values inside a list, a dict or a table."""
        if annotation.kind not in ("list", "dict", "table"):
            return UNKNOWN
        return _json_type(self, field.annotation, field.owner.body)


_Seen: TypeAlias = "tuple[ClassRef, ...]"


def _json_type(reader: Annotations, expression: ast.expr, scope: Scope, seen: _Seen = ()) -> JsonType:
    """An annotation as JSON sees it."""
    expression, scope = reader.written_out(expression, scope)
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.BitOr):
        return _union(reader, [*arms(expression)], scope, seen)
    if isinstance(expression, ast.Constant) and expression.value is None:
        return JsonType("None", "None")
    annotation = reader.annotation(expression, scope)
    if isinstance(expression, ast.Subscript):
        return _subscript(reader, expression, annotation.shown, scope, seen)
    if annotation.class_ is not None:
        return _class(reader, annotation.class_, seen) if annotation.kind == "table" else UNKNOWN
    kind = JSON_KINDS.get(reader.full_name(expression, scope), "")
    return JsonType("list" if kind == "tuple" else kind, annotation.shown) if kind else UNKNOWN


def _subscript(reader: Annotations, expression: ast.Subscript, shown: str, scope: Scope, seen: _Seen) -> JsonType:
    arguments: Sequence[ast.expr] = (
        expression.slice.elts if isinstance(expression.slice, ast.Tuple) else [expression.slice]
    )
    name = reader.full_name(expression.value, scope)
    match name.rpartition(".")[2] if name.startswith("typing.") else "":
        case "Optional":
            return _union(reader, [*arguments, ast.Constant(None)], scope, seen)
        case "Union":
            return _union(reader, arguments, scope, seen)
        case "Literal":
            read = reader.annotation(expression, scope)
            literals = [*read.literals, *([None] if read.optional else [])]
            return JsonType("Literal", shown, literals=tuple(literals)) if read.kind == "Literal" else UNKNOWN
        case "Annotated" | "Required" | "NotRequired" | "ReadOnly" | "Final":
            return _json_type(reader, arguments[0], scope, seen)
        case _:
            pass
    kind, last = JSON_KINDS.get(name, ""), arguments[-1]
    if kind == "tuple":
        endless = len(arguments) == 2 and isinstance(last, ast.Constant) and last.value is ...
        return JsonType("list", shown, (_json_type(reader, arguments[0], scope, seen),) if endless else ())
    if kind not in ("list", "dict") or len(arguments) != (1 if kind == "list" else 2):
        return UNKNOWN
    return JsonType(kind, shown, (_json_type(reader, last, scope, seen),))


def _union(reader: Annotations, expressions: Sequence[ast.expr], scope: Scope, seen: _Seen) -> JsonType:
    members = [_json_type(reader, arm, scope, seen) for arm in expressions]
    if not all(member.kind for member in members):
        return UNKNOWN
    return JsonType("union", " | ".join(member.shown for member in members), tuple(members))


def _class(reader: Annotations, class_: ClassRef, seen: _Seen) -> JsonType:
    """An attrs class, a dataclass or a TypedDict, whose bases are all known."""
    typed_dict = reader.is_typed_dict(class_)
    ancestors = list(reader.ancestors(class_))
    generic = any(isinstance(base, ast.Subscript) for ancestor in ancestors for base in ancestor.node.bases)
    if class_ in seen or generic or not (typed_dict or reader.is_whole(class_)):
        return UNKNOWN
    total = not any(keyword.arg == "total" for ancestor in ancestors for keyword in ancestor.node.keywords)
    fields: list[JsonField] = []
    for field in reader.fields(class_):
        annotation = reader.annotation(field.annotation, field.owner.body)
        if annotation.class_var:
            continue
        type_ = UNKNOWN if field.converted else _json_type(reader, field.annotation, field.owner.body, (*seen, class_))
        required = not field.has_default and not annotation.not_required and (total or not typed_dict)
        fields.append(JsonField(field.name if typed_dict else field.alias, type_, required))
    return JsonType("table", class_.node.name, fields=tuple(fields))
