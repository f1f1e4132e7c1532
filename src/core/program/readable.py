"""Types that no value can be read as (`core-handler`): what `req.json(T)`, `parse(T)` and rows would raise.

A type is followed through names, containers, unions and the fields of classes, as far as the program's own texts say
what it is. The words are those of the running program; whether the classes of a union can be told apart is what
`core.validation.structure` says of classes with the same fields.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, Union, cast

import attrs

from core.errors import DeveloperError
from core.errors.mistakes import DEFINES, UNPACKED, unreadable
from core.program.findings import Finding
from core.program.modules import ClassScope, Scope, class_at
from core.program.queries import TYPED
from core.program.reader import arguments_of
from core.program.receivers import REQUEST, STATEMENT, Receivers
from core.program.syntax import finding_at
from core.statements.tokens import words

NOT_READ: Final = words(
    """
    builtins.bytearray builtins.complex builtins.memoryview builtins.range builtins.slice builtins.type
    collections.abc.Callable collections.abc.Collection collections.abc.Generator collections.abc.Iterable
    collections.abc.Iterator datetime.timedelta datetime.timezone datetime.tzinfo fractions.Fraction
    ipaddress.IPv4Address ipaddress.IPv6Address pathlib.Path pathlib.PurePath re.Pattern typing.Callable
    typing.Iterable typing.Iterator zoneinfo.ZoneInfo
    """
)
"""Classes of Python that no JSON is read as: `tests/program/test_readable.py` asks `core.validation` for each."""
_CONTAINERS: Final = words(
    """
    builtins.list builtins.dict builtins.set builtins.frozenset builtins.tuple typing.List typing.Dict typing.Set
    typing.FrozenSet typing.Tuple typing.Sequence typing.MutableSequence typing.Mapping collections.abc.Sequence
    collections.abc.MutableSequence collections.abc.Mapping collections.abc.MutableMapping collections.abc.Set
    collections.deque
    """
)
_PLAIN: Final = words(
    "typing.Generic typing.Protocol typing_extensions.Generic typing_extensions.Protocol builtins.object abc.ABC"
)
_OWNERS: Final = {"json": (REQUEST, 0), "get_json": ("KVNamespace", 1), **dict.fromkeys(TYPED, (STATEMENT, 0))}
"""The methods that are given a type to read: the kind of their object, and the number of arguments before the type."""
READS: Final = {*_OWNERS, "cursor_of", "parse"}
"""The methods that are given a type to read."""


def read_problem(receivers: Receivers, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """The type that a call reads, where no value can be read as it."""
    type_ = _type_read(receivers, call, scope)
    message = _Types(receivers).problem(type_, scope) if type_ is not None else None
    if type_ is not None and message is not None:
        yield finding_at(type_, scope, "core-handler", message)


def _type_read(receivers: Receivers, call: ast.Call, scope: Scope) -> ast.expr | None:
    """The type that is given to a method that reads values."""
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr="parse"), args=[type_]):
            owner, scope = receivers.modules.value(owner, scope)
            match owner:
                case (
                    ast.Attribute(value=request, attr="params" | "query")
                    | ast.Await(value=ast.Call(func=ast.Attribute(value=request, attr="form")))
                ):
                    is_read = receivers.kind(request, scope) == REQUEST
                case _:
                    is_read = False
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[*keys, type_]) if name in _OWNERS:
            is_read = (receivers.kind(owner, scope), len(keys)) == _OWNERS[name]
        case ast.Call(func=ast.Name() | ast.Attribute(attr="cursor_of") as func, args=[_, type_]):
            is_read = receivers.modules.outside(func, scope) in ("core.cursor_of", "core.pagination.cursor_of")
        case _:
            return None
    return type_ if is_read else None


class _Types:
    """One look at a type. Nothing is said of what is not understood."""

    def __init__(self, receivers: Receivers) -> None:
        self.reader = receivers.reader
        self.seen: set[ClassScope | ast.expr] = set()
        """The classes and containers so far: each may have itself in it."""

    def problem(self, expression: ast.expr, scope: Scope) -> str | None:
        """The reason that nothing can be read as a type; None where something can, or it is unknown."""
        members = list(self.reader.members(expression, scope))
        found = next(filter(None, (self._member(member, inner) for member, inner in members)), None)
        return found or (self._alike(members) if len(members) > 1 else None)

    def _member(self, expression: ast.expr, scope: Scope) -> str | None:
        name = self.reader.modules.outside(expression, scope)
        arguments = arguments_of(expression) if isinstance(expression, ast.Subscript) else []
        if name in NOT_READ:
            return unreadable(name.rpartition(".")[2])
        if name in ("builtins.tuple", "typing.Tuple") and any(self._is_unpacked(part, scope) for part in arguments):
            return UNPACKED
        if name in _CONTAINERS:
            if expression in self.seen:
                return None
            self.seen.add(expression)
            return next(filter(None, (self.problem(argument, scope) for argument in arguments)), None)
        class_ = self._class_of(expression, scope)
        return self._class(class_) if class_ is not None else None

    def _is_unpacked(self, part: ast.expr, scope: Scope) -> bool:
        inner = part.value if isinstance(part, ast.Subscript) else part
        return isinstance(part, ast.Starred) or self.reader.form(inner, scope) == "Unpack"

    def _class_of(self, expression: ast.expr, scope: Scope) -> ClassScope | None:
        base = expression.value if isinstance(expression, ast.Subscript) else expression
        return class_at(self.reader.modules.resolve(base, scope))

    def _class(self, class_: ClassScope) -> str | None:
        if "pydantic.BaseModel" in self.reader.outside(class_):
            return unreadable(class_.node.name)
        if class_ in self.seen or not self.reader.is_whole(class_):
            return None
        self.seen.add(class_)
        if self.reader.is_structured(class_):
            fields = (field for field in self.reader.fields(class_) if not field.converted)
            return next(filter(None, (self.problem(field.annotation, field.owner) for field in fields)), None)
        ancestors = self.reader.ancestors(class_)
        made_otherwise = any(each.node.decorator_list or each.node.keywords for each in ancestors)
        return None if made_otherwise or self.reader.outside(class_) - _PLAIN else unreadable(class_.node.name)

    def _alike(self, members: Sequence[tuple[ast.expr, Scope]]) -> str | None:
        """The reason that the classes of a union cannot be told apart."""
        classes = [class_ for member in members if (class_ := self._class_of(*member)) is not None]
        made = [self._made(c) for c in classes if self.reader.is_structured(c) and not self.reader.is_typed_dict(c)]
        if len(made) < 2 or None in made:
            return None
        from core.validation.structure import hook_of

        try:
            hook_of(cast("Any", Union)[tuple(made)])
        except DeveloperError as error:
            return str(error)
        return None

    def _made(self, class_: ClassScope) -> type | None:
        """A class with the fields of one of the program, by which it is told from others; None if they are unsure."""
        if not self.reader.is_whole(class_) or not all(map(self._is_plain, self.reader.ancestors(class_))):
            return None
        fields: dict[str, object] = {}
        for field in self.reader.fields(class_):
            type_ = self.reader.annotation(field.annotation, field.owner)
            if type_.shown.startswith("Literal") and type_.kind != "Literal":
                return None  # of an enum's members
            if not type_.class_var:
                values = (*type_.literals, *([None] if type_.optional else []))
                made = cast("Any", Literal)[values] if type_.kind == "Literal" else object
                fields[field.alias] = attrs.field(type=made, default=None if field.has_default else attrs.NOTHING)
        return attrs.make_class(class_.node.name, fields, kw_only=True)

    def _is_plain(self, class_: ClassScope) -> bool:
        """Return True for a class made by attrs or as a dataclass, of its annotations alone."""
        makers = [self.reader.maker(decorator, class_.parent) for decorator in class_.node.decorator_list]
        options = {k.arg for d in class_.node.decorator_list if isinstance(d, ast.Call) for k in d.keywords}
        return (
            set(makers) <= DEFINES | {"dataclasses.dataclass"}
            and bool(makers)
            and options <= {"kw_only", "slots", "frozen", "eq", "order"}
        )
