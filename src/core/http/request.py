"""A request as the Fetch standard has it: built by tests and handed over by hosts.

Building one checks everything. Hosts that answer many requests derive from `core.Request` instead, which asks their own
kind of message for what a handler reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from core.context import EdgeMetadata
from core.http.body import Body, BodyInit, BodyStream, body_of
from core.http.headers import Headers, HeadersInit, is_token, plain_values
from core.http.json import dumps
from core.http.url import URL, split_url

_METHODS: Final = {
    spelled: method
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    for spelled in (method, method.lower(), method.capitalize())
}


# The runtime's own words.
_NO_REDIRECT: Final = (
    'Invalid redirect value, must be one of "follow" or "manual" ("error" won\'t be implemented since it does not make '
    'sense at the edge; use "manual" and check the response status code).'
)


_NOTHING: Final = object()  # stands for a JSON value that was not given, since None is one


class Request(Body):
    """A request.

    `url` is absolute (http, https, ws, wss) and normalised; another request may stand in its place, whose method,
    headers and body are then taken where none are given. A text body sets `content-type: text/plain;charset=UTF-8` and
    `json=` sets `application/json`, unless `headers` has one. Known methods are made upper-case, others may be any
    token.

    `path` is the path of the URL, dot segments resolved, still percent-encoded; `query_string` is without its `?`.

    `edge` becomes `req.edge`: the metadata that the platform gives beside the standard's members, or a mapping with
    `colo` and `country` in it.

    Raises TypeError for a URL, a method, a header or a body that cannot be: GET and HEAD have no body.
    """

    __slots__ = ("_headers", "_url", "edge", "method", "path", "query_string", "redirect")

    method: str
    path: str
    query_string: str
    edge: EdgeMetadata | None
    """The location at which the request reached the edge, if a host or a test gives one."""
    redirect: str
    """The requested handling of redirects. The `fetch` of a binding follows none by itself."""
    _url: str
    _headers: Headers | dict[str, str] | None

    def __init__(
        self,
        url: str | URL | Request,
        *,
        method: str | None = None,
        headers: HeadersInit | None = None,
        body: BodyInit = None,
        json: object = _NOTHING,
        edge: EdgeMetadata | Mapping[str, object] | None = None,
        redirect: Literal["follow", "manual"] | None = None,
    ) -> None:
        if redirect is None:
            self.redirect = url.redirect if isinstance(url, Request) else "follow"
        elif redirect in ("follow", "manual"):
            self.redirect = redirect
        else:
            raise TypeError(_NO_REDIRECT)
        self.edge = edge if edge is None or isinstance(edge, EdgeMetadata) else _edge_of(edge)
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
        # None where they are not a plain dict.
        values = None if headers is None else plain_values(headers)
        self._headers = values if values is not None or headers is None else Headers(headers)
        self._used = False
        if body is None and json is _NOTHING:
            self._body = None
            return
        if known == "GET" or known == "HEAD":
            raise TypeError("Request with a GET or HEAD method cannot have a body.")
        if json is _NOTHING:
            self._body, content_type = body_of(body)
        elif body is None:
            self._body = dumps(json).encode()
            content_type = "application/json"
        else:
            raise TypeError("Request(body=…, json=…): a request has one body, so give only one of them")
        if content_type is not None and "content-type" not in self.headers:
            self.headers["content-type"] = content_type

    @property
    def url(self) -> str:
        """The URL, absolute and normalised."""
        return self._url

    @property
    def headers(self) -> Headers:
        """The headers. They can be changed."""
        headers = self._headers
        if headers is None or isinstance(headers, dict):
            # Made when they are asked for: the values are checked already.
            headers = self._headers = Headers.trusted(headers or {}, [])
        return headers

    def header(self, name: str) -> str | None:
        """The value of one header or None. Several of one name come joined with `, `."""
        return None if self._headers is None else self.headers.get(name)

    def clone(self) -> Request:
        """A second request with the same content; both can be read. Raises TypeError when this one was read."""
        body = self._tee()
        other = _new(Request)
        for name in Request.__slots__:
            setattr(other, name, getattr(self, name))
        other._headers = None if self._headers is None else self.headers.copy()
        other._body = body
        other._used = False
        return other

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.url}>"


_new = Request.__new__


def _edge_of(given: object) -> EdgeMetadata:
    known: Any = given  # not narrowed by what follows
    if not isinstance(given, Mapping):
        raise TypeError(
            f"Request(edge=…) takes EdgeMetadata, or a mapping with colo and country, not {type(given).__name__}"
        )
    return EdgeMetadata(known.get("colo"), known.get("country"))


def _other_method(method: object) -> str:
    # CONNECT names a host and no URL.
    if not isinstance(method, str) or not is_token(method) or method.upper() == "CONNECT":
        raise TypeError(f"Invalid HTTP method string: {method}")
    return _METHODS.get(method.upper(), method)
