"""SQL as SQLite's tokenizer reads it: tokens, parameters, and where statements end.

One tokenizer serves the checks and the embedded engine. Nothing is parsed beyond tokens, except for the one construct
that has semicolons inside: CREATE TRIGGER. https://www.sqlite.org/lang.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple

import attrs


def words(text: str) -> frozenset[str]:
    """Return the words of a string as a set."""
    return frozenset(text.split())


_VERBS: Final = words("SELECT VALUES INSERT REPLACE UPDATE DELETE")

Kind = Literal["word", "quoted", "string", "number", "parameter", "symbol"]

# Letters and digits of names, with `_`, `$` and all beyond ASCII: written as the characters that they are not, since a
# set that goes up to \U0010ffff takes ten times as long to compile as all the rest.
_LETTER: Final = r"[^\x00-@\[-^`{-\x7f]"
_LETTERS: Final = r"[^\x00-\#%-/:-@\[-^`{-\x7f]"
_NUMBER: Final = r"0[xX][0-9A-Fa-f_]+|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?"
# A string or a name without its end goes on to the end of the text, and a number takes the letters behind it, as in
# SQLite: each is then an unrecognized token.
_TOKEN: Final = re.compile(
    rf"""
      (?:[ \t\n\f\r\v]+|--[^\n]*|/\*(?:.*?\*/|.*))*+
    (?:
      (?P<string>[xX]?'(?:[^']|'')*(?:'|\Z))
    | (?P<quoted>"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)|\[[^\]]*(?:\]|\Z))
    | (?P<parameter>\?[0-9]*|[:@$\#]{_LETTERS}+(?:::{_LETTERS}+)*(?:\([^)\s]*\))?)
    | (?P<number>(?:{_NUMBER}){_LETTERS}*)
    | (?P<word>{_LETTER}{_LETTERS}*)
    | (?P<symbol>->>|->|\|\||<=|>=|<>|!=|==|<<|>>|.)
    | \Z
    )
    """,
    re.VERBOSE | re.DOTALL,
)


_NO_SPACE: Final = re.compile(r"[^ \t\n\r\v\f]")


class Token(NamedTuple):
    """A word, a quoted name, a literal, a parameter or a symbol, and where it begins, in characters.

    `word` is the token in capitals where it is a bare word, else nothing: keywords are compared with it. A tuple,
    since a program has hundreds of thousands of them.
    """

    kind: Kind
    text: str
    start: int
    word: str

    @property
    def name(self) -> str | None:
        """The name that it spells where it can be one, without its quotes."""
        if self.kind == "word":
            return self.text
        if self.kind == "quoted":
            closing = "]" if self.text[0] == "[" else self.text[0]
            inner = self.text[1:-1]
            return inner if closing == "]" else inner.replace(closing * 2, closing)
        return None

    @property
    def end(self) -> int:
        """The first position behind it."""
        return self.start + len(self.text)


# Without its own arguments, which takes a quarter of the time away.
_made: Final[Callable[[tuple[str, str, int, str]], Token]] = partial(tuple.__new__, Token)  # pyright: ignore[reportUnknownMemberType]  # its result has a type here


def tokens_of(sql: str) -> list[Token]:
    """Return the tokens of a string, without blanks and comments."""
    tokens: list[Token] = []
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup
        if kind is not None:  # not the end
            text = match[kind]
            tokens.append(_made((kind, text, match.start(kind), text.upper() if kind == "word" else "")))
    return tokens


def text_of(literal: str) -> str:
    """The text that a literal such as 'it''s' is."""
    return literal[1:-1].replace("''", "'")


def quoted(name: str) -> str:
    """Return a name as an identifier that can never be read as a string."""
    return "`" + name.replace("`", "``") + "`"


def verb_of(tokens: Sequence[Token]) -> tuple[str, int]:
    """Return the verb of a statement, and its place among the tokens: the first, or behind WITH and its queries."""
    if not tokens or tokens[0].word != "WITH":
        return tokens[0].word if tokens else "", 0
    return next(((token.word, at) for at, token in outside(tokens) if token.word in _VERBS), ("", 0))


def outside(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """Give the tokens that are in no parentheses, with their places."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth:
            yield index, token


def enclosed(tokens: Sequence[Token], at: int) -> Sequence[Token]:
    """Return the tokens between the parenthesis at a place and its other one; none where there is another token."""
    depth = 0
    for end, token in enumerate(tokens[at:], at):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth:
            return tokens[at + 1 : end]
    return tokens[at + 1 :]


def numbered(tokens: Iterable[Token]) -> Iterator[tuple[Token, int]]:
    """Give the parameters, as often as each is written, with their numbers, which are the places of their values.

    A `?` has the number behind the highest before it, and so has a name where it comes first.
    """
    named: dict[str, int] = {}
    highest = 0
    for token in tokens:
        if token.kind != "parameter":
            continue
        if token.text == "?":
            number = highest + 1
        elif token.text[0] == "?":
            number = number_of(token)
        else:
            number = named.setdefault(token.text, highest + 1)
        highest = max(highest, number)
        yield token, number


def number_of(parameter: Token) -> int:
    """Return the number of a `?12`: as many of its digits as tell whether it is one of SQLite's, of five at most."""
    return int(parameter.text[1:].lstrip("0")[:6] or "0")


def parameter_count(tokens: Iterable[Token]) -> int:
    """Return how many values a statement takes: the highest number of its parameters, as SQLite counts them."""
    return max((number for _, number in numbered(tokens)), default=0)


@attrs.frozen
class StatementText:
    """One statement of a string, with its semicolon; `start` is where it begins there.

    The tokens begin from 0 at the start of the statement, and end before its semicolon. There are none where nothing
    but semicolons and comments is left.
    """

    text: str
    start: int
    tokens: tuple[Token, ...]

    @property
    def keyword(self) -> str:
        """The first word, in capitals: SELECT, INSERT, ... Empty where there is no statement."""
        return self.tokens[0].word if self.tokens else ""

    @property
    def verb(self) -> str:
        """The keyword, and behind `WITH … AS (…)` the word that says what is done with it: SELECT, INSERT, ..."""
        return verb_of(self.tokens)[0]

    @property
    def parameters(self) -> list[Token]:
        """Its parameters in order, as often as each is written."""
        return [token for token in self.tokens if token.kind == "parameter"]

    @property
    def parameter_count(self) -> int:
        """The number of values to bind: the highest number, as SQLite counts them."""
        return parameter_count(self.tokens)


def statements_of(sql: str) -> list[StatementText]:
    """Return the statements of a string, at least one.

    Empty statements belong to the one that follows, as SQLite takes them; the last one has no tokens where only
    semicolons and comments follow the semicolon before.
    """
    everything = tokens_of(sql)
    if ";" not in sql:
        return [StatementText(sql, 0, tuple(everything))]
    found: list[StatementText] = []
    begin = 0
    tokens: list[Token] = []
    for token in everything:
        if begin:
            token = Token(token.kind, token.text, token.start - begin, token.word)
        if token.text != ";" or (tokens and _is_in_trigger(tokens)):
            tokens.append(token)
        elif tokens:
            end = begin + token.end
            found.append(StatementText(sql[begin:end], begin, tuple(tokens)))
            tokens = []
            rest = _NO_SPACE.search(sql, end)
            begin = len(sql) if rest is None else rest.start()
    if begin < len(sql):
        found.append(StatementText(sql[begin:], begin, tuple(tokens)))
    return found


def _is_in_trigger(tokens: list[Token]) -> bool:
    first = " ".join(token.word for token in tokens[:6])
    is_trigger = re.match(r"(EXPLAIN (QUERY PLAN )?)?CREATE (TEMP |TEMPORARY )?TRIGGER( |$)", first) is not None
    # `; END` is the end of the body: the END of a CASE never follows a semicolon.
    return is_trigger and not (len(tokens) > 2 and tokens[-1].word == "END" and tokens[-2].text == ";")
