"""What annotations say, read from the text: which class is an Env, which kind of binding an attribute asks for,
what the fields of a row take. The twin of `core.mypy_plugin.types`, for programs that no type checker has read.

What is not understood has the kind `""` (or takes anything), and nothing is said about it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from core.config.check import EnvAttribute, EnvShape, Location
from core.config.model import KINDS
from core.config.modules import External, Local, Module, Modules, Resolved, Scope
from core.config.sql import Kind, RowField

__all__ = ["Annotation", "ClassRef", "Reader"]

# What the framework has a type for; `Assets` is a `Fetcher` by another name.
_KINDS: Final[Mapping[str, str]] = {
    **{kind.protocol: kind.protocol for kind in KINDS.values() if kind.protocol is not None},
    "Assets": "Fetcher",
}
_TYPING: Final = ("typing.", "typing_extensions.")
_WRAPPERS: Final = frozenset(["Annotated", "Final", "Required", "NotRequired", "ReadOnly"])
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
_ROW_KINDS: Final[Mapping[str, Kind]] = {
    "builtins.str": "str",
    "builtins.int": "int",
    "builtins.float": "float",
    "builtins.bool": "bool",
    "builtins.bytes": "bytes",
    "datetime.datetime": "date",
    "datetime.date": "date",
    "datetime.time": "date",
    "uuid.UUID": "date",
    "builtins.list": "json",
    "builtins.dict": "json",
    "builtins.set": "json",
    "builtins.frozenset": "json",
    "builtins.tuple": "json",
    "typing.List": "json",
    "typing.Dict": "json",
}
_MAKERS: Final = frozenset(
    [
        "attrs.frozen",
        "attrs.define",
        "attrs.mutable",
        "attr.s",
        "attr.attrs",
        "attr.frozen",
        "attr.define",
        "attr.mutable",
    ]
)
_FIELD_MAKERS: Final = frozenset(["attrs.field", "attr.ib", "attr.attrib", "attr.field", "dataclasses.field"])
_DEEPEST: Final = 20


@attrs.frozen
class ClassRef:
    """A class of the program. `scope` is where it stands, `body` what is inside it."""

    node: ast.ClassDef = attrs.field(eq=id)
    scope: Scope = attrs.field(eq=False, repr=False)

    @property
    def body(self) -> Scope:
        """What stands inside it: its fields, methods and inner classes."""
        return self.scope.children[self.node]

    @property
    def module(self) -> Module:
        """The module it stands in."""
        return self.scope.module

    @property
    def name(self) -> str:
        """Its full name."""
        return f"{self.module.name}.{self.body.qualname}"


@attrs.frozen
class Annotation:
    """An annotation, understood as far as it can be. `arguments` are the full names of its type arguments."""

    kind: str
    shown: str
    optional: bool = False
    arguments: Sequence[str] = ()
    literals: Sequence[Any] = ()
    class_: ClassRef | None = None
    not_required: bool = False
    class_var: bool = False


@attrs.frozen
class _Field:
    """A field of an attrs class, dataclass, TypedDict or Protocol."""

    name: str
    annotation: ast.expr
    owner: ClassRef
    line: int
    column: int
    alias: str
    has_default: bool = False
    converted: bool = False


class Reader:
    """Reads annotations and classes of one program. `named` are full names of classes that are Envs without the marker."""

    def __init__(self, modules: Modules, named: frozenset[str] | None = None) -> None:
        self.modules = modules
        self.named = named
        self._shapes: dict[ClassRef, EnvShape] = {}
        self._bases: dict[ClassRef, tuple[Resolved | None, ...]] = {}

    # -- classes

    def class_of(self, expression: ast.expr, scope: Scope) -> ClassRef | None:
        """The class of the program that an expression names; for `Name[…]`, the class without its arguments."""
        if isinstance(expression, ast.Subscript):
            expression = expression.value
        if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
            parsed = _parsed(expression.value)
            return self.class_of(parsed, scope) if parsed is not None else None
        return _class(self.modules.resolve(expression, scope))

    def bases(self, class_: ClassRef) -> tuple[Resolved | None, ...]:
        """What the bases of a class are, without their type arguments."""
        found = self._bases.get(class_)
        if found is None:
            found = self._bases[class_] = tuple(
                self.modules.resolve(base.value if isinstance(base, ast.Subscript) else base, class_.scope)
                for base in class_.node.bases
            )
        return found

    def ancestors(self, class_: ClassRef) -> Iterator[ClassRef]:
        """A class and the classes of the program that it derives from, nearest first."""
        seen: set[ClassRef] = set()
        todo = [class_]
        while todo:
            current = todo.pop(0)
            if current not in seen:
                seen.add(current)
                yield current
                todo += [base for base in map(_class, self.bases(current)) if base is not None]

    def outside(self, class_: ClassRef) -> set[str]:
        """The full names of the classes outside of the program that a class derives from."""
        return {
            base.name
            for ancestor in self.ancestors(class_)
            for base in self.bases(ancestor)
            if isinstance(base, External)
        }

    def is_env(self, class_: ClassRef) -> bool:
        """Whether a class is marked as an Env, or named as one."""
        if self.named is not None:
            return class_.name in self.named
        return bool(self.outside(class_) & {"core.Bindings", "core.env.Bindings"})

    def is_protocol(self, class_: ClassRef) -> bool:
        """Whether a class is itself a Protocol."""
        return any(
            isinstance(base, External) and base.name in ("typing.Protocol", "typing_extensions.Protocol")
            for base in self.bases(class_)
        )

    def is_structured(self, class_: ClassRef) -> bool:
        """Whether a class is an attrs class, a dataclass or a TypedDict."""
        return any(
            (name := self._maker(decorator, ancestor.scope)) in _MAKERS or name == "dataclasses.dataclass"
            for ancestor in self.ancestors(class_)
            for decorator in ancestor.node.decorator_list
        ) or self.is_typed_dict(class_)

    def is_typed_dict(self, class_: ClassRef) -> bool:
        """Whether a class is a TypedDict."""
        return bool(self.outside(class_) & {"typing.TypedDict", "typing_extensions.TypedDict"})

    def _maker(self, decorator: ast.expr, scope: Scope) -> str:
        if isinstance(decorator, ast.Call):
            decorator = decorator.func
        resolved = self.modules.resolve(decorator, scope)
        return resolved.name if isinstance(resolved, External) else ""

    def fields(self, class_: ClassRef) -> list[_Field]:
        """The fields of a class with those of its bases, in the order of the constructor."""
        found: dict[str, _Field] = {}
        for ancestor in reversed(list(self.ancestors(class_))):
            for statement in ancestor.node.body:
                field = self._field(statement, ancestor)
                if field is not None:
                    found[field.name] = field
        return [field for field in found.values() if field.annotation is not _NOT_IN_INIT]

    def _field(self, statement: ast.stmt, owner: ClassRef) -> _Field | None:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                field = _Field(
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
                    return _Field(name, returns, owner, statement.lineno, statement.col_offset + 1, alias=name)
                return None
            case _:
                return None

    def _made(self, field: _Field, value: ast.Call) -> _Field:
        """A field whose value is `attrs.field(…)`."""
        resolved = self.modules.resolve(value.func, field.owner.body)
        if not isinstance(resolved, External) or resolved.name not in _FIELD_MAKERS:
            return field
        options = {keyword.arg: keyword.value for keyword in value.keywords}
        init = options.get("init")
        if isinstance(init, ast.Constant) and init.value is False:
            return attrs.evolve(field, annotation=_NOT_IN_INIT)
        alias = self.modules.text(options.get("alias"), field.owner.scope)
        return attrs.evolve(
            field,
            alias=alias or field.alias,
            has_default=bool(options.keys() & {"default", "factory", "default_factory"}),
            converted="converter" in options,
        )

    # -- Env

    def shape(self, class_: ClassRef, *, partial: bool = False) -> EnvShape:
        """An Env, or a Protocol that stands for one, as `core.config.check` wants it."""
        found = self._shapes.get(class_)
        if found is not None:
            return found
        file = str(class_.module.path)
        home = Location(file, _first_line(class_.node), class_.node.col_offset + 1)
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
                )
            )
        shape = self._shapes[class_] = EnvShape(class_.node.name, home, attributes, partial)
        return shape

    # -- annotations

    def annotation(self, expression: ast.expr, scope: Scope, *, depth: int = 0) -> Annotation:
        """What an annotation is."""
        nothing = Annotation("", _text(expression))
        if depth > _DEEPEST:
            return nothing
        match expression:
            case ast.Constant(value=str() as text):
                parsed = _parsed(text)
                return self.annotation(parsed, scope, depth=depth + 1) if parsed is not None else nothing
            case ast.BinOp(op=ast.BitOr()):
                return self._union(list(_arms(expression)), scope, depth)
            case ast.Subscript(value=value, slice=inside):
                return self._subscript(expression, value, inside, scope, depth)
            case ast.Name() | ast.Attribute():
                return self._named(expression, scope, depth)
            case _:
                return nothing

    def _union(self, arms: Sequence[ast.expr], scope: Scope, depth: int) -> Annotation:
        rest = [arm for arm in arms if not _is_none(arm)]
        optional = len(rest) < len(arms)
        inner = [self.annotation(arm, scope, depth=depth + 1) for arm in rest]
        shown = " | ".join(annotation.shown for annotation in inner)
        optional = optional or any(annotation.optional for annotation in inner)
        if len(inner) == 1:
            return attrs.evolve(inner[0], optional=optional)
        if inner and all(annotation.kind == "Literal" for annotation in inner):
            literals = [literal for annotation in inner for literal in annotation.literals]
            return Annotation("Literal", shown, optional, literals=literals)
        return Annotation("", shown, optional)

    def _subscript(
        self, expression: ast.Subscript, value: ast.expr, inside: ast.expr, scope: Scope, depth: int
    ) -> Annotation:
        resolved = self.modules.resolve(value, scope)
        arguments = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        if isinstance(resolved, External) and resolved.name.startswith(_TYPING):
            match resolved.name.rpartition(".")[2]:
                case name if name in _WRAPPERS and arguments:
                    inner = self.annotation(arguments[0], scope, depth=depth + 1)
                    return attrs.evolve(inner, not_required=inner.not_required or name == "NotRequired")
                case "Optional" if len(arguments) == 1:
                    return attrs.evolve(self.annotation(arguments[0], scope, depth=depth + 1), optional=True)
                case "Union":
                    return self._union(arguments, scope, depth)
                case "ClassVar":
                    return Annotation("", "ClassVar", class_var=True)
                case "Literal":
                    return self._literal(arguments)
                case _:
                    pass
        base = self._named(value, scope, depth)
        shown = f"{base.shown}[{', '.join(self._shown(argument, scope, depth + 1) for argument in arguments)}]"
        names = tuple(self.full_name(argument, scope) for argument in arguments)
        return attrs.evolve(base, shown=shown, arguments=names)

    def _literal(self, arguments: Sequence[ast.expr]) -> Annotation:
        values = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
        literals = [value for value in values if isinstance(value, str | int | bool)]
        words = ", ".join(f'"{value}"' if isinstance(value, str) else repr(value) for value in literals)
        # A member of an enum is no JSON; what has one is not judged.
        kind = "Literal" if len(values) == len(arguments) else ""
        return Annotation(kind, f"Literal[{words}]", None in values, literals=literals)

    def _named(self, expression: ast.expr, scope: Scope, depth: int) -> Annotation:
        bare = _text(expression).rpartition(".")[2]
        resolved = self.modules.resolve(expression, scope)
        match resolved:
            case External(name):
                last = name.rpartition(".")[2]
                if name.startswith("core.") and last in _KINDS:
                    return Annotation(_KINDS[last], last)
                return Annotation(_SCALARS.get(name, ""), last, class_var=last == "ClassVar")
            case Local(definition, inner):
                class_ = _class(resolved)
                if class_ is not None:
                    return Annotation(self._class_kind(class_), class_.node.name, class_=class_)
                value = definition.value
                if isinstance(value, ast.Call):  # NewType("Port", int)
                    maker = self.modules.resolve(value.func, inner)
                    if isinstance(maker, External) and maker.name.endswith(".NewType") and len(value.args) == 2:
                        return attrs.evolve(self.annotation(value.args[1], inner, depth=depth + 1), shown=bare)
                elif value is not None:
                    return self.annotation(value, inner, depth=depth + 1)
                return Annotation("", bare)
            case _:
                return Annotation("", bare)

    def _class_kind(self, class_: ClassRef) -> str:
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

    def _shown(self, expression: ast.expr, scope: Scope, depth: int) -> str:
        annotation = self.annotation(expression, scope, depth=depth)
        return f"{annotation.shown} | None" if annotation.optional else annotation.shown

    def full_name(self, expression: ast.expr, scope: Scope) -> str:
        """The full name of a class with its arguments, to tell whether two annotations are one; nothing if unknown."""
        if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
            parsed = _parsed(expression.value)
            return self.full_name(parsed, scope) if parsed is not None else ""
        if isinstance(expression, ast.Subscript):
            base = self.full_name(expression.value, scope)
            inside = expression.slice.elts if isinstance(expression.slice, ast.Tuple) else [expression.slice]
            names = [self.full_name(argument, scope) for argument in inside]
            return f"{base}[{', '.join(names)}]" if base and all(names) else ""
        if not isinstance(expression, ast.Name | ast.Attribute):
            return ""
        resolved = self.modules.resolve(expression, scope)
        class_ = _class(resolved)
        if class_ is not None:
            return class_.name
        if isinstance(resolved, Local) and resolved.definition.value is not None:
            value = resolved.definition.value
            return "" if isinstance(value, ast.Call) else self.full_name(value, resolved.scope)
        if isinstance(resolved, External):
            return f"typing.{resolved.name.rpartition('.')[2]}" if resolved.name.startswith(_TYPING) else resolved.name
        return ""

    # -- rows

    def row_fields(self, expression: ast.expr, scope: Scope) -> tuple[str, list[RowField]] | None:
        """The class that rows become and its fields; None for what is not understood."""
        class_ = self.class_of(expression, scope) if isinstance(expression, ast.Name | ast.Attribute) else None
        if class_ is None or not self.is_structured(class_):
            return None
        total = not any(k.arg == "total" for ancestor in self.ancestors(class_) for k in ancestor.node.keywords)
        if self.is_typed_dict(class_) and not total:
            return None
        fields: list[RowField] = []
        for field in self.fields(class_):
            annotation = self.annotation(field.annotation, field.owner.body)
            if annotation.class_var:
                continue
            kinds = self.row_kinds(field.annotation, field.owner.body)
            shown = self._shown(field.annotation, field.owner.body, 0)
            required = not field.has_default and not annotation.not_required
            fields.append(RowField(field.name, shown, frozenset(["any"]) if field.converted else kinds, required))
        return class_.node.name, fields

    def row_kinds(self, expression: ast.expr, scope: Scope, *, depth: int = 0) -> frozenset[Kind]:
        """What a field of a row takes."""
        anything: frozenset[Kind] = frozenset(["any"])
        if depth > _DEEPEST:
            return anything
        match expression:
            case ast.Constant(value=None):
                return _NONE
            case ast.Constant(value=str() as text):
                parsed = _parsed(text)
                return self.row_kinds(parsed, scope, depth=depth + 1) if parsed is not None else anything
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                return self.row_kinds(left, scope, depth=depth + 1) | self.row_kinds(right, scope, depth=depth + 1)
            case ast.Subscript(value=value, slice=inside):
                resolved = self.modules.resolve(value, scope)
                arguments = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                name = resolved.name if isinstance(resolved, External) else ""
                if not name.startswith(_TYPING):
                    return self.row_kinds(value, scope, depth=depth + 1)
                match name.rpartition(".")[2]:
                    case wrapper if wrapper in _WRAPPERS:
                        return self.row_kinds(arguments[0], scope, depth=depth + 1)
                    case "Optional":
                        return self.row_kinds(arguments[0], scope, depth=depth + 1) | _NONE
                    case "Union":
                        return frozenset(k for a in arguments for k in self.row_kinds(a, scope, depth=depth + 1))
                    case "Literal":
                        return frozenset(kind for argument in arguments for kind in _literal_kind(argument))
                    case _:
                        return self.row_kinds(value, scope, depth=depth + 1)
            case ast.Name() | ast.Attribute():
                resolved = self.modules.resolve(expression, scope)
                if isinstance(resolved, External):
                    kind = _ROW_KINDS.get(resolved.name)
                    return frozenset([kind]) if kind is not None else anything
                class_ = _class(resolved)
                if class_ is not None:
                    return frozenset(["json"]) if self.is_typed_dict(class_) else anything
                if isinstance(resolved, Local) and resolved.definition.value is not None:
                    value = resolved.definition.value
                    if isinstance(value, ast.Call):
                        maker = self.modules.resolve(value.func, resolved.scope)
                        if not (
                            isinstance(maker, External) and maker.name.endswith(".NewType") and len(value.args) == 2
                        ):
                            return anything
                        value = value.args[1]
                    return self.row_kinds(value, resolved.scope, depth=depth + 1)
                return anything
            case _:
                return anything


_NONE: Final[frozenset[Kind]] = frozenset(["none"])
_NOT_IN_INIT: Final = ast.Constant(value=None)


def _literal_kind(expression: ast.expr) -> frozenset[Kind]:
    match expression:
        case ast.Constant(value=bool()):
            return frozenset(["bool"])
        case ast.Constant(value=int()):
            return frozenset(["int"])
        case ast.Constant(value=str()):
            return frozenset(["str"])
        case ast.Constant(value=bytes()):
            return frozenset(["bytes"])
        case ast.Constant(value=None):
            return _NONE
        case _:
            return frozenset(["any"])


def _class(resolved: Resolved | None) -> ClassRef | None:
    if isinstance(resolved, Local) and isinstance(resolved.definition.node, ast.ClassDef):
        return ClassRef(resolved.definition.node, resolved.scope)
    return None


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None


def _text(expression: ast.expr) -> str:
    return ast.unparse(expression)


def _arms(expression: ast.expr) -> Iterator[ast.expr]:
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.BitOr):
        yield from _arms(expression.left)
        yield from _arms(expression.right)
    else:
        yield expression


def _is_none(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Constant) and expression.value is None


def _first_line(node: ast.ClassDef) -> int:
    """The line of `class`; decorators stand above it."""
    return node.lineno
