"""Server-sent events: what goes out is one event each, and silence is kept alive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.app import App
from core.http.sse import Event, encode_event, encode_events
from core.request import Request
from core.response import Response
from core.testing import Client


@pytest.mark.parametrize(
    ("event", "encoded"),
    [
        ("hello", b"data: hello\n\n"),
        ("", b"data: \n\n"),
        (Event(data={"a": 1}), b'data: {"a":1}\n\n'),
        (7, b"data: 7\n\n"),
        ([1, None], b"data: [1,null]\n\n"),
        ({"data": "x", "event": "tick", "id": "7"}, b'data: {"data":"x","event":"tick","id":"7"}\n\n'),
        (Event(data="x", event="tick", id="7", retry=1000), b"event: tick\nid: 7\nretry: 1000\ndata: x\n\n"),
        ({"data": "x", "other": 1}, b'data: {"data":"x","other":1}\n\n'),
        ({}, b"data: {}\n\n"),
        (Event(comment="a\nb"), b": a\n: b\n\n"),
        (Event(event="x", data=None), b"event: x\n\n"),
        (None, b"data: null\n\n"),
        ("\ud800", "data: �\n\n".encode()),
    ],
)
def test_texts_mappings_values_and_events(event: object, encoded: bytes) -> None:
    assert encode_event(event) == encoded


@pytest.mark.parametrize("break_", ["\n", "\r", "\r\n"])
def test_newlines_in_data_are_lines_of_the_same_event(break_: str) -> None:
    assert encode_event(f"a{break_}data: b{break_}{break_}id: 9") == b"data: a\ndata: data: b\ndata: \ndata: id: 9\n\n"


@pytest.mark.parametrize("break_", ["\n", "\r", "\r\n", "\0"])
def test_newlines_and_nul_in_event_and_id_are_neutralised(break_: str) -> None:
    event = Event(event=f"a{break_}data: forged", id=f"1{break_}{break_}data: forged", data="x")
    assert encode_event(event) == b"event: adata: forged\nid: 1data: forged\ndata: x\n\n"


@pytest.mark.parametrize("retry", [-1, 1.5, True, "5\ndata: x"])
def test_retry_is_a_number(retry: Any) -> None:
    with pytest.raises(ValueError, match="retry"):
        encode_event(Event(retry=retry))


@given(st.text(), st.text(), st.text())
def test_one_event_is_one_event_whatever_its_fields_hold(data: str, event: str, id: str) -> None:
    encoded = encode_event(Event(data=data, event=event, id=id)).decode()
    assert encoded.count("\n\n") == 1
    assert encoded.endswith("\n\n")
    assert "\r" not in encoded


async def _count(closed: list[str], gap: float = 0.0) -> AsyncIterator[str]:
    try:
        for number in range(3):
            yield str(number)
            await asyncio.sleep(gap)
    finally:
        closed.append("closed")


@pytest.mark.parametrize("keep_alive", [None, 15.0])
async def test_a_handler_streams_events_with_the_right_headers(keep_alive: float | None) -> None:
    closed: list[str] = []
    app: App[Any] = App()

    @app.get("/")
    async def events(req: Request[Any], res: Response) -> None:
        res.sse(_count(closed), keep_alive=keep_alive)

    response = await Client(app, None).get("/")
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["cache-control"] == "no-cache"
    assert await response.text() == "data: 0\n\ndata: 1\n\ndata: 2\n\n"
    assert closed == ["closed"]


@pytest.mark.parametrize("keep_alive", [0, -1.0, float("nan")])
def test_comments_without_a_pause_are_refused(keep_alive: float) -> None:
    with pytest.raises(ValueError, match="must be above 0, in seconds"):
        Response().sse(_count([]), keep_alive=keep_alive)


async def test_silence_is_filled_with_comments() -> None:
    chunks = [chunk async for chunk in encode_events(_count([], gap=0.05), 0.01)]
    assert [chunk for chunk in chunks if not chunk.startswith(b":")] == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]
    assert b": keep-alive\n\n" in chunks


@pytest.mark.parametrize("keep_alive", [None, 15.0])
async def test_a_client_that_goes_away_ends_the_generator(keep_alive: float | None) -> None:
    closed: list[str] = []
    stream = encode_events(_count(closed, gap=3600), keep_alive)
    assert await anext(stream) == b"data: 0\n\n"
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert closed == ["closed"]


@pytest.mark.parametrize("keep_alive", [None, 15.0])
async def test_what_the_generator_raises_ends_the_stream_and_is_seen(keep_alive: float | None) -> None:
    async def broken() -> AsyncIterator[str]:
        yield "a"
        raise OSError("gone")

    stream = encode_events(broken(), keep_alive)
    assert await anext(stream) == b"data: a\n\n"
    with pytest.raises(OSError, match="gone"):
        await anext(stream)
