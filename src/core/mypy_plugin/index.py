"""The statements of one module, found once: assignments to names, and registrations.

mypy's hooks see one expression at a time. That a name was assigned once and its value, that a function is decorated by
`app.get("/users/:id")`, that `logger()` came before: for these the statements of the module are walked, in order.
Only statements; mypy's own visitor cannot be derived from in interpreted code (python/mypy#19456). One file,
since there is a method for each kind of statement and one for each question of `core.analysis.front_end`.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from mypy.constant_fold import constant_fold_expr
from mypy.nodes import (
    ARG_POS,
    ARG_STAR,
    ARG_STAR2,
    AssignmentStmt,
    AwaitExpr,
    Block,
    CallExpr,
    ClassDef,
    Decorator,
    Expression,
    ExpressionStmt,
    ForStmt,
    FuncDef,
    IfStmt,
    ListExpr,
    MatchStmt,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    OperatorAssignmentStmt,
    OpExpr,
    OverloadedFuncDef,
    RefExpr,
    ReturnStmt,
    StarExpr,
    StrExpr,
    TryStmt,
    TupleExpr,
    TypeInfo,
    Var,
    WhileStmt,
    WithStmt,
)
from mypy.patterns import (
    AsPattern,
    ClassPattern,
    MappingPattern,
    OrPattern,
    Pattern,
    SequencePattern,
    StarredPattern,
)
from mypy.types import CallableType, Type, get_proper_type

from core.analysis.front_end import REGISTERS, FrontEnd, MethodCall, Names, Registration
from core.analysis.registrations import misplaced
from core.analysis.unreachable import unreachable
from core.mypy_plugin.types import instance_of, literal_names, required_arguments
from core.sql.statement import Statement

__all__ = ["Index", "index_of"]

_WALRUS: Final = re.compile(rb"(\w+)\s*:=")
_ASKS = frozenset(["all", "first", "one"])


class Index:
    """The statements of a module, walked once."""

    def __init__(self, tree: MypyFile) -> None:
        self.module: str = tree.fullname
        self.file: str = tree.path
        self._walrus: dict[str, list[int]] | None = None
        self._here: tuple[int, int] | None = None
        self._extents: dict[Node, tuple[int, int] | None] = {}
        """The lines of the function that each name is assigned in, None for those of the module."""
        self.defs: Sequence[Node] = tree.defs
        self.registrations: list[Registration[Node]] = []
        self.functions: dict[Node, FuncDef] = {}
        """Functions by the variable of their first parameter, methods by that of the one after `self`."""
        self._owner: TypeInfo | None = None
        self._selves: dict[Node, TypeInfo] = {}
        """The classes of methods, by their first parameter."""
        self.is_derived: Callable[[str], bool] = lambda name: True
        """Returns True for the name of a class that others derive from, or may."""
        self._kept: dict[tuple[TypeInfo, str], list[Expression | None]] = {}
        """The values that methods give attributes of their object; None for all but those of `__init__`."""
        self._making: bool = False
        self.prepares: list[CallExpr] = []
        """Statements of SQL that were not read yet, as far as they stand in the open."""
        self.asked: list[CallExpr] = []
        """Calls that may ask such a statement for its rows, likewise."""
        self.settled: set[CallExpr] = set()
        """Those of them in which nothing is wrong."""
        self.statements: dict[Node, tuple[str, Statement] | None] = {}
        """The facts about the SQL given to a `prepare`, and the name of its database."""
        self.types: dict[Node, Type] = {}
        """The types of a receiver and of its handlers, while a registration of theirs is checked."""
        self.alone: set[Expression] = set()
        """The expressions that are a statement each."""
        self._assigned: dict[Node, Expression | None] = {}
        self._routes: dict[Node, list[Registration[Node]]] = {}
        self._values: set[Expression] = set()
        self._order: dict[Node, str] | None = None
        self._unreached: dict[Node, str] | None = None
        self._again: set[Node] = set()
        """The names that are given a value more than once."""
        self.classes: set[str] = set()
        """The bare names that stand among the bases of a class here."""
        self._walk(tree.defs, ())
        self._by_call: dict[Node, Registration[Node]] = {
            registration.call: registration for registration in self.registrations
        }
        for registration in self.registrations:
            for function in self._functions_of(registration):
                self._routes.setdefault(function, []).append(registration)
        self._values.update(value for value in self._assigned.values() if value is not None)

    # -- walking

    def _walk(self, body: Sequence[Node], where: tuple[int, ...]) -> None:
        for number, statement in enumerate(body):
            read = _READERS.get(type(statement))
            if read is not None:
                read(self, statement, where, number)

    def _expression(self, statement: ExpressionStmt, where: tuple[int, ...], number: int) -> None:
        self.alone.add(statement.expr)
        self._register(statement.expr, where, number)

    def _assignment(self, statement: AssignmentStmt, where: tuple[int, ...], number: int) -> None:
        for target in statement.lvalues:
            self._assign(target, statement.rvalue)
        self._register(statement.rvalue, where, number)

    def _function(self, function: FuncDef, where: tuple[int, ...], number: int) -> None:
        given = function.arguments
        if self._owner is not None and given and not function.is_static:
            self._selves[given[0].variable] = self._owner
            given = given[1:]
        if given:
            self.functions[given[0].variable] = function
        for argument in function.arguments:
            self._assigned[argument.variable] = None  # a caller has given it a value already
        around, owner, making = self._here, self._owner, self._making
        self._making = owner is not None and function.name == "__init__"
        self._here, self._owner = (function.line, function.end_line or sys.maxsize), None
        self._walk(function.body.body, (*where, number, 0))
        self._here, self._owner, self._making = around, owner, making

    def _decorated(self, statement: Decorator, where: tuple[int, ...], number: int) -> None:
        for decorator in statement.original_decorators:
            self._register(decorator, where, number, statement.func)
        self._function(statement.func, where, number)

    def _overloaded(self, statement: OverloadedFuncDef, where: tuple[int, ...], number: int) -> None:
        for item in statement.items:
            _READERS[type(item)](self, item, where, number)

    def _return(self, statement: ReturnStmt, where: tuple[int, ...], number: int) -> None:
        if statement.expr is not None:
            self._register(statement.expr, where, number)

    def _class(self, statement: ClassDef, where: tuple[int, ...], number: int) -> None:
        for base in statement.base_type_exprs:
            if isinstance(base, RefExpr):
                self.classes.add(base.fullname)
        owner, self._owner = self._owner, statement.info
        self._walk(statement.defs.body, (*where, number, 0))
        self._owner = owner

    def _operator(self, statement: OperatorAssignmentStmt, where: tuple[int, ...], number: int) -> None:
        self._assign(statement.lvalue, None)

    def _for(self, statement: ForStmt, where: tuple[int, ...], number: int) -> None:
        self._assign(statement.index, None)
        self._blocks([statement.body, statement.else_body], where, number)

    def _while(self, statement: WhileStmt, where: tuple[int, ...], number: int) -> None:
        self._blocks([statement.body, statement.else_body], where, number)

    def _if(self, statement: IfStmt, where: tuple[int, ...], number: int) -> None:
        self._blocks([*statement.body, statement.else_body], where, number)

    def _with(self, statement: WithStmt, where: tuple[int, ...], number: int) -> None:
        for opened in statement.target:
            if opened is not None:
                self._assign(opened, None)
        self._walk(statement.body.body, (*where, number))

    def _try(self, statement: TryStmt, where: tuple[int, ...], number: int) -> None:
        # The body of a try runs first, and the code after the statement sees it.
        for name in statement.vars:
            if name is not None:
                self._assign(name, None)
        blocks = [statement.body, *statement.handlers, statement.else_body, statement.finally_body]
        self._blocks(blocks, where, number)

    def _match(self, statement: MatchStmt, where: tuple[int, ...], number: int) -> None:
        for pattern in statement.patterns:
            self._capture(pattern)
        self._blocks(statement.bodies, where, number)

    def _capture(self, pattern: Pattern | None) -> None:
        """The names that a pattern gives values."""
        match pattern:
            case AsPattern():
                self._capture(pattern.pattern)
                names = [pattern.name]
                inner: Sequence[Pattern] = ()
            case OrPattern() | SequencePattern():
                names, inner = [], pattern.patterns
            case StarredPattern():
                names, inner = [pattern.capture], ()
            case MappingPattern():
                names, inner = [pattern.rest], pattern.values
            case ClassPattern():
                names, inner = [], [*pattern.positionals, *pattern.keyword_values]
            case _:
                return
        for name in names:
            if name is not None:
                self._assign(name, None)
        for one in inner:
            self._capture(one)

    def _block(self, statement: Block, where: tuple[int, ...], number: int) -> None:
        self._walk(statement.body, (*where, number))

    def _blocks(self, blocks: Sequence[Block | None], where: tuple[int, ...], number: int) -> None:
        for at, block in enumerate(blocks):
            if block is not None:
                self._walk(block.body, (*where, number, -1 - at))

    def _assign(self, target: Expression, value: Expression | None) -> None:
        if isinstance(target, NameExpr) and target.node is not None:
            self._extents.setdefault(target.node, self._here)
            if target.node in self._assigned:
                self._again.add(target.node)
                value = None
            self._assigned[target.node] = value
        elif isinstance(target, MemberExpr) and isinstance(target.expr, NameExpr):
            owner = self._selves.get(target.expr.node) if target.expr.node is not None else None
            if owner is not None:
                self._kept.setdefault((owner, target.name), []).append(value if self._making else None)
        elif isinstance(target, TupleExpr | ListExpr):
            for item in target.items:
                self._assign(item, None)
        elif isinstance(target, StarExpr):
            self._assign(target.expr, None)

    def _register(
        self, expression: Expression, where: tuple[int, ...], number: int, decorated: FuncDef | None = None
    ) -> None:
        if isinstance(expression, AwaitExpr):
            expression = expression.expr
        if not isinstance(expression, CallExpr):
            return
        callee = expression.callee
        if isinstance(callee, MemberExpr):
            name = callee.name
            if name in _ASKS:
                self.asked.append(expression)
            if name in REGISTERS:
                place = (*where, number)
                starred = ARG_STAR in expression.arg_kinds or ARG_STAR2 in expression.arg_kinds
                router = self.router_of(callee.expr)
                self.registrations.append(
                    Registration(expression, router, name, place, expression.args, starred, decorated)
                )
            if name == "prepare" or isinstance(callee.expr, CallExpr):
                self._prepare(expression)
        elif isinstance(callee, CallExpr) and len(expression.args) == 1:
            # app.get("/x")(handler)
            handler = expression.args[0]
            function = self.function(handler)
            self._register(callee, where, number, function)

    def _prepare(self, call: Expression) -> None:
        """Keep the `prepare("…")` that a chain of calls begins with."""
        while isinstance(call, CallExpr) and isinstance(call.callee, MemberExpr):
            if call.callee.name == "prepare":
                self.prepares.append(call)
                return
            call = call.callee.expr

    def _functions_of(self, registration: Registration[Node]) -> Iterator[Node]:
        if registration.decorated is not None:
            yield registration.decorated
        if registration.is_route:
            for handler in registration.handlers:
                function = self.function(handler)
                if function is not None:
                    yield function

    # -- asking

    def value_of(self, expression: Node, /) -> Expression | None:
        """The value that a name was assigned, if it was assigned exactly once here."""
        if isinstance(expression, NameExpr) and expression.node is not None:
            value = self._assigned.get(expression.node)
            return None if value is None or self._is_in_walrus(expression.name, expression.node) else value
        return self._of_self(expression) if isinstance(expression, MemberExpr) else None

    def _of_self(self, expression: MemberExpr) -> Expression | None:
        """The value of `self.name` in every object of a class of this module: given once, in its body or in
        `__init__`.
        """
        own = expression.expr.node if isinstance(expression.expr, NameExpr) else None
        info = self._selves.get(own) if own is not None else None
        if info is None or self.is_derived(info.name):
            return None
        name = expression.name
        kept = [value for base in info.mro for value in self._kept.get((base, name), ())]
        bodies: list[Node] = []
        for base in info.mro:
            symbol = base.names.get(name)
            if symbol is not None and (base.module_name != self.module or not isinstance(symbol.node, Var)):
                return None
            # A value of a field is a default, which an object may be made without.
            if symbol is not None and isinstance(self._assigned.get(symbol.node or base), Expression):
                if base.metadata and isinstance(symbol.node, Var) and not symbol.node.is_classvar:
                    return None
                bodies.append(symbol.node or base)
        if kept:
            return kept[0] if len(kept) == 1 and not bodies else None
        return self._assigned[bodies[0]] if bodies and bodies[0] not in self._again else None

    def _is_in_walrus(self, name: str, node: Node) -> bool:
        """Return True if a name is before a `:=` where it is known: told by the source, since expressions are not
        walked.
        """
        if self._walrus is None:
            self._walrus = {}
            try:
                with open(self.file, "rb") as file:
                    text = file.read()
            except OSError:
                text = b""
            lines = text.splitlines() if b":=" in text else []
            for number, line in enumerate(lines, 1):
                for found in _WALRUS.findall(line):
                    self._walrus.setdefault(found.decode("utf-8", "replace"), []).append(number)
        if name not in self._walrus:
            return False
        first, last = self._extents.get(node) or (1, sys.maxsize)
        return any(first <= number <= last for number in self._walrus[name])

    def assigned_once(self, value: Expression) -> bool:
        """Return True if an expression is the value of some name, and nothing else."""
        return value in self._values

    def string_of(self, expression: Node, /) -> str | None:
        """The string that an expression is: a literal, a sum of literals, a Final name."""
        if isinstance(expression, StrExpr):
            return expression.value
        if isinstance(expression, RefExpr) and isinstance(expression.node, Var) and expression.node.is_final:
            final = expression.node.final_value
            return final if isinstance(final, str) else None
        if isinstance(expression, OpExpr) and expression.op == "+":
            left, right = self.string_of(expression.left), self.string_of(expression.right)
            return left + right if left is not None and right is not None else None
        if isinstance(expression, CallExpr):
            return self._formatted(expression)
        if isinstance(expression, MemberExpr):
            kept = self._of_self(expression)
            return self._constant(expression) if kept is None else self.string_of(kept)
        folded = constant_fold_expr(expression, self.module) if isinstance(expression, Expression) else None
        if isinstance(folded, str):
            return folded
        value = self.value_of(expression)
        return self.string_of(value) if value is not None and not isinstance(value, NameExpr) else None

    def _constant(self, expression: MemberExpr) -> str | None:
        """`Queries.ALL`: the value that the body of a class here assigns to a name, once; and, of any module, the text
        of one that is Final, of `self` too.
        """
        owner = expression.expr.node if isinstance(expression.expr, RefExpr) else None
        own = self._selves.get(owner) if owner is not None else None
        info = own or (owner if isinstance(owner, TypeInfo) else None)
        base = next((each for each in info.mro if expression.name in each.names), None) if info is not None else None
        node = base.names[expression.name].node if base is not None else None
        if isinstance(node, Var) and base is not None and isinstance(node.final_value, str):
            return node.final_value if node.is_classvar or not (own and base.metadata) else None
        value = self._assigned.get(node) if node is not None and own is None and base is info else None
        return self.string_of(value) if value is not None and not isinstance(value, RefExpr) else None

    def _formatted(self, call: CallExpr) -> str | None:
        """An f-string, which mypy reads as `"".join(["…", "{:{}}".format(value, "")])`, of strings that are known."""
        callee = call.callee
        if not isinstance(callee, MemberExpr) or not isinstance(callee.expr, StrExpr):
            return None
        match callee.name, callee.expr.value, call.args:
            case "join", "", [ListExpr(items=items)]:
                parts = [self.string_of(item) for item in items]
                return None if None in parts else "".join(part or "" for part in parts)
            case "format", "{:{}}", [value, StrExpr(value="")]:
                return self.string_of(value)
            case _:
                return None

    def function(self, expression: Node) -> FuncDef | None:
        """The function of this module that a name means, or the method of an object of a class here."""
        node = expression.node if isinstance(expression, NameExpr) else None
        if isinstance(expression, MemberExpr) and isinstance(expression.expr, NameExpr):
            made = self.value_of(expression.expr)
            class_: Node | None = self._selves.get(expression.expr.node) if expression.expr.node is not None else None
            if isinstance(made, CallExpr) and isinstance(made.callee, RefExpr):
                class_ = made.callee.node
            symbol = class_.get(expression.name) if isinstance(class_, TypeInfo) else None
            node = symbol.node if symbol is not None else None
        if isinstance(node, Decorator):
            return node.func
        return node if isinstance(node, FuncDef) else None

    def routes(self, function: Node) -> Sequence[Registration[Node]]:
        """The registrations of a function as a handler or middleware of a route, in this module."""
        return self._routes.get(function, ())

    def registration(self, call: CallExpr) -> Registration[Node] | None:
        """The registration that a call is."""
        return self._by_call.get(call)

    @property
    def order(self) -> dict[Node, str]:
        """The calls that register a value which an earlier one has already read, and the messages about them."""
        if self._order is None:
            found = misplaced(self._names, self.registrations)
            self._order = {self.registrations[number].call: message for number, message in found.items()}
        return self._order

    @property
    def unreached(self) -> dict[Node, str]:
        """The calls that register a route which no request reaches, and the messages about them."""
        if self._unreached is None:
            steady = [entry for entry in self.registrations if self._is_steady(entry.router)]
            found = unreachable(self.checked, steady)
            self._unreached = {steady[number].call: message for number, message in found.items()}
        return self._unreached

    def _is_steady(self, router: Hashable) -> bool:
        """Return True if the variable of a router is given a value once, so that all of its registrations are on one
        router.
        """
        return isinstance(router, Var) and router not in self._again

    # -- the interface of `core.analysis.front_end`

    @property
    def checked(self) -> FrontEnd[Node]:
        """This, as the rules about registrations see it."""
        return self

    @property
    def _names(self) -> Names[Node]:
        """This, as the rules see it: some answers here are of a narrower type than `Node`."""
        return self

    def maker_of(self, expression: Node, /) -> str:
        """The full name of the function that a call calls."""
        if isinstance(expression, CallExpr) and isinstance(expression.callee, RefExpr):
            return expression.callee.fullname
        return ""

    def argument_of(self, call: Node, name: str, /, *, first: bool = False) -> Expression | None:
        """The argument of a call that is given by name, or first of all."""
        if first and isinstance(call, CallExpr) and call.arg_kinds[:1] == [ARG_POS]:
            return call.args[0]
        if not isinstance(call, CallExpr) or name not in call.arg_names:
            return None
        return call.args[call.arg_names.index(name)]

    def router_of(self, expression: Node, /) -> Hashable | None:
        """The variable, or the attribute of one, that a router is in."""
        if isinstance(expression, NameExpr) and expression.node is not None:
            view = self._assigned.get(expression.node)
            if (
                isinstance(view, CallExpr)
                and isinstance(view.callee, MemberExpr)
                and view.callee.name == "authenticated"
            ):
                return self.router_of(view.callee.expr)  # the same router, seen behind an authenticator
            return expression.node
        if isinstance(expression, MemberExpr) and (inner := self.router_of(expression.expr)) is not None:
            return inner, expression.name
        return None

    def is_app(self, registration: Registration[Node], /) -> bool:
        """Return True if something is registered on an application."""
        callee = registration.call.callee if isinstance(registration.call, CallExpr) else None
        receiver = callee.expr if isinstance(callee, MemberExpr) else None
        type_ = self.types.get(receiver) if receiver is not None else None
        if type_ is None and isinstance(receiver, RefExpr) and isinstance(receiver.node, Var):
            type_ = receiver.node.type
        return instance_of(type_, "core.app.App") is not None

    def shown(self, node: Node, /) -> str:
        """A handler as messages call it."""
        match node:
            case FuncDef() | NameExpr() | MemberExpr():
                return node.name
            case CallExpr():
                return f"{self.shown(node.callee)}()"
            case _:
                return "the handler"

    def demanded(self, node: Node, /) -> int | None:
        """The number of positional arguments that a handler demands."""
        type_ = self._type_of(node)
        demanded = required_arguments(type_) if type_ is not None else None
        if demanded is not None and isinstance(node, MemberExpr) and node not in self.types:
            function = self.function(node)  # `pages.show`, whose type has `self` in it while its object is not known
            return demanded - 1 if function is not None and not function.is_static else demanded
        return demanded

    def parameters_read(self, node: Node, /) -> Sequence[str]:
        """The names in a handler's `Request[Env, User, Literal["id"]]`."""
        type_ = self._type_of(node)
        handler = get_proper_type(type_) if type_ is not None else None
        if not isinstance(handler, CallableType) or not handler.arg_types:
            return ()
        request = instance_of(handler.arg_types[0], "core.request.Request")
        return (literal_names(request.args[2]) or ()) if request is not None and len(request.args) == 3 else ()

    def _type_of(self, node: Node) -> Type | None:
        if isinstance(node, FuncDef):
            return node.type
        known = self.types.get(node)
        function = self.function(node) if known is None else None
        return function.type if function is not None else known

    def method_call(self, expression: Node, /) -> MethodCall[Node] | None:
        """A call of a method in its parts."""
        if not isinstance(expression, CallExpr) or not isinstance(expression.callee, MemberExpr):
            return None
        counted = expression.arg_kinds.count(ARG_POS) == len(expression.arg_kinds)
        return MethodCall(expression.callee.expr, expression.callee.name, expression.args, counted)

    def items_of(self, expression: Node, /) -> Sequence[Expression]:
        """The items of a list or tuple that is written out."""
        return expression.items if isinstance(expression, ListExpr | TupleExpr) else ()


_READERS: Final[Mapping[type[Node], Callable[[Index, Any, tuple[int, ...], int], None]]] = {
    AssignmentStmt: Index._assignment,
    Block: Index._block,
    ClassDef: Index._class,
    Decorator: Index._decorated,
    ExpressionStmt: Index._expression,
    ForStmt: Index._for,
    FuncDef: Index._function,
    IfStmt: Index._if,
    MatchStmt: Index._match,
    OperatorAssignmentStmt: Index._operator,
    OverloadedFuncDef: Index._overloaded,
    ReturnStmt: Index._return,
    TryStmt: Index._try,
    WhileStmt: Index._while,
    WithStmt: Index._with,
}


_kept: dict[str, Index] = {}


def index_of(tree: MypyFile) -> Index:
    """The index of a module, made when it is first asked for, and anew when a daemon has read the module again."""
    index = _kept.get(tree.fullname)
    if index is None or index.defs is not tree.defs:
        if not _kept:
            # What mypy has read up to here is hardly ever garbage. As it does with what it loads from its cache, it is
            # put where a collection does not look through it again: the objects of the plugin would bring that forward.
            gc.freeze()
            gc.unfreeze()
        if len(_kept) >= 2:
            _kept.clear()
        index = _kept[tree.fullname] = Index(tree)
    return index
