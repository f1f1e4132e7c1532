"""`core types --rows`: the classes that statements need, written, corrected, and otherwise left as they are."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tests.support.command_line import run

from core.config.load import load_all
from core.program.proof import find_rows
from core.program.row_classes import with_rows

WRANGLER = 'main = "app.py"\n[[d1_databases]]\nbinding = "DB"\ndatabase_name = "d"\ndatabase_id = "d"\n'
MIGRATION = """\
CREATE TABLE songs (
  id INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  seconds REAL NOT NULL,
  live BOOLEAN NOT NULL DEFAULT 0,
  label TEXT,
  tags TEXT NOT NULL DEFAULT '[]',
  added DATETIME,
  cover BLOB
);
"""


class Shop:
    """A project whose `app.py` is the text of a test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "migrations").mkdir()
        (root / "migrations" / "0001.sql").write_text(MIGRATION)
        (root / "wrangler.toml").write_text(WRANGLER)

    def app(self, text: str, name: str = "app.py") -> None:
        (self.root / name).write_text(textwrap.dedent(text).lstrip("\n"))

    def update(self) -> list[str]:
        """Write what is needed, and return the problems."""
        rows = find_rows(load_all(self.root / "wrangler.toml"))
        for file, edits in rows.edits.items():
            file.write_text(with_rows(file.read_text(), edits))
        again = find_rows(load_all(self.root / "wrangler.toml"))
        assert again.edits == {}
        return [f"{Path(problem.file).name}:{problem.line}: {problem.message}" for problem in rows.problems]

    def shows(self, text: str, name: str = "app.py") -> None:
        assert (self.root / name).read_text() == textwrap.dedent(text).lstrip("\n")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path.resolve())


def test_a_class_that_is_nowhere_is_written_above_its_first_use(shop: Shop) -> None:
    shop.app('''
        """Songs."""

        import json

        from core import D1Database

        LIMIT = 3


        # The songs, all of them.
        async def songs(db: D1Database) -> list[Song]:
            return (await db.prepare("SELECT * FROM songs").all(Song)).results
    ''')
    assert shop.update() == []
    shop.shows('''
        """Songs."""

        import json

        import attrs
        from core import D1Database

        LIMIT = 3


        @attrs.frozen
        class Song:
            id: int
            title: str
            seconds: float
            live: bool
            label: str | None
            tags: str
            added: int | float | str | None
            cover: bytes | None


        # The songs, all of them.
        async def songs(db: D1Database) -> list[Song]:
            return (await db.prepare("SELECT * FROM songs").all(Song)).results
    ''')


def test_it_is_written_into_the_module_that_it_is_imported_from(shop: Shop) -> None:
    shop.app("""
        from core import D1Database
        from rows import Count


        async def count(db: D1Database) -> Count:
            return await db.prepare("SELECT count(*) AS n FROM songs").one(Count)
    """)
    shop.app('"""Classes of rows."""\n', "rows.py")
    assert shop.update() == []
    shop.shows('"""Classes of rows."""\n\nimport attrs\n\n\n@attrs.frozen\nclass Count:\n    n: int\n', "rows.py")


def test_a_class_of_one_line_keeps_its_fields(shop: Shop) -> None:
    query = 'async def f(db: D1Database): return await db.prepare("SELECT id, title FROM songs").all(Row)\n'
    head = "import attrs\nfrom core import D1Database\n@attrs.frozen\nclass Row:"
    shop.app(f"{head} id: int = attrs.field(repr=False)\n{query}")
    assert shop.update() == []
    shop.shows(f"{head}\n    id: int = attrs.field(repr=False)\n    title: str\n{query}")


CLASS = '''
    import datetime
    from typing import Annotated

    import attrs
    from core import D1Database


    @attrs.frozen
    class Song:
        """A song."""

        id: {id}  # its number
        # Shown in lists.
        title: {title} = attrs.field(validator=attrs.validators.min_len(1))
        tags: list[str]
        added: datetime.datetime | None
        """When it came."""
    {new}    label: {label} = "none"

        def longest(self) -> bool:
            return self.title == ""


    async def songs(db: D1Database) -> None:
        await db.prepare("SELECT id, title, label, tags, added, seconds FROM songs").all(Song)
        await db.batch((db.prepare("SELECT * FROM songs WHERE id = ?").as_(Song).bind(1),))
'''


def test_types_are_corrected_fields_added_and_everything_else_stays(shop: Shop) -> None:
    shop.app(textwrap.dedent(CLASS).format(id="str", title="int", label="Annotated[str, 1]", new=""))
    assert shop.update() == []
    new = "    seconds: float\n"
    shop.shows(textwrap.dedent(CLASS).format(id="int", title="str", label="Annotated[str, 1] | None", new=new))


@pytest.mark.parametrize(
    ("head", "body", "after"),
    [
        ("@attrs.frozen\nclass Row: ...", "", "@attrs.frozen\nclass Row:\n    title: str"),
        ("@attrs.frozen\nclass Row:\n    pass", "", "@attrs.frozen\nclass Row:\n    title: str"),
        ('@attrs.frozen\nclass Row:\n    """It."""', "", '@attrs.frozen\nclass Row:\n    """It."""\n\n    title: str'),
        ("class Row(TypedDict):\n    title: int", "", "class Row(TypedDict):\n    title: str"),
        ("@attrs.frozen\nclass Row:\n    title: 'int'", "", "@attrs.frozen\nclass Row:\n    title: str"),
        (
            "@attrs.frozen\nclass Row:\n    title: list[\n        int\n    ] | int",
            "",
            "@attrs.frozen\nclass Row:\n    title: list[\n        int\n    ] | int",
        ),
        (
            "@attrs.frozen(kw_only=True)\nclass Row:\n    more: int = 1",
            "",
            "@attrs.frozen(kw_only=True)\nclass Row:\n    more: int = 1\n    title: str",
        ),
        (
            "@attrs.frozen\nclass Base:\n    title: int\n\n\n@attrs.frozen\nclass Row(Base):\n    pass",
            "",
            "@attrs.frozen\nclass Base:\n    title: str\n\n\n@attrs.frozen\nclass Row(Base):\n    pass",
        ),
    ],
)
def test_every_form_of_a_class_is_brought_up_to_date(shop: Shop, head: str, body: str, after: str) -> None:
    start = "from typing import TypedDict\n\nimport attrs\nfrom core import D1Database\n\n\n"
    end = '\n\n\nasync def rows(db: D1Database) -> None:\n    await db.prepare("SELECT title FROM songs").all(Row)\n'
    shop.app(start + head + end)
    assert shop.update() == []
    shop.shows(start + after + end)


def test_none_goes_inside_the_quotes(shop: Shop) -> None:
    text = """
        import attrs
        from core import D1Database


        @attrs.frozen
        class Row:
            label: {label}


        async def rows(db: D1Database) -> None:
            await db.prepare("SELECT label FROM songs").all(Row)
    """
    shop.app(text.format(label='"str"'))
    assert shop.update() == []
    shop.shows(text.format(label='"str | None"'))


def test_a_class_has_the_columns_that_all_its_statements_give(shop: Shop) -> None:
    shop.app("""
        from core import D1Database


        async def rows(db: D1Database) -> None:
            await db.prepare("SELECT id, title FROM songs").all(Row)
            await db.prepare("SELECT label AS title, cover FROM songs").first(Row)
            await db.prepare("SELECT seconds AS title FROM songs").one(Row)
    """)
    assert shop.update() == []
    assert "class Row:\n    title: float | str | None\n\n" in (shop.root / "app.py").read_text()


def test_what_no_class_can_solve_is_reported_at_its_line(shop: Shop) -> None:
    shop.app("""
        import attrs
        from core import D1Database


        @attrs.frozen
        class Base:
            length: int = 0


        @attrs.frozen
        class Row(Base):
            titel: str


        async def rows(db: D1Database) -> None:
            await db.prepare("SELECT title FROM songs").all(Row)
            await db.prepare("SELECT count(*) FROM songs").all(Number)
            await db.prepare("SELECT nowt FROM songs").all(Nothing)
            await db.prepare("DELETE FROM songs").all(Gone)
    """)
    default = (
        "app.py:16: DB: Row lacks title: str, which cannot stand behind a field with a default of its base. "
        "Make the class kw_only, or write the field with a default"
    )
    assert sorted(shop.update()) == [
        default,
        "app.py:16: DB: Row.titel is not in the result. Did you mean title?",
        'app.py:17: DB: "count(*)" cannot be the name of a field of Number. Give the column another, with AS',
        "app.py:18: DB: no such column: nowt. songs has id, title, seconds, live, label, tags, added, cover",
        "app.py:19: DB: Gone is read from rows, but the statement gives none. Add RETURNING, or call run()",
    ]


APP = "from core import D1Database\n\n\nasync def f(db: D1Database) -> None:\n    {}\n"


def test_the_command_checks_writes_and_says_where(shop: Shop) -> None:
    shop.app(APP.format('await db.prepare("SELECT title FROM songs").all(Row)'))
    (shop.root / "app.py").write_bytes((shop.root / "app.py").read_bytes().replace(b"\n", b"\r\n"))
    before = (shop.root / "app.py").read_bytes()
    checked = run("types", "--rows", "--check", folder=shop.root)
    assert checked.returncode == 1
    assert "+    title: str\n" in checked.stdout
    assert checked.stdout.endswith("Run `core types --rows`.\n")
    assert (shop.root / "app.py").read_bytes() == before
    written = run("types", "--rows", folder=shop.root)
    assert (written.returncode, written.stdout, written.stderr) == (0, "app.py written.\n", "")
    text = (shop.root / "app.py").read_bytes()
    assert text.count(b"\n") == text.count(b"\r\n")
    again = run("types", "--rows", "--check", folder=shop.root)
    assert (again.returncode, again.stdout) == (0, "1 class of rows up to date.\n")


def test_paths_choose_the_queries_and_problems_are_at_the_new_lines(shop: Shop) -> None:
    shop.app("from one import f as f\nfrom two import f as g\n")
    shop.app(APP.format('await db.prepare("SELECT title, count(*) FROM songs").all(Row)'), "one.py")
    shop.app(APP.format('await db.prepare("SELECT title FROM songs").all(Row)'), "two.py")
    two = (shop.root / "two.py").read_text()
    done = run("types", "--rows", "one.py", folder=shop.root)
    assert (done.returncode, done.stdout) == (1, "one.py written.\n")
    place = next(n for n, line in enumerate((shop.root / "one.py").read_text().split("\n"), 1) if "count(*)" in line)
    assert done.stderr.startswith(f'one.py:{place}: error: DB: "count(*)" cannot be the name of a field of Row.')
    assert (shop.root / "two.py").read_text() == two


def test_a_wrong_command_says_so(shop: Shop) -> None:
    shop.app("")
    done = run("types", "--rows", "--output", "x.py", folder=shop.root)
    assert (done.returncode, done.stderr) == (
        2,
        "error: --output and --class are about Env. Leave them out, or leave --rows out\n",
    )
    assert run("types", "--rows", "nowhere", folder=shop.root).returncode == 2
    none = run("types", "--rows", folder=shop.root)
    assert (none.returncode, none.stdout) == (0, "No statement of the program is read as a class.\n")


def test_columns_with_a_dot_make_classes_in_a_class(shop: Shop) -> None:
    shop.app("""
        from core import D1Database

        LEFT = '''
            SELECT s.id, t.title AS "like_it.title", t.label AS "like_it.label", s.id AS "by.place.n", t.id AS "by.id"
            FROM songs s LEFT JOIN songs t ON t.id = s.label
        '''


        # Songs, and what is like them.
        async def songs(db: D1Database) -> None:
            await db.prepare(LEFT).all(Both)
            await db.prepare('SELECT title AS "in.x", label AS "of.label" FROM songs').all(Other)
    """)
    message = 'app.py:12: DB: "in.x" cannot be the name of a field of Other. Give the column another, with AS'
    assert shop.update() == [message]
    shop.shows("""
        import attrs
        from core import D1Database

        LEFT = '''
            SELECT s.id, t.title AS "like_it.title", t.label AS "like_it.label", s.id AS "by.place.n", t.id AS "by.id"
            FROM songs s LEFT JOIN songs t ON t.id = s.label
        '''


        @attrs.frozen
        class Place:
            n: int


        @attrs.frozen
        class By:
            place: Place
            id: int | None


        @attrs.frozen
        class LikeIt:
            title: str
            label: str | None


        @attrs.frozen
        class Of:
            label: str | None


        @attrs.frozen
        class Both:
            id: int
            like_it: LikeIt | None
            by: By


        @attrs.frozen
        class Other:
            of: Of


        # Songs, and what is like them.
        async def songs(db: D1Database) -> None:
            await db.prepare(LEFT).all(Both)
            await db.prepare('SELECT title AS "in.x", label AS "of.label" FROM songs').all(Other)
    """)


def test_classes_in_a_class_are_brought_up_to_date(shop: Shop) -> None:
    text = """
        import attrs
        from core import D1Database

        LEFT = '''
            SELECT t.title AS "like.title", t.label AS "like.label", t.title AS "by.name", 1 AS "no.x"
            FROM songs s LEFT JOIN songs t ON t.id = s.label
        '''


        @attrs.frozen
        class Like:
            title: {title}
        {more}

        {by}@attrs.frozen
        class Both:
            like: {like}
            no: int
        {field}

        async def songs(db: D1Database) -> None:
            await db.prepare(LEFT).all(Both)
    """
    shop.app(text.format(title="int", more="", by="", like="Like", field=""))
    message = 'app.py:22: DB: Both.no: int is no class, which the column "no.x" is for. Name it without the dot'
    assert shop.update() == [message]
    by = "@attrs.frozen\nclass By:\n    name: str\n\n\n".replace("\n", "\n        ")
    filled = text.format(
        title="str", more="    label: str | None\n", by=by, like="Like | None", field="    by: By | None\n"
    )
    shop.shows(filled.replace("\n        \n", "\n\n"))


def test_classes_at_the_end_of_a_module_come_behind_those_in_them(shop: Shop) -> None:
    shop.app("""
        from core import D1Database
        from rows import Song


        async def songs(db: D1Database) -> None:
            await db.prepare('SELECT id, title AS "of.title" FROM songs').all(Song)
    """)
    shop.app('"""Rows."""', "rows.py")
    assert shop.update() == []
    shop.shows(
        """
        '''Rows.'''

        import attrs


        @attrs.frozen
        class Of:
            title: str


        @attrs.frozen
        class Song:
            id: int
            of: Of
        """.replace("'''", '"""'),
        "rows.py",
    )


def test_fields_of_a_class_that_ends_where_a_new_one_is_put_stay_in_it(shop: Shop) -> None:
    shop.app("""
        import attrs
        from core import D1Database
        @attrs.frozen
        class Named:
            id: int
        async def songs(db: D1Database) -> None:
            await db.prepare("SELECT id, title FROM songs").all(Named)
            await db.prepare("SELECT id, label FROM songs").all(Labelled)
    """)
    assert shop.update() == []
    shop.shows("""
        import attrs
        from core import D1Database
        @attrs.frozen
        class Named:
            id: int
            title: str


        @attrs.frozen
        class Labelled:
            id: int
            label: str | None


        async def songs(db: D1Database) -> None:
            await db.prepare("SELECT id, title FROM songs").all(Named)
            await db.prepare("SELECT id, label FROM songs").all(Labelled)
    """)
