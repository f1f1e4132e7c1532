"""The standard values: a request, a response and their headers, as the Fetch and URL standards describe them.

Tests build them and hosts hand them over. Nothing in this room depends on an application, a route or a binding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.http import body, headers, json, streams, url
from core.http.headers import Headers, HeadersView
from core.http.request import Request
from core.http.response import Response
from core.http.url import URL

if TYPE_CHECKING:
    from core.http import cookies
    from core.http.query import URLSearchParams

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
    "streams",
    "url",
]


if not TYPE_CHECKING:  # a type checker would take the module to have every name

    def __getattr__(name: str) -> object:
        # Loaded when first asked for: most workers meet neither.
        if name == "cookies":
            from importlib import import_module

            return import_module("core.http.cookies")
        if name == "URLSearchParams":
            from core.http.query import URLSearchParams

            return URLSearchParams
        raise AttributeError(f"module 'core.http' has no attribute {name!r}")
