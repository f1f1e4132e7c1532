"""The opening handshake of a WebSocket, as far as an application decides it (RFC 6455, section 4.2).

Decided here: the form of a handshake, which subprotocol is agreed on, and whose pages may connect. Opening
the connection itself is the host's business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from core import http
from core.errors import CoreError, OptionError
from core.handlers import name_of
from core.http.headers import check_name, check_value
from core.http.url import is_same_origin
from core.request import AnyRequest
from core.response import Response
from core.types import Handler, WebSocketHandler

if TYPE_CHECKING:
    from core.http.websocket import Upgrade, WebSocket

_MOST_OFFERED = 32


HeaderGiver = Callable[[Any], Mapping[str, str] | Awaitable[Mapping[str, str]]]
"""A function of the request that gives headers, sync or async."""


def upgrade_handler(
    handler: WebSocketHandler[Any, Any],
    protocols: tuple[str, ...],
    origins: tuple[str, ...],
    headers: Mapping[str, str] | HeaderGiver | None = None,
) -> Handler[Any, Any]:
    """The handler of the GET route that a WebSocket begins with.

    Raises OptionError for a value that is not a protocol or an origin.
    """
    for protocol in protocols:
        try:
            check_name(protocol)
        except TypeError:
            raise OptionError(f"websocket(protocols={protocol!r}): a subprotocol is a token, such as chat.v1") from None
    for origin in origins:
        if origin != "*" and ("://" not in origin or origin.count("/") != 2 or origin != origin.strip().lower()):
            raise OptionError(
                f"websocket(origins={origin!r}): an origin is scheme, host and port, such as https://example.com"
            )

    async def open_socket(req: AnyRequest, res: Response) -> None:
        if req.method != "GET" or not req._opens_websocket():
            raise CoreError(426, "Upgrade Required", headers={"Upgrade": "websocket"})
        origin = req.header("origin")
        if origin is not None and "*" not in origins and origin not in origins and not is_same_origin(origin, req.url):
            raise CoreError(403, "Forbidden", code="CROSS_SITE_REQUEST")
        offered = (req.header("sec-websocket-protocol") or "").split(",", _MOST_OFFERED)
        wanted = {name.strip() for name in offered[:_MOST_OFFERED]}
        agreed = next((protocol for protocol in protocols if protocol in wanted), None)

        async def session(socket: WebSocket) -> None:
            await handler(req, socket)

        given = headers(req) if callable(headers) else headers or {}
        named: Mapping[str, str] = given if isinstance(given, Mapping) else await given
        own = tuple((check_name(name), check_value(value)) for name, value in named.items())
        from core.http.websocket import Upgrade

        res.switch(Upgrade(session, agreed, own))

    open_socket.__qualname__ = name_of(handler)
    # The dispatcher lets a request that asks for no WebSocket go on to the next route of the path.
    opening: Any = open_socket
    opening.__core_opens__ = handler
    return open_socket


def open_in_memory(upgrade: Upgrade, req: AnyRequest, res: Response) -> http.Response:
    """The standard value of a 101. Its `web_socket` is the client's end of a pair in memory, or what is handed over."""
    headers = http.Headers(res.own_headers())
    if upgrade.protocol is not None:
        headers["sec-websocket-protocol"] = upgrade.protocol
    origin = req.header("origin")
    if origin is not None:
        headers["access-control-allow-origin"] = origin  # it was allowed here, and counts for who passes this on
    if upgrade.peer is not None:
        return http.Response.websocket(upgrade.peer, headers=headers)
    from core.http.websocket import pair

    server, client = pair(upgrade.protocol)
    req.ctx.wait_until(upgrade.run(server))
    return http.Response.websocket(client, headers=headers)
