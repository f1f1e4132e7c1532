"""The line of a source at which a character of a string stands: of a literal in quotes of any kind, of several beside
each other, of an f-string, and of a sum of those.

Python's own trees have the begin of a literal alone, and of the parts of an f-string only since 3.12.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from core.program.modules import Modules
from core.program.syntax import Node

_LITERAL: Final = re.compile(
    r"""#[^\n]*|(?P<kind>[a-zA-Z]*)(?P<quote>\"""|'{3}|"|')(?P<body>(?:\\.|(?!(?P=quote)).)*)(?P=quote)""", re.DOTALL
)
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_ESCAPE: Final = re.compile(r"\\(?:[0-7]{1,3}|x..|u.{4}|U.{8}|N\{[^}]*\}|(?P<line>\n)|.)", re.DOTALL)
_HOLE: Final = re.compile(r"(?P<brace>\{\{|\}\})|\{[^{}]*\}")


def place_in(modules: Modules, text: Node, at: int, lines: Sequence[str]) -> Node | None:
    """The line of the character `at` of a string, as an expression up to the end of the literal that has it.

    None where another module has it, and for a text of one line by its name: that is found by the name. `lines` are
    those of the module.
    """
    value, scope = modules.value(*text)
    if scope.module is not text.scope.module or (value is not text.node and value.lineno == value.end_lineno):
        return None
    match value:
        case ast.BinOp(left=left, right=right):
            size = len(modules.string(left, scope) or "")
            one = Node(left if at < size else right, scope)
            return place_in(modules, one, at if at < size else at - size, lines) or one
        case ast.Constant():
            holes: list[int] = []
        case ast.JoinedStr(values=values):
            holes = [
                len(modules.string(one.value, scope) or "") for one in values if isinstance(one, ast.FormattedValue)
            ]
        case _:
            return None
    line = next((line for line, end in _ends(value, holes, lines) if at < end), value.lineno)
    column = value.col_offset if line == value.lineno else 0
    place = ast.Constant("", lineno=line, col_offset=column, end_lineno=value.end_lineno)
    return Node(place, scope)


def _ends(literal: ast.expr, holes: list[int], lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Each line of a literal, with the number of characters of its value up to there. `holes` are the sizes of the
    values in an f-string.
    """
    first, last = literal.lineno, literal.end_lineno or literal.lineno
    written = [line.encode() for line in lines[first - 1 : last]]
    written[-1] = written[-1][: literal.end_col_offset]
    written[0] = written[0][literal.col_offset :]
    source = b"".join(written).decode()
    before = 0
    for match in _LITERAL.finditer(source):
        if match["quote"] is None:
            continue
        kind = match["kind"].lower()
        line = first + source.count("\n", 0, match.start("body"))
        for piece in _LINE.findall(match["body"]):
            if "r" not in kind:
                piece = _ESCAPE.sub(lambda escape: "" if escape["line"] else "_", piece)
            if "f" in kind:
                before += sum(holes.pop(0) for hole in _HOLE.finditer(piece) if not hole["brace"] and holes)
                piece = _HOLE.sub(lambda hole: "_" if hole["brace"] else "", piece)
            before += len(piece)
            yield line, before
            line += 1
