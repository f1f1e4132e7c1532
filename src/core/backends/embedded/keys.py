"""Keys in the order of their bytes: the end of a prefix, and the key that a list's cursor means.

The rules that KV and R2 share. No table is used here.
"""

from __future__ import annotations

import re
from base64 import b64decode


def after_prefix(prefix: bytes) -> bytes | None:
    """The first bytes after everything that begins with `prefix`; None where nothing is after it."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes((stripped[-1] + 1,)) if stripped else None


def decode_cursor(cursor: str) -> bytes:
    """The key that a cursor means. An invented one is read as far as it goes: the platform raises for none."""
    letters = re.sub(r"[^A-Za-z0-9+/]", "", cursor.split("=", 1)[0].replace("-", "+").replace("_", "/"))
    if len(letters) % 4 == 1:
        letters = letters[:-1]
    # Decoded as text and encoded again, so that bytes which are not UTF-8 still have their place in the order of keys.
    return b64decode(letters + "=" * (-len(letters) % 4)).decode("utf-8", "replace").encode()
