"""The standard values: a request, a response and their headers, as the Fetch and URL standards describe them.

What tests build and hosts hand over. Nothing in this room knows an application, a route or a binding.
"""

from __future__ import annotations

from core.http import body, cookies, headers, json, streams, url
from core.http.headers import Headers
from core.http.request import Request
from core.http.response import Response

__all__ = ["Headers", "Request", "Response", "body", "cookies", "headers", "json", "streams", "url"]
