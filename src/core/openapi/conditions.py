"""Conditions: which errors are left in a branch, whether one on the method holds, and which are about the target alone.

The method of a request is that of the operation which is read, so that a branch for other methods is none of its own.
A condition on the path, the address or the environment lets some requests of an operation pass a guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
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
from mypy.patterns import AsPattern, ClassPattern, OrPattern, Pattern, ValuePattern

from core.openapi.facts import Answer, Effect, Raise, Read
from core.openapi.failures import is_caught
from core.openapi.here import Here
from core.openapi.program import Program
from core.openapi.reads import REQUEST
from core.openapi.trees import parts_of
from core.openapi.values import Frame

Errors: TypeAlias = Mapping[Node, tuple[Raise, ...]]
"""The errors that names stand for."""
_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
_TARGET: Final = frozenset(["method", "path", "url", "env"])
"""The attributes of a request that say where it goes, and not who sends it."""
_DEEPEST: Final = 8


# The method and the target -------------------------------------------------------------------------------------------


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
            if not _is_method(here, left) or not here.method:
                return None
            several = here.program.members(right, here.frame) if "in" in op else [(right, here.frame)]
            known = [here.text(item) for item, _ in several] or [None]
            return None if None in known else (here.method in known) == (op in ("==", "in"))
        case _:
            return None


def _is_method(here: Here, expression: Expression) -> bool:
    match here.program.origin(expression, here.frame).place:
        case (MemberExpr(name="method", expr=owner), frame):
            return here.program.class_of(owner, frame) == REQUEST and "method" not in here.program.changed
        case _:
            return False


def compared(subject: Expression, pattern: Pattern) -> Expression:
    """A case of `match` as a condition; the subject stands for what is not read."""
    match pattern:
        case ValuePattern(expr=value):
            return ComparisonExpr(["=="], [subject, value])
        case ClassPattern(class_ref=kind):
            whole = ComparisonExpr(["isinstance"], [subject, kind])  # Python has no such operator
            always = not pattern.positionals and all(map(is_capture, pattern.keyword_values))
            return whole if always else OpExpr("and", whole, subject)
        case AsPattern(pattern=inner) if inner is not None:
            return compared(subject, inner)
        case OrPattern(patterns=parts):
            return reduce(partial(OpExpr, "or"), (compared(subject, part) for part in parts))
        case _:
            return subject


def is_capture(pattern: Pattern | None) -> bool:
    """True for a pattern that takes anything."""
    return isinstance(pattern, AsPattern) and pattern.pattern is None


def is_about_target(here: Here, expression: Expression) -> bool:
    """True for a condition, or for a part of one, that asks where a request goes, and nothing of who sends it."""
    match expression:
        case UnaryExpr(op="not", expr=inner):
            return is_about_target(here, inner)
        case OpExpr(op="and" | "or", left=left, right=right):
            return is_about_target(here, left) or is_about_target(here, right)
        case _ if holds(here, expression) is None:
            asked = {*_asked(here.program, expression, here.frame, 0)}
            return bool(asked) and asked <= _TARGET
        case _:
            return False


def _asked(program: Program, expression: Expression, frame: Frame, depth: int) -> Iterator[str]:
    """The attributes of a request that an expression asks; "" for a value that comes from elsewhere."""
    match expression:
        case MemberExpr(expr=owner, name=name) if program.class_of(owner, frame) == REQUEST:
            yield name
        case NameExpr(node=node) if program.class_of(expression, frame) != REQUEST:
            place = program.origin(expression, frame).place
            if place is not None and place[0] is not expression and depth < _DEEPEST:
                yield from _asked(program, *place, depth + 1)
            elif any(node in at.values or node in at.notes.assigned for at in frame.chain() if at.outer is not None):
                yield ""
        case CallExpr() if depth < _DEEPEST and (returned := program.returned(expression, frame)):
            for each, inside in returned:
                yield from _asked(program, each, inside, depth + 1)
        case _:
            for part in parts_of(expression):
                if isinstance(part, Expression):
                    yield from _asked(program, part, frame, depth)


def refuses(effects: list[Effect]) -> bool:
    """True where one of the effects is that somebody without credentials is refused."""
    return any(
        each.required and each.part == "security" if isinstance(each, Read) else 401 in each.status
        for each in effects
        if isinstance(each, Raise | Answer | Read)
    )


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
