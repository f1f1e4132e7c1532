"""Bodies in pieces: what a handler streams, as the bytes that a host sends."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

__all__ = ["chunks_of", "decode"]


def decode(body: bytes) -> str:
    """Bytes as text, as the Encoding standard's "UTF-8 decode" does: faults become U+FFFD, a byte order mark goes."""
    return body.decode("utf-8", "replace").removeprefix("\ufeff")


async def chunks_of(source: AsyncIterable[bytes] | AsyncIterable[str]) -> AsyncIterator[bytes]:
    """The pieces of a stream as bytes, texts as UTF-8. The source is closed when this ends, however it ends.

    Raises TypeError for a piece that is neither.
    """
    try:
        async for chunk in source:
            if isinstance(chunk, str):
                yield chunk.encode()
            elif isinstance(chunk, bytes | bytearray | memoryview):
                yield bytes(chunk)
            else:
                raise TypeError(f"a stream gave {type(chunk).__name__}. Give bytes or str in every piece")
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()
