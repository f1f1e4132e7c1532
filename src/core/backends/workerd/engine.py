"""The beginning of every engine over the runtime's own objects: the JavaScript object, and the calls of its methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ClassVar, Final, TypeAlias

from core.backends.workerd.conversion import (
    bridge,
    error_class,
    from_js,
    js_fields,
    js_name,
    js_value,
    none_of,
    options,
    translated,
    unwrap,
)
from core.bindings.calls import BoundHook, Hookable
from core.errors import BindingError, BindingTypeError

JsMethod: TypeAlias = Any
"""A method of a Protocol, or what `js_call` makes of it: ty does not take a `Callable` for one."""

_COROUTINE: Final = 128
"""The flag of an `async` function's code, as `inspect` names it."""


class JsBacked:
    """Something whose values and actions are those of an object of JavaScript's.

    The errors of its calls, and of values that cannot cross, are of the class `_errors`: see `error_class`.
    """

    _errors: ClassVar[type[BindingError]] = BindingError

    def __init__(self, js: object) -> None:
        self._js: Any = unwrap(js)

    def _now(self, name: str, /, *args: object, **given: object) -> Any:
        """Call a method of JavaScript's, with options by their names in Python. The answer is JavaScript's, or None."""
        outgoing, options = self._crossing(name, args, given)
        try:
            return none_of(getattr(self._js, name)(*outgoing, **options))
        except bridge().JsException as error:
            raise translated(error, self._errors) from None

    async def _call(self, name: str, /, *args: object, **given: object) -> Any:
        """`_now` for a method that answers later."""
        outgoing, options = self._crossing(name, args, given)
        try:
            return none_of(await getattr(self._js, name)(*outgoing, **options))
        except bridge().JsException as error:
            raise translated(error, self._errors) from None

    def _crossing(
        self, name: str, args: tuple[object, ...], given: dict[str, object]
    ) -> tuple[list[object], dict[str, object]]:
        try:
            return [js_value(value) for value in args], options(**given)
        except BindingTypeError as error:
            raise error_class(self._errors, "TypeError")(f"{name}(): {error}") from None


class JsEngine(JsBacked, Hookable):
    """One whose calls pass a hook. An object that a binding makes (a run, an upload) gets that of the binding."""

    def __init__(self, js: object, hook: BoundHook | None = None) -> None:
        super().__init__(js)
        self._hook = hook


def js_attribute(name: str, read: Callable[[Any], object]) -> JsMethod:
    """A property of the engine's that JavaScript's object has under `name`; `read` makes its value, also of None."""
    return property(lambda self: read(getattr(self._js, name, None)))


def js_call(promised: JsMethod, read: Callable[[Any], object] = from_js) -> JsMethod:
    """The engine's method for a call that JavaScript's object has under the same name, with the same arguments.

    `promised` is the Protocol's method, `async` or not; `read` makes the answer of JavaScript's.
    """
    method: Any = getattr(promised, "__wrapped__", promised)
    code = method.__code__
    places = code.co_varnames[1 : code.co_argcount]
    name = js_name(method.__name__)

    def outgoing(args: tuple[object, ...], given: dict[str, object]) -> Iterable[object]:
        named = [given.pop(place) for place in places[len(args) :] if place in given]
        return map(js_fields, (*args, *named))

    @wraps(method)
    def call_now(self: JsBacked, /, *args: object, **given: object) -> object:
        return read(self._now(name, *outgoing(args, given), **given))

    @wraps(method)
    async def call(self: JsBacked, /, *args: object, **given: object) -> object:
        return read(await self._call(name, *outgoing(args, given), **given))

    return call if code.co_flags & _COROUTINE else call_now
