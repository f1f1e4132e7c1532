"""Edits of row classes in the text of their module, laid out as a formatter would. Everything else in it stays."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from core.program.generate import cut, first_with_default, is_keyword_only, last_attribute, with_attrs, written_indent
from core.program.row_classes import AddedFields, Edit, NewClass, Retyped


def with_rows(text: str, edits: Sequence[Edit]) -> str:
    """The text of a module after the edits."""
    lines = text.split("\n")
    ends: list[str] = []
    # From the last one to the first, so that the lines of the others stay. Annotations go before lines put in above
    # them.
    starts: dict[int, int] = {}
    located = [(_place(edit, lines), edit) for edit in edits]
    for (at, _), edit in sorted(located, key=lambda one: one[0], reverse=True):
        match edit:
            case Retyped():
                _retype(edit, lines)
            case AddedFields(class_, fields):
                start, end, new_lines = _added(class_, fields, lines)
                lines[start:end] = new_lines
            case NewClass(name, fields, ast.stmt()):
                if at not in starts:
                    above = 0
                    while above < at and not lines[at - above - 1].strip():
                        above += 1
                    blank = [""] * (2 - above) if above < at else []
                    lines[at:at] = blank
                    starts[at] = at + len(blank)
                lines[starts[at] : starts[at]] = [*_class(name, fields), "", ""]
            case NewClass(name, fields):
                ends += ["", "", *_class(name, fields)]
    if ends:
        while lines and not lines[-1].strip():
            lines.pop()
        lines = [*lines, *(ends if lines else ends[2:]), ""]
    new = "\n".join(lines)
    return with_attrs(new) if any(isinstance(edit, NewClass) for edit in edits) else new


def _place(edit: Edit, lines: Sequence[str]) -> tuple[int, int]:
    match edit:
        case Retyped(annotation):
            return annotation.lineno - 1, annotation.col_offset
        case AddedFields(class_, fields):
            return _added(class_, fields, lines)[0], -1
        case NewClass(before=before):
            # Fields of a class that ends right above are put in above it.
            return (_above(before, lines) if before is not None else len(lines)), 0


def _class(name: str, fields: Sequence[str]) -> list[str]:
    return ["@attrs.frozen", f"class {name}:", *(f"    {field}" for field in fields)]


def _above(statement: ast.stmt, lines: Sequence[str]) -> int:
    """The line of a statement with its decorators and the comments right above it."""
    at = statement.lineno
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        at = min([at, *(decorator.lineno for decorator in statement.decorator_list)])
    at -= 1
    while at and lines[at - 1].startswith("#"):
        at -= 1
    return at


def _added(class_: ast.ClassDef, fields: Sequence[str], lines: Sequence[str]) -> tuple[int, int, list[str]]:
    indent = " " * written_indent(class_, lines)
    first = first_with_default(class_)
    at = first.lineno - 1 if first is not None and not is_keyword_only(class_) else last_attribute(class_)
    while first is not None and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    body = class_.body[0]
    if body.lineno == class_.lineno:  # class Row: ...
        line = lines[class_.lineno - 1]
        head = line[: cut(line, body.col_offset)].rstrip()
        return class_.lineno - 1, class_.lineno, [head, *(indent + field for field in fields)]
    alone = len(class_.body) == 1
    if alone and (isinstance(body, ast.Pass) or _is_dots(body)):
        return body.lineno - 1, body.end_lineno or body.lineno, [indent + field for field in fields]
    new = [indent + field for field in fields]
    if alone and isinstance(body, ast.Expr):
        new.insert(0, "")  # below the docstring
    elif not any(isinstance(statement, ast.AnnAssign) for statement in class_.body):
        new.append("")  # above the methods
    return at, at, new


def _is_dots(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and statement.value.value is ...
    )


def _retype(edit: Retyped, lines: list[str]) -> None:
    old = edit.annotation
    first, last = old.lineno - 1, (old.end_lineno or old.lineno) - 1
    start, end = cut(lines[first], old.col_offset), cut(lines[last], old.end_col_offset or 0)
    if not edit.optional:
        lines[first : last + 1] = [lines[first][:start] + edit.type + lines[last][end:]]
        return
    # Inside the quotes of an annotation that is quoted.
    place = end - 1 if isinstance(old, ast.Constant) and isinstance(old.value, str) else end
    lines[last] = lines[last][:place] + " | None" + lines[last][place:]
