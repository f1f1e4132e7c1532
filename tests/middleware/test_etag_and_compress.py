"""`etag` and `compress`: less to send, and caches that keep the forms apart."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.app import App
from core.errors import CoreError
from core.http.conditional import none_match
from core.middleware.compress import compress
from core.middleware.etag import etag
from core.request import Request
from core.response import Response
from core.testing import Client

LONG = "hello " * 1000


def client_with(*middleware: Any) -> Client[Any]:
    app: App[Any] = App()
    app.use(*middleware)

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        res.header("Cache-Control", "max-age=5").text(LONG)

    @app.get("/own")
    async def own(req: Request[Any], res: Response) -> None:
        res.header("ETag", '"mine"').text(LONG)

    @app.get("/short")
    async def short(req: Request[Any], res: Response) -> None:
        res.text("hi")

    @app.get("/image")
    async def image(req: Request[Any], res: Response) -> None:
        res.header("Content-Type", "image/png").send(LONG.encode())

    @app.get("/encoded")
    async def encoded(req: Request[Any], res: Response) -> None:
        res.header("Content-Encoding", "br").text(LONG)

    @app.get("/part")
    async def part(req: Request[Any], res: Response) -> None:
        res.status(206).header("Content-Range", "bytes 0-5999/9999").text(LONG)

    @app.get("/asis")
    async def asis(req: Request[Any], res: Response) -> None:
        res.header("Cache-Control", "no-transform").text(LONG)

    @app.get("/stream")
    async def stream(req: Request[Any], res: Response) -> None:
        res.stream(_chunks(), content_type="text/plain")

    @app.get("/events")
    async def events(req: Request[Any], res: Response) -> None:
        res.sse(_events())

    @app.get("/fails")
    async def fails(req: Request[Any], res: Response) -> None:
        raise CoreError(400, LONG)

    @app.post("/")
    async def change(req: Request[Any], res: Response) -> None:
        res.text(LONG)

    return Client(app, None)


async def _chunks() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield b"piece "


async def _events() -> AsyncIterator[str]:
    yield "hello"


async def test_a_whole_answer_of_200_gets_a_tag_that_its_bytes_decide() -> None:
    client = client_with(etag())
    tags = [(await client.get(path)).headers["etag"] for path in ("/", "/", "/short")]
    assert tags[0] == tags[1] != tags[2]
    assert tags[0].startswith('"')
    assert (await client.head("/")).headers["etag"] == tags[0]


@pytest.mark.parametrize("given", ["{}", "W/{}", '"other", {}', '"other",W/{} , "x"', "*", ' , "a",, {}'])
async def test_who_has_it_gets_304_without_a_body_and_with_the_other_headers(given: str) -> None:
    client = client_with(etag())
    tag = (await client.get("/")).headers["etag"]
    response = await client.get("/", headers={"If-None-Match": given.format(tag)})
    assert (response.status, await response.bytes()) == (304, b"")
    assert response.headers["etag"] == tag
    assert response.headers["cache-control"] == "max-age=5"
    assert "content-type" not in response.headers
    assert "content-length" not in response.headers


@pytest.mark.parametrize("given", ['"other"', "abc", "", '"', 'W/"', "x" * 5000, '"a" b "c"'])
async def test_who_has_not_gets_it(given: str) -> None:
    assert (await client_with(etag()).get("/", headers={"If-None-Match": given})).status == 200


async def test_a_handlers_own_tag_is_kept_and_compared() -> None:
    client = client_with(etag())
    assert (await client.get("/own")).headers["etag"] == '"mine"'
    assert (await client.get("/own", headers={"If-None-Match": '"mine"'})).status == 304


async def test_weak_tags() -> None:
    assert (await client_with(etag(weak=True)).get("/")).headers["etag"].startswith('W/"')


@pytest.mark.parametrize("path", ["/stream", "/fails", "/part"])
async def test_streams_errors_and_parts_have_none(path: str) -> None:
    response = await client_with(etag()).get(path, headers={"If-None-Match": "*"})
    assert "etag" not in response.headers
    assert response.status != 304
    await response.bytes()


async def test_a_304_behind_compress_says_what_the_answer_would() -> None:
    client = client_with(compress(), etag())
    for accept, tag in (("gzip", 'W/"mine"'), ("br", '"mine"')):
        whole = await client.get("/own", headers={"Accept-Encoding": accept})
        known = await client.get("/own", headers={"Accept-Encoding": accept, "If-None-Match": tag})
        assert (whole.headers["etag"], known.headers["etag"]) == (tag, tag)
        assert known.status == 304
        assert known.headers["vary"] == whole.headers["vary"] == "Accept-Encoding"
        assert "content-encoding" not in known.headers


async def test_other_methods_have_none() -> None:
    assert "etag" not in (await client_with(etag()).post("/")).headers


@pytest.mark.parametrize(
    "accept", ["gzip", "GZIP", "br, gzip", "gzip;q=0.1", "*", "br;q=1.0, *;q=0.5", "x-gzip", "deflate , gzip ; q=1"]
)
async def test_text_is_sent_as_gzip_to_who_accepts_it(accept: str) -> None:
    response = await client_with(compress()).get("/", headers={"Accept-Encoding": accept})
    body = await response.bytes()
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["vary"] == "Accept-Encoding"
    assert len(body) < 500
    assert gzip.decompress(body).decode() == LONG


@pytest.mark.parametrize(
    "accept", [None, "", "br", "gzip;q=0", "gzip;q=0.000", "*;q=0", "identity", "gzip;q=0, *", "x" * 2000]
)
async def test_vary_stands_also_when_not_compressed(accept: str | None) -> None:
    response = await client_with(compress()).get("/", headers={} if accept is None else {"Accept-Encoding": accept})
    assert "content-encoding" not in response.headers
    assert response.headers["vary"] == "Accept-Encoding"
    assert await response.text() == LONG


@pytest.mark.parametrize("said", ["*", "Accept, *", "*, Accept"])
async def test_a_vary_that_says_it_all_stays_as_it_is(said: str) -> None:
    app: App[Any] = App()
    app.use(compress())

    @app.get("/")
    async def show(req: Request[Any], res: Response) -> None:
        res.header("Vary", said).text("x" * 2000)

    response = await Client(app, None).get("/", headers={"Accept-Encoding": "gzip"})
    assert (response.headers["vary"], response.headers["content-encoding"]) == (said, "gzip")
    res = Response().header("Vary", said)
    assert res.append("Vary", "Origin").headers["vary"] == said


async def test_vary_stands_also_on_what_is_too_short() -> None:
    response = await client_with(compress()).get("/short", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in response.headers
    assert response.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", ["/image", "/encoded", "/part", "/asis", "/events"])
async def test_left_alone_is_what_would_not_gain_or_must_not_change(path: str) -> None:
    plain = await client_with(etag()).get(path)
    response = await client_with(compress()).get(path, headers={"Accept-Encoding": "gzip"})
    assert response.headers.get("content-encoding") == plain.headers.get("content-encoding")
    assert "vary" not in response.headers
    assert await response.bytes() == await plain.bytes()


async def test_a_stream_is_compressed_piece_by_piece() -> None:
    response = await client_with(compress()).get("/stream", headers={"Accept-Encoding": "gzip"})
    unpacker = zlib.decompressobj(31)
    pieces = [unpacker.decompress(chunk) async for chunk in response.stream()]
    assert [piece for piece in pieces if piece] == [b"piece "] * 3


async def test_the_length_and_a_strong_tag_fit_what_is_sent() -> None:
    client = client_with(compress(), etag())
    response = await client.get("/", headers={"Accept-Encoding": "gzip"})
    assert response.headers["etag"].startswith('W/"')
    assert "content-length" not in response.headers
    again = await client.get("/", headers={"Accept-Encoding": "gzip", "If-None-Match": response.headers["etag"]})
    assert again.status == 304
    assert "content-encoding" not in again.headers


@given(st.lists(st.from_regex(r'\A(W/)?"[!#-~]{0,5}"\Z'), max_size=6), st.from_regex(r'\A(W/)?"[!#-~]{0,5}"\Z'))
def test_a_list_of_tags_matches_as_a_naive_reader_would_say(tags: list[str], mine: str) -> None:
    bare = [tag.removeprefix("W/") for tag in tags]
    assert none_match(", ".join(tags), mine) is (mine.removeprefix("W/") not in bare)
