"""One call of a function while it is read: its frame, what has happened, and the response as it is by now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs
from mypy.nodes import Expression, MemberExpr

from core.openapi.facts import TEXT, Answer, ApplicationFacts, Effect, Open, Raise, Read, Way
from core.openapi.program import Program
from core.openapi.values import Frame, Target, Value
from core.validation.schema import Schema

RESPONSE: Final = "core.response.Response"
_ABOUT_THE_BODY: Final = ("content-", "location", "etag", "last-modified")
_MOST_WAYS: Final = 16


@attrs.define
class State:
    """What has happened so far, and the response as it is by now."""

    effects: list[Effect] = attrs.Factory(list[Effect])
    """Those of all ways so far, in one list."""
    status: tuple[int, ...] = (200,)
    media: str | None = None
    """The content type that was staged, which wins over that of the sender."""
    headers: dict[str, Schema] = attrs.Factory(dict[str, Schema])
    sent: list[Answer | Raise] = attrs.Factory(list["Answer | Raise"])
    """The answers that a header which is staged now belongs to as well, and the errors that were handed on to be
    answered.
    """
    late: tuple[str, int] | None = None
    """Where a status was staged behind what was sent."""
    limited: bool = False
    """True behind a middleware that has its own bound on bodies."""
    branch: tuple[str, int] = ("", 0)
    """The condition that leads here."""
    ways: frozenset[Way] = frozenset([frozenset()])
    """What the ways that lead here have read of the request."""

    def on_error(self, raised: Raise) -> Raise:
        """An error with the headers that are staged; those about a body are dropped with it."""
        staged = {name: known for name, known in self.headers.items() if not name.lower().startswith(_ABOUT_THE_BODY)}
        return attrs.evolve(raised, headers={**raised.headers, **staged, **raised.headers}) if staged else raised

    def behind(self, other: State) -> State:
        """The same after a call that was read by itself, and was `other` at its end."""
        self.effects += [self.on_error(each) if isinstance(each, Raise) else each for each in other.effects]
        for answer in self.sent if other.headers else ():
            answer.headers.update({**other.headers, **answer.headers})
        return attrs.evolve(
            self,
            headers={**self.headers, **other.headers},
            branch=max(self.branch, other.branch),
            ways=_few(one | more for one in self.ways for more in other.ways),
        )

    def know(self, known: Iterable[Way]) -> None:
        """Go on where one of several conditions on what was read holds. What contradicts it was another way."""
        self.ways = _few(both for way in self.ways for more in known for both in _both(way, more)) or self.ways

    def copy(self) -> State:
        """The same, to go on from."""
        return attrs.evolve(self, headers=dict(self.headers), sent=list(self.sent))


def merged(states: Sequence[State]) -> State:
    """The response where several ways meet."""
    statuses = [status for state in states for status in state.status]
    known = all(state.status for state in states)
    headers = {name: schema for state in states for name, schema in state.headers.items()}
    sent = {id(answer): answer for state in states for answer in state.sent}
    media = {state.media for state in states}
    return State(
        states[0].effects,
        tuple(dict.fromkeys(statuses)) if known else (),
        media.pop() if len(media) == 1 else None,
        headers,
        list(sent.values()),
        next((state.late for state in states if state.late is not None), None),
        any(state.limited for state in states),
        max((state.branch for state in states if frozenset() in state.ways), default=("", 0)),
        _few(way for state in states for way in state.ways),
    )


def _both(way: Way, more: Way) -> Iterator[Way]:
    """A way on which more is known; none where that cannot be: one of those with a `?` is there."""
    there, missing = ({each[:2] for each in way if each[2] == sign} for sign in "+-")
    some = {each for each in more if each[2] == "?"}
    clashes = any(each[:2] in (missing if each[2] == "+" else there) for each in more - some)
    if not clashes and (not some or ({each[:2] for each in way} - missing) & {each[:2] for each in some}):
        yield way | (more - some)


def _few(ways: Iterable[Way]) -> frozenset[Way]:
    """The ways; the shortest where they are many, which are enough to see one past a guard, and all that is read."""
    each = frozenset(ways)
    if len(each) <= _MOST_WAYS:
        return each
    shortest = [way for way in each if not any(other < way for other in each)]
    chosen = sorted(shortest, key=lambda way: (len(way), sorted(way)))[: _MOST_WAYS - 1]
    return frozenset([*chosen, Way((part, name, "") for way in each for part, name, _ in way)])


class Reading(ABC):
    """What the calls of an application have in common: they are read one in another."""

    program: Program
    application: ApplicationFacts
    method: str
    """That of the request, "" where it may be any."""

    @abstractmethod
    def call(self, target: Target, state: State, current: tuple[Raise, ...]) -> State:
        """Read a call of a function, with all of its arguments."""


@attrs.define(eq=False)
class Here:
    """A call of a function, at one of its statements."""

    reader: Reading
    frame: Frame
    state: State
    current: tuple[Raise, ...] = ()
    """The errors that are being handled: a bare `raise` raises them again."""

    @property
    def program(self) -> Program:
        """The program that is read."""
        return self.reader.program

    @property
    def effects(self) -> list[Effect]:
        """What has happened so far."""
        return self.state.effects

    @property
    def path(self) -> str:
        """The file that it is in."""
        return self.frame.module.path

    def raises(self, expression: Expression, *, passed: bool = False) -> None:
        """An error is raised, or handed to `next`."""
        for raised in self.program.errors(expression, self.frame):
            # One that was raised before is still where it was.
            at = raised if raised.path else attrs.evolve(raised, path=self.path, line=expression.line)
            if passed:
                self.hand_on(at)
            else:
                self.effects.append(self.state.on_error(at))

    def hand_on(self, raised: Raise) -> None:
        """An error goes to the following error handler. What is staged from now on is on its answer too."""
        passed = self.state.on_error(raised)
        passed = attrs.evolve(passed, passed=True, headers=dict(passed.headers))
        self.effects.append(passed)
        self.state.sent, self.state.late = [*self.state.sent, passed], None

    def read(
        self, line: int, part: str, *names: str | None, schema: Schema | None = TEXT, required: bool = False
    ) -> None:
        """What has these names is read of a part of the request."""
        for name in names:
            read = Read(path=self.path, line=line, part=part, name=name, schema=schema, required=required)
            self.effects.append(read)
            if name is not None:
                seen = {(part, name, "+" if required else "")}
                self.state.ways = frozenset(way | seen if way or part != "scheme" else way for way in self.state.ways)

    def refuse(self, raised: Raise, line: int) -> None:
        """An error of the framework's own at a line."""
        self.effects.append(self.state.on_error(attrs.evolve(raised, path=self.path, line=line)))

    def open(self, line: int, reason: str, *, sends: bool = True, answers: bool = True) -> None:
        """What happens at a line is not known."""
        self.effects.append(Open(path=self.path, line=line, reason=reason, sends=sends, answers=answers))

    def fails(self, name: str, line: int) -> None:
        """An error of Python's own, which may have a handler."""
        info = self.program.lookup(name)
        if info is not None:
            self.refuse(self.program.error_of(info), line)

    def class_of(self, expression: Expression) -> str:
        """The full name of an expression's class; "" where it has no single one."""
        return self.program.class_of(expression, self.frame)

    def attribute_of(self, cls: str, expression: Expression) -> str:
        """The name of the attribute of an object of a class that an expression is, else ""."""
        match self.program.origin(Value(expression, self.frame)).place:
            case (MemberExpr(expr=owner, name=name), at) if self.program.class_of(owner, at) == cls:
                return name
            case _:
                return ""

    def schema(self, expression: Expression) -> Schema:
        """The JSON of an expression."""
        return self.program.schema(expression, self.frame)

    def text(self, expression: Expression) -> str | None:
        """The constant that an expression is."""
        found = self.texts(expression)
        return found[0] if len(found) == 1 else None

    def texts(self, expression: Expression) -> list[str]:
        """The texts that an expression may be; none where one is not known."""
        found = [each for (each,) in self.program.constants(Value(expression, self.frame))]
        texts = [each for each in found if isinstance(each, str)]
        return texts if len(texts) == len(found) else []

    def keys(self, mapping: Expression) -> list[str] | None:
        """The keys of a mapping; None where they are not known."""
        schema = self.schema(mapping)
        parts: list[Schema] = [part for part in schema.get("anyOf", [schema]) if part != {"type": "null"}]
        is_known = all("properties" in part and "additionalProperties" not in part for part in parts)
        return [name for part in parts for name in part["properties"]] if is_known else None
