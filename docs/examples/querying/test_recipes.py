"""The answers that the page on SQL promises; `core check` has nothing against any of its statements."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.config.load import load_all
from core.errors import CoreError, D1Error
from core.program.proof import find_rows, prove
from core.program.row_classes import with_rows
from core.testing import Client, FakeD1Database
from querying.recipes import (
    Change,
    Customer,
    Delivery,
    Env,
    app,
    change,
    deliver,
    delivery,
    ordered,
    page,
    search,
    sell,
    several,
    spending,
)

HERE = Path(__file__).parent


@pytest.fixture
def db() -> FakeD1Database:
    return FakeD1Database(migrations=HERE / "migrations")


async def place(db: FakeD1Database, *titles: str, customer: str = "ann") -> None:
    statement = db.prepare("INSERT INTO orders (customer, title, tags) VALUES (?, ?, json_array('new'))")
    await db.batch([statement.bind(customer, title) for title in titles])


def test_every_statement_is_proven() -> None:
    proof = prove(load_all(HERE / "wrangler.toml"))
    assert (proof.findings, proof.unread) == ([], [])


@pytest.mark.slow
def test_the_classes_of_rows_are_as_core_types_writes_them(tmp_path: Path) -> None:
    rows = find_rows(load_all(HERE / "wrangler.toml"))
    assert (rows.edits, rows.problems) == ({}, [])
    # The page shows a class that was written: without it, it is written again.
    project = tmp_path / "querying"
    shutil.copytree(HERE, project)
    recipes = project / "recipes.py"
    text = recipes.read_text()
    written = text[text.index("@attrs.frozen\nclass Spending") : text.index("SPENDING = ")]
    recipes.write_text(text.replace(written, ""))
    rows = find_rows(load_all(project / "wrangler.toml"))
    assert with_rows(recipes.read_text(), rows.edits[recipes]).count(written) == 1


async def test_an_order_is_there_or_answers_404(db: FakeD1Database) -> None:
    await place(db, "tea")
    client = Client(app, Env(DB=db))
    answer = await client.get("/orders/1")
    assert (await answer.json())["tags"] == ["new"]
    for no_order in ("2", "abc", "9007199254740993", "9" * 30):
        assert (await client.get(f"/orders/{no_order}")).status == 404


async def test_a_delivery_has_its_customer_where_there_is_one(db: FakeD1Database) -> None:
    await place(db, "tea", "coffee")
    await place(db, "salt", customer="bob")
    await db.prepare("INSERT INTO customers (name, email) VALUES ('ann', NULL)").run()
    assert await delivery(db, 1) == Delivery(1, "tea", Customer("ann", None, False))
    assert (await delivery(db, 2)).customer == Customer("ann", None, True)
    assert await delivery(db, 3) == Delivery(3, "salt", None)


async def test_an_order_that_is_chosen(db: FakeD1Database) -> None:
    await place(db, "tea", "coffee")
    assert [
        [found.id for found in await ordered(db, order)] for order in ("newest", "oldest", "; DROP TABLE orders")
    ] == [
        [2, 1],
        [1, 2],
        [1, 2],
    ]


async def test_conditions_that_may_be_absent(db: FakeD1Database) -> None:
    await place(db, "green tea", "coffee")
    await place(db, "tea", customer="bob")
    assert {found.title for found in await search(db, None, "tea")} == {"green tea", "tea"}
    assert [found.title for found in await search(db, "bob", None)] == ["tea"]
    assert len(await search(db, None, None, 2)) == 2


async def test_absent_is_not_null(db: FakeD1Database) -> None:
    await place(db, "tea")
    assert (await change(db, 1, Change(note="hot"))).note == "hot"
    changed = await change(db, 1, Change(title="coffee"))
    assert (changed.title, changed.note) == ("coffee", "hot")
    assert (await change(db, 1, Change(note=None))).note is None


async def test_a_list_and_an_upsert(db: FakeD1Database) -> None:
    await place(db, "a", "b", "c")
    assert [found.id for found in await several(db, [1, 3, 9])] == [1, 3]
    assert await several(db, []) == []
    assert await deliver(db, "tea", 2) == 2
    assert await deliver(db, "tea", 3) == 5


async def test_pages_follow_each_other(db: FakeD1Database) -> None:
    await place(db, *"abcde")
    first = await page(db, size=2)
    second = await page(db, first[-1], 2)
    assert [found.id for found in (*first, *second, *await page(db, second[-1], 2))] == [5, 4, 3, 2, 1]


# --8<-- [start:budget]
async def test_a_page_costs_what_it_shows(db: FakeD1Database) -> None:
    await place(db, *(f"order {number}" for number in range(100)))
    before = db.rows_read
    assert len(await page(db, size=20)) == 20
    assert db.rows_read - before <= 20


# --8<-- [end:budget]


async def test_a_sale_is_whole_or_not_at_all(db: FakeD1Database) -> None:
    await deliver(db, "tea", 1)
    sold, left = await sell(db, "ann", "tea")
    assert (sold.title, left.quantity) == ("tea", 0)
    with pytest.raises(D1Error) as failure:
        await sell(db, "bob", "tea")
    assert failure.value.constraint == "CHECK"
    assert await db.prepare("SELECT count(*) AS n FROM orders").first("n") == 1
    with pytest.raises(CoreError, match="Nothing of that kind"):
        await sell(db, "bob", "coffee")
    assert await db.prepare("SELECT count(*) AS n FROM orders").first("n") == 1


async def test_a_report_is_read_into_the_class_that_was_written(db: FakeD1Database) -> None:
    await place(db, "tea", "coffee")
    await place(db, "tea", customer="bob")
    assert [(row.customer, row.orders) for row in await spending(db)] == [("ann", 2), ("bob", 1)]
