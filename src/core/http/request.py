"""A request as the Fetch standard has it: what a test builds and a host hands over.

Building one in a test checks everything. A host goes through `Request.received`, which checks nothing that its HTTP
parser has checked, and decodes headers and writes the URL only when they are asked for.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterable, Sequence
from typing import Final, TypeAlias

from core.context import EdgeMetadata
from core.http.body import Body, BodyInit, BodyStream, body_of
from core.http.headers import Headers, HeadersInit, check_name, is_token
from core.http.json import dumps
from core.http.url import URL, canonical_path, split_url

__all__ = ["Request"]

_METHODS: Final = {
    spelled: method
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    for spelled in (method, method.lower(), method.capitalize())
}

_Pairs: TypeAlias = Sequence[tuple[builtins.bytes, builtins.bytes]]


class _Nothing:
    """Stands for a JSON value that was not given, since None is one."""


_NOTHING: Final = _Nothing()
_NO_PAIRS: Final[_Pairs] = ()

# Header names as bytes, by the spelling that was asked for.
_BYTE_NAMES: dict[str, builtins.bytes] = {}
_BYTE_NAMES_MOST = 1024


class Request(Body):
    """A request.

    `url` is absolute (http, https, ws, wss) and normalised; another request may stand in its place, whose method,
    headers and body are then taken where none are given. A text body sets `content-type: text/plain;charset=UTF-8` and
    `json=` sets `application/json`, unless `headers` has one. Known methods are made upper-case, others may be any
    token.

    `path` is the path of the URL, dot segments resolved, still percent-encoded; `query_string` is without its `?`.

    `edge` is what `req.edge` will be: the metadata that the platform gives beside the standard's members.

    Raises TypeError for a URL, a method, a header or a body that cannot be: GET and HEAD have no body.
    """

    __slots__ = ("_headers", "_host", "_index", "_pairs", "_scheme", "_url", "edge", "method", "path", "query_string")

    method: str
    path: str
    query_string: str
    edge: EdgeMetadata | None
    """Where the request reached the edge, where a host or a test says so."""
    _url: str | None
    _headers: Headers | None
    _pairs: _Pairs
    _index: dict[builtins.bytes, builtins.bytes] | None

    def __init__(
        self,
        url: str | URL | Request,
        *,
        method: str | None = None,
        headers: HeadersInit | None = None,
        body: BodyInit = None,
        json: object = _NOTHING,
        edge: EdgeMetadata | None = None,
    ) -> None:
        self.edge = edge
        if type(url) is str:
            self._url, self.path, self.query_string = split_url(url)
        elif isinstance(url, Request):
            self._url, self.path, self.query_string = url.url, url.path, url.query_string
            if method is None:
                method = url.method
            if headers is None:
                headers = url.headers
            if body is None and json is _NOTHING and url._body is not None:
                if url._used:
                    raise TypeError("Cannot reconstruct a Request with a used body.")
                body = BodyStream(url)
        else:
            self._url, self.path, self.query_string = split_url(str(url))
        self.method = known = "GET" if method is None else _METHODS.get(method) or _other_method(method)
        self._headers = None if headers is None else Headers(headers)
        self._pairs = _NO_PAIRS
        self._index = None
        self._used = False
        if body is None and json is _NOTHING:
            self._body = None
            return
        if known == "GET" or known == "HEAD":
            raise TypeError("Request with a GET or HEAD method cannot have a body.")
        if json is _NOTHING:
            self._body = body_of(body)
            content_type = "text/plain;charset=UTF-8" if isinstance(body, str) else None
        elif body is None:
            self._body = dumps(json).encode()
            content_type = "application/json"
        else:
            raise TypeError("Request(body=…, json=…): a request has one body, so give only one of them")
        if content_type is not None and "content-type" not in self.headers:
            self.headers["content-type"] = content_type

    @staticmethod
    def received(
        method: str,
        path: str,
        query_string: str,
        headers: _Pairs | Headers,
        body: builtins.bytes | AsyncIterable[builtins.bytes] | None,
        *,
        scheme: str = "http",
        host: str | None = None,
    ) -> Request:
        """A request from a host, unchecked.

        `path` is as it came in, still percent-encoded, and is made canonical here. `headers` are pairs of bytes with
        names in lower case, kept as they are, or ready headers. `body` may have `read_body()` (see `WholeBody`). The
        URL's host is `host`, else the `Host` header.
        """
        self = _new(Request)
        self.edge = None
        self.method = method
        self.path = canonical_path(path)
        self.query_string = query_string
        self._url = None
        self._scheme = scheme
        self._host = host
        self._index = None
        self._body = body
        self._used = False
        if isinstance(headers, Headers):
            self._headers = headers
            self._pairs = _NO_PAIRS
        else:
            self._headers = None
            self._pairs = headers
        return self

    _scheme: str
    _host: str | None

    @property
    def url(self) -> str:
        """The URL, absolute and normalised."""
        url = self._url
        if url is None:
            url = self._url = self._write_url()
        return url

    def _write_url(self) -> str:
        host = self._host or self.header("host") or "localhost"
        target = f"{self.path}?{self.query_string}" if self.query_string else self.path
        try:
            url = split_url(f"{self._scheme}://{host}/")[0]
            # The Host header is the client's: whatever else it holds must not become a part of the path.
            origin = URL(url).origin if url.count("/") > 3 or "@" in url or "?" in url or "#" in url else url[:-1]
        except TypeError:
            origin = f"{self._scheme}://localhost"
        return split_url(f"{origin}{target}")[0]

    @property
    def headers(self) -> Headers:
        """The headers. They can be changed."""
        headers = self._headers
        if headers is None:
            headers = self._headers = Headers.received(self._pairs)
        return headers

    def header(self, name: str) -> str | None:
        """The value of one header or None: cheaper than `headers.get(name)` where nothing was decoded yet."""
        headers = self._headers
        if headers is not None:
            return headers.get(name)
        index = self._index
        if index is None:
            pairs = self._pairs
            index = dict(pairs)
            if len(index) != len(pairs):
                # Something comes twice, and has to be joined.
                return self.headers.get(name)
            self._index = index
        key = _BYTE_NAMES.get(name)
        if key is None:
            key = _byte_name(name)
        value = index.get(key)
        return None if value is None else value.decode("latin-1")

    def clone(self) -> Request:
        """A second request with the same content; both can be read. Raises TypeError when this one was read."""
        body = self._tee()
        other = _new(Request)
        other.edge = self.edge
        other.method = self.method
        other.path = self.path
        other.query_string = self.query_string
        other._url = self.url
        other._pairs = self._pairs
        other._index = None
        other._headers = None if self._headers is None else self._headers.copy()
        other._body = body
        other._used = False
        return other

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.url}>"


_new = Request.__new__


def _other_method(method: object) -> str:
    if not isinstance(method, str) or not is_token(method):
        raise TypeError(f"Invalid HTTP method string: {method}")
    upper = method.upper()
    if upper == "CONNECT":
        # It names a host and no URL.
        raise TypeError(f"Invalid HTTP method string: {method}")
    return _METHODS.get(upper, method)


def _byte_name(name: str) -> builtins.bytes:
    key = check_name(name, "get").encode()
    if len(_BYTE_NAMES) >= _BYTE_NAMES_MOST:
        _BYTE_NAMES.clear()
    _BYTE_NAMES[name] = key
    return key
