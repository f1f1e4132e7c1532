"""Edits of row classes in the text of their module, laid out as a formatter would. Everything else in it stays."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from core.program.generate import LineEdit, added, cut, edited, with_attrs
from core.program.row_classes import AddedFields, Edit, NewClass, Retyped


def with_rows(text: str, edits: Sequence[Edit]) -> str:
    """The text of a module after the edits."""
    lines = text.split("\n")
    made: list[LineEdit] = []
    above: list[LineEdit] = []
    behind: list[str] = []
    for edit in edits:
        match edit:
            case Retyped():
                made.append(_retyped(edit, lines))
            case AddedFields(class_, fields):
                made.append(added(class_, fields, lines))
            case NewClass(name, fields, before):
                written = ["@attrs.frozen", f"class {name}:", *(f"    {field}" for field in fields)]
                if before is None:
                    behind += ["", "", *written]
                    continue
                at = _above(before, lines)
                end = _end(lines[:at])
                is_first = at not in (one[0] for one in above)
                blank = [""] * (2 - at + end) if end and is_first else []
                above.append((at, at, [*blank, *written, "", ""]))
    if behind:
        end = _end(lines)
        above.append((end, len(lines), [*(behind if end else behind[2:]), ""]))
    new = edited(lines, [*made, *above])  # a class that ends where a new one begins has its fields before it
    return with_attrs(new) if above else new


def _end(lines: Sequence[str]) -> int:
    """The number of lines up to the last one that is not blank."""
    return next((at for at in range(len(lines), 0, -1) if lines[at - 1].strip()), 0)


def _above(statement: ast.stmt, lines: Sequence[str]) -> int:
    """The line of a statement with its decorators and the comments right above it."""
    at: int = min(one.lineno for one in (statement, *getattr(statement, "decorator_list", ()))) - 1
    while at and lines[at - 1].startswith("#"):
        at -= 1
    return at


def _retyped(edit: Retyped, lines: Sequence[str]) -> LineEdit:
    old = edit.annotation
    first, last = old.lineno - 1, (old.end_lineno or old.lineno) - 1
    start, end = cut(lines[first], old.col_offset), cut(lines[last], old.end_col_offset or 0)
    if not edit.optional:
        return first, last + 1, [lines[first][:start] + edit.type + lines[last][end:]]
    # Inside the quotes of an annotation that is quoted.
    place = end - 1 if isinstance(old, ast.Constant) and isinstance(old.value, str) else end
    return last, last + 1, [lines[last][:place] + " | None" + lines[last][place:]]
