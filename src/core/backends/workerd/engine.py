"""The beginning of every engine over the runtime's own objects: the JavaScript object, and the hook of its binding."""

from __future__ import annotations

from typing import Any

from core.backends.workerd.conversion import unwrap
from core.bindings.calls import BoundHook, Hookable


class JsBacked:
    """Something whose values and actions are those of an object of JavaScript's."""

    def __init__(self, js: object) -> None:
        self._js: Any = unwrap(js)


class JsEngine(JsBacked, Hookable):
    """One whose calls pass a hook. An object that a binding makes (a run, an upload) gets that of the binding."""

    def __init__(self, js: object, hook: BoundHook | None = None) -> None:
        super().__init__(js)
        self._hook = hook
