"""The regular expressions that a parameter may be held to: those that no text makes slow.

`re` backtracks: over `(a+)+` every further "a" doubles its steps, and a client writes the text. Accepted are those
expressions in which the next character alone decides how to go on, also whether a repetition ends ("one-unambiguous" or
deterministic, with counters: https://doi.org/10.1006/inco.1997.2695 and XML 1.0, appendix E). Whatever `re` comes back
to after a failure then fails at its next character, or within the few fixed characters that two alternatives begin
with, and leaves nothing that it could come back to again. So the steps are at most the length of the text times a
number that the expression alone decides.

A set of characters is a tuple of ranges, and may be too large, never too small: what is disjoint here is disjoint.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, TypeAlias

_Ranges: TypeAlias = tuple[tuple[int, int], ...]
_Piece: TypeAlias = tuple[_Ranges, _Ranges, bool]
"""The characters that a piece begins with, those that make it longer where it could end, and if it may be empty."""

_LAST: Final = 0x10FFFF
_EMPTY: Final[_Piece] = ((), (), True)
_CATEGORIES: Final = {
    "CATEGORY_DIGIT": r"\d", "CATEGORY_NOT_DIGIT": r"\D", "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S", "CATEGORY_WORD": r"\w", "CATEGORY_NOT_WORD": r"\W",
}  # fmt: skip
_ONE: Final = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_BALANCED: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|\{\d*,?\d*\}")
"""What a brace may belong to: an escape, a class, a count. `re` takes any other one for a character."""
_WAY_OUT: Final = (
    r"Write pieces of which the next character decides, such as [0-9]{4}-[0-9]{2}, [a-z]+(-[a-z]+)* or [^.]+\.(png|jpe?g), "
    "or check the value in the handler"
)


class _Objection(Exception):
    pass


def objection(source: str) -> str | None:
    """Return why a regular expression cannot hold a parameter, and the way out; None for one that can."""
    try:
        re.compile(source)
        parsed: Any = import_module("re._parser").parse(source)  # what re.compile reads it with
    except (re.error, OverflowError) as error:
        return f"is not a regular expression: {error}. Fix it"
    if set("{}") & set(_BALANCED.sub("", source)):
        return r"has a brace that is no count. Close the count, as in [0-9]{1,4}, or write \{ for the character"
    try:
        if parsed.state.flags & ~re.UNICODE:
            raise _Objection("sets flags. Leave them out, and write both cases where they are meant: [A-Za-z]")
        _sequence(parsed)
    except _Objection as error:
        return str(error)
    return None


def _sequence(items: Sequence[object]) -> _Piece:
    piece = _EMPTY
    for item in items:
        piece = _followed(piece, _piece(item))
    return piece


def _followed(left: _Piece, right: _Piece) -> _Piece:
    first, more, empty = left
    then, longer, skipped = right
    _require_decided(more, then)
    if empty:
        _require_decided(first, then)
    return first + then if empty else first, longer + (more + then if skipped else ()), empty and skipped


def _piece(item: Any) -> _Piece:
    kind, given = str(item[0]), item[1]
    match kind:
        case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
            return _characters(kind, given), (), False
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, items = given
            return _repeated(int(least), int(most), _sequence(items))
        case "SUBPATTERN":
            if given[1] or given[2]:
                raise _Objection("sets flags. Leave them out, and write both cases where they are meant: [A-Za-z]")
            return _sequence(given[3])
        case "BRANCH":
            return _alternatives(given[1])
        case "AT":
            raise _Objection("has an anchor, and is held against the whole segment anyhow. Leave ^, $ and \\b out")
        case _:
            raise _Objection(f"has more than classes, alternatives and counts, and may take long. {_WAY_OUT}")


def _repeated(least: int, most: int, piece: _Piece) -> _Piece:
    first, more, empty = piece
    if most > 1:
        if empty:
            raise _Objection(f"repeats what may be empty, so there are many ways to read one text. {_WAY_OUT}")
        _require_decided(more, first)
        if most > least:
            more += first
    return (first, more, empty or least == 0) if most else _EMPTY


def _alternatives(alternatives: Sequence[Sequence[Any]]) -> _Piece:
    # Those that begin with the same character are one up to there: (png|pdf) is p(ng|df).
    grouped: dict[object, list[Sequence[object]]] = {}
    for number, items in enumerate(alternatives):
        same = str(items[0]) if items and str(items[0][0]) in _ONE else number
        grouped.setdefault(same, []).append(items)
    first: _Ranges = ()
    more: _Ranges = ()
    empty = False
    for items, *others in grouped.values():
        if others:
            piece = _followed(_piece(items[0]), _alternatives([rest[1:] for rest in (items, *others)]))
        else:
            piece = _sequence(items)
        _require_decided(first, piece[0])
        if empty and piece[2]:
            raise _Objection(f"has two alternatives that fit one text. {_WAY_OUT}")
        first, more, empty = first + piece[0], more + piece[1], empty or piece[2]
    return first, more, empty


def _require_decided(one: _Ranges, other: _Ranges) -> None:
    for low, high in one:
        for least, most in other:
            if low <= most and least <= high:
                shown = ascii(chr(max(low, least)))
                raise _Objection(f"can read {shown} in two ways at one place, which may take long. {_WAY_OUT}")


def _characters(kind: str, given: Any) -> _Ranges:
    items: list[tuple[object, Any]] = given if kind == "IN" else [("LITERAL", 10 if kind == "ANY" else given)]
    negated = kind in ("NOT_LITERAL", "ANY") or str(items[0][0]) == "NEGATE"
    ranges: list[tuple[int, int]] = []
    for op, value in items:
        match str(op):
            case "LITERAL":
                ranges.append((value, value))
            case "RANGE":
                ranges.append((value[0], value[1]))
            case "CATEGORY":
                fits = re.compile(_CATEGORIES[str(value)]).match
                ranges += ((code, code) for code in range(128) if fits(chr(code)))
                # Beyond ASCII any character may belong to it; of those that are left out, none for certain.
                ranges += () if negated else ((128, _LAST),)
            case _:
                pass
    found = _complement(ranges) if negated else tuple(ranges)
    if not found:
        raise _Objection("has a class that no character is in, so it never matches. Fix it")
    return found


def _complement(ranges: Sequence[tuple[int, int]]) -> _Ranges:
    found: list[tuple[int, int]] = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            found.append((start, low - 1))
        start = max(start, high + 1)
    return (*found, (start, _LAST)) if start <= _LAST else tuple(found)
