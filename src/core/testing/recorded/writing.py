"""The text of a recorded test, as `ruff format` leaves it at any length of lines from 79 on.

What fits into a line of 79 stands in one. Everything else is one item a line, with a comma after the last, which the
formatter keeps.
"""

from __future__ import annotations

import ast
from datetime import datetime
from math import isfinite
from typing import Any, Final, cast

import attrs

from core.testing.recorded.values import Answer, Sent, StandIn, State

_WIDTH: Final = 79
_HOME: Final = "core.testing"


def written(name: str, sent: Sent, seed: State, time: int, expected: Answer) -> str:
    """The file of a test with the name `name`."""
    method, url, *given = _fields(sent)
    given = [("", method[1]), ("", url[1]), *given, *([("seed=", seed)] if seed else []), ("time=", time)]
    lines = "".join(f"        {key}{literal(value, 8, len(key))},\n" for key, value in given)
    answer = f"    assert answer == {literal(expected, 4, _WIDTH)}\n"
    body = f"    answer = core_recorded(\n{lines}    )\n{answer}"
    path = sent.url.partition("?")[0].translate({34: None, 92: None})
    return (
        f'"""{sent.method} {path}, as `core record` wrote it."""\n\n{imports({"Answer", "Recorded", *names_in(body)})}\n\n\n'
        f"def {name}(core_recorded: Recorded) -> None:\n{body}"
    )


def names_in(text: str) -> set[str]:
    """The names that a text needs, beside Answer and Recorded: `datetime`, and those of `core.testing`."""
    used = {node.id for node in ast.walk(ast.parse(f"if 1:\n{text}")) if isinstance(node, ast.Name)}
    return used & {"ANY_ID", "ANY_TIME", "Jwt", "Revealed", "Signed", "datetime"}


def imports(names: set[str]) -> str:
    """The import of names of `core.testing`, constants first, after that of `datetime` where it is among them."""
    if "datetime" in names:
        return f"from datetime import datetime\n\n{imports(names - {'datetime'})}"
    ordered = sorted(names, key=lambda name: (not name.isupper(), name))
    line = f"from {_HOME} import {', '.join(ordered)}"
    if len(line) <= _WIDTH:
        return line
    names_in_lines = "".join(f"    {name},\n" for name in ordered)
    return f"from {_HOME} import (\n{names_in_lines})"


def rewritten(text: str, function: str, number: int, expected: Answer) -> str:
    """A file with another `Answer(…)`, of the call `number`, from 0 on, in a test."""
    tree = ast.parse(text)
    test = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
    )
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
    answers = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "Answer"]
    answer = sorted(answers, key=lambda node: node.lineno)[number]
    line = text.splitlines()[answer.lineno - 1]
    new = literal(expected, len(line) - len(line.lstrip()), _WIDTH)
    text = _replaced(text, answer, new)
    found = {node.module: node for node in tree.body if isinstance(node, ast.ImportFrom)}
    if _HOME in found:
        needed = names_in(f"  {new}") - ({"datetime"} if "datetime" in found else set())
        return _replaced(text, found[_HOME], imports({alias.name for alias in found[_HOME].names} | needed))
    return text


def _replaced(text: str, node: ast.stmt | ast.expr, new: str) -> str:
    lines = text.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (before + new.encode() + after).decode()


def literal(value: object, indent: int, used: int) -> str:
    """A value as Python text, in a statement that is `indent` deep and has `used` bytes before it in its line."""
    short = _short(value)
    opened, items, closed = _parts(value)
    # The formatter counts two for a wide character, and none is wider than its bytes.
    if indent + used + len(short.encode()) < _WIDTH or not items:
        return short
    deeper = indent + 4
    lines = "".join(f"{' ' * deeper}{key}{literal(item, deeper, len(key.encode()))},\n" for key, item in items)
    return f"{opened}\n{lines}{' ' * indent}{closed}"


def _short(value: object) -> str:
    opened, items, closed = _parts(value)
    return f"{opened}{', '.join(key + _short(item) for key, item in items)}{closed}"


def _parts(value: object) -> tuple[str, list[tuple[str, object]], str]:
    """What a value begins with, its items with the text before each, and what it ends with."""
    match value:
        case dict():
            return "{", [(f"{_short(key)}: ", item) for key, item in cast("dict[object, object]", value).items()], "}"
        case list():
            return "[", [("", item) for item in cast("list[object]", value)], "]"
        case set() if value:
            return "{", [("", item) for item in sorted(cast("set[object]", value), key=_short)], "}"
        case Answer() | StandIn():
            return f"{type(value).__name__}(", _fields(value), ")"
        case datetime():
            return "datetime.fromisoformat(", [("", value.isoformat())], ")"
        case float() if not isfinite(value):
            return f'float("{value}")', [], ""
        case float():
            return repr(value).replace("e+", "e"), [], ""
        case str() | bytes():
            return quoted(value), [], ""
        case _:
            return repr(value), [], ""


def _fields(value: object) -> list[tuple[str, object]]:
    """The fields of an attrs object that are not their defaults."""
    found: list[tuple[str, object]] = []
    for field in attrs.fields(cast("Any", type(value))):
        default: Any = field.default
        item = getattr(value, field.name)
        if item != (default.factory() if hasattr(default, "factory") else default):
            found.append((f"{field.name}=", item))
    return found


def quoted(text: str | bytes) -> str:
    """A string in the quotes that the formatter prefers: double ones, unless they need more backslashes."""
    written = repr(text)
    prefix, _, inner = written[:-1].partition("'")
    if written[-1] == '"' or inner.count('"') > inner.count("\\'"):
        return written
    inner = inner.replace("\\'", "'").replace('"', '\\"')
    return f'{prefix}"{inner}"'
