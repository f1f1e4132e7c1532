"""Values inside the text of a statement: which of them ought to be bound, and the line to write.

A value in quotes, or where SQL takes a value, can be bound; in any other place it is a name, which cannot. Nothing is
known here of the language that puts the text together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple

from core.sql.rules import FUNCTIONS
from core.sql.statement import Text
from core.statements.tokens import Token, number_of, tokens_of, words

FIXED: Final = 0
UNKNOWN: Final = 1
OPEN: Final = 2

_FIRST: Final = 0xE000
_MARK: Final = "[\ue000-\uf8ff]"
"""The characters that stand for values while a text is read: letters to SQLite, and to nobody else."""
_COMPARED: Final = words("= == != <> < <= > >= || + - * / % LIKE GLOB LIMIT OFFSET BETWEEN")
_LONGEST: Final = 160
_TEXTS_AT_MOST: Final = 32


class Interpolated(NamedTuple):
    """A value in a text, as it is written: a constant (`FIXED`), not known, or chosen by anybody (`OPEN`).

    `several` says that it is many values with something between them. `choices` are all the texts that it may be, where
    these are known; of places for parameters that is one.
    """

    shown: str
    state: int
    several: bool = False
    choices: tuple[str, ...] = ()


def texts_of(parts: Sequence[str | Interpolated]) -> Sequence[Text]:
    """Return all the texts that parts may make; nothing where these are not known, or too many."""
    choices = {part.shown: part.choices for part in parts if isinstance(part, Interpolated)}
    if not parts or prod(map(len, choices.values())) > _TEXTS_AT_MOST:
        return ()
    chosen = (dict(zip(choices, each, strict=True)) for each in product(*choices.values()))
    return [
        Text("".join(p if isinstance(p, str) else one[p.shown] for p in parts), frozenset(one.items()))
        for one in chosen
    ]


def check_values_in(parts: Sequence[str | Interpolated], straight: bool = True) -> str | None:
    """Return the message about the values that are open, and about those in quotes that are no constants, or None.

    `straight` says that the parts follow each other in every run, so that the whole line can be shown.
    """
    values = [part for part in parts if isinstance(part, Interpolated)]
    marks = iter(range(_FIRST, _FIRST + len(values)))
    text = "".join(re.sub(_MARK, "_", part) if isinstance(part, str) else chr(next(marks)) for part in parts)
    tokens = tokens_of(text)
    highest = max((number_of(t) for t in tokens if t.kind == "parameter" and t.text[0] == "?"), default=0)
    given = ["…"] * highest
    bound: list[str] = []
    names: list[str] = []
    line = ""
    end = 0
    for at, token in enumerate(tokens):
        inside = [values[ord(mark) - _FIRST] for mark in re.findall(_MARK, token.text)]
        open_values = [one.shown for one in inside if one.state == OPEN or (one.state and token.kind == "string")]
        line += " " if end < token.start else ""  # blanks and comments
        end = token.end
        if open_values and _takes_value(tokens, at):
            bound += open_values
            line += " || ".join(_bound(tokens, at, values, given, bool(highest)))
        else:
            names += open_values
            given += ["…"] if token.text == "?" else []
            line += token.text
    if not bound and not names:
        return None
    every = list(dict.fromkeys([*bound, *names]))
    they, them, are = ("it", "it", "is") if len(every) == 1 else ("they", "them", "are")
    message = f"{' and '.join(every)} {are} put into the text itself, where {they} can change what the statement does"
    if bound:
        line = re.sub(_MARK, lambda mark: f"{{{values[ord(mark[0]) - _FIRST].shown}}}", line.strip())
        quote = "'" if '"' in line else '"'
        shown = f"prepare({'f' if '{' in line else ''}{quote}{line}{quote})"
        shown = shown if straight and len(shown) < _LONGEST and "\n" not in line else "write ?, and "
        message += f". Bind {them if len(bound) > 1 else 'it'}: {shown}.bind({', '.join(given)})"
    if names:
        chosen = " and ".join(dict.fromkeys(names))
        message += f". Take {chosen} from a dict of constants, or let its type be a Literal: a name cannot be bound"
    return message


def _bound(
    tokens: Sequence[Token], at: int, values: Sequence[Interpolated], given: list[str], numbered: bool
) -> Iterator[str]:
    """A token with a parameter for each value in it, which is added to those given."""
    token = tokens[at]
    text = token.text if token.kind == "word" else token.text[1:-1]
    for piece in filter(None, re.split(f"({_MARK})", text)):
        if not re.fullmatch(_MARK, piece):
            yield f"'{piece}'"
            continue
        value = values[ord(piece) - _FIRST]
        opened = _opening(tokens, at)
        among = value.several and opened > 0 and tokens[opened - 1].word == "IN"
        given.append(f"json.dumps({value.shown})" if among else f"*{value.shown}" if value.several else value.shown)
        place = f"?{len(given)}" if numbered else "?"
        yield f"SELECT value FROM json_each({place})" if among else "?, …" if value.several else place


def _takes_value(tokens: Sequence[Token], at: int) -> bool:
    """True where a value may stand, and no name."""
    token = tokens[at]
    before = tokens[at - 1] if at else token
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if token.kind == "string":
        return True
    if len(token.text) > (3 if token.kind == "quoted" else 1) or after in (".", "("):
        return False
    if before.text in ("(", ","):
        opened = _opening(tokens, at)
        word = tokens[opened - 1].word if opened > 0 else ""
        rows = opened > 0 and tokens[opened - 1].text == "," and any(one.word == "VALUES" for one in tokens[:opened])
        return rows or word in ("VALUES", "IN") or word.lower() in FUNCTIONS
    return (before.word or before.text) in _COMPARED or (before.word == "AND" and tokens[at - 3].word == "BETWEEN")


def _opening(tokens: Sequence[Token], at: int) -> int:
    """The place of the parenthesis that a token is in; -1 for none."""
    depth = 1
    while depth and at > 0:
        at -= 1
        depth += {"(": -1, ")": 1}.get(tokens[at].text, 0)
    return at if not depth else -1
