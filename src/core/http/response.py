"""A response as the Fetch standard has it: returned by `fetch` and sent by hosts.

The constructor checks everything; the application, which has checked already, goes through `Response.assembled`.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from core.errors import NULL_BODY_STATUSES, REDIRECT_STATUSES
from core.http.body import Body, BodyInit, body_of
from core.http.headers import Headers, HeadersInit
from core.http.json import dumps
from core.http.url import URL

if TYPE_CHECKING:
    from core.http.websocket import ClientEnd, WebSocket


class Response(Body):
    """A response.

    A text body sets `content-type: text/plain;charset=UTF-8` unless `headers` has one; bytes and streams set none.
    `status_text` is for HTTP/1.1 and may be left empty.

    Raises ValueError for a status outside 200 to 599, TypeError for a header or a body that cannot be: 204, 205 and 304
    have none.
    """

    __slots__ = ("_headers", "status", "status_text")

    type: ClassVar[str] = "default"
    redirected: ClassVar[bool] = False

    if TYPE_CHECKING:

        @property
        def web_socket(self) -> WebSocket | None:
            """The client's end of the WebSocket that this response opens; None on every other response."""
            ...
    else:
        web_socket = None

    status: int
    status_text: str
    _headers: Headers | tuple[dict[str, str], list[str]]

    def __init__(
        self, body: BodyInit = None, *, status: int = 200, headers: HeadersInit | None = None, status_text: str = ""
    ) -> None:
        self.status = _check_status(status)
        self.status_text = _check_status_text(status_text) if status_text else status_text
        self._headers = Headers(headers)
        self._used = False
        self._body, content_type = body_of(body)
        if body is None:
            return
        if status in NULL_BODY_STATUSES:
            # An empty one is not a body: the runtime lets it pass, the standard is stricter for no gain.
            if self._body:
                raise TypeError("Response with null body status (101, 204, 205, or 304) cannot have a body.")
            self._body = None
        elif content_type is not None and "content-type" not in self.headers:
            self.headers["content-type"] = content_type

    @staticmethod
    def assembled(
        status: int,
        headers: Headers | tuple[dict[str, str], list[str]],
        body: builtins.bytes | AsyncIterable[builtins.bytes] | None,
        kind: builtins.type[Response] | None = None,
    ) -> Response:
        """A response of parts that were checked before; they are kept, not copied. `kind` is its class.

        In place of headers the arguments of `Headers.trusted` may be given, which makes them when they are asked for.
        """
        self = _new(kind or Response)
        self.status = status
        self.status_text = ""
        self._headers = headers
        self._body = body
        self._used = False
        return self

    @staticmethod
    def from_json(
        value: object, *, status: int = 200, headers: HeadersInit | None = None, status_text: str = ""
    ) -> Response:
        """A response with `value` as compact JSON; `content-type` is `application/json` unless `headers` has one.

        This is `Response.json()` of the Fetch standard; here that name reads the body. Raises as `core.http.json.dumps`
        does.
        """
        response = Response(dumps(value).encode(), status=status, headers=headers, status_text=status_text)
        if "content-type" not in response.headers:
            response.headers["content-type"] = "application/json"
        return response

    @staticmethod
    def redirect(url: str | URL, status: int = 302) -> Response:
        """A response that sends the client to `url`, which is absolute and gets normalised.

        Raises TypeError for another URL, ValueError for a status that does not redirect.
        """
        try:
            location = URL(url).href
        except TypeError:
            raise TypeError(f"Unable to parse URL: {url}") from None
        if status not in REDIRECT_STATUSES:
            raise ValueError(f"{status} is not a redirect status code. It must be one of: 301, 302, 303, 307, or 308.")
        return Response.assembled(status, Headers.trusted({"location": location}, []), None)

    @staticmethod
    def websocket(client: ClientEnd | WebSocket, *, headers: HeadersInit | None = None) -> Response:
        """A response of status 101 that opens a WebSocket, whose other end a Durable Object has accepted.

            client, server = web_socket_pair()
            self.ctx.accept_web_socket(server)
            return Response.websocket(client)

        A subprotocol that was agreed on is the header `Sec-WebSocket-Protocol`. Raises ValueError for an end whose
        other end nobody accepted.
        """
        from core.http.websocket import ClientEnd

        connection = client.connection if isinstance(client, ClientEnd) else client
        if connection is None:
            raise ValueError(
                "Response.websocket(client): nobody accepted the other end. Call self.ctx.accept_web_socket(server) first"
            )
        made = Response.assembled(101, Headers(headers), None, _SwitchingResponse)
        cast("Any", made).web_socket = connection  # read-only for everyone else
        return made

    @staticmethod
    def error() -> Response:
        """The network error of the standard: status 0, no headers, no body."""
        return Response.assembled(0, Headers(), None, _ErrorResponse)

    @property
    def headers(self) -> Headers:
        """The headers. They can be changed."""
        headers = self._headers
        if isinstance(headers, tuple):
            headers = self._headers = Headers.trusted(*headers)
        return headers

    @property
    def ok(self) -> bool:
        """True if the status is one of 200 to 299."""
        return 200 <= self.status <= 299

    def clone(self) -> Response:
        """A second response with the same content; both can be read. Raises TypeError when this one was read."""
        body = self._tee()
        if self.web_socket is not None:
            raise TypeError("A response that opens a WebSocket cannot be cloned.")
        other = Response.assembled(self.status, self.headers.copy(), body, type(self))
        other.status_text = self.status_text
        return other

    def __repr__(self) -> str:
        return f"<Response {self.status}>"


class _ErrorResponse(Response):
    __slots__ = ()

    type = "error"


class _SwitchingResponse(Response):
    __slots__ = ("web_socket",)  # pyright: ignore[reportIncompatibleMethodOverride]  # the attribute behind the property


_new = Response.__new__


def _check_status(status: object) -> int:
    # http.HTTPStatus is an int too; True is one that nobody means.
    if not isinstance(status, int) or isinstance(status, bool):
        raise TypeError(f"Response(status={status!r}): the status must be an int, for example 200")
    if not 200 <= status <= 599:
        raise ValueError("Responses may only be constructed with status codes in the range 200 to 599, inclusive.")
    return int(status)


def _check_status_text(text: object) -> str:
    # Anything else could end the status line and begin a header.
    if not isinstance(text, str) or not re.fullmatch(r"[\t -~\x80-\xff]*", text):
        raise TypeError("Invalid status text.")
    return text
