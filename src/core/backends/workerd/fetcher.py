"""Whatever answers requests under a binding's name: another worker, static files, a browser, a client certificate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from core.backends.workerd.conversion import translator, unwrap
from core.backends.workerd.fetch import fetch_through
from core.backends.workerd.rpc import rpc_method
from core.bindings.calls import Hookable
from core.bindings.fetcher import Fetcher
from core.errors import BindingError, BindingTypeError
from core.http import Request, Response

_error = translator(BindingError, TypeError=BindingTypeError)


class WorkerdFetcher(Hookable, Fetcher):
    """`Fetcher` over the object that the runtime has under the binding's name, with the other side's own methods."""

    def __init__(self, fetcher: object, cls: object = None) -> None:
        self._fetcher = unwrap(fetcher)
        self._cls = cls

    async def _fetch(self, request: Request | str, /) -> Response:
        return await fetch_through(self._fetcher, Request(request) if isinstance(request, str) else request, _error)

    def __getattr__(self, name: str, /) -> Callable[..., Awaitable[object]]:
        if name.startswith("_"):
            raise AttributeError(name)
        method = rpc_method(self._fetcher, name, self._cls, _error)
        return method if self._hook is None else self._hook.around(name, method)
