"""`If-Match` before a change, and redirects that stay here."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import CoreError, Request, http


def request(url: str = "https://example.test/login", **headers: str) -> Request[Any]:
    return Request(http.Request(url, headers=headers), None, None)  # type: ignore[arg-type]  # no context is touched


@pytest.mark.parametrize(
    ("header", "etag", "ok"),
    [
        ('"a"', '"a"', True),
        ('"b", "a"', '"a"', True),
        ('"b"', '"a"', False),
        ("*", '"a"', True),
        ("*", None, False),
        ('"a"', None, False),
        ('W/"a"', '"a"', False),
        ('W/"a"', 'W/"a"', False),
        ('"a"', 'W/"a"', False),
        ("a", '"a"', False),
        ("", '"a"', False),
        ('"a', '"a"', False),
        ('"a", nonsense', '"a"', True),
        ('"x",' * 5000 + '"a"', '"a"', False),
    ],
)
def test_if_match_is_compared_strongly(header: str, etag: str | None, ok: bool) -> None:
    if ok:
        request(**{"If-Match": header}).require_match(etag)
        return
    with pytest.raises(CoreError, match="Precondition Failed") as caught:
        request(**{"If-Match": header}).require_match(etag)
    assert caught.value.status == 412


def test_without_if_match_it_goes_on_unless_it_is_required() -> None:
    request().require_match('"a"')
    with pytest.raises(CoreError, match="Precondition Required") as caught:
        request().require_match('"a"', required=True)
    assert caught.value.status == 428


@pytest.mark.parametrize(
    ("url", "to"),
    [
        ("/a?b=c#d", "/a?b=c#d"),
        ("a", "/a"),
        ("?b", "/login?b"),
        ("https://example.test/a", "/a"),
        ("https://EXAMPLE.test:443/a", "/a"),
        ("/a/../b", "/b"),
        ("/ü", "/%C3%BC"),
        ("", "/login"),
        (None, "/"),
        ("//evil.test", "/"),
        ("/\\evil.test", "/"),
        ("\\\\evil.test", "/"),
        ("/\t/evil.test", "/"),
        (" //evil.test", "/"),
        ("///evil.test", "/"),
        ("https:evil.test", "/evil.test"),
        ("https:/\\evil.test", "/"),
        ("https://evil.test", "/"),
        ("http://example.test/a", "/"),
        ("https://example.test.evil.test", "/"),
        ("https://example.test@evil.test", "/"),
        ("https://user:word@example.test/a", "/"),
        ("https://example.test//evil.test", "/"),
        ("/.//evil.test", "/"),
        ("/a/..//evil.test", "/"),
        ("javascript:alert(1)", "/"),
        ("data:text/html,x", "/"),
        ("https://[", "/"),
        ("\x00//evil.test", "/"),
    ],
)
def test_only_what_leads_to_this_origin_is_kept(url: str | None, to: str) -> None:
    assert request().local_url(url) == to


def test_the_default_is_for_everything_else() -> None:
    assert request().local_url("//evil.test", "/home") == "/home"


@given(st.text(alphabet="/\\.:@?# \ttestevilhps", max_size=20))
def test_no_spelling_leads_away(url: str) -> None:
    own = request()
    to = own.local_url(url)
    assert to.startswith("/")
    assert http.URL(to, own.url).origin == "https://example.test"
