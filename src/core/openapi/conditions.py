"""Conditions: which errors are left in a branch, and whether one on the method holds.

The method of a request is that of the operation which is read, so that a branch for other methods is none of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial, reduce
from operator import eq, ge, gt, le, lt, ne
from typing import Final, TypeAlias

from mypy.nodes import (
    AssignmentExpr,
    CallExpr,
    ComparisonExpr,
    EllipsisExpr,
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
from mypy.patterns import AsPattern, ClassPattern, OrPattern, Pattern, SequencePattern, SingletonPattern, ValuePattern

from core.openapi.facts import Raise, Way
from core.openapi.failures import is_caught
from core.openapi.here import Here
from core.openapi.reads import REQUEST
from core.openapi.trees import constant
from core.openapi.values import Value

Errors: TypeAlias = Mapping[Node, tuple[Raise, ...]]
"""The errors that names stand for."""
_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip


# The method ----------------------------------------------------------------------------------------------------------


def holds(here: Here, expression: Expression) -> bool | None:
    """Whether a condition on the method of the request holds; None for any other, and where the method is not known."""
    return _truth(expression, partial(_of_method, here))


def _truth(expression: Expression, part: Callable[[Expression], bool | None]) -> bool | None:
    """Whether a condition holds, by what is known of its parts; None where they do not decide it."""
    match expression:
        case UnaryExpr(op="not", expr=inner):
            found = _truth(inner, part)
            return None if found is None else not found
        case OpExpr(op="and" | "or" as op):
            both = [_truth(each, part) for each in (expression.left, expression.right)]
            deciding = op == "or"
            return deciding if deciding in both else None if None in both else not deciding
        case _:
            return part(expression)


def _of_method(here: Here, expression: Expression) -> bool | None:
    match expression:
        case ComparisonExpr(operators=["==" | "!=" | "in" | "not in" as op], operands=[left, right]):
            if "in" not in op and not _is_method(here, left):
                left, right = right, left
            if not _is_method(here, left) or not here.reader.method:
                return None
            several = here.program.members(right, here.frame) if "in" in op else [Value(right, here.frame)]
            known = [*map(here.program.constants, several)]
            is_one = any((here.reader.method,) in each for each in known)
            return is_one == (op in ("==", "in")) if known and all(len(each) == 1 for each in known) else None
        case _:
            return None


def _is_method(here: Here, expression: Expression) -> bool:
    return here.attribute_of(REQUEST, expression) == "method" and "method" not in here.program.changed


def compared(subject: Expression, pattern: Pattern) -> Expression:
    """A case of `match` as a condition; an ellipsis stands for what is not read."""
    match pattern:
        case ValuePattern(expr=value):
            return ComparisonExpr(["=="], [subject, value])
        case ClassPattern(class_ref=kind):
            whole = ComparisonExpr(["isinstance"], [subject, kind])  # Python has no such operator
            always = not pattern.positionals and all(map(is_capture, pattern.keyword_values))
            return whole if always else OpExpr("and", whole, EllipsisExpr())
        case AsPattern(pattern=inner) if inner is not None:
            return compared(subject, inner)
        case OrPattern(patterns=parts):
            return reduce(partial(OpExpr, "or"), (compared(subject, part) for part in parts))
        case SingletonPattern(value=None):
            return UnaryExpr("not", subject)
        case SequencePattern(patterns=parts) if isinstance(subject, TupleExpr) and len(subject.items) == len(parts):
            return reduce(partial(OpExpr, "and"), map(compared, subject.items, parts))
        case _:
            return EllipsisExpr()


def is_capture(pattern: Pattern | None) -> bool:
    """True for a pattern that takes anything."""
    return isinstance(pattern, AsPattern) and pattern.pattern is None


# What is read --------------------------------------------------------------------------------------------------------


def ways_of(asked: Callable[[Expression], tuple[Way, bool]], condition: Expression, outcome: bool) -> frozenset[Way]:
    """What is known of what was read where a condition holds, or does not: of each way in which it may.

    `asked` says what is there where a value is true, and whether it is missing where that is not.
    """
    of = partial(ways_of, asked)
    match condition:
        case UnaryExpr(op="not", expr=inner):
            return of(inner, not outcome)
        case AssignmentExpr(value=value):
            return of(value, outcome)
        case OpExpr(op="and" | "or" as op, left=left, right=right):
            both = frozenset(one | more for one in of(left, op == "and") for more in of(right, outcome))
            return both | of(left, op == "or") if outcome == (op == "or") else both
        case ComparisonExpr(operators=["is" | "is not" | "==" | "!=" as op], operands=operands):
            values = [each for each in operands if constant(each) != (None,)]
            if len(values) == 1:
                return of(values[0], outcome == (op in ("is not", "!=")))
            there, is_sent = Way().union(*(asked(each)[0] for each in operands)), False
            outcome = outcome == (op in ("is", "=="))
        case ComparisonExpr(operators=["in" | "not in" as op], operands=[name, _]):
            there, outcome = asked(condition)[0], outcome == (op == "in")
            is_sent = constant(name) is not None and len(there) == 1
        case _:
            there, is_sent = asked(condition)
    missing = Way((part, name, "-") for part, name, _ in there if is_sent)
    return frozenset([there if outcome else missing])


# Errors --------------------------------------------------------------------------------------------------------------


def parted(errors: Errors, condition: Expression) -> tuple[Errors, Errors]:
    """The errors that names may stand for where a condition holds, and where it does not."""
    taken: dict[Node, tuple[Raise, ...]] = {}
    left: dict[Node, tuple[Raise, ...]] = {}
    for node, possible in errors.items():
        found = [(raised, _truth(condition, partial(_of_error, node, raised))) for raised in possible]
        if any(each is not None for _, each in found):
            taken[node] = tuple(raised for raised, each in found if each is not False)
            left[node] = tuple(raised for raised, each in found if each is not True)
    return taken, left


def joined(ends: Iterable[Errors]) -> Errors:
    """The errors that names may stand for where several ways meet."""
    found: dict[Node, dict[int, Raise]] = {}
    for errors in ends:
        for node, possible in errors.items():
            found.setdefault(node, {}).update({id(each): each for each in possible})
    return {node: tuple(each.values()) for node, each in found.items()}


def _of_error(node: Node, raised: Raise, expression: Expression) -> bool | None:
    """Whether a condition holds if a name stands for an error."""
    match expression:
        case (
            CallExpr(callee=NameExpr(fullname="builtins.isinstance"), args=[NameExpr(node=subject), kinds])
            | ComparisonExpr(operators=["isinstance"], operands=[NameExpr(node=subject), kinds])
        ) if subject is node:
            return is_caught(raised, named_classes(kinds))
        case ComparisonExpr(
            operators=[op],
            operands=[MemberExpr(name="status", expr=NameExpr(node=subject)), IntExpr(value=bound)],
        ) if subject is node and op in _COMPARISONS and len(raised.status) == 1:
            return _COMPARISONS[op](raised.status[0], bound)
        case _:
            return None


def named_classes(kinds: Expression) -> list[str]:
    """The full names of the classes of `except (A, B)` and `isinstance(x, (A, B))`."""
    if isinstance(kinds, OpExpr):
        return [*named_classes(kinds.left), *named_classes(kinds.right)]
    named = kinds.items if isinstance(kinds, TupleExpr) else [kinds]
    return [kind.fullname for kind in named if isinstance(kind, RefExpr)]
