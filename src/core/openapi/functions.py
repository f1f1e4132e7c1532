"""What happens on the way of a request: every function that it runs through, and the error handlers behind it.

A route is read as it runs: each middleware with the rest of the chain as its `next`, the handler with its arguments,
and each function that is called with what that call hands over (`statements.py`). The status, the headers and the
content type that were put on the response go along, and so do the errors that are caught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Final, TypeAlias

import attrs
from mypy.types import CallableType, Instance

from core.openapi.facts import (
    TEXT,
    Answer,
    ApplicationFacts,
    Effect,
    Held,
    MiddlewareFacts,
    Open,
    Passed,
    Raise,
    RouteFacts,
)
from core.openapi.failures import CORE_ERROR, UNEXPECTED, default_body
from core.openapi.here import RESPONSE, Reading, State
from core.openapi.program import Program
from core.openapi.reads import REQUEST
from core.openapi.sent import tagged
from core.openapi.statements import Statements
from core.openapi.values import Target, Value
from core.validation.schema import Schema

_Rest: TypeAlias = Callable[[State], State]
"""The rest of a chain."""
_DEEPEST: Final = 30
_MOST: Final = 5000
"""Calls of one route that are read: a program whose calls branch without end has an answer, too."""
_NONE: Final = 1000
_TOO_DEEP: Final = "the calls go too deep to be followed here. Say what is answered: describe(handler, answers={…})"


class Reader(Reading):
    """The routes and error handlers of one application, as requests meet them."""

    def __init__(self, program: Program, application: ApplicationFacts) -> None:
        self.program = program
        self.application = application
        self.method = ""
        self._key: Callable[[Value], object] = cache(self._key_of)
        self._stack: list[object] = []
        """The calls that are being read."""
        self._known: dict[object, State] = {}
        """The ends of calls that have no response to send on."""
        self._partial: list[object] = []
        self._cut: int = _NONE
        self._calls = 0
        """The number of calls that were read for one route."""
        self._handled: dict[object, list[Effect]] = {}
        self.staged: dict[str, Schema] = {}
        """The headers on the response where the handler of the last route begins, as an error leaves them there."""
        self._others: list[Effect] = []
        """What happens to a path that the last route does not match."""
        self.met: set[str] = set()
        """The classes of errors that found their handlers."""

    def route(self, route: RouteFacts, unmatched: Sequence[Effect] = ()) -> list[Effect]:
        """Everything that may happen to a request of a route; each error with the error handlers around it. `unmatched`
        is what happens behind the same middleware to a path that it does not match.
        """
        known: dict[tuple[int, str], State] = {}

        def run(index: int, state: State) -> State:
            key = (index, repr((state.status, state.media, sorted(state.headers), state.limited)))
            if key in known:
                # The same as before, in the same place: only the answers belong to this branch too.
                return attrs.evolve(known[key], sent=[*state.sent, *known[key].sent])
            effects, mark = state.effects, len(state.effects)
            if index == len(route.middleware):
                self.staged |= state.on_error(UNEXPECTED).headers
                others = [_behind(state, each) for each in unmatched]
                self._others += others
                state = self._entry(route.handler, state)
                state.sent = [*state.sent, *(each for each in others if isinstance(each, Answer))]
                effects.extend(others)
                levels = route.errors
            else:
                state = self._middleware(route.middleware[index], state, partial(run, index + 1))
                levels = route.middleware[index].errors
            for at, each in enumerate(effects[mark:], mark):
                if isinstance(each, Raise) and each.levels is None:
                    effects[at] = attrs.evolve(each, levels=levels)
            known[key] = state
            return state

        self._calls, self.staged, self._others = 0, {}, []
        end = run(0, State())
        return [*end.effects, *_late(end)]

    def unmatched(self, found: Sequence[Effect]) -> list[Effect]:
        """The same for a path that no route has: what is `found` there, behind the middleware of every path."""
        self.route(RouteFacts("*", "/*", Held("constant"), "", self.application.middleware), found)
        return self._others

    def alone(self, held: Held, raised: Raise | None = None, *, status: int = 200) -> list[Effect]:
        """The effects of one function, with nothing before and behind it; `raised` is what an error handler is for."""
        raised_key = repr(raised and attrs.evolve(raised, path="", line=0, levels=None))
        key = (held.name, held.place, status, raised_key, self.method)
        if key not in self._handled:
            start = State(status=(status,))
            self._handled[key] = start.effects

            def rest(state: State) -> State:
                path, line = state.branch
                state.effects.append(Passed(path=path, line=line, ways=state.ways))
                return state

            start.effects += _late(self._entry(held, start, rest, raised))
        return self._handled[key]

    def may_return_none(self, held: Held) -> bool:
        """True for a function of the program that is seen to return None."""
        target = self.program.target_of(held)
        if target is None:
            return False
        frame = self.program.enter(target)
        found = [self.program.schema(each, frame) for each in frame.notes.returned]
        return any({"type": "null"} in each.get("anyOf", (each,)) for each in found)

    def _middleware(self, middleware: MiddlewareFacts, state: State, rest: _Rest) -> State:
        state.effects += map(state.on_error, middleware.answers)
        state.headers.update(dict.fromkeys(middleware.headers, TEXT))
        state.limited = state.limited or middleware.limits_bodies
        if middleware.function is not None:
            return self._entry(middleware.function, state, rest)
        return tagged(rest(state)) if middleware.tags else rest(state)

    def _entry(self, held: Held, state: State, rest: _Rest | None = None, raised: Raise | None = None) -> State:
        """A call of a function that the application registered, with what the framework hands to it; `raised` is for an
        error handler. `rest` runs behind one that does not take it.
        """
        target = self.program.target_of(held)
        if target is None:
            reason = (
                f"a function outside the program answers here, {held.name}: its answers are not known. Write the function "
                "in the program and call that one in it, or say what it answers: describe(handler, answers={…})"
            )
            state.effects.append(Open(path=held.place[0], line=held.place[1], reason=reason))
            return state
        takes = _positional(target)
        given = [self.program.value_of(Held("object", name)) for name in (REQUEST, RESPONSE)]
        if rest is not None and takes > 2:
            given.append(Value(targets=(Target(None, rest=rest),)))
        if raised is not None:
            info = self.program.lookup(raised.classes[0])
            given.insert(0, Value(type=Instance(info, []) if info is not None else None, errors=(raised,)))
        end = self.call(target.with_arguments(given[:takes]), state, (raised,) if raised is not None else ())
        return rest(end) if rest is not None and takes <= 2 else end

    def call(self, target: Target, state: State, current: tuple[Raise, ...]) -> State:
        """Read a call of a function, with all of its arguments. Of one without a response the end is kept."""
        if target.node is None:
            return state
        key = self._target_key(target)
        if key in self._stack:
            self._cut = min(self._cut, self._stack.index(key))
            return state  # one that calls itself has nothing new to say
        around = target.frame.values if target.frame is not None else {}
        if any(map(self._leads_on, (*target.given, *target.named.values(), *around.values()))):
            return self._read(target, key, state, current)
        cache_key = key, state.limited, self.method
        if cache_key not in self._known:
            end = self._read(target, key, State(limited=state.limited), current)
            end.effects = list({id(each): each for each in end.effects}.values())
            self._known[cache_key] = end
            if self._cut < len(self._stack):  # it lacks what a call around it does, which is not read to its end
                self._partial.append(cache_key)
            else:
                self._cut = _NONE
                for each in self._partial:
                    self._known.pop(each, None)
                self._partial.clear()
        return state.behind(self._known[cache_key])

    def _read(self, target: Target, key: object, state: State, current: tuple[Raise, ...]) -> State:
        assert target.node is not None
        frame = self.program.enter(target)
        found = {variable: self.program.errors_of(value) for variable, value in frame.values.items()}
        frame.errors = {variable: errors for variable, errors in found.items() if errors}
        here = Statements(self, frame, state, current)
        self._calls += 1
        if len(self._stack) > _DEEPEST or self._calls > _MOST:
            here.open(target.node.line, _TOO_DEEP)
            return state
        self._stack.append(key)
        state = here.run(target.node.body)
        self._stack.pop()
        return state

    def _leads_on(self, value: Value) -> bool:
        """True for what a call can answer with: the response, or the rest of the chain."""
        type_ = self.program.type_in(value)
        if value.parts is not None or (isinstance(type_, Instance) and type_.type.fullname == RESPONSE):
            return True
        return any(target.rest is not None for target in self.program.targets_of(value) or ())

    # -- keys: what the effects of a call depend on

    def _target_key(self, target: Target) -> object:
        around = target.frame.values if target.frame is not None else {}
        return (
            id(target.node if target.node is not None else target.rest),
            tuple((id(node), self._key(value)) for node, value in around.items()),
            tuple(map(self._key, target.given)),
            tuple((name, self._key(value)) for name, value in target.named.items()),
        )

    def _key_of(self, value: Value) -> object:
        inner = [*(value.parts or ()), *(value.keys or {}).values()]
        if inner or value.held is not None:
            return id(value.held), *map(self._key, inner)
        type_ = self.program.type_in(value)
        errors = [repr(attrs.evolve(each, path="", line=0, levels=None)) for each in self.program.errors_of(value)]
        if type_ is None or isinstance(type_, CallableType):
            return str(type_), *map(self._target_key, self.program.targets_of(value) or ()), *errors
        if isinstance(type_, Instance) and self.program.is_program(type_.type.fullname):
            # The attributes of an object were set where it was made.
            made = self.program.origin(value).expression
            return str(type_), id(made), *errors
        return str(type_), repr(self.program.schema_of(value)), *errors

    # -- errors

    def default(self, raised: Raise) -> Answer:
        """The answer to an error of one status that no error handler answers."""
        problem = self.application.problem_details
        media = "application/problem+json" if problem else "application/json"
        body = default_body(raised, raised.status[0], problem=problem)
        return Answer(status=raised.status, media_type=media, body=body)

    def answers(self, raised: Raise, tried: tuple[str, ...] = ()) -> Iterator[tuple[Raise, Answer | Open]]:
        """The answers to an error, as `core.dispatch.answers` chooses.

        Each comes with the error that it answers: an error handler may have raised another one.
        """
        levels = (*(raised.levels or ()), self.application.error_handlers)
        found = ((level[cls], cls) for level in levels for cls in raised.classes if cls in level)
        handler, cls = next(((held, cls) for held, cls in found if held.name not in tried), (None, ""))
        if handler is None:
            for status in raised.status:
                one = attrs.evolve(raised, status=(status,))
                yield one, self.default(one)
            if not raised.status and CORE_ERROR in raised.classes:
                reason = "the status of this error is not known. Give a number, or a Literal type"
                yield raised, Open(path=raised.path, line=raised.line, reason=reason, sends=False)
            return
        self.met.add(cls)
        for each in self.alone(handler, raised):
            if isinstance(each, Answer | Open):
                yield raised, each
            elif isinstance(each, Raise) and (CORE_ERROR in each.classes or each.passed):
                known = {**raised.headers, **each.headers}
                passed = attrs.evolve(each, levels=raised.levels, passed=False, headers=known)
                yield from self.answers(passed, (*tried, handler.name))
            elif isinstance(each, Raise) and each.classes == raised.classes:
                # The same error again: the following handler answers it.
                yield from self.answers(raised, (*tried, handler.name))


def _late(state: State) -> Iterator[Open]:
    """A status that was set after the answer."""
    if state.late is not None:
        reason = "the status is set behind what is sent, so which answer has it is not known. Set it before"
        yield Open(path=state.late[0], line=state.late[1], reason=reason)


def _behind(state: State, effect: Effect) -> Effect:
    """What happens to a path that no route matches, with the headers that the middleware before has staged."""
    match effect:
        case Answer():
            return attrs.evolve(effect, headers={**state.headers, **effect.headers})
        case Raise():
            return attrs.evolve(state.on_error(effect), levels=())
        case _:
            return effect


def _positional(target: Target) -> int:
    assert target.node is not None
    taken = [
        each for each in target.node.arguments if each.kind.is_positional() and each.variable.name not in target.named
    ]
    star = any(each.kind.is_star() for each in target.node.arguments)
    return 4 if star else len(taken) - len(target.given)
