"""The errors that come of what a program calls: Python's own, those of bindings, and of a row that is not there."""

from __future__ import annotations

from typing import Final

from mypy.constant_fold import constant_fold_expr
from mypy.nodes import CallExpr, Expression, RefExpr, TypeInfo

from core.openapi.facts import Raise
from core.openapi.failures import BINDINGS, NOT_FOUND, OF_PYTHON
from core.openapi.here import Here
from core.openapi.trees import argument, called, constant

_STATEMENT: Final = "core.bindings.d1.D1PreparedStatement"


def division(here: Here, operator: str, divided: Expression, by: Expression) -> None:
    """A division may be by zero."""
    is_number = operator in ("/", "//", "%") and here.class_of(divided) in ("builtins.int", "builtins.float")
    if is_number and not constant_fold_expr(by, ""):
        here.fails("builtins.ZeroDivisionError", by.line)


def of_python(here: Here, call: CallExpr) -> None:
    """A call of Python's own that fails for some texts."""
    callee = call.callee
    if not isinstance(callee, RefExpr) or not call.args:
        return
    name, made = called(call), callee.node
    failure = "builtins.ValueError" if isinstance(made, TypeInfo) and made.is_enum else OF_PYTHON.get(name)
    number = here.class_of(call.args[0]) in ("builtins.int", "builtins.float", "builtins.bool")
    if failure is not None and not (number and name.startswith("builtins.")):
        here.fails(failure, call.line)


def of_binding(here: Here, call: CallExpr, method: str, receiver: str) -> None:
    """A call of a binding, which an error handler may make an answer of."""
    if receiver == _STATEMENT and method == "one":
        _requires_row(here, call)
    if failure := BINDINGS.get(receiver.rpartition(".")[0]):
        bases = (failure, "core.errors.bindings.BindingError", "builtins.Exception", "builtins.BaseException")
        here.refuse(Raise(classes=bases), call.line)


def _requires_row(here: Here, call: CallExpr) -> None:
    """`statement.one(T)`: no row is a 404, or the error that is handed over. An INSERT and a count have one."""
    given = argument(call, 99, "error")
    if here.followed.has_one_row(call, here.frame):
        return
    if given is None or constant(given) == (None,):
        here.refuse(NOT_FOUND, call.line)
    else:
        here.raises(given)
