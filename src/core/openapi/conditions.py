"""Conditions on errors: which of the errors that a name may stand for are left in a branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Final, TypeAlias

from mypy.nodes import (
    CallExpr,
    ComparisonExpr,
    Expression,
    IntExpr,
    MemberExpr,
    NameExpr,
    Node,
    OpExpr,
    RefExpr,
    TupleExpr,
    UnaryExpr,
)
from mypy.patterns import AsPattern, ClassPattern, OrPattern, Pattern

from core.openapi.facts import Raise

Errors: TypeAlias = Mapping[Node, tuple[Raise, ...]]
"""The errors that names stand for."""
Truth: TypeAlias = Callable[[Node, Raise], "bool | None"]
"""Whether a condition holds if a name stands for an error; None where that is not known."""
_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip


def parted(errors: Errors, truth: Truth) -> tuple[Errors, Errors]:
    """The errors that names may stand for where a condition holds, and where it does not."""
    taken: dict[Node, tuple[Raise, ...]] = {}
    left: dict[Node, tuple[Raise, ...]] = {}
    for node, possible in errors.items():
        found = [(raised, truth(node, raised)) for raised in possible]
        if any(each is not None for _, each in found):
            taken[node] = tuple(raised for raised, each in found if each is not False)
            left[node] = tuple(raised for raised, each in found if each is not True)
    return taken, left


def condition(expression: Expression) -> Truth:
    """The condition of an `if`."""

    def truth(node: Node, raised: Raise) -> bool | None:
        match expression:
            case CallExpr(callee=NameExpr(fullname="builtins.isinstance"), args=[NameExpr(node=subject), kinds]):
                return not set(raised.classes).isdisjoint(named_classes(kinds)) if subject is node else None
            case UnaryExpr(op="not", expr=inner):
                found = condition(inner)(node, raised)
                return None if found is None else not found
            case OpExpr(op="and" | "or" as op):
                both = [condition(part)(node, raised) for part in (expression.left, expression.right)]
                deciding = op == "or"
                return deciding if deciding in both else None if None in both else not deciding
            case ComparisonExpr(
                operators=[op],
                operands=[MemberExpr(name="status", expr=NameExpr(node=subject)), IntExpr(value=bound)],
            ):
                compare = _COMPARISONS.get(op)
                if subject is not node or compare is None or len(raised.status) != 1:
                    return None
                return compare(raised.status[0], bound)
            case _:
                return None

    return truth


def matching(subject: Expression, pattern: Pattern, guard: Expression | None) -> Truth:
    """The condition of a `case`."""

    def truth(node: Node, raised: Raise) -> bool | None:
        if not isinstance(subject, NameExpr) or subject.node is not node:
            return None
        found = _matches(pattern, raised)
        return found if not found or guard is None else condition(guard)(node, raised)

    return truth


def is_capture(pattern: Pattern | None) -> bool:
    """Return True for a pattern that matches everything."""
    return isinstance(pattern, AsPattern) and pattern.pattern is None


def _matches(pattern: Pattern, raised: Raise) -> bool | None:
    match pattern:
        case ClassPattern(class_ref=RefExpr(fullname=name)):
            always = not pattern.positionals and all(map(is_capture, pattern.keyword_values))
            return (True if always else None) if name in raised.classes else False
        case AsPattern(pattern=None):
            return True
        case AsPattern(pattern=inner) if inner is not None:
            return _matches(inner, raised)
        case OrPattern(patterns=parts):
            found = [_matches(part, raised) for part in parts]
            return True if True in found else None if None in found else False
        case _:
            return None


def named_classes(kinds: Expression) -> list[str]:
    """The full names of the classes of `except (A, B)` and `isinstance(x, (A, B))`."""
    if isinstance(kinds, OpExpr):
        return [*named_classes(kinds.left), *named_classes(kinds.right)]
    named = kinds.items if isinstance(kinds, TupleExpr) else [kinds]
    return [kind.fullname for kind in named if isinstance(kind, RefExpr)]
