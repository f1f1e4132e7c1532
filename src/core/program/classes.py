"""The classes of a program as plain syntax trees: which class a name is, its bases, its fields, whether it is an
Env.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from core.errors.mistakes import DEFINES
from core.program.modules import ClassScope, External, FunctionScope, Local, Module, Modules, Scope, class_at, own_class

TYPING: Final = ("typing.", "typing_extensions.")
_STANDARD: Final = ("builtins.", *TYPING, "abc.", "collections.", "enum.")
_MAKERS: Final = DEFINES | {"attr.s", "attr.attrs", "dataclasses.dataclass"}
_FIELD_MAKERS: Final = frozenset(["attrs.field", "attr.ib", "attr.attrib", "attr.field", "dataclasses.field"])
_PROTOCOLS: Final = ("typing.Protocol", "typing_extensions.Protocol")
_DEEPEST: Final = 20
_NOT_IN_INIT: Final = ast.Constant(value=None)


class Field(NamedTuple):
    """A field of an attrs class, dataclass, TypedDict or Protocol."""

    name: str
    annotation: ast.expr
    owner: ClassScope
    line: int
    column: int
    alias: str
    has_default: bool = False
    converted: bool = False


class Classes:
    """The classes of one program. `named` are full names of classes that are Envs without the marker."""

    def __init__(self, modules: Modules, named: frozenset[str] | None = None) -> None:
        self.modules = modules
        self.named = named
        self.ancestors: Callable[[ClassScope], Sequence[ClassScope]] = modules.ancestors
        self._outside: dict[ClassScope, frozenset[str]] = {}
        self._fields: dict[ClassScope, Sequence[Field]] = {}

    def class_of(self, expression: ast.expr, scope: Scope) -> ClassScope | None:
        """The class of the program that an expression names; for `Name[…]`, the class without its arguments."""
        expression, scope = self.written_out(expression, scope)
        if isinstance(expression, ast.Subscript):
            expression, scope = self.written_out(expression.value, scope)
        resolved = self.modules.resolve(expression, scope)
        if isinstance(expression, ast.Call):  # E = TypeVar("E", bound=Env)
            bound = next((k.value for k in expression.keywords if k.arg == "bound"), None)
            is_variable = bound is not None and self.modules.outside(expression.func, scope).endswith(".TypeVar")
            return self.class_of(bound, scope) if is_variable and bound is not None else None
        if isinstance(resolved, Local) and type(resolved.definition.node).__name__ == "TypeVar":  # def f[E: Env]
            bound = resolved.definition.annotation
            return self.class_of(bound, resolved.scope) if bound is not None else None
        return class_at(resolved)

    def written_out(self, annotation: ast.expr, scope: Scope) -> tuple[ast.expr, Scope]:
        """An annotation without quotes and aliases: `"Req"` of `Req = Request[Env]`, and the first argument of
        `Annotated`.
        """
        for _ in range(_DEEPEST):
            match annotation:
                case ast.Constant(value=str() as text):
                    parsed = parsed_string(text)
                    if parsed is None:
                        break
                    annotation = parsed
                case ast.Name() | ast.Attribute():
                    resolved = self.modules.resolve(annotation, scope)
                    if not isinstance(resolved, Local) or resolved.definition.value is None:
                        break
                    annotation, scope = resolved.definition.value, resolved.scope
                case ast.Subscript(value=value, slice=ast.Tuple(elts=[first, *_])):
                    if not self.modules.outside(value, scope).endswith(".Annotated"):
                        break
                    annotation = first
                case _:
                    break
        return annotation, scope

    def outside(self, class_: ClassScope) -> frozenset[str]:
        """The full names of the classes outside of the program that a class derives from."""
        found = self._outside.get(class_)
        if found is None:
            bases = (base for ancestor in self.ancestors(class_) for base in self.modules.bases(ancestor))
            found = self._outside[class_] = frozenset(base.name for base in bases if isinstance(base, External))
        return found

    def function(self, expression: ast.expr, scope: Scope) -> FunctionScope | None:
        """The function or method that an expression names."""
        resolved = self.modules.resolve(expression, scope)
        body = resolved.body if isinstance(resolved, Local) else None
        if isinstance(body, FunctionScope):
            return body
        if not isinstance(expression, ast.Attribute):
            return None
        owner, where = self.modules.value(expression.value, scope)
        class_ = self.class_of(owner.func, where) if isinstance(owner, ast.Call) else None
        if isinstance(owner, ast.Name):
            class_ = own_class(self.modules.resolve(owner, where))
        return self.method(class_, expression.attr) if class_ is not None else None

    def method(self, class_: ClassScope, name: str) -> FunctionScope | None:
        """The method that the nearest of a class and its ancestors has by a name; None where that is something else."""
        for ancestor in self.ancestors(class_):
            found = ancestor.names.get(name, ())
            if found:
                body = ancestor.children.get(found[0].node) if len(found) == 1 else None
                return body if isinstance(body, FunctionScope) else None
        return None

    def is_env(self, class_: ClassScope) -> bool:
        """Return True if a class is marked as an Env, or named as one."""
        if self.named is not None:
            return class_.name in self.named
        return self.is_marked(class_)

    def is_marked(self, class_: ClassScope) -> bool:
        """Return True if a class derives from `Bindings`."""
        return bool(self.outside(class_) & {"core.Bindings", "core.env.Bindings"})

    def is_whole(self, class_: ClassScope) -> bool:
        """Return True if every class that one derives from is known, so that `Bindings` is not among them."""
        return all(
            base is not None and (not isinstance(base, External) or base.name.startswith(_STANDARD))
            for ancestor in self.ancestors(class_)
            for base in self.modules.bases(ancestor)
        )

    def is_protocol(self, class_: ClassScope) -> bool:
        """Return True if a class is itself a Protocol."""
        return any(isinstance(base, External) and base.name in _PROTOCOLS for base in self.modules.bases(class_))

    def is_structured(self, class_: ClassScope) -> bool:
        """Return True if a class is an attrs class, a dataclass or a TypedDict."""
        return any(
            self.maker(decorator, ancestor.parent) in _MAKERS
            for ancestor in self.ancestors(class_)
            for decorator in ancestor.node.decorator_list
        ) or self.is_typed_dict(class_)

    def is_typed_dict(self, class_: ClassScope) -> bool:
        """Return True if a class is a TypedDict."""
        return bool(self.outside(class_) & {"typing.TypedDict", "typing_extensions.TypedDict"})

    def is_total(self, class_: ClassScope) -> bool:
        """Return False for a class that says of a part of its keys that they may be absent: `total=…`."""
        return not any(k.arg == "total" for ancestor in self.ancestors(class_) for k in ancestor.node.keywords)

    def maker(self, decorator: ast.expr, scope: Scope) -> str:
        """The full name of a decorator from outside of the program, called or not; nothing for others."""
        return self.modules.outside(decorator.func if isinstance(decorator, ast.Call) else decorator, scope)

    def fields(self, class_: ClassScope) -> Sequence[Field]:
        """The fields of a class with those of its bases, in the order of the constructor."""
        if class_ not in self._fields:
            each = [(ancestor, one) for ancestor in reversed(self.ancestors(class_)) for one in ancestor.node.body]
            found = {field.name: field for owner, one in each if (field := self._field(one, owner)) is not None}
            self._fields[class_] = [one for one in found.values() if one.annotation is not _NOT_IN_INIT]
        return self._fields[class_]

    def _field(self, statement: ast.stmt, owner: ClassScope) -> Field | None:
        match statement:
            case ast.AnnAssign(annotation=ast.Name(id="KW_ONLY") | ast.Attribute(attr="KW_ONLY")):
                return None  # the mark of a dataclass
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                field = Field(
                    name,
                    annotation,
                    owner,
                    statement.lineno,
                    statement.col_offset + 1,
                    alias=name.lstrip("_"),
                    has_default=value is not None,
                )
                return self._made(field, value) if isinstance(value, ast.Call) else field
            case ast.FunctionDef(name=name, returns=ast.expr() as returns) if self.is_protocol(owner):
                if any(isinstance(d, ast.Name) and d.id == "property" for d in statement.decorator_list):
                    return Field(name, returns, owner, statement.lineno, statement.col_offset + 1, alias=name)
                return None
            case _:
                return None

    def _made(self, field: Field, value: ast.Call) -> Field:
        """A field whose value is `attrs.field(…)`."""
        if self.modules.outside(value.func, field.owner) not in _FIELD_MAKERS:
            return field
        options = {keyword.arg: keyword.value for keyword in value.keywords}
        init = options.get("init")
        if isinstance(init, ast.Constant) and init.value is False:
            return field._replace(annotation=_NOT_IN_INIT)
        alias = self.modules.string(options.get("alias"), field.owner.parent)
        return field._replace(
            alias=alias or field.alias,
            has_default=bool(options.keys() & {"default", "factory", "default_factory"}),
            converted="converter" in options,
        )


def classes_in(module: Module) -> Iterator[ClassScope]:
    """The classes of a module."""
    return (scope for scope in module.scope.walk() if isinstance(scope, ClassScope))


@cache  # so that a type which has itself inside is known again
def parsed_string(text: str) -> ast.expr | None:
    """Return a quoted annotation as an expression, None where it is not one."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
