"""SQL that is put together: values that ought to be bound are told with the line to write, constants are not."""

from __future__ import annotations

import textwrap
from bisect import bisect_left
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.program.test_unread import HEAD, proved

TABLES = (
    "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);"
    "CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT NOT NULL, at INTEGER NOT NULL);"
)
IN_FRONT = """\
import enum
import json
import re
from datetime import datetime
from textwrap import dedent
from typing import Final, Literal, TypedDict, get_args

class Sort(str, enum.Enum):
    TITLE = "title"
    AT = "at"

class Way(enum.StrEnum):
    UP = "ASC"
    DOWN = "DSC"

Order = Literal["title", "at"]
COLUMNS: Final = {"newest": "at DESC", "title": "title"}
ALLOWED = frozenset(["title", "at"])
LISTED = "id, title"
STATEMENT = "SELECT id FROM users WHERE name = '%s'"

@attrs.frozen
class Filters:
    sort: Order
    name: str
    limit: int = 20

def column(name: str) -> str: ...
"""


def told(root: Path, *bodies: str) -> list[list[str]]:
    """The messages about each body of `f(req, env, db, name, ids, …)` in one program, without the database."""
    text = IN_FRONT
    ends: list[int] = []
    for number, body in enumerate(bodies):
        text += (
            f"async def f{number}(req: Request[Env], env: Env, db: D1Database, name: str, ids: list[int], "
            "names: list[str], number: int, sort: Order, kind: Sort, filters: Filters, other):\n"
        )
        text += textwrap.indent(textwrap.dedent(body), "    ") + "\n"
        ends.append((HEAD + text).count("\n"))
    proof = proved(root, text, tables=TABLES)
    assert proof.findings or proof.statements + len(proof.unread) == len(bodies)
    messages: list[list[str]] = [[] for _ in bodies]
    for finding in proof.findings:
        messages[bisect_left(ends, finding.line)].append(finding.message.removeprefix("DB: "))
    return messages


TOLD = [
    # the client's words, a parameter's, an answer's: in every way to put a text together
    (
        "db.prepare(f\"SELECT id FROM users WHERE name = '{req.query['name']}'\")",
        (
            'req.query["name"] is put into the text itself, where it can change what the statement does. Bind it: '
            'prepare("SELECT id FROM users WHERE name = ?").bind(req.query["name"])'
        ),
    ),
    (
        "db.prepare('SELECT id FROM users WHERE name = ' + name)",
        'prepare("SELECT id FROM users WHERE name = ?").bind(name)',
    ),
    ("db.prepare(STATEMENT % name)", 'prepare("SELECT id FROM users WHERE name = ?").bind(name)'),
    (
        "db.prepare('SELECT id FROM users WHERE name = %s AND email = %s' % (name, req.text()))",
        'Bind them: prepare("SELECT id FROM users WHERE name = ? AND email = ?").bind(name, req.text())',
    ),
    ("db.prepare('SELECT id FROM users WHERE name = %(n)s' % {'n': name})", ".bind(name)"),
    ("db.prepare('SELECT id FROM users WHERE name = {}'.format(name))", ".bind(name)"),
    ("db.prepare('SELECT id FROM users WHERE name = {n!r}'.format(n=name))", ".bind(name)"),
    ("db.prepare(f'SELECT id FROM users WHERE name = {name!r}')", ".bind(name)"),
    (
        "db.prepare(f\"SELECT id FROM users WHERE name LIKE '%{name}%' AND id > ?\").bind(1)",
        "prepare(\"SELECT id FROM users WHERE name LIKE '%' || ? || '%' AND id > ?\").bind(name, …)",
    ),
    (
        "db.prepare(f\"INSERT INTO users (id, name) VALUES (?1, '{name}')\").bind(1)",
        'prepare("INSERT INTO users (id, name) VALUES (?1, ?2)").bind(…, name)',
    ),
    (
        "db.prepare(f'SELECT {LISTED} FROM posts WHERE title = {name} ORDER BY {COLUMNS[sort]}')",
        'prepare(f"SELECT id, title FROM posts WHERE title = ? ORDER BY {COLUMNS[sort]}").bind(name)',
    ),
    (
        "db.prepare(f\"SELECT id FROM users WHERE name IN ({', '.join(names)})\")",
        'prepare("SELECT id FROM users WHERE name IN (SELECT value FROM json_each(?))").bind(json.dumps(names))',
    ),
    ("db.prepare(f\"SELECT id FROM users WHERE name IN ({', '.join(map(repr, names))})\")", ".bind(json.dumps(names))"),
    (
        "db.prepare(f\"INSERT INTO users VALUES ({', '.join(names)})\")",
        'prepare("INSERT INTO users VALUES (?, …)").bind(*names)',
    ),
    ("db.prepare(dedent(f'''\n    SELECT id FROM users WHERE name = {name}'''))", ".bind(name)"),
    ("text = f'SELECT id FROM users WHERE name = {name}'\ndb.prepare(text)", ".bind(name)"),
    ("where = f'name = {name}'\ndb.prepare(f'SELECT id FROM users WHERE {where}')", ".bind(name)"),
    (
        "sql = 'SELECT id FROM users'\nif name:\n    sql += f' WHERE name = {name}'\ndb.prepare(sql)",
        "Bind it: write ?, and .bind(name)",
    ),
    (
        "parts = []\nif name:\n    parts.append(f'name = {name}')\ndb.prepare('SELECT id FROM users WHERE ' + ' AND '.join(parts))",
        "parts is put into the text itself",
    ),
    ("column = 'id'\nif name:\n    column = name\ndb.prepare(f'SELECT {column} FROM users')", "Take name from"),
    ("sql = column('a')\nsql += f' WHERE name = {name}'\ndb.prepare(sql)", ".bind(name)"),
    ("word = name.strip().lower()\ndb.prepare(f'SELECT id FROM users WHERE name = {word}')", ".bind("),
    (
        "body = await req.json()\ndb.prepare(f'SELECT id FROM users WHERE name = {body[\"name\"]}')",
        '.bind(body["name"])',
    ),
    ("db.prepare(f'SELECT id FROM users WHERE name = {filters.name}')", ".bind(filters.name)"),
    ("f = req.query.parse(Filters)\ndb.prepare(f'SELECT id FROM users WHERE name = {f.name}')", ".bind(f.name)"),
    # whatever a value is, quotes are for values
    ("db.prepare(f\"SELECT id FROM posts WHERE at > '{datetime.now()}'\")", 'WHERE at > ?").bind(datetime.now())'),
    # names
    (
        "db.prepare(f'SELECT id FROM posts ORDER BY {req.query[\"sort\"]}')",
        'Take req.query["sort"] from a dict of constants, or let its type be a Literal: a name cannot be bound',
    ),
    ("db.prepare(f'SELECT count(*) FROM {name}')", "Take name from a dict of constants"),
    ("db.prepare(f'SELECT id FROM posts ORDER BY {name} LIMIT 5')", "Take name from"),
    ("db.prepare(f\"UPDATE posts SET {', '.join(f'{n} = ?' for n in names)}\")", "Take names from"),
    ("db.prepare(f\"INSERT INTO posts ({', '.join(names)}) VALUES (?)\")", "Take names from"),
    ("db.prepare('SELECT ' + ', '.join(v for k, v in {'a': name}.items()))", "Take {"),
    ("db.prepare('SELECT ' + ', '.join(b for a, b in zip(ALLOWED, names)))", "Take zip"),
    ("where = []\nwhere.append((name, 1))\ndb.prepare('SELECT ' + ', '.join(c for c, _ in where))", "Take where"),
    ("db.prepare('SELECT ' + ', '.join(k for k, v in (await req.json()).items()))", "Take (await req.json()).items()"),
]


def test_a_value_that_is_put_into_a_text_is_told(tmp_path: Path) -> None:
    for found, (body, message) in zip(told(tmp_path, *(body for body, _ in TOLD)), TOLD, strict=True):
        assert len(found) == 1, body
        assert message in found[0], body


TOGETHER = """\
joined = "JOIN posts p ON p.id = u.id" if name else ""
where = "p.title = ?" if name else "u.name = ?"
db.prepare(f"SELECT u.id FROM users u {joined} WHERE {where}").bind(1)
"""
SILENT = [
    # places for parameters
    "db.prepare(f\"SELECT id FROM users WHERE id IN ({', '.join('?' * len(ids))})\").bind(*ids)",
    "db.prepare('SELECT id FROM users WHERE id IN (' + ', '.join(['?'] * len(ids)) + ')').bind(*ids)",
    "db.prepare(f\"SELECT id FROM users WHERE id IN ({','.join('?' for _ in ids)})\").bind(*ids)",
    "db.prepare(f\"SELECT id FROM users WHERE id IN ({','.join(f'?{i + 2}' for i in range(len(ids)))})\").bind(*ids)",
    "db.prepare(f\"SELECT id FROM users WHERE id IN ({','.join(f'?{i}' for i, _ in enumerate(ids, 2))})\").bind(*ids)",
    "marks = ', '.join('?' for _ in names)\ndb.prepare(f'SELECT id FROM users WHERE name IN ({marks})').bind(*names)",
    "db.prepare('SELECT id FROM users WHERE id IN (%s)' % ','.join('?' * len(ids))).bind(*ids)",
    "db.prepare('SELECT id FROM users WHERE id IN ({})'.format(', '.join('?' * len(ids)))).bind(*ids)",
    "rows = ', '.join(['(?, ?)'] * len(ids))\ndb.prepare(f'INSERT INTO users (id, name) VALUES {rows}')",
    # names out of constants
    "db.prepare(f'SELECT id FROM posts ORDER BY {COLUMNS[name]}')",
    "db.prepare(f'SELECT id FROM posts ORDER BY {COLUMNS.get(name, \"title\")}')",
    "order = COLUMNS.get(req.query.get('sort', ''), 'title')\ndb.prepare(f'SELECT id FROM posts ORDER BY {order}')",
    "way = 'DESC' if req.query.get('desc') else 'ASC'\ndb.prepare(f'SELECT id FROM posts ORDER BY title {way}')",
    "db.prepare(f'SELECT id FROM posts ORDER BY {sort}')",
    "db.prepare(f'SELECT id FROM posts ORDER BY {kind.value}')",
    "db.prepare(f'SELECT id FROM posts ORDER BY {Sort(name).value}')",
    "db.prepare(f'SELECT id FROM posts ORDER BY {filters.sort} LIMIT {filters.limit}')",
    "f = req.query.parse(Filters)\ndb.prepare(f'SELECT id FROM posts ORDER BY {f.sort}')",
    "if name not in ALLOWED:\n    return\ndb.prepare(f'SELECT id FROM posts ORDER BY {name}')",
    "if req.query['sort'] not in get_args(Order):\n    return\ndb.prepare(f'SELECT id FROM posts ORDER BY {req.query[\"sort\"]}')",
    "if not re.fullmatch(r'[a-z]+', name):\n    return\ndb.prepare(f'SELECT id FROM posts ORDER BY {name}')",
    "for table in ('users', 'posts'):\n    db.prepare(f'DELETE FROM {table}')",
    "for key, order in COLUMNS.items():\n    db.prepare(f'SELECT {key!r} FROM posts ORDER BY {order}')",
    "db.prepare(f\"SELECT {', '.join(ALLOWED & set(names))} FROM posts\")",
    "db.prepare(f\"SELECT {', '.join(n for n in names if n in ALLOWED)} FROM posts\")",
    "db.prepare(f\"SELECT {', '.join(COLUMNS[n] for n in names)} FROM posts\")",
    # texts that grow by constants
    "sql = 'SELECT id FROM users'\nif name:\n    sql += ' WHERE name = ?'\nsql += ' LIMIT 5'\ndb.prepare(sql).bind(name)",
    "sql = 'SELECT id FROM users'\nsql = sql + ' LIMIT 5'\ndb.prepare(sql)",
    "parts: list[str] = []\nif name:\n    parts.append('name = ?')\ndb.prepare('SELECT id FROM users WHERE ' + ' AND '.join(parts))",
    "sets = {}\nif name:\n    sets['title = ?'] = name\ndb.prepare(f\"UPDATE posts SET {', '.join(sets)}\").bind(*sets.values())",
    "where = 'WHERE name = ?' if name else ''\ndb.prepare(f'SELECT id FROM users {where}')",
    # names beside values
    *(
        f"sets = {sets}\ndb.prepare(f\"UPDATE posts SET {{', '.join(f'{{k}} = ?' for k, v in sets.items())}}\")"
        for sets in ("{'title': name}", "dict(title=name)", "attrs.asdict(filters)", "{**attrs.asdict(filters)}")
    ),
    "sets = {'title': name}\nparts = []\nfor key, value in sets.items():\n    parts.append(f'{key} = ?')\ndb.prepare('UPDATE posts SET ' + ', '.join(parts))",
    "where = []\nif name:\n    where.append(('title = ?', name))\ndb.prepare('SELECT id FROM posts WHERE ' + ' AND '.join(c for c, _ in where))",
    "marks = ', '.join(f'?{n}' for n, one in enumerate(names, 1))\ndb.prepare(f'SELECT id FROM users WHERE name IN ({marks})')",
    "db.prepare('SELECT ' + ', '.join(a for a, b in zip(sorted(ALLOWED, key=len), names)))",
    # choices that go together
    TOGETHER,
    # numbers, what is configured, and what is not known
    "db.prepare(f'SELECT id FROM users LIMIT {number}')",
    "db.prepare(f'SELECT id FROM users LIMIT {int(name)} OFFSET {len(names) * 20}')",
    "db.prepare(f'SELECT id FROM users ORDER BY {column(name)}')",
    "db.prepare(f'SELECT id FROM users ORDER BY {sort!r:>9}')",
    "db.prepare('SELECT {0!r} FROM users WHERE {0:>9} > 1'.format(sort))",
    "db.prepare('SELECT %r, %-5s FROM users' % (sort, sort))",
    "db.prepare('SELECT {} FROM users }'.format(sort))",
    "orders = {'a': 'id'}\norders[name] = 'name'\ndb.prepare(f'SELECT id FROM users ORDER BY {orders[name]}')",
    "text = text + ' LIMIT 5'\ndb.prepare(text)",
    "db.prepare(name)",
    "db.prepare(column(name))",
    "if number:\n    name = 'SELECT id FROM users'\ndb.prepare(name)",
    "db.prepare(name if name else 'SELECT id FROM users')",
    "sql = name or 'SELECT id FROM users'\nsql += ' LIMIT 5'\ndb.prepare(sql)",
]


SOMEWHERE_IN_IT = [
    'order = ""\nfor a, b in zip(*[(n, n) for n in names]):\n    order += b',
    'one = ("id", "at")\ntwo = (name, name)\norder = ""\nfor a, b in (one, two):\n    order += a',
    'order = ""\nfor *rest, last in [("id", "at", name)]:\n    order += last',
    "order = max([], default=name)",
    'columns = ["id"]\ncolumns[0] = name\norder = ", ".join(columns)',
    'order = ", ".join({**json.loads(name), "id": 1})',
    'pairs = [("id", 1)]\npairs.append((name, 2))\norder = ", ".join(a for a, b in pairs)',
    'pairs = [("id", 1)]\npairs[0] = (name, 2)\norder = ", ".join(a for a, b in pairs)',
    'pairs = [(1, "id")]\npairs.extend([(2, name)])\norder = ", ".join(b for a, b in pairs)',
    'order = ", ".join(a for a, b in [("id", "at"), names])',
]
"""Texts in which a client's word is among constants."""


def test_a_word_among_constants_is_told(tmp_path: Path) -> None:
    bodies = [f'{each}\nawait db.prepare("SELECT id FROM posts ORDER BY " + order).all()' for each in SOMEWHERE_IN_IT]
    silent = [each for each, messages in zip(SOMEWHERE_IN_IT, told(tmp_path, *bodies), strict=True) if not messages]
    assert silent == []


def test_a_loop_over_nothing_is_read(tmp_path: Path) -> None:
    body = 'order = "id"\nfor a, b in ():\n    order += a\nawait db.prepare("SELECT id FROM posts ORDER BY " + order).all()'
    assert told(tmp_path, body) == [[]]


def test_a_text_of_constants_is_silent(tmp_path: Path) -> None:
    found = told(tmp_path, *SILENT)
    assert {body: messages for body, messages in zip(SILENT, found, strict=True) if messages} == {}


READ = [
    ("db.prepare(f'SELECT id FROM users ORDER BY {COLUMNS[name]}')", "no such column: at. users has"),
    ("db.prepare(f'SELECT id FROM users ORDER BY {COLUMNS.get(name, \"nme\")}')", "no such column: nme"),
    ("db.prepare(f'SELECT id FROM users ORDER BY {sort}')", "no such column: title"),
    ("db.prepare(f'SELECT id FROM users ORDER BY {kind.value}')", "no such column: title"),
    ("db.prepare(f'SELECT id FROM users ORDER BY {Sort(name).value}')", "no such column: title"),
    ("db.prepare(f'SELECT id FROM users ORDER BY id {Way(name)}')", 'near "DSC": syntax error'),
    (
        "way = 'DSC' if name else 'ASC'\ndb.prepare(f'SELECT id FROM users ORDER BY id {way}')",
        'near "DSC": syntax error',
    ),
    (
        "way = 'DSC' if name else 'ASC'\ndb.prepare(f'SELECT id FROM posts ORDER BY {COLUMNS[name]} {way}')",
        'near "DSC": syntax error',
    ),
    ("db.prepare({'a': 'SELECT id FROM users', 'b': 'SELECT nme FROM users'}[name])", "no such column: nme"),
    ("db.prepare(f'SELECT {sort} FROM users WHERE {sort} > 0 AND {sort} < 9')", "no such column: title"),
    (
        "db.prepare(f\"SELECT nme FROM users WHERE id IN ({', '.join('?' * len(ids))})\").bind(*ids)",
        "no such column: nme",
    ),
    ("db.prepare(f\"SELECT nme FROM users WHERE id IN ({', '.join('?' for _ in ids)})\")", "no such column: nme"),
    (
        "await db.prepare(f'SELECT title AS sort, id AS name FROM posts ORDER BY {sort}').all(Filters)",
        "Filters.name: str cannot hold",
    ),
]


def test_every_text_that_constants_make_is_read(tmp_path: Path) -> None:
    for found, (body, message) in zip(told(tmp_path, *(body for body, _ in READ)), READ, strict=True):
        assert any(message in text for text in found), body


def test_a_statement_with_any_number_of_places_takes_any_number_of_values(tmp_path: Path) -> None:
    body = "db.prepare(f\"SELECT id FROM users WHERE id IN ({', '.join('?' * len(ids))})\").bind(1, 2, 3)"
    assert told(tmp_path, body) == [[]]


KEPT = """\
from typing import ClassVar
class Rows:
    {given}
    async def all(self, db: D1Database):
        await db.prepare(f'SELECT * FROM {{self.table}}').all()
class Users(Rows):
    table = 'users'
"""


@pytest.mark.parametrize(
    "given", ["table = ''", "table: ClassVar[str]", "def __init__(self, table: str):\n        self.table = table"]
)
def test_what_an_object_keeps_is_not_known(given: str, tmp_path: Path) -> None:
    proof = proved(tmp_path, KEPT.format(given=given))
    assert (proof.findings, len(proof.unread)) == ([], 1)


def test_what_is_configured_is_not_known(tmp_path: Path) -> None:
    body = "async def f(db: D1Database, env: Env):\n    await db.prepare(f'SELECT * FROM {env.DB}').all()\n"
    proof = proved(tmp_path, body)
    assert (proof.findings, len(proof.unread)) == ([], 1)


EXPRESSIONS = st.recursive(
    st.sampled_from(
        ["a", "b", "name", "ids", "'SELECT '", "COLUMNS", "5", "req.query['x']", "other", "kind.value", "None"]
    ),
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} % {})".format, inner, inner),
        st.builds("f'{{{}!s}} {{({})}}'".format, inner, inner).filter(lambda text: text.count("'") == 2),
        st.builds("{}.format({})".format, inner, inner),
        st.builds("', '.join({})".format, inner),
        st.builds("[{} for a in {} if a in {}]".format, inner, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("{}.get({}, {})".format, inner, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("(b := {})".format, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("{} * {}".format, inner, inner),
    ),
    max_leaves=6,
)
STATEMENTS = st.one_of(
    st.builds("{} = {}".format, st.sampled_from(["a", "b", "a, b"]), EXPRESSIONS),
    st.builds("{} += {}".format, st.sampled_from(["a", "b"]), EXPRESSIONS),
    st.builds("for a in {}: pass".format, EXPRESSIONS),
    st.builds("if {} in {}: pass".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("a.append({})".format, EXPRESSIONS),
    st.builds("a[{}] = {}".format, EXPRESSIONS, EXPRESSIONS),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.lists(STATEMENTS, max_size=4), text=EXPRESSIONS)
def test_no_program_breaks_it(body: list[str], text: str, tmp_path: Path) -> None:
    told(tmp_path, "\n".join([*body, f"db.prepare({text})"]))
