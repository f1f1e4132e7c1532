"""Whatever answers requests under a binding's name: another worker, static files, a browser, a client certificate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from core.backends.workerd.engine import JsEngine
from core.backends.workerd.fetch import fetch_through
from core.backends.workerd.rpc import rpc_method
from core.bindings.fetcher import Fetcher
from core.errors import BindingError
from core.http import Request, Response


class WorkerdFetcher(JsEngine, Fetcher):
    """`Fetcher` over the object that the runtime has under the binding's name, with the other side's own methods."""

    def __init__(self, fetcher: object, cls: object = None) -> None:
        super().__init__(fetcher)
        self._cls = cls

    async def _fetch(self, request: Request | str, /) -> Response:
        given = Request(request) if isinstance(request, str) else request
        return await fetch_through(self._js, given, BindingError)

    def __getattr__(self, name: str, /) -> Callable[..., Awaitable[object]]:
        if name.startswith("_"):
            raise AttributeError(name)
        method = rpc_method(self._js, name, self._cls, BindingError)
        return method if self._hook is None else self._hook.around(name, method)
