"""What one module's own statements say, found once: what is assigned to a name, and what is registered where.

mypy's hooks see one expression at a time. That a name was assigned once and to what, that a function is decorated by
`app.get("/users/:id")`, that `logger()` came before: for these the statements of the module are walked, in order.
Only statements; mypy's own visitor cannot be derived from in interpreted code (python/mypy#19456).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
from mypy.constant_fold import constant_fold_expr
from mypy.nodes import (
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
    StrExpr,
    TryStmt,
    TupleExpr,
    Var,
    WhileStmt,
    WithStmt,
)

from core.config.routes import METHODS, MIDDLEWARE, Placed, Promise, reversals, runs_before
from core.config.sql import Statement

__all__ = ["Index", "Registration", "callee_name", "index_of"]

_ROUTES = METHODS | {"on"}
_ASKS = frozenset(["all", "first"])
_REGISTERS = _ROUTES | {"use", "queue"}


@attrs.define(eq=False)
class Registration:
    """A call that registers: `receiver.method(…)`.

    `where` is the way to it through the blocks of the module, so that of two it can be told whether one always runs
    before the other.
    """

    call: CallExpr
    receiver: Expression
    method: str
    where: tuple[int, ...]
    decorated: FuncDef | None = None

    @property
    def is_route(self) -> bool:
        """Whether it registers a route."""
        return self.method in _ROUTES

    @property
    def handlers(self) -> Sequence[Expression]:
        """What is registered, without the path."""
        skipped = {"on": 2, "use": 0}.get(self.method, 1)
        return self.call.args[skipped:]


class Index:
    """The statements of a module, walked once."""

    def __init__(self, tree: MypyFile) -> None:
        self.module: str = tree.fullname
        self.defs: Sequence[Node] = tree.defs
        self.registrations: list[Registration] = []
        self.functions: dict[Node, FuncDef] = {}
        """Functions by the variable of their first parameter."""
        self.prepares: list[CallExpr] = []
        """Statements of SQL that were not read yet, as far as they stand in the open."""
        self.asked: list[CallExpr] = []
        """Calls that may ask such a statement for its rows, likewise."""
        self.settled: set[CallExpr] = set()
        """Those of them in which nothing is wrong."""
        self.statements: dict[CallExpr, tuple[str, Statement] | None] = {}
        """What is known of the text given to a `prepare`, and how its database is called."""
        self.parameters: dict[FuncDef, list[tuple[str, ...] | None]] = {}
        """The names that each path of a function has, None where a path is not known."""
        self._assigned: dict[Node, Expression | None] = {}
        self._routes: dict[FuncDef, list[Registration]] = {}
        self._values: set[Expression] = set()
        self._order: dict[CallExpr, str] | None = None
        self.classes: set[str] = set()
        """The bare names that stand among the bases of a class here."""
        self._walk(tree.defs, ())
        self._by_call = {registration.call: registration for registration in self.registrations}
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
        self._register(statement.expr, where, number)

    def _assignment(self, statement: AssignmentStmt, where: tuple[int, ...], number: int) -> None:
        for target in statement.lvalues:
            self._assign(target, statement.rvalue)
        self._register(statement.rvalue, where, number)

    def _function(self, function: FuncDef, where: tuple[int, ...], number: int) -> None:
        if function.arguments:
            self.functions[function.arguments[0].variable] = function
        self._walk(function.body.body, (*where, number, 0))

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
        self._walk(statement.defs.body, (*where, number, 0))

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
        # What stands in the body of a try runs first, and what follows the statement sees it.
        for name in statement.vars:
            if name is not None:
                self._assign(name, None)
        blocks = [statement.body, *statement.handlers, statement.else_body, statement.finally_body]
        self._blocks(blocks, where, number)

    def _match(self, statement: MatchStmt, where: tuple[int, ...], number: int) -> None:
        self._blocks(statement.bodies, where, number)

    def _block(self, statement: Block, where: tuple[int, ...], number: int) -> None:
        self._walk(statement.body, (*where, number))

    def _blocks(self, blocks: Sequence[Block | None], where: tuple[int, ...], number: int) -> None:
        for at, block in enumerate(blocks):
            if block is not None:
                self._walk(block.body, (*where, number, -1 - at))

    def _assign(self, target: Expression, value: Expression | None) -> None:
        if isinstance(target, NameExpr) and target.node is not None:
            self._assigned[target.node] = None if target.node in self._assigned else value
        elif isinstance(target, TupleExpr):
            for item in target.items:
                self._assign(item, None)

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
            if name in _REGISTERS:
                place = (*where, number)
                self.registrations.append(Registration(expression, callee.expr, name, place, decorated))
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

    def _functions_of(self, registration: Registration) -> Iterator[FuncDef]:
        if registration.decorated is not None:
            yield registration.decorated
        if registration.is_route:
            for handler in registration.handlers:
                function = self.function(handler)
                if function is not None:
                    yield function

    # -- asking

    def value(self, expression: Expression) -> Expression | None:
        """What a name was assigned, if it was assigned exactly once here; else nothing."""
        if isinstance(expression, NameExpr) and expression.node is not None:
            return self._assigned.get(expression.node)
        return None

    def assigned_once(self, value: Expression) -> bool:
        """Whether an expression is what some name holds, and nothing else."""
        return value in self._values

    def text(self, expression: Expression) -> str | None:
        """The text that an expression is: a literal, a sum of literals, a Final name."""
        if isinstance(expression, StrExpr):
            return expression.value
        if isinstance(expression, RefExpr) and isinstance(expression.node, Var) and expression.node.is_final:
            final = expression.node.final_value
            return final if isinstance(final, str) else None
        if isinstance(expression, OpExpr) and expression.op == "+":
            left, right = self.text(expression.left), self.text(expression.right)
            return left + right if left is not None and right is not None else None
        folded = constant_fold_expr(expression, self.module)
        if isinstance(folded, str):
            return folded
        value = self.value(expression)
        return self.text(value) if value is not None and not isinstance(value, NameExpr) else None

    def function(self, expression: Expression) -> FuncDef | None:
        """The function of this module that a name means."""
        node = expression.node if isinstance(expression, NameExpr) else None
        if isinstance(node, Decorator):
            return node.func
        return node if isinstance(node, FuncDef) else None

    def path(self, registration: Registration) -> str | None:
        """The path or prefix of a registration, where it is a text."""
        args = registration.call.args
        at = 1 if registration.method == "on" else 0
        return self.text(args[at]) if len(args) > at else None

    def routes(self, function: FuncDef) -> Sequence[Registration]:
        """Where a function is registered as a handler or middleware of a route, in this module."""
        return self._routes.get(function, ())

    def registration(self, call: CallExpr) -> Registration | None:
        """The registration that a call is."""
        return self._by_call.get(call)

    # -- order

    @property
    def order(self) -> dict[CallExpr, str]:
        """The calls that register what an earlier one has already read, and what is to be said about them."""
        if self._order is None:
            self._order = {}
            promises = (self._promise(handler) for entry in self.registrations for handler in entry.handlers)
            if not any(promise is not None and promise.provides for promise in promises):
                return self._order  # so in most modules
            calls = [r.call for r in self.registrations]
            for receiver in dict.fromkeys(filter(None, map(_identity, (r.receiver for r in self.registrations)))):
                entries = list(self._entries(receiver, "", (), set()))
                for late in range(len(entries)):
                    if not entries[late][0].promise.provides:
                        continue
                    before = [entry for entry, where in entries[:late] if runs_before(where, entries[late][1])]
                    for place, message in reversals([*before, entries[late][0]]):
                        self._order.setdefault(calls[place], message)
        return self._order

    def _entries(
        self, receiver: object, prefix: str, where: tuple[int, ...], seen: set[object]
    ) -> Iterator[tuple[Placed, tuple[int, ...]]]:
        """Every known middleware on a router, in order, with those of routers mounted on it."""
        if receiver in seen:
            return
        seen = {*seen, receiver}
        for number, registration in enumerate(self.registrations):
            if _identity(registration.receiver) != receiver:
                continue
            at = where or registration.where
            handlers = list(registration.handlers)
            path: str | None = ""
            if registration.method == "use":
                if handlers and (prefix_text := self.text(handlers[0])) is not None:
                    path, handlers = prefix_text, handlers[1:]
            elif registration.is_route:
                path = self.path(registration)
            else:
                continue
            if path is None:
                continue
            whole = prefix.rstrip("/") + path if path not in ("", "/") else prefix or "/"
            for handler in handlers:
                promise = self._promise(handler)
                if promise is not None:
                    yield Placed(promise, whole or "/", registration.is_route, number), at
                elif registration.method == "use" and (mounted := _identity(handler)) is not None:
                    yield from (
                        (attrs.evolve(entry, place=number), at) for entry, _ in self._entries(mounted, whole, at, seen)
                    )

    def _promise(self, expression: Expression) -> Promise | None:
        """What a middleware reads and provides, where it is one of the framework's, made here."""
        value = self.value(expression)
        if value is not None:
            expression = value
        return MIDDLEWARE.get(callee_name(expression))


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


def _identity(expression: Expression) -> object | None:
    """What tells whether two expressions are one router."""
    if isinstance(expression, NameExpr) and expression.node is not None:
        return expression.node
    if isinstance(expression, MemberExpr) and (inner := _identity(expression.expr)) is not None:
        return inner, expression.name
    return None


def callee_name(expression: Expression) -> str:
    """The full name of what a call calls, or nothing."""
    if isinstance(expression, CallExpr) and isinstance(expression.callee, RefExpr):
        return expression.callee.fullname
    return ""


_kept: dict[str, Index] = {}


def index_of(tree: MypyFile) -> Index:
    """The index of a module, made when it is first asked for, and anew when a daemon has read the module again."""
    index = _kept.get(tree.fullname)
    if index is None or index.defs is not tree.defs:
        if len(_kept) >= 2:
            _kept.clear()
        index = _kept[tree.fullname] = Index(tree)
    return index
