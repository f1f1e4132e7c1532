"""A call of another worker's or object's method, from the calling side.

A method is called by its own name on the other side, with its arguments in order: JavaScript knows no keyword
arguments. Where the class of the other side is known, keywords are put in their places; what has no place travels in
one last object under `KEYWORDS`, which our own side of the call takes apart again, with the span of the caller where
spans are collected.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from core.backends.raised import made_anew
from core.backends.workerd.conversion import bridge, error_class, error_parts, from_js, js_value, none_of, translated
from core.backends.workerd.spans import PARENT, parent_to_send
from core.errors import BindingError, BindingTypeError

KEYWORDS: Final = "__core_keywords__"

WHOLE: Final = "__core_raised__"
"""The property of JavaScript's error that has the arguments and the attributes of one of Python's."""


def rpc_method(stub: object, name: str, cls: object, errors: type[BindingError]) -> Callable[..., Awaitable[object]]:
    """The method `name` of the other side of `stub`, whose class is `cls` where that is known."""
    method = getattr(stub, name)

    async def call(*args: object, **keywords: object) -> object:
        try:
            outgoing = [js_value(value, classes=True) for value in _by_position(cls, name, args, keywords)]
        except BindingTypeError as error:
            raise error_class(errors, "TypeError")(f"{name}(): an argument cannot be copied: {error}") from None
        try:
            return from_js(await method(*outgoing), classes=True)
        except bridge().JsException as error:
            raise _raised(error, errors) from None

    return call


def _by_position(cls: Any, name: str, args: tuple[Any, ...], keywords: Mapping[str, object]) -> list[object]:
    """The arguments of a call in the order of the method's parameters, and after them what is ours, if anything is."""
    places, others = list(args), dict(keywords)
    method = getattr(cls, name, None) if keywords else None
    if method is not None:
        import inspect

        try:
            bound = inspect.signature(method).bind(None, *args, **keywords)
        except TypeError as error:
            raise BindingTypeError(f"{cls.__name__}.{name}(): {error}") from None
        places, others = list(bound.args[1:]), bound.kwargs
    parent = parent_to_send()
    # The other side takes the last object with such a key for ours: one of the application's is not the last.
    mistakable = bool(places) and isinstance(places[-1], dict) and KEYWORDS in places[-1]
    if others or parent or mistakable:
        places.append({KEYWORDS: others, PARENT: parent})
    return places


def _raised(error: Exception, errors: type[BindingError]) -> Exception:
    """Return the exception of a method as the same class, if that class is known here.

    Where its arguments and attributes have not come with it, it has to be made of one message.
    """
    name, message, _ = error_parts(error)
    head, colon, rest = message.partition(": ")
    if name == "Error" and colon and head.replace(".", "").isidentifier():
        # Names that JavaScript does not know arrive as the beginning of the message.
        name, message = head, rest
    module, _, cls_name = name.rpartition(".")
    if not module and cls_name not in _JS_ERRORS:
        module = "builtins"
    cls: object = getattr(sys.modules.get(module), cls_name, None) if module else None
    if isinstance(cls, type) and issubclass(cls, Exception):
        try:
            whole = none_of(getattr(error, WHOLE, None))
            made: Exception = cls(message) if whole is None else made_anew(cls, *from_js(whole, classes=True))
            return made
        except Exception:
            pass  # its constructor wants more than a message
    return translated(error, errors)


_JS_ERRORS: Final = frozenset({"Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError", "EvalError"})
