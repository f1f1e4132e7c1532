"""The length that an answer says is the length that it has, on every host: what hosts write is decided in one place."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.asgi import ask as ask_asgi
from tests.support.asgi import scope_of
from tests.support.fetch import ask

from core import App, Request, Response, create_app, http
from core.middleware.secure_headers import secure_hdrs

STAGE: list[Callable[[Response, str], object]] = [
    lambda res, length: res.header("Content-Length", length),
    lambda res, length: res.append("Content-Length", length),
    lambda res, length: res.headers.__setitem__("Content-Length", length),
    lambda res, length: res.headers.append("Content-Length", length),
    lambda res, length: res.headers.update({"content-length": length}),
    lambda res, length: res.headers.setdefault("CONTENT-LENGTH", length),
]


def sending(
    length: str | None, send: Callable[[Response], object], stage: Callable[[Response, str], object] = STAGE[0]
) -> App[Any]:
    app = create_app()
    app.use(secure_hdrs())

    @app.all("/")
    async def handler(req: Request, res: Response) -> None:
        if length is not None:
            stage(res, length)
        send(res)

    return app


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    for piece in given:
        yield piece


async def lengths(app: App[Any], method: str = "GET") -> tuple[list[bytes], bytes]:
    """The lengths that are on the wire, and the body."""
    start, *rest = await ask_asgi(app, scope_of(method=method))
    found = [value for name, value in start["headers"] if name == b"content-length"]
    return found, b"".join(message.get("body", b"") for message in rest)


@pytest.mark.parametrize("stage", STAGE)
@given(
    length=st.sampled_from(["0", "2", "999", "-1", "5, 5", "x", "²", "1" * 30]),
    body=st.text(max_size=20) | st.binary(max_size=20),
)
async def test_a_body_that_is_at_hand_has_its_own_length(
    stage: Callable[[Response, str], object], length: str, body: str | bytes
) -> None:
    def send(res: Response) -> None:
        res.text(body) if isinstance(body, str) else res.send(http.Response(body))

    whole = body.encode() if isinstance(body, str) else body
    assert await lengths(sending(length, send, stage)) == ([b"%d" % len(whole)], whole)


async def test_an_answer_without_a_body_has_none_of_another_length() -> None:
    assert await lengths(sending("7", lambda res: res.send())) == ([b"0"], b"")
    assert await lengths(sending("7", lambda res: res.status(204).send())) == ([], b"")
    assert await lengths(sending("7", lambda res: res.status(304).send())) == ([], b"")


async def test_the_answer_to_head_has_the_length_that_the_answer_to_get_has() -> None:
    assert await lengths(sending("7", lambda res: res.text("four")), "HEAD") == ([b"4"], b"")
    assert await lengths(sending("7", lambda res: res.stream(pieces(b"four"))), "HEAD") == ([b"7"], b"")
    assert await lengths(sending("x", lambda res: res.stream(pieces(b"four"))), "HEAD") == ([], b"")


@given(st.lists(st.binary(max_size=5), max_size=5))
async def test_a_stream_of_the_length_that_it_said_is_whole(given: list[bytes]) -> None:
    whole = b"".join(given)
    app = sending(str(len(whole)), lambda res: res.stream(pieces(*given)))
    assert await lengths(app) == ([b"%d" % len(whole)], whole)


@given(st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=5), st.data())
async def test_what_is_beyond_the_length_is_cut_and_logged(given: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(given)
    length = data.draw(st.integers(0, len(whole) - 1))
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[assignment, method-assign]  # what a handler is for
    log = logging.getLogger("core")
    log.addHandler(handler)
    try:
        found = await lengths(sending(str(length), lambda res: res.stream(pieces(*given))))
    finally:
        log.removeHandler(handler)
    assert found == ([b"%d" % length], whole[:length])
    assert [record.getMessage() for record in records] == [
        "the body of GET / is longer than the Content-Length that was staged; the rest is cut"
    ]


async def test_a_stream_that_ends_early_breaks_the_answer() -> None:
    app = sending("9", lambda res: res.stream(pieces(b"four")))
    with pytest.raises(EOFError, match="the body of GET / ended 5 bytes before the Content-Length"):
        await lengths(app)
    response = await ask(app)
    with pytest.raises(EOFError):
        await response.bytes()


async def test_transfer_encoding_is_never_the_applications() -> None:
    def send(res: Response) -> None:
        res.header("Transfer-Encoding", "chunked").headers["transfer-encoding"] = "chunked"
        res.text("four")

    start, _ = await ask_asgi(sending(None, send), scope_of())
    assert [name for name, _ in start["headers"] if name == b"transfer-encoding"] == []


async def test_a_passed_on_stream_is_held_to_the_length_that_came_with_it() -> None:
    def send(res: Response) -> None:
        res.send(http.Response(pieces(b"four", b"more"), headers={"content-length": "6"}))

    assert await lengths(sending(None, send)) == ([b"6"], b"fourmo")
