"""Annotations read from plain syntax trees: the kind of binding that an attribute asks for.

An annotation that is not understood has the kind `""`, and nothing is said about it.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from core.bindings.kinds import KINDS
from core.program.classes import TYPING, Classes, parsed_string
from core.program.extensions import declared
from core.program.modules import ClassScope, Definition, External, Local, Modules, Scope, class_at

# The kinds that the framework has a type for; an alias is a Protocol by another name: `Assets` is a `Fetcher`.
_KINDS: Final[Mapping[str, str]] = {
    **{kind.protocol: kind.protocol for kind in KINDS.values() if kind.protocol is not None},
    **{kind.alias: kind.protocol for kind in KINDS.values() if kind.alias and kind.protocol},
}
WRAPPERS: Final = frozenset(["Annotated", "Final", "Required", "NotRequired", "ReadOnly"])
_SCALARS: Final[Mapping[str, str]] = {
    "builtins.str": "str",
    "builtins.int": "int",
    "builtins.float": "float",
    "builtins.bool": "bool",
    "builtins.list": "list",
    "typing.List": "list",
    "builtins.dict": "dict",
    "typing.Dict": "dict",
    "builtins.object": "object",
    "typing.Any": "Any",
    "typing_extensions.Any": "Any",
}
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


class Annotations(Classes):
    """The annotations of one program."""

    def __init__(self, modules: Modules, named: frozenset[str] | None = None) -> None:
        super().__init__(modules, named)
        self._open: set[Definition] = set()
        """The aliases that are being read: one that has itself inside is not read again there."""

    def annotation(self, expression: ast.expr, scope: Scope) -> Annotation:
        """The possible meanings of an annotation."""
        match expression:
            case ast.Constant(value=str() as text):
                parsed = parsed_string(text)
                if parsed is not None:
                    return self.annotation(parsed, scope)
            case ast.BinOp(op=ast.BitOr()):
                return self._union(list(arms(expression)), scope)
            case ast.Subscript():
                return self._subscript(expression, scope)
            case ast.Name() | ast.Attribute():
                return self._named(expression, scope)
            case _:
                pass
        return Annotation("", _text(expression))

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

    def _union(self, members: Sequence[ast.expr], scope: Scope) -> Annotation:
        rest = [member for member in members if not isinstance(member, ast.Constant) or member.value is not None]
        optional = len(rest) < len(members)
        inner = [self.annotation(member, scope) for member in rest]
        shown = " | ".join(annotation.shown for annotation in inner)
        optional = optional or any(annotation.optional for annotation in inner)
        if len(inner) == 1:
            return inner[0]._replace(optional=optional)
        if inner and all(annotation.kind == "Literal" for annotation in inner):
            literals = [literal for annotation in inner for literal in annotation.literals]
            return Annotation("Literal", shown, optional, literals=literals)
        return Annotation("", shown, optional)

    def _subscript(self, expression: ast.Subscript, scope: Scope) -> Annotation:
        arguments = arguments_of(expression)
        match self.form(expression.value, scope):
            case name if name in WRAPPERS and arguments:
                inner = self.annotation(arguments[0], scope)
                return inner._replace(not_required=inner.not_required or name == "NotRequired")
            case "Optional" if len(arguments) == 1:
                return self.annotation(arguments[0], scope)._replace(optional=True)
            case "Union":
                return self._union(arguments, scope)
            case "ClassVar":
                return Annotation("", "ClassVar", class_var=True)
            case "Literal":
                return self._literal(arguments)
            case _:
                pass
        base = self._named(expression.value, scope)
        shown = f"{base.shown}[{', '.join(self.annotation(argument, scope).written for argument in arguments)}]"
        names = tuple(self.full_name(argument, scope) for argument in arguments)
        return base._replace(shown=shown, arguments=names)

    def _literal(self, arguments: Sequence[ast.expr]) -> Annotation:
        values = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
        literals = [value for value in values if isinstance(value, str | int | bool)]
        words = ", ".join(f'"{value}"' if isinstance(value, str) else repr(value) for value in literals)
        # A member of an enum is not JSON; a type that has one is not judged.
        kind = "Literal" if len(values) == len(arguments) else ""
        return Annotation(kind, f"Literal[{words}]", None in values, literals=literals)

    def _named(self, expression: ast.expr, scope: Scope) -> Annotation:
        bare = _text(expression).rpartition(".")[2]
        resolved = self.modules.resolve(expression, scope)
        match resolved:
            case External(name):
                last = name.rpartition(".")[2]
                if name.startswith("core.") and last in _KINDS:
                    return Annotation(_KINDS[last], last)
                if name in declared().types:
                    return Annotation(declared().types[name], last)
                return Annotation(_SCALARS.get(name, ""), last, class_var=last == "ClassVar")
            case Local(definition, inner):
                class_ = class_at(resolved)
                if class_ is not None:
                    return Annotation(self._class_kind(class_), class_.node.name, class_=class_)
                value = definition.value
                if isinstance(value, ast.Call):  # NewType("Port", int)
                    if self.modules.outside(value.func, inner).endswith(".NewType") and len(value.args) == 2:
                        return self.annotation(value.args[1], inner)._replace(shown=bare)
                elif value is not None and definition not in self._open:
                    with self._reading(definition):
                        return self.annotation(value, inner)
                return Annotation("", bare)
            case _:
                return Annotation("", bare)

    @contextmanager
    def _reading(self, alias: Definition) -> Generator[None]:
        self._open.add(alias)
        try:
            yield
        finally:
            self._open.remove(alias)

    def _class_kind(self, class_: ClassScope) -> str:
        for name in self.outside(class_):
            last = name.rpartition(".")[2]
            if name.startswith("core.") and last in _KINDS:
                return _KINDS[last]
        if any(isinstance(base, External) and base.name.startswith("enum.") for base in self.bases(class_)):
            return ""
        for name in self.outside(class_):
            if name in _SCALARS:
                return _SCALARS[name]
        return "table" if self.is_structured(class_) else ""

    def full_name(self, expression: ast.expr, scope: Scope) -> str:
        """The full name of a class with its arguments, to tell whether two annotations are one; nothing if unknown."""
        if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
            parsed = parsed_string(expression.value)
            return self.full_name(parsed, scope) if parsed is not None else ""
        if isinstance(expression, ast.Subscript):
            base = self.full_name(expression.value, scope)
            names = [self.full_name(argument, scope) for argument in arguments_of(expression)]
            return f"{base}[{', '.join(names)}]" if base and all(names) else ""
        if not isinstance(expression, ast.Name | ast.Attribute):
            return ""
        resolved = self.modules.resolve(expression, scope)
        class_ = class_at(resolved)
        if class_ is not None:
            return class_.name
        if isinstance(resolved, Local) and resolved.definition.value is not None:
            value = resolved.definition.value
            if isinstance(value, ast.Call) or resolved.definition in self._open:
                return ""
            with self._reading(resolved.definition):
                return self.full_name(value, resolved.scope)
        if isinstance(resolved, External):
            return f"typing.{resolved.name.rpartition('.')[2]}" if resolved.name.startswith(TYPING) else resolved.name
        return ""


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
