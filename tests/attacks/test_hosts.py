"""Malformed `Host` headers: `req.url` is a URL on every host,
and says nothing that only a client claims to be a host.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.context import ExecutionContext
from core.hosts.asgi import AsgiRequest, BackgroundContext
from core.http.url import URL, origin_of
from core.request import NO_PARAMS

GOOD = [
    ("example.test", "http://example.test"),
    ("EXAMPLE.test:8080", "http://example.test:8080"),
    ("example.test:80", "http://example.test"),
    ("example.test:", "http://example.test"),
    ("[::1]", "http://[::1]"),
    ("[2001:DB8::0]:9", "http://[2001:db8::]:9"),
    ("192.0.2.7:1", "http://192.0.2.7:1"),
    ("a_b.test", "http://a_b.test"),
    ("xn--bcher-kva.test", "http://xn--bcher-kva.test"),
]
BAD = [
    "", " ", "a:80:90", "a:b", "a:65536", "[::1", "::1", "[::1]a", "[1.2.3.4]", "[v1.a]", "<svg>", "a%2fb", "a%41", "user@a", "a/b", "a?b", "a#b",
    "a\\b", "a b", "a, b", "a\tb", "1.2.3.999", "ä.test", "a\x7f", "^", "|", '"', ":80", "\x00", "a\n",
]  # fmt: skip


def over_asgi(host: str | None, server: Any = ("127.0.0.1", 8000)) -> str:
    req: Any = AsgiRequest.bound(None, _context())()
    headers = [] if host is None else [(b"host", host.encode("latin-1", "replace"))]
    req._scope = {"headers": headers, "query_string": b"q=1", "scheme": "http", "server": server}
    req._index = req._headers = None
    req.path, req.params = "/a", NO_PARAMS
    url: str = req.url
    return url


def _context() -> Any:
    context: ExecutionContext = BackgroundContext()
    return context


@pytest.mark.parametrize(("host", "origin"), GOOD)
def test_a_host_is_taken_as_the_url_standard_writes_it(host: str, origin: str) -> None:
    assert over_asgi(host) == f"{origin}/a?q=1"


@pytest.mark.parametrize("host", [*BAD, None])
def test_what_is_no_host_is_passed_over(host: str | None) -> None:
    assert over_asgi(host) == "http://127.0.0.1:8000/a?q=1"


@pytest.mark.parametrize(
    ("server", "origin"),
    [(None, "http://localhost"), (("/run/app.sock", None), "http://localhost"), (("::1", 8000), "http://[::1]:8000")],
)
def test_over_asgi_the_servers_address_is_one_too(server: Any, origin: str) -> None:
    assert over_asgi("", server) == f"{origin}/a?q=1"


@given(st.text(st.characters(max_codepoint=255)) | st.text("ab.:[]%0123@/"))
def test_whatever_was_sent_it_is_an_origin_and_nothing_more(host: str) -> None:
    origin = origin_of("https", host)
    assert URL(origin).origin == origin
    assert URL(f"{origin}/a").pathname == "/a"
    assert URL(origin).username == ""
