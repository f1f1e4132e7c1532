"""Percent-encoding, and the query strings made of it, as the WHATWG URL standard has them.

https://url.spec.whatwg.org/#percent-encoded-bytes
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from core.http.streams import encode

_IN_FORM = r"[^*\-._0-9A-Za-z]+"


def parse_query(text: str) -> list[tuple[str, str]]:
    """The names and values of a query string, in order.

    `+` and `%20` are blanks, escapes that are none stay, bytes that are not UTF-8 become U+FFFD. Empty pieces between
    two `&` are left out.
    """
    if not text:
        return []
    pairs: list[tuple[str, str]] = []
    for piece in text.replace("+", " ").split("&"):
        if piece:
            name, _, value = piece.partition("=")
            if "%" in piece:
                name, value = decode_leniently(name, "replace"), decode_leniently(value, "replace")
            pairs.append((name, value))
    return pairs


def encode_query(pairs: Iterable[tuple[str, str]]) -> str:
    """Write a query string: blanks as `+`, everything but letters, digits and `*-._` percent-encoded as UTF-8."""
    return "&".join([f"{_encode_form(name)}={_encode_form(value)}" for name, value in pairs])


def _encode_form(text: str) -> str:
    return percent_encode(_IN_FORM, text).replace("%20", "+")


def decode_leniently(text: str, errors: str) -> str:
    """Decode the escapes that are whole and leave the others.

    Bytes that are not UTF-8 become U+FFFD with `errors="replace"`; with `"strict"` the whole text stays as it was.
    """
    try:
        return unescaped(text).decode("utf-8", errors)
    except UnicodeDecodeError:
        return text


def unescaped(text: str) -> bytes:
    """The bytes that a text stands for; escapes that are none are left."""
    # urllib.parse has this, and takes a quarter of a second to be loaded in a worker.
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), encode(text))


def percent_encode(pattern: str, text: str) -> str:
    """Encode the matches of `pattern` in `text` as UTF-8, each byte as an escape; a lone surrogate as U+FFFD."""
    return re.sub(pattern, _percent, text) if text else text  # the first use compiles the pattern


def _percent(match: re.Match[str]) -> str:
    return "".join([f"%{byte:02X}" for byte in encode(match[0])])
