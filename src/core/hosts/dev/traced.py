"""Bindings that note every call: what a handler asked, when, and how long it took.

A traced binding behaves as the one inside in all else. Statements of a database are traced too, since it is they that
run; the statement's text is what the note says.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from core.hosts.dev.record import Recorder

__all__ = ["trace", "untraced"]


def trace(binding: Any, *, name: str, kind: str, recorder: Recorder) -> Any:
    """`binding`, with its calls noted in `recorder` under `name`."""
    return _Traced(binding, name, kind, recorder, "")


def untraced(value: Any) -> Any:
    """The binding or statement inside."""
    return value._target if isinstance(value, _Traced) else value


class _Traced:
    __slots__ = ("_kind", "_name", "_recorder", "_target", "_text")

    def __init__(self, target: Any, name: str, kind: str, recorder: Recorder, text: str) -> None:
        self._target = target
        self._name = name
        self._kind = kind
        self._recorder = recorder
        self._text = text

    def __repr__(self) -> str:
        return repr(self._target)

    def __getattr__(self, method: str) -> Any:
        attribute = getattr(self._target, method)
        if not callable(attribute) or method.startswith("_"):
            return attribute
        if not inspect.iscoroutinefunction(attribute):
            return self._silent(method, attribute)

        async def call(*args: Any, **options: Any) -> Any:
            inner = [_inside(value) for value in args]

            def detail() -> str:
                return self._text or _shown(args, options)

            with self._recorder.call(self._name, self._kind, method, detail):
                return await attribute(*inner, **options)

        return call

    def _silent(self, method: str, attribute: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            result = attribute(*args, **options)
            if method == "prepare":
                return _Traced(result, self._name, self._kind, self._recorder, str(args[0]) if args else "")
            if method == "bind":
                values = f"  ← {', '.join(_value(value) for value in args)}" if args else ""
                return _Traced(result, self._name, self._kind, self._recorder, self._text.partition("  ← ")[0] + values)
            if inspect.isawaitable(result):
                return self._awaited(method, result, args, options)
            if method == "with_session" or (self._kind == "durable_object" and method in ("get", "get_by_name")):
                return _Traced(result, self._name, self._kind, self._recorder, "")
            return result

        return call

    async def _awaited(
        self, method: str, result: Awaitable[Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Await what a method gave that is no `async def`, such as one of a Durable Object's stub."""
        with self._recorder.call(self._name, self._kind, method, lambda: self._text or _shown(args, options)):
            return await result


def _inside(value: Any) -> Any:
    if isinstance(value, _Traced):
        return value._target
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[object]", value)
        if any(isinstance(item, _Traced) for item in items):
            return [_inside(item) for item in items]
        return items
    return value


def _shown(args: tuple[Any, ...], options: dict[str, Any]) -> str:
    parts = [_value(value) for value in args]
    parts += [f"{name}={_value(value)}" for name, value in options.items()]
    return ", ".join(parts)


def _value(value: Any) -> str:
    if isinstance(value, _Traced):
        return value._text or repr(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{len(cast('bytes | bytearray | memoryview[int]', value))} bytes"
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[object]", value)
        return f"[{', '.join(_value(item) for item in items[:10])}{', …' if len(items) > 10 else ''}]"
    text = repr(value)
    return text if len(text) <= 120 else text[:119] + "…"
