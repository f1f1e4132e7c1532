"""What happens on the way of a request: every function that it runs through, read statement by statement.

A route is read as it runs: each middleware with the rest of the chain as its `next`, the handler with its arguments,
and each function that is called with what that call hands over. The status, the headers and the content type that were
put on the response go along, and so do the errors that are caught. What an expression is, is decided in `followed.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Final

import attrs
from mypy.constant_fold import constant_fold_expr
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import (
    AssertStmt,
    AssignmentStmt,
    Block,
    BreakStmt,
    CallExpr,
    ComparisonExpr,
    ContinueStmt,
    Decorator,
    DictExpr,
    Expression,
    ExpressionStmt,
    ForStmt,
    FuncDef,
    IfStmt,
    IndexExpr,
    IntExpr,
    LambdaExpr,
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
    StrExpr,
    SuperExpr,
    TryStmt,
    TupleExpr,
    TypeInfo,
    UnaryExpr,
    Var,
    WhileStmt,
    WithStmt,
    YieldExpr,
)
from mypy.patterns import AsPattern, ClassPattern, OrPattern
from mypy.types import Instance, NoneType, get_proper_type

from core.openapi.facts import (
    Answer,
    ApplicationFacts,
    Effect,
    Field,
    Held,
    Open,
    Raise,
    Read,
    RouteFacts,
    StepFacts,
    is_json,
)
from core.openapi.failures import CONFLICT, CORE_ERROR, INVALID, NOT_FOUND, OF_PYTHON, UNAUTHORIZED, error, is_caught
from core.openapi.followed import (
    REQUEST,
    RESPONSE,
    Followed,
    Frame,
    Home,
    Target,
    Value,
    blocks,
    is_core_error,
    parts_of,
)
from core.openapi.schemas import argument, constant
from core.validation.schema import Schema, any_of

_HTTP_RESPONSE: Final = "core.http.response.Response"
_STATEMENT: Final = "core.bindings.d1.D1PreparedStatement"
_AUTHENTICATION: Final = "core.middleware.authentication.Authentication"
_EVENT: Final = "core.http.sse.Event"
_SENDERS: Final[Mapping[str, str | None]] = {
    "json": "application/json",
    "text": "text/plain",
    "html": "text/html",
    "send": None,
    "redirect": None,
    "stream": "application/octet-stream",
    "sse": "text/event-stream",
    "file": "*/*",
}
_BODIES: Final = frozenset(["json", "form", "text", "bytes", "stream"])
_NO_BODY: Final = frozenset([101, 204, 205, 304])
_PLACES: Final = {
    "core.request.Query": "query",
    "core.request.Params": "params",
    "core.request.FoundParams": "params",
    "core.http.forms.Form": "form",
}
"""The part of a request that fields are read from, by the class that reads them."""
_LOOKUPS: Final = {
    "builtins.dict": "builtins.KeyError",
    "typing.Mapping": "builtins.KeyError",
    "core": "builtins.KeyError",
    "builtins.list": "builtins.IndexError",
    "builtins.str": "builtins.IndexError",
}
"""The error of `value[key]`, by the class of the value; `core` is what is read of a request."""
_CONFLICT: Final = "core.errors.conflict.conflict"
_D1_ERROR: Final = "core.errors.bindings.D1Error"
_BINDINGS: Final = {
    "core.bindings.ai": "core.errors.bindings.AiError",
    "core.bindings.d1": _D1_ERROR,
    "core.bindings.durable_object": "core.errors.bindings.DurableObjectError",
    "core.bindings.kv": "core.errors.bindings.KVError",
    "core.bindings.queue": "core.errors.bindings.QueueError",
    "core.bindings.r2": "core.errors.bindings.R2Error",
}
"""The errors that a call of a binding may raise, by the module of its class: an error handler may make an answer of it.
"""
_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
_LATER: Final = frozenset(["wait_until", "on_send"])
"""The functions that run their argument after the response, so that its errors answer nobody."""
_DROPPED: Final = frozenset(["asyncio.tasks.create_task", "asyncio.tasks.ensure_future"])
"""The same where a statement is nothing but the call: elsewhere somebody may wait for the task."""
_TASK_GROUP: Final = "asyncio.taskgroups.TaskGroup"
_PAGED: Final = {"core.pagination.page_of": "page", "core.pagination.cursor_of": "cursor"}
_SUPPRESS: Final = "contextlib.suppress"
_TEXT: Final[Schema] = {"type": "string"}
_ABOUT_THE_BODY: Final = ("content-", "location", "etag", "last-modified")
_DEEPEST: Final = 30
_MOST: Final = 5000
"""Calls of one route that are read: a program whose calls branch without end has an answer, too."""
_NONE: Final = 1000
_TOO_DEEP: Final = "the calls go too deep to be followed here. Say what is answered: describe(handler, answers={…})"


@attrs.define
class State:
    """The response so far."""

    status: tuple[int, ...] = (200,)
    media: str | None = None
    """The content type that was staged, which wins over that of the sender."""
    headers: dict[str, Schema] = attrs.Factory(dict[str, Schema])
    sent: list[Answer] = attrs.Factory(list[Answer])
    """The answers that a header which is staged now belongs to as well."""
    late: tuple[str, int] | None = None
    """Where a status was staged behind what was sent."""
    limited: bool = False
    """True behind a middleware that has its own bound on bodies."""

    def copy(self) -> State:
        """The same, to go on from."""
        return attrs.evolve(self, headers=dict(self.headers), sent=list(self.sent))


def _merged(states: Sequence[State]) -> State:
    statuses = [status for state in states for status in state.status]
    known = all(state.status for state in states)
    headers = {name: schema for state in states for name, schema in state.headers.items()}
    sent = {id(answer): answer for state in states for answer in state.sent}
    media = {state.media for state in states}
    return State(
        tuple(dict.fromkeys(statuses)) if known else (),
        media.pop() if len(media) == 1 else None,
        headers,
        list(sent.values()),
        next((state.late for state in states if state.late is not None), None),
        any(state.limited for state in states),
    )


class Reader:
    """The routes and error handlers of one application, as requests meet them."""

    def __init__(self, followed: Followed, application: ApplicationFacts) -> None:
        self.followed = followed
        self.application = application
        self._stack: list[object] = []
        """The calls that are being read."""
        self._known: dict[object, list[Effect]] = {}
        """The effects of calls that have no response to send on."""
        self._partial: list[object] = []
        self._cut: int = _NONE
        self._calls = 0
        """The number of calls that were read for one route."""
        self._handled: dict[object, list[Effect]] = {}
        self.met: set[str] = set()
        """The classes of errors that found their handlers."""

    def route(self, route: RouteFacts) -> list[Effect]:
        """Everything that may happen to a request of a route; each error with the error handlers around it."""
        effects: list[Effect] = []
        known: dict[tuple[int, str], tuple[list[Effect], State]] = {}

        def run(index: int, state: State) -> State:
            key = (index, repr((state.status, state.media, sorted(state.headers), state.limited)))
            if key in known:
                # The same as before, in the same place: only the answers belong to this branch too.
                return attrs.evolve(known[key][1], sent=[*state.sent, *known[key][1].sent])
            mark = len(effects)
            if index == len(route.steps):
                state = self._entry(route.handler, effects, state, None)
                levels = route.errors
            else:
                state = self._step(route.steps[index], effects, state, lambda state: run(index + 1, state))
                levels = route.steps[index].errors
            for at, each in enumerate(effects[mark:], mark):
                if isinstance(each, Raise) and each.levels is None:
                    effects[at] = attrs.evolve(each, levels=levels)
            known[key] = (effects[mark:], state)
            return state

        self._calls = 0
        late = run(0, State()).late
        if late is not None:
            reason = "the status is set behind what is sent, so which answer has it is not known. Set it before"
            effects.append(Open(path=late[0], line=late[1], reason=reason))
        return effects

    def alone(self, held: Held) -> list[Effect]:
        """The effects of one function, with nothing before and behind it."""
        key = ("alone", held.name, held.place)
        if key not in self._handled:
            effects: list[Effect] = []
            self._handled[key] = effects
            self._entry(held, effects, State(), lambda state: state, is_step=True)
        return self._handled[key]

    def returned(self, held: Held) -> Schema:
        """The value that a function returns."""
        target = self.followed.target_of(held)
        if target is None or target.node is None:
            return {}
        frame = self.followed.enter(target, [], {})
        found = [self.followed.schema(each, frame) for each in frame.notes.returned]
        return any_of(found) if found else {}

    def _step(self, step: StepFacts, effects: list[Effect], state: State, rest: Callable[[State], State]) -> State:
        effects += [attrs.evolve(answer, headers=dict(answer.headers)) for answer in step.answers]
        state.headers.update(dict.fromkeys(step.headers, _TEXT))
        state.limited = state.limited or step.limits_bodies
        if step.function is None:
            return rest(state)
        target = self.followed.target_of(step.function)
        goes_on = target is not None and target.node is not None and _positional(target) > 2
        state = self._entry(step.function, effects, state, rest if goes_on else None, is_step=True)
        return state if goes_on or target is None else rest(state)

    def _entry(
        self,
        held: Held,
        effects: list[Effect],
        state: State,
        rest: Callable[[State], State] | None,
        *,
        is_step: bool = False,
    ) -> State:
        """A call of a function that the application registered, with what the framework hands to it."""
        target = self.followed.target_of(held)
        if target is None:
            path, line = held.place
            effects.append(
                Open(
                    path=path,
                    line=line,
                    reason=f"a function outside the program answers here, {held.name}: its answers are not known. "
                    "Write the function in the program and call that one in it, or say what it answers: "
                    "describe(handler, answers={…})",
                )
            )
            return rest(state) if rest is not None else state
        given = [self._instance(REQUEST), self._instance(RESPONSE)]
        if rest is not None:
            given.append(Value(self.followed, targets=(Target(None, rest=rest),)))
        return self.call(target, given[: _positional(target)] if is_step else given, {}, effects, state)

    def _instance(self, name: str) -> Value:
        return self.followed.value_of(Held("object", name))

    def call(
        self,
        target: Target,
        given: Sequence[Value],
        named: Mapping[str, Value],
        effects: list[Effect],
        state: State,
        current: tuple[Raise, ...] = (),
    ) -> State:
        """A call of a function: its effects join `effects`."""
        node = target.node
        if node is None:
            return state
        key = (target.key, *(value.key for value in given), *((name, value.key) for name, value in named.items()))
        if key in self._stack:
            self._cut = min(self._cut, self._stack.index(key))
            return state  # one that calls itself has nothing new to say
        around = target.frame.values if target.frame is not None else {}
        sends = any(map(_is_response, (*target.given, *given, *named.values(), *around.values())))
        if not sends and key in self._known:
            effects += self._known[key]
            return state
        frame = self.followed.enter(target, given, named)
        home = self.followed.home_of(frame)
        path = home.path if home is not None else ""
        self._calls += 1
        if len(self._stack) > _DEEPEST or self._calls > _MOST:
            effects.append(Open(path=path, line=node.line, reason=_TOO_DEEP))
            return state
        self._stack.append(key)
        mark = len(effects)
        state = _Walk(self, frame, home, effects, state, current).run(node.body)
        self._stack.pop()
        if not sends:
            self._known[key] = effects[mark:] = list({id(each): each for each in effects[mark:]}.values())
        if self._cut < len(self._stack):
            self._partial.append(key)  # of a call around this one, what that does is not in it yet
        else:
            self._cut = _NONE
            for each in self._partial:
                self._known.pop(each, None)
            self._partial.clear()
        return state

    # -- errors

    def answers(self, raised: Raise, tried: tuple[str, ...] = ()) -> Iterator[tuple[Raise, Answer | Open | None]]:
        """The answers to an error, as `core.dispatch.answers.find_error_handler` chooses; None for the default one.

        Each comes with the error that it answers: an error handler may have raised another one.
        """
        for level in (*(raised.levels or ()), self.application.error_handlers):
            for cls in raised.classes:
                handler = level.get(cls)
                if handler is None or handler.name in tried:
                    continue
                self.met.add(cls)
                yield from self._answers_of(handler, raised, (*tried, handler.name))
                return
        yield raised, None

    def _answers_of(
        self, handler: Held, raised: Raise, tried: tuple[str, ...]
    ) -> Iterator[tuple[Raise, Answer | Open | None]]:
        key = (handler.name, handler.place, repr(attrs.evolve(raised, path="", line=0, levels=None)))
        if key not in self._handled:
            effects: list[Effect] = []
            self._handled[key] = effects
            target = self.followed.target_of(handler)
            if target is None:
                self._entry(handler, effects, State(), None)
            else:
                err = Value(self.followed, type=self._type_of(raised), errors=(raised,))
                given = [err, self._instance(REQUEST), self._instance(RESPONSE)]
                given.append(Value(self.followed, targets=(Target(None, rest=lambda state: state),)))
                self.call(target, given, {}, effects, State(), (raised,))
        for each in self._handled[key]:
            if isinstance(each, Answer | Open):
                yield raised, each
            elif isinstance(each, Raise) and CORE_ERROR in each.classes:
                yield from self.answers(attrs.evolve(each, levels=raised.levels), tried)
            elif isinstance(each, Raise) and each.classes == raised.classes:
                # The same error again: the following handler answers it.
                yield from self.answers(attrs.evolve(raised, levels=raised.levels), tried)

    def _type_of(self, raised: Raise) -> Instance | None:
        info = self.followed.lookup(raised.classes[0])
        return Instance(info, []) if info is not None else None

    def not_found(self) -> list[Effect]:
        """What the application's own handler does with a path that no route has."""
        effects: list[Effect] = []
        if self.application.not_found is not None:
            self._entry(self.application.not_found, effects, State(), None)
        return effects


def _is_response(value: Value) -> bool:
    type_ = value.type
    return value.parts is not None or (isinstance(type_, Instance) and type_.type.fullname == RESPONSE)


def _positional(target: Target) -> int:
    """The number of arguments that a function takes of the framework."""
    assert target.node is not None
    taken = [
        each for each in target.node.arguments if each.kind.is_positional() and each.variable.name not in target.named
    ]
    star = any(each.kind.is_star() for each in target.node.arguments)
    return 3 if star else len(taken) - len(target.given)


class _Walk:
    """One call of a function."""

    def __init__(
        self,
        reader: Reader,
        frame: Frame,
        home: Home | None,
        effects: list[Effect],
        state: State,
        current: tuple[Raise, ...],
    ) -> None:
        self.reader = reader
        self.followed = reader.followed
        self.frame = frame
        self.owner = home.owner if home is not None else None
        self.path = home.path if home is not None else ""
        self.effects = effects
        self.state = state
        self.exits: list[State] = []
        self.jumps: list[State] = []
        """The response where the innermost loop ends a turn in its middle."""
        self.current = current
        """The errors that are being handled: a bare `raise` raises them again."""
        self._handled_as: Node | None = None
        """The name of `except … as name`, for which conditions may have ruled some out."""

    def run(self, body: Block) -> State:
        """Walk the body. Returns the response as it is afterwards."""
        if self._block(body):
            self.exits.append(self.state)
        return _merged(self.exits) if self.exits else self.state

    # -- statements

    def _block(self, block: Block) -> bool:
        """Walk a block. False where what follows it is not reached."""
        return all(self._statement(statement) for statement in block.body)

    def _statement(self, statement: Statement) -> bool:
        match statement:
            case ExpressionStmt(expr=CallExpr(callee=RefExpr(fullname=name))) if name in _DROPPED:
                pass  # nobody waits for it
            case ExpressionStmt() | AssertStmt():
                self._expression(statement.expr)
            case AssignmentStmt():
                self._consumed(statement.rvalue)
                for target in statement.lvalues:
                    self._assigned(target, statement.rvalue)
            case OperatorAssignmentStmt():
                self._expression(statement.rvalue)
            case ReturnStmt():
                if statement.expr is not None:
                    self._consumed(statement.expr)
                self.exits.append(self.state)
                return False
            case BreakStmt() | ContinueStmt():
                self.jumps.append(self.state)
                return False
            case RaiseStmt():
                self._raise_statement(statement)
                return False
            case IfStmt():
                return self._if(statement)
            case ForStmt() | WhileStmt():
                self._expression(statement.expr)
                around, self.jumps = self.jumps, list[State]()
                self._fork([(statement.body, {}), (None, {})])
                self.state, self.jumps = _merged([self.state, *self.jumps]), around
                return self._fork([(statement.else_body, {})])
            case WithStmt():
                return self._with(statement)
            case TryStmt():
                return self._try(statement)
            case MatchStmt():
                return self._match(statement)
            case Block():
                return self._block(statement)
            case _:
                pass
        return True

    def _fork(self, branches: Iterable[tuple[Block | None, Mapping[Node, tuple[Raise, ...]]]]) -> bool:
        """Walk branches of which one runs, each with what names of errors stand for in it. None is an empty one."""
        start, errors = self.state, self.frame.errors
        ends: list[tuple[State, dict[Node, tuple[Raise, ...]]]] = []
        for block, narrowed in branches:
            if () in narrowed.values():
                continue  # none of the errors goes there
            self.state, self.frame.errors = start.copy(), {**errors, **narrowed}
            if block is None or self._block(block):
                ends.append((self.state, self.frame.errors))
        if not ends:
            self.state, self.frame.errors = start, errors
            return False
        self.state = _merged([state for state, _ in ends])
        joined: dict[Node, dict[int, Raise]] = {}
        for _, found in ends:
            for node, each in found.items():
                joined.setdefault(node, {}).update({id(one): one for one in each})
        self.frame.errors = {node: tuple(each.values()) for node, each in joined.items()}
        return True

    def _assigned(self, target: Expression, value: Expression) -> None:
        """`res.headers["X-Total"] = …` stages a header; a name may stand for an error."""
        match target:
            case IndexExpr(base=MemberExpr(name="headers", expr=owner)):
                if self.followed.class_of(owner, self.frame) == RESPONSE:
                    self._stage(target.index, value)
            case NameExpr(node=node) if node is not None:
                if errors := self.followed.errors(value, self.frame):
                    self.frame.errors = {**self.frame.errors, node: errors}
            case _:
                pass

    # -- conditions on errors

    def _if(self, statement: IfStmt) -> bool:
        branches: list[tuple[Block | None, Mapping[Node, tuple[Raise, ...]]]] = []
        otherwise: dict[Node, tuple[Raise, ...]] = {}
        outer = self.frame.errors
        for condition, block in zip(statement.expr, statement.body, strict=True):
            self._expression(condition)
            self.frame.errors = {**outer, **otherwise}
            taken, left = self._parted(lambda node, raised, at=condition: self._truth(at, node, raised))  # type: ignore[misc]
            branches.append((block, {**otherwise, **taken}))
            otherwise |= left
        self.frame.errors = outer
        branches.append((statement.else_body, otherwise))
        return self._fork(branches)

    def _match(self, statement: MatchStmt) -> bool:
        self._expression(statement.subject)
        subject = statement.subject.node if isinstance(statement.subject, NameExpr) else None
        branches: list[tuple[Block | None, Mapping[Node, tuple[Raise, ...]]]] = []
        otherwise: dict[Node, tuple[Raise, ...]] = {}
        outer, is_whole = self.frame.errors, False
        for pattern, guard, block in zip(statement.patterns, statement.guards, statement.bodies, strict=True):
            if guard is not None:
                self._expression(guard)
            self.frame.errors = {**outer, **otherwise}

            def truth(
                node: Node, raised: Raise, pattern: object = pattern, guard: Expression | None = guard
            ) -> bool | None:
                if node is not subject:
                    return None
                matches = _matches(pattern, raised)
                return matches if not matches or guard is None else self._truth(guard, node, raised)

            taken, left = self._parted(truth)
            branches.append((block, {**otherwise, **taken}))
            otherwise |= left
            is_whole = is_whole or (_is_capture(pattern) and guard is None)
        self.frame.errors = outer
        return self._fork(branches if is_whole else [*branches, (None, otherwise)])

    def _parted(
        self, truth: Callable[[Node, Raise], bool | None]
    ) -> tuple[dict[Node, tuple[Raise, ...]], dict[Node, tuple[Raise, ...]]]:
        """The errors that names may stand for where a condition holds, and where it does not."""
        taken: dict[Node, tuple[Raise, ...]] = {}
        left: dict[Node, tuple[Raise, ...]] = {}
        for node, errors in self.frame.errors.items():
            found = [(raised, truth(node, raised)) for raised in errors]
            if any(each is not None for _, each in found):
                taken[node] = tuple(raised for raised, each in found if each is not False)
                left[node] = tuple(raised for raised, each in found if each is not True)
        return taken, left

    def _truth(self, condition: Expression, node: Node, raised: Raise) -> bool | None:
        """Whether a condition holds if a name stands for this error; None where that is not known."""
        match condition:
            case CallExpr(callee=NameExpr(fullname="builtins.isinstance"), args=[NameExpr(node=subject), kinds]):
                return not set(raised.classes).isdisjoint(_named(kinds)) if subject is node else None
            case UnaryExpr(op="not"):
                inner = self._truth(condition.expr, node, raised)
                return None if inner is None else not inner
            case OpExpr(op="and" | "or" as op):
                both = [self._truth(part, node, raised) for part in (condition.left, condition.right)]
                deciding = op == "or"
                return deciding if deciding in both else None if None in both else not deciding
            case ComparisonExpr(
                operators=[op], operands=[MemberExpr(name="status", expr=NameExpr(node=subject)), right]
            ):
                if subject is not node or not isinstance(right, IntExpr) or len(raised.status) != 1:
                    return None
                (status,), bound = raised.status, right.value
                compare = _COMPARISONS.get(op)
                return compare(status, bound) if compare is not None else None
            case _:
                return None

    # -- errors that are caught

    def _with(self, statement: WithStmt) -> bool:
        mark, suppressed = len(self.effects), list[str]()
        for manager in statement.expr:
            self._expression(manager)
            if isinstance(manager, CallExpr) and getattr(manager.callee, "fullname", "") == _SUPPRESS:
                suppressed += [name for kind in manager.args for name in _named(kind)]
            info = self.followed.info_of(manager, self.frame)
            for method in ("__aenter__", "__enter__", "__aexit__", "__exit__"):
                if info is not None:
                    self._goes_into(
                        self.followed.methods(info, method, Value(self.followed, manager, self.frame)) or ()
                    )
        goes_on = self._block(statement.body)
        if any(self.followed.class_of(manager, self.frame) == _CONFLICT for manager in statement.expr):
            self._conflicts(mark, statement.line)
        self._take(mark, suppressed)
        return goes_on or bool(suppressed)

    def _conflicts(self, mark: int, line: int) -> None:
        """`with conflict(…)`: a database that is asked inside may refuse a value that is taken."""
        if any(isinstance(each, Raise) and _D1_ERROR in each.classes for each in self.effects[mark:]):
            self._refuse(CONFLICT, line)

    def _take(self, mark: int, caught: Sequence[str]) -> tuple[Raise, ...]:
        """Take back the errors since `mark` that are of the classes caught."""
        taken: list[Raise] = []
        rest: list[Effect] = []
        for each in self.effects[mark:]:
            if isinstance(each, Raise) and is_caught(each, caught):
                taken.append(each)
            elif isinstance(each, Read) and each.part == "security" and is_caught(UNAUTHORIZED, caught):
                rest.append(attrs.evolve(each, required=False))
            else:
                rest.append(each)
        self.effects[mark:] = rest
        return tuple(taken)

    def _try(self, statement: TryStmt) -> bool:
        mark, start = len(self.effects), self.state.copy()
        goes_on = self._block(statement.body)
        handled: list[tuple[Block, Node | None, tuple[Raise, ...]]] = []
        for kinds, variable, handler in zip(statement.types, statement.vars, statement.handlers, strict=True):
            names = _named(kinds) if kinds is not None else ["builtins.BaseException"]
            caught = self._take(mark, names)
            infos = [info for name in names if (info := self.followed.lookup(name)) is not None]
            is_followed = not any(isinstance(each, Open) for each in self.effects[mark:])
            if not caught and is_followed and infos and all(map(is_core_error, infos)) and not statement.is_star:
                continue  # everything inside is known, and raises none of them
            if not caught or not {"builtins.Exception", "builtins.BaseException"}.isdisjoint(names):
                caught += tuple(each for info in infos for each in self.followed.by_type(Instance(info, [])))
            handled.append((handler, variable.node if variable is not None else None, caught))
        if goes_on and statement.else_body is not None:
            goes_on = self._block(statement.else_body)
        after, errors = self.state, self.frame.errors
        ends = [after] if goes_on else []
        outer, outer_name = self.current, self._handled_as
        for handler, node, caught in handled:
            self.state = _merged([start, after])
            self.current, self._handled_as = caught, node
            self.frame.errors = {**errors, **({node: caught} if node is not None else {})}
            if self._block(handler):
                ends.append(self.state)
        self.current, self._handled_as, self.frame.errors = outer, outer_name, errors
        self.state = _merged(ends) if ends else after
        finished = self._block(statement.finally_body) if statement.finally_body is not None else True
        return bool(ends) and finished

    def _raise_statement(self, statement: RaiseStmt) -> None:
        if statement.from_expr is not None:
            self._expression(statement.from_expr)
        if statement.expr is None:
            known = self.frame.errors.get(self._handled_as) if self._handled_as is not None else None
            self.effects += self.current if known is None else known
            return
        self._consumed(statement.expr)
        self._raise(statement.expr)

    def _raise(self, expression: Expression) -> None:
        """An error is raised, or handed to `next`."""
        for raised in self.followed.errors(expression, self.frame):
            # One that was raised before is still where it was.
            self._emit(raised if raised.path else attrs.evolve(raised, path=self.path, line=expression.line))

    def _emit(self, raised: Raise) -> None:
        staged = {
            name: schema
            for name, schema in self.state.headers.items()
            if not name.lower().startswith(_ABOUT_THE_BODY) and name not in raised.headers
        }
        self.effects.append(attrs.evolve(raised, headers={**raised.headers, **staged}) if staged else raised)

    def _refuse(self, raised: Raise, line: int) -> None:
        """An error of the framework's own at a line."""
        self._emit(attrs.evolve(raised, path=self.path, line=line))

    def _open(self, line: int, reason: str, *, sends: bool = True) -> None:
        self.effects.append(Open(path=self.path, line=line, reason=reason, sends=sends))

    # -- expressions

    def _consumed(self, expression: Expression) -> None:
        """Add the effects of an expression whose value is looked at: an error that is made there is not yet raised."""
        if isinstance(expression, CallExpr) and _makes_error(expression):
            for given in expression.args:
                self._expression(given)
        else:
            self._expression(expression)

    def _expression(self, expression: Expression) -> None:
        """Add the effects of an expression, the innermost first."""
        if isinstance(expression, CallExpr):
            self._call(expression)
            return
        if isinstance(expression, IndexExpr):
            self._index(expression)
        if isinstance(expression, OpExpr) and expression.op in ("/", "//", "%"):
            self._divides(expression)
        if isinstance(expression, ComparisonExpr):
            self._contains(expression)
        for part in parts_of(expression):
            self._expression(part)
        if isinstance(expression, MemberExpr):
            self._property(expression)

    def _call(self, call: CallExpr) -> None:
        callee = call.callee
        if isinstance(callee, MemberExpr):
            if callee.name in _LATER:
                return
            receiver = self.followed.class_of(callee.expr, self.frame)
            if receiver == RESPONSE and self._response(call, callee):
                return
            if receiver == _TASK_GROUP:
                # Its errors come as a group, which no handler of errors is for.
                mark = len(self.effects)
                for given in call.args:
                    self._expression(given)
                self.effects[mark:] = [each for each in self.effects[mark:] if not isinstance(each, Raise)]
                return
            self._request(call, callee, receiver)
            if receiver == _STATEMENT and callee.name == "one":
                self._requires_row(call)
            if failure := _BINDINGS.get(receiver.rpartition(".")[0]):
                bases = (failure, "core.errors.bindings.BindingError", "builtins.Exception", "builtins.BaseException")
                self._refuse(Raise(classes=bases), call.line)
        for part in parts_of(call):
            self._consumed(part)
        self._may_refuse(call)
        if _makes_error(call):
            self._raise(call)
        else:
            self._goes_to(call)

    def _requires_row(self, call: CallExpr) -> None:
        """`statement.one(T)`: no row is a 404, or the error that is handed over. An INSERT and a count have one."""
        given = argument(call, 99, "error")
        if self.followed.has_one_row(call, self.frame):
            return
        if given is None or constant(given) == (None,):
            self._refuse(NOT_FOUND, call.line)
        else:
            self._raise(given)

    def _property(self, expression: MemberExpr) -> None:
        """A property of the program is a call."""
        info = self.followed.info_of(expression.expr, self.frame)
        symbol = info.get(expression.name) if info is not None else None
        if (
            info is not None
            and symbol is not None
            and isinstance(symbol.node, Decorator)
            and symbol.node.var.is_property
        ):
            owner = Value(self.followed, expression.expr, self.frame)
            self._goes_into(self.followed.methods(info, expression.name, owner) or ())

    # -- responses

    def _response(self, call: CallExpr, callee: MemberExpr) -> bool:
        """A call of a response's method. True where all of its parts have been walked."""
        method = callee.name
        if method not in _SENDERS and method not in ("status", "header", "append", "cookie", "delete_cookie"):
            return False
        self._expression(callee.expr)  # `res`, or the rest of the chain before this method
        for given in call.args:
            self._expression(given)
        if method == "status":
            self.state.status = self.followed.statuses(call.args[0], self.frame) if call.args else ()
            self.state.late = (self.path, call.line) if self.state.sent else None
        elif method in ("header", "append"):
            if len(call.args) == 2:
                self._stage(call.args[0], call.args[1])
        elif method in ("cookie", "delete_cookie"):
            self._stage_as("Set-Cookie")
        else:
            self._send(call, method)
        return True

    def _stage(self, name: Expression, value: Expression) -> None:
        known, given = self.followed.schema(name, self.frame).get("const"), constant(value)
        if not isinstance(known, str):
            known = constant_fold_expr(name, "")
        if not isinstance(known, str) or given == (None,):
            return
        if known.lower() == "content-type":
            self.state.media = self._media(value)
        else:
            self._stage_as(known)

    def _media(self, content_type: Expression) -> str:
        """The content type that an expression gives, without its parameters; any where that is not known."""
        return (self._text(content_type) or "*/*").partition(";")[0].strip()

    def _stage_as(self, name: str) -> None:
        self.state.headers[name] = _TEXT
        for answer in self.state.sent:
            answer.headers.setdefault(name, _TEXT)

    def _answered(
        self,
        line: int,
        status: tuple[int, ...],
        media: str | None,
        body: Schema | None = None,
        item: Schema | None = None,
        headers: Mapping[str, Schema] | None = None,
    ) -> None:
        if not status:
            self._open(line, "the status of this answer is not known. Give a number, or a Literal type")
            return
        whole = {**self.state.headers, **(headers or {})}
        answer = Answer(path=self.path, line=line, status=status, media_type=media, body=body, item=item, headers=whole)
        self.effects.append(answer)
        self.state.sent, self.state.late = [*self.state.sent, answer], None

    def _send(self, call: CallExpr, method: str) -> None:
        body = argument(call, 0, "body" if method == "send" else "value")
        media = _SENDERS[method]
        status = self.state.status
        schema: Schema | None = None
        item: Schema | None = None
        headers: dict[str, Schema] = {}
        if method == "send" and body is not None and self.followed.class_of(body, self.frame) == _HTTP_RESPONSE:
            self._pass_on(call.line, body)
            return
        match method:
            case "json":
                schema = self.followed.schema(body, self.frame) if body is not None else {}
            case "text" | "html":
                schema = _TEXT
            case "redirect":
                given = argument(call, 1, "status")
                status = self.followed.statuses(given, self.frame) if given is not None else (302,)
                headers["Location"] = {"type": "string", "format": "uri-reference"}
            case "stream" | "file":
                if method == "file" and status == (200,):
                    # As the request's conditions and ranges have it (RFC 9110, sections 13 and 14).
                    status = (200, 206)
                    self._answered(call.line, (304, 416), None)
                given = argument(call, 1, "content_type")
                media = self._media(given) if given is not None else media
                schema = _contents(media)
            case "sse":
                item = self._event(body)
            case _ if body is not None:
                media, schema = self._sent(body)
            case _:
                pass
        if media is not None and self.state.media is not None and method != "sse":
            media = self.state.media
            schema = schema if method == "json" else _contents(media)
        bare = tuple(each for each in status if each in _NO_BODY)
        if bare:
            self._answered(call.line, bare, None, headers=headers)
        if bare != status or not status:
            rest = tuple(each for each in status if each not in bare)
            self._answered(call.line, rest, media, schema, item, headers)

    def _pass_on(self, line: int, sent: Expression) -> None:
        """`res.send(http.Response(…))`: known as far as it is made here."""
        value = self.followed.bound(sent, self.frame)
        made, frame = (value.expression, value.frame) if value is not None else (sent, self.frame)
        match made:
            case CallExpr(callee=RefExpr(fullname=name)) if name == _HTTP_RESPONSE:
                how = ""
            case CallExpr(callee=MemberExpr(expr=RefExpr(fullname=name), name=how)) if name == _HTTP_RESPONSE:
                pass
            case _:
                self._open(line, "a response is passed on, and which is not known. Make it here to have it described")
                return
        assert frame is not None
        body, status, given = (argument(made, at, name) for at, name in ((0, "body"), (99, "status"), (99, "headers")))
        media: str | None = None
        schema: Schema | None = None
        headers: dict[str, Schema] = {}
        otherwise: tuple[int, ...] = (200,)
        match how:
            case "from_json":
                media, schema = "application/json", self.followed.schema(made.args[0], frame) if made.args else {}
            case "redirect":
                status, otherwise = argument(made, 1, "status"), (302,)
                headers["Location"] = {"type": "string", "format": "uri-reference"}
            case _ if body is not None:
                media, schema = self._sent(body)
            case _:
                pass
        for key, content in given.items if isinstance(given, DictExpr) else []:
            if not isinstance(key, StrExpr):
                continue
            if key.value.lower() == "content-type" and media is not None:
                media = self._media(content)
                schema = schema if how == "from_json" else _contents(media)
            else:
                headers[key.value] = _TEXT
        statuses = self.followed.statuses(status, frame) if status is not None else otherwise
        self._answered(line, statuses, media, schema, None, headers)

    def _sent(self, body: Expression) -> tuple[str | None, Schema | None]:
        """Return the content that `res.send(body)` sends."""
        if isinstance(self.followed.type_of(body, self.frame), NoneType):
            return None, None
        match self.followed.class_of(body, self.frame):
            case "builtins.str":
                return "text/plain", _TEXT
            case "builtins.bytes" | "builtins.bytearray" | "builtins.memoryview":
                return "application/octet-stream", _contents("application/octet-stream")
            case other:
                return "*/*", {"$unknown": other or "the body sent"}

    def _event(self, events: Expression | None) -> Schema:
        """One event of a stream: its data, and its name and id where it is an `Event(…)`."""
        type_ = self.followed.type_of(events, self.frame) if events is not None else None
        bases = type_.type.mro if isinstance(type_, Instance) else []
        base = next((base for base in bases if base.fullname == "typing.AsyncIterable"), None)
        if not isinstance(type_, Instance) or base is None:
            return _event_of({"$unknown": "the events of a stream"})
        given = get_proper_type(map_instance_to_supertype(type_, base).args[0])
        if not isinstance(given, Instance) or given.type.fullname != _EVENT:
            return _event_of(self.followed.schemas.of(given))
        made = list(self._made_events(events))
        if not made:
            return _event_of({"$unknown": "the data of an Event: yield it where it is made, or yield the data itself"})
        whole = [
            _event_of(
                *(
                    self.followed.schema(each, frame) if (each := argument(call, 99, name)) is not None else None
                    for name in ("data", "event", "id")
                )
            )
            for call, frame in made
        ]
        return whole[0] if len(whole) == 1 else {"anyOf": whole}

    def _made_events(self, events: Expression | None) -> Iterator[tuple[CallExpr, Frame]]:
        """The `Event(…)` that the function behind a stream yields."""
        call, frame = events, self.frame
        if (value := self.followed.bound(call, frame)) is not None:
            call, frame = value.expression, value.frame or frame
        if not isinstance(call, CallExpr):
            return
        for target in self.followed.targets(call.callee, frame) or ():
            if isinstance(target.node, FuncDef):
                inside = self.followed.enter(target, *self.followed.arguments(call, frame))
                for each in _yielded(target.node.body):
                    if isinstance(each, CallExpr) and getattr(each.callee, "fullname", "") == _EVENT:
                        yield each, inside

    # -- requests

    def _read(
        self, line: int, part: str, name: str | None = None, schema: Schema | None = None, *, required: bool = False
    ) -> None:
        """Something is read of the request, with the errors of reading it."""
        self.effects.append(Read(path=self.path, line=line, part=part, name=name, schema=schema, required=required))
        if part == "json":
            self._refuse(error(400, "Invalid JSON"), line)
            if not self.state.limited:
                self._refuse(error(413, "Payload Too Large"), line)
        if part == "form" and schema is None:
            for refused in (error(400), error(413), error(415, "Unsupported Media Type")):
                self._refuse(refused, line)
        if schema is not None and "-" not in part and self._may_fail(part, schema):
            self._refuse(NOT_FOUND if part == "params" else INVALID, line)

    def _may_fail(self, part: str, schema: Schema) -> bool:
        """Return True if a value that is read into a type can be wrong. A string is never wrong in a query."""
        if part == "json":
            return schema != {}
        facts = self.followed.schemas.classes.get(schema.get("$class", ""))
        return facts is None or any(map(_is_demanding, facts.fields))

    def _request(self, call: CallExpr, callee: MemberExpr, receiver: str) -> None:
        method = callee.name
        if receiver == REQUEST and method in _BODIES:
            typed = method == "json" and bool(call.args)
            schema = self.followed.structured(call, self.frame) if typed else None
            self._read(call.line, method, schema=self._in_its_envelope(call, schema) if schema is not None else None)
            return
        if receiver == REQUEST and method == "require_match":
            self._requires_match(call)
            return
        if receiver == REQUEST and method == "header":
            where, method = "header", "get"
        elif receiver == REQUEST and method == "signed_cookie":
            where, method = "cookie", "get"
        else:
            where = self._place(callee.expr, receiver)
        if not where or not call.args:
            return
        if method == "parse":
            part = {"header": "headers"}.get(where, where)
            self._read(call.line, part, schema=self.followed.structured(call, self.frame))
        elif method in ("get", "get_all", "text", "file") and where != "params":
            name = self._text(call.args[0])
            if name is not None:
                kind: Schema = _contents("application/octet-stream") if method == "file" else _TEXT
                schema = {"type": "array", "items": kind} if method == "get_all" else kind
                self._read(call.line, f"{where}-name", name, schema)

    def _in_its_envelope(self, call: CallExpr, schema: Schema) -> Schema:
        """The body whose member `req.json(T, key="…")` reads."""
        given = argument(call, 99, "key")
        if given is None or constant(given) == (None,):
            return schema
        key = self._text(given)
        if key is None:
            return {"$unknown": "the key of req.json(…). Give a constant"}
        return {"type": "object", "properties": {key: schema}, "required": [key]}

    def _text(self, expression: Expression) -> str | None:
        """The constant that an expression is."""
        known = self.followed.schema(expression, self.frame).get("const", constant_fold_expr(expression, ""))
        return known if isinstance(known, str) else None

    def _requires_match(self, call: CallExpr) -> None:
        """`req.require_match(etag)`: the client has seen the version it changes, or is refused."""
        given = argument(call, 1, "required")
        required = constant(given) if given is not None else (False,)
        self._read(call.line, "header-name", "If-Match", _TEXT)
        self._refuse(error(412, "Precondition Failed"), call.line)
        if required != (False,):
            self._refuse(error(428, "Precondition Required"), call.line)

    def _place(self, expression: Expression, receiver: str) -> str:
        """Return the part of a request that an expression is: `req.headers`, `req.cookies`, or a query kept in a
        name.
        """
        if receiver in _PLACES:
            return _PLACES[receiver]
        if isinstance(expression, NameExpr):
            value = self.followed.bound(expression, self.frame)
            inner = value.expression if value is not None and value.frame is self.frame else None
            return self._place(inner, "") if inner is not None else ""
        if isinstance(expression, MemberExpr) and self.followed.class_of(expression.expr, self.frame) == REQUEST:
            return {"headers": "header", "cookies": "cookie", "query": "query"}.get(expression.name, "")
        return ""

    def _index(self, expression: IndexExpr) -> None:
        receiver = self.followed.class_of(expression.base, self.frame)
        where = self._place(expression.base, receiver)
        name = self._text(expression.index) if where not in ("", "params") else None
        if name is not None:
            required = where != "form" or self.followed.class_of(expression, self.frame) != ""
            self._read(expression.line, f"{where}-name", name, _TEXT, required=required)
        if where != "params" and (failure := _LOOKUPS.get("core" if where else receiver)):
            self._fails(failure, expression.line)

    def _contains(self, expression: ComparisonExpr) -> None:
        """`"draft" in req.query` asks for a parameter."""
        for operator, left, right in zip(
            expression.operators, expression.operands, expression.operands[1:], strict=False
        ):
            where = (
                self._place(right, self.followed.class_of(right, self.frame)) if operator in ("in", "not in") else ""
            )
            name = self._text(left) if where not in ("", "params") else None
            if name is not None:
                self._read(expression.line, f"{where}-name", name)

    # -- errors of Python's own

    def _fails(self, name: str, line: int) -> None:
        """An error of Python's own, which may have a handler."""
        info = self.followed.lookup(name)
        if info is not None:
            for raised in self.followed.by_type(Instance(info, [])):
                self._refuse(raised, line)

    def _divides(self, expression: OpExpr) -> None:
        divided = self.followed.class_of(expression.left, self.frame)
        if divided in ("builtins.int", "builtins.float") and not constant_fold_expr(expression.right, ""):
            self._fails("builtins.ZeroDivisionError", expression.line)

    def _may_refuse(self, call: CallExpr) -> None:
        """A call of Python's own that fails for some texts."""
        callee = call.callee
        if not isinstance(callee, RefExpr) or not call.args:
            return
        name = callee.fullname
        if (
            isinstance(callee, MemberExpr)
            and isinstance(callee.expr, RefExpr)
            and isinstance(callee.expr.node, TypeInfo)
        ):
            name = f"{callee.expr.fullname}.{callee.name}"
        made = callee.node
        failure = "builtins.ValueError" if isinstance(made, TypeInfo) and made.is_enum else OF_PYTHON.get(name)
        number = self.followed.class_of(call.args[0], self.frame) in ("builtins.int", "builtins.float", "builtins.bool")
        if failure is not None and not (number and name.startswith("builtins.")):
            self._fails(failure, call.line)

    # -- calls

    def _goes_to(self, call: CallExpr) -> None:
        callee = call.callee
        if isinstance(callee, SuperExpr):
            above = self.owner.mro[1:] if self.owner is not None else []
            owner = next((base for base in above if callee.name in base.names), None)
            node = owner.names[callee.name].node if owner is not None else None
            if node is not None and not (callee.name == "__init__" and self._is_error_class()):
                me = (
                    self.frame.values.get(self.frame.node.arguments[0].variable)
                    if isinstance(self.frame.node, FuncDef) and self.frame.node.arguments
                    else None
                )
                found = self.followed.defined(node, None, (me,) if me is not None else ())
                self._goes_into(found or (), call)
            return
        node = callee.node if isinstance(callee, RefExpr) else None
        if isinstance(callee, RefExpr) and callee.fullname in _PAGED:
            self._paged(call, _PAGED[callee.fullname])
        elif isinstance(node, TypeInfo):
            self._makes(call, node)
            if not self.followed.is_program(node.fullname):
                self._hands_on(call)
        elif isinstance(node, Var) and self.followed.class_of(callee, self.frame) == _AUTHENTICATION:
            self._authenticates(call, node)
        else:
            found = self.followed.targets(callee, self.frame)
            if found:
                self._goes_into(found, call)
            else:
                self._leaves(call, found)

    def _is_error_class(self) -> bool:
        return self.owner is not None and any(base.fullname == "builtins.BaseException" for base in self.owner.mro)

    def _goes_into(self, targets: Sequence[Target], call: CallExpr | None = None) -> None:
        """A call of one of several functions."""
        given, named = self.followed.arguments(call, self.frame) if call is not None else ([], {})
        start, ends = self.state, list[State]()
        for target in targets:
            state = start.copy()
            if target.rest is not None:
                self._goes_on(target.rest, given, state, call, ends)
            else:
                ends.append(self.reader.call(target, given, named, self.effects, state, self.current))
        self.state = _merged(ends) if ends else start

    def _goes_on(
        self,
        rest: Callable[[State], State],
        given: Sequence[Value],
        state: State,
        call: CallExpr | None,
        ends: list[State],
    ) -> None:
        """`next()` runs the rest of the chain, `next(err)` raises; in an error handler, both go on with the error."""
        if given and call is not None and constant(call.args[0]) != (None,):
            self._raise(call.args[0])
        elif self.current and not given:
            for raised in self.current:
                self.effects.append(raised)
        else:
            ends.append(rest(state))

    def _leaves(self, call: CallExpr, found: Sequence[Target] | None) -> None:
        """A call of a function that is not the program's, or that is not known."""
        callee = call.callee
        name = callee.fullname if isinstance(callee, RefExpr) else ""
        receiver = self.followed.class_of(callee.expr, self.frame) if isinstance(callee, MemberExpr) else ""
        is_ours = (name or receiver).startswith("core.") or receiver.startswith("core.")
        sends = any(self.followed.class_of(given, self.frame) == RESPONSE for given in call.args)
        shown = getattr(callee, "name", "this")
        if (sends and not is_ours and not name.startswith("builtins.")) or found is None:
            self._open(
                call.line,
                f"what {shown}(…) does here is not known. Call a function of the program, or say what is answered: "
                "describe(handler, answers={…})",
                sends=sends,
            )
        if not is_ours or shown != "url_for":  # by which the handler is named, and not called
            self._hands_on(call)

    def _hands_on(self, call: CallExpr) -> None:
        """A function that is handed to a library may be called."""
        for given in call.args:
            if isinstance(given, RefExpr | CallExpr | LambdaExpr) and self.followed.is_function(given, self.frame):
                self._goes_into(self.followed.targets(given, self.frame) or ())

    def _authenticates(self, call: CallExpr, variable: Var) -> None:
        """A call of one of the framework's authenticators: the function answers as it does."""
        facts = self.reader.application.authenticators.get(variable.fullname)
        if facts is None:
            return
        required = not facts.optional
        self.effects.append(
            Read(path=self.path, line=call.line, part="security", name=variable.fullname, required=required)
        )
        for answer in facts.answers:
            if isinstance(answer, Raise):
                self._refuse(answer, call.line)

    def _paged(self, call: CallExpr, which: str) -> None:
        """`page_of(req)` and `cursor_of(req, T)`: the part of a list that the query asks for."""
        limit: Schema = {"type": "integer", "minimum": 1}
        for word, key, otherwise in (("most", "maximum", 100), ("limit", "default", 20)):
            given = argument(call, 99, word)
            known = self.followed.schema(given, self.frame).get("const") if given is not None else otherwise
            if known is not None:
                limit[key] = known
        part: Schema = {"type": "integer", "minimum": 1, "default": 1} if which == "page" else _TEXT
        for name, schema in ((which, part), ("limit", limit)):
            self._read(call.line, "query-name", name, schema)
        self._refuse(INVALID, call.line)

    def _makes(self, call: CallExpr, made: TypeInfo) -> None:
        """A class that is called."""
        owner = Value(self.followed, call, self.frame)
        for method in ("__init__", "__attrs_post_init__", "__post_init__"):
            symbol = made.get(method)
            if symbol is not None and symbol.node is not None:
                found = self.followed.defined(symbol.node, None, (owner,)) or ()
                self._goes_into(found, call if method == "__init__" else None)


def _is_demanding(field: Field) -> bool:
    return field.default is None or {key: part for key, part in field.schema.items() if key != "description"} != _TEXT


def _event_of(data: Schema | None, event: Schema | None = None, id: Schema | None = None) -> Schema:
    """A server-sent event: the fields that it has, each a text."""
    properties: dict[str, Schema] = {}
    if data is not None:
        is_plain = data.get("type") == "string" or isinstance(data.get("const"), str)
        is_json = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
        properties["data"] = _TEXT if is_plain else is_json
    for name, schema in (("event", event), ("id", id)):
        if schema is not None:
            properties[name] = schema if {"const", "enum"} & schema.keys() else _TEXT
    return {"type": "object", "properties": properties, "required": list(properties)}


def _yielded(body: Block) -> Iterator[Expression]:
    for statement in body.body:
        if isinstance(statement, ExpressionStmt) and isinstance(statement.expr, YieldExpr) and statement.expr.expr:
            yield statement.expr.expr
        for block in blocks(statement):
            yield from _yielded(block)


def _makes_error(call: CallExpr) -> bool:
    made = call.callee.node if isinstance(call.callee, RefExpr) else None
    return isinstance(made, TypeInfo) and any(base.fullname == CORE_ERROR for base in made.mro)


def _is_capture(pattern: object) -> bool:
    return isinstance(pattern, AsPattern) and pattern.pattern is None


def _matches(pattern: object, raised: Raise) -> bool | None:
    match pattern:
        case ClassPattern(class_ref=RefExpr(fullname=name)):
            always = not pattern.positionals and all(map(_is_capture, pattern.keyword_values))
            return (True if always else None) if name in raised.classes else False
        case AsPattern(pattern=None):
            return True
        case AsPattern(pattern=inner):
            return _matches(inner, raised)
        case OrPattern(patterns=parts):
            found = [_matches(part, raised) for part in parts]
            return True if True in found else None if None in found else False
        case _:
            return None


def _named(kinds: Expression) -> list[str]:
    """The full names of the classes of `except (A, B)` and `isinstance(x, (A, B))`."""
    if isinstance(kinds, OpExpr):
        return [*_named(kinds.left), *_named(kinds.right)]
    named = kinds.items if isinstance(kinds, TupleExpr) else [kinds]
    return [kind.fullname for kind in named if isinstance(kind, RefExpr)]


def _contents(media: str | None) -> Schema:
    """A body that is made elsewhere than in `res.json`: of JSON that is a text already, nothing is known."""
    if media is not None and is_json(media):
        return {"$unknown": "JSON that is written as text: give res.json the value"}
    is_known = media is not None and "*" not in media
    return {"type": "string", "contentMediaType": media if is_known else "application/octet-stream"}
