"""What can go wrong at the edge: a handler that has the fault, `/broken/…`, and one that does not, `/repaired/…`."""

import attrs

from core import (
    Bindings,
    CoreError,
    D1Database,
    DurableObject,
    DurableObjectNamespace,
    ExecutionContext,
    KVNamespace,
    MessageBatch,
    Queue,
    R2Bucket,
    R2Conditional,
    Request,
    Response,
    ScheduledEvent,
    create_app,
)
from core.bindings.durable_object import AlarmInvocationInfo


@attrs.frozen
class Payment:
    order: int


class Counter(DurableObject["Env"]):
    """A number that only this object changes."""

    async def increment(self) -> int:
        number = await self.ctx.storage.get("number") or 0
        await self.ctx.storage.put("number", number + 1)
        return number + 1


# --8<-- [start:object]
class Shop(DurableObject["Env"]):
    """The stock of one article."""

    async def sell_broken(self) -> bool:
        stock = await self.ctx.storage.get("stock") or 0
        if await self.env.KV.get("closed") or stock == 0:
            return False
        await self.ctx.storage.put("stock", stock - 1)
        return True

    async def sell_repaired(self) -> bool:
        closed = await self.env.KV.get("closed")
        stock = await self.ctx.storage.get("stock") or 0
        if closed or stock == 0:
            return False
        await self.ctx.storage.put("stock", stock - 1)
        return True


# --8<-- [end:object]


# --8<-- [start:alarm]
class Reminder(DurableObject["Env"]):
    async def remind(self, version: str) -> None:
        await self.ctx.storage.put("version", version)
        await self.ctx.storage.set_alarm(1)

    async def alarm(self, info: AlarmInvocationInfo | None = None) -> None:
        if await self.ctx.storage.get("version") == "broken":
            await self.env.DB.prepare("INSERT INTO letters (person) VALUES ('ada')").run()
        else:
            await self.env.DB.prepare(
                "INSERT INTO letters (person) SELECT 'ada' WHERE NOT EXISTS (SELECT 1 FROM letters WHERE person = 'ada')"
            ).run()


# --8<-- [end:alarm]


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    DB: D1Database
    FILES: R2Bucket
    BROKEN: Queue[Payment]
    REPAIRED: Queue[Payment]
    COUNTERS: DurableObjectNamespace[Counter]
    SHOPS: DurableObjectNamespace[Shop]
    REMINDERS: DurableObjectNamespace[Reminder]


app = create_app(Env)


# --8<-- [start:lost-update-broken]
@app.post("/broken/visits")
async def visit(req: Request[Env], res: Response) -> None:
    visits = int(await req.env.KV.get("visits") or 0) + 1
    await req.env.KV.put("visits", str(visits))
    res.json({"visits": visits})


# --8<-- [end:lost-update-broken]
# --8<-- [start:lost-update-repaired]
@app.post("/repaired/visits")
async def visit_repaired(req: Request[Env], res: Response) -> None:
    res.json({"visits": await req.env.COUNTERS.get_by_name("visits").increment()})


# --8<-- [end:lost-update-repaired]


# --8<-- [start:insert-broken]
@app.post("/broken/names/:name")
async def take(req: Request[Env], res: Response) -> None:
    find = req.env.DB.prepare("SELECT 1 FROM names WHERE name = ?").bind(req.params["name"])
    if await find.first() is not None:
        raise CoreError(409, "Taken")
    await req.env.DB.prepare("INSERT INTO names (name) VALUES (?)").bind(req.params["name"]).run()
    res.status(201).send()


# --8<-- [end:insert-broken]
# --8<-- [start:insert-repaired]
@app.post("/repaired/names/:name")
async def take_repaired(req: Request[Env], res: Response) -> None:
    insert = "INSERT INTO names (name) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM names WHERE name = ?1)"
    result = await req.env.DB.prepare(insert).bind(req.params["name"]).run()
    if not result.meta.changes:
        raise CoreError(409, "Taken")
    res.status(201).send()


# --8<-- [end:insert-repaired]


@app.post("/:version/sales")
async def sell(req: Request[Env], res: Response) -> None:
    shop = req.env.SHOPS.get_by_name("books")
    res.json({"sold": await (shop.sell_broken() if req.params["version"] == "broken" else shop.sell_repaired())})


# --8<-- [start:duplicate-broken]
@app.queue("broken")
async def pay(batch: MessageBatch[Payment], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        if message.body.order < 0:
            raise ValueError("no such order")
        await env.DB.prepare("INSERT INTO payments (message) VALUES (?)").bind(message.id).run()


# --8<-- [end:duplicate-broken]
# --8<-- [start:duplicate-repaired]
@app.queue("repaired")
async def pay_repaired(batch: MessageBatch[Payment], env: Env, ctx: ExecutionContext) -> None:
    once = "INSERT INTO payments (message) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM payments WHERE message = ?1)"
    for message in batch.messages:
        if message.body.order < 0:
            message.retry()
            continue
        await env.DB.prepare(once).bind(message.id).run()
        message.ack()


# --8<-- [end:duplicate-repaired]


# --8<-- [start:cron-broken]
@app.scheduled("0 0 * * *")
async def bill(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None:
    await env.DB.prepare("INSERT INTO bills (day) VALUES (?)").bind(event.scheduled_time).run()


# --8<-- [end:cron-broken]
# --8<-- [start:cron-repaired]
@app.scheduled("0 1 * * *")
async def bill_repaired(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None:
    once = "INSERT INTO bills (day) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM bills WHERE day = ?1)"
    await env.DB.prepare(once).bind(event.scheduled_time).run()


# --8<-- [end:cron-repaired]


# --8<-- [start:logout-broken]
@app.post("/broken/logout")
async def log_out(req: Request[Env], res: Response) -> None:
    await req.env.KV.delete("session")
    res.status(204).send()


@app.get("/broken/me")
async def me(req: Request[Env], res: Response) -> None:
    if await req.env.KV.get("session") is None:
        raise CoreError(401, "Unauthorized")
    res.json({"name": "ada"})


# --8<-- [end:logout-broken]
# --8<-- [start:logout-repaired]
@app.post("/repaired/logout")
async def log_out_repaired(req: Request[Env], res: Response) -> None:
    await req.env.DB.prepare("DELETE FROM sessions").run()
    res.status(204).send()


@app.get("/repaired/me")
async def me_repaired(req: Request[Env], res: Response) -> None:
    if await req.env.DB.prepare("SELECT 1 FROM sessions").first() is None:
        raise CoreError(401, "Unauthorized")
    res.json({"name": "ada"})


# --8<-- [end:logout-repaired]


# --8<-- [start:negative]
@app.put("/:version/links/:name")
async def shorten(req: Request[Env], res: Response) -> None:
    name = req.params["name"]
    await req.env.DB.prepare("INSERT INTO links (name, target) VALUES (?, 'https://example.com')").bind(name).run()
    await req.env.KV.put(f"link:{name}", "https://example.com")
    res.status(201).send()


@app.get("/broken/links/:name")
async def follow(req: Request[Env], res: Response) -> None:
    target = await req.env.KV.get(f"link:{req.params['name']}")
    if target is None:
        raise CoreError(404, "Not Found")
    res.json({"target": target})


# --8<-- [end:negative]
# --8<-- [start:negative-repaired]
@app.get("/repaired/links/:name")
async def follow_repaired(req: Request[Env], res: Response) -> None:
    name = req.params["name"]
    target: object = await req.env.KV.get(f"link:{name}")
    if target is None:
        target = await req.env.DB.prepare("SELECT target FROM links WHERE name = ?").bind(name).first("target")
    if target is None:
        raise CoreError(404, "Not Found")
    res.json({"target": target})


# --8<-- [end:negative-repaired]


# --8<-- [start:etag-broken]
@app.post("/broken/lines")
async def append(req: Request[Env], res: Response) -> None:
    found = await req.env.FILES.get("lines")
    text = "" if found is None else await found.text()
    await req.env.FILES.put("lines", text + "x")
    res.status(201).send()


# --8<-- [end:etag-broken]
# --8<-- [start:etag-repaired]
@app.post("/repaired/lines")
async def append_repaired(req: Request[Env], res: Response) -> None:
    put = None
    while put is None:
        found = await req.env.FILES.get("lines")
        text = "" if found is None else await found.text()
        same = R2Conditional(etag_does_not_match="*") if found is None else R2Conditional(etag_matches=found.etag)
        put = await req.env.FILES.put("lines", text + "x", only_if=same)
    res.status(201).send()


# --8<-- [end:etag-repaired]


# --8<-- [start:cut-off-broken]
@app.post("/broken/orders")
async def order(req: Request[Env], res: Response) -> None:
    req.ctx.wait_until(req.env.KV.put("order", "1 book"))
    res.status(201).send()


# --8<-- [end:cut-off-broken]
# --8<-- [start:cut-off-repaired]
@app.post("/repaired/orders")
async def order_repaired(req: Request[Env], res: Response) -> None:
    await req.env.KV.put("order", "1 book")
    res.status(201).send()


# --8<-- [end:cut-off-repaired]


# --8<-- [start:burst-broken]
@app.post("/broken/codes")
async def send_code(req: Request[Env], res: Response) -> None:
    sent = int(await req.env.KV.get("codes") or 0)
    if sent >= 2:
        raise CoreError(429, "Too Many Requests")
    await req.env.KV.put("codes", str(sent + 1))
    await req.env.BROKEN.send(Payment(1))
    res.status(202).send()


# --8<-- [end:burst-broken]
# --8<-- [start:burst-repaired]
@app.post("/repaired/codes")
async def send_code_repaired(req: Request[Env], res: Response) -> None:
    if await req.env.COUNTERS.get_by_name("codes").increment() > 2:
        raise CoreError(429, "Too Many Requests")
    await req.env.REPAIRED.send(Payment(1))
    res.status(202).send()


# --8<-- [end:burst-repaired]
