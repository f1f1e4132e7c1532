"""Recipes of SQL for D1.

`core check` and the mypy plugin prove each statement against the migrations beside this file.
"""

from __future__ import annotations

import json

import attrs

from core import UNSET, Bindings, CoreError, D1Database, Request, Response, Unset, create_app


@attrs.frozen
class Env(Bindings):
    DB: D1Database


# --8<-- [start:rows]
@attrs.frozen
class Order:
    id: int
    customer: str
    title: str
    note: str | None
    tags: list[str]  # JSON text in the database
    placed_at: str


async def order(db: D1Database, id: int) -> Order:
    return await db.prepare("SELECT * FROM orders WHERE id = ?").bind(id).one(Order)


# --8<-- [end:rows]


# --8<-- [start:joined]
@attrs.frozen
class Customer:
    name: str
    email: str | None
    regular: bool | None


@attrs.frozen
class Delivery:
    id: int
    title: str
    customer: Customer | None


DELIVERY = """\
SELECT o.id, o.title, c.name AS "customer.name", c.email AS "customer.email",
    CASE WHEN c.name IS NOT NULL THEN EXISTS (SELECT 1 FROM orders WHERE customer = c.name AND id < o.id) END
        AS "customer.regular"
FROM orders o LEFT JOIN customers c ON c.name = o.customer
WHERE o.id = ?
"""


async def delivery(db: D1Database, id: int) -> Delivery:
    return await db.prepare(DELIVERY).bind(id).one(Delivery)


# --8<-- [end:joined]


# --8<-- [start:where]
FILTERED = """\
SELECT * FROM orders
WHERE (?1 IS NULL OR customer = ?1) AND (?2 IS NULL OR title LIKE '%' || ?2 || '%')
ORDER BY placed_at DESC, id DESC LIMIT ?3 -- core: scan ok, it goes along an index and stops at LIMIT
"""


async def search(db: D1Database, customer: str | None, words: str | None, limit: int = 20) -> list[Order]:
    return (await db.prepare(FILTERED).bind(customer, words, limit).all(Order)).results


# --8<-- [end:where]


# --8<-- [start:set]
@attrs.frozen
class Change:
    title: str | Unset = UNSET
    note: str | Unset | None = UNSET


async def change(db: D1Database, id: int, given: Change) -> Order:
    statement = db.prepare("UPDATE orders SET title = ?, note = ? WHERE id = ? RETURNING *")
    return await statement.bind(given.title, given.note, id).one(Order)


# --8<-- [end:set]


# --8<-- [start:in]
async def several(db: D1Database, ids: list[int]) -> list[Order]:
    chosen = db.prepare("SELECT * FROM orders WHERE id IN (SELECT value FROM json_each(?))")
    return (await chosen.bind(json.dumps(ids)).all(Order)).results


# --8<-- [end:in]


# --8<-- [start:chosen]
ORDERS = {"newest": "placed_at DESC, id DESC", "oldest": "placed_at, id"}


async def ordered(db: D1Database, order: str) -> list[Order]:
    chosen = ORDERS.get(order, "id")
    return (await db.prepare(f"SELECT * FROM orders ORDER BY {chosen} LIMIT 20").all(Order)).results


# --8<-- [end:chosen]


# --8<-- [start:upsert]
async def deliver(db: D1Database, sku: str, quantity: int) -> int:
    added = db.prepare(
        "INSERT INTO stock (sku, quantity) VALUES (?, ?) "
        "ON CONFLICT (sku) DO UPDATE SET quantity = quantity + excluded.quantity RETURNING quantity"
    )
    total: int = await added.bind(sku, quantity).one("quantity")
    return total


# --8<-- [end:upsert]


# --8<-- [start:pages]
PAGE = "SELECT * FROM orders WHERE (placed_at, id) < (?, ?) ORDER BY placed_at DESC, id DESC LIMIT ?"
FIRST_PAGE = "SELECT * FROM orders ORDER BY placed_at DESC, id DESC LIMIT ?"


async def page(db: D1Database, after: Order | None = None, size: int = 20) -> list[Order]:
    if after is None:
        return (await db.prepare(FIRST_PAGE).bind(size).all(Order)).results
    return (await db.prepare(PAGE).bind(after.placed_at, after.id, size).all(Order)).results


# --8<-- [end:pages]


# --8<-- [start:transaction]
@attrs.frozen
class Left:
    quantity: int


async def sell(db: D1Database, customer: str, sku: str) -> tuple[Order, Left]:
    taken = db.prepare("UPDATE stock SET quantity = quantity - 1 WHERE sku = ? RETURNING quantity").as_(Left)
    placed = db.prepare("INSERT INTO orders (customer, title) SELECT ?, sku FROM stock WHERE sku = ? RETURNING *").as_(
        Order
    )
    left, orders = await db.batch((taken.bind(sku), placed.bind(customer, sku)))
    if not left.results:
        raise CoreError(404, "Nothing of that kind")
    return orders.results[0], left.results[0]


# --8<-- [end:transaction]


# --8<-- [start:written]
@attrs.frozen
class Spending:
    customer: str
    orders: int
    last_at: str


SPENDING = """\
SELECT customer, count(*) AS orders, max(placed_at) AS last_at
FROM orders GROUP BY customer ORDER BY orders DESC -- core: scan ok, a report of every night
"""


async def spending(db: D1Database) -> list[Spending]:
    return (await db.prepare(SPENDING).all(Spending)).results


# --8<-- [end:written]

app = create_app(Env)


@attrs.frozen
class Wanted:
    id: int


@app.get("/orders/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json(attrs.asdict(await order(req.env.DB, req.params.parse(Wanted).id)))
