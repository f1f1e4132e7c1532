"""Requests that leave a worker: through a service binding, a Durable Object's stub, or the platform's own `fetch`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from core.backends.workerd.conversion import (
    bridge,
    bytes_of,
    chunks_of,
    is_null,
    js_bytes,
    js_stream,
    structured,
    translated,
)
from core.errors import BindingError
from core.http import Headers, Request, Response


async def fetch_through(target: Any, request: Request, errors: type[BindingError], parent: str = "") -> Response:
    """Hand `request` to `target.fetch` and give its answer, whose body crosses as it is read.

    `parent` is its `traceparent` where it has none of its own.
    """
    try:
        return response_of(await target.fetch(js_request(request, parent)))
    except bridge().JsException as error:
        raise translated(error, errors) from None


def js_request(request: Request, parent: str = "") -> object:
    across = bridge()
    headers = request.headers.raw()
    if parent and "traceparent" not in request.headers:
        headers = [*headers, ("traceparent", parent)]
    given: dict[str, object] = {"method": request.method, "headers": across.to_js(headers)}
    if request.method not in ("GET", "HEAD"):
        body = request.body_bytes_or_none()
        given["body"] = js_stream(request.stream()) if body is None else js_bytes(body)
    # A redirect is the application's to follow or to pass on.
    return across.js.Request.new(request.url, redirect="manual", **given)


def response_of(response: Any) -> Response:
    headers = Headers(structured(bridge().js.Array.from_(response.headers)))
    if int(response.status) == 101:
        from core.backends.workerd.web_socket import WorkerdWebSocket

        socket = WorkerdWebSocket(response.webSocket, headers.get("sec-websocket-protocol"))
        return Response.websocket(socket, headers=headers)
    body = response.body
    if not is_null(body) and (headers.get("content-encoding") or "").lower() in ("gzip", "br"):
        # The runtime decodes the body as it is read, and leaves the headers of the encoded one.
        headers.delete("content-encoding")
        headers.delete("content-length")
    return Response.assembled(int(response.status), headers, None if is_null(body) else JsBody(response))


class JsBody:
    """The body of a JavaScript request or response: whole with one crossing, or in chunks."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __aiter__(self) -> AsyncIterator[bytes]:
        return chunks_of(self._owner.body)

    async def read_body(self) -> bytes:
        return bytes_of(await self._owner.arrayBuffer())


def request_of(request: Any) -> Request:
    """The Python form of a JavaScript request, for functions that take a standard value."""
    headers = Headers(structured(bridge().js.Array.from_(request.headers)))
    made = Request(str(request.url), method=str(request.method), headers=headers)
    if not is_null(request.body):
        made._body = JsBody(request)
    return made
