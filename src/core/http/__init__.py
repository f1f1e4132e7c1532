"""The standard values: a request, a response and their headers, as the Fetch and URL standards describe them.

Tests build them and hosts hand them over. Nothing in this package depends on an application, a route or a binding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.http import headers, json, paths, streams
from core.http.headers import Headers, HeadersView
from core.values import lazily

if TYPE_CHECKING:
    from core.http import body, cookies, url
    from core.http.query import URLSearchParams
    from core.http.request import Request
    from core.http.response import Response
    from core.http.url import URL
else:  # hosts answer most requests without them
    __getattr__ = lazily(
        __name__,
        {
            "core.http.body": "body",
            "core.http.cookies": "cookies",
            "core.http.query": "URLSearchParams",
            "core.http.request": "Request",
            "core.http.response": "Response",
            "core.http.url": "URL url",
        },
    )

__all__ = [
    "Headers",
    "HeadersView",
    "Request",
    "Response",
    "URL",
    "URLSearchParams",
    "body",
    "cookies",
    "headers",
    "json",
    "paths",
    "streams",
    "url",
]
