"""A stand-in for a binding that the place has no service for: an application starts, and no call of it succeeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from core.errors import UnsupportedBindingError


class AbsentBinding:
    """An object of any kind of binding. Whatever is called on it raises UnsupportedBindingError with the `reason`."""

    def __init__(self, name: str, reason: str) -> None:
        self._name = name
        self._reason = reason

    def __repr__(self) -> str:
        return f"<{self._name}: absent>"

    def __getattr__(self, method: str) -> Callable[..., NoReturn]:
        if method.startswith("__"):
            raise AttributeError(method)

        def refuse(*args: object, **options: object) -> NoReturn:
            raise UnsupportedBindingError(f"{self._name}.{method}(): {self._reason}")

        return refuse
