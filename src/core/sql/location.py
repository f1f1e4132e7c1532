"""The position of a mistake in a statement: Python's sqlite3 module has SQLite's message, and no position."""

from __future__ import annotations

import re
import sqlite3
from typing import Final

from core.http.streams import well_formed
from core.sql.rules import MAX_PARAMETERS
from core.statements.tokens import StatementText, Token, number_of, numbered, words

_NAMED: Final = re.compile(r"(?:no such column|ambiguous column name): (.+)")
_CALLED: Final = (
    re.compile(r"(?:no such function|not authorized to use function): (.+)"),
    re.compile(r"wrong number of arguments to function (.+)\(\)"),
    re.compile(r"misuse of (?:aggregate|window)(?: function)?:? (.+)\(\)"),
    re.compile(r"(.+)\(\) may not be used as a window function"),
)


def locate(statement: StatementText, message: str) -> Token | None:
    """Return the token that SQLite complains of, or None where its message has no position."""
    tokens = statement.tokens
    if match := re.match(r'^near "(?P<name>.*)": syntax error$', message, re.DOTALL):
        return _first_syntax_error(statement, match["name"])
    if match := re.match(r'^unrecognized token: "(?P<name>.*)"$', message, re.DOTALL):
        return next((token for token in tokens if token.text.startswith(match["name"])), None)
    if message.startswith("variable number must be between"):
        given = (token for token in statement.parameters if token.text[0] == "?" and token.text != "?")
        return next((token for token in given if not 1 <= number_of(token) <= MAX_PARAMETERS), None)
    if message == "too many SQL variables":
        return next((token for token, number in numbered(tokens) if number > MAX_PARAMETERS), None)
    if match := _NAMED.fullmatch(message):
        return _find_name(statement, match[1].strip('"'))
    for pattern in _CALLED:
        if match := pattern.fullmatch(message):
            calls = _find_calls(tokens, match[1])
            # An aggregate is misused inside another, or after WHERE: seldom where it comes first.
            return None if not calls else calls[-1] if message.startswith("misuse") else calls[0]
    return None


def _first_syntax_error(statement: StatementText, near: str) -> Token | None:
    """Return the token at which SQLite's parser stopped, of those that look like it.

    A parser that reads from left to right stops at the first token that no statement could have there. So the text
    up to that token is the shortest that is refused for the same reason.
    """
    prefix = "" if statement.keyword == "EXPLAIN" else "EXPLAIN "
    scratch = sqlite3.connect(":memory:")
    try:
        for token in statement.tokens:
            if token.text != near:
                continue
            try:
                scratch.execute(prefix + well_formed(statement.text[: token.start + len(token.text)]) + " ")
            except sqlite3.Error as error:
                if str(error) == f'near "{near}": syntax error':
                    return token
    finally:
        scratch.close()
    return None


def _find_name(statement: StatementText, dotted: str) -> Token | None:
    tokens = statement.tokens
    wanted = re.split(r"(\.)", dotted.lower())
    size = len(wanted)
    unplaced = _unplaced(tokens)
    for index, token in enumerate(tokens):
        if [(part.name or part.text).lower() for part in tokens[index : index + size]] != wanted:
            continue
        after = tokens[index + size].text if index + size < len(tokens) else ""
        before = tokens[index - 1].text if index else ""
        # A call, an alias, or a part of a longer name is not that column.
        if after in ("(", ".") or before == "." or before.upper() == "AS" or token.start in unplaced:
            continue
        return token
    return None


_AFTER_ON: Final = words("JOIN LEFT RIGHT FULL INNER CROSS NATURAL WHERE GROUP HAVING ORDER LIMIT UNION")


def _unplaced(tokens: tuple[Token, ...]) -> frozenset[int]:
    """Return where names begin that have no position in SQLite: the columns that an UPDATE sets, the ON of a join."""
    found: set[int] = set()
    depth = 0
    part = ""
    opened: list[Token] = []
    for index, token in enumerate(tokens):
        upper = token.word or token.text
        after = tokens[index + 1].text.upper() if index + 1 < len(tokens) else ""
        before = tokens[index - 1].text.upper() if index else ""
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
        elif depth == 0 and upper == "ON" and after != "CONFLICT" and tokens[0].text.upper() != "CREATE":
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


def _find_calls(tokens: tuple[Token, ...], name: str) -> list[Token]:
    wanted = name.lower()
    return [
        token
        for index, token in enumerate(tokens)
        if token.kind in ("word", "quoted", "symbol")
        and (token.name or token.text).lower() == wanted
        and (token.kind == "symbol" or (index + 1 < len(tokens) and tokens[index + 1].text == "("))
    ]
