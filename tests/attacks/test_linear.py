"""Regular expressions and splitting cost time linear in what a client sends, for every reader of a header or a body."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from core.hosts.asgi import _path_of
from core.http import cookies, paths
from core.http.conditional import none_match, parse_range
from core.http.dates import read_date
from core.http.forms import parse_header
from core.http.sse import encode_event
from core.middleware.authentication import TokenSource
from core.middleware.cache import _directives
from core.middleware.compress import accepts_coding
from core.middleware.cors import _asked_for
from core.middleware.jwt_token import parse_token
from core.middleware.rate_limit import _network, _stored_form
from core.request import Query


def quiet(function: Callable[[str], Any]) -> Callable[[str], Any]:
    def call(text: str) -> None:
        try:
            function(text)
        except Exception:
            return

    return call


BEARER = TokenSource("bearer_auth", "Bearer", "Authorization", None, 65_536)
BEARER._most = 10_000_000  # so that the expression is what bounds it

READERS: dict[str, Callable[[str], Any]] = {
    "Accept-Encoding": lambda text: accepts_coding(text, "gzip"),
    "Access-Control-Request-Headers": _asked_for,
    "Authorization": parse_token,
    "a token behind a scheme": lambda text: BEARER.token_in(f"Bearer {text}"),
    "Cache-Control": _directives,
    "Content-Disposition": parse_header,
    "Cookie": cookies.parse_cookies,
    "Edge-Connecting-IP": _network,
    "If-Modified-Since": lambda text: read_date(text, 1.8e9),
    "If-None-Match": lambda text: none_match(text, '"x"'),
    "Range": lambda text: parse_range(text, 1000),
    "a key of rate_limit": _stored_form,
    "a path": paths.canonical_path,
    "a path below a root": lambda text: _path_of(
        {"path": f"/{text}", "raw_path": f"/%61{text}".encode(), "root_path": "/api"}
    ),
    "a query": lambda text: Query(text).pairs,
    "an event": encode_event,
}

SHAPES: dict[str, Callable[[int], str]] = {
    "commas": lambda n: "," * n,
    "semicolons": lambda n: ";" * n,
    "blanks": lambda n: " " * n,
    "a blank at the end": lambda n: "a" + " " * n + "b",
    "escapes": lambda n: "%2e/" * (n // 4),
    "dots": lambda n: "../" * (n // 3),
    "slashes": lambda n: "/" * n,
    "quotes": lambda n: '"' * n,
    "unclosed quotes": lambda n: '; a="' * (n // 5),
    "backslashes": lambda n: '; a="' + "\\" * n,
    "parameters": lambda n: "; a=b" * (n // 5),
    "names": lambda n: "a=" + "a" * n,
    "tags": lambda n: 'W/"a", ' * (n // 7),
    "parts of a token": lambda n: "a." * (n // 2),
    "digits": lambda n: "bytes=" + "9" * n,
    "colons": lambda n: ":" * n,
    "line breaks": lambda n: "\r\n" * (n // 2),
    "ampersands": lambda n: "a&" * (n // 2),
}

SIZE = 20_000


def cost(function: Callable[[str], Any], text: str, tries: int = 3) -> float:
    best = float("inf")
    for _ in range(tries):
        begun = time.process_time()
        function(text)
        best = min(best, time.process_time() - begun)
    return best


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reader", READERS)
def test_eight_times_as_much_takes_about_eight_times_as_long(reader: str, shape: str) -> None:
    function = quiet(READERS[reader])
    # A linear reader is through long before that; a quadratic one takes seconds to hours, however busy the machine.
    if cost(function, SHAPES[shape](SIZE * 8), tries=1) > 0.3:
        small, large = cost(function, SHAPES[shape](SIZE)), cost(function, SHAPES[shape](SIZE * 8))
        assert large / small < 32, f"{reader} of {shape}: {small:.4f} s, then {large:.4f} s"
