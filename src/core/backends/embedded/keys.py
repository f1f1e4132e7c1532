"""Keys in the order of their bytes: the end of a prefix, and the key that a list's cursor means.

The rules that all kinds with keys share. No table is used here.
"""

from __future__ import annotations

import re
from base64 import b64decode


def after_prefix(prefix: bytes) -> bytes:
    """The first bytes after every key that begins with `prefix`. Keys are UTF-8, which has no byte 0xff."""
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else b"\xff"


def first_of_page(start: bytes, after: bytes | None) -> tuple[str, bytes]:
    """The comparison of the keys that begin with `start` and come after `after`, as one operator of SQL and its key.

    Of two lower bounds SQLite seeks the first and reads all rows up to the other.
    """
    return (">=", start) if after is None or after < start else (">", after)


def decode_cursor(cursor: str) -> bytes:
    """The key that a cursor means. An invented one is read as far as it goes: the platform raises for none."""
    letters = re.sub(r"[^A-Za-z0-9+/]", "", cursor.split("=", 1)[0].replace("-", "+").replace("_", "/"))
    if len(letters) % 4 == 1:
        letters = letters[:-1]
    # Decoded as text and encoded again, so that bytes which are not UTF-8 still have their place in the order of keys.
    return b64decode(letters + "=" * (-len(letters) % 4)).decode("utf-8", "replace").encode()
