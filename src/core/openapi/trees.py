"""mypy's trees as they are written: parts of a node, constants, arguments, texts, and what a body says of its names.

Nothing is followed here: what a name stands for depends on the call that is read (`frames.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mypy import nodes
from mypy.constant_fold import constant_fold_expr
from mypy.nodes import (
    ARG_POS,
    AssignmentExpr,
    AssignmentStmt,
    Block,
    CallExpr,
    ClassDef,
    Decorator,
    DelStmt,
    DictionaryComprehension,
    Expression,
    ExpressionStmt,
    ForStmt,
    FuncDef,
    GeneratorExpr,
    GlobalDecl,
    IndexExpr,
    IntExpr,
    LambdaExpr,
    ListExpr,
    MatchStmt,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    NonlocalDecl,
    OperatorAssignmentStmt,
    OverloadedFuncDef,
    RefExpr,
    ReturnStmt,
    StarExpr,
    StrExpr,
    TupleExpr,
    TypeApplication,
    TypeInfo,
    WithStmt,
    YieldExpr,
)
from mypy.patterns import AsPattern, ClassPattern, MappingPattern, OrPattern, Pattern, SequencePattern, StarredPattern

_CHANGES: Final = frozenset(
    ["update", "pop", "setdefault", "clear", "popitem", "extend", "insert", "add", "appendleft"]
)
"""The methods after which a dict, a list or a set has other items than those that were written out."""

_ORDER: Final = (
    "original_decorators decorators keywords arguments initializer func generator left_expr key value sequences condlists "
    "subject guards bodies cond if_expr else_expr callee args operands left right base begin_index end_index stride rvalue "
    "lvalues lvalue expr from_expr msg index target items body handlers else_body finally_body defs"
)
"""The attributes of nodes that have expressions, statements and blocks, in the order in which they run."""
_PARTS: Final[Mapping[type[Node], Sequence[str]]] = {
    kind: [name for name in _ORDER.split() if hasattr(kind, name)]
    for kind in vars(nodes).values()
    if isinstance(kind, type) and issubclass(kind, Node)
}
"""The same of each kind of node.

mypy's own traverser would say the same, but a compiled class of it has no subclasses that are not.
"""


def parts_of(node: Node) -> Iterator[Node]:
    """The expressions, statements and blocks that a node is made of; of a lambda, what it returns."""
    if isinstance(node, LambdaExpr):
        yield node.expr()
    else:
        for name in _PARTS.get(type(node), ()):
            yield from _nodes(getattr(node, name))


def _nodes(value: Any) -> Iterator[Node]:
    """The nodes of an attribute: one, or several in a list of any depth, or none."""
    if isinstance(value, Node):
        yield value
    elif value.__class__ in (list, tuple, dict):
        for each in value.values() if value.__class__ is dict else value:
            yield from _nodes(each)


def within(node: Node) -> Iterator[Node]:
    """Everything inside a node; what is in functions and classes there is theirs."""
    for part in parts_of(node):
        if not isinstance(part, FuncDef | Decorator | OverloadedFuncDef | ClassDef):
            yield part
            yield from within(part)


def everything(node: Node) -> Iterator[Node]:
    """A node and all inside it, functions and classes with their decorators and defaults too."""
    yield node
    for part in parts_of(node):
        yield from everything(part)


class Notes:
    """What the text of one function, or of a module, says of its names."""

    def __init__(self, written: FuncDef | LambdaExpr | Block | MypyFile | None) -> None:
        self.assigned: dict[Node, list[Expression | None]] = {}
        """What each name is given; None is what cannot be told. A name that gets a part has an expression that nobody
        wrote (`is_made_up`): `*through` in a loop, `f()[1]` of what is unpacked, `manager.__enter__()`.
        """
        self.items: dict[Node, list[tuple[str, Expression, bool] | None]] = {}
        """The items put into a dict after it was made: the key, its value and whether it always is; None for items that
        cannot be told.
        """
        self.appended: dict[Node, list[Expression]] = {}
        """What is appended to a list after it was made."""
        self.shared_with: dict[Node, list[Expression]] = {}
        """The other names of a value or of what is in it, and the calls that it is handed to: each may change it."""
        self.returned: list[Expression] = []
        self.yielded: list[Expression] = []
        self.attributes: dict[str, list[Expression]] = {}
        """The values of `self.name`."""
        self.sets: set[str] = set()
        """The attributes of anything that it gives values."""
        self.filled: set[str] = set()
        """The attributes of anything that it puts items into."""
        self.shared: set[str] = set()
        """The variables around it that it declares `global` or `nonlocal`."""
        if written is not None:
            self._collect(written.body if isinstance(written, FuncDef | LambdaExpr) else written, always=True)

    def only(self, node: Node) -> Expression | None:
        """The one value that a name is given, as it is written."""
        given = self.assigned.get(node, ())
        return given[0] if len(given) == 1 and given[0] is not None and not is_made_up(given[0]) else None

    def through(self, name: Expression) -> Expression | None:
        """What the loop runs through that gives a name its values: the dict, of a name for its keys."""
        given = self.assigned.get(name.node, ()) if isinstance(name, NameExpr) and name.node is not None else ()
        last = given[-1] if given else None
        return last.expr if isinstance(last, StarExpr) else None

    def _collect(self, node: Node, *, always: bool) -> None:
        match node:
            case FuncDef() | Decorator() | OverloadedFuncDef() | ClassDef():
                return
            case AssignmentStmt():
                for target in node.lvalues:
                    self._target(target, node.rvalue, always)
            case OperatorAssignmentStmt():
                self._target(node.lvalue, None, always)
            case DelStmt():
                self._target(node.expr, None, always)
            case ForStmt():
                self._target(node.index, StarExpr(node.expr), always)
            case GeneratorExpr() | DictionaryComprehension():
                for index, through in zip(node.indices, node.sequences, strict=True):
                    self._target(index, StarExpr(through), always)
            case WithStmt():
                for manager, given in zip(node.expr, node.target, strict=True):
                    if given is not None:
                        self._target(given, CallExpr(MemberExpr(manager, CONTEXT[1]), [], [], []), always)
            case ReturnStmt() if node.expr is not None:
                self.returned.append(node.expr)
            case YieldExpr() if node.expr is not None:
                self.yielded.append(node.expr)
            case GlobalDecl() | NonlocalDecl():
                self.shared.update(node.names)
            case CallExpr(callee=NameExpr(fullname="builtins.setattr"), args=[_, StrExpr(value=name), *_]):
                self.sets.add(name)
            case MatchStmt():
                for pattern in node.patterns:
                    self._capture(node.subject, pattern)
            case CallExpr(callee=MemberExpr(expr=NameExpr(node=named), name="append"), args=[value]) if (
                named is not None
            ):
                self.appended.setdefault(named, []).append(value)
            case CallExpr(callee=MemberExpr(expr=changed, name=method)) if method in _CHANGES or method == "append":
                self._changes(changed)
            case AssignmentExpr():
                self._target(node.target, node.value, always)
            case _:
                pass
        if isinstance(node, CallExpr):
            for given in node.args:
                self._share(given, node)
        inside = always and isinstance(node, Block | WithStmt | MypyFile)
        for part in parts_of(node):
            self._collect(part, always=inside)

    def _capture(self, subject: Expression | None, pattern: Pattern) -> None:
        """Note what `case CoreError(status=status)` and `case {"id": id}` give names to; None is what is not known."""
        match pattern:
            case AsPattern():
                if pattern.name is not None:
                    self._target(pattern.name, subject, always=False)
                if pattern.pattern is not None:
                    self._capture(subject, pattern.pattern)
            case ClassPattern():
                for attribute, inner in zip(pattern.keyword_keys, pattern.keyword_values, strict=True):
                    self._capture(MemberExpr(subject, attribute) if subject is not None else None, inner)
                for inner in pattern.positionals:
                    self._capture(None, inner)
            case OrPattern() | SequencePattern():
                for inner in pattern.patterns:
                    self._capture(subject if isinstance(pattern, OrPattern) else None, inner)
            case MappingPattern():
                for key, inner in zip(pattern.keys, pattern.values, strict=True):
                    self._capture(IndexExpr(subject, key) if subject is not None else None, inner)
            case StarredPattern() if pattern.capture is not None:
                self._target(pattern.capture, None, always=False)
            case _:
                pass

    def _share(self, value: Expression, other: Expression) -> None:
        """A value, or what is in it, has another name, or is handed to a call."""
        node = owner_of(value)
        if node is not None:
            self.shared_with.setdefault(node, []).append(other)

    def _changes(self, whole: Expression) -> None:
        """Something in a dict is changed, or in what is in that."""
        while isinstance(whole, IndexExpr):
            whole = whole.base
        if isinstance(whole, MemberExpr):
            self.filled.add(whole.name)
        if isinstance(whole, NameExpr) and whole.node is not None:
            self.items.setdefault(whole.node, []).append(None)

    def _target(self, target: Expression, value: Expression | None, always: bool) -> None:
        if value is not None:
            self._share(value, target)
        written = value if value is not None and not is_made_up(value) else None
        match target:
            case NameExpr(node=node) if node is not None:
                self.assigned.setdefault(node, []).append(value)
            case MemberExpr(name=name):
                self.sets.add(name)
                if written is not None and isinstance(target.expr, NameExpr) and target.expr.name == "self":
                    self.attributes.setdefault(name, []).append(written)
            case IndexExpr(base=NameExpr(node=node), index=key) if node is not None:
                word = constant_fold_expr(key, "")
                known = (word, written, always) if isinstance(word, str) and written is not None else None
                self.items.setdefault(node, []).append(known)
            case IndexExpr():
                self._changes(target.base)
            case TupleExpr(items=parts) | ListExpr(items=parts):
                values: list[Expression | None] = [None] * len(parts)
                match value:
                    case TupleExpr(items=items) if len(items) == len(parts):
                        values = [None if isinstance(each, StarExpr) else each for each in items]
                    case Expression() if not any(isinstance(part, StarExpr) for part in parts):
                        values = [IndexExpr(value, IntExpr(place)) for place in range(len(parts))]
                        match value:
                            case StarExpr(expr=CallExpr(callee=MemberExpr(name="items", expr=whole))):
                                values[0] = StarExpr(whole)
                            case _:
                                pass
                    case _:
                        pass
                for part, given in zip(parts, values, strict=True):
                    self._target(part, given, always)
            case StarExpr():
                self._target(target.expr, None, always)
            case _:
                pass


def is_made_up(expression: Expression) -> bool:
    """True for an expression that nobody wrote: see `Notes.assigned`."""
    return expression.line < 0


def owner_of(value: Expression) -> Node | None:
    """The name that a value has, or the value that it was taken out of."""
    match value:
        case IndexExpr(base=inner) | StarExpr(expr=inner) | CallExpr(callee=MemberExpr(expr=inner)):
            return owner_of(inner)
        case NameExpr(node=node):
            return node
        case _:
            return None


def bare(expression: Expression) -> Expression:
    """A class without its arguments: `Page` of `Page[User]`."""
    applied = expression.analyzed if isinstance(expression, IndexExpr) else None
    return applied.expr if isinstance(applied, TypeApplication) else expression


def constant(expression: Expression) -> tuple[object] | None:
    """The JSON value that an expression writes out, alone in a tuple; None for any other expression."""
    if isinstance(expression, NameExpr) and expression.fullname == "builtins.None":
        return (None,)
    value = constant_fold_expr(expression, "")
    return (value,) if isinstance(value, str | int | float) else None


def argument(call: CallExpr, position: int, name: str) -> Expression | None:
    """One argument of a call, given by its position or by its name."""
    for value, given in zip(call.args, call.arg_names, strict=True):
        if given == name:
            return value
    if position < len(call.args) and all(kind == ARG_POS for kind in call.arg_kinds[: position + 1]):
        return call.args[position]
    return None


def called(call: CallExpr) -> str:
    """The full name of what is called: of a function, a class, or a method of a class; "" for anything else."""
    callee = call.callee
    if isinstance(callee, MemberExpr) and isinstance(callee.expr, RefExpr) and isinstance(callee.expr.node, TypeInfo):
        return f"{callee.expr.fullname}.{callee.name}"
    return callee.fullname if isinstance(callee, RefExpr) else ""


def docstring(body: Iterable[object]) -> str | None:
    """The text that a body begins with."""
    first = next(iter(body), None)
    return first.expr.value if isinstance(first, ExpressionStmt) and isinstance(first.expr, StrExpr) else None


def filled_elsewhere(functions: Iterable[FuncDef], notes: Sequence[Notes]) -> frozenset[Node | str]:
    """The variables of what gets items under another name, or in one of the `functions` that it is handed to, and the
    names of attributes that get items. Which function a call goes to is told by its name alone.
    """
    named: dict[str, list[FuncDef]] = {}
    for function in functions:
        name = function.info.name if function.info and function.name == "__init__" else function.name
        named.setdefault(name, []).append(function)
    filled = {node for each in notes for node in (*each.items, *each.appended)}
    attributes = {name for each in notes for name in each.filled}
    others: dict[Node, set[Node]] = {}
    for each in notes:
        for name in each.attributes.keys() & attributes:
            filled.update(node for value in each.attributes[name] if (node := owner_of(value)) is not None)
        for node, shared in each.shared_with.items():
            for other in shared:
                others.setdefault(node, set()).update(_names_of(node, other, named))
    found: set[Node] = set()
    while more := {node for node in others.keys() - found if others[node] & (filled | found)}:
        found |= more
    return frozenset[Node | str](found | attributes)


def _names_of(node: Node, other: Expression, functions: Mapping[str, Sequence[FuncDef]]) -> Iterator[Node]:
    """What a value is called where it is shared: another variable, or the parameter of a function that is called."""
    if isinstance(other, NameExpr) and other.node is not None:
        yield other.node
    if not isinstance(other, CallExpr):
        return
    for function in functions.get(getattr(other.callee, "name", ""), ()):
        names = [argument.variable for argument in function.arguments]
        own = names[1:] if function.info and not function.is_static else names
        for place, (value, name) in enumerate(zip(other.args, other.arg_names, strict=True)):
            if owner_of(value) is node:
                yield from (each for at, each in enumerate(own) if each.name == name or (name is None and at == place))


CONTEXT: Final = ("__aenter__", "__enter__", "__aexit__", "__exit__")
"""The methods of a context manager."""
MAKERS: Final = ("__init__", "__attrs_post_init__", "__post_init__")
"""The methods that make an object."""


def changed(functions: Iterable[tuple[FuncDef, Notes]]) -> frozenset[Node | str]:
    """The variables of modules and functions that other functions give values or items, and the names of attributes
    that objects are given after they were made: what they are when the program is read says nothing of later.
    """
    found: set[Node | str] = set()
    for node, notes in functions:
        found |= notes.sets - (notes.attributes.keys() if node.name in MAKERS else set())
        found.update(each for each in notes.assigned if getattr(each, "name", "") in notes.shared)
        own = {*notes.assigned, *(argument.variable for argument in node.arguments)}
        found.update(each for each in notes.items if each not in own)
    return frozenset(found)
