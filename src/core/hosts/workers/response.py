"""A response on its way to the runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any, Final, cast

from core import http
from core.backends.workerd.conversion import bridge, js_bytes, js_stream
from core.dispatch.answers import body_failed
from core.http.streams import close, encode
from core.response import Response

if TYPE_CHECKING:
    from core.app import App
    from core.backends.workerd.web_socket import WorkerdWebSocket
    from core.context import ExecutionContext
    from core.http.websocket import Upgrade
    from core.request import AnyRequest

# JavaScript's form of header lists that come again and again, most of all those with one content type.
_KEPT: dict[tuple[tuple[str, str], ...], object] = {}
_KEPT_MOST: Final = 256


async def answer(app: App[Any], req: AnyRequest) -> object:
    """Answer a request of the runtime, once the lifespans of the application are entered."""
    if app.lifespans is not None:
        await app.lifespans.ensure_in_worker(req.env, req.ctx)
    res = Response()
    await app.dispatcher.respond(req, res)
    return js_response(res, req)


def js_response(res: Response, req: AnyRequest) -> object:
    """The runtime's `Response` for one that is finalized. The request is kept alive until a streamed body has ended."""
    across = bridge()
    if res.upgrade is not None and res.status_code == 101:
        # The handshake is the runtime's, but for the subprotocol.
        agreed = res.upgrade.protocol
        headers = (*(() if agreed is None else (("sec-websocket-protocol", agreed),)), *res.own_headers())
        given = {"status": 101, "headers": _js_headers(headers), "webSocket": _open_socket(res.upgrade, req.ctx)}
        return across.new_response(None, **given)
    body = res.body
    options: dict[str, object] = {"headers": _js_headers(tuple(res.header_fields()))}
    if res.status_code != 200:
        options["status"] = res.status_code
    if res.staged is not None and "content-encoding" in res.staged:
        options["encodeBody"] = "manual"  # the runtime would encode once more what is encoded
    if body is None:
        return across.new_response(None, **options)
    if isinstance(body, str):
        # Pyodide copies a string that is not ASCII character by character: as bytes, 100 kB cross 2 to 15 times faster.
        return across.new_response(body if body.isascii() else js_bytes(encode(body)), **options)
    if isinstance(body, bytes):
        return across.new_response(js_bytes(body), **options)
    from core.http.driven import Owned

    # A client that goes away would end the request, and with it the cleaning up after the stream.
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    req.ctx.wait_until(ended)
    chunks = _until_leaving(Owned(_logged(body, req), body), res.content_type)
    stream: Any = js_stream(chunks, on_end=lambda: None if ended.done() else ended.set_result(None))
    length = (res.staged or {}).get("content-length")
    if length is not None:  # which the runtime says of a stream that has it by itself alone
        stream = stream.pipeThrough(across.js.FixedLengthStream.new(int(length)))
    return across.new_response(stream, **options)


def _open_socket(upgrade: Upgrade, ctx: ExecutionContext) -> object:
    """The client's end of a new pair, while the session begins on the server's; or that of another connection."""
    from core.backends.workerd.web_socket import WorkerdWebSocket

    if isinstance(upgrade.peer, WorkerdWebSocket):
        # The runtime carries the messages itself, with nothing of this request in between.
        return upgrade.peer.js_socket
    client, server = bridge().js.WebSocketPair.new().object_values()
    socket = WorkerdWebSocket(server, upgrade.protocol)
    socket.accept()

    async def run() -> None:
        socket.within()
        await upgrade.run(socket)
        await socket.drained()

    ctx.wait_until(run())
    return client


def _until_leaving(chunks: AsyncIterator[bytes], content_type: str | None) -> AsyncIterator[bytes]:
    """The chunks of a body. One of events, which has no end and is asked for again, ends with the process."""
    if content_type is None or not content_type.startswith("text/event-stream"):
        return chunks
    from core.backends.workerd.leaving import until_leaving
    from core.http.driven import Owned

    return Owned(until_leaving(chunks), chunks)


def js_response_of(response: http.Response) -> object:
    """The runtime's `Response` for a standard value."""
    across = bridge()
    given: dict[str, object] = {"status": response.status, "headers": _js_headers(tuple(response.headers.raw()))}
    if response.web_socket is not None:
        # Of another kind it could not have been made here.
        given["webSocket"] = cast("WorkerdWebSocket", response.web_socket).js_socket
        return across.new_response(None, **given)
    if "content-encoding" in response.headers:
        given["encodeBody"] = "manual"
    if response.status_text:
        given["statusText"] = response.status_text
    whole = response.body_bytes_or_none()
    if whole is None:
        chunks = _until_leaving(response.stream(), response.headers.get("content-type"))
        return across.new_response(js_stream(chunks), **given)
    return across.new_response(js_bytes(whole) if whole else None, **given)


def _js_headers(headers: tuple[tuple[str, str], ...]) -> object:
    found = _KEPT.get(headers)
    if found is None:
        across = bridge()
        found = across.js.Headers.new(across.to_js(headers))
        # Ids, cookies and rate limits differ on every response: a long value is not kept, and never too many.
        if len(headers) < 4 and all(name != "set-cookie" and len(value) < 64 for name, value in headers):
            if len(_KEPT) >= _KEPT_MOST:
                _KEPT.clear()
            _KEPT[headers] = found
    return found


async def _logged(chunks: AsyncIterator[bytes], req: AnyRequest) -> AsyncGenerator[bytes, None]:
    """The chunks of a streamed body; an error while it is made is logged, and cuts the body short."""
    try:
        async for chunk in chunks:
            yield chunk
    except Exception as error:
        from core.errors.body import BodyEndedError

        if not isinstance(error, BodyEndedError):
            body_failed(error, req)
        raise
    finally:
        await close(chunks)
