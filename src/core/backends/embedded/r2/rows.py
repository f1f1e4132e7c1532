"""The tables of a bucket, an object as its row has it, a page of them, and the parts that an upload is made of."""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import attrs

from core.backends.embedded.keys import after_prefix, first_of_page
from core.backends.embedded.store import Database
from core.backends.r2 import Chosen, refuse
from core.bindings.r2 import R2Checksums, R2HTTPMetadata

# An object's body is its pieces, in order: one, or the parts of its multipart upload. They belong to the object's
# version, or to the upload while it lasts. A piece that goes leaves the name of its file in r2_garbage, in the same
# transaction, so that neither a crash nor another process leaves a file that nobody would delete.
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS r2_objects (
  key BLOB NOT NULL PRIMARY KEY,
  version TEXT NOT NULL,
  size INTEGER NOT NULL,
  etag TEXT NOT NULL,
  uploaded INTEGER NOT NULL,
  checksums TEXT NOT NULL,
  http_metadata TEXT NOT NULL,
  custom_metadata TEXT NOT NULL,
  storage_class TEXT NOT NULL,
  ssec_key_md5 TEXT
);
CREATE TABLE IF NOT EXISTS r2_uploads (
  upload_id TEXT NOT NULL PRIMARY KEY,
  key BLOB NOT NULL,
  state INTEGER NOT NULL,
  http_metadata TEXT NOT NULL,
  custom_metadata TEXT NOT NULL,
  storage_class TEXT NOT NULL,
  ssec_key_md5 TEXT,
  began INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS r2_pieces (
  owner TEXT NOT NULL,
  number INTEGER NOT NULL,
  size INTEGER NOT NULL,
  etag TEXT NOT NULL,
  md5 BLOB NOT NULL,
  data BLOB,
  file TEXT,
  PRIMARY KEY (owner, number)
);
CREATE TABLE IF NOT EXISTS r2_garbage (file TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS r2_object_replaced AFTER UPDATE ON r2_objects
BEGIN DELETE FROM r2_pieces WHERE owner = old.version; END;
CREATE TRIGGER IF NOT EXISTS r2_object_deleted AFTER DELETE ON r2_objects
BEGIN DELETE FROM r2_pieces WHERE owner = old.version; END;
CREATE TRIGGER IF NOT EXISTS r2_piece_deleted AFTER DELETE ON r2_pieces WHEN old.file IS NOT NULL
BEGIN INSERT OR IGNORE INTO r2_garbage VALUES (old.file); END;
"""


class Described(NamedTuple):
    """The values that an object is given beside its bytes. Metadata is JSON."""

    http_metadata: str
    custom_metadata: str
    storage_class: str
    ssec_key_md5: str | None


class Row(NamedTuple):
    """An object without its bytes. Dates are in milliseconds since 1970, checksums and metadata JSON."""

    key: bytes
    version: str
    size: int
    etag: str
    uploaded: int
    checksums: str
    http_metadata: str
    custom_metadata: str
    storage_class: str
    ssec_key_md5: str | None


COLUMNS: Final = ", ".join(Row._fields)
_SELECT: Final = f"SELECT {COLUMNS} FROM r2_objects WHERE key = ?"
_PUT: Final = (
    f"INSERT INTO r2_objects ({COLUMNS}) VALUES ({', '.join('?' * len(Row._fields))}) ON CONFLICT (key) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in Row._fields[1:])
)
_AFTER: Final = f"SELECT {COLUMNS} FROM r2_objects WHERE key {{}} ? AND key < ? ORDER BY key LIMIT ?"
_LAST: Final = "SELECT max(key) FROM r2_objects WHERE key >= ? AND key < ?"


def select(connection: sqlite3.Connection, key: bytes) -> Row | None:
    row = connection.execute(_SELECT, (key,)).fetchone()
    return None if row is None else Row._make(row)


def insert(connection: sqlite3.Connection, row: Row) -> None:
    connection.execute(_PUT, row)


def _load_http_metadata(text: str) -> R2HTTPMetadata:
    fields = json.loads(text)
    if "cache_expiry" in fields:
        fields["cache_expiry"] = to_datetime(fields["cache_expiry"])
    return R2HTTPMetadata(**fields)


def to_datetime(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def fields(row: Row, *, http: bool = True, custom: bool = True) -> dict[str, Any]:
    return {
        "key": row.key.decode(),
        "version": row.version,
        "size": row.size,
        "etag": row.etag,
        "http_etag": f'"{row.etag}"',
        "uploaded": to_datetime(row.uploaded),
        "checksums": R2Checksums(**{name: bytes.fromhex(value) for name, value in json.loads(row.checksums).items()}),
        "http_metadata": _load_http_metadata(row.http_metadata) if http else None,
        "custom_metadata": json.loads(row.custom_metadata) if custom else None,
        "storage_class": row.storage_class,
        "ssec_key_md5": row.ssec_key_md5,
    }


# Pages ----------------------------------------------------------------------------------------------------------------


@attrs.frozen
class Page:
    """Objects and prefixes, and the last key that they cover when there are more."""

    rows: list[Row]
    prefixes: list[bytes]
    last: bytes | None


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


# Parts ----------------------------------------------------------------------------------------------------------------

MIN_PART: Final = 5 * 1024**2


class Part(NamedTuple):
    """A part that was uploaded."""

    number: int
    size: int
    etag: str
    md5: bytes


def find_parts(uploaded: Iterable[Part], chosen: Chosen) -> list[Part]:
    """The parts that were chosen, in their order, if an object can be made of them."""
    if len({number for number, _ in chosen}) != len(chosen):
        refuse("completeMultipartUpload", 10001)
    by_number = {part.number: part for part in uploaded}
    parts: list[Part] = []
    for number, etag in chosen:
        part = by_number.get(number)
        if part is None or part.etag != etag:
            refuse("completeMultipartUpload", 10025)
        parts.append(part)
    if any(part.size < MIN_PART for part in parts[:-1]):
        refuse("completeMultipartUpload", 10011)
    parts.sort()
    sizes = [part.size for part in parts]
    # All but the last of one size, and large enough in this order too; the last one not larger than they are.
    if any(size < MIN_PART or size != sizes[0] for size in sizes[:-1]) or sizes[-1:] > sizes[:1]:
        refuse("completeMultipartUpload", 10048)
    return parts


def joined(key: bytes, parts: Sequence[Part], uploaded: int, described: Described) -> Row:
    """The object that parts become."""
    digest = hashlib.md5(b"".join([part.md5 for part in parts]), usedforsecurity=False).hexdigest()
    size = sum(part.size for part in parts)
    return Row(key, secrets.token_hex(16), size, f"{digest}-{len(parts)}", uploaded, "{}", *described)
