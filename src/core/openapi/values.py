"""What is handed from one function of a program to another: values, the functions that calls go to, and their frames.

These are data. What a value is, is worked out elsewhere: its type in `frames.py`, the functions behind it in
`calls.py`, the errors in `raised.py`, its JSON in `program.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, ParamSpec, TypeAlias, TypeVar

import attrs
from mypy.nodes import Expression, FuncDef, LambdaExpr, MypyFile, Node
from mypy.types import Type, TypeVarId

from core.openapi.facts import Held, Raise
from core.openapi.trees import Notes
from core.validation.schema import Schema

DEEPEST: Final = 30
Place: TypeAlias = tuple[Expression, "Frame"]
"""An expression and the call that it is in, where it is worked out."""


class Home(NamedTuple):
    """Where a function is: the function around it, and its module."""

    around: FuncDef | None
    module: Frame


@attrs.define(eq=False)
class Frame:
    """One call of a function: its arguments, the types that its type variables stand for, and the frame around it."""

    node: FuncDef | LambdaExpr | MypyFile | None
    notes: Notes
    outer: Frame | None = None
    values: dict[Node, Value] = attrs.Factory(dict[Node, "Value"])
    types: dict[TypeVarId, Type] = attrs.Factory(dict[TypeVarId, Type])
    errors: Mapping[Node, tuple[Raise, ...]] = attrs.Factory(dict[Node, tuple[Raise, ...]])
    """The errors that names stand for at the statement that is read."""
    turn: Mapping[Node, Value] = attrs.Factory(dict[Node, "Value"])
    """What the names of loops stand for, where each turn is read by itself."""

    def chain(self) -> Iterator[Frame]:
        """The frame, and those around it."""
        at: Frame | None = self
        while at is not None:
            yield at
            at = at.outer

    @property
    def module(self) -> MypyFile:
        """The module that its function is in."""
        *_, last = self.chain()
        assert isinstance(last.node, MypyFile)
        return last.node


class Rows(NamedTuple):
    """The rows of a SQL statement: their columns, and whether there is one for certain."""

    columns: Mapping[str, Schema]
    certain: bool


@attrs.frozen(eq=False)
class Target:
    """A function that a call goes to, with the arguments that it has already. `rest` is the rest of a chain instead,
    which the reader of statements runs.
    """

    node: FuncDef | LambdaExpr | None
    frame: Frame | None = None
    given: tuple[Value, ...] = ()
    named: Mapping[str, Value] = attrs.Factory(dict[str, "Value"])
    rest: Callable[[Any], Any] | None = None

    def with_arguments(self, given: Sequence[Value], named: Mapping[str, Value] = MappingProxyType({})) -> Target:
        """The same with more of them."""
        return attrs.evolve(self, given=(*self.given, *given), named={**self.named, **named})


@attrs.frozen(eq=False, kw_only=True)
class Value:
    """What an argument or a variable is: an expression in a frame, or as much as is known of it otherwise."""

    expression: Expression | None = attrs.field(default=None, kw_only=False)
    frame: Frame | None = attrs.field(default=None, kw_only=False)
    type: Type | None = None
    targets: tuple[Target, ...] | None = ()
    errors: tuple[Raise, ...] = ()
    parts: tuple[Value, ...] | None = None
    """What `*args` has."""
    keys: Mapping[str, Value] | None = None
    """What `**kwargs` has."""
    held: Held | None = None

    @property
    def place(self) -> Place | None:
        """Where it is written."""
        return (self.expression, self.frame) if self.expression is not None and self.frame is not None else None


_T = TypeVar("_T")
_P = ParamSpec("_P")


def bounded(otherwise: Any) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Answer a question of the program (`program.py`) with `otherwise` where one leads to another without end."""

    def around(ask: Callable[_P, _T]) -> Callable[_P, _T]:
        def answer(*asked: _P.args, **named: _P.kwargs) -> _T:
            program: Any = asked[0]
            program.depth += 1
            try:
                found: _T = ask(*asked, **named) if program.depth <= DEEPEST else otherwise
                return found
            finally:
                program.depth -= 1

        return answer

    return around


def once(ask: Callable[[Any, Value], _T]) -> Callable[[Any, Value], _T]:
    """Ask a question about a value once, and keep the answer."""

    def answer(program: Any, value: Value) -> _T:
        key = (ask, value)
        if key not in program.answers:
            program.answers[key] = ask(program, value)
        found: _T = program.answers[key]
        return found

    return answer
