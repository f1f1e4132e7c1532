"""An UPDATE of what was given: the assignments of its SET whose values are UNSET are left out.

One rewriter for every engine, over tokens alone. The text that a program writes is constant, so that the checks judge
the whole of it; they ask here, too, which parameters may be UNSET.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from core.errors import D1TypeError
from core.statements.tokens import Token, numbered, outside, statements_of, verb_of, words
from core.validation.unset import UNSET

_ENDS: Final = words("FROM WHERE RETURNING ORDER LIMIT")
_BEHIND_A_NAME: Final = words("AS INDEXED NOT SET")


class _Assignment(NamedTuple):
    """One assignment of a SET, and the parameters that it reads."""

    tokens: Sequence[Token]
    reads: frozenset[int]

    @property
    def column(self) -> str:
        """The column that it sets; of several, the first."""
        return self.tokens[0].text if self.tokens[0].text != "(" else self.tokens[1].text


class _Update(NamedTuple):
    """What is read of a statement: the assignments, those parameters that are read elsewhere, and each one's number."""

    assignments: Sequence[_Assignment]
    elsewhere: frozenset[int]
    numbers: dict[int, int]
    """The number of a parameter, by where its token starts."""
    table: str


def _update(tokens: Sequence[Token]) -> _Update:
    numbers = {token.start: number for token, number in numbered(tokens)}

    def read(some: Sequence[Token]) -> frozenset[int]:
        return frozenset(numbers[token.start] for token in some if token.start in numbers)

    verb, at = verb_of(tokens)
    updates = outside(tokens) if verb == "UPDATE" else ()
    begin = next((place for place, token in updates if place > at and token.word == "SET"), 0)
    if not begin:
        return _Update((), read(tokens), numbers, "")
    found: list[_Assignment] = []
    start, end = begin + 1, len(tokens)
    for place, token in outside(tokens):
        ends = token.word in _ENDS and place > start and tokens[place - 1].word != "DISTINCT"
        if place > begin and (token.text == "," or ends):
            found.append(_Assignment(tokens[start:place], read(tokens[start:place])))
            start = place + 1
            if ends:
                end = place
                break
    else:
        found.append(_Assignment(tokens[start:], read(tokens[start:])))
    target = [token for token in tokens[at + 1 : begin] if token.word not in _BEHIND_A_NAME]
    target = target[2:] if target and target[0].word == "OR" else target
    last = next((place for place, token in enumerate(target) if token.word in ("INDEXED", "NOT")), len(target))
    table = target[last - 1].text if last else ""
    return _Update(found, read(tokens[:begin]) | read(tokens[end:]), numbers, table)


def never_unset(tokens: Sequence[Token]) -> frozenset[int]:
    """The numbers of the parameters of a statement that are read outside of an assignment of UPDATE … SET."""
    return _update(tokens).elsewhere


def only_given(sql: str, values: Sequence[object]) -> tuple[str, tuple[Any, ...]]:
    """Return the last statement of `sql` without the assignments whose values are UNSET, and the values that it reads.

    Where nothing was given, one column is set to itself, so that RETURNING answers.

    Raises D1TypeError for an UNSET that is read anywhere else, since a WHERE without a condition would be another
    WHERE, and for an assignment that reads a value that is UNSET and one that is not.
    """
    part = statements_of(sql)[-1]
    update = _update(part.tokens)
    unset = frozenset(number for number, value in enumerate(values, 1) if value is UNSET)
    in_set = frozenset(number for one in update.assignments for number in one.reads)
    if wrong := (unset & update.elsewhere) | (unset - in_set):
        raise D1TypeError(
            f"D1_TYPE_ERROR: value {min(wrong)} is UNSET, and the statement reads it outside of an assignment of UPDATE "
            "... SET. Bind None for NULL, or write a statement for each case"
        )
    left = [one for one in update.assignments if not one.reads & unset]
    if mixed := next((one for one in update.assignments if one.reads & unset and one.reads - unset), None):
        raise D1TypeError(
            f"D1_TYPE_ERROR: the assignment of {mixed.column} reads a value that is UNSET and one that is not. Bind both "
            "or neither"
        )
    text = part.text

    def numbered(begin: int, end: int) -> str:
        pieces: list[str] = []
        for start, number in update.numbers.items():
            if begin <= start < end and text[start : start + 1] == "?":
                pieces += [text[begin:start], f"?{number}"]
                begin = start + 1 + len(text[start + 1 : end]) - len(text[start + 1 : end].lstrip("0123456789"))
        return "".join([*pieces, text[begin:end]])

    first, last = update.assignments[0].tokens[0].start, update.assignments[-1].tokens[-1].end
    column = update.assignments[0].column
    assigned = [numbered(one.tokens[0].start, one.tokens[-1].end) for one in left] or [
        f"{column} = {update.table}.{column}"
    ]
    read = update.elsewhere.union(*(one.reads for one in left))
    given = tuple(None if value is UNSET else value for value in values[: max(read, default=0)])
    written = "".join([numbered(0, first), ", ".join(assigned), numbered(last, len(text))])
    return sql[: part.start] + written, given
