"""Requests and responses: what they are made of, their URLs and statuses, and bodies that are read once."""

from __future__ import annotations

import asyncio
import http as stdlib_http
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import http
from core.http.json import JSONDecodeError
from core.http.url import URL

URL_ = "https://example.test/path?x=1"
USED = "Body has already been used. It can only be used once. Use tee() first if you need to read it twice."
NULL_BODY = "Response with null body status (101, 204, 205, or 304) cannot have a body."


class Pieces:
    """A stream that knows how often it was asked and whether it was closed."""

    def __init__(self, *pieces: Any) -> None:
        self.pieces = list(pieces)
        self.asked = 0
        self.closed = False

    def __aiter__(self) -> Pieces:
        return self

    async def __anext__(self) -> Any:
        self.asked += 1
        await asyncio.sleep(0)
        if not self.pieces:
            raise StopAsyncIteration
        return self.pieces.pop(0)

    async def aclose(self) -> None:
        self.closed = True


def both(body: Any) -> list[http.Request | http.Response]:
    return [http.Request(URL_, method="POST", body=body), http.Response(body)]


# ---- bodies


@pytest.mark.parametrize("body", ["é", b"\xc3\xa9", bytearray(b"\xc3\xa9"), memoryview(b"\xc3\xa9")])
async def test_a_body_is_made_of_text_or_of_anything_like_bytes(body: Any) -> None:
    for message in both(body):
        assert await message.bytes() == b"\xc3\xa9"
    for message in both(body):
        assert await message.text() == "é"


async def test_a_body_may_be_a_stream() -> None:
    for message in both(None):
        assert message.body is None
    for message in [http.Response(Pieces(b"a", bytearray(b"b"), memoryview(b"c")))]:
        assert not message.body_used
        assert await message.text() == "abc"
        assert message.body_used


@pytest.mark.parametrize("body", [5, ["a"], {"a": 1}, object(), iter([b"a"])])
def test_a_body_of_anything_else_is_refused_with_what_it_may_be(body: Any) -> None:
    with pytest.raises(TypeError, match="an async iterable of bytes, or None"):
        http.Response(body)


async def test_a_stream_of_texts_is_refused_with_the_way_out() -> None:
    pieces = Pieces("a")
    with pytest.raises(TypeError, match=r"text\.encode\(\)"):
        await http.Response(pieces).bytes()
    assert pieces.closed


async def test_a_body_is_used_once_whatever_reads_it() -> None:
    for body in ("1", Pieces(b"1")):
        for message in [http.Response(body)]:
            assert await message.text() == "1"
            assert message.body_used
            for reader in ("text", "bytes", "json"):
                with pytest.raises(TypeError) as refused:
                    await getattr(message, reader)()
                assert str(refused.value) == USED
            with pytest.raises(TypeError) as refused:
                message.stream()
            assert str(refused.value) == USED
            with pytest.raises(TypeError, match="currently locked to a reader"):
                message.clone()


async def test_no_body_reads_as_empty_any_number_of_times() -> None:
    for message in (http.Request(URL_), http.Response(), http.Response("", status=204)):
        for _ in range(2):
            assert await message.text() == ""
            assert await message.bytes() == b""
            assert message.body_bytes_or_none() == b""
            assert [chunk async for chunk in message.stream()] == []
            with pytest.raises(JSONDecodeError):
                await message.json()
        assert not message.body_used
        assert await message.clone().text() == ""


async def test_text_is_utf_8_without_its_mark_and_with_faults_replaced() -> None:
    assert await http.Response(b"a\xff").text() == "a\ufffd"
    assert await http.Response(b"\xef\xbb\xbfa").text() == "a"
    assert await http.Response(b"\xef\xbb\xbf\xef\xbb\xbfa").text() == "\ufeffa"
    assert await http.Response("a\ud800\ud83d\ude00").bytes() == "a\ufffd\U0001f600".encode()


async def test_json_is_read_with_a_mark_and_refused_where_it_is_none() -> None:
    assert await http.Response(b'\xef\xbb\xbf{"a":1}').json() == {"a": 1}
    for text in ("", "{bad", "NaN"):
        with pytest.raises(JSONDecodeError):
            await http.Response(text).json()


async def test_a_whole_body_can_be_had_without_waiting() -> None:
    message = http.Response("x")
    assert message.body_bytes_or_none() == b"x"
    with pytest.raises(TypeError):
        message.body_bytes_or_none()
    streamed = http.Response(Pieces(b"x"))
    assert streamed.body_bytes_or_none() is None
    assert not streamed.body_used
    assert await streamed.bytes() == b"x"


async def test_stream_gives_the_chunks_and_closes_its_source_when_the_reader_stops() -> None:
    assert [chunk async for chunk in http.Response("abc").stream()] == [b"abc"]
    pieces = Pieces(b"a", b"b", b"c")
    stream = http.Response(pieces).stream()
    assert await anext(stream) == b"a"
    await stream.aclose()
    assert pieces.closed
    assert pieces.asked == 1


async def test_a_host_s_body_is_had_whole_with_one_await() -> None:
    class Whole(Pieces):
        async def read_body(self) -> bytes:
            return b"whole"

    whole = Whole(b"never")
    response = http.Response(whole)
    assert await response.text() == "whole"
    assert whole.asked == 0
    with pytest.raises(TypeError):
        await response.bytes()


async def test_a_body_handed_on_is_used_up_where_it_came_from() -> None:
    for body in ("pass on", Pieces(b"pass ", b"on")):
        first = http.Response(body)
        second = http.Response(first.body)
        third = http.Response(second.body)
        assert [message.body_used for message in (first, second)] == [False, False]
        assert await third.text() == "pass on"
        assert [message.body_used for message in (first, second)] == [True, True]
        with pytest.raises(TypeError):
            await http.Response(first.body).text()


async def test_both_of_a_cloned_stream_get_all_of_it_and_it_is_read_once() -> None:
    pieces = Pieces(b"a", b"b", b"c")
    first = http.Response(pieces, headers={"x": "1"})
    second = first.clone()
    third = second.clone()
    second.headers["x"] = "2"
    assert first.headers["x"] == "1"
    texts = await asyncio.gather(first.text(), second.text(), third.text())
    assert set(texts) == {"abc"}
    assert pieces.asked == 4
    assert pieces.closed


async def test_a_stream_that_fails_fails_for_both_clones() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"a"
        raise OSError("gone")

    first = http.Response(failing())
    second = first.clone()
    for message in (first, second):
        with pytest.raises(OSError, match="gone"):
            await message.text()


@given(st.lists(st.binary(max_size=4), max_size=6), st.lists(st.booleans(), max_size=16))
def test_two_clones_read_in_any_order_give_the_same(pieces: list[bytes], order: list[bool]) -> None:
    async def play() -> None:
        first = http.Response(Pieces(*pieces))
        second = first.clone()
        streams = {True: first.stream(), False: second.stream()}
        got: dict[bool, list[bytes]] = {True: [], False: []}
        for which in order:
            async for chunk in streams[which]:
                got[which].append(chunk)
                break
        for which, stream in streams.items():
            got[which] += [chunk async for chunk in stream]
        assert got[True] == got[False] == pieces

    asyncio.run(play())


async def test_a_source_is_closed_when_both_clones_have_let_go_and_kept_for_one_that_has_not() -> None:
    pieces = Pieces(*[b"x"] * 5)
    first = http.Response(pieces)
    second = first.clone()
    stream = first.stream()
    assert await anext(stream) == b"x"
    await stream.aclose()
    assert not pieces.closed
    assert await second.text() == "xxxxx"
    assert pieces.closed


async def test_a_cancelled_reader_never_cuts_the_other_one_s_body_short_in_silence() -> None:
    async def waiting() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.Event().wait()

    first = http.Response(waiting())
    second = first.clone()
    reading = asyncio.ensure_future(first.text())
    for _ in range(5):
        await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    with pytest.raises(ConnectionAbortedError, match="other reader was cancelled"):
        await second.text()


# ---- requests


def test_a_request_has_the_normalised_url_its_path_and_its_query_string() -> None:
    request = http.Request("HTTPS://Example.test:443/a/./b/%2e%2e/c d?q=é&r=1#f")
    assert request.url == "https://example.test/a/c%20d?q=%C3%A9&r=1#f"
    assert request.path == "/a/c%20d"
    assert request.query_string == "q=%C3%A9&r=1"
    assert http.Request("http://a").path == "/"
    assert http.Request(URL("https://example.test/u?a=b")).url == "https://example.test/u?a=b"
    assert repr(request) == f"<Request GET {request.url}>"


@pytest.mark.parametrize("url", ["/relative", "not a url", "", "https://", "https://exa mple.test/"])
def test_a_request_needs_an_absolute_url(url: str) -> None:
    with pytest.raises(TypeError) as refused:
        http.Request(url)
    assert str(refused.value) == f"Invalid URL: {url}"


def test_known_methods_are_made_upper_case_and_others_stay() -> None:
    assert [http.Request(URL_, method=m).method for m in ("get", "Post", "pAtCh", "PROPFIND", "foo")] == [
        "GET",
        "POST",
        "PATCH",
        "PROPFIND",
        "foo",
    ]
    for method in ("", "A B", "GET\r\n", "CONNECT", "é"):
        with pytest.raises(TypeError) as refused:
            http.Request(URL_, method=method)
        assert str(refused.value) == f"Invalid HTTP method string: {method}"


@pytest.mark.parametrize("method", ["GET", "HEAD", "get"])
@pytest.mark.parametrize("given", [{"body": ""}, {"body": b""}, {"body": "x"}, {"json": None}])
def test_get_and_head_have_no_body_not_even_an_empty_one(method: str, given: dict[str, Any]) -> None:
    with pytest.raises(TypeError) as refused:
        http.Request(URL_, method=method, **given)
    assert str(refused.value) == "Request with a GET or HEAD method cannot have a body."


async def test_json_sets_the_body_and_its_content_type_unless_one_is_given() -> None:
    request = http.Request(URL_, method="POST", json={"a": ["é"]})
    assert request.headers["content-type"] == "application/json"
    assert await request.json() == {"a": ["é"]}
    assert await http.Request(URL_, method="POST", json=None).text() == "null"
    request = http.Request(URL_, method="POST", json=1, headers={"Content-Type": "application/x+json"})
    assert request.headers["content-type"] == "application/x+json"
    with pytest.raises(TypeError, match="only one of them"):
        http.Request(URL_, method="POST", json=1, body="x")


def test_a_string_body_sets_a_content_type_and_bytes_set_none() -> None:
    for message in both("x"):
        assert message.headers["content-type"] == "text/plain;charset=UTF-8"
    for message in both(b"x"):
        assert not message.headers
    assert http.Response("x", headers={"content-type": "a/b"}).headers["content-type"] == "a/b"


async def test_a_request_from_a_request_takes_what_is_not_given_and_its_body() -> None:
    first = http.Request(URL_, method="POST", body="x", headers={"h": "1"})
    second = http.Request(first, method="PUT", headers={"g": "2"})
    assert (second.method, second.url, second.path, second.query_string) == ("PUT", URL_, "/path", "x=1")
    assert list(second.headers) == ["g"] or list(second.headers.items()) == [("g", "2")]
    assert await second.text() == "x"
    assert first.body_used
    with pytest.raises(TypeError) as refused:
        http.Request(first)
    assert str(refused.value) == "Cannot reconstruct a Request with a used body."
    assert http.Request(http.Request(URL_, headers={"h": "1"})).headers == {"h": "1"}


def test_the_headers_of_a_request_are_its_own() -> None:
    given = http.Headers({"a": "1"})
    request = http.Request(URL_, headers=given)
    request.headers["a"] = "2"
    assert given["a"] == "1"
    assert request.header("A") == "2"
    assert http.Request(URL_).header("a") is None
    with pytest.raises(TypeError):
        http.Request(URL_, headers={"a": "b\r\nc"})


async def test_a_clone_of_a_request_is_complete_and_independent() -> None:
    first = http.Request(URL_, method="POST", body="x", headers={"a": "1"})
    second = first.clone()
    second.headers["a"] = "2"
    assert first.headers["a"] == "1"
    assert (second.method, second.url, second.path, second.query_string) == ("POST", URL_, "/path", "x=1")
    assert await first.text() == await second.text() == "x"
    bare = http.Request(URL_).clone()
    assert (bare.url, dict(bare.headers)) == (URL_, {})


def test_one_header_of_a_request_is_read_without_regard_to_case() -> None:
    request = http.Request(URL_, headers=[("X-A", "1"), ("x-a", "2")])
    assert request.header("X-a") == "1, 2"
    assert request.header("nope") is None
    assert http.Request(URL_).header("x-a") is None


# ---- responses


def test_a_status_is_an_int_from_200_to_599() -> None:
    for status in (200, 299, 599, stdlib_http.HTTPStatus.NOT_FOUND):
        assert http.Response(status=status).status == status
    for status in (199, 600, 100, 101, 0, -1, 1000):
        with pytest.raises(ValueError, match="in the range 200 to 599, inclusive"):
            http.Response("x", status=status)
    for wrong in ("200", True, None, 200.0):
        with pytest.raises(TypeError, match="must be an int"):
            http.Response(status=wrong)  # type: ignore[arg-type]  # what the test is about
    assert [http.Response(status=s).ok for s in (200, 299, 300, 404)] == [True, True, False, False]


@pytest.mark.parametrize("status", [204, 205, 304])
def test_a_status_without_a_body_has_none(status: int) -> None:
    for body in ("x", b"x", Pieces(b"x")):
        with pytest.raises(TypeError) as refused:
            http.Response(body, status=status)
        assert str(refused.value) == NULL_BODY
    with pytest.raises(TypeError):
        http.Response.from_json({}, status=status)
    empty = http.Response("", status=status)
    assert empty.body is None
    assert not empty.headers


def test_a_status_text_can_end_no_line() -> None:
    assert http.Response(status_text="Näh").status_text == "Näh"
    assert http.Response().status_text == ""
    for text in ("a\r\nb", "a\0", "日", "a\n"):
        with pytest.raises(TypeError, match="Invalid status text"):
            http.Response(status_text=text)


async def test_from_json_writes_compactly_and_keeps_a_given_content_type() -> None:
    response = http.Response.from_json({"e": ["é"]}, status=400, headers={"x-a": "1"}, status_text="Bad")
    assert (response.status, response.status_text) == (400, "Bad")
    assert list(response.headers.items()) == [("content-type", "application/json"), ("x-a", "1")]
    assert await response.text() == '{"e":["é"]}'
    problem = http.Response.from_json(1, headers={"content-type": "application/problem+json"})
    assert problem.headers["content-type"] == "application/problem+json"
    with pytest.raises(ValueError, match="nan"):
        http.Response.from_json([float("nan")])


def test_a_redirect_is_absolute_and_normalised() -> None:
    response = http.Response.redirect("https://EXAMPLE.test/a b?q=é")
    assert response.status == 302
    assert list(response.headers.items()) == [("location", "https://example.test/a%20b?q=%C3%A9")]
    assert response.body is None
    assert http.Response.redirect(URL("http://a/"), 308).status == 308
    for url in ("/relative", "", "javascript:alert(1)"):
        with pytest.raises(TypeError) as refused:
            http.Response.redirect(url)
        assert str(refused.value) == f"Unable to parse URL: {url}"
    with pytest.raises(ValueError, match="200 is not a redirect status code"):
        http.Response.redirect("https://a/", 200)


async def test_the_network_error_is_empty() -> None:
    error = http.Response.error()
    assert (error.type, error.status, error.ok) == ("error", 0, False)
    assert not error.headers
    assert await error.text() == ""
    assert error.clone().type == "error"
    assert http.Response().type == "default"
    assert not http.Response().redirected


async def test_an_assembled_response_keeps_its_parts() -> None:
    headers = http.Headers.trusted({"a": "1"}, [])
    response = http.Response.assembled(204, headers, None)
    assert response.headers is headers
    assert repr(response) == "<Response 204>"
    assert await http.Response.assembled(200, headers, b"x").text() == "x"


def test_the_values_have_no_room_for_misspelt_attributes() -> None:
    for value in (http.Request(URL_), http.Response(), http.Headers()):
        with pytest.raises(AttributeError):
            value.stauts = 1  # type: ignore[union-attr]  # what the test is about
