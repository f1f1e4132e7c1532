"""A class of what a client sends, with rules of its own."""

from datetime import date
from typing import Literal

import attrs
from attrs.validators import and_, ge, le, matches_re, max_len, min_len

from core import Bindings, D1Database, Request, Response, ValidationError, conflict, create_app


@attrs.frozen
class Env(Bindings):
    DB: D1Database


app = create_app(Env)


# --8<-- [start:body]
@attrs.frozen
class Item:
    sku: str = attrs.field(validator=matches_re(r"[A-Z]{3}-\d{4}"))
    quantity: int = attrs.field(validator=and_(ge(1), le(99)))


@attrs.frozen
class Order:
    items: list[Item] = attrs.field(validator=and_(min_len(1), max_len(50)))
    deliver_on: date
    express: bool = False


@app.post("/orders")
async def create_order(req: Request, res: Response) -> None:
    order = await req.json(Order)
    res.status(201).json({"items": len(order.items), "deliver_on": order.deliver_on})


# --8<-- [end:body]


# --8<-- [start:query]
@attrs.frozen
class Search:
    q: str
    limit: int = attrs.field(default=20, validator=and_(ge(1), le(100)))
    sort: Literal["name", "date"] = "name"


@app.get("/orders")
async def search(req: Request, res: Response) -> None:
    asked = req.query.parse(Search)
    res.json({"q": asked.q, "limit": asked.limit, "sort": asked.sort})


# --8<-- [end:query]


# --8<-- [start:own]
@app.post("/bookings")
async def book(req: Request, res: Response) -> None:
    order = await req.json(Order)
    if order.express and len(order.items) > 5:
        raise ValidationError([{"path": "express", "message": "takes five items at most"}])
    res.status(204).send()


# --8<-- [end:own]


# --8<-- [start:envelope]
@app.post("/parcels")
async def send_parcel(req: Request, res: Response) -> None:
    order = await req.json(Order, key="order")  # {"order": {"items": …}}
    res.status(201).json({"parcel": {"items": len(order.items)}})


# --8<-- [end:envelope]


# --8<-- [start:conflict]
@attrs.frozen
class Reader:
    name: str
    email: str


@app.post("/readers")
async def sign_up(req: Request[Env], res: Response) -> None:
    new = await req.json(Reader)
    insert = req.env.DB.prepare("INSERT INTO readers (name, email) VALUES (?, ?) RETURNING id")
    with conflict("email"):
        reader_id = await insert.bind(new.name, new.email).one("id")
    res.status(201).json({"id": reader_id})


# --8<-- [end:conflict]
