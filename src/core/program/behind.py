"""The functions of a program behind a callable that was registered: through partials, methods, objects and decorators.

What a decorator has kept is found by `__wrapped__`, else as the async functions among what it closes over or keeps as
attributes: a request may meet each of them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from core.explain.frames import is_own
from core.program.table import Function

_CORE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def is_kernels(file: str) -> bool:
    """Return True for what the kernel answers: devices, and the files of /proc and /sys."""
    return file.startswith(("/dev/", "/proc/", "/sys/")) and not file.startswith("/dev/shm/")  # a folder in memory


@lru_cache(None)
def real(file: str) -> str:
    """The path of a file as checks have it."""
    return os.path.realpath(file)


def functions_behind(given: Any) -> tuple[tuple[Function, ...], bool, bool]:
    """The functions behind a callable, the outermost first; whether one is found or it is the framework's; and whether
    a request calls the first of them itself, with no code of a package around it.
    """
    found: dict[Function, None] = {}
    seen: set[int] = set()
    todo: list[tuple[Any, int]] = [(getattr(given, "opens", given), 0)]
    outermost: str | None = None
    while todo:
        one, bound = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        code = getattr(one, "__code__", None)
        if hasattr(one, "__func__"):  # a method, or a staticmethod
            todo.append((one.__func__, bound + inspect.ismethod(one)))
        elif code is None and callable(getattr(one, "func", None)):  # functools.partial
            todo.append((one.func, bound + len(getattr(one, "args", ()))))
        elif code is None:
            # An object, and the functions that it keeps, as decorators written as classes do.
            call = getattr(one.__class__, "__call__", None)
            todo += [(call, bound + 1)] if hasattr(call, "__code__") else []
            todo += [(value, 0) for value in _attributes(one) if _is_step(value)]
        else:
            if is_own(code.co_filename):
                found[Function(real(code.co_filename), code.co_qualname, code.co_firstlineno, bound)] = None
            outermost = outermost or code.co_filename
            wrapped = getattr(one, "__wrapped__", None)
            if wrapped is not None:
                todo.append((wrapped, bound))
            else:
                todo += [(value, _own(value)) for value in _cells(one) if _is_step(value)]
    outermost = outermost or ""
    return tuple(found), bool(found) or outermost.startswith(_CORE), is_own(outermost)


def _is_step(value: object) -> bool:
    """Return True for an async function, also behind what wraps it."""
    if not callable(value) or isinstance(value, type):
        return False
    inner: Any = value
    while inspect.ismethod(inner) or callable(getattr(inner, "func", None)):
        inner = inner.__func__ if inspect.ismethod(inner) else inner.func
    call = getattr(inner.__class__, "__call__", None)
    return inspect.iscoroutinefunction(inspect.unwrap(inner)) or inspect.iscoroutinefunction(call)


def _own(function: object) -> int:
    """The arguments that whoever keeps a function gives it before those of a request: the object of a method."""
    return int(getattr(getattr(function, "__code__", None), "co_varnames", ())[:1] == ("self",))


def _attributes(one: object) -> Iterator[object]:
    yield from getattr(one, "__dict__", {}).values()
    for cls in type(one).__mro__:
        for name in getattr(cls, "__slots__", ()):
            yield getattr(one, name, None)


def _cells(function: Any) -> Iterator[object]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # not filled yet
