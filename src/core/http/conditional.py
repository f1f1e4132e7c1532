"""Conditional and range requests (RFC 9110, sections 13 and 14): the answers to `ETag`, `If-…` and `Range`.

Pure reading and deciding, used by everything that serves a representation with a validator. Malformed
conditions count as absent. All of it takes time linear in the header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import attrs

from core.http.dates import http_date, read_date

_MOST_CHARACTERS = 4096
_is_etag = re.compile(r'(?:W/)?"[!#-~\x80-\xff]*"').match
_is_range = re.compile(r"bytes=\s*(\d{0,20})-(\d{0,20})\s*", re.ASCII | re.IGNORECASE).fullmatch


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

    One range of bytes is honoured. Several at once, other units and malformed ones give the whole, as the RFC
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
    """True if `If-None-Match` is absent or names another representation; False means 304. The comparison is weak."""
    if header is None or len(header) > _MOST_CHARACTERS:
        return True
    wanted = etag.removeprefix("W/")
    return header.strip() != "*" and all(tag.removeprefix("W/") != wanted for tag in _tags(header))


def match(header: str, etag: str | None) -> bool:
    """True if `If-Match` names the representation that there is, None for none; False means 412.

    The comparison is strong: a weak tag names nothing here (RFC 9110, section 13.1.1).
    """
    if header.strip() == "*":
        return etag is not None
    if etag is None or etag.startswith("W/") or len(header) > _MOST_CHARACTERS:
        return False
    return any(tag == etag for tag in _tags(header))


def _tags(header: str) -> Iterator[str]:
    """The entity tags of a list, up to the first that is malformed."""
    at = 0
    while at < len(header):
        found = _is_etag(header, at)
        if found is not None:
            yield found[0]
            at = found.end()
        elif header[at] in " \t,":
            at += 1
        else:
            return


@attrs.frozen
class Representation:
    """The validators of a representation, and its size in bytes; `modified` in seconds since 1970.

    It answers the request whose headers `header` gives: not modified, a part, or the whole.
    """

    etag: str
    modified: float
    size: int

    @property
    def headers(self) -> dict[str, str]:
        """The headers that every answer about it has."""
        return {"etag": self.etag, "last-modified": http_date(self.modified), "accept-ranges": "bytes"}

    def is_known(self, header: Callable[[str], str | None], now: float) -> bool:
        """True if the client has it already: 304. A date counts only where no tag is given."""
        tags = header("if-none-match")
        if tags is not None:
            return not none_match(tags, self.etag)
        since = read_date(header("if-modified-since"), now)
        return since is not None and int(self.modified) <= since

    def part(self, header: Callable[[str], str | None], now: float) -> ByteRange | None:
        """The part that is asked for, None for the whole."""
        asked = header("range")
        if asked is None or not self._is_named(header("if-range"), now):
            return None
        return parse_range(asked, self.size)

    def _is_named(self, if_range: str | None, now: float) -> bool:
        """True if `If-Range` is absent, or names this very representation by a strong validator."""
        if if_range is None:
            return True
        if if_range.startswith(('"', "W/")):
            return not self.etag.startswith("W/") and if_range == self.etag
        return read_date(if_range, now) == int(self.modified)
