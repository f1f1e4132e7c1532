"""Texts as bytes and back, and the end of a body in pieces.

Decided here: the fate of half a surrogate pair, which a client can write in JSON (`"\\ud800"`) and which has no UTF-8.
It leaves as U+FFFD from every sender, as in the Web's USVString. https://webidl.spec.whatwg.org/#idl-USVString
"""

from __future__ import annotations

import codecs


def _scalar_values(error: UnicodeError) -> tuple[bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    # All the surrogates in a row, since two of them may be a pair.
    row = error.object[error.start : error.end].encode("utf-16-le", "surrogatepass")
    return row.decode("utf-16-le", "replace").encode(), error.end


USV = "core-usv"
"""The name of the error handler with which `text.encode("utf-8", USV)` never fails: as `encode` does, without the call.
"""

codecs.register_error(USV, _scalar_values)


def encode(text: str) -> bytes:
    """A string as UTF-8, as the Encoding standard's "UTF-8 encode" does: half a surrogate pair becomes U+FFFD."""
    return text.encode("utf-8", USV)


def well_formed(text: str) -> str:
    """`text` with U+FFFD for every half of a surrogate pair."""
    return text if text.isascii() else encode(text).decode()


def decode(body: bytes) -> str:
    """Bytes as text, as the Encoding standard's "UTF-8 decode" does: faults become U+FFFD, a byte order mark goes."""
    return body.decode("utf-8", "replace").removeprefix("\ufeff")


async def close(source: object) -> None:
    """Close an async iterator now, so that a generator cleans up at once and not when it is collected."""
    aclose = getattr(source, "aclose", None)
    if aclose is not None:
        await aclose()
