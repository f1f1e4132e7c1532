"""The standard values: a request, a response and their headers, as the Fetch and URL standards describe them.

Tests build them and hosts hand them over. Nothing in this room depends on an application, a route or a binding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.http import headers, json, paths, streams
from core.http.headers import Headers, HeadersView

if TYPE_CHECKING:
    from core.http import body, cookies, url
    from core.http.query import URLSearchParams
    from core.http.request import Request
    from core.http.response import Response
    from core.http.url import URL

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


if not TYPE_CHECKING:  # a type checker would take the module to have every name
    # Loaded when first asked for: hosts answer most requests without them.
    _HOMES = {"Request": "request", "Response": "response", "URL": "url", "URLSearchParams": "query"}

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in ("body", "cookies", "url"):
            return import_module(f"core.http.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'core.http' has no attribute {name!r}")
        value: object = getattr(import_module(f"core.http.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
