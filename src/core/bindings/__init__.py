"""The bindings of a worker, as a handler sees them: a Protocol for each kind, which every engine of it derives from.

A Protocol carries the calls: a method marked `@binding_call` passes the hook of its binding, and runs the method of the
engine that has its name after an underscore. So signatures, overloads and promises are written once. A worker loads
this file while it starts; hooks are of `core.bindings.calls`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import filterfalse
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def as_type(value: Any, type_: Any, /) -> Any:
    """A value as `type_`, or as it came where that is None. Raises StructureError for one of another shape."""
    if type_ is None:
        return value
    from core.validation.structure import structure

    return structure(value, type_)


def binding_call(method: F, /) -> F:
    """Let the calls of an `async` method pass the hook of its instance, and run the engine's method.

    An engine is a `core.bindings.calls.Hookable`; its method has the name of this one after an underscore. It need not
    name the options of this one, which are checked here: the signature is written once.
    """
    name = method.__name__
    own = f"_{name}"
    code = method.__code__
    known = frozenset(code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount])

    @wraps(method)
    def call(self: Any, /, *args: Any, **options: Any) -> Any:
        run = getattr(self, own)
        if options and not known.issuperset(options):
            unknown = next(filterfalse(known.__contains__, options))
            raise TypeError(f"{run.__qualname__}() got an unexpected keyword argument {unknown!r}")
        hook = self._hook
        if hook is None:
            return run(*args, **options)
        return hook(name, args, options, lambda: run(*args, **options), target=self._call_target(), function=method)

    return cast("F", call)
