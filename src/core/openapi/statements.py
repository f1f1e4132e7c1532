"""The statements of a function, read in the order in which they run.

Branches are read one by one, each with the errors that a name may stand for in it, and the response goes along. Which
of the errors are left in a branch is said by its condition. What an expression does is in `expressions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, TypeAlias

import attrs
from mypy.nodes import (
    AssertStmt,
    AssignmentStmt,
    Block,
    BreakStmt,
    CallExpr,
    ContinueStmt,
    DelStmt,
    Expression,
    ExpressionStmt,
    ForStmt,
    FuncDef,
    IfStmt,
    IndexExpr,
    MatchStmt,
    MemberExpr,
    NameExpr,
    Node,
    OperatorAssignmentStmt,
    OpExpr,
    RaiseStmt,
    RefExpr,
    ReturnStmt,
    Statement,
    TryStmt,
    WhileStmt,
    WithStmt,
    YieldExpr,
)
from mypy.types import CallableType, Instance, get_proper_type

from core.openapi import sent
from core.openapi.conditions import compared, holds, is_capture, named_classes, parted
from core.openapi.expressions import Expressions, division
from core.openapi.facts import Open, Raise, Read
from core.openapi.failures import CONFLICT, CORE_ERROR, D1_ERROR, UNAUTHORIZED, is_caught, object_of
from core.openapi.here import State, merged
from core.openapi.solving import member
from core.openapi.trees import CONTEXT, called, within
from core.openapi.values import Frame, Value

_Case: TypeAlias = tuple[Expression | None, Expression, Block]
"""A branch: what is evaluated before it, and its condition, which that is but for `match`."""
_CONFLICT: Final = "core.errors.conflicts.conflict"
_DROPPED: Final = frozenset(["asyncio.tasks.create_task", "asyncio.tasks.ensure_future"])
"""Where a statement is nothing but the call, nobody waits for the task, so that its errors answer nobody."""
_SUPPRESS: Final = "contextlib.suppress"
_MOST_TURNS: Final = 4
_ITERATION: Final = (("__iter__", "__next__"), ("__aiter__", "__anext__"))


@attrs.define(eq=False)
class Statements(Expressions):
    """A call of a function, with what its body does."""

    exits: list[State] = attrs.field(init=False, factory=list[State])
    turns: list[State] = attrs.field(init=False, factory=list[State])
    """The response where the innermost loop ends a turn in its middle."""
    breaks: list[State] = attrs.field(init=False, factory=list[State])
    """The response where the innermost loop is left, past its `else`."""
    _handled_as: Node | None = attrs.field(init=False, default=None)
    """The name of `except … as name`, for which conditions may have ruled some out."""

    def run(self, body: Block) -> State:
        """Walk the body. Returns the response as it is afterwards."""
        if self._block(body):
            self.exits.append(self.state)
        return merged(self.exits) if self.exits else self.state

    # -- statements

    def _block(self, block: Block | None) -> bool:
        """Walk a block, if there is one. False where what follows it is not reached."""
        return block is None or all(self._statement(statement) for statement in block.body)

    def _statement(self, statement: Statement) -> bool:
        match statement:
            case ExpressionStmt(expr=CallExpr(callee=RefExpr(fullname=name))) if name in _DROPPED:
                pass  # nobody waits for it
            case ExpressionStmt() | AssertStmt() | DelStmt():
                self.evaluate(statement.expr)
            case AssignmentStmt():
                self.evaluate(statement.rvalue)
                for target in statement.lvalues:
                    self.evaluate_parts(target)
                    self._assigned(target, statement.rvalue)
            case OperatorAssignmentStmt():
                self.evaluate(statement.lvalue)
                self.evaluate(statement.rvalue)
                division(self, statement.op, statement.lvalue, statement.rvalue)
            case ReturnStmt():
                if statement.expr is not None:
                    self.evaluate(statement.expr)
                self.exits.append(self.state)
                return False
            case BreakStmt() | ContinueStmt():
                (self.breaks if isinstance(statement, BreakStmt) else self.turns).append(self.state)
                return False
            case RaiseStmt():
                self._raise(statement)
                return False
            case IfStmt():
                cases = zip(statement.expr, statement.expr, statement.body, strict=True)
                return self._choose([*cases], statement.else_body)
            case ForStmt() | WhileStmt():
                return self._loop(statement)
            case WithStmt():
                return self._with(statement)
            case TryStmt():
                return self._try(statement)
            case MatchStmt():
                return self._match(statement)
            case _:
                pass
        return True

    def _loop(self, statement: ForStmt | WhileStmt) -> bool:
        self.evaluate(statement.expr)
        items: list[tuple[Node, Value]] = []
        if isinstance(statement, ForStmt):
            for method in _ITERATION[statement.is_async]:
                self.call_method(statement.expr, method)
            if isinstance(statement.index, NameExpr) and (node := statement.index.node) is not None:
                items += [(node, item) for item in self.program.members(statement.expr, self.frame)]
        around, self.turns, self.breaks = (self.turns, self.breaks), [], []
        if 0 < len(items) <= _MOST_TURNS:
            goes_on = self._each_turn(statement.body, items)
        else:
            before = self.state.ways
            goes_on = self.fork([partial(self._block, statement.body), lambda: True])
            self.state.ways = self.state.ways - before or before  # what a loop reads is there for its turns
            self.state = merged([self.state, *self.turns])
        left, (self.turns, self.breaks) = self.breaks, around
        if goes_on and self.fork([partial(self._block, statement.else_body)]):
            left = [self.state, *left]
        self.state = merged(left) if left else self.state
        return bool(left)

    def _each_turn(self, body: Block, items: Sequence[tuple[Node, Value]]) -> bool:
        """Walk a body once for each item. False where what follows the loop is not reached through its end."""
        frame, ends = self.frame, [self.state]
        for node, item in items:
            self.frame: Frame = attrs.evolve(frame, errors=self.frame.errors, turn={**frame.turn, node: item})
            goes_on = self.fork([partial(self._block, body)])
            ends = [*([self.state] if goes_on else []), *self.turns]
            self.turns = []
            if not ends:
                break
            self.state = merged(ends)
        frame.errors, self.frame = self.frame.errors, frame
        return bool(ends)

    def _assigned(self, target: Expression, value: Expression) -> None:
        """`res.headers["X-Total"] = …` stages a header; a name may stand for an error."""
        match target:
            case IndexExpr(base=headers) if sent.are_staged(self, headers):
                sent.stage(self, target.index, value)
            case NameExpr(node=node) if node is not None:
                if errors := self.program.errors(value, self.frame):
                    self.frame.errors = {**self.frame.errors, node: errors}
            case (
                MemberExpr(name="status", expr=NameExpr(node=node))
                | IndexExpr(base=MemberExpr(name="metadata", expr=NameExpr(node=node)))
            ) if node is not None and node in self.frame.errors:
                changed = tuple(self._changed(each, target, value) for each in self.frame.errors[node])
                self.frame.errors = {**self.frame.errors, node: changed}
            case _:
                pass

    def _changed(self, raised: Raise, target: Expression, value: Expression) -> Raise:
        """An error that is given another status, or one more word about it."""
        if not isinstance(target, IndexExpr):
            return attrs.evolve(raised, status=self.program.statuses(Value(value, self.frame)))
        key, schema = self.text(target.index), self.schema(value)
        more = object_of({key: schema}) if key is not None else {"type": "object", "additionalProperties": schema}
        return attrs.evolve(raised, metadata=self.program.schemas.merged([raised.metadata, more]))

    # -- conditions on errors

    def _match(self, statement: MatchStmt) -> bool:
        self.evaluate(statement.subject)
        cases: list[_Case] = []
        last: Block | None = None
        for pattern, guard, block in zip(statement.patterns, statement.guards, statement.bodies, strict=True):
            asked = compared(statement.subject, pattern)
            if guard is not None:
                asked = guard if is_capture(pattern) else OpExpr("and", asked, guard)
            if is_capture(pattern) and guard is None:
                last = block
            else:
                cases.append((guard, asked, block))
        return self._choose(cases, last)

    def _choose(self, cases: Sequence[_Case], last: Block | None) -> bool:
        """Walk one of several blocks, each behind its condition, or `last` where no condition holds."""
        if not cases:
            return self._block(last)
        (evaluated, asked, block), *others = cases
        if evaluated is not None:
            self.evaluate(evaluated)
        is_taken = holds(self, asked)
        if is_taken is not None:
            return self._block(block) if is_taken else self._choose(others, last)
        taken, left = parted(self.frame.errors, asked)
        line = evaluated.line if evaluated is not None else block.line
        ways = (partial(self._block, block), partial(self._choose, others, last))
        return self.fork(ways, (taken, left), asked=asked, line=line)

    # -- errors that are caught

    def _with(self, statement: WithStmt) -> bool:
        mark, suppressed, start = len(self.effects), list[str](), self.state.copy()
        swallows = False
        for manager in statement.expr:
            self.evaluate(manager)
            swallows = swallows or self._swallows(manager)
            if isinstance(manager, CallExpr) and called(manager) == _SUPPRESS:
                suppressed += [name for kind in manager.args for name in named_classes(kind)]
            for method in CONTEXT:
                self.call_method(manager, method)
        goes_on = self._block(statement.body)
        if any(self.class_of(manager) == _CONFLICT for manager in statement.expr) and any(
            isinstance(each, Raise) and D1_ERROR in each.classes for each in self.effects[mark:]
        ):
            # A database that is asked inside may refuse a value that is taken.
            self.refuse(CONFLICT, statement.line)
        self._take(mark, suppressed)
        if swallows:
            self.state = merged([start, self.state])
        return goes_on or swallows

    def _swallows(self, manager: Expression) -> bool:
        """True if a context manager may end an error: `__exit__` returns a bool, or it catches around its `yield`."""
        for method in CONTEXT[2:]:
            node = member(self.program.info_of(manager, self.frame), method)
            declared = get_proper_type(node.type) if isinstance(node, FuncDef) else None
            returned = get_proper_type(declared.ret_type) if isinstance(declared, CallableType) else None
            if isinstance(returned, Instance) and returned.type.fullname == "typing.Coroutine":
                returned = get_proper_type(returned.args[-1])
            if isinstance(returned, Instance) and returned.type.fullname == "builtins.bool":
                return True
        makers = self.program.targets(manager.callee, self.frame) if isinstance(manager, CallExpr) else ()
        tried = [
            part
            for target in makers or ()
            if isinstance(target.node, FuncDef)
            for part in within(target.node.body)
            if isinstance(part, TryStmt) and any(isinstance(each, YieldExpr) for each in within(part.body))
        ]
        return any(not isinstance(handler.body[-1], RaiseStmt) for each in tried for handler in each.handlers)

    def _take(self, mark: int, caught: Sequence[str]) -> tuple[Raise, ...]:
        """Take back the errors since `mark` that are of the classes caught."""
        since, is_optional = self.effects[mark:], is_caught(UNAUTHORIZED, caught)
        taken = [each for each in since if isinstance(each, Raise) and is_caught(each, caught)]
        self.effects[mark:] = [
            attrs.evolve(each, required=False)
            if isinstance(each, Read) and each.part == "security" and is_optional
            else each
            for each in since
            if not (isinstance(each, Raise) and is_caught(each, caught))
        ]
        return tuple(taken)

    def _try(self, statement: TryStmt) -> bool:
        mark, start = len(self.effects), self.state.copy()
        goes_on = self._block(statement.body)
        handled: list[tuple[Block, Node | None, tuple[Raise, ...]]] = []
        for kinds, variable, handler in zip(statement.types, statement.vars, statement.handlers, strict=True):
            names = named_classes(kinds) if kinds is not None else ["builtins.BaseException"]
            caught = self._take(mark, names)
            infos = [info for name in names if (info := self.program.lookup(name)) is not None]
            is_followed = not any(isinstance(each, Open) and each.answers for each in self.effects[mark:])
            if (
                not caught
                and is_followed
                and infos
                and all(info.has_base(CORE_ERROR) for info in infos)
                and not statement.is_star
            ):
                continue  # everything inside is known, and raises none of them
            if not caught or not {"builtins.Exception", "builtins.BaseException"}.isdisjoint(names):
                caught += tuple(map(self.program.error_of, infos))
            handled.append((handler, variable.node if variable is not None else None, caught))
        if goes_on and statement.else_body is not None:
            goes_on = self._block(statement.else_body)
        after, errors = self.state, self.frame.errors
        ends = [after] if goes_on else []
        outer, outer_name = self.current, self._handled_as
        for handler, node, caught in handled:
            self.state = merged([start, after])
            self._handled_as = node
            self.current: tuple[Raise, ...] = caught
            self.frame.errors = {**errors, **({node: caught} if node is not None else {})}
            if self._block(handler):
                ends.append(self.state)
        self.current, self._handled_as, self.frame.errors = outer, outer_name, errors
        self.state: State = merged(ends) if ends else after
        if statement.finally_body is None:
            return bool(ends)
        before, end = self.state.headers.keys() | (), len(self.effects)
        finished = self._block(statement.finally_body)
        late = State(headers={name: known for name, known in self.state.headers.items() if name not in before})
        self.effects[mark:end] = [
            late.on_error(each) if isinstance(each, Raise) else each for each in self.effects[mark:end]
        ]
        return bool(ends) and finished

    def _raise(self, statement: RaiseStmt) -> None:
        if statement.from_expr is not None:
            self.evaluate(statement.from_expr)
        if statement.expr is None:
            known = self.frame.errors.get(self._handled_as) if self._handled_as is not None else None
            self.effects.extend(map(self.state.on_error, self.current if known is None else known))
            return
        self.evaluate(statement.expr)
        self.raises(statement.expr)
