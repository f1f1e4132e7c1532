"""The object that `with` gives a name: yielded by a generator of the program, or returned by a class's `__enter__`.

An expression is followed only where the one `yield` shows it, an annotation wherever there is one. Context managers of
other packages are not known.
"""

from __future__ import annotations

import ast
from typing import Final, NamedTuple

from core.program.annotations import arguments_of
from core.program.modules import ClassScope, FunctionScope, Local, Scope
from core.program.reader import Reader

_MAKERS: Final = frozenset(["contextlib.asynccontextmanager", "contextlib.contextmanager"])
_ENTERS: Final = ("__aenter__", "__enter__")
_GENERATORS: Final = frozenset(
    f"{kind}{name}" for kind in ("", "Async") for name in ("Generator", "Iterable", "Iterator")
)
_DEEPEST: Final = 20
_MANAGERS: Final = frozenset(["AbstractAsyncContextManager", "AbstractContextManager"])


class Entered(NamedTuple):
    """The object that a `with` gives a name: its expression, its annotation, or the class it is an object of."""

    value: tuple[ast.expr, Scope] | None = None
    annotation: tuple[ast.expr, Scope] | None = None
    class_: ClassScope | None = None


def entered(reader: Reader, name: ast.expr, scope: Scope) -> Entered | None:
    """Everything known of the object under a name that a `with` binds."""
    found = reader.modules.entered(name, scope)
    if found is None:
        return None
    context, scope = reader.modules.value(*found)
    if not isinstance(context, ast.Call):
        resolved = reader.modules.resolve(context, scope)
        if not isinstance(resolved, Local) or resolved.definition.annotation is None:
            return None
        class_ = reader.class_of(resolved.definition.annotation, resolved.scope)
        return _of_class(reader, class_) if class_ is not None else None
    class_ = reader.class_of(context.func, scope)
    if class_ is not None:
        return _of_class(reader, class_)
    function = reader.function(context.func, scope)
    return _of_function(reader, function) if function is not None else None


def _of_class(reader: Reader, class_: ClassScope) -> Entered | None:
    """The object that `async with` an object of a class gives: what the annotation of its method says."""
    method = next(filter(None, (reader.method(class_, name) for name in _ENTERS)), None)
    if method is None or method.node.decorator_list or method.node.returns is None:
        return None
    returns, where = reader.written_out(method.node.returns, method.parent)
    if reader.modules.outside(returns, where).endswith(".Self"):
        return Entered(class_=class_)
    return Entered(annotation=(returns, where), class_=reader.class_of(returns, where))


def _of_function(reader: Reader, function: FunctionScope) -> Entered | None:
    """The object that a generator yields once, and what the annotation says of it."""
    makers = [reader.maker(decorator, function.parent) for decorator in function.node.decorator_list]
    annotation: tuple[ast.expr, Scope] | None = None
    if function.node.returns is not None:
        returns, where = reader.written_out(function.node.returns, function.parent)
        name = reader.modules.outside(returns, where).rpartition(".")[2]
        if isinstance(returns, ast.Subscript) and name in (_GENERATORS if makers else _MANAGERS):
            annotation = next(iter(arguments_of(returns)), returns.slice), where
    class_ = reader.class_of(*annotation) if annotation is not None else None
    if not makers:
        return Entered(annotation=annotation, class_=class_) if annotation is not None else None
    if len(makers) != 1 or makers[0] not in _MAKERS:
        return None
    yields = [node.value for node in function.nodes.of(ast.Yield)]
    value = (yields[0], function) if len(yields) == 1 and yields[0] is not None else None
    if value is not None and _is_entered(reader, *value):
        value = None
    return Entered(value, annotation, class_)


def _is_entered(reader: Reader, expression: ast.expr, scope: Scope) -> bool:
    """Return True for the part of an object that is itself given by a `with`: it might be given by this one."""
    for _ in range(_DEEPEST):
        expression, scope = reader.modules.value(expression, scope)
        if isinstance(expression, ast.Attribute):
            expression = expression.value
        elif isinstance(expression, ast.Call):
            expression = expression.func
        else:
            break
    return reader.modules.entered(expression, scope) is not None
