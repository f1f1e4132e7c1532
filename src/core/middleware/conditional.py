"""Conditional and range requests (RFC 9110, sections 13 and 14): what `ETag`, `If-…` and `Range` ask for.

Pure reading and deciding, used by everything that serves a representation with a validator. Malformed
conditions count as absent. All of it takes time linear in the header.
"""

from __future__ import annotations

import re

import attrs

from core.http.dates import read_date

__all__ = ["ByteRange", "modified_since", "none_match", "parse_range", "unchanged"]

_MOST_CHARACTERS = 4096
_is_etag = re.compile(r'(?:W/)?"[!#-~\x80-\xff]*"').match
_is_range = re.compile(r"bytes=\s*(\d{0,18})-(\d{0,18})\s*", re.ASCII | re.IGNORECASE).fullmatch


@attrs.frozen
class ByteRange:
    """A part of a representation: `length` bytes from `start`, of `size`. Its length is 0 where it cannot be had."""

    start: int
    length: int
    size: int

    @property
    def satisfiable(self) -> bool:
        """True if there is anything to send."""
        return self.length > 0

    @property
    def content_range(self) -> str:
        """The value of `Content-Range`."""
        if not self.satisfiable:
            return f"bytes */{self.size}"
        return f"bytes {self.start}-{self.start + self.length - 1}/{self.size}"


def parse_range(header: str | None, size: int) -> ByteRange | None:
    """The part that a `Range` header asks for of `size` bytes, or None for the whole.

    One range of bytes is honoured. Several at once, other units and what is malformed give the whole, as the RFC
    allows: many small ranges are work for the server and none for the client.
    """
    if header is None or len(header) > 128:
        return None
    match = _is_range(header.strip())
    if match is None:
        return None
    first, last = match[1], match[2]
    if not first:
        if not last:
            return None
        length = min(int(last), size)
        return ByteRange(size - length, length, size)
    start = int(first)
    if last and int(last) < start:
        return None
    if start >= size:
        return ByteRange(0, 0, size)
    end = min(int(last), size - 1) if last else size - 1
    return ByteRange(start, end - start + 1, size)


def none_match(header: str | None, etag: str) -> bool:
    """Return True if `If-None-Match` is absent or names another representation: False means 304. The comparison is
    weak.
    """
    if header is None or len(header) > _MOST_CHARACTERS:
        return True
    wanted = etag.removeprefix("W/")
    if header.strip() == "*":
        return False
    at = 0
    while at < len(header):
        match = _is_etag(header, at)
        if match is None:
            if header[at] not in " \t,":
                return True
            at += 1
            continue
        if match[0].removeprefix("W/") == wanted:
            return False
        at = match.end()
    return True


def modified_since(header: str | None, modified: float, now: float) -> bool:
    """Return True if `If-Modified-Since` is absent or older than `modified`: False means 304. Times in seconds since
    1970.
    """
    since = read_date(header, now)
    return since is None or int(modified) > since


def unchanged(if_range: str | None, etag: str | None, modified: float | None, now: float) -> bool:
    """Return True if `If-Range` lets a part be sent: it is absent, or names this very representation by a strong
    validator.
    """
    if if_range is None:
        return True
    if if_range.startswith(('"', "W/")):
        return etag is not None and not etag.startswith("W/") and if_range == etag
    since = read_date(if_range, now)
    return since is not None and modified is not None and int(modified) == since
