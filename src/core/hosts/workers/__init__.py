"""The host for the workers runtime: the hosted platform, and CPython in workerd.

`Default = entrypoint(app)` in the main module is all that the hosted platform needs. Nothing here is loaded before it
is asked for: importing this package must cost a worker nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.values import lazily

if TYPE_CHECKING:
    from core.hosts.workers.hosted import durable_object, entrypoint
else:
    __getattr__ = lazily(__name__, {"core.hosts.workers.hosted": "durable_object entrypoint"})

__all__ = ["durable_object", "entrypoint"]
