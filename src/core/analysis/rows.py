"""The types of fields of a row's class, read from plain syntax trees. An unknown annotation accepts anything."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final

from core.analysis.annotations import WRAPPERS
from core.analysis.classes import TYPING, ClassRef, class_at, parsed_string
from core.analysis.modules import External, Local, Scope
from core.analysis.reader import Reader
from core.sql.parameters import Given
from core.sql.rows import ROW_KINDS, Kind, RowField

__all__ = ["NONE", "class_fields", "given_value", "row_fields", "row_kinds"]

_DEEPEST: Final = 20
NONE: Final[frozenset[Kind]] = frozenset(["none"])


def row_fields(reader: Reader, expression: ast.expr, scope: Scope) -> tuple[str, list[RowField]] | None:
    """The class that rows become and its fields; None for a class that is not understood."""
    class_ = reader.class_of(expression, scope) if isinstance(expression, ast.Name | ast.Attribute) else None
    return class_fields(reader, class_) if class_ is not None else None


def class_fields(reader: Reader, class_: ClassRef) -> tuple[str, list[RowField]] | None:
    """The same of a class itself."""
    if not reader.is_structured(class_):
        return None
    total = not any(k.arg == "total" for ancestor in reader.ancestors(class_) for k in ancestor.node.keywords)
    if reader.is_typed_dict(class_) and not total:
        return None
    fields: list[RowField] = []
    for field in reader.fields(class_):
        annotation = reader.annotation(field.annotation, field.owner.body)
        if annotation.class_var:
            continue
        kinds = row_kinds(reader, field.annotation, field.owner.body)
        required = not field.has_default and not annotation.not_required
        fields.append(
            RowField(field.name, annotation.written, frozenset(["any"]) if field.converted else kinds, required)
        )
    return class_.node.name, fields


def row_kinds(reader: Reader, expression: ast.expr, scope: Scope, *, depth: int = 0) -> frozenset[Kind]:
    """Return the kinds of values that a field of a row accepts."""
    anything: frozenset[Kind] = frozenset(["any"])
    if depth > _DEEPEST:
        return anything
    match expression:
        case ast.Constant(value=None):
            return NONE
        case ast.Constant(value=str() as text):
            parsed = parsed_string(text)
            return row_kinds(reader, parsed, scope, depth=depth + 1) if parsed is not None else anything
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return row_kinds(reader, left, scope, depth=depth + 1) | row_kinds(reader, right, scope, depth=depth + 1)
        case ast.Subscript(value=value, slice=inside):
            resolved = reader.modules.resolve(value, scope)
            arguments = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            name = resolved.name if isinstance(resolved, External) else ""
            if not name.startswith(TYPING):
                return row_kinds(reader, value, scope, depth=depth + 1)
            match name.rpartition(".")[2]:
                case wrapper if wrapper in WRAPPERS:
                    return row_kinds(reader, arguments[0], scope, depth=depth + 1)
                case "Optional":
                    return row_kinds(reader, arguments[0], scope, depth=depth + 1) | NONE
                case "Union":
                    return frozenset(k for a in arguments for k in row_kinds(reader, a, scope, depth=depth + 1))
                case "Literal":
                    return frozenset(kind for argument in arguments for kind in _literal_kind(argument))
                case _:
                    return row_kinds(reader, value, scope, depth=depth + 1)
        case ast.Name() | ast.Attribute():
            resolved = reader.modules.resolve(expression, scope)
            if isinstance(resolved, External):
                kind = ROW_KINDS.get(resolved.name)
                return frozenset([kind]) if kind is not None else anything
            class_ = class_at(resolved)
            if class_ is not None:
                return frozenset(["json"]) if reader.is_typed_dict(class_) else anything
            if isinstance(resolved, Local) and resolved.definition.value is not None:
                value = resolved.definition.value
                if isinstance(value, ast.Call):
                    maker = reader.modules.resolve(value.func, resolved.scope)
                    if not (isinstance(maker, External) and maker.name.endswith(".NewType") and len(value.args) == 2):
                        return anything
                    value = value.args[1]
                return row_kinds(reader, value, resolved.scope, depth=depth + 1)
            return anything
        case _:
            return anything


_ENUMS: Final = frozenset(["enum.Enum", "enum.Flag"])
_JSON: Final[frozenset[Kind]] = frozenset(["json"])
_DISPLAYS: Final = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_REFUSED: Final[Mapping[type[ast.expr], str]] = {
    ast.Dict: "dict",
    ast.DictComp: "dict",
    ast.Set: "set",
    ast.SetComp: "set",
}


def given_value(reader: Reader, expression: ast.expr, scope: Scope) -> Given | None:
    """The values that an argument of `bind` may have; None where that is not certain."""
    if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name | ast.Attribute):
        class_ = reader.class_of(expression.value, scope)
        if class_ is not None:
            return _member(reader, class_, expression.attr)
    value, where = reader.modules.value(expression, scope)
    match value:
        case ast.Constant(value=kind):
            known = _literal_kind(value)
            return Given(known, kind if isinstance(kind, str) else None)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return Given(frozenset(["int" if isinstance(number, int) else "float"]))
        case _ if isinstance(value, _DISPLAYS):
            return Given(_JSON, refused=_REFUSED.get(type(value), ""))
        case ast.Name():
            resolved = reader.modules.resolve(value, where)
            if not isinstance(resolved, Local) or not isinstance(resolved.definition.node, ast.arg):
                return None
            annotation = resolved.definition.annotation
            if annotation is None or len(resolved.scope.names.get(value.id, ())) != 1:
                return None
            class_ = reader.class_of(annotation, resolved.scope)
            if class_ is not None and _is_plain_enum(reader, class_):
                return Given(frozenset(), enum=class_.node.name)
            # None may have been ruled out before.
            kinds = row_kinds(reader, annotation, resolved.scope) - NONE
            # Of lists and objects, a union has others; a Sequence may be bytes, and has the kind "any".
            if not kinds or (kinds != _JSON and kinds & {"any", "json"}):
                return None
            return Given(kinds, refused=_refused(reader, annotation, resolved.scope))
        case _:
            return None


def _refused(reader: Reader, annotation: ast.expr, scope: Scope) -> str:
    """The kind of a value that `bind` refuses whatever it holds, by its annotation; empty for all others."""
    plain = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    resolved = reader.modules.resolve(plain, scope)
    name = resolved.name.rpartition(".")[2].lower() if isinstance(resolved, External) else ""
    return name if name in ("dict", "set", "frozenset") else ""


def _member(reader: Reader, class_: ClassRef, name: str) -> Given | None:
    """A member of an Enum that is neither a number nor a string, as `bind` refuses it."""
    if not _is_plain_enum(reader, class_) or name not in class_.body.names:
        return None
    return Given(frozenset(), enum=class_.node.name)


def _is_plain_enum(reader: Reader, class_: ClassRef) -> bool:
    bases = reader.outside(class_)
    return bool(bases) and bases <= _ENUMS


def _literal_kind(expression: ast.expr) -> frozenset[Kind]:
    match expression:
        case ast.Constant(value=bool()):
            return frozenset(["bool"])
        case ast.Constant(value=int()):
            return frozenset(["int"])
        case ast.Constant(value=float()):
            return frozenset(["float"])
        case ast.Constant(value=str()):
            return frozenset(["str"])
        case ast.Constant(value=bytes()):
            return frozenset(["bytes"])
        case ast.Constant(value=None):
            return NONE
        case _:
            return frozenset(["any"])
