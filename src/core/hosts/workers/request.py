"""A request of the runtime as the application's own, crossing over only as far as it is asked.

Method and URL come at once, since every request needs them. The runtime's `Request` crosses over when something else is
asked for; the headers come all together when the first is asked
for, the body when it is read. The client's address is the platform's, under `Edge-Connecting-IP`; whatever a
client sent under that name is dropped.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, ClassVar, Final

from core import http
from core.backends.workerd.conversion import bridge, bytes_of, chunks_of, is_null, structured, unwrap
from core.context import EdgeMetadata
from core.errors import CLIENT_GONE
from core.http.json import JsonObject
from core.http.paths import canonical_path
from core.request import NO_PARAMS, OpenRequest

PLATFORM_IP: Final = "cf-connecting-ip"
"""The header in which the hosted platform gives the client's address; a client cannot set it there."""

_IP: Final = "edge-connecting-ip"


class WorkersRequest(OpenRequest):
    """A request over the runtime's `Request`, which `given` has. `ip_header` has the client's address."""

    public_origin: ClassVar[str | None] = None
    """Scheme and host of every URL, where the one who serves has named them:
    a request's own word does not count then.
    """

    def __init__(
        self, given: Any, method: str, url: str, env: object, ctx: Any, ip_header: str | None = PLATFORM_IP
    ) -> None:
        # `__init__` of the base is not called: all of it is here, in the order that costs least.
        self.params = NO_PARAMS
        self.id = ""
        self._query = None
        self._given = given
        self._url: str = url
        self.method = method
        # The runtime has normalised it: "scheme://host/path?query", without a fragment.
        start = url.find("/", 8)
        end = url.find("?", start)
        self.path: str = canonical_path(url[start:] if end < 0 else url[start:end])
        self.env = env
        self.ctx = ctx
        self._ip_header = ip_header
        self._headers: http.HeadersView | None = None

    if not TYPE_CHECKING:  # to a checker it is the attribute of the base

        @property
        def received(self) -> float:
            """The time at which the request arrived, in seconds on the clock of `time.perf_counter`."""
            return self._given.received / 1000

    def _elapsed(self) -> float:
        # The runtime's clock and Python's are one, that stands still between events, and round differently.
        return max(0.0, super()._elapsed())

    @property
    def _request(self) -> Any:
        return self._given.request

    @property
    def url(self) -> str:
        """The absolute URL. A `Host` that is none, which a self-hosted runtime passes on, reads as `localhost` here."""
        url = self._url
        scheme, _, rest = url.partition("://")
        host, _, _ = rest.partition("/")
        origin = self.public_origin or http.url.origin_of(scheme, host)
        return f"{origin}{rest[len(host) :]}"

    @property
    def query_string(self) -> str:
        """The query string as it was sent, without the question mark."""
        url = self._url
        return url[url.find("/", 8) :].partition("?")[2]

    @property
    def headers(self) -> http.HeadersView:
        """The headers of the request."""
        headers = self._headers
        if headers is None:
            values: dict[str, str] = dict(structured(bridge().js.Array.from_(self._request.headers)))
            values.pop(_IP, None)
            ip = values.get(self._ip_header) if self._ip_header is not None else None
            if ip is not None and self._ip_header != PLATFORM_IP:
                from core.http.addresses import one_address

                ip = one_address(ip)
            if ip is not None:
                values[_IP] = ip
            headers = self._headers = http.HeadersView.trusted(values, [])
        return headers

    @property
    def edge(self) -> EdgeMetadata | None:
        """The location at which the request reached the edge, if the platform gives one."""
        cf = getattr(self._request, "cf", None)
        if is_null(cf):
            return None
        colo, country = getattr(cf, "colo", None), getattr(cf, "country", None)
        return EdgeMetadata(None if is_null(colo) else str(colo), None if is_null(country) else str(country))

    @property
    def cf(self) -> JsonObject | None:
        """All that the platform says of the connection, as plain values; None where it says nothing."""
        cf = getattr(self._request, "cf", None)
        return None if is_null(cf) else structured(unwrap(cf))

    async def is_disconnected(self) -> bool:
        """Return True if the client has gone away, where the worker has the flag `enable_request_signal`."""
        await asyncio.sleep(0)  # events of the meantime arrive now
        return getattr(getattr(self._request, "signal", None), "aborted", False) is True

    async def _read(self, most: int | None = None) -> builtins.bytes:
        if is_null(self._request.body):
            return b""
        try:
            return bytes_of(await self._request.arrayBuffer())
        except bridge().JsException as error:
            raise self._broken(error) from None

    async def _chunks(self) -> AsyncIterator[builtins.bytes]:
        body = self._request.body
        if is_null(body):
            return
        try:
            async for chunk in chunks_of(body):
                yield chunk
        except bridge().JsException as error:
            raise self._broken(error) from None

    def _broken(self, error: Exception) -> Exception:
        """The error of a body that could not be read to its end.

        A body of a known length ends early where its client is gone. One in chunks may also be malformed, by a client
        that reads the answer: the runtime says the same of both.
        """
        if "Network connection lost" not in str(error):
            return error
        from core.errors.body import BodyEndedError

        if self.header("content-length") is None:
            return BodyEndedError(400, "The request body is malformed or ended early")
        return BodyEndedError(CLIENT_GONE)
