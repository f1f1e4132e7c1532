"""The interface through which the rules read a program, and the values that pass it.

Two front ends implement it: mypy's nodes (`core.mypy_plugin.index`) and plain syntax trees (`core.analysis.syntax`).
`NodeT` is an expression or a function of a front end; the rules only hand it back. A front end answers None (or
nothing) where it does not know something for certain, and then nothing is reported.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from core.analysis import METHODS
from core.config.checks import Code

if TYPE_CHECKING:
    from core.sql.parameters import Given
    from core.sql.rows import Kind, RowField
    from core.sql.statement import Statement

__all__ = [
    "Calls",
    "FrontEnd",
    "MethodCall",
    "Names",
    "Problem",
    "QueryFrontEnd",
    "REGISTERS",
    "ROUTES",
    "Registration",
]

NodeT = TypeVar("NodeT")
ROUTES: Final = METHODS | {"on"}
REGISTERS: Final = ROUTES | {"use", "queue", "scheduled"}


class Problem(NamedTuple, Generic[NodeT]):
    """A finding at a node."""

    code: Code
    message: str
    node: NodeT


class MethodCall(NamedTuple, Generic[NodeT]):
    """`receiver.name(*arguments)`. `counted` is False where an argument is starred or named."""

    receiver: NodeT
    name: str
    arguments: Sequence[NodeT]
    counted: bool


class Registration(Generic[NodeT]):
    """A call that registers something on a router: `router.method(*arguments)`.

    `router` identifies the router within its module, `where` is the way to the call through the blocks of the module,
    so that of two calls it can be told whether one always runs before the other. `starred`: arguments are not all
    known.
    """

    # No attrs class: mypy's plugin makes them also where it needs attrs for nothing else, which takes longer to import.
    def __init__(
        self,
        call: NodeT,
        router: Hashable,
        method: str,
        where: tuple[int, ...],
        arguments: Sequence[NodeT],
        starred: bool = False,
        decorated: NodeT | None = None,
    ) -> None:
        self.call = call
        self.router = router
        self.method = method
        self.where = where
        self.arguments = arguments
        self.starred = starred
        self.decorated = decorated

    @property
    def is_route(self) -> bool:
        """True if it registers a route."""
        return self.method in ROUTES

    @property
    def handlers(self) -> Sequence[NodeT]:
        """The arguments without the path."""
        return self.arguments[{"on": 2, "use": 0}.get(self.method, 1) :]


class Names(Protocol[NodeT]):
    """The questions that names and literals alone answer."""

    def string_of(self, node: NodeT, /) -> str | None:
        """The string that an expression is for certain: a literal, a constant, a sum of those."""
        ...

    def value_of(self, node: NodeT, /) -> NodeT | None:
        """The value that a name was given, where it was given exactly one."""
        ...

    def maker_of(self, node: NodeT, /) -> str:
        """The full name of the function that a call calls; an empty string for anything else."""
        ...

    def argument_of(self, call: NodeT, name: str, /, *, first: bool = False) -> NodeT | None:
        """The argument of a call that is given by name, or, where it is the `first`, without one."""
        ...

    def router_of(self, node: NodeT, /) -> Hashable | None:
        """The identity of the router that an expression may be."""
        ...


class FrontEnd(Names[NodeT], Protocol[NodeT]):
    """The questions about registrations, for which types or annotations are read."""

    def is_app(self, registration: Registration[NodeT], /) -> bool:
        """Return True if something is registered on an application, which nothing mounts, and not on a router."""
        ...

    def shown(self, node: NodeT, /) -> str:
        """A handler as messages call it: `show`, `limit()`."""
        ...

    def demanded(self, node: NodeT, /) -> int | None:
        """The number of positional arguments that a callable demands."""
        ...

    def parameters_read(self, node: NodeT, /) -> Sequence[str]:
        """The names that a handler's own annotation asks for: `Request[Env, User, Literal["id"]]`."""
        ...


class Calls(Protocol[NodeT]):
    """The questions that lead from a call to its receiver."""

    def value_of(self, node: NodeT, /) -> NodeT | None:
        """As in `Names`."""
        ...

    def method_call(self, node: NodeT, /) -> MethodCall[NodeT] | None:
        """A call of a method in its parts."""
        ...


class QueryFrontEnd(Calls[NodeT], Protocol[NodeT]):
    """The questions about statements of SQL."""

    def string_of(self, node: NodeT, /) -> str | None:
        """As in `Names`."""
        ...

    def items_of(self, node: NodeT, /) -> Sequence[NodeT]:
        """The items of a list or tuple that is written out."""
        ...

    def statement_of(self, prepare: NodeT, /) -> tuple[str, Statement] | None:
        """Return the binding's name of a `prepare("…")`, and its statement."""
        ...

    def scans_of(self, prepare: NodeT, /) -> Sequence[str]:
        """The tables that the statement of a `prepare("…")` reads without an index, where the project wants to know."""
        ...

    def row_of(self, node: NodeT, /) -> tuple[str, Sequence[RowField]] | None:
        """The class that rows become and its fields."""
        ...

    def given_of(self, node: NodeT, /) -> Given | None:
        """The values that an argument of `bind` may have."""
        ...

    def scalar_of(self, node: NodeT, /) -> tuple[str, frozenset[Kind]] | None:
        """Another type that a column becomes: how it is shown, and the kinds of values that it takes."""
        ...
