"""The paths of URLs: canonical, as the WHATWG URL standard writes them, and split into their segments.

https://url.spec.whatwg.org/#path-state
"""

from __future__ import annotations

import re
from typing import Final

from core.http.streams import well_formed

# The percent-encode set of the standard, as a pattern of the encoded characters.
_IN_PATH = r"[^!$-;=@-\]_a-z|~]+"

CANONICAL: Final = "!$&'()*+,-./0123456789:;=@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz|~"
"""The characters that stay as they are in every path: fewer than the sets above leave alone, without `%` and `\\`.

`path.strip(CANONICAL)` is empty for a path of these alone, as fast as an expression that every start had to compile.
"""


class MalformedPathError(ValueError):
    """A path with an escape that is none (`%zz`), or whose bytes are not UTF-8. The client's mistake: 400."""


def is_canonical(path: str) -> bool:
    """Return True if a path certainly is as `canonical_path` would write it; one with an escape in it may be, too."""
    return not path.strip(CANONICAL) and "/." not in path and path[:1] == "/"


def canonical_path(raw: str) -> str:
    """A path as a host received it, canonical: dot segments resolved, backslashes turned, still percent-encoded.

    The same text comes back when there is nothing to do. `?` and `#` are part of the path here, and are encoded.
    """
    if is_canonical(raw):
        return raw
    if raw[:1] == "/" or raw[:1] == "\\":
        raw = raw[1:]
    return join_segments(well_formed(raw).replace("\\", "/").split("/"))


def join_segments(segments: list[str]) -> str:
    """A path of segments that are not encoded yet, or not as the standard has it: dot segments resolved."""
    from core.http.escapes import percent_encode  # nearly every path is canonical, and needs none

    result: list[str] = []
    last = len(segments) - 1
    for place, segment in enumerate(segments):
        dots = segment.replace("%2e", ".").replace("%2E", ".") if "%" in segment else segment
        if dots == "..":
            if result:
                result.pop()
            if place == last:
                result.append("")
        elif dots == ".":
            if place == last:
                result.append("")
        else:
            result.append(percent_encode(_IN_PATH, segment) if segment.strip(CANONICAL) else segment)
    return "/" + "/".join(result)


def split_path(path: str) -> tuple[str, ...]:
    """The segments of a path, split on `/` first and percent-decoded afterwards, once.

    One slash at the end is ignored; `/` and the empty path have no segments; an empty segment is a segment.

    Raises MalformedPathError for escapes that are none and for bytes that are not UTF-8.
    """
    if path[-1:] == "/":
        path = path[:-1]
    if path[:1] == "/":
        path = path[1:]
    elif not path:
        return ()
    if "%" not in path:
        return tuple(path.split("/"))
    return tuple([_decode_strictly(segment) if "%" in segment else segment for segment in path.split("/")])


def _decode_strictly(segment: str) -> str:
    from core.http.escapes import unescaped

    if re.search("%(?![0-9A-Fa-f]{2})", segment):
        raise MalformedPathError(f"malformed escape in the path segment {segment!r}")
    try:
        return unescaped(segment).decode()
    except UnicodeDecodeError:
        raise MalformedPathError(f"the path segment {segment!r} is not UTF-8") from None
