"""The values bound to a statement against the columns beside its parameters.

Every number is bound as a REAL (`D1PreparedStatement.bind`), and a column's affinity converts the values it is compared
with and the values it is given (https://www.sqlite.org/datatype3.html), so that only values that can never work are
reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from core.sql.messages import left_out
from core.sql.statement import Slot, Storage

if TYPE_CHECKING:
    from core.sql.rows import Kind

_NONE: Final[frozenset[Kind]] = frozenset(["none"])
_DATE: Final[frozenset[Kind]] = frozenset(["date"])
_JSON: Final[frozenset[Kind]] = frozenset(["json"])
_BYTES: Final[frozenset[Kind]] = frozenset(["bytes"])
_TEXTS: Final[frozenset[Storage]] = frozenset(["text"])
_INTEGERS: Final[frozenset[Storage]] = frozenset(["integer"])
_NUMBER: Final = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")


class Given(NamedTuple):
    """An argument of `bind`: the kinds it may have, its text where that is a literal, and all `texts` that it may be
    where a Literal or an Enum says so.

    `enum` names an Enum that is neither an int nor a str, and `refused` a dict or a set.
    """

    kinds: frozenset[Kind]
    text: str | None = None
    enum: str = ""
    refused: str = ""
    texts: frozenset[str] = frozenset()


def check_parameter(number: int, slots: Sequence[Slot], given: Given) -> str | None:
    """Return the mistake in the value of a parameter, by its number from 1, or None."""
    if given.enum:
        return f"bind() takes no {given.enum}. Bind its value: .value"
    if given.refused:
        text = ", or json.dumps() of it" if given.refused == "dict" else ""
        return f"bind() takes no {given.refused}. Bind its values one by one{text}"
    if given.kinds == _DATE:
        return "bind() takes no dates, times and UUIDs. Bind their text: str()"
    if "unset" in given.kinds and any(slot.number == number and slot.use == "outside" for slot in slots):
        may = "is" if len(given.kinds) == 1 else "may be"
        return (
            f"value {number} {may} UNSET, but the statement reads it outside of an assignment of UPDATE … SET, where "
            "nothing can be left out. Bind None for NULL, or ask `is UNSET` before"
        )
    # A statement that asks whether a value is NULL does not count on it elsewhere.
    asks = given.kinds == _NONE and any(slot.use == "null" for slot in slots)
    for slot in slots:
        if slot.number == number and not (asks and slot.use in ("compare", "list")):
            message = _mistake(slot, given)
            if message is not None:
                return message
    return None


def _mistake(slot: Slot, given: Given) -> str | None:
    kinds = given.kinds - {"unset"}
    column = slot.column
    if kinds == _JSON:
        return _list(slot)
    if "any" in kinds or not kinds:
        return None
    if "none" in kinds:
        if slot.use == "store" and slot.full:
            may = "is" if kinds == _NONE else "may be"
            return f"{column} is NOT NULL, but the value {may} None. Bind another"
        if kinds == _NONE and slot.use in ("compare", "list"):
            return f"nothing is equal to NULL, {column} neither. Write IS NULL in place of the comparison with None"
        if kinds == _NONE and slot.use == "limit":
            return "LIMIT takes a number, but the value is None. Bind -1 for no limit"
    texts = given.texts if given.text is None else {given.text}
    strange = [text for text in sorted(texts) if slot.allowed and text not in slot.allowed]
    if strange:
        return left_out(column, slot.allowed, strange[0])
    if slot.storage == _TEXTS and kinds <= {"int", "bool"}:
        return f'{column} is TEXT, where a number arrives as "5.0". Bind its text: str()'
    if slot.exact and slot.storage == _INTEGERS and given.text is not None and not _NUMBER.fullmatch(given.text):
        requirement = "takes an integer" if slot.use == "limit" else "is an INTEGER"
        return f'{column} {requirement}, but the value is the text "{given.text}". Bind a number'
    if slot.exact and kinds == _BYTES and slot.storage and "blob" not in slot.storage:
        return f"{column} holds no blobs, but the value is bytes. Bind a text or a number"
    return None


def _list(slot: Slot) -> str | None:
    if slot.use == "json":
        return f"{slot.column} reads JSON text, but the value is a list or an object. Bind json.dumps() of it"
    if not slot.storage or "blob" in slot.storage:
        return None
    if slot.use == "list":
        return (
            "a list is bound as one blob. Write a ? for each of its values, or IN (SELECT value FROM json_each(?)) and "
            "bind json.dumps() of it"
        )
    return f"a list is bound as one blob, which {slot.column} is not. Bind json.dumps() of it, or one of its values"
