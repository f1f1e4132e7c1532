"""Stored values as the explorer's page can show them, and what lies in the storage of a Durable Object."""

from __future__ import annotations

import base64
import contextlib
import sqlite3
from pathlib import Path
from typing import Any, Final, cast

from core.backends.embedded.clone import load

__all__ = ["cell", "objects_in", "shown", "storage_of"]

_SHOWN_VALUE: Final = 256 * 1024
_SHOWN_ENTRIES: Final = 200
_SHOWN_ROWS: Final = 50
_LONGEST: Final = 2000


def shown(value: bytes) -> dict[str, Any]:
    """A value as text where it is text, else as base64; cut where it is long."""
    part = value[:_SHOWN_VALUE]
    try:
        # The cut may have gone through a letter.
        text = part.decode("utf-8", "strict" if len(part) == len(value) else "ignore")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(part).decode(), "text": None, "size": len(value)}
    return {"text": text, "size": len(value), "cut": len(part) < len(value)}


def cell(value: Any) -> Any:
    """A value of a SQL row as JSON can say it."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = cast("bytes | bytearray | memoryview[int]", value)
        return {"base64": base64.b64encode(bytes(data)).decode(), "size": len(data)}
    return value


def objects_in(place: str) -> list[str]:
    """The ids of the Durable Objects that have a storage in the folder `place`."""
    folder = Path(place)
    return sorted(file.stem for file in folder.glob("*.sqlite")) if folder.is_dir() else []


def storage_of(place: str, id: str) -> dict[str, Any]:
    """Return the storage of an object. Read beside the object, which keeps its own connection; nothing is written."""
    file = Path(place) / f"{id}.sqlite"
    with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        entries = [
            {"key": key.decode("utf-8", "replace"), "value": _stored(value)}
            for key, value in connection.execute(
                "SELECT key, value FROM _cf_KV ORDER BY key LIMIT ?", (_SHOWN_ENTRIES,)
            )
        ]
        names = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                "AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' ORDER BY name"
            )
        ]
        tables = {}
        for name in names:
            quoted = name.replace('"', '""')
            cursor = connection.execute(f'SELECT * FROM "{quoted}" LIMIT ?', (_SHOWN_ROWS,))
            columns = [column[0] for column in cursor.description]
            tables[name] = {"columns": columns, "rows": [[cell(value) for value in row] for row in cursor]}
    return {"entries": entries, "tables": tables}


def _stored(value: bytes) -> str:
    text = repr(load(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
