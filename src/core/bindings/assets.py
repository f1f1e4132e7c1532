"""The static files of the worker, as a handler asks for them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from core.bindings.fetcher import Fetcher

__all__ = ["Assets"]


@runtime_checkable
class Assets(Fetcher, Protocol):
    """The files of the `[assets]` directory. `fetch` answers a request for one of them by its path.

    A path without a file gets what `not_found_handling` says: a 404, the nearest `404.html`, or `index.html` for an
    application of a single page. Only GET and HEAD are answered, others get a 405.
    """
