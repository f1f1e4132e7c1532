"""Another application below a prefix: an ASGI application, or a function of the Fetch standard.

An ASGI application (https://asgi.readthedocs.io/en/latest/specs/www.html) is given the whole path and, as `root_path`,
what comes before its own part of it; a function gets a request whose URL has no prefix any more. Requests go through
the middleware before them as to any route, on every host. A WebSocket of an ASGI application is a session like that of
`app.websocket`, which carries its messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from core import http
from core.context import ExecutionContext, StateKey
from core.dispatch.answers import is_cross_site
from core.dispatch.exchange import AsgiApp, Exchange, Message, Session
from core.errors import CoreError, DeveloperError, HandlerError
from core.events.lifespan import Lifespan
from core.handlers import arguments_of, name_of
from core.http.paths import split_path
from core.http.websocket import Upgrade
from core.request import AnyRequest
from core.response import Response

Fetch = Callable[[http.Request], Awaitable[http.Response]]
"""A function that answers a request."""
FetchWithEnv = Callable[[http.Request, Any, ExecutionContext], Awaitable[http.Response]]
"""A function that answers a request with the bindings, as `App.fetch` does."""


def is_asgi(target: object) -> bool:
    """Return True for an ASGI application: its first parameter is called `scope`, as the specification has it.

    Raises HandlerError for anything that is neither an ASGI application nor a function of one request.
    """
    import inspect

    demanded = arguments_of(target)
    if not callable(target) or demanded not in (1, 3):
        raise HandlerError(
            f"mount({name_of(target)}): give an ASGI application (scope, receive, send), or a function (request) or "
            "(request, env, ctx) that returns a http.Response"
        )
    return demanded == 3 and next(iter(inspect.signature(target).parameters)) == "scope"


def mounted_fetch(target: Callable[..., Awaitable[http.Response]], depth: int) -> Any:
    """The handler that asks a function, with the first `depth` segments of the path taken off."""
    with_env = arguments_of(target) == 3

    async def fetch(req: AnyRequest, res: Response) -> None:
        given = req.to_http()
        url = http.URL(given.url)
        url.pathname = "/" + "/".join(req.path.split("/")[depth + 1 :])
        request = http.Request(
            url, method=given.method, headers=given.headers, body=given.body, edge=given.edge, redirect="manual"
        )
        answer = target(request, req.env, req.ctx) if with_env else target(request)
        res.send(await answer)

    fetch.__qualname__ = name_of(target)
    return fetch


def mounted_asgi(target: AsgiApp, depth: int, state: StateKey[dict[str, Any]]) -> Any:
    """The handler that asks an ASGI application, whose root is the first `depth` segments of the path."""

    async def asgi(req: AnyRequest, res: Response) -> None:
        scope = _scope_of(req, depth)
        scope["state"] = state.of(req).copy()
        exchange = Session() if req.method == "GET" and req._opens_websocket() else Exchange(req.stream())
        if isinstance(exchange, Session):
            if is_cross_site(req, res):
                raise CoreError(403, "Forbidden", code="CROSS_SITE_REQUEST")
            scope.update(_opening_of(req, scope["scheme"]))
        serving = asyncio.ensure_future(exchange.serve(target, scope))
        # Its work after its answer, such as background tasks, outlives the request.
        req.ctx.wait_until(exchange.wait_for(serving))
        try:
            answer = await exchange.answer(serving, head=req.method == "HEAD")
            if isinstance(answer, Upgrade):
                res.switch(answer)
            else:
                res.send(answer)
        except BaseException:
            exchange.close()
            raise

    asgi.__qualname__ = name_of(target)
    return asgi


def _opening_of(req: AnyRequest, scheme: str) -> Message:
    """The scope of a WebSocket, as far as it differs from that of a request."""
    offered = (req.header("sec-websocket-protocol") or "").split(",")
    return {
        "type": "websocket",
        "scheme": "wss" if scheme in ("https", "wss") else "ws",
        "subprotocols": [name.strip() for name in offered if name.strip()],
        "extensions": {"websocket.http.response": {}},
    }


def _scope_of(req: AnyRequest, depth: int) -> Message:
    root = req.root_path + "/".join(req.path.split("/")[: depth + 1])
    path = req.root_path + req.path
    url = http.URL(req.url)
    port = int(url.port) if url.port else 443 if url.protocol == "https:" else 80
    headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in req.headers.raw()
        if name != "edge-connecting-ip"  # the host's own word for `client`
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": req.method,
        "scheme": url.protocol.removesuffix(":"),
        "path": _decoded(path),
        "raw_path": path.encode("latin-1", "replace"),
        "query_string": req.query_string.encode("latin-1", "replace"),
        "root_path": _decoded(root),
        "headers": headers,
        "client": None if req.ip is None else (req.ip, 0),
        "server": (url.hostname, port),
    }


def _decoded(path: str) -> str:
    """A path as a scope has it: percent-decoded, slashes in segments and at the end included."""
    decoded = "/".join(["", *split_path(path)])
    return f"{decoded}/" if path[-1:] == "/" else decoded


def asgi_lifespan(target: AsgiApp) -> Lifespan:
    """The lifespan of an ASGI application, which gives its state. https://asgi.readthedocs.io/en/latest/specs/lifespan.html"""

    async def lifespan(env: object) -> AsyncIterator[dict[str, object]]:
        state: dict[str, object] = {}
        incoming: asyncio.Queue[Message] = asyncio.Queue()
        outgoing: asyncio.Queue[Message] = asyncio.Queue()
        scope: Message = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": state}
        serving = asyncio.ensure_future(_serve_lifespan(target, scope, incoming, outgoing))
        try:
            incoming.put_nowait({"type": "lifespan.startup"})
            _require_complete(await outgoing.get())
            yield state
            if not serving.done():
                incoming.put_nowait({"type": "lifespan.shutdown"})
                _require_complete(await outgoing.get())
        finally:
            serving.cancel()
            await asyncio.wait((serving,))

    return lifespan


async def _serve_lifespan(
    target: AsgiApp, scope: Message, incoming: asyncio.Queue[Message], outgoing: asyncio.Queue[Message]
) -> None:
    try:
        await target(scope, incoming.get, outgoing.put)
    except Exception:
        pass  # as the specification says: an application that raises knows no lifespan
    finally:
        outgoing.put_nowait({"type": "ended"})


def _require_complete(message: Message) -> None:
    if message["type"].endswith(".failed"):
        raise DeveloperError(f"the mounted ASGI application failed in its lifespan: {message.get('message', '')}")
