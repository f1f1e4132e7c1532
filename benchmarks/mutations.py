"""Mutations of a project of 13,000 lines, each to be found by mypy's plugin and by `core check`:
`python -m benchmarks.mutations`.

The project is that of `benchmarks.plugin`, with a module beside it that has something of every kind that is checked.
Nothing may be found in it as it is. Then one thing at a time is changed: a name, a type, a column, a path. Both front
ends have to report the mistake by its code, in the file and at the line where it is to be corrected; mypy runs from a
copy of a warm cache, as it does while somebody edits.

`--some N` takes every Nth mutation alone. Exit status 1 where one is missed. One file of more than 400 lines, since the
project and its mutations are read side by side.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.plugin import generate
from core.config.load import load_all
from core.errors import ConfigurationError
from core.program.findings import configuration_findings
from core.program.proof import check_program

WRANGLER = """
[[queues.producers]]
binding = "JOBS"
queue = "jobs"

[[queues.consumers]]
queue = "jobs"

[triggers]
crons = ["0 3 * * *"]

[[r2_buckets]]
binding = "FILES"
bucket_name = "files"
"""

MIGRATION = """\
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  user_id INTEGER NOT NULL REFERENCES users (id),
  title TEXT NOT NULL,
  total REAL NOT NULL DEFAULT 0,
  note TEXT,
  picture BLOB
);
CREATE TABLE lines (order_id INTEGER NOT NULL, sku TEXT NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (order_id, sku)) STRICT;
CREATE VIEW totals AS SELECT o.user_id, sum(l.amount) AS amount FROM orders o JOIN lines l ON l.order_id = o.id GROUP BY o.user_id;
"""

MODULE = '''\
import asyncio
import hashlib
import time
from typing import Literal, TypedDict

import attrs

from core import CoreError, ExecutionContext, MessageBatch, Next, Request, Response, Router, ScheduledEvent
from core import create_app
from core.middleware.logger import logger
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from shop.env import Env, Job

app = create_app(Env)
app.use(request_id())
app.use(logger())
app.use(rate_limit(kv_binding="SESSIONS", limit=1000, window=60))
orders: Router[Env] = Router()
lines: Router[Env] = Router()


@attrs.frozen
class Order:
    id: int
    title: str
    total: float
    note: str | None


class Line(TypedDict):
    sku: str
    amount: int


@attrs.frozen
class Total:
    name: str | None
    amount: int | None


@attrs.frozen
class OfOrder:
    order: int


async def limit(req: Request[Env], res: Response, next: Next) -> None:
    await next()


@orders.get("/:order{[0-9]+}", limit)
async def show(req: Request[Env], res: Response) -> None:
    statement = req.env.DB.prepare("SELECT id, title, total, note FROM orders WHERE id = ?")
    order = await statement.bind(req.params["order"]).first(Order)
    if order is None:
        raise CoreError(404, "Not found")
    res.json({"order": order, "url": req.url_for(show, order=order.id), "lines": req.url_for(listed, order=order.id)})


@lines.get("/")
async def listed(req: Request[Env, object, Literal["order"]], res: Response) -> None:
    statement = req.env.DB.prepare("SELECT sku, amount FROM lines WHERE order_id = ?1 ORDER BY sku LIMIT ?2")
    res.json((await statement.bind(req.params.parse(OfOrder).order, 20).all(Line)).results)


@orders.post("/")
async def create(req: Request[Env], res: Response) -> None:
    new = await req.json(Job)
    insert = req.env.DB.prepare("INSERT INTO orders (user_id, title, note) VALUES (?, ?, ?) RETURNING id")
    made: int = await insert.bind(1, new.title, None).one("id")
    add = req.env.DB.prepare("INSERT INTO lines (order_id, sku, amount) VALUES (?, ?, ?)")
    await req.env.DB.batch([add.bind(made, "a", 1), add.bind(made, "b", 2)])
    await req.env.JOBS.send(new)
    await req.env.FILES.put(f"{made}", "new")
    res.redirect(req.url_for(show, order=made))


@orders.get("/totals")
async def totals(req: Request[Env], res: Response) -> None:
    found = await req.env.DB.prepare(
        """
        SELECT users.email AS name, totals.amount
        FROM totals JOIN users ON users.id = totals.user_id
        WHERE totals.amount > (SELECT count(*) FROM lines) AND length(users.email) > ?
        """
    ).bind(3).all(Total)
    number: int = await req.env.DB.prepare("SELECT count(*) AS number FROM orders").one("number")
    res.json({"totals": found.results, "number": number, "origin": req.env.ORIGIN.lower()})


@orders.delete("/:order")
async def remove(req: Request[Env], res: Response) -> None:
    await req.env.DB.prepare("DELETE FROM orders WHERE id = ?").bind(req.params["order"]).run()
    await req.env.DB.prepare("UPDATE orders SET title = ? WHERE user_id = ?").bind("gone", 1).run()
    res.redirect(app.url_for(totals))


@orders.get("/health")
async def health(req: Request[Env], res: Response) -> None:
    res.header("X-At", str(time.time())).header("X-Of", hashlib.sha256(b"of").hexdigest()).json({"ok": True})


app.use("/orders", orders)
app.use("/orders/:order/lines", lines)


async def record(env: Env) -> None:
    await asyncio.sleep(0)
    await env.SESSIONS.put("at", str(time.time()))


@app.queue("jobs")
async def work(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        await env.SESSIONS.put(message.body.title, "done")
    ctx.wait_until(record(env))


@app.scheduled("0 3 * * *")
async def nightly(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None:
    await record(env)
'''


class Mutation(NamedTuple):
    """A change of the first `old` in a file, and the finding it has to lead to: its code, and the line it is at.

    `at` is a text that begins in that line of `where`, after the change; its first occurrence counts. `mypy` is the
    place and code of mypy where they are others, with a reason beside it; without a code where mypy says nothing.
    """

    file: str
    old: str
    new: str
    code: str
    at: str
    where: str = "shop/orders.py"
    mypy: tuple[str, str, str] | None = None


SQL, CODE, TOML, ENV = "migrations/0002_orders.sql", "shop/orders.py", "wrangler.toml", "shop/env.py"

# The lines at which several mutations are found.
QUERY, ROW = "statement = req.env.DB.prepare(", "order = await statement.bind("
LINKS = 'res.json({"order": order, "url": '
OF_LINES, LINE = 'statement = req.env.DB.prepare("SELECT sku', "res.json((await statement.bind("
INSERT, MADE = "insert = req.env.DB.prepare(", "made: int = await insert.bind("
OF_TOTALS, TOTAL = "SELECT users.email AS name", ").bind(3).all(Total)"

NO_ENV = ("core-env", "class Env(Bindings)", ENV)
"""mypy reports nothing in files of another language: what the configuration file says is told where Env is."""
ASSIGNS = ("assignment", "number: str", CODE)
"""The plugin gives the call the type of its column, so mypy's own check of the assignment finds it."""
OF_HEALTH = '@orders.get("/health")'
HEALTH = "async def health(req: Request[Env], res: Response) -> None:"


def types(code: str, at: str, where: str = CODE) -> tuple[str, str, str]:
    """The same mistake as mypy's own checks tell it, by the types: a second message would say nothing new."""
    return code, at, where


NOT_IN_A_WORKER = ("", "", "")
"""Elsewhere than in a worker the program is right, so mypy says nothing."""

MUTATIONS: Sequence[Mutation] = [
    # names and kinds of bindings, in the configuration and on Env
    Mutation(TOML, 'binding = "SESSIONS"', 'binding = "SESSION"', "core-env", "SESSIONS: KVNamespace", ENV),
    Mutation(TOML, 'binding = "DB"', 'binding = "DATABASE"', "core-env", "DB: D1Database", ENV),
    Mutation(TOML, 'binding = "JOBS"', 'binding = "JOB"', "core-env", "JOBS: Queue[Job]", ENV),
    Mutation(TOML, 'binding = "FILES"', 'binding = "FILE"', "core-env", "FILES: R2Bucket", ENV),
    Mutation(TOML, "[[kv_namespaces]]", "[[r2_buckets]]", "core-env", "SESSIONS: KVNamespace", ENV),
    Mutation(TOML, "[[r2_buckets]]", "[[kv_namespaces]]", "core-env", "FILES: R2Bucket", ENV),
    Mutation(TOML, "kv_namespaces", "kv_namespace", "core-env", "[[kv_namespace]]", TOML, NO_ENV),
    Mutation(TOML, 'ORIGIN = "https://example.com"', 'ORIGINS = "https://example.com"', "core-env", "ORIGIN: str", ENV),
    Mutation(TOML, 'ORIGIN = "https://example.com"', "ORIGIN = 5", "core-env", "ORIGIN: str", ENV),
    Mutation(
        TOML, 'ORIGIN = "https://example.com"', 'ORIGIN = ["https://example.com"]', "core-env", "ORIGIN: str", ENV
    ),
    Mutation(
        TOML,
        '[[queues.consumers]]\nqueue = "jobs"',
        '[[queues.consumers]]\nqueue = "job"',
        "core-queue",
        '@app.queue("jobs")',
    ),
    Mutation(TOML, "[vars]", '[env.staging]\nname = "x"\n\n[vars]', "core-env", "SESSIONS: KVNamespace", ENV),
    Mutation(TOML, 'id = "a"', 'idd = "a"', "core-env", 'idd = "a"', TOML, NO_ENV),
    Mutation(ENV, "SESSIONS: KVNamespace", "SESSION: KVNamespace", "core-env", "SESSION: KVNamespace", ENV),
    Mutation(ENV, "SESSIONS: KVNamespace", "SESSIONS: D1Database", "core-env", "SESSIONS: D1Database", ENV),
    Mutation(ENV, "DB: D1Database", "DB: KVNamespace", "core-env", "DB: KVNamespace", ENV),
    Mutation(ENV, "FILES: R2Bucket", "FILES: KVNamespace", "core-env", "FILES: KVNamespace", ENV),
    Mutation(ENV, "    FILES: R2Bucket\n", "", "core-env", "class Env(Bindings):", ENV),
    Mutation(ENV, "ORIGIN: str", "ORIGIN: int", "core-env", "ORIGIN: int", ENV),
    Mutation(ENV, "ORIGIN: str", "ORIGIN: str\n    TOKEN: Secret", "core-env", "TOKEN: Secret", ENV),
    Mutation(ENV, "JOBS: Queue[Job]", "JOBS: Queue[str]", "core-queue", '@app.queue("jobs")'),
    Mutation(ENV, "@attrs.frozen\nclass Env", "class Env", "core-env", "class Env(Bindings):", ENV),
    # middleware
    Mutation(CODE, 'kv_binding="SESSIONS"', 'kv_binding="SESION"', "core-binding", "app.use(rate_limit("),
    Mutation(CODE, 'kv_binding="SESSIONS"', 'kv_binding="DB"', "core-binding", "app.use(rate_limit("),
    Mutation(
        CODE,
        "app.use(request_id())\napp.use(logger())",
        "app.use(logger())\napp.use(request_id())",
        "core-order",
        "app.use(request_id())",
    ),
    Mutation(
        CODE,
        '@lines.get("/")',
        '@lines.get("/", show)',
        "core-handler",
        '@lines.get("/", show)',
        mypy=("core-params", '@lines.get("/", show)', CODE),
    ),
    # paths, parameters, routes
    Mutation(CODE, '"/:order{[0-9]+}"', '"/:id{[0-9]+}"', "core-params", LINKS),
    Mutation(CODE, '"/:order{[0-9]+}"', '":order{[0-9]+}"', "core-params", '@orders.get(":order{[0-9]+}", limit)'),
    Mutation(CODE, '"/:order{[0-9]+}"', '"/:order{[0-9+}"', "core-params", '@orders.get("/:order{[0-9+}", limit)'),
    Mutation(CODE, 'req.params["order"]).first', 'req.params["ordre"]).first', "core-params", ROW),
    Mutation(
        CODE, 'req.params["order"]).run', 'req.params["number"]).run', "core-params", 'await req.env.DB.prepare("DELE'
    ),
    Mutation(CODE, 'Literal["order"]', 'Literal["orders"]', "core-params", '@lines.get("/")'),
    Mutation(CODE, "    order: int\n", "    order: int\n    line: int\n", "core-params", LINE),
    Mutation(
        CODE, 'get("/totals")', 'get("/totals/:order/:order")', "core-params", '@orders.get("/totals/:order/:order")'
    ),
    Mutation(
        CODE, '@orders.get("/totals")', '@orders.get("/:order{[0-9]+}")', "core-route", '@orders.get("/:order{[0-9]+}")'
    ),
    Mutation(
        CODE, 'app.use("/orders", orders)', 'app.use("/orders", Router())', "core-route", 'app.use("/orders", Router())'
    ),
    # url_for
    Mutation(CODE, "url_for(show, order=order.id)", "url_for(show, id=order.id)", "core-params", LINKS),
    Mutation(CODE, "url_for(show, order=order.id)", "url_for(show)", "core-params", LINKS),
    Mutation(CODE, "url_for(show, order=order.id)", 'url_for(show, order="first")', "core-params", LINKS),
    Mutation(CODE, "url_for(listed, order=order.id)", "url_for(listed)", "core-params", LINKS),
    Mutation(
        CODE, "url_for(totals)", "url_for(totals, order=1)", "core-params", "res.redirect(app.url_for(totals, order=1))"
    ),
    Mutation(CODE, "url_for(totals)", "url_for(work)", "core-params", "res.redirect(app.url_for(work))"),
    Mutation(CODE, "url_for(totals)", "url_for(limit)", "core-params", "res.redirect(app.url_for(limit))"),
    Mutation(
        CODE, 'app.use("/orders/:order/lines", lines)', 'app.use("/orders/:number/lines", lines)', "core-params", LINKS
    ),
    # columns and tables
    Mutation(SQL, "title TEXT NOT NULL", "name TEXT NOT NULL", "core-sql", QUERY),
    Mutation(SQL, "title TEXT NOT NULL", "title INTEGER NOT NULL", "core-sql", ROW),
    Mutation(SQL, "title TEXT NOT NULL", "title TEXT", "core-sql", ROW),
    Mutation(SQL, "title TEXT NOT NULL", "title TEXT NOT NULL, place TEXT NOT NULL", "core-sql", INSERT),
    Mutation(SQL, "total REAL NOT NULL DEFAULT 0", "total TEXT NOT NULL DEFAULT 0", "core-sql", ROW),
    Mutation(SQL, "total REAL NOT NULL DEFAULT 0", "total REAL NOT NULL", "core-sql", INSERT),
    Mutation(SQL, "note TEXT,", "note TEXT NOT NULL,", "core-sql", MADE),
    Mutation(SQL, "note TEXT,", "", "core-sql", QUERY),
    Mutation(SQL, "CREATE TABLE orders", "CREATE TABLE purchases", "core-sql", QUERY),
    Mutation(SQL, "CREATE TABLE lines", "CREATE TABLE line", "core-sql", OF_LINES),
    Mutation(SQL, "CREATE VIEW totals", "CREATE VIEW sums", "core-sql", "FROM totals JOIN users"),
    Mutation(SQL, "AS amount FROM", "AS number FROM", "core-sql", OF_TOTALS),
    Mutation(SQL, "sku TEXT NOT NULL", "sku BLOB NOT NULL", "core-sql", LINE),
    Mutation(SQL, "amount INTEGER NOT NULL", "amount INTEGER", "core-sql", LINE),
    Mutation(SQL, "amount INTEGER NOT NULL", "number INTEGER NOT NULL", "core-sql", OF_LINES),
    Mutation(SQL, "CREATE TABLE lines", "CREATE TABEL lines", "core-sql", "DB: D1Database", ENV),
    # statements
    Mutation(
        CODE,
        "SELECT id, title, total, note FROM orders",
        "SELECT id, titel, total, note FROM orders",
        "core-sql",
        QUERY,
    ),
    Mutation(CODE, "SELECT id, title, total, note FROM orders", "SELECT id, title, total FROM orders", "core-sql", ROW),
    Mutation(
        CODE,
        "SELECT id, title, total, note FROM orders",
        "SELECT id, title, total, note FROM order_s",
        "core-sql",
        QUERY,
    ),
    Mutation(
        CODE,
        "SELECT id, title, total, note FROM orders",
        "SELECT id, title, total, note FORM orders",
        "core-sql",
        QUERY,
    ),
    Mutation(CODE, "total, note FROM orders WHERE id = ?", "total, note FROM orders WHERE idd = ?", "core-sql", QUERY),
    Mutation(
        CODE,
        "total, note FROM orders WHERE id = ?",
        "total, note FROM orders WHERE id = ? AND note = ?",
        "core-sql",
        ROW,
    ),
    Mutation(CODE, "total, note FROM orders WHERE id = ?", "total, note FROM orders", "core-sql", ROW),
    Mutation(CODE, "ORDER BY sku LIMIT ?2", "ORDER BY sky LIMIT ?2", "core-sql", OF_LINES),
    Mutation(CODE, "VALUES (?, ?, ?) RETURNING id", "VALUES (?, ?) RETURNING id", "core-sql", INSERT),
    Mutation(CODE, "(user_id, title, note) VALUES (?, ?, ?)", "(title, note) VALUES (?, ?)", "core-sql", INSERT),
    Mutation(CODE, "RETURNING id", "RETURNING idd", "core-sql", INSERT),
    Mutation(CODE, " RETURNING id", "", "core-sql", MADE),
    Mutation(CODE, "length(users.email)", "lenght(users.email)", "core-sql", "WHERE totals.amount >"),
    Mutation(
        CODE, "UPDATE orders SET title = ?", "UPDATE orders SET titel = ?", "core-sql", 'await req.env.DB.prepare("UPDA'
    ),
    Mutation(
        CODE,
        "DELETE FROM orders WHERE id = ?",
        "DELETE orders WHERE id = ?",
        "core-sql",
        'await req.env.DB.prepare("DELE',
    ),
    Mutation(CODE, "users.email AS name", "count(*) AS name", "core-sql", TOTAL),
    # values
    Mutation(
        CODE,
        "insert.bind(1, new.title, None)",
        "insert.bind(None, new.title, None)",
        "core-sql",
        MADE,
    ),
    Mutation(
        CODE,
        "insert.bind(1, new.title, None)",
        "insert.bind(1, new.title)",
        "core-sql",
        MADE,
    ),
    Mutation(
        CODE, 'add.bind(made, "a", 1)', 'add.bind(made, "a", "many")', "core-sql", "await req.env.DB.batch([add.bi"
    ),
    Mutation(
        CODE, 'add.bind(made, "a", 1)', "add", "core-sql", 'await req.env.DB.batch([add, add.bind(made, "b", 2)])'
    ),
    Mutation(CODE, '.bind("gone", 1)', ".bind(None, 1)", "core-sql", 'await req.env.DB.prepare("UPDA'),
    Mutation(CODE, '.bind("gone", 1)', '.bind(["gone"], 1)', "core-sql", 'await req.env.DB.prepare("UPDA'),
    # rows
    Mutation(CODE, "    title: str\n    total: float", "    title: int\n    total: float", "core-sql", ROW),
    Mutation(CODE, "    title: str\n    total: float", "    titel: str\n    total: float", "core-sql", ROW),
    Mutation(CODE, "    note: str | None", "    note: str", "core-sql", ROW),
    Mutation(CODE, "    total: float", "    total: bytes", "core-sql", ROW),
    Mutation(CODE, "    amount: int\n\n\n@attrs", "    amount: str\n\n\n@attrs", "core-sql", LINE),
    Mutation(CODE, "    amount: int | None", "    amount: str | None", "core-sql", TOTAL),
    Mutation(CODE, 'one("number")', 'one("nmuber")', "core-sql", "number: int = await req.env.DB"),
    Mutation(CODE, "number: int = await", "number: str = await", "core-sql", "number: str", CODE, ASSIGNS),
    Mutation(CODE, 'one("id")', 'first("idd")', "core-sql", MADE),
    # queues
    Mutation(CODE, '@app.queue("jobs")', '@app.queue("job")', "core-queue", '@app.queue("job")'),
    Mutation(CODE, "MessageBatch[Job]", "MessageBatch[Order]", "core-queue", '@app.queue("jobs")'),
    Mutation(CODE, '@app.queue("jobs")\n', "", "core-queue", "app = create_app(Env)"),
    Mutation(
        TOML, "[triggers]", '[[queues.consumers]]\nqueue = "mail"\n\n[triggers]', "core-queue", "app = create_app(Env)"
    ),
    # crons
    Mutation(TOML, 'crons = ["0 3', 'crons = ["0 4', "core-env", "@app.scheduled("),
    Mutation(TOML, '"0 3 * * *"]', '"0 3 * * *", "0 4 * * *"]', "core-env", "app = create_app(Env)"),
    Mutation(CODE, '@app.scheduled("0 3', '@app.scheduled("0 4', "core-env", "@app.scheduled("),
    Mutation(CODE, '@app.scheduled("0 3 * * *")\n', "", "core-env", "app = create_app(Env)"),
    # handlers and calls
    Mutation(CODE, "async def health", "def health", "core-handler", OF_HEALTH, mypy=types("arg-type", OF_HEALTH)),
    Mutation(
        CODE,
        HEALTH,
        "async def health(req: Request[Env]) -> None:",
        "core-handler",
        OF_HEALTH,
        mypy=types("arg-type", OF_HEALTH),
    ),
    Mutation(
        CODE,
        HEALTH,
        "async def health(res: Response, req: Request[Env]) -> None:",
        "core-handler",
        OF_HEALTH,
        mypy=types("arg-type", OF_HEALTH),
    ),
    Mutation(
        CODE,
        'res.header("X-At",',
        'return {"ok": True}\n    res.header("X-At",',
        "core-handler",
        'return {"ok": True}',
        mypy=types("return-value", 'return {"ok": True}'),
    ),
    Mutation(
        CODE,
        '.json({"ok": True})',
        '.json({"ok": True}, 201)',
        "core-handler",
        'res.header("X-At"',
        mypy=types("call-arg", 'res.header("X-At"'),
    ),
    Mutation(
        CODE,
        'CoreError(404, "Not found")',
        'CoreError("Not found", 404)',
        "core-handler",
        "raise CoreError",
        mypy=types("arg-type", "raise CoreError"),
    ),
    Mutation(
        CODE,
        "new = await req.json(Job)",
        "new = Job(**req.body)",
        "core-handler",
        "new = Job(",
        mypy=types("attr-defined", "new = Job("),
    ),
    Mutation(
        CODE,
        "from core import CoreError,",
        "from core import HTTPException as CoreError,",
        "core-import",
        "from core import",
        mypy=types("attr-defined", "from core import"),
    ),
    Mutation(
        CODE,
        "ctx.wait_until(record(env))",
        "ctx.wait_until(record)",
        "core-handler",
        "ctx.wait_until(",
        mypy=types("arg-type", "ctx.wait_until("),
    ),
    Mutation(ENV, "    title: str\n", "    title: str\n    tags: list[str] = []\n", "core-handler", "tags: list", ENV),
    # calls that are not awaited
    Mutation(CODE, "    await next()", "    next()", "core-await", "    next()\n"),
    Mutation(CODE, '{"ok": True}', '{"ok": req.env.SESSIONS.get("ok")}', "core-await", 'res.header("X-At"'),
    Mutation(
        CODE,
        "await req.env.JOBS.send(new)",
        "req.env.JOBS.send(new)",
        "core-await",
        "req.env.JOBS.send(new)",
        mypy=types("unused-coroutine", "req.env.JOBS.send(new)"),
    ),
    Mutation(
        CODE, "new = await req.json(Job)", "new = req.json(Job)", "core-await", MADE, mypy=types("attr-defined", MADE)
    ),
    Mutation(
        CODE,
        "await asyncio.sleep(0)",
        "record(env)",
        "core-await",
        "record(env)\n",
        mypy=types("unused-coroutine", "record(env)\n"),
    ),
    # what a worker has not
    Mutation(
        CODE, "import hashlib\n", "import hashlib\nimport pwd\n", "core-worker", "import pwd", mypy=NOT_IN_A_WORKER
    ),
    Mutation(
        CODE,
        'hashlib.sha256(b"of").hexdigest()',
        'hashlib.scrypt(b"of", salt=b"", n=2, r=8, p=1).hex()',
        "core-worker",
        'res.header("X-At"',
        mypy=NOT_IN_A_WORKER,
    ),
    Mutation(
        CODE,
        "await asyncio.sleep(0)",
        "time.sleep(0)",
        "core-worker",
        "time.sleep(0)",
        mypy=NOT_IN_A_WORKER,
    ),
    Mutation(
        CODE,
        "async def record(env: Env) -> None:\n",
        "LOCK = asyncio.Lock()\n\n\nasync def record(env: Env) -> None:\n    await LOCK.acquire()\n",
        "core-worker",
        "await LOCK.acquire()",
        mypy=NOT_IN_A_WORKER,
    ),
    # edits of one of the many modules, and of the table that all of them ask
    Mutation(
        "shop/m7.py",
        'things107/:id"',
        'things107/:key"',
        "core-params",
        'row = await statement.bind(req.params["id"]).first(Row107)',
        "shop/m7.py",
    ),
    Mutation(
        "shop/m7.py",
        'rate_limit(kv_binding="SESSIONS", limit=3,',
        'rate_limit(kv_binding="SESSION", limit=3,',
        "core-binding",
        '@router.get("/things107/:id", ',
        "shop/m7.py",
    ),
    Mutation(
        "shop/m7.py",
        "LEFT JOIN users u ON u.id = t.user_id WHERE t.id = ? AND 107 > 0",
        "LEFT JOIN users u ON u.idd = t.user_id WHERE t.id = ? AND 107 > 0",
        "core-sql",
        '"SELECT t.id, t.name, u.email FROM t9',
        "shop/m7.py",
    ),
    Mutation(
        "migrations/0001_init.sql",
        "CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT)",
        "CREATE TABLE users (id INTEGER PRIMARY KEY, mail TEXT)",
        "core-sql",
        '"SELECT t.id, t.name, u.email ',
        "shop/m0.py",
    ),
]


def make(root: Path, modules: int) -> int:
    """Write the project, and return its number of lines."""
    lines = generate(root, modules)
    toml = root / TOML
    toml.write_text(
        toml.read_text()
        .replace('main = "app.py"', 'main = "main.py"')
        .replace("[vars]", f"{WRANGLER.lstrip()}\n[vars]")
    )
    (root / SQL).write_text(MIGRATION)
    env = root / ENV
    text = env.read_text().replace("D1Database, KVNamespace", "D1Database, KVNamespace, Queue, R2Bucket, Secret")
    text = text.replace(
        "@attrs.frozen\nclass Env", "@attrs.frozen\nclass Job:\n    title: str\n\n\n@attrs.frozen\nclass Env"
    )
    env.write_text(
        text.replace("    ORIGIN: str\n", "    JOBS: Queue[Job]\n    FILES: R2Bucket\n    ORIGIN: str\n")
        + "\n\n__all__ = ['Env', 'Job', 'Secret']\n"
    )
    (root / CODE).write_text(MODULE)
    (root / "main.py").write_text("import app as large\nfrom shop.orders import app\n\n__all__ = ['app', 'large']\n")
    return lines + len(MODULE.splitlines())


class Found(NamedTuple):
    """A finding: its code, the file below the project, the line, and the whole of it as text."""

    code: str
    file: str
    line: int
    text: str


class Result(NamedTuple):
    """The findings in the project as it is, and what each front end missed, of how many mutations."""

    lines: int
    clean: Sequence[Found]
    missed: Sequence[str]
    tried: Mapping[str, int]


Face = Callable[[Path, Path], "list[Found]"]


def from_check(root: Path, cache: Path) -> list[Found]:
    """The findings of `core check`."""
    try:
        findings = check_program(load_all(root / TOML))
    except ConfigurationError as error:
        findings = list(configuration_findings(error, root / TOML))
    return [Found(f.code, os.path.relpath(f.file, root), f.line, f.text) for f in findings]


def from_mypy(root: Path, cache: Path) -> list[Found]:
    """The findings of mypy with the plugin, from a copy of its warm cache, in a process of its own."""
    with tempfile.TemporaryDirectory() as copied:
        shutil.copytree(cache, copied, dirs_exist_ok=True)
        command = [sys.executable, "-m", "mypy", "--config-file", "with.ini", "--cache-dir", copied, "main.py"]
        out = subprocess.run(command, cwd=root, capture_output=True, text=True).stdout
    matches = filter(None, map(_LINE.fullmatch, out.splitlines()))
    return [Found(match[3], match[1], int(match[2]), match[0]) for match in matches]


_LINE = re.compile(r"(.+?):(\d+): \w+: .*  \[([\w-]+)\]")
FACES: Mapping[str, Face] = {"core check": from_check, "mypy": from_mypy}


def run(root: Path, modules: int, mutations: Sequence[Mutation], faces: Mapping[str, Face] = FACES) -> Result:
    """Make the project in `root`, mutate it, and return what was found in it as it is, and what was missed."""
    lines = make(root, modules)
    cache = root / ".mypy_cache"
    cache.mkdir()
    if "mypy" in faces:
        command = [sys.executable, "-m", "mypy", "--config-file", "with.ini", "--cache-dir", str(cache), "main.py"]
        subprocess.run(command, cwd=root, capture_output=True)
    clean = [found for face in faces.values() for found in face(root, cache)]
    missed: list[str] = []
    tried = dict.fromkeys(faces, 0)
    for mutation in mutations:
        path = root / mutation.file
        text = path.read_text()
        if mutation.old not in text:
            raise ValueError(f"{mutation.file} has no {mutation.old!r}")
        path.write_text(text.replace(mutation.old, mutation.new, 1))
        try:
            for name, face in faces.items():
                own = mutation.mypy if name == "mypy" else None
                if own == NOT_IN_A_WORKER:
                    continue
                tried[name] += 1
                found = face(root, cache)
                code, at, where = own or (mutation.code, mutation.at, mutation.where)
                line = _line_of(at, (root / where).read_text())
                if not any((f.code, f.file, f.line) == (code, where, line) for f in found):
                    told = "".join(f"\n    {f.text}" for f in found[:5])
                    change = f"{mutation.file}: {mutation.old!r} -> {mutation.new!r}"
                    missed.append(f"{name} misses {change}, {code} at {where}:{line}. It finds{told or ' nothing'}")
        finally:
            path.write_text(text)
    return Result(lines, clean, missed, tried)


def _line_of(at: str, text: str) -> int:
    """The line in which the first occurrence of a text begins."""
    return text.count("\n", 0, text.index(at)) + 1


def main() -> int:
    """Mutate, and print what was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=int, default=45)
    parser.add_argument("--some", type=int, default=1, metavar="N")
    parser.add_argument("--code", default="", help="only the mutations that lead to this code")
    arguments = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if mutation.code.startswith(arguments.code)]
    with tempfile.TemporaryDirectory(prefix="core-mutations-") as folder:
        result = run(Path(folder).resolve(), arguments.modules, chosen[:: arguments.some])
    print(f"{result.lines:,} lines; as they are: {len(result.clean)} findings")
    for found in result.clean:
        print(f"false alarm: {found.text}")
    for text in result.missed:
        print(text)
    for name in FACES:
        missed = sum(text.startswith(f"{name} misses") for text in result.missed)
        tried = result.tried[name]
        print(f"{name}: {tried - missed} of {tried} mutations found, by code, file and line")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in used)
    print(f"{seconds:.0f} s of processor; {max(usage.ru_maxrss for usage in used) // 1024} MB in the largest process")
    return 1 if result.missed or result.clean else 0


if __name__ == "__main__":
    sys.exit(main())
