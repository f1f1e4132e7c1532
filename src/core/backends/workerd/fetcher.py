"""Whatever answers requests under a binding's name: another worker, static files, a browser, a client certificate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from core.backends.workerd.crossing import bare
from core.backends.workerd.fetch import fetch_through
from core.backends.workerd.rpc import rpc_method
from core.errors import BindingError, BindingTypeError
from core.http import Request, Response

__all__ = ["WorkerdFetcher"]


class WorkerdFetcher:
    """`Fetcher` over the object that the runtime has under the binding's name, with the other side's own methods."""

    __slots__ = ("_cls", "_fetcher")

    def __init__(self, fetcher: Any, cls: Any = None) -> None:
        self._fetcher = bare(fetcher)
        self._cls = cls

    async def fetch(self, request: Request | str, /) -> Response:
        """The answer to a request, or to a GET of an absolute URL. See `Fetcher.fetch`."""
        return await fetch_through(self._fetcher, Request(request) if isinstance(request, str) else request, _error)

    def __getattr__(self, name: str, /) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)
        return rpc_method(self._fetcher, name, self._cls, _error)


def _error(name: str, message: str) -> BindingError:
    return BindingTypeError(message) if name == "TypeError" else BindingError(message)
