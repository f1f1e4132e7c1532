"""Compressed bodies (gzip) for who accepts them.

Decided here: which bodies are worth compressing, and that caches keep both forms apart. The hosted platform
compresses by itself on the way out; this is for hosts that do not.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator

from core.errors import NULL_BODY_STATUSES
from core.handlers import declare
from core.http.driven import Owned
from core.http.streams import close, encode
from core.middleware import options
from core.request import AnyRequest
from core.response import Response
from core.types import Middleware, Next

__all__ = ["accepts_coding", "compress"]

_is_text = re.compile(
    r"text/(?!event-stream)|application/(?:json|javascript|xml|wasm|manifest\+json|graphql|x-ndjson)\b|"
    r"[a-z]+/[a-z0-9.\-]+\+(?:json|xml|text)|image/svg|font/(?:ttf|otf)",
    re.IGNORECASE,
).match
_is_weight = re.compile(r"[qQ]=([01](?:\.\d{0,3})?)", re.ASCII).fullmatch
_MOST_CHARACTERS = 1024
# A 304 says what the answer would have said: that it varies, and a weak tag.
_WITHOUT_BODY = NULL_BODY_STATUSES - {304}
_GZIP = 31
"""The form of gzip with the largest window, as zlib names it."""


def compress(*, min_size: int = 1024, level: int = 6) -> Middleware[object, object]:
    """Send text, JSON and the like as gzip to clients that accept it.

    `min_size`: the bytes from which it is worth it, for bodies of known length; streams are compressed piece by piece.
    `level`: 1 (fast) to 9 (small). `Vary: Accept-Encoding` is on every answer that could have been compressed, also
    when it was not. Left alone are bodies that have a `Content-Encoding` already, parts (`Content-Range`), event
    streams, and answers with `Cache-Control: no-transform`. A strong `ETag` becomes a weak one.

    A secret beside a client's own words in one compressed body can be guessed by its length (BREACH): leave such
    answers out. Raises OptionError.
    """
    options.integer("compress", "min_size", min_size, least=0, unit="bytes")
    options.integer("compress", "level", level, least=1, most=9)

    async def squeeze(req: AnyRequest, res: Response, next: Next, /) -> None:
        await next()
        body = res.body
        staged = res.staged if res.staged is not None else {}
        kind = staged.get("content-type") or res.content_type
        if (
            not res.sent
            or body is None
            or kind is None
            or not _is_text(kind)
            or res.status_code in _WITHOUT_BODY
            or "content-encoding" in staged
            or "content-range" in staged
            or "no-transform" in staged.get("cache-control", "").lower()
        ):
            return
        # As it is sent, so that it is there once and beside no "*", which says it all.
        res.vary("Accept-Encoding")
        if not accepts_coding(req.header("accept-encoding"), "gzip"):
            return
        tag = staged.get("etag")
        weak = None if tag is None else f"W/{tag.removeprefix('W/')}"
        if res.status_code == 304:
            res.header("etag", weak)  # `etag` behind this one has spared the work
            return
        data = encode(body) if isinstance(body, str) else body
        if isinstance(data, bytes):
            if len(data) < min_size:
                return
            import zlib

            smaller = zlib.compress(data, level, _GZIP)
            if len(smaller) >= len(data):
                return
            res.replace_body(smaller)
        else:
            res.replace_body(Owned(_gzip_stream(data, level), data))
        res.header("content-encoding", "gzip").header("etag", weak)
        res.header("content-length", None).header("accept-ranges", None)

    return declare(squeeze, name="compress")


def accepts_coding(header: str | None, wanted: str) -> bool:
    """True if `Accept-Encoding` takes a coding: by its name or `*`, with a weight above 0. Linear, and capped."""
    if header is None or len(header) > _MOST_CHARACTERS:
        return False
    any_weight = 0.0
    for part in header.split(","):
        coding, *parameters = (piece.strip() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            match = _is_weight(parameter)
            if match is not None:
                weight = float(match[1])
        if coding.lower().removeprefix("x-") == wanted:
            return weight > 0
        if coding == "*":
            any_weight = weight
    return any_weight > 0


async def _gzip_stream(chunks: AsyncIterator[bytes], level: int) -> AsyncGenerator[bytes, None]:
    import zlib

    packer = zlib.compressobj(level, wbits=_GZIP)
    try:
        async for chunk in chunks:
            # Flushed piece by piece: who streams wants each piece to arrive.
            packed = packer.compress(chunk) + packer.flush(zlib.Z_SYNC_FLUSH)
            if packed:
                yield packed
        yield packer.flush()
    finally:
        await close(chunks)
