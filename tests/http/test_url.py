"""URLs, paths and query strings: what the WHATWG standard makes of them, and what a path splits into."""

from __future__ import annotations

import copy
import pickle
from urllib.parse import quote, unquote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from core.http.escapes import encode_query, parse_query
from core.http.paths import MalformedPathError, canonical_path, split_path
from core.http.url import URL, split_url

whole_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
path_pieces = st.lists(
    st.sampled_from(
        ["/", "\\", ".", "..", "%2e", "%2E", "%2F", "a", "b.c", "é", " ", "%", "%zz", "?", "#", "\t", "^", "~"]
    ),
    max_size=10,
).map("".join)


def test_the_parts_of_a_url() -> None:
    url = URL("https://user:pw@Example.TEST:8443/p/a?q#f")
    assert (url.protocol, url.username, url.password) == ("https:", "user", "pw")
    assert (url.host, url.hostname, url.port) == ("example.test:8443", "example.test", "8443")
    assert (url.pathname, url.search, url.hash) == ("/p/a", "?q", "#f")
    assert url.origin == "https://example.test:8443"
    assert url.href == str(url) == "https://user:pw@example.test:8443/p/a?q#f"
    assert repr(url) == f"URL({url.href!r})"
    assert URL(url) == url
    assert url != url.href
    assert copy.deepcopy(url) == pickle.loads(pickle.dumps(url)) == url
    with pytest.raises(TypeError, match="unhashable"):
        hash(url)  # it can be changed


# As Node's and the runtime's own parsers write them.
@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("https://EXAMPLE.test", "https://example.test/"),
        ("https://example.test:443/", "https://example.test/"),
        ("http://example.test:0080/", "http://example.test/"),
        ("wss://example.test:443/x", "wss://example.test/x"),
        ("http://example.test:/x", "http://example.test/x"),
        ("  http://a/\n", "http://a/"),
        ("ht\ntp://a/\tb", "http://a/b"),
        ("http:a", "http://a/"),
        ("http:////a/b", "http://a/b"),
        ("http:\\\\a\\b\\..\\c", "http://a/c"),
        ("http://a/b/./c/../d", "http://a/b/d"),
        ("http://a/%2e%2E/b/%2e", "http://a/b/"),
        ("http://a/..//x", "http://a//x"),
        ("http://a/b/..", "http://a/"),
        ("http://a/.b/..c/d.", "http://a/.b/..c/d."),
        ("http://a/a b?q=é", "http://a/a%20b?q=%C3%A9"),
        (
            'http://a/`{}|[]"<> \'?^`{}|\'" <>#^`{}|" <>',
            "http://a/%60%7B%7D|[]%22%3C%3E%20'?^`{}|%27%22%20%3C%3E#^%60{}|%22%20%3C%3E",
        ),
        ("http://a/%zz%4", "http://a/%zz%4"),
        ("http://a/?", "http://a/?"),
        ("http://a/#", "http://a/#"),
        ("http://a:b@c@d:80/", "http://a:b%40c@d/"),
        ("http://:@a/", "http://a/"),
        ("http://u:@a/", "http://u@a/"),
        ("http://:p@a/", "http://:p@a/"),
        ("http://1.2/", "http://1.0.0.2/"),
        ("http://0x7f.1", "http://127.0.0.1/"),
        ("http://017700000001", "http://127.0.0.1/"),
        ("http://1.2.3.4./", "http://1.2.3.4/"),
        ("http://0x./", "http://0.0.0.0/"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("http://[1:0:0:2:0:0:0:3]/", "http://[1:0:0:2::3]/"),
        ("http://[::FFFF:1.2.3.4]", "http://[::ffff:102:304]/"),
        ("http://[1:2:3:4:5:6:7:8]", "http://[1:2:3:4:5:6:7:8]/"),
        ("http://a%41.com", "http://aa.com/"),
        ("http://é.com", "http://xn--9ca.com/"),
        ("http://XN--9CA.com", "http://xn--9ca.com/"),
        ("http://faß.de", "http://xn--fa-hia.de/"),
        ("http://日本。jp", "http://xn--wgv71a.jp/"),
        ("http://ﬀ.com", "http://ff.com/"),
        ("http://ex\u200bample.com", "http://example.com/"),
        ("http://א.com", "http://xn--4db.com/"),
        ("http://a_b-.c--d/", "http://a_b-.c--d/"),
        ("http://a\"{}`'/", "http://a\"{}`'/"),
        ("http://a..b/", "http://a..b/"),
        ("http://a/\ud800", "http://a/%EF%BF%BD"),
        ("http://a/?\ud83d\ude00", "http://a/?%F0%9F%98%80"),
    ],
)
def test_a_url_is_written_as_the_standard_has_it(text: str, href: str) -> None:
    assert URL(text).href == href
    url = URL(href)
    assert url.href == href
    assert split_url(text) == (href, url.pathname, url.search[1:])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/relative",
        "not a url",
        "//a/b",
        "https://",
        "http:///",
        "http://?x",
        "ftp://a/",
        "mailto:a@b",
        "javascript:alert(1)",
        "https://exa mple.test/",
        "http://a<b/",
        "http://a|b/",
        "http://a^b/",
        "http://a%00/",
        "http://a%2Fb/",
        "http://%ff/",
        "http://user@/x",
        "http://@/x",
        "http://a:65536/",
        "http://a:8x/",
        "http://a:-1/",
        "http://a:８/",
        "http://256.256.256.256",
        "http://1.2.3.4.5",
        "http://a.5",
        "http://1..2",
        "http://0x1ffffffff/",
        "http://09",
        "http://[::1/",
        "http://[::1]x/",
        "http://[1:2::3:4:5:6:7:8]/",
        "http://[1::2::3]/",
        "http://[1:2]/",
        "http://[::1.2.3]/",
        "http://[::01.2.3.4]/",
        "http://[::12345]/",
        "http://[:1]/",
        "http://xn--a/",
        "http://xn--/",
        "http://\u0301a/",
        "http://a\u200cb/",
        "http://a\ufffd/",
        "http://1א/",
        "http://" + "é" * 5000,
    ],
)
def test_what_is_no_url_for_a_request_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(TypeError) as refused:
        URL(text)
    assert str(refused.value) == f"Invalid URL: {text}"
    with pytest.raises(TypeError):
        split_url(text)


def test_a_plain_url_is_passed_on_as_it_is() -> None:
    for text in (
        "https://example.test/users/1?page=2&q=a%20b",
        "http://localhost:8787/",
        "http://127.0.0.1:8000/a.b/c",
        "http://[::1]:9/x",
    ):
        assert split_url(text)[0] is text


def test_origins_that_a_client_chooses_do_not_fill_the_memory() -> None:
    from core.http import url

    for number in range(1000):
        split_url(f"http://h{number}.test/")
    known = url._is_normal.cache_info()
    assert known.currsize <= 256
    split_url(f"http://{'x' * 5000}.test/")
    assert url._is_normal.cache_info() == known  # nobody asked about it


@given(
    st.sampled_from(["http://", "https://a:", "http:", "ws://a/", "http://a", "http://a/", "http://["]),
    st.lists(
        st.sampled_from(
            [
                "/",
                "\\",
                ".",
                "..",
                "%2e",
                "a",
                "?",
                "#",
                "@",
                ":80",
                ":",
                "[::1]",
                "é",
                "%41",
                "%",
                " ",
                "\t",
                "'",
                "<",
                "1",
                "xn--",
            ]
        )
        | st.characters(),
        max_size=10,
    ),
)
def test_parsing_what_was_written_changes_nothing_and_the_short_way_agrees(start: str, rest: list[str]) -> None:
    text = start + "".join(rest)
    try:
        url = URL(text)
    except TypeError:
        with pytest.raises(TypeError):
            split_url(text)
        return
    again = URL(url.href)
    assert all(getattr(again, part) == getattr(url, part) for part in URL.__slots__)
    assert url.href.isascii()
    assert split_url(text) == (url.href, url.pathname, url.search[1:])
    assert canonical_path(url.pathname) == url.pathname


# ---- paths


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("", "/"),
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a/./b/../c", "/a/c"),
        ("/../../etc/passwd", "/etc/passwd"),
        ("/a/%2e%2E/%2e/b", "/b"),
        ("/a/.%2e/b", "/b"),
        ("\\a\\..\\b", "/b"),
        ("/a//b/", "/a//b/"),
        ("/a/..", "/"),
        ("/a%2Fb/%2f..", "/a%2Fb/%2f.."),
        ("/é b", "/%C3%A9%20b"),
        ("/a?b#c", "/a%3Fb%23c"),
        ("/.a/..b/...", "/.a/..b/..."),
        ("*", "/*"),
        ("/a\x00\r\n", "/a%00%0D%0A"),
        ("/%252e%252e/", "/%252e%252e/"),
    ],
)
def test_a_path_is_made_canonical(raw: str, path: str) -> None:
    assert canonical_path(raw) == path


def test_a_path_with_nothing_to_do_comes_back_as_it_is() -> None:
    for path in ("/", "/users/1", "/a//b/", "/files/report.pdf", "/@me/a:b;c=d,e!$&'()*+|~"):
        assert canonical_path(path) is path


@given(path_pieces)
@example("/%2e%2e/..")
def test_making_a_path_canonical_twice_changes_nothing(raw: str) -> None:
    path = canonical_path(raw)
    assert canonical_path(path) == path
    assert path[0] == "/"
    assert path.isascii()
    for segment in path.split("/"):
        assert unquote(segment) not in (".", "..")


@given(path_pieces.filter(lambda text: not set(text) & set("?#\t")))
def test_a_host_s_path_and_the_path_of_a_url_are_the_same(raw: str) -> None:
    assert canonical_path("/" + raw) == URL("http://a/" + raw.rstrip(" ")).pathname or raw.endswith(" ")


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        ("", ()),
        ("/", ()),
        ("//", ("",)),
        ("/a", ("a",)),
        ("/a/", ("a",)),
        ("/a//", ("a", "")),
        ("//a", ("", "a")),
        ("/a//b", ("a", "", "b")),
        ("/a%2Fb/c", ("a/b", "c")),
        ("/%C3%A9", ("é",)),
        ("/%252F", ("%2F",)),
        ("/a+b", ("a+b",)),
        ("/%2F/", ("/",)),
        ("/%00", ("\0",)),
    ],
)
def test_a_path_is_split_first_and_decoded_afterwards_once(path: str, segments: tuple[str, ...]) -> None:
    assert split_path(path) == segments


@pytest.mark.parametrize(
    "path", ["/%", "/%z", "/%zz", "/%2", "/a/%+1", "/% 1", "/%ff", "/%C3", "/%ED%A0%80", "/%C0%AF"]
)
def test_a_malformed_escape_or_invalid_utf_8_is_the_client_s_mistake(path: str) -> None:
    with pytest.raises(MalformedPathError):
        split_path(path)
    assert issubclass(MalformedPathError, ValueError)


@given(st.lists(whole_text, max_size=5), st.booleans())
def test_splitting_undoes_joining(segments: list[str], slash: bool) -> None:
    assume(segments and (segments != [""] or slash))
    path = "/" + "/".join(quote(segment, safe="") for segment in segments)
    # An empty last segment needs its own slash, since the last one is ignored.
    if slash or segments[-1] == "":
        path += "/"
    assert split_path(path) == tuple(segments)


@given(st.lists(st.sampled_from(["/", "a", "%41", "%C3%A9", "%2F", "%2f", "%e2%82%ac", "."]), max_size=12))
def test_splitting_agrees_with_a_naive_reference(pieces: list[str]) -> None:
    path = "/" + "".join(pieces)
    parts = path.split("/")[1:]
    if parts[-1] == "":
        parts.pop()
    assert split_path(path) == tuple(unquote(part, errors="strict") for part in parts)


@pytest.mark.slow
def test_long_paths_take_linear_time() -> None:
    assert len(split_path("/a" * 100_000)) == 100_000
    assert len(split_path("/" + "%41" * 200_000)[0]) == 200_000
    assert canonical_path("/a/.." * 100_000) == "/"
    assert len(canonical_path("é" * 100_000)) == 600_001
    with pytest.raises(TypeError):
        URL("http://[" + ":" * 200_000)
    with pytest.raises(TypeError):
        URL("http://" + "9" * 200_000)
    assert URL("http://a:" + "0" * 200_000 + "81/").port == "81"
    assert URL("http:" + "/" * 200_000 + "a").href == "http://a/"


# ---- query strings


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("a=1&b=2", [("a", "1"), ("b", "2")]),
        ("a=1&a=2", [("a", "1"), ("a", "2")]),
        ("a", [("a", "")]),
        ("=b", [("", "b")]),
        ("=", [("", "")]),
        ("&&a=1&", [("a", "1")]),
        ("a=b=c", [("a", "b=c")]),
        ("a=x+y&b=%20", [("a", "x y"), ("b", " ")]),
        ("a=%2B", [("a", "+")]),
        ("a=%zz&b=100%&c=%4", [("a", "%zz"), ("b", "100%"), ("c", "%4")]),
        ("a=%ff%C3", [("a", "��")]),
        ("%61%3D=%26", [("a=", "&")]),
        ("a=é%20", [("a", "é ")]),
        ("a=%E2%82", [("a", "�")]),
    ],
)
def test_a_query_string_is_read_as_the_standard_has_it(text: str, pairs: list[tuple[str, str]]) -> None:
    assert parse_query(text) == pairs


def test_a_query_string_is_written_with_plus_signs() -> None:
    assert encode_query([("a", "x y"), ("b", "é&="), ("c", "*-._~"), ("", "")]) == "a=x+y&b=%C3%A9%26%3D&c=*-._%7E&="
    assert encode_query([("a", "\ud800")]) == "a=%EF%BF%BD"


@given(st.lists(st.tuples(whole_text, whole_text), max_size=6))
def test_pairs_come_back_from_their_query_string(pairs: list[tuple[str, str]]) -> None:
    assert parse_query(encode_query(pairs)) == pairs


@given(st.text(st.sampled_from("ab=&%+2Fz é"), max_size=20))
def test_the_quick_way_and_the_long_way_read_the_same(text: str) -> None:
    assert parse_query(text + "&%41") == [*parse_query(text), ("A", "")]


# From the URL standard's own tests (web-platform-tests, url/resources/setters_tests.json): what is set, to what, and
# the URL afterwards.
@pytest.mark.parametrize(
    ("href", "part", "value", "changed"),
    [
        ("http://a.test/", "href", "https://B.test", "https://b.test/"),
        ("http://a.test/", "protocol", "https", "https://a.test/"),
        ("http://a.test:443/", "protocol", "https:foo", "https://a.test/"),
        ("http://a.test/", "protocol", "mailto", "http://a.test/"),
        ("http://a.test/", "protocol", "", "http://a.test/"),
        ("http://a.test/", "username", "me @", "http://me%20%40@a.test/"),
        ("http://me:pw@a.test/", "username", "", "http://:pw@a.test/"),
        ("http://me@a.test/", "password", "p:w", "http://me:p%3Aw@a.test/"),
        ("http://a.test:8080/", "host", "B.test:80", "http://b.test/"),
        ("http://a.test:8080/", "host", "b.test", "http://b.test:8080/"),
        ("http://a.test:8080/", "host", "b.test:", "http://b.test:8080/"),
        ("http://a.test/p", "host", "b.test/x?y#z", "http://b.test/p"),
        ("http://a.test/p", "host", "x y", "http://a.test/p"),
        ("http://a.test/p", "host", "", "http://a.test/p"),
        ("http://a.test/p", "host", "[::1]:9", "http://[::1]:9/p"),
        ("http://a.test/p", "host", "b.test:65536", "http://b.test/p"),
        ("http://a.test:8080/", "hostname", "b.test", "http://b.test:8080/"),
        ("http://a.test:8080/", "hostname", "b.test:1", "http://a.test:8080/"),
        ("http://a.test:8080/", "hostname", "", "http://a.test:8080/"),
        ("http://a.test/", "port", "90", "http://a.test:90/"),
        ("http://a.test:90/", "port", "", "http://a.test/"),
        ("http://a.test:90/", "port", "80", "http://a.test/"),
        ("http://a.test/", "port", "8080stuff", "http://a.test:8080/"),
        ("http://a.test:90/", "port", "x", "http://a.test:90/"),
        ("http://a.test:90/", "port", "65536", "http://a.test:90/"),
        ("http://a.test/x?q#f", "pathname", "a b/../c?#", "http://a.test/c%3F%23?q#f"),
        ("http://a.test/x", "pathname", "", "http://a.test/"),
        ("http://a.test/x", "pathname", "\\a\\%2e%2E\\b", "http://a.test/b"),
        ("http://a.test/?q#f", "search", "a=é #", "http://a.test/?a=%C3%A9%20%23#f"),
        ("http://a.test/?q#f", "search", "", "http://a.test/#f"),
        ("http://a.test/?q", "search", "??x", "http://a.test/??x"),
        ("http://a.test/?q", "search", "?", "http://a.test/?"),
        ("http://a.test/", "hash", "a b#", "http://a.test/#a%20b#"),
        ("http://a.test/#f", "hash", "", "http://a.test/"),
        ("http://a.test/", "search", "\ud800", "http://a.test/?%EF%BF%BD"),
        ("http://a.test/", "pathname", "\ud800", "http://a.test/%EF%BF%BD"),
    ],
)
def test_a_part_is_set_as_the_standard_sets_it(href: str, part: str, value: str, changed: str) -> None:
    url = URL(href)
    setattr(url, part, value)
    assert url.href == changed
    assert URL(changed) == url


def test_an_href_that_is_none_leaves_the_url_as_it_was() -> None:
    url = URL("http://a.test/")
    with pytest.raises(TypeError, match="Invalid URL"):
        url.href = "nothing"
    with pytest.raises(AttributeError):
        url.origin = "http://b.test"  # type: ignore[misc]  # what is refused
    assert url.href == "http://a.test/"


@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("", "http://u@a.test:1/b/c?d"), ("x", "http://u@a.test:1/b/x"), ("../x?y#z", "http://u@a.test:1/x?y#z"),
        ("/x", "http://u@a.test:1/x"), ("//b.test/x", "http://b.test/x"), ("\\\\b.test", "http://b.test/"),
        ("?x", "http://u@a.test:1/b/c?x"), ("#x", "http://u@a.test:1/b/c?d#x"), ("https:x", "https://x/"),
        ("http:x", "http://u@a.test:1/b/x"), ("http://b.test", "http://b.test/"), (" x\n", "http://u@a.test:1/b/x"),
    ],
)  # fmt: skip
def test_a_relative_url_is_resolved(text: str, href: str) -> None:
    assert URL(text, "http://u@a.test:1/b/c?d#e").href == href


@given(st.text(), st.text(), st.sampled_from(["protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"]))  # fmt: skip
def test_whatever_is_set_the_url_stays_one(value: str, other: str, part: str) -> None:
    url = URL("http://a.test:8080/b?c#d")
    setattr(url, part, value)
    url.search_params.append(other, value)
    assert URL(url.href).href == url.href
