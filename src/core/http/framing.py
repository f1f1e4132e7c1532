"""The framing of an answer, for every host: the length that it says is the length that it has (RFC 9112, section 6).

A body that is at hand has its own length, whatever was staged as `Content-Length`. A stream is held to the length that
was staged: what is beyond it is left out, and where it ends early the connection is broken, so that a client can tell.
Either is logged. Without this, the end of one answer would be read as the beginning of the next.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import Any

from core.http.streams import close, encode

log: logging.Logger = logging.getLogger("core")


def has_no_length(status: int, method: str) -> bool:
    """Return True if a response without a body has no length (RFC 9110, 8.6): 101, 204, 304, answers to HEAD."""
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
        from core.http.driven import Owned

        res.body = Owned(_exactly(body, int(length), f"{req.method} {req.path}"), body)


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


async def _exactly(chunks: AsyncIterator[bytes], left: int, where: str) -> AsyncGenerator[bytes, None]:
    """The chunks of a body, `left` bytes of them. Raises EOFError where there are fewer."""
    try:
        async for chunk in chunks:
            if len(chunk) > left:
                log.error("the body of %s is longer than the Content-Length that was staged; the rest is cut", where)
                if left:
                    yield chunk[:left]
                return
            left -= len(chunk)
            yield chunk
        if left:
            raise EOFError(
                f"the body of {where} ended {left} bytes before the Content-Length that was staged. Stage the length that "
                "it has, or none"
            )
    finally:
        await close(chunks)
