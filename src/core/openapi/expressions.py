"""What evaluating an expression does: its calls are followed, into the program's functions and to the rest of a chain.

With them the errors that nobody raises in the program: Python's own, those of bindings, and of a row that is not there.
What a call sends is in `sent.py`, what is read of a request in `reads.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import Final

import attrs
from mypy.constant_fold import constant_fold_expr
from mypy.nodes import (
    ARG_POS,
    CallExpr,
    ComparisonExpr,
    ConditionalExpr,
    Expression,
    FuncDef,
    IndexExpr,
    LambdaExpr,
    MemberExpr,
    NameExpr,
    Node,
    OpExpr,
    RefExpr,
    StrExpr,
    SuperExpr,
    TypeInfo,
    Var,
)
from mypy.operators import op_methods

from core.openapi import reads, sent
from core.openapi.conditions import Errors, holds, joined, ways_of
from core.openapi.facts import Raise, Read, Way
from core.openapi.failures import BINDINGS, CORE_ERROR, EXCEPTION, NOT_FOUND, OF_PYTHON
from core.openapi.here import RESPONSE, Here, State, merged
from core.openapi.solving import member
from core.openapi.trees import CONTEXT, MAKERS, argument, called, constant, parts_of, within
from core.openapi.values import Frame, Target, Value

_STATEMENT: Final = "core.bindings.d1.D1PreparedStatement"
_SESSION: Final = "core.middleware.sessions.session_of"
_LATER: Final = frozenset(["wait_until", "on_send"])
"""The functions that run their argument after the response, so that its errors answer nobody."""
_COPIES: Final = frozenset(["attr.evolve", "attrs.evolve", "dataclasses.replace", "copy.replace"])
"""Calls that make an object again, as its class makes it."""
_CONDITIONS: Final = {
    "only_if": ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"),
    "range": ("Range",),
}
"""What a bucket reads of a request's headers, by the argument that they are."""
_SCHEME: Final = re.compile("(basic|bearer|digest|hmac|(?:token|api-?key|signature)(?= )) ?", re.IGNORECASE)
"""The scheme of an `Authorization`, as it is written where that is taken apart."""
_TASK_GROUP: Final = "asyncio.taskgroups.TaskGroup"


class Expressions(Here):
    """A call of a function, with what its expressions do."""

    def evaluate(self, expression: Expression) -> None:
        """Add the effects of an expression, the innermost first: an error that is made is not yet raised."""
        match expression:
            case CallExpr():
                self._call(expression)
                return
            case ConditionalExpr():
                self.evaluate(expression.cond)
                parts = (expression.if_expr, expression.else_expr)
                self.fork([partial(self.evaluate, part) for part in parts], asked=expression.cond)
                return
            case OpExpr(op="and" | "or" as operator):
                self.evaluate(expression.left)
                is_known = holds(self, expression.left)
                if is_known is None and constant(expression.right) is None:  # `header or ""` decides nothing
                    ways = (partial(self.evaluate, expression.right), lambda: None)
                    self.fork(ways if operator == "and" else ways[::-1], asked=expression.left)
                elif is_known == (operator == "and"):
                    self.evaluate(expression.right)
                return
            case StrExpr() if word := _SCHEME.fullmatch(expression.value):
                self.read(expression.line, "scheme", word[1].lower())
            case IndexExpr():
                reads.index(self, expression)
            case OpExpr():
                division(self, expression.op, expression.left, expression.right)
            case ComparisonExpr():
                reads.contains(self, expression)
            case _:
                pass
        self.evaluate_parts(expression)
        for owner, method, given in _methods_of(expression):
            self.call_method(owner, method, given)
        if isinstance(expression, MemberExpr):
            self._attribute(expression)

    def evaluate_parts(self, expression: Expression) -> None:
        """Evaluate what an expression is made of, and not the whole: all that happens before an assignment to it."""
        for part in parts_of(expression):
            if isinstance(part, Expression):
                self.evaluate(part)

    def learn(self, condition: Expression, outcome: bool) -> None:
        """A condition holds from here on, or does not."""
        while isinstance(condition, OpExpr) and holds(self, condition.left) == (condition.op == "and"):
            condition = condition.right
        self.state.know(ways_of(self.asked, condition, outcome))

    def _asked(self, expression: Expression, frame: Frame, seen: set[Node]) -> Iterator[tuple[str, str]]:
        """What is read of the request to work out a value."""
        there = attrs.evolve(self, frame=frame, state=State())
        there.evaluate(expression)
        yield from (
            (each.part, each.name) for each in there.effects if isinstance(each, Read) and each.name is not None
        )
        for name in (expression, *within(expression)):
            node = name.node if isinstance(name, NameExpr) else None
            if node is None or node in seen:
                continue
            seen.add(node)
            for at in frame.chain():
                values = [Value(each, at) for each in at.notes.assigned.get(node, ()) if each is not None]
                for value in [*values, *([at.values[node]] if node in at.values else [])]:
                    if value.place is not None:
                        yield from self._asked(*value.place, seen)

    def asked(self, expression: Expression) -> tuple[Way, bool]:
        """What is there where a value is true, and whether it is what was sent, which is missing where it is not. Of
        several that a value is made of, one is (`?`).
        """
        key = (Expressions.asked, expression, self.frame)
        if key not in self.program.answers:
            self.program.answers[key] = Way()  # where its own value depends on it
            asked = self._asked(expression, self.frame, set())
            self.program.answers[key] = Way((part, name, "+") for part, name in asked)
        found: Way = self.program.answers[key]
        if sum(part != "scheme" for part, *_ in found) > 1:
            return Way((part, name, "?") for part, name, _ in found), False
        return found, len(found) == 1 and self._is_sent(expression, self.frame)

    def _is_sent(self, expression: Expression, frame: Frame, depth: int = 0) -> bool:
        """True for what is read of a request as it was sent."""
        match self.program.origin(Value(expression, frame)).place:
            case (IndexExpr(base=owner) | CallExpr(callee=MemberExpr(expr=owner)), at) if any(
                self.program.class_of(each, at).startswith("core.") for each in (owner, getattr(owner, "expr", owner))
            ):
                return True
            case (CallExpr() as call, at) if depth < 3 and (given := self.program.returned(call, at)):
                return all(self._is_sent(*each, depth + 1) for each in given)
            case _:
                return False

    def fork(
        self,
        branches: Iterable[Callable[[], bool | None]],
        errors: Iterable[Errors] = repeat({}),
        *,
        asked: Expression | None = None,
        line: int = 0,
    ) -> bool:
        """Walk branches of which one runs, each with what names of `errors` stand for in it. False where what follows
        is not reached through any of them. `asked` is the condition that chooses between two, and `line` its line.
        """
        start, before = self.state, self.frame.errors
        ends: list[tuple[State, Errors]] = []
        for number, (walk, possible) in enumerate(zip(branches, errors, strict=False)):
            if () in possible.values():
                continue  # none of the errors goes there
            self.state, self.frame.errors = start.copy(), {**before, **possible}
            if asked is not None:
                self.learn(asked, number == 0)
            if line:
                self.state.branch = (self.path, line)
            if walk() is not False:
                ends.append((self.state, self.frame.errors))
        if not ends:
            self.state, self.frame.errors = start, before
            return False
        self.state: State = merged([state for state, _ in ends])
        self.frame.errors = joined(found for _, found in ends)
        return True

    def _call(self, call: CallExpr) -> None:
        callee = call.callee
        if self._keeps_errors(call):
            mark = len(self.effects)
            for given in call.args:
                self.evaluate(given)
            self.effects[mark:] = [each for each in self.effects[mark:] if not isinstance(each, Raise)]
            return
        if isinstance(callee, MemberExpr):
            if callee.name in _LATER:
                return
            receiver = self.class_of(callee.expr)
            is_response = receiver == RESPONSE and callee.name in sent.METHODS
            if is_response or (callee.name in sent.OF_HEADERS and sent.are_staged(self, callee.expr)):
                for part in (callee.expr, *call.args):
                    self.evaluate(part)
                sent.respond(self, call, callee.name)
                return
            reads.request(self, call, callee, receiver)
            _of_binding(self, call, callee.name, receiver)
        for part in (callee, *call.args):
            self.evaluate(part)
        _of_python(self, call)
        self._goes_to(call)

    def _keeps_errors(self, call: CallExpr) -> bool:
        """True where the errors of what is handed over come as values, or as a group, which no error handler is for."""
        if called(call) == "asyncio.tasks.gather":
            flag = argument(call, len(call.args), "return_exceptions")
            return flag is not None and constant(flag) == (True,)
        return isinstance(call.callee, MemberExpr) and self.class_of(call.callee.expr) == _TASK_GROUP

    def _attribute(self, expression: MemberExpr) -> None:
        """A property of the program is a call."""
        owner, name = expression.expr, expression.name
        self._goes_into(self.program.getters(expression, self.frame))
        if name == "user" and self.class_of(owner) == reads.REQUEST:
            self.read(expression.line, "user", "")
        if name in sent.METHODS and self.class_of(owner) == RESPONSE:
            self.open(
                expression.line,
                f"what {name} of a response is called with elsewhere is not known. Call it here, or say what is answered: "
                "describe(handler, answers={…})",
            )

    def call_method(self, owner: Expression, name: str, *given: Expression) -> None:
        """A method of an object is called, if it has one of the name."""
        info = self.program.info_of(owner, self.frame)
        if info is not None:
            call = CallExpr(MemberExpr(owner, name), [*given], [ARG_POS] * len(given), [None] * len(given))
            self._goes_into(self.program.methods(info, name, Value(owner, self.frame)), call)

    # -- calls

    def _goes_to(self, call: CallExpr) -> None:
        callee, name = call.callee, called(call)
        node = callee.node if isinstance(callee, RefExpr) else None
        if isinstance(node, TypeInfo) and node.has_base(CORE_ERROR):
            headers = argument(call, 99, "headers") if not self.program.is_program(node.fullname) else None
            if headers is not None:
                sent.names(self, headers, self.keys(headers))
            return  # one that is made is not yet raised
        if isinstance(callee, SuperExpr):
            self._goes_above(call, callee.name)
        elif name in reads.PAGED:
            reads.paged(self, call, reads.PAGED[name])
        elif name == _SESSION:
            self.read(call.line, "session", "")
            sent.stage_as(self, "Set-Cookie")  # when the session has changed, behind an error too
        elif isinstance(node, TypeInfo):
            self._makes(call, node)
            if not self.program.is_program(node.fullname) and name != "functools.partial":
                self._hands_on(call)
        elif isinstance(node, Var) and (facts := self.reader.application.authenticators.get(node.fullname)):
            self.read(call.line, "security", node.fullname, schema=None, required=not facts.optional)
            for answer in facts.answers:
                self.refuse(answer, call.line)
        elif found := self.program.targets(callee, self.frame):
            self._goes_into(found, call)
        else:
            self._leaves(call, is_known=found is not None)

    def _goes_above(self, call: CallExpr, name: str) -> None:
        """A call of `super().name(…)`. What the `__init__` of an error does is known by its arguments."""
        frame = self.frame
        function = next((at.node for at in frame.chain() if isinstance(at.node, FuncDef)), None)
        owner = function.info or None if function is not None else None
        above = next((base for base in owner.mro[1:] if name in base.names), None) if owner is not None else None
        node = above.names[name].node if above is not None else None
        if owner is None or node is None or (name == "__init__" and owner.has_base(EXCEPTION)):
            return
        mine = frame.node.arguments[:1] if isinstance(frame.node, FuncDef) else []
        me = tuple(frame.values[each.variable] for each in mine if each.variable in frame.values)
        self._goes_into(self.program.defined(node, None, me), call)

    def _goes_into(self, targets: Iterable[Target] | None, call: CallExpr | None = None) -> None:
        self.fork(partial(self._enter, target, call) for target in targets or ())

    def _enter(self, target: Target, call: CallExpr | None) -> None:
        given, named = self.program.arguments(call, self.frame)
        if target.rest is None:
            self.state = self.reader.call(target.with_arguments(given, named), self.state, self.current)
        elif given and call is not None and constant(call.args[0]) != (None,):
            self.raises(call.args[0], passed=True)  # `next(err)`
        elif self.current and not given:
            for raised in self.current:  # `next()` in an error handler
                self.hand_on(raised)
        else:
            self.state = target.rest(self.state)

    def _leaves(self, call: CallExpr, *, is_known: bool) -> None:
        """A call of a function that is not the program's, or that is not known."""
        callee = call.callee
        name = callee.fullname if isinstance(callee, RefExpr) else ""
        receiver = self.class_of(callee.expr) if isinstance(callee, MemberExpr) else ""
        is_ours = (name or receiver).startswith("core.") or receiver.startswith("core.")
        sends = any(self.class_of(given) == RESPONSE for given in call.args)
        shown = getattr(callee, "name", "this")
        if (sends and not is_ours and not name.startswith("builtins.")) or not is_known:
            self.open(
                call.line,
                f"what {shown}(…) does here is not known. Call a function of the program, or say what is answered: "
                "describe(handler, answers={…})",
                sends=sends,
            )
        if not is_ours or shown != "url_for":  # by which the handler is named, and not called
            self._hands_on(call)

    def _hands_on(self, call: CallExpr) -> None:
        """A function that is handed to a library may be called, and a context that is handed to a stack is entered."""
        callee = call.callee
        enters = isinstance(callee, MemberExpr) and callee.name in ("enter_context", "enter_async_context")
        for given in call.args:
            for method in CONTEXT if enters else ():
                self.call_method(given, method)
            if isinstance(given, RefExpr | CallExpr | LambdaExpr) and self.program.is_function(given, self.frame):
                self._goes_into(self.program.targets(given, self.frame))

    def _makes(self, call: CallExpr, made: TypeInfo) -> None:
        owner = Value(call, self.frame)
        for method in MAKERS:
            node = member(made, method)
            if node is not None:
                found = self.program.defined(node, None, (owner,))
                self._goes_into(found, call if method == "__init__" else None)


# Errors that nobody raises in the program ---------------------------------------------------------------------------


def division(here: Here, operator: str, divided: Expression, by: Expression) -> None:
    """A division may be by zero."""
    is_number = operator in ("/", "//", "%") and here.class_of(divided) in ("builtins.int", "builtins.float")
    if is_number and not constant_fold_expr(by, ""):
        here.fails("builtins.ZeroDivisionError", by.line)


def _of_python(here: Here, call: CallExpr) -> None:
    callee = call.callee
    if not isinstance(callee, RefExpr) or not call.args:
        return
    name, made = called(call), callee.node
    if name in _COPIES:
        made = here.program.lookup(here.class_of(call.args[0]))
    refuses = isinstance(made, TypeInfo) and (made.is_enum or here.program.schemas.is_validated(made))
    refuses = refuses and not all(map(constant, call.args))
    failure = "builtins.ValueError" if refuses else OF_PYTHON.get(name)
    number = here.class_of(call.args[0]) in ("builtins.int", "builtins.float", "builtins.bool")
    if failure is not None and not (number and name.startswith("builtins.")):
        here.fails(failure, call.line)


def _of_binding(here: Here, call: CallExpr, method: str, receiver: str) -> None:
    """A call of a binding, which an error handler may make an answer of."""
    if receiver == _STATEMENT and method == "one":
        _requires_row(here, call)
    if failure := BINDINGS.get(receiver.rpartition(".")[0]):
        bases = (failure, "core.errors.bindings.BindingError", "builtins.Exception", "builtins.BaseException")
        here.refuse(Raise(classes=bases), call.line)
        for name, read in _CONDITIONS.items():
            given = argument(call, 99, name)
            if given is not None and here.class_of(given).startswith("core.http.headers."):
                here.read(call.line, "header", *read)
                if name == "only_if":  # which the client may have malformed
                    here.refuse(Raise(status=(400,), message={"const": "Bad Request"}, classes=bases), call.line)


def _requires_row(here: Here, call: CallExpr) -> None:
    """`statement.one(T)`: no row is a 404, or the error that is handed over. An INSERT and a count have one."""
    given, rows = argument(call, 99, "error"), here.program.rows_of(call, here.frame.module)
    if rows is not None and rows.certain:
        return
    if given is None or constant(given) == (None,):
        here.refuse(NOT_FOUND, call.line)
    else:
        here.raises(given)


def _methods_of(expression: Expression) -> Iterator[tuple[Expression, str, Expression]]:
    """The methods that Python calls for `a[b]`, `a + b` and `a in b`: the object, the name and the argument."""
    match expression:
        case IndexExpr(base=owner, index=given):
            yield owner, "__getitem__", given
        case OpExpr(op=op, left=owner, right=given) if op in op_methods:
            yield owner, op_methods[op], given
        case ComparisonExpr(operators=operators, operands=operands):
            for op, left, right in zip(operators, operands[:-1], operands[1:], strict=True):
                if op in ("in", "not in"):
                    yield right, "__contains__", left
                elif op in op_methods:
                    yield left, op_methods[op], right
        case _:
            pass
