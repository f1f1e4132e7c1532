"""Annotations and Envs read from plain syntax trees: the kind of binding that an attribute asks for, and the values of
JSON variables against the types of attributes.

An annotation that is not understood has the kind `""` and fits everything, as does whatever `core.validation` reads
from a string: dates, enums, a field with a converter.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, cast

from core.bindings.kinds import KINDS
from core.program.classes import TYPING, Classes
from core.program.envs import EnvAttribute, EnvClass, json_fits
from core.program.extensions import declared
from core.program.modules import ClassScope, External, Modules, Scope, class_at
from core.program.table import Place
from core.program.wording import json_type, with_article

# The kinds that the framework has a type for; an alias is a Protocol by another name: `Assets` is a `Fetcher`.
_PROTOCOLS: Final[Mapping[str, str]] = {
    **{kind.protocol: kind.protocol for kind in KINDS.values() if kind.protocol is not None},
    **{kind.alias: kind.protocol for kind in KINDS.values() if kind.alias and kind.protocol},
}
WRAPPERS: Final = frozenset(["Annotated", "Final", "Required", "NotRequired", "ReadOnly"])
_KINDS: Final[Mapping[str, str]] = {
    **{f"builtins.{name}": name for name in ("str", "int", "float", "bool", "list", "dict", "object")},
    **dict.fromkeys(["builtins.tuple", "builtins.set", "builtins.frozenset"], "list"),
    **{f"{home}.{name}": "list" for home in ("typing", "collections.abc") for name in ("List", "Sequence")},
    **{f"{home}.{name}": "dict" for home in ("typing", "collections.abc") for name in ("Dict", "Mapping")},
    **{f"{home}Any": "Any" for home in TYPING},
}
"""The kinds of the classes that JSON has values for, by full name."""
_JSON: Final = frozenset([*_KINDS.values(), "Literal", "table"])
_DEEPEST: Final = 20


class Annotation(NamedTuple):
    """An annotation, understood as far as it can be. `arguments` are the full names of its type arguments."""

    kind: str
    shown: str
    optional: bool = False
    arguments: Sequence[str] = ()
    literals: Sequence[Any] = ()
    class_: ClassScope | None = None
    not_required: bool = False
    class_var: bool = False

    @property
    def written(self) -> str:
        """It as messages show it, with `| None` where None is allowed."""
        return f"{self.shown} | None" if self.optional else self.shown


class Reader(Classes):
    """The annotations and the Envs of one program."""

    def __init__(self, modules: Modules, named: frozenset[str] | None = None) -> None:
        super().__init__(modules, named)
        self._env_classes: dict[ClassScope, EnvClass] = {}
        self._open: set[ast.expr] = set()
        """The generic types that are being read: one that has itself inside is not read again there."""

    def annotation(self, expression: ast.expr, scope: Scope) -> Annotation:
        """The possible meanings of an annotation."""
        members = [*self.members(expression, scope)]
        inner = [self._member(*each) for each in members if not _is_none(each[0])]
        optional = len(inner) < len(members) or any(each.optional for each in inner)
        shown = " | ".join(each.shown for each in inner) or _text(expression)
        if inner and all(each.kind == "Literal" for each in inner):
            literals = [literal for each in inner for literal in each.literals]
            return Annotation("Literal", shown, optional, literals=literals)
        if len(inner) != 1:
            return Annotation("", shown, optional)
        written, where = self.written_out(expression, scope)
        not_required = isinstance(written, ast.Subscript) and self.form(written.value, where) == "NotRequired"
        return inner[0]._replace(optional=optional, not_required=not_required)

    def members(self, expression: ast.expr, scope: Scope, depth: int = 0) -> Iterator[tuple[ast.expr, Scope]]:
        """The members of a union, or the type alone: without quotes, aliases, and wrappers such as `Annotated`."""
        expression, scope = self.written_out(expression, scope)
        inner: Sequence[ast.expr] = ()
        if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.BitOr):
            inner = list(arms(expression))
        elif isinstance(expression, ast.Subscript):
            form, arguments = self.form(expression.value, scope), arguments_of(expression)
            if form in WRAPPERS:
                inner = arguments[:1]
            elif form in ("Optional", "Union"):
                inner = [*arguments, *([ast.Constant(None)] if form == "Optional" else [])]
        if depth > _DEEPEST or not inner:
            yield expression, scope
        for each in inner if depth <= _DEEPEST else ():
            yield from self.members(each, scope, depth + 1)

    def form(self, expression: ast.expr, scope: Scope) -> str:
        """The name of a form of `typing`, as `Union`; nothing for all others."""
        name = self.modules.outside(expression, scope)
        return name.rpartition(".")[2] if name.startswith(TYPING) else ""

    def _member(self, expression: ast.expr, scope: Scope) -> Annotation:
        """A type that is no union, no alias and not quoted."""
        match expression:
            case ast.Subscript(value=generic):
                arguments = arguments_of(expression)
                if self.form(generic, scope) == "Literal":
                    return self._literal(arguments)
                base = self._member(generic, scope)
                with self._reading(expression) as is_inside:
                    inner = [_text(one) if is_inside else self.annotation(one, scope).written for one in arguments]
                    names = tuple(self.full_name(argument, scope) for argument in arguments)
                return base._replace(shown=f"{base.shown}[{', '.join(inner)}]", arguments=names)
            case ast.Call(func=func, args=[ast.Constant(value=name), *rest]):  # NewType("Port", int)
                if self.modules.outside(func, scope).endswith(".NewType") and rest:
                    return self.annotation(rest[0], scope)._replace(shown=str(name))
                return Annotation("", str(name))
            case _:
                pass
        resolved = self.modules.resolve(expression, scope)
        class_ = class_at(resolved)
        if class_ is not None:
            return Annotation(self._class_kind(class_), class_.node.name, class_=class_)
        if not isinstance(resolved, External):
            return Annotation("", _text(expression).rpartition(".")[2])
        last = resolved.name.rpartition(".")[2]
        own = _PROTOCOLS.get(last) if resolved.name.startswith("core.") else declared().types.get(resolved.name)
        return Annotation(own or _KINDS.get(resolved.name, ""), last, class_var=last == "ClassVar")

    @contextmanager
    def _reading(self, generic: ast.expr) -> Generator[bool]:
        is_inside = generic in self._open
        self._open.add(generic)
        yield is_inside
        if not is_inside:
            self._open.remove(generic)

    def _literal(self, arguments: Sequence[ast.expr]) -> Annotation:
        values = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
        literals = [value for value in values if isinstance(value, str | int | bool)]
        words = ", ".join(f'"{value}"' if isinstance(value, str) else repr(value) for value in literals)
        # A member of an enum is not JSON; a type that has one is not judged.
        kind = "Literal" if len(values) == len(arguments) else ""
        return Annotation(kind, f"Literal[{words}]", None in values, literals=literals)

    def _class_kind(self, class_: ClassScope) -> str:
        for name in self.outside(class_):
            last = name.rpartition(".")[2]
            if name.startswith("core.") and last in _PROTOCOLS:
                return _PROTOCOLS[last]
        if any(isinstance(base, External) and base.name.startswith("enum.") for base in self.modules.bases(class_)):
            return ""
        for name in self.outside(class_):
            if name in _KINDS:
                return _KINDS[name]
        return "table" if self.is_structured(class_) else ""

    def full_name(self, expression: ast.expr, scope: Scope) -> str:
        """The full name of a class with its arguments, to tell whether two annotations are one; nothing if unknown."""
        expression, scope = self.written_out(expression, scope)
        if isinstance(expression, ast.Subscript):
            with self._reading(expression) as is_inside:
                parts = [] if is_inside else [expression.value, *arguments_of(expression)]
                base, *names = [self.full_name(part, scope) for part in parts] or [""]
            return f"{base}[{', '.join(names)}]" if base and all(names) else ""
        resolved = self.modules.resolve(expression, scope)
        class_ = class_at(resolved)
        if class_ is not None:
            return class_.name
        name = resolved.name if isinstance(resolved, External) else ""
        return f"typing.{name.rpartition('.')[2]}" if name.startswith(TYPING) else name

    def env_class(self, class_: ClassScope) -> EnvClass:
        """An Env, or a Protocol that stands for one, as `core.program.envs` wants it."""
        found = self._env_classes.get(class_)
        if found is not None:
            return found
        file = str(class_.module.path)
        home = Place(file, class_.node.lineno, class_.node.col_offset + 1)
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
                    location=Place(file, field.line, field.column) if own else home,
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
        env_class = self._env_classes[class_] = EnvClass(class_.node.name, home, attributes, partial)
        return env_class


def _inside_problem(reader: Reader, annotation: ast.expr, scope: Scope, value: object, path: str) -> str | None:
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


def _read(reader: Reader, expression: ast.expr, scope: Scope) -> tuple[Annotation, ast.expr | None]:
    """A type as JSON sees it, which is not a union, of the kind "" where it is not understood, and the annotation of
    the items of a list or of the values of a dict.
    """
    if _is_none(expression):
        return Annotation("None", "None"), None
    annotation, inside = reader.annotation(expression, scope), None
    kind = annotation.kind if annotation.kind in _JSON else ""
    if annotation.class_ is not None:
        kind = "table" if kind == "table" and _is_known(reader, annotation.class_) else ""
    match kind, expression.slice if isinstance(expression, ast.Subscript) else None:
        case "list", ast.Tuple(elts=[item, ast.Constant(value=value)]) if value is ...:
            inside = item
        case "dict", ast.Tuple(elts=[_, item]):
            inside = item
        case "list", ast.expr() as item if not isinstance(item, ast.Tuple):
            inside = item
        case _:
            pass
    return annotation._replace(kind=kind), inside


def _is_known(reader: Reader, class_: ClassScope) -> bool:
    """Return True for an attrs class, a dataclass or a TypedDict that is not generic, and whose bases are known."""
    bases = [base for ancestor in reader.ancestors(class_) for base in ancestor.node.bases]
    generic = any(isinstance(base, ast.Subscript) for base in bases)
    return not generic and (reader.is_typed_dict(class_) or reader.is_whole(class_))


def _problem(
    reader: Reader, type_: Annotation, inside: ast.expr | None, scope: Scope, value: object, path: str
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


def _table_problem(reader: Reader, class_: ClassScope, table: Mapping[str, object], path: str) -> str | None:
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


def _is_none(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Constant) and expression.value is None


def _text(expression: ast.expr) -> str:
    return expression.id if isinstance(expression, ast.Name) else ast.unparse(expression)


def arguments_of(generic: ast.Subscript) -> list[ast.expr]:
    """The arguments of a generic type."""
    return generic.slice.elts if isinstance(generic.slice, ast.Tuple) else [generic.slice]


def arms(expression: ast.expr) -> Iterator[ast.expr]:
    """Yield the members of a union that is written with `|`, or the expression itself."""
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.BitOr):
        yield from arms(expression.left)
        yield from arms(expression.right)
    else:
        yield expression
