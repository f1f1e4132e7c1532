"""Pyodide's helpers for calling and running code, as far as tests touch them."""

from collections.abc import Callable
from typing import Any

def relaxed_call(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...
