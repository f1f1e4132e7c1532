"""The standard values: a request, a response and their headers, as the Fetch and URL standards describe them.

What tests build and hosts hand over. Nothing in this room knows an application, a route or a binding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.http import body, headers, json, streams, url
from core.http.headers import Headers
from core.http.request import Request
from core.http.response import Response

if TYPE_CHECKING:
    from core.http import cookies

__all__ = ["Headers", "Request", "Response", "body", "cookies", "headers", "json", "streams", "url"]


def __getattr__(name: str) -> object:
    # Loaded with the first cookie: most workers meet none.
    if name == "cookies":
        from importlib import import_module

        return import_module("core.http.cookies")
    raise AttributeError(f"module 'core.http' has no attribute {name!r}")
