"""A stream of a model's answer gives its connection back when it is read no further."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from core.bindings.ai import AiStream
from core.http.streams import close


class Source:
    """Events of a server; `closed` is True once nothing more is read."""

    def __init__(self, *lines: bytes) -> None:
        self.lines = lines
        self.closed = False

    async def events(self) -> AsyncIterator[bytes]:
        try:
            for line in self.lines:
                yield line + b"\n"
        finally:
            self.closed = True


A, B = b'data: {"response": "a"}', b'data: {"response": "b"}'


@pytest.mark.parametrize("how", ["text", "events"])
async def test_who_reads_no_further_closes_the_source_at_once(how: str) -> None:
    source = Source(A, B)
    stream = AiStream(source.events())
    pieces: AsyncIterator[object] = stream.text() if how == "text" else stream.events()
    assert await anext(pieces) in ("a", {"response": "a"})
    assert not source.closed
    await close(pieces)
    assert source.closed


async def test_an_answer_that_is_done_closes_the_source_though_more_would_come() -> None:
    source = Source(A, b"data: [DONE]", B)
    assert [piece async for piece in AiStream(source.events()).text()] == ["a"]
    assert source.closed
