"""The text of SQL as SQLite's tokenizer sees it: where statements end, what their parameters are, where a word stands.

Python's sqlite3 module runs one statement at a time and tells no position of an error; both are worked out here.
Nothing is parsed beyond tokens, except for the one construct that has semicolons inside: CREATE TRIGGER.
https://www.sqlite.org/lang.html
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Final

import attrs

__all__ = ["Piece", "Token", "first_syntax_error", "locate", "split", "tokens"]

_TOKEN: Final = re.compile(
    r"""
      (?P<space>[ \t\n\f\r\v]+)
    | (?P<comment>--[^\n]*|/\*(?:.*?\*/|.*))
    | (?P<string>[xX]?'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
    | (?P<parameter>\?[0-9]*|[:@$\#][A-Za-z_0-9$\x80-\U0010ffff]+(?:::[A-Za-z_0-9$\x80-\U0010ffff]+)*(?:\([^)\s]*\))?)
    | (?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z_0-9$\x80-\U0010ffff]*)
    | (?P<misnumber>(?>0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
        [A-Za-z_$\x80-\U0010ffff][A-Za-z_0-9$\x80-\U0010ffff]*)
    | (?P<number>0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<semicolon>;)
    | (?P<illegal>["'`\[].*)
    | (?P<operator>\|\||->>|->|<<|>>|<>|<=|>=|==|!=|.)
    """,
    re.VERBOSE | re.DOTALL,
)

MAX_PARAMETER: Final = 100


@attrs.frozen
class Token:
    """A word, a string, a parameter, ... with its place in the text, in characters."""

    kind: str
    text: str
    start: int

    @property
    def name(self) -> str:
        """What a word or a quoted identifier names."""
        if self.kind != "quoted":
            return self.text
        mark = self.text[-1]
        return self.text[1:-1] if mark == "]" else self.text[1:-1].replace(mark * 2, mark)


def tokens(sql: str) -> Iterator[Token]:
    """Every token but spaces and comments."""
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or ""
        if kind not in ("space", "comment"):
            yield Token(kind, match[0], match.start())


@attrs.frozen
class Piece:
    """One statement of a text, from the end of the one before to its semicolon. `words` is empty where there is none."""

    text: str
    words: tuple[Token, ...]

    @property
    def keyword(self) -> str:
        """The first word, in capitals: SELECT, INSERT, ... Empty where there is no statement."""
        return self.words[0].text.upper() if self.words else ""

    @property
    def parameters(self) -> list[Token]:
        """Its parameters in order, each time that one stands there."""
        return [token for token in self.words if token.kind == "parameter"]

    @property
    def parameter_count(self) -> int:
        """How many values must be bound: the highest number, as SQLite gives them out."""
        highest = 0
        named: set[str] = set()
        for token in self.parameters:
            if token.text == "?":
                highest += 1
            elif token.text[0] == "?":
                highest = max(highest, int(token.text[1:]))
            elif token.text not in named:
                named.add(token.text)
                highest += 1
        return highest

    @property
    def has_double_quotes(self) -> bool:
        """Whether a name is in double quotes, which SQLite may take for a string instead."""
        return any(token.kind == "quoted" and token.text[0] == '"' for token in self.words)


def split(sql: str) -> list[Piece]:
    """The statements of a text. The last has no words where nothing but semicolons and comments is left.

    Empty statements belong to the one that follows, as SQLite takes them.
    """
    pieces: list[Piece] = []
    begin = 0
    words: list[Token] = []
    for token in tokens(sql):
        if token.kind != "semicolon":
            words.append(attrs.evolve(token, start=token.start - begin))
            continue
        if not words or (_is_trigger(words) and not _ends_trigger(words)):
            if words:
                words.append(attrs.evolve(token, start=token.start - begin))
            continue
        end = token.start + 1
        pieces.append(Piece(sql[begin:end], tuple(words)))
        words = []
        begin = end + len(sql[end:]) - len(sql[end:].lstrip(" \t\n\r\v\f"))
    if begin < len(sql) or not pieces:
        pieces.append(Piece(sql[begin:], tuple(words)))
    return pieces


def _is_trigger(words: list[Token]) -> bool:
    first = [token.text.upper() for token in words[:6]]
    if first[:1] == ["EXPLAIN"]:
        first = first[3:] if first[1:3] == ["QUERY", "PLAN"] else first[1:]
    return first[:2] == ["CREATE", "TRIGGER"] or (
        first[:1] == ["CREATE"] and first[1:2] in (["TEMP"], ["TEMPORARY"]) and first[2:3] == ["TRIGGER"]
    )


def _ends_trigger(words: list[Token]) -> bool:
    # `; END` is the end of the body: the END of a CASE never follows a semicolon.
    return len(words) > 2 and words[-1].text.upper() == "END" and words[-2].kind == "semicolon"


# ---------------------------------------------------------------------- where an error is

_NAMED: Final = (
    re.compile(r"^no such column: (?P<name>.+)$"),
    re.compile(r"^ambiguous column name: (?P<name>.+)$"),
)
_CALLED: Final = (
    re.compile(r"^no such function: (?P<name>.+)$"),
    re.compile(r"^not authorized to use function: (?P<name>.+)$"),
    re.compile(r"^wrong number of arguments to function (?P<name>.+)\(\)$"),
    re.compile(r"^misuse of (?:aggregate|window)(?: function)?:? (?P<name>.+)\(\)$"),
    re.compile(r"^(?P<name>.+)\(\) may not be used as a window function$"),
)


def locate(piece: Piece, message: str) -> Token | None:
    """The token that SQLite complains of in a statement, where its message has a position; None where it has none."""
    words = piece.words
    if match := re.match(r'^near "(?P<name>.*)": syntax error$', message, re.DOTALL):
        return first_syntax_error(piece, match["name"])
    if match := re.match(r'^unrecognized token: "(?P<name>.*)"$', message, re.DOTALL):
        return next((token for token in words if token.text.startswith(match["name"])), None)
    if message.startswith("variable number must be between"):
        return next((token for token in piece.parameters if not _is_allowed(token)), None)
    if message == "too many SQL variables":
        return _first_too_many(piece)
    for pattern in _NAMED:
        if match := pattern.match(message):
            return _find_name(piece, match["name"].strip('"'))
    for pattern in _CALLED:
        if match := pattern.match(message):
            calls = _find_calls(words, match["name"])
            # An aggregate is misused inside another, or after WHERE: seldom where it stands first.
            return None if not calls else calls[-1] if message.startswith("misuse") else calls[0]
    return None


def first_syntax_error(piece: Piece, near: str) -> Token | None:
    """The token at which SQLite's parser stopped, of those that look like it.

    A parser that reads from left to right stops at the first token that no statement could have there. So the text
    up to that token is the shortest that is refused for the same reason.
    """
    prefix = "" if piece.keyword == "EXPLAIN" else "EXPLAIN "
    scratch = sqlite3.connect(":memory:")
    try:
        for token in piece.words:
            if token.text != near:
                continue
            try:
                scratch.execute(prefix + piece.text[: token.start + len(token.text)] + " ")
            except sqlite3.Error as error:
                if str(error) == f'near "{near}": syntax error':
                    return token
    finally:
        scratch.close()
    return None


def _is_allowed(parameter: Token) -> bool:
    digits = parameter.text[1:]
    return not digits.isdigit() or parameter.text[0] != "?" or 1 <= int(digits) <= MAX_PARAMETER


def _first_too_many(piece: Piece) -> Token | None:
    for index, token in enumerate(piece.words):
        if token.kind == "parameter" and Piece("", piece.words[: index + 1]).parameter_count > MAX_PARAMETER:
            return token
    return None


def _find_name(piece: Piece, dotted: str) -> Token | None:
    words = piece.words
    wanted = dotted.lower().split(".")
    size = 2 * len(wanted) - 1
    unplaced = _unplaced(words)
    for index, token in enumerate(words):
        part = words[index : index + size]
        if len(part) < size:
            break
        names = part[::2]
        if any(name.kind not in ("word", "quoted") for name in names) or any(dot.text != "." for dot in part[1::2]):
            continue
        if [name.name.lower() for name in names] != wanted:
            continue
        after = words[index + size].text if index + size < len(words) else ""
        before = words[index - 1].text if index else ""
        # A call, an alias, or a part of a longer name is not that column.
        if after in ("(", ".") or before == "." or before.upper() == "AS" or token.start in unplaced:
            continue
        return token
    return None


_AFTER_ON: Final = frozenset("JOIN LEFT RIGHT FULL INNER CROSS NATURAL WHERE GROUP HAVING ORDER LIMIT UNION".split())  # noqa: SIM905


def _unplaced(words: tuple[Token, ...]) -> frozenset[int]:
    """Where names stand for which SQLite has no position: the columns that an UPDATE sets, the ON of a join."""
    found: set[int] = set()
    depth = 0
    part = ""
    opened: list[Token] = []
    for index, token in enumerate(words):
        upper = token.text.upper() if token.kind == "word" else token.text
        after = words[index + 1].text.upper() if index + 1 < len(words) else ""
        before = words[index - 1].text.upper() if index else ""
        if upper == "(":
            depth += 1
            opened = []
        elif upper == ")":
            depth -= 1
            # UPDATE t SET (a, b) = ...
            if part == "SET" and depth == 0 and after == "=":
                found.update(name.start for name in opened)
        elif depth == 0 and upper == "SET":
            part = "SET"
        elif depth == 0 and upper == "ON" and after != "CONFLICT" and words[0].text.upper() != "CREATE":
            part = "ON"
        elif (
            depth == 0
            and (upper in _AFTER_ON or upper in ("FROM", "RETURNING", ","))
            and (part == "ON" or upper != ",")
        ):
            part = ""
        elif part == "ON" or (part == "SET" and depth == 0 and after == "=" and before in ("SET", ",")):
            found.add(token.start)
        elif part == "SET" and depth == 1:
            opened.append(token)
    return frozenset(found)


def _find_calls(words: tuple[Token, ...], name: str) -> list[Token]:
    wanted = name.lower()
    return [
        token
        for index, token in enumerate(words)
        if token.kind in ("word", "quoted", "operator")
        and token.name.lower() == wanted
        and (token.kind == "operator" or (index + 1 < len(words) and words[index + 1].text == "("))
    ]
