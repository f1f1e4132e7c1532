"""A shop: orders in one transaction, idempotency keys, a queue, webhooks of the payment provider, problem details."""

import enum
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from datetime import date
from decimal import Decimal
from functools import wraps
from uuid import UUID, uuid5

import attrs
from attrs import validators as v

from core import (
    Bindings,
    CoreError,
    D1Database,
    D1Error,
    ExecutionContext,
    KVNamespace,
    MessageBatch,
    Next,
    Queue,
    Request,
    Response,
    Router,
    Secret,
    create_app,
)
from core.middleware.body_limit import body_limit
from core.middleware.cors import cors


@attrs.frozen
class Parcel:
    order: UUID
    express: bool = False


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    ANSWERS: KVNamespace
    SHIPPING: Queue[Parcel]
    WEBHOOK_SECRET: Secret
    ADMIN_KEY: Secret


class Status(enum.StrEnum):
    PLACED = "placed"
    PAID = "paid"
    SHIPPED = "shipped"
    CANCELLED = "cancelled"


# -- errors


class ShopError(Exception):
    status = 400
    code = "SHOP"


class OutOfStock(ShopError):
    def __init__(self, sku: str, left: int) -> None:
        super().__init__(f"{sku}: {left} left")
        self.sku, self.left = sku, left


class WrongState(ShopError):
    def __init__(self, status: Status, wanted: Status) -> None:
        self.now, self.wanted = status, wanted


app = create_app(Env, problem_details=True, method_not_allowed=True)
app.use(cors(origins=["https://shop.example"]))
app.use(body_limit(max_size=20_000))


@app.on_error(OutOfStock)
async def out_of_stock(err: OutOfStock, req: Request[Env], res: Response, next: Next) -> None:
    raise CoreError(409, "Out of stock", code="OUT_OF_STOCK", sku=err.sku, left=err.left)


@app.on_error(WrongState)
async def wrong_state(err: WrongState, req: Request[Env], res: Response, next: Next) -> None:
    raise CoreError(409, "Not now", code="WRONG_STATE", now=err.now, wanted=err.wanted)


# -- catalogue

SKU = r"[A-Z]{3}-[0-9]{3}"


@attrs.frozen
class Product:
    sku: str = attrs.field(validator=v.matches_re(SKU))
    name: str = attrs.field(validator=[v.min_len(1), v.max_len(80)])
    price: int = attrs.field(validator=v.gt(0))
    """In cents."""
    stock: int = attrs.field(default=0, validator=v.ge(0))


async def admin(req: Request[Env]) -> str:
    """Employees have a key."""
    given = req.header("X-Admin-Key") or ""
    if not hmac.compare_digest(given.encode(), req.env.ADMIN_KEY.reveal().encode()):
        raise CoreError(401, "Unauthorized")
    return "admin"


catalogue = app.Router()
stocked = catalogue.authenticated(admin)


@catalogue.get("/")
async def list_products(req: Request[Env], res: Response) -> None:
    words = req.query.get("q")
    rows = req.env.DB.prepare("SELECT * FROM products WHERE (?1 IS NULL OR name LIKE '%' || ?1 || '%') ORDER BY sku")
    products = (await rows.bind(words).all(Product)).results
    res.json({"products": products, "count": len(products), "cheapest": min((p.price for p in products), default=None)})


@catalogue.get("/:sku{[A-Z]+-[0-9]+}")
async def show_product(req: Request[Env], res: Response) -> None:
    product = await req.env.DB.prepare("SELECT * FROM products WHERE sku = ?").bind(req.params["sku"]).one(Product)
    price = Decimal(product.price) / 100
    res.json({"sku": product.sku, "name": product.name, "price": price, "in_stock": product.stock > 0})


@stocked.put("/:sku{[A-Z]+-[0-9]+}")
async def put_product(req: Request[Env, str], res: Response) -> None:
    product = await req.json(Product)
    if product.sku != req.params["sku"]:
        raise CoreError(400, "The SKU of the body is another", code="SKU", body=product.sku, path=req.params["sku"])
    before = await req.env.DB.prepare("SELECT 1 AS one FROM products WHERE sku = ?").bind(product.sku).first("one")
    await (
        req.env.DB.prepare(
            "INSERT INTO products (sku, name, price, stock) VALUES (?, ?, ?, ?) ON CONFLICT (sku) DO UPDATE "
            "SET name = excluded.name, price = excluded.price, stock = excluded.stock"
        )
        .bind(product.sku, product.name, product.price, product.stock)
        .run()
    )
    res.status(200 if before else 201).json(product)


@stocked.delete("/:sku{[A-Z]+-[0-9]+}")
async def delete_product(req: Request[Env, str], res: Response) -> None:
    done = await req.env.DB.prepare("DELETE FROM products WHERE sku = ?").bind(req.params["sku"]).run()
    res.status(204 if done.meta.changes else 404).send()


app.use("/products", catalogue)

# -- orders


@attrs.frozen
class Line:
    sku: str = attrs.field(validator=v.matches_re(SKU))
    quantity: int = attrs.field(validator=v.and_(v.ge(1), v.le(99)))


@attrs.frozen(kw_only=True)
class NewOrder:
    customer: str
    lines: list[Line] = attrs.field(validator=[v.min_len(1), v.max_len(20)])
    deliver_on: date | None = None


@attrs.frozen
class OrderRow:
    id: UUID
    customer: str
    status: Status
    total: int


@attrs.frozen
class Order:
    id: UUID
    customer: str
    status: Status
    total: int
    lines: list[Line]


Handler = Callable[[Request[Env], Response], Awaitable[None]]


def idempotent(handler: Handler) -> Handler:
    """The second request with one key is refused with what the first one made."""

    @wraps(handler)
    async def once(req: Request[Env], res: Response) -> None:
        key = req.header("Idempotency-Key")
        if key is None or not 8 <= len(key) <= 64:
            raise CoreError(400, "Idempotency-Key is missing", code="NO_KEY")
        if await req.env.ANSWERS.get(f"answer:{key}") is not None:
            raise CoreError(409, "This order was placed", code="REPEATED", key=key)
        await handler(req, res)
        await req.env.ANSWERS.put(f"answer:{key}", str(res.status_code), expiration_ttl=86_400)

    return once


async def order_of(req: Request[Env]) -> Order:
    try:
        id = UUID(req.params["id"])
    except ValueError:
        raise CoreError(404, "No such order") from None
    row = await req.env.DB.prepare("SELECT * FROM orders WHERE id = ?").bind(str(id)).first(OrderRow)
    if row is None:
        raise CoreError(404, "No such order")
    lines = await req.env.DB.prepare("SELECT sku, quantity FROM lines WHERE order_id = ?").bind(str(id)).all(Line)
    return Order(row.id, row.customer, row.status, row.total, list(lines.results))


orders: Router[Env] = Router()


@orders.post("/")
@idempotent
async def place_order(req: Request[Env], res: Response) -> None:
    """Place an order.

    All of it or nothing: what is out of stock refuses the order.
    """
    given = await req.json(NewOrder)
    db = req.env.DB
    total = 0
    for line in given.lines:
        product = await db.prepare("SELECT * FROM products WHERE sku = ?").bind(line.sku).first(Product)
        if product is None:
            raise CoreError(422, "No such product", code="NO_PRODUCT", sku=line.sku)
        if product.stock < line.quantity:
            raise OutOfStock(line.sku, product.stock)
        total += product.price * line.quantity
    id = uuid5(UUID(int=0), req.header("Idempotency-Key") or "")
    statements = [
        db.prepare("INSERT INTO orders (id, customer, total) VALUES (?, ?, ?)").bind(str(id), given.customer, total)
    ]
    for line in given.lines:
        statements.append(
            db.prepare("INSERT INTO lines (order_id, sku, quantity) VALUES (?, ?, ?)").bind(
                str(id), line.sku, line.quantity
            )
        )
        statements.append(
            db.prepare("UPDATE products SET stock = stock - ? WHERE sku = ?").bind(line.quantity, line.sku)
        )
    try:
        await db.batch(statements)
    except D1Error as error:
        if error.constraint == "CHECK":
            raise OutOfStock("?", 0) from error
        raise
    res.status(201).header("Location", f"/orders/{id}").json(
        Order(id, given.customer, Status.PLACED, total, given.lines)
    )


@orders.get("/:id")
async def show_order(req: Request[Env], res: Response) -> None:
    res.json(await order_of(req))


@orders.get("/")
async def list_orders(req: Request[Env], res: Response) -> None:
    customer = req.query.get("customer")
    if customer is None:
        raise CoreError(400, "Whose orders?", code="NO_CUSTOMER")
    rows = req.env.DB.prepare("SELECT * FROM orders WHERE customer = ? ORDER BY id")
    res.json([attrs.asdict(row) for row in (await rows.bind(customer).all(OrderRow)).results])


@orders.get("/:id/lines/:sku")
async def show_line(req: Request[Env], res: Response) -> None:
    order = await order_of(req)
    found = next((line for line in order.lines if line.sku == req.params["sku"]), None)
    res.json(found if found is not None else {"sku": req.params["sku"], "quantity": 0})


async def move(req: Request[Env], order: Order, wanted: Status, *allowed: Status) -> OrderRow:
    if order.status not in allowed:
        raise WrongState(order.status, wanted)
    moved = req.env.DB.prepare("UPDATE orders SET status = ? WHERE id = ? RETURNING *")
    return await moved.bind(wanted.value, str(order.id)).one(OrderRow)


@orders.post("/:id/cancel")
async def cancel(req: Request[Env], res: Response) -> None:
    res.json(await move(req, await order_of(req), Status.CANCELLED, Status.PLACED))


@orders.authenticated(admin).post("/:id/ship")
async def ship(req: Request[Env, str], res: Response) -> None:
    order = await order_of(req)
    row = await move(req, order, Status.SHIPPED, Status.PAID)
    await req.env.SHIPPING.send(Parcel(order.id, express="express" in req.query))
    res.status(202).json({"queued": True, "order": row})


@orders.get("/:id/invoice")
async def invoice(req: Request[Env], res: Response) -> None:
    order = await order_of(req)
    if order.status is Status.CANCELLED:
        raise CoreError(410, "Cancelled orders have no invoice")
    text = "\n".join(f"{line.quantity} x {line.sku}" for line in order.lines)
    res.header("Content-Disposition", "attachment").text(f"{text}\ntotal {order.total / 100:.2f}\n")


app.use("/orders", orders)

# -- webhooks


@attrs.frozen
class Paid:
    order: UUID
    amount: int
    type: str = attrs.field(default="paid", validator=v.in_(["paid", "refunded"]))


async def signed(req: Request[Env]) -> bytes:
    body = await req.bytes()
    wanted = hmac.new(req.env.WEBHOOK_SECRET.reveal().encode(), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(wanted, req.header("X-Signature") or ""):
        raise CoreError(401, "Wrong signature", code="SIGNATURE")
    return body


@app.post("/webhooks/payments")
async def payment(req: Request[Env], res: Response) -> None:
    await signed(req)
    event = await req.json(Paid)
    row = await req.env.DB.prepare("SELECT * FROM orders WHERE id = ?").bind(str(event.order)).first(OrderRow)
    if row is None:
        res.status(202).json({"handled": False, "reason": "unknown order"})
        return
    if row.total != event.amount:
        raise CoreError(422, "Another amount", code="AMOUNT", expected=row.total)
    await req.env.DB.prepare("UPDATE orders SET status = 'paid' WHERE id = ?").bind(str(event.order)).run()
    res.json({"handled": True, "type": event.type})


@app.post("/webhooks/raw")
async def raw(req: Request[Env], res: Response) -> None:
    event = json.loads(await signed(req))
    await req.env.ANSWERS.put("last", json.dumps(event))
    res.status(204).send()


@app.get("/webhooks/last")
async def last(req: Request[Env], res: Response) -> None:
    await admin(req)
    text = await req.env.ANSWERS.get("last")
    res.json(json.loads(text) if text else None)


@app.queue("shipping")
async def deliver(batch: MessageBatch[Parcel], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        await env.ANSWERS.put(f"shipped:{message.body.order}", "1")


@app.get("/health")
async def health(req: Request[Env], res: Response) -> None:
    await req.env.DB.prepare("SELECT 1 AS one").first("one")
    res.text("ok")
