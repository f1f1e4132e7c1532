"""Stored values as the explorer's page can show them."""

from __future__ import annotations

import base64
import json
from typing import Any, Final, cast

from core.backends.embedded.clone import load
from core.errors import CoreError
from core.http.json import JsonObject

_SHOWN_VALUE: Final = 256 * 1024
_LONGEST: Final = 20_000
_LARGEST_EXACT: Final = 2**53 - 1


def shown(value: bytes) -> dict[str, object]:
    """A value as text where it is text, else as base64; cut where it is long."""
    part = value[:_SHOWN_VALUE]
    cut = len(part) < len(value)
    try:
        # The cut may have gone through a letter.
        text = part.decode("utf-8", "ignore" if cut else "strict")
    except UnicodeDecodeError:
        text = None
    if text is None or "\0" in text:
        return {"base64": base64.b64encode(part).decode(), "text": None, "size": len(value), "cut": cut}
    return {"text": text, "size": len(value), "cut": cut}


def cell(value: Any) -> Any:
    """A value of a SQL row as JSON can say it. A number that JavaScript does not have is text."""
    given = value  # not narrowed by what follows
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(given)
        return {"base64": base64.b64encode(data[:_LONGEST]).decode(), "size": len(data)}
    if isinstance(value, str) and len(value) > _LONGEST:
        return {"text": value[:_LONGEST], "size": len(value)}
    if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
        return {"text": str(value), "size": 0}
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"text": str(value), "size": 0}
    return value


def from_cell(value: object) -> object:
    """A value for SQL as the page sends it: base64 in a dict is bytes."""
    match value:
        case {"base64": str(text)}:
            return decoded(text)
        case {"text": str(text)}:
            return text
        case dict() | list():
            raise CoreError(400, 'A value is a string, a number, null, {"text": …} or {"base64": …}')
        case _:
            return value


def decoded(text: str) -> bytes:
    """The bytes of a text in base64. Any other text is refused."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise CoreError(400, f"The value is not base64: {error}") from None


def cloned(value: bytes) -> JsonObject:
    """A value that was stored by structured clone: as JSON where it can be edited as that, else as Python writes it."""
    loaded: Any = load(value)
    try:
        text = json.dumps(loaded, ensure_ascii=False, allow_nan=False, indent=2)
        # A tuple, a set or a key that is a number would come back as something else.
        if json.loads(text) == loaded and not isinstance(loaded, tuple) and len(text) <= _LONGEST:
            return {"json": text, "text": text}
    except (TypeError, ValueError):
        pass
    text = repr(cast("object", loaded))
    return {"json": None, "text": text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"}
