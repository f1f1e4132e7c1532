"""The targets of the fuzzer, driven by hypothesis, and over what the fuzzer came upon."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.targets import TARGETS

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*/*"))

# Pieces of what each target reads: random bytes alone rarely come near a parser's corners.
PIECES = {
    "path": [b"/", b"..", b".", b"%2e", b"%2F", b"%5c", b"\\", b"//", b"%00", b"%", b"%zz", b"admin", b"files", b"assets", b"a.txt", b".env", b"%C3%BC", b"%ff", b"?", b"#", b"secret.txt", b"%252e"],
    "query": [b"a", b"=", b"&", b"+", b"%20", b"%", b"%zz", b"%ff", b"%C3%BC", b"#", b";"],
    "header": [b"X-A", b":", b" ", b"\t", b"\r\n", b"\n", b"\0", b"\xe9", b"value", b",", b"Set-Cookie"],
    "request_headers": [b"https://a.test", b"null", b"a=b", b";", b",", b"x", b" ", b"\t", b"eyJ.eyJ.x", b'"', b"%", b"\xe9"],
    "cookie": [b"a", b"=", b";", b" ", b'"', b"%20", b"%", b"__Host-", b"__Secure-", b"\xc3\xbc", b"/", b".", b","],
    "multipart": [b"--B", b"\r\n", b"\n", b"Content-Disposition: form-data", b'; name="a"', b'; filename="f"', b"x", b"--", b":", b" ", b"\0", b"\xff", b"Content-Type: a/b", b"%22", b"\\"],
    "range": [b"bytes=", b"0", b"-", b"9", b",", b" ", b'"x"', b"W/", b"*", b"Sun, 06 Nov 1994 08:49:37 GMT"],
    "events": [b"\n", b"\r", b"\r\n", b"\0", b"data: x", b"\x1f", b"id: 1", b":", b"\xe2\x80\xa8", b"event"],
    "json": [b"{", b"}", b"[", b"]", b'"', b":", b",", b"1", b"e400", b"NaN", b"null", b"\\u", b"d800", b"-", b".5", b" "],
    "connection": [b"GET /known HTTP/1.1\r\n", b"POST /echo HTTP/1.1\r\n", b"HEAD /stream HTTP/1.0\r\n", b"OPTIONS * HTTP/1.1\r\n", b"Host: a\r\n", b"Content-Length: 2\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Connection: upgrade\r\nUpgrade: websocket\r\n", b"\r\n", b"2\r\nhi\r\n", b"0\r\n\r\n", b"hi"],
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_has_pieces(name: str) -> None:
    assert name in PIECES


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data())
def test_whatever_comes_in_the_promises_hold(name: str, data: st.DataObject) -> None:
    pieces = st.lists(st.sampled_from(PIECES[name]) | st.binary(max_size=4), max_size=20).map(b"".join)
    TARGETS[name](data.draw(pieces))


@pytest.mark.parametrize("finding", CORPUS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_the_fuzzer_came_upon_holds(finding: Path) -> None:
    TARGETS[finding.parent.name](finding.read_bytes())
