"""An application with something of everything that a node keeps, which it can put down and tell again."""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime
from typing import Any

import attrs

from core import (
    Bindings,
    D1Database,
    DurableObjectNamespace,
    ExecutionContext,
    KVNamespace,
    Queue,
    R2Bucket,
    Request,
    Response,
    create_app,
)
from core.bindings.durable_object import AlarmInvocationInfo, DurableObject
from core.bindings.queue import MessageBatch

LARGE = "gro\u00df \U0001f600 " * 40_000
DATE = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
VALUES: dict[str, Any] = {
    "none": None,
    "numbers": [0, 1, -1, 2**29, 2**30, -(2**31), 2**53 - 1, 0.5, float("inf"), True, False],
    "texts": ["", "caf\u00e9", "\u20ac", "a\0b", "\U0001f600"],
    "bytes": b"\x00\xff" * 3,
    "date": DATE,
    "object": {"1": [[]], "a": [{}], "__proto__": 1},
    "set": {1, 2},
    "map": {1: "one"},
}
SCHEMA = """\
CREATE TABLE authors (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE COLLATE NOCASE)
CREATE TABLE "odd "" name" (a, b BLOB, up INTEGER REFERENCES "odd "" name"(rowid_), rowid_ INTEGER UNIQUE, s AS (a || 'x'))
CREATE TABLE books (author INTEGER NOT NULL REFERENCES authors(id), at INTEGER, note TEXT, PRIMARY KEY (author, at)) WITHOUT ROWID
CREATE TABLE first (id INTEGER PRIMARY KEY, second INTEGER NOT NULL REFERENCES second(id), note TEXT)
CREATE TABLE second (id INTEGER PRIMARY KEY, first INTEGER NOT NULL REFERENCES first(id))
CREATE TABLE strict (i INTEGER, r REAL, t TEXT, b BLOB, a ANY) STRICT
CREATE TABLE log (what TEXT)
CREATE INDEX later ON books (at) WHERE note IS NOT NULL
CREATE VIEW named AS SELECT name, count(*) AS n FROM authors JOIN books ON author = id GROUP BY id
CREATE TRIGGER noted AFTER INSERT ON books BEGIN INSERT INTO log VALUES ('book; ' || new.at); END
CREATE VIRTUAL TABLE found USING fts5(body)"""


class Box(DurableObject["Env"]):
    """Keeps values, rows and an alarm."""

    async def fill(self, number: int) -> None:
        storage = self.ctx.storage
        await storage.put("number", number)
        if number == 0:
            await storage.put({**VALUES, "large": LARGE[:300_000]})
        storage.sql.exec("CREATE TABLE rows (id INTEGER PRIMARY KEY, what BLOB)")
        for at in range(number):
            storage.sql.exec("INSERT INTO rows (what) VALUES (?)", bytes([at]))
        await storage.set_alarm((time.time() + (1 if number == 1 else 86_400)) * 1000)

    async def tell(self) -> Any:
        kept = {key: await self.ctx.storage.get(key) for key in ("number", "large", *VALUES)}
        rows = self.ctx.storage.sql.exec("SELECT * FROM rows").to_array()
        large = kept.pop("large")
        return [self.name, large == LARGE[:300_000], repr(sorted(kept.items())), repr(rows)]

    async def alarms(self) -> Any:
        return [await self.ctx.storage.get_alarm(), await self.ctx.storage.get("rung")]

    async def alarm(self, info: AlarmInvocationInfo, /) -> None:
        if await self.env.KV.get("closed") is not None:
            await self.ctx.storage.set_alarm(time.time() * 1000 + 500)
            return
        await self.ctx.storage.put("rung", self.name)


@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    DB: D1Database
    JOBS: Queue[Any]
    BOXES: DurableObjectNamespace[Box]
    FILES: R2Bucket


app = create_app(Env)


async def fill(env: Env, rows: int) -> None:
    """Put something into every binding."""
    await env.KV.put("closed", "yes")
    await env.KV.put("large", LARGE, metadata={"of": ["me", 1.5]})
    await env.KV.put("expires", b"\xff\x00", expiration=2_000_000_000)
    for number in range(100):
        await env.KV.put(f"key/{number:03}?#\u00e9", str(number), metadata=number)
    db = env.DB
    await db.batch([db.prepare(line) for line in SCHEMA.splitlines()])
    author = db.prepare("INSERT INTO authors (id, name) VALUES (?, ?)")
    await db.batch([author.bind(at, f"name {at}") for at in range(1, rows)])
    await db.batch([author.bind(10 * rows, "gone"), db.prepare("DELETE FROM authors WHERE name = 'gone'")])
    book = db.prepare("INSERT INTO books VALUES (?, ?, ?)")
    await db.batch([book.bind(1 + at % 7, at, None if at % 2 else "\u00fcber\0all") for at in range(rows)])
    odd = 'INSERT INTO "odd "" name" (rowid, a, b, up, rowid_) VALUES '
    await db.batch(
        [
            db.prepare(f"{odd}(7, 9223372036854775807, x'', 2, 1), (5, 1.0, zeroblob(1500000), 1, 2)"),
            db.prepare(
                f"{odd}(3, 9e999, CAST(x'ff41' AS TEXT), NULL, -9223372036854775808), (4, 0, zeroblob(1500000), NULL, 4)"
            ),
            db.prepare("INSERT INTO strict VALUES (1, 1, '1', x'31', 1), (NULL, 2.5, '', x'', 1.0)"),
            db.prepare("INSERT INTO found (rowid, body) VALUES (4, 'one two'), (9, 'three')"),
        ]
    )
    # All of them in one circle, of more bytes than a transaction that moves them.
    await db.batch(
        [
            db.prepare("PRAGMA defer_foreign_keys = ON"),
            *(db.prepare(f"INSERT INTO first VALUES ({at}, {at + 1}, hex(zeroblob(300000)))") for at in range(1, 5)),
            db.prepare("INSERT INTO second VALUES (2, 2), (3, 3), (4, 4), (5, 1)"),
        ]
    )
    await env.JOBS.send({"json": [1, None]})
    await env.JOBS.send("text", content_type="text")
    await env.JOBS.send(b"\x00\xff", content_type="bytes")
    await env.JOBS.send({"v8": VALUES["date"]}, content_type="v8")
    await env.JOBS.send("not yet", delay_seconds=3600)
    for number in range(5):
        await env.BOXES.get_by_name(f"box {number} \u20ac").fill(number)
    files = env.FILES
    for number in range(20):
        await files.put(f"many/{number:02}", str(number), custom_metadata={"n\u00e4me": "\u20ac" * number})
    await files.put("", b"", storage_class="InfrequentAccess")
    digest = hashlib.sha256(LARGE.encode()).digest()
    await files.put(
        "\u00e9" * 400, LARGE, sha256=digest, http_metadata={"content_type": "text/plain", "cache_expiry": DATE}
    )
    await files.put("secret", "\0" * 70_000, ssec_key=b"\1" * 32)
    upload = await files.create_multipart_upload("parts", custom_metadata={"in": "parts"})
    parts = [await upload.upload_part(at, bytes([at]) * (5 * 1024**2 if at < 3 else 7)) for at in (1, 2, 3)]
    await upload.complete(parts)
    await files.create_multipart_upload("begun")


async def tell(env: Env) -> Any:
    """All of it but for the messages, in a form that can be compared."""
    listed = (await env.KV.list()).keys
    found = [await env.KV.get_with_metadata(key.name, "bytes") for key in listed]
    kv = [["large", one.metadata] if one.value == LARGE.encode() else [repr(one.value), one.metadata] for one in found]
    db: dict[str, Any] = {}
    for table in ("authors", "books", "log", "found", "named", "sqlite_sequence"):
        rowid = "" if table in ("books", "named") else "rowid AS id_, "
        db[table] = await env.DB.prepare(f"SELECT {rowid}* FROM {table} ORDER BY 1, 2").raw()
    odd = "rowid AS id_, hex(a), typeof(a), length(b), typeof(b), up, rowid_ > 0, s IS NULL"
    db["odd"] = await env.DB.prepare(f'SELECT {odd} FROM "odd "" name" ORDER BY 1').raw()
    db["circle"] = await env.DB.prepare(
        "SELECT first.id, second, first, length(note) FROM first JOIN second ON second.id = second ORDER BY 1"
    ).raw()
    db["strict"] = await env.DB.prepare("SELECT i, r, t, hex(b), a FROM strict ORDER BY 2").raw()
    db["types"] = await env.DB.prepare("SELECT typeof(i), typeof(r), typeof(t), typeof(b), typeof(a) FROM strict").raw()
    db["match"] = await env.DB.prepare("SELECT rowid FROM found WHERE found MATCH 'two'").raw()
    db["schema"] = await env.DB.prepare(
        "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\' AND name NOT LIKE 'found\\_%' "
        "ESCAPE '\\' ORDER BY 1, 2"
    ).raw()
    boxes = [await env.BOXES.get_by_name(f"box {number} \u20ac").tell() for number in range(5)]
    files: list[Any] = []
    for one in (await env.FILES.list(include=["httpMetadata", "customMetadata"])).objects:
        key = b"\1" * 32 if one.key == "secret" else None
        body = await env.FILES.get(one.key, ssec_key=key)
        assert body is not None
        files.append([repr(one), repr(body.checksums), hashlib.sha256(await body.bytes()).hexdigest()])
    return {"kv": [repr(key) for key in listed], "values": kv, "db": db, "boxes": boxes, "files": files}


@app.post("/fill/:rows")
async def do_fill(req: Request[Env], res: Response) -> None:
    await fill(req.env, int(req.params["rows"]))
    res.json(True)


@app.get("/tell")
async def do_tell(req: Request[Env], res: Response) -> None:
    res.json(await tell(req.env))


@app.post("/open")
async def let_work(req: Request[Env], res: Response) -> None:
    await req.env.KV.delete("closed")
    res.json(True)


@app.get("/got")
async def tell_got(req: Request[Env], res: Response) -> None:
    res.json([await req.env.KV.get(f"got:{kind}") for kind in ("dict", "str", "bytes", "v8")])


@app.get("/alarms/:number")
async def tell_alarms(req: Request[Env], res: Response) -> None:
    res.json(await req.env.BOXES.get_by_name(f"box {req.params['number']} \u20ac").alarms())


@app.post("/add/:name")
async def add(req: Request[Env], res: Response) -> None:
    row = (
        await req.env.DB.prepare("INSERT INTO authors (name) VALUES (?) RETURNING id").bind(req.params["name"]).first()
    )
    res.json(row)


@app.queue("jobs")
async def consume(batch: MessageBatch[Any], env: Env, ctx: ExecutionContext) -> None:
    closed = await env.KV.get("closed") is not None
    for message in batch.messages:
        if closed:
            message.retry(delay_seconds=1)
            continue
        body: Any = message.body
        kind = "v8" if "datetime" in repr(body) else type(body).__name__
        await env.KV.put(f"got:{kind}", f"{body!r} {message.attempts > 1}")
