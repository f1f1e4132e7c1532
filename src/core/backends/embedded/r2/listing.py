"""One page of a list: which objects and which prefixes it has, and where the next one begins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from core.backends.embedded.keys import after_prefix, decode_cursor, first_of_page
from core.backends.embedded.r2.rows import COLUMNS, Row
from core.backends.embedded.store import Database
from core.backends.r2 import refuse
from core.bindings.r2 import R2Include
from core.errors import R2TypeError, R2ValueError
from core.http.streams import encode

MAX_LIST: Final = 1000
MAX_LIST_INCLUDE: Final = 100

_HTTP: Final = frozenset(["httpMetadata", "http_metadata"])
_CUSTOM: Final = frozenset(["customMetadata", "custom_metadata"])

_AFTER: Final = f"SELECT {COLUMNS} FROM r2_objects WHERE key {{}} ? AND key < ? ORDER BY key LIMIT ?"
_LAST: Final = "SELECT max(key) FROM r2_objects WHERE key >= ? AND key < ?"


@attrs.frozen
class Page:
    """Objects and prefixes, and the last key that they cover when there are more."""

    rows: list[Row]
    prefixes: list[bytes]
    last: bytes | None


def read_include(include: Iterable[R2Include] | None) -> tuple[bool, bool]:
    """Return two flags: HTTP metadata and custom metadata are wanted. Raises R2ValueError for other fields."""
    fields = [*(include or ())]
    if unknown := [field for field in fields if field not in (*_HTTP, *_CUSTOM)]:
        raise R2ValueError(f"Unsupported include value {unknown[0]}")
    return not _HTTP.isdisjoint(fields), not _CUSTOM.isdisjoint(fields)


def page_size(limit: object, *, with_metadata: bool) -> int:
    """Return the largest number of keys on a page. Raises R2TypeError or R2Error for a limit that cannot be one."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
        raise R2TypeError(f"list: limit must be an int, not {limit!r}")
    count = MAX_LIST if limit is None else limit
    if not 1 <= count <= MAX_LIST:
        refuse("list", 10022)
    return min(count, MAX_LIST_INCLUDE) if with_metadata else count


def first_after(start_after: str | None, cursor: str | None) -> bytes | None:
    """The key after which a page begins; of two the later one."""
    after = None if start_after is None else encode(start_after)
    if cursor is None:
        return after
    continued = decode_cursor(cursor)
    return continued if after is None else max(after, continued)


def read_page(database: Database, start: bytes, delimiter: bytes, after: bytes | None, count: int) -> Page:
    """The page of at most `count` keys that begin with `start` and come after `after`."""
    rows: list[Row] = []
    prefixes: list[bytes] = []
    last = after
    with database.transaction(write=False) as connection:
        while True:
            wanted = count - len(rows) - len(prefixes)
            compared, first = first_of_page(start, last)
            found = connection.execute(_AFTER.format(compared), (first, after_prefix(start), wanted + 1))
            # Read as far as the first prefix only: all that begins so is behind it, and passed over.
            for index, row in enumerate(map(Row._make, found)):
                if index == wanted:
                    return Page(rows, prefixes, last)
                key = row.key
                cut = key.find(delimiter, len(start)) if delimiter else -1
                if cut >= 0:
                    prefixes.append(key[: cut + len(delimiter)])
                    (last,) = connection.execute(_LAST, (prefixes[-1], after_prefix(prefixes[-1]))).fetchone()
                    break
                rows.append(row)
                last = key
            else:
                return Page(rows, prefixes, None)
