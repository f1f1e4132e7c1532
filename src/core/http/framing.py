"""The framing of an answer, for every host: the length that it says is the length that it has (RFC 9112, section 6).

A body that is at hand has its own length, whatever was staged as `Content-Length`. A stream is held to the length that
was staged: what is beyond it is left out, and where it ends early the connection is broken, so that a client can tell.
Either is logged. Without this, the end of one answer would be read as the beginning of the next.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from core.http.streams import close, encode

log: logging.Logger = logging.getLogger("core")


def has_no_length(status: int, method: str) -> bool:
    """Return True if a response without a body has no length: 101, 204, 304 (RFC 9110, section 8.6) and answers to
    HEAD.
    """
    return status in (101, 204, 304) or method == "HEAD"


def frame_when_final(res: Any) -> None:
    """Have `frame` called for a response for which a `Content-Length` was staged."""
    if not any(getattr(hook, "func", None) is frame for hook in res.hooks or ()):
        res.on_finalize(partial(frame, res))


def frame(res: Any, req: Any, status: int, duration: float) -> None:
    """A hook of `res`: make the length that was staged the length of the body."""
    staged: dict[str, str] = res.staged or {}
    length = staged.get("content-length")
    body = res.body
    if length is None:
        return
    if body is None:
        # The answer to HEAD says the length that the answer to GET has.
        if not (has_no_length(status, req.method) and _is_length(length)):
            del staged["content-length"]
    elif isinstance(body, str | bytes):
        staged["content-length"] = str(len(encode(body) if isinstance(body, str) else body))
    elif not _is_length(length):
        del staged["content-length"]
    else:
        res.body = Exactly(body, int(length), f"{req.method} {req.path}")


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


class Exactly:
    """The chunks of a body, `length` bytes of them. Raises EOFError where there are fewer."""

    __slots__ = ("_chunks", "_left", "_where")

    def __init__(self, chunks: AsyncIterator[bytes], length: int, where: str) -> None:
        self._chunks = chunks
        self._left = length
        self._where = where

    def __aiter__(self) -> Exactly:
        return self

    async def __anext__(self) -> bytes:
        if self._left < 0:
            raise StopAsyncIteration
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            left, self._left = self._left, -1
            if left:
                raise EOFError(
                    f"the body of {self._where} ended {left} bytes before the Content-Length that was staged. Stage the "
                    "length that it has, or none"
                ) from None
            raise
        if len(chunk) <= self._left:
            self._left -= len(chunk)
            return chunk
        log.error("the body of %s is longer than the Content-Length that was staged; the rest is cut", self._where)
        chunk, self._left = chunk[: self._left], -1
        await self.aclose()
        if chunk:
            return chunk
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the body."""
        await close(self._chunks)
