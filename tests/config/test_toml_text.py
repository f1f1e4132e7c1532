"""Every key that tomllib finds has its line, and no other key has one."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.key_paths import paths

from core.config.toml_text import LineIndex, toml_lines

DOCUMENT = '''\
name = "x" # a comment with [brackets] and = signs
"quoted key" = 1
'it''.b = 2
a.b.c = [1, 2,
  # between
  [3, "]"], { x = 1, y.z = "}" },
]

[vars]
TEXT = """
first = "not a key"
[nor.a.table]
"""
RAW = \'\'\'it's "''\'\'\'
END = """ends in quotes"""""
BACK = "a\\\\"
DATE = 1979-05-27 07:32:00

[[kv_namespaces]]
binding = "A"

[[kv_namespaces]]
binding = "B"
[kv_namespaces.more]
x = 1
[[kv_namespaces.many]]
y = 1
[[kv_namespaces.many]]
y = 2

[env.staging.vars]
A = ""
[ env . "pro duction" ]
name = "p"
[env]
other = 1'''.replace("'it''.b", "'it'.b")


def test_keys_stand_on_their_lines() -> None:
    lines = toml_lines(DOCUMENT)
    source = DOCUMENT.split("\n")
    assert set(lines) == paths(tomllib.loads(DOCUMENT))
    assert source[lines["name",] - 1].startswith("name =")
    assert lines["a",] == lines["a", "b", "c"] == 4
    assert lines["a", "b", "c", 1] == 4
    assert lines["a", "b", "c", 2, 1] == lines["a", "b", "c", 3, "y", "z"] == 6
    assert source[lines["vars", "RAW"] - 1].startswith("RAW")
    assert source[lines["vars", "END"] - 1].startswith("END")
    assert source[lines["vars", "DATE"] - 1].startswith("DATE")
    assert lines["kv_namespaces",] == lines["kv_namespaces", 0]
    assert lines["kv_namespaces", 1, "binding"] == lines["kv_namespaces", 1] + 1
    assert source[lines["kv_namespaces", 1, "many", 1, "y"] - 1] == "y = 2"
    assert source[lines["env",] - 1] == "[env.staging.vars]"
    assert source[lines["env", "pro duction"] - 1] == '[ env . "pro duction" ]'
    assert source[lines["env", "other"] - 1] == "other = 1"


def test_windows_line_ends_count_once() -> None:
    assert toml_lines('a = 1\r\n\r\n[b]\r\nc = """x\r\ny"""\r\nd = 2\r\n') == {
        ("a",): 1,
        ("b",): 3,
        ("b", "c"): 4,
        ("b", "d"): 6,
    }


def test_an_empty_document_has_no_lines() -> None:
    assert toml_lines("") == {}
    assert toml_lines("# only a comment") == {}


def test_text_that_is_no_toml_is_refused_without_reading_on_for_ever() -> None:
    with pytest.raises((ValueError, IndexError)):
        toml_lines("=")


keys = st.one_of(
    st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6),
)


def quoted(text: str) -> str:
    escaped = "".join(f"\\U{ord(c):08X}" if c in '"\\' or ord(c) < 32 or ord(c) == 127 else c for c in text)
    return f'"{escaped}"'


def key_text(key: str) -> st.SearchStrategy[str]:
    spellings = [quoted(key)]
    if key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key):
        spellings.append(key)
    if "'" not in key and all(ord(c) >= 32 and ord(c) != 127 for c in key):
        spellings.append(f"'{key}'")
    return st.sampled_from(spellings)


blank = st.sampled_from(["", " ", "\t", "  "])
newline = st.sampled_from(["\n", "\r\n", "\n\n", " # comment ] } = \" '\n", "\n  \t\n"])
scalar = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.booleans().map(lambda b: "true" if b else "false"),
    st.sampled_from(["1.5", "-inf", "nan", "0x1F", "1979-05-27T07:32:00Z", "07:32:00", "'raw ] # , }'", '"x # ] }"']),
    st.text(max_size=8).map(lambda t: quoted(t.encode("utf-8", "ignore").decode())),
    st.sampled_from(
        ['"""\n[x]\ny = 1\n"""', "'''\n[[x]]\n'''", '"""a""\\""""', '""""quoted" end"""""', "''''''", '""']
    ),
)


@st.composite
def value(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0:
        return draw(scalar)
    match draw(st.integers(0, 2)):
        case 0:
            return draw(scalar)
        case 1:
            gap = st.one_of(blank, newline)
            items = [draw(gap) + draw(value(depth - 1)) + draw(gap) for _ in range(draw(st.integers(0, 3)))]
            return f"[{','.join(items)}{draw(st.sampled_from(['', chr(10)]))}]"
        case _:
            names = draw(st.lists(keys, max_size=3, unique=True))
            return "{" + ", ".join(f"{draw(key_text(name))} = {draw(value(depth - 1))}" for name in names) + "}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Documents by chance: some break a rule of TOML, and are left out by the test."""
    names = draw(st.lists(keys, min_size=1, max_size=5))
    parts: list[str] = []
    for _ in range(draw(st.integers(0, 8))):
        dotted = ".".join(
            draw(blank) + draw(key_text(draw(st.sampled_from(names)))) + draw(blank)
            for _ in range(draw(st.integers(1, 3)))
        )
        match draw(st.integers(0, 3)):
            case 0:
                parts.append(f"[{dotted}]")
            case 1:
                parts.append(f"[[{dotted}]]")
            case _:
                parts.append(f"{dotted}={draw(blank)}{draw(value())}")
        parts.append(draw(newline))
    return draw(st.sampled_from(["", "\n", "# first\n"])) + "".join(parts)


@pytest.mark.slow
@given(documents())
def test_every_key_of_any_document_that_tomllib_takes_has_its_line(document: str) -> None:
    try:
        data = tomllib.loads(document)
    except tomllib.TOMLDecodeError:
        return
    lines = toml_lines(document)
    assert set(lines) == paths(data)
    normal = document.replace("\r\n", "\n")
    assert all(1 <= line <= normal.count("\n") + 1 for line in lines.values())


@given(st.lists(st.sampled_from(["k = 1", "", "# c", "[t]", 's = """\n\n"""'])))
def test_a_key_is_found_on_the_line_it_was_written_on(rest: list[str]) -> None:
    counter = iter(range(1000))
    body = [
        line.replace("k", f"k{next(counter)}")
        .replace("[t]", f"[t{next(counter)}]")
        .replace("s", f"s{next(counter)}", 1)
        if line[:1] in "k[s"
        else line
        for line in rest
    ]
    document = "\n".join([*body, "", "[last]", "wanted = 1"])
    lines = toml_lines(document)
    assert document.split("\n")[lines["last", "wanted"] - 1] == "wanted = 1"


@given(st.text(alphabet="ab\n"), st.data())
def test_offsets_become_lines_and_columns(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    index = LineIndex(text)
    before = text[:offset]
    assert index.line(offset) == before.count("\n") + 1
    assert index.column(offset) == offset - (before.rfind("\n") + 1) + 1
