"""The host for the workers runtime: the hosted platform, and CPython in workerd.

`Default = entrypoint(app)` in the main module is all that the hosted platform needs. Nothing here is loaded before it
is asked for: importing this room must cost a worker nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.hosts.workers.hosted import durable_object, entrypoint

__all__ = ["durable_object", "entrypoint"]

_PLACES = {
    "durable_object": "hosted",
    "entrypoint": "hosted",
}


if not TYPE_CHECKING:  # a type checker would take the module to have every name

    def __getattr__(name: str) -> Any:
        place = _PLACES.get(name)
        if place is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{place}"), name)
