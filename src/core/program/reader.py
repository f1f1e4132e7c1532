"""Envs read from plain syntax trees: their attributes, and the values of JSON variables against the types of those.

An annotation that is not understood fits everything, as does whatever `core.validation` reads from a string: dates,
enums, a field with a converter.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from typing import Final, cast

from core.program.annotations import Annotation, Annotations
from core.program.envs import EnvAttribute, EnvShape, json_fits
from core.program.findings import Location
from core.program.modules import ClassScope, Modules, Scope
from core.program.wording import json_type, with_article

_KINDS: Final[Mapping[str, str]] = {
    **{f"builtins.{name}": name for name in ("str", "int", "float", "bool", "list", "tuple", "dict")},
    **dict.fromkeys(["builtins.set", "builtins.frozenset"], "list"),
    **{f"{home}.{name}": "list" for home in ("typing", "collections.abc") for name in ("List", "Sequence")},
    **{f"{home}.{name}": "dict" for home in ("typing", "collections.abc") for name in ("Dict", "Mapping")},
}
"""The kinds of the classes that JSON has values for, by full name."""


def _inside_problem(reader: Annotations, annotation: ast.expr, scope: Scope, value: object, path: str) -> str | None:
    """The first place in a value that an annotation does not fit, and the value there:
    `LIMITS.window is a string, not an int`.
    """
    members = list(reader.members(annotation, scope))
    types = [_read(reader, *member) for member in members]
    if not all(type_.kind for type_, _ in types):
        return None
    problems = [_problem(reader, *type_, where, value, path) for type_, (_, where) in zip(types, members, strict=True)]
    if len(problems) == 1 or None in problems:
        return problems[0] if len(problems) == 1 else None
    return _unlike(value, " | ".join(type_.shown for type_, _ in types), path)


def _read(reader: Annotations, expression: ast.expr, scope: Scope) -> tuple[Annotation, ast.expr | None]:
    """A type as JSON sees it, which is not a union, of the kind "" where it is not understood, and the annotation of
    the items of a list or of the values of a dict.
    """
    annotation = reader.annotation(expression, scope)
    kind, inside = "", None
    if isinstance(expression, ast.Constant) and expression.value is None:
        kind = "None"
    elif not isinstance(expression, ast.Subscript):
        kind = _KINDS.get(reader.full_name(expression, scope), "").replace("tuple", "list")
        if annotation.class_ is not None:
            kind = "table" if annotation.kind == "table" and _is_known(reader, annotation.class_) else ""
    elif reader.form(expression.value, scope) == "Literal":
        kind = annotation.kind
    else:
        match _KINDS.get(reader.full_name(expression.value, scope)), expression.slice:
            case "tuple", ast.Tuple(elts=[item, ast.Constant(value=value)]) if value is ...:
                kind, inside = "list", item
            case "tuple", _:
                kind = "list"
            case "dict", ast.Tuple(elts=[_, item]):
                kind, inside = "dict", item
            case "list", item if not isinstance(item, ast.Tuple):
                kind, inside = "list", item
            case _:
                pass
    return annotation._replace(kind=kind), inside


def _is_known(reader: Annotations, class_: ClassScope) -> bool:
    """Return True for an attrs class, a dataclass or a TypedDict that is not generic, and whose bases are known."""
    bases = [base for ancestor in reader.ancestors(class_) for base in ancestor.node.bases]
    generic = any(isinstance(base, ast.Subscript) for base in bases)
    return not generic and (reader.is_typed_dict(class_) or reader.is_whole(class_))


def _problem(
    reader: Annotations, type_: Annotation, inside: ast.expr | None, scope: Scope, value: object, path: str
) -> str | None:
    parts: Mapping[str, object] = {}
    match type_.kind, value:
        case "table", dict() if type_.class_ is not None:
            return _table_problem(reader, type_.class_, cast("dict[str, object]", value), path)
        case "list", list():
            parts = {f"{path}[{at}]": item for at, item in enumerate(cast("list[object]", value))}
        case "dict", dict():
            parts = {f"{path}.{key}": one for key, one in cast("dict[str, object]", value).items()}
        case _:
            return (
                None if _fits(type_, value) else _unlike(value, type_.shown, path, of_literal=type_.kind == "Literal")
            )
    if inside is None:
        return None
    found = (_inside_problem(reader, inside, scope, one, place) for place, one in parts.items())
    return next(filter(None, found), None)


def _table_problem(reader: Annotations, class_: ClassScope, table: Mapping[str, object], path: str) -> str | None:
    typed_dict = reader.is_typed_dict(class_)
    total = not typed_dict or reader.is_total(class_)
    for field in reader.fields(class_):
        read = reader.annotation(field.annotation, field.owner)
        name = field.name if typed_dict else field.alias
        if name in table and not (read.class_var or field.converted):
            place = f"{path}.{name}"
            if problem := _inside_problem(reader, field.annotation, field.owner, table[name], place):
                return problem
        elif name not in table and total and not (field.has_default or read.not_required or read.class_var):
            return f"{path} has no {name}, which {class_.node.name} demands"
    return None


def _unlike(value: object, shown: str, path: str, *, of_literal: bool = False) -> str:
    found = f'"{value}"' if isinstance(value, str) and of_literal else json_type(value)
    return f"{path} is {found}, not {with_article(shown)}"


def _fits(type_: Annotation, value: object) -> bool:
    if type_.kind == "None":
        return value is None
    if type_.kind == "int" and isinstance(value, float):
        return value.is_integer()  # 3.0 is a whole number to JSON
    return json_fits(type_.kind, value, [*type_.literals, *([None] if type_.optional else [])])


class Reader(Annotations):
    """Reads the Envs of one program."""

    def __init__(self, modules: Modules, named: frozenset[str] | None = None) -> None:
        super().__init__(modules, named)
        self._shapes: dict[ClassScope, EnvShape] = {}

    def shape(self, class_: ClassScope) -> EnvShape:
        """An Env, or a Protocol that stands for one, as `core.program.envs` wants it."""
        found = self._shapes.get(class_)
        if found is not None:
            return found
        file = str(class_.module.path)
        home = Location(file, class_.node.lineno, class_.node.col_offset + 1)
        attributes: list[EnvAttribute] = []
        for field in self.fields(class_):
            annotation = self.annotation(field.annotation, field.owner)
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
                    inside=functools.partial(_inside_problem, self, field.annotation, field.owner),
                )
            )
        partial = self.named is None and class_.node.name in self.modules.derived
        shape = self._shapes[class_] = EnvShape(class_.node.name, home, attributes, partial)
        return shape
