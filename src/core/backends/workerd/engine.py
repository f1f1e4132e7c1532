"""The beginning of every engine over the runtime's own objects: the JavaScript object, and the calls of its methods."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ClassVar

from core.backends.workerd.conversion import (
    Translator,
    binding_error,
    call_js,
    call_now,
    from_js,
    js_fields,
    js_name,
    js_value,
    none_of,
    options,
    unwrap,
)
from core.bindings.calls import BoundHook, Hookable
from core.errors import BindingTypeError


class JsBacked:
    """Something whose values and actions are those of an object of JavaScript's.

    The errors of its calls, and of values that cannot cross, are what `_error` makes of them.
    """

    _error: ClassVar[Translator] = binding_error

    def __init__(self, js: object) -> None:
        self._js: Any = unwrap(js)

    def _now(self, name: str, /, *args: object, **given: object) -> Any:
        """Call a method of JavaScript's, with options by their names in Python. The answer is JavaScript's, or None."""
        outgoing, options = self._crossing(name, args, given)
        return none_of(call_now(self._error, getattr(self._js, name), *outgoing, **options))

    async def _call(self, name: str, /, *args: object, **given: object) -> Any:
        """`_now` for a method that answers later."""
        outgoing, options = self._crossing(name, args, given)
        return none_of(await call_js(self._error, getattr(self._js, name), *outgoing, **options))

    def _crossing(
        self, name: str, args: tuple[object, ...], given: dict[str, object]
    ) -> tuple[list[object], dict[str, object]]:
        try:
            return [js_value(value) for value in args], options(**given)
        except BindingTypeError as error:
            raise self._error("TypeError", f"{name}(): {error}") from None


class JsEngine(JsBacked, Hookable):
    """One whose calls pass a hook. An object that a binding makes (a run, an upload) gets that of the binding."""

    def __init__(self, js: object, hook: BoundHook | None = None) -> None:
        super().__init__(js)
        self._hook = hook


def js_call(
    promised: Callable[..., Any], read: Callable[[Any], object] = from_js
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The engine's method for a call that JavaScript's object has under the same name, with the same arguments.

    `promised` is the Protocol's method; `read` makes the answer of JavaScript's.
    """
    method: Any = getattr(promised, "__wrapped__", promised)
    places = method.__code__.co_varnames[1 : method.__code__.co_argcount]
    name = js_name(method.__name__)

    @wraps(method)
    async def call(self: JsBacked, /, *args: object, **given: object) -> object:
        named = [given.pop(place) for place in places[len(args) :] if place in given]
        return read(await self._call(name, *map(js_fields, (*args, *named)), **given))

    return call
