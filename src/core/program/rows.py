"""The types of fields of a row's class, read from plain syntax trees. An unknown annotation accepts anything."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from core.program.modules import ClassScope, Definition, External, Local, Scope, class_at, own_class
from core.program.reader import Reader, arguments_of
from core.sql.rows import ROW_KINDS, Given, Kind, RowClass, RowField

_DEEPEST: Final = 20
NONE: Final[frozenset[Kind]] = frozenset(["none"])


def row_fields(reader: Reader, expression: ast.expr, scope: Scope) -> RowClass | None:
    """The class that rows become and its fields; None for a class that is not understood."""
    class_ = _row_class(reader, expression, scope)
    return class_fields(reader, class_) if class_ is not None else None


def _row_class(reader: Reader, expression: ast.expr, scope: Scope) -> ClassScope | None:
    expression, scope = reader.modules.of_self(expression, scope) or (expression, scope)
    if not isinstance(expression, ast.Name | ast.Attribute):
        return None
    # The first is `cls` of a class method.
    return own_class(reader.modules.resolve(expression, scope)) or reader.class_of(expression, scope)


def is_variable(reader: Reader, expression: ast.expr, scope: Scope) -> bool:
    """Return True for a parameter, or an attribute of one: what rows are read as is known when the program runs."""
    if not isinstance(expression, ast.Name | ast.Attribute) or _row_class(reader, expression, scope) is not None:
        return False
    resolved = reader.modules.resolve(expression, scope)
    return resolved is None or (isinstance(resolved, Local) and isinstance(resolved.definition.node, ast.arg))


def class_fields(reader: Reader, class_: ClassScope) -> RowClass | None:
    """The same of a class itself."""
    typed_dict = reader.is_typed_dict(class_)
    if not reader.is_structured(class_) or (typed_dict and not reader.is_total(class_)):
        return None
    fields: list[RowField] = []
    for field in reader.fields(class_):
        annotation = reader.annotation(field.annotation, field.owner)
        if annotation.class_var:
            continue
        members = [*_written_out(reader, field.annotation, field.owner)]
        kinds = _kinds_of(reader, members)
        required = not field.has_default and not annotation.not_required
        inside = _inner(reader, members)
        alias = field.name if typed_dict else field.alias
        made = RowField(field.name, annotation.written, kinds, required, alias=alias)
        if field.converted:
            made = made._replace(kinds=_ANY)
        elif inside is None:
            made = made._replace(texts=_texts(reader, members))
        else:
            made = made._replace(kinds=(kinds - _ANY) | _JSON, inside=partial(class_fields, reader, inside))
        fields.append(made)
    return RowClass(class_.node.name, fields, reader.is_whole(class_))


def inner_class(reader: Reader, expression: ast.expr, scope: Scope) -> ClassScope | None:
    """The class that a field has, which several columns of a row fill; None for a union of others too."""
    return _inner(reader, _written_out(reader, expression, scope))


def _inner(reader: Reader, members: Iterable[tuple[ast.expr, Scope]]) -> ClassScope | None:
    found: list[ClassScope | None] = []
    for member, where in members:
        if not isinstance(member, ast.Constant):
            base = member.value if isinstance(member, ast.Subscript) else member
            class_ = class_at(reader.modules.resolve(base, where))
            found.append(class_ if class_ is not None and reader.is_structured(class_) else None)
    return found[0] if len(found) == 1 else None


def _written_out(
    reader: Reader, expression: ast.expr, scope: Scope, depth: int = 0
) -> Iterator[tuple[ast.expr, Scope]]:
    """The members of a union, and the types that others are made of: `NewType("Port", int)`."""
    for member, where in reader.members(expression, scope):
        match member:
            case ast.Call(func=func, args=[_, plain]) if depth < _DEEPEST:
                if reader.modules.outside(func, where).endswith(".NewType"):
                    yield from _written_out(reader, plain, where, depth + 1)
                    continue
            case _:
                pass
        yield member, where


def row_kinds(reader: Reader, expression: ast.expr, scope: Scope) -> frozenset[Kind]:
    """Return the kinds of values that a field of a row accepts."""
    return _kinds_of(reader, _written_out(reader, expression, scope))


def _kinds_of(reader: Reader, members: Iterable[tuple[ast.expr, Scope]]) -> frozenset[Kind]:
    return frozenset(kind for member, where in members for kind in _kinds(reader, member, where))


def _kinds(reader: Reader, expression: ast.expr, scope: Scope) -> frozenset[Kind]:
    match expression:
        case ast.Constant(value=None):
            return NONE
        case ast.Call():
            return _ANY
        case ast.Subscript() if reader.form(expression.value, scope) == "Literal":
            return frozenset(kind for argument in arguments_of(expression) for kind in _literal_kind(argument))
        case _:
            base = expression.value if isinstance(expression, ast.Subscript) else expression
            resolved = reader.modules.resolve(base, scope)
            if isinstance(resolved, External):
                return frozenset([ROW_KINDS.get(resolved.name, "any")])
            class_ = class_at(resolved)
            if class_ is None:
                return _ANY
            kinds = frozenset[Kind](kind for each in enum_values(reader, class_) for kind in _literal_kind(each))
            if not kinds:
                return _JSON if reader.is_typed_dict(class_) else _ANY
            return kinds.union(_REAL) if "int" in kinds else kinds  # a column of reals may hold the number of a member


def _texts(reader: Reader, members: Iterable[tuple[ast.expr, Scope]]) -> frozenset[str] | None:
    """The texts of a Literal or an Enum, None left out; None for a type that has others."""
    found: list[ast.expr | None] = []
    for member, where in members:
        if isinstance(member, ast.Constant) and member.value is None:
            continue
        if isinstance(member, ast.Subscript) and reader.form(member.value, where) == "Literal":
            found += arguments_of(member)
            continue
        class_ = class_at(reader.modules.resolve(member, where))
        values = enum_values(reader, class_) if class_ is not None else []
        if not values:
            return None
        found += values
    texts = [one.value for one in found if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return frozenset(texts) if texts and len(texts) == len(found) else None


def enum_values(reader: Reader, class_: ClassScope) -> list[ast.expr | None]:
    """The values of an Enum's members; none of what is no Enum, or may take other values."""
    own = {name for ancestor in reader.ancestors(class_) for name in ancestor.names}
    if not reader.outside(class_) & _VALUED or own & {"_missing_", "__new__"}:
        return []
    given = [one for name, each in class_.names.items() if name[0] != "_" for one in each]
    return [one.value for one in given if not isinstance(one.node, ast.FunctionDef)]


_VALUED: Final = frozenset(["enum.Enum", "enum.IntEnum", "enum.StrEnum"])
_ANY: Final[frozenset[Kind]] = frozenset(["any"])
_REAL: Final[frozenset[Kind]] = frozenset(["float"])
_LITERALS: Final[Mapping[type[object], Kind]] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    bytes: "bytes",
    type(None): "none",
}
_ENUMS: Final = frozenset(["enum.Enum", "enum.Flag"])
_JSON: Final[frozenset[Kind]] = frozenset(["json"])
_UNSET: Final[frozenset[Kind]] = frozenset(["unset"])
DISPLAYS: Final[Mapping[type[ast.expr], str]] = {
    **dict.fromkeys([ast.Dict, ast.DictComp], "dict"),
    **dict.fromkeys([ast.List, ast.ListComp], "list"),
    **dict.fromkeys([ast.Set, ast.SetComp], "set"),
    ast.Tuple: "tuple",
}
"""The types of values that are written out."""


def given_value(reader: Reader, expression: ast.expr, scope: Scope) -> Given | None:
    """The values that an argument of `bind` may have; None where that is not certain."""
    if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name | ast.Attribute):
        class_ = reader.class_of(expression.value, scope)
        if class_ is not None:
            is_refused = _is_plain_enum(reader, class_) and expression.attr in class_.names
            return Given(frozenset(), enum=class_.node.name) if is_refused else None
    value, where = reader.modules.value(expression, scope)
    match value:
        case ast.Constant(value=constant):
            return Given(_literal_kind(value), constant if isinstance(constant, str) else None)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return Given(frozenset(["int" if isinstance(number, int) else "float"]))
        case _ if type(value) in DISPLAYS:
            kind = DISPLAYS[type(value)]
            return Given(_JSON, refused=kind if kind in ("dict", "set") else "")
        case ast.Name() | ast.Attribute():
            match reader.modules.resolve(value, where):
                case External("core.UNSET" | "core.validation.unset.UNSET"):
                    return Given(_UNSET)
                case Local(Definition(node=ast.arg(arg=name), annotation=ast.expr() as annotation), inner):
                    return _given_argument(reader, annotation, inner) if len(inner.names.get(name, ())) == 1 else None
                case _:
                    return None
        case _:
            return None


def _given_argument(reader: Reader, annotation: ast.expr, scope: Scope) -> Given | None:
    """The values that a parameter may have, by its annotation."""
    class_ = reader.class_of(annotation, scope)
    if class_ is not None and _is_plain_enum(reader, class_):
        return Given(frozenset(), enum=class_.node.name)
    # None and UNSET may have been ruled out before.
    kinds = row_kinds(reader, annotation, scope) - NONE - _UNSET
    if class_ is not None:  # a member of an Enum is bound as its own number
        kinds -= _REAL
    # Of lists and objects, a union has others; a Sequence may be bytes, and has the kind "any".
    if not kinds or (kinds != _JSON and kinds & {"any", "json"}):
        return None
    # Of several texts, some may have been ruled out as well.
    texts = _texts(reader, _written_out(reader, annotation, scope))
    alone = next(iter(texts)) if texts is not None and len(texts) == 1 else None
    # `bind` refuses these whatever they hold.
    refused = reader.modules.outside(annotation, scope).rpartition(".")[2].lower()
    return Given(kinds, alone, refused=refused if refused in ("dict", "set", "frozenset") else "")


def _is_plain_enum(reader: Reader, class_: ClassScope) -> bool:
    """Return True for an Enum of neither numbers nor strings, whose members `bind` refuses."""
    bases = reader.outside(class_)
    return bool(bases) and bases <= _ENUMS


def _literal_kind(expression: ast.expr | None) -> frozenset[Kind]:
    kind: Kind = _LITERALS.get(type(expression.value), "any") if isinstance(expression, ast.Constant) else "any"
    return frozenset([kind])


def no_row(reader: Reader, expression: ast.expr, scope: Scope) -> tuple[str, Kind] | None:
    """A type that no row is read as: a bare value or an array, and its kind."""
    base = expression.value if isinstance(expression, ast.Subscript) else expression
    if not isinstance(base, ast.Name | ast.Attribute):
        return None
    class_ = class_at(reader.modules.resolve(base, scope))
    if class_ is not None and "typing.NamedTuple" in reader.outside(class_):
        return class_.node.name, "json"
    name = reader.modules.outside(base, scope)
    kind = ROW_KINDS.get(name, "any")
    is_never = name.startswith(("builtins.", "typing.")) and kind != "any" and not name.lower().endswith(".dict")
    return (ast.unparse(expression), kind) if is_never else None
