"""Conditions: which errors are left in a branch, whether one on the method holds, and which are about the target alone.

The method of a request is that of the operation which is read, so that a branch for other methods is none of its own.
A condition on the path, the address or the environment lets some requests of an operation pass a guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Final, TypeAlias

from mypy.nodes import (
    CallExpr,
    ComparisonExpr,
    Expression,
    IntExpr,
    ListExpr,
    MemberExpr,
    NameExpr,
    Node,
    OpExpr,
    RefExpr,
    SetExpr,
    TupleExpr,
    UnaryExpr,
)
from mypy.patterns import AsPattern, ClassPattern, OrPattern, Pattern, ValuePattern

from core.openapi.facts import Answer, Effect, Raise, Read
from core.openapi.followed import Followed
from core.openapi.here import Here
from core.openapi.reads import REQUEST
from core.openapi.trees import called, parts_of
from core.openapi.values import Frame

Errors: TypeAlias = Mapping[Node, tuple[Raise, ...]]
"""The errors that names stand for."""
Truth: TypeAlias = Callable[[Node, Raise], "bool | None"]
"""Whether a condition holds if a name stands for an error; None where that is not known."""
_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
_TARGET: Final = frozenset(["method", "path", "url", "env"])
"""The attributes of a request that say where it goes, and not who sends it."""
_DEEPEST: Final = 8


# The method and the target -------------------------------------------------------------------------------------------


def holds(here: Here, expression: Expression | None) -> bool | None:
    """Whether a condition on the method of the request holds; None for any other, and where the method is not known."""
    match expression:
        case UnaryExpr(op="not", expr=inner):
            found = holds(here, inner)
            return None if found is None else not found
        case OpExpr(op="and" | "or" as op):
            both = [holds(here, part) for part in (expression.left, expression.right)]
            deciding = op == "or"
            return deciding if deciding in both else None if None in both else not deciding
        case ComparisonExpr(operators=["==" | "!=" | "in" | "not in" as op], operands=[left, right]):
            if "in" not in op and not _is_method(here, left):
                left, right = right, left
            if not _is_method(here, left) or not here.method.name:
                return None
            known = _texts(here, right) if "in" in op else [here.text(right)]
            if None in known:
                return None
            here.method.asked += 1
            return (here.method.name in known) == (op in ("==", "in"))
        case _:
            return None


def _is_method(here: Here, expression: Expression) -> bool:
    match here.frames.origin(expression, here.frame).place:
        case (MemberExpr(name="method", expr=owner), frame):
            return here.frames.class_of(owner, frame) == REQUEST and "method" not in here.frames.changed
        case _:
            return False


def _texts(here: Here, several: Expression) -> list[str | None]:
    """The texts of a tuple, list or set that is written out; None is one that is not known."""
    match here.frames.origin(several, here.frame, fixed=True).place:
        case (TupleExpr(items=items) | ListExpr(items=items) | SetExpr(items=items), _):
            return [here.text(item) for item in items]
        case (CallExpr(args=[inner]) as call, _) if called(call) in ("builtins.frozenset", "builtins.set"):
            return _texts(here, inner)
        case _:
            return [None]


def compared(subject: Expression, pattern: Pattern) -> Expression | None:
    """A case of `match` as a condition, where it is for one constant or several; None for any other."""
    match pattern:
        case ValuePattern(expr=value):
            return ComparisonExpr(["=="], [subject, value])
        case OrPattern(patterns=[first, *rest]):
            whole = compared(subject, first)
            for each in rest:
                other = compared(subject, each)
                whole = OpExpr("or", whole, other) if whole is not None and other is not None else None
            return whole
        case _:
            return None


def is_about_target(here: Here, expression: Expression | None) -> bool:
    """True for a condition, or for a part of one, that asks where a request goes, and nothing of who sends it."""
    match expression:
        case None:
            return False
        case UnaryExpr(op="not", expr=inner):
            return is_about_target(here, inner)
        case OpExpr(op="and" | "or", left=left, right=right):
            return is_about_target(here, left) or is_about_target(here, right)
        case _ if holds(here, expression) is None:
            asked = {*_asked(here.followed, expression, here.frame, 0)}
            return bool(asked) and asked <= _TARGET
        case _:
            return False


def _asked(followed: Followed, expression: Expression, frame: Frame, depth: int) -> Iterator[str]:
    """The attributes of a request that an expression asks; "" for a value that comes from elsewhere."""
    match expression:
        case MemberExpr(expr=owner, name=name) if followed.frames.class_of(owner, frame) == REQUEST:
            yield name
        case NameExpr(node=node) if followed.frames.class_of(expression, frame) != REQUEST:
            place = followed.frames.origin(expression, frame).place
            if place is not None and place[0] is not expression and depth < _DEEPEST:
                yield from _asked(followed, *place, depth + 1)
            elif any(node in at.values or node in at.notes.assigned for at in frame.chain() if at.outer is not None):
                yield ""
        case CallExpr() if depth < _DEEPEST and (returned := followed.calls.returned(expression, frame)):
            for each, inside in returned:
                yield from _asked(followed, each, inside, depth + 1)
        case _:
            for part in parts_of(expression):
                if isinstance(part, Expression):
                    yield from _asked(followed, part, frame, depth)


def refuses(effects: list[Effect]) -> bool:
    """True where one of the effects is that somebody without credentials is refused."""
    return any(
        each.required and each.part == "security" if isinstance(each, Read) else 401 in each.status
        for each in effects
        if isinstance(each, Raise | Answer | Read)
    )


# Errors --------------------------------------------------------------------------------------------------------------


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


def condition(expression: Expression, node: Node, raised: Raise) -> bool | None:
    """Whether a condition holds if a name stands for an error."""
    match expression:
        case CallExpr(callee=NameExpr(fullname="builtins.isinstance"), args=[NameExpr(node=subject), kinds]):
            return not set(raised.classes).isdisjoint(named_classes(kinds)) if subject is node else None
        case UnaryExpr(op="not", expr=inner):
            found = condition(inner, node, raised)
            return None if found is None else not found
        case OpExpr(op="and" | "or" as op):
            both = [condition(part, node, raised) for part in (expression.left, expression.right)]
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


def case(subject: Expression, pattern: Pattern, guard: Expression | None, node: Node, raised: Raise) -> bool | None:
    """Whether a case of `match` is taken if a name stands for an error."""
    if not isinstance(subject, NameExpr) or subject.node is not node:
        return None
    found = _matches(pattern, raised)
    return found if not found or guard is None else condition(guard, node, raised)


def is_capture(pattern: Pattern | None) -> bool:
    """True for a pattern that takes anything."""
    return isinstance(pattern, AsPattern) and pattern.pattern is None


def _matches(pattern: Pattern, raised: Raise) -> bool | None:
    match pattern:
        case ClassPattern(class_ref=RefExpr(fullname=name)):
            always = not pattern.positionals and all(map(is_capture, pattern.keyword_values))
            return (True if always else None) if name in raised.classes else False
        case AsPattern(pattern=inner):
            return True if inner is None else _matches(inner, raised)
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
