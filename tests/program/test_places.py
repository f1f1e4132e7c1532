"""The line at which a character of a string stands, in every form that Python writes strings in."""

from __future__ import annotations

import ast
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.program.test_unread import HEAD, proved

from core.program.databases import place_in
from core.program.modules import Modules

ESCAPES = {
    "\\n": "\n",
    "\\t": "\t",
    "\\x41": "A",
    "\\u00e9": "é",
    "\\'": "'",
    '\\"': '"',
    "\\101": "A",
    "\\\\": "\\",
    "\\\n": "",
}
PLAIN = st.sampled_from([*"ab é#?=(", "SELECT ", "\n", "\n  "])


@st.composite
def literals(draw: st.DrawFn) -> tuple[str, list[int]]:
    """A literal, and the number of lines before each character of its value."""
    kind = draw(st.sampled_from(["", "r", "f", "rf", "u"]))
    quote = draw(st.sampled_from(['"', "'", '"""', "'''"]))
    source = f"{kind}{quote}"
    lines: list[int] = []
    for _ in range(draw(st.integers(0, 8))):
        choice = draw(st.sampled_from(["plain", "escape", "hole", "brace"]))
        text = value = draw(PLAIN)
        if choice == "escape" and "r" not in kind:
            text, value = draw(st.sampled_from(sorted(ESCAPES.items())))
        elif choice == "hole" and "f" in kind:
            text, value = "{NAMED}", "x, y"
        elif choice == "brace" and "f" in kind:
            text, value = "{{", "{"
        elif "\n" in text and len(quote) == 1:
            continue
        lines += [source.count("\n") + value[:at].count("\n") * (text == value) for at in range(len(value))]
        source += text
    return f"{source}{quote}", lines


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=literals(),
    others=st.lists(
        st.tuples(st.sampled_from([" ", "\n", "  # 'a' \"b\"\n", " \\\n", "\n+ ", " + "]), literals()), max_size=3
    ),
)
def test_each_character_stands_at_its_line(
    first: tuple[str, list[int]], others: list[tuple[str, tuple[str, list[int]]]], tmp_path: Path
) -> None:
    source, lines = first
    for between, (text, more) in others:
        source += between
        lines = [*lines, *(source.count("\n") + line for line in more)]
        source += text
    written = f"NAMED = 'x, y'\nTEXT = (\n{source}\n)\n"
    (tmp_path / "texts.py").write_text(written)
    modules = Modules([tmp_path], {})
    made = modules.add(tmp_path / "texts.py")
    assert made is not None
    assignment = made.tree.body[1]
    assert isinstance(assignment, ast.Assign)
    assert len(modules.string(assignment.value, made.scope) or "") == len(lines)
    if source.count("\n") == 0:
        return
    for at, line in enumerate(lines):
        place = place_in(modules, assignment.value, made.scope, at, written.splitlines(keepends=True))
        assert place is not None
        assert place.lineno == 3 + line


LONG = '''\
NAMES = "id, nmae"
TEXT = """
SELECT id
FROM usrs
"""  # {}
async def f(db: D1Database):
    await db.prepare(
        "SELECT id "  # the key
        "FROM usrs"
    ).all()
    await db.prepare(f"""
        SELECT id
        FROM users WHERE {{NAMES}} > 1
    """).all()
    await db.prepare(TEXT).all()
    await db.prepare("SELECT id " +
        "FROM " + TABLE).all()
TABLE = "usrs"
'''


def test_a_mistake_is_told_at_its_line_of_the_text(tmp_path: Path) -> None:
    found = proved(tmp_path, LONG.format("")).findings
    first = HEAD.count("\n")
    assert [(one.line - first, one.message.partition(".")[0]) for one in found] == [
        (4, "DB: no such table: usrs"),
        (9, "DB: no such table: usrs"),
        (13, 'DB: near ",": syntax error'),
        (17, "DB: no such table: usrs"),
    ]


def test_a_comment_behind_a_text_switches_its_findings_off(tmp_path: Path) -> None:
    found = proved(tmp_path, LONG.format("type: ignore[core-sql]")).findings
    assert [one.line - HEAD.count("\n") for one in found] == [9, 13, 17]
