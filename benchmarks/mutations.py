"""Mutations of a project of 13,000 lines, each to be found by mypy's plugin and by `core check`: `python -m benchmarks.mutations`.

The project is that of `benchmarks.plugin`, with a module beside it that has something of every kind that is checked. Nothing
may be found in it as it is. Then one thing at a time is changed: a name, a type, a column, a path. Both front ends have to
report something about each change, at whatever line; mypy runs from a copy of a warm cache, as it does while somebody edits.

`--some N` takes every Nth mutation alone. Exit status 1 where one is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import mypy.build  # noqa: F401  # pyright: ignore[reportUnusedImport]  # first, or mypy's modules import each other in a circle
from mypy import api

from benchmarks.plugin import generate
from core.analysis.program import check_program
from core.config.load import load_all
from core.errors import CoreError, DeveloperError

WRANGLER = """
[[queues.producers]]
binding = "JOBS"
queue = "jobs"

[[queues.consumers]]
queue = "jobs"

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
from typing import Literal, TypedDict

import attrs

from core import CoreError, ExecutionContext, MessageBatch, Next, Request, Response, Router, create_app
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


app.use("/orders", orders)
app.use("/orders/:order/lines", lines)


@app.queue("jobs")
async def work(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        await env.SESSIONS.put(message.body.title, "done")
'''


class Mutation(NamedTuple):
    """One change: in a file, of a string that is there once, or that many times."""

    file: str
    old: str
    new: str


SQL, CODE, TOML, ENV = "migrations/0002_orders.sql", "shop/orders.py", "wrangler.toml", "shop/env.py"

MUTATIONS: Sequence[Mutation] = [
    # names and kinds of bindings, in the configuration and on Env
    Mutation(TOML, 'binding = "SESSIONS"', 'binding = "SESSION"'),
    Mutation(TOML, 'binding = "DB"', 'binding = "DATABASE"'),
    Mutation(TOML, 'binding = "JOBS"', 'binding = "JOB"'),
    Mutation(TOML, 'binding = "FILES"', 'binding = "FILE"'),
    Mutation(TOML, "[[kv_namespaces]]", "[[r2_buckets]]"),
    Mutation(TOML, "[[r2_buckets]]", "[[kv_namespaces]]"),
    Mutation(TOML, "kv_namespaces", "kv_namespace"),
    Mutation(TOML, 'ORIGIN = "https://example.com"', 'ORIGINS = "https://example.com"'),
    Mutation(TOML, 'ORIGIN = "https://example.com"', "ORIGIN = 5"),
    Mutation(TOML, 'ORIGIN = "https://example.com"', 'ORIGIN = ["https://example.com"]'),
    Mutation(TOML, '[[queues.consumers]]\nqueue = "jobs"', '[[queues.consumers]]\nqueue = "job"'),
    Mutation(TOML, "[vars]", '[env.staging]\nname = "x"\n\n[vars]'),
    Mutation(TOML, 'id = "a"', 'idd = "a"'),
    Mutation(ENV, "SESSIONS: KVNamespace", "SESSION: KVNamespace"),
    Mutation(ENV, "SESSIONS: KVNamespace", "SESSIONS: D1Database"),
    Mutation(ENV, "DB: D1Database", "DB: KVNamespace"),
    Mutation(ENV, "FILES: R2Bucket", "FILES: KVNamespace"),
    Mutation(ENV, "    FILES: R2Bucket\n", ""),
    Mutation(ENV, "ORIGIN: str", "ORIGIN: int"),
    Mutation(ENV, "ORIGIN: str", "ORIGIN: str\n    TOKEN: Secret"),
    Mutation(ENV, "JOBS: Queue[Job]", "JOBS: Queue[str]"),
    Mutation(ENV, "@attrs.frozen\nclass Env", "class Env"),
    # middleware
    Mutation(CODE, 'kv_binding="SESSIONS"', 'kv_binding="SESION"'),
    Mutation(CODE, 'kv_binding="SESSIONS"', 'kv_binding="DB"'),
    Mutation(CODE, "app.use(request_id())\napp.use(logger())", "app.use(logger())\napp.use(request_id())"),
    Mutation(CODE, '@orders.get("/:order{[0-9]+}", limit)', '@orders.get("/:order{[0-9]+}", listed)'),
    # paths, parameters, routes
    Mutation(CODE, '"/:order{[0-9]+}"', '"/:id{[0-9]+}"'),
    Mutation(CODE, '"/:order{[0-9]+}"', '":order{[0-9]+}"'),
    Mutation(CODE, '"/:order{[0-9]+}"', '"/:order{[0-9+}"'),
    Mutation(CODE, 'req.params["order"]).first', 'req.params["ordre"]).first'),
    Mutation(CODE, 'req.params["order"]).run', 'req.params["number"]).run'),
    Mutation(CODE, 'Literal["order"]', 'Literal["orders"]'),
    Mutation(CODE, "    order: int\n", "    order: int\n    line: int\n"),
    Mutation(CODE, 'get("/totals")', 'get("/totals/:order/:order")'),
    Mutation(CODE, '@orders.get("/totals")', '@orders.get("/:order{[0-9]+}")'),
    Mutation(CODE, 'app.use("/orders", orders)', 'app.use("/orders", Router())'),
    # url_for
    Mutation(CODE, "url_for(show, order=order.id)", "url_for(show, id=order.id)"),
    Mutation(CODE, "url_for(show, order=order.id)", "url_for(show)"),
    Mutation(CODE, "url_for(show, order=order.id)", 'url_for(show, order="first")'),
    Mutation(CODE, "url_for(listed, order=order.id)", "url_for(listed)"),
    Mutation(CODE, "url_for(totals)", "url_for(totals, order=1)"),
    Mutation(CODE, "url_for(totals)", "url_for(work)"),
    Mutation(CODE, "url_for(totals)", "url_for(limit)"),
    Mutation(CODE, 'app.use("/orders/:order/lines", lines)', 'app.use("/orders/:number/lines", lines)'),
    # columns and tables
    Mutation(SQL, "title TEXT NOT NULL", "name TEXT NOT NULL"),
    Mutation(SQL, "title TEXT NOT NULL", "title INTEGER NOT NULL"),
    Mutation(SQL, "title TEXT NOT NULL", "title TEXT"),
    Mutation(SQL, "title TEXT NOT NULL", "title TEXT NOT NULL, place TEXT NOT NULL"),
    Mutation(SQL, "total REAL NOT NULL DEFAULT 0", "total TEXT NOT NULL DEFAULT 0"),
    Mutation(SQL, "total REAL NOT NULL DEFAULT 0", "total REAL NOT NULL"),
    Mutation(SQL, "note TEXT,", "note TEXT NOT NULL,"),
    Mutation(SQL, "note TEXT,", ""),
    Mutation(SQL, "CREATE TABLE orders", "CREATE TABLE purchases"),
    Mutation(SQL, "CREATE TABLE lines", "CREATE TABLE line"),
    Mutation(SQL, "CREATE VIEW totals", "CREATE VIEW sums"),
    Mutation(SQL, "AS amount FROM", "AS number FROM"),
    Mutation(SQL, "sku TEXT NOT NULL", "sku BLOB NOT NULL"),
    Mutation(SQL, "amount INTEGER NOT NULL", "amount INTEGER"),
    Mutation(SQL, "amount INTEGER NOT NULL", "number INTEGER NOT NULL"),
    Mutation(SQL, "CREATE TABLE lines", "CREATE TABEL lines"),
    # statements
    Mutation(CODE, "SELECT id, title, total, note FROM orders", "SELECT id, titel, total, note FROM orders"),
    Mutation(CODE, "SELECT id, title, total, note FROM orders", "SELECT id, title, total FROM orders"),
    Mutation(CODE, "SELECT id, title, total, note FROM orders", "SELECT id, title, total, note FROM order_s"),
    Mutation(CODE, "SELECT id, title, total, note FROM orders", "SELECT id, title, total, note FORM orders"),
    Mutation(CODE, "total, note FROM orders WHERE id = ?", "total, note FROM orders WHERE idd = ?"),
    Mutation(CODE, "total, note FROM orders WHERE id = ?", "total, note FROM orders WHERE id = ? AND note = ?"),
    Mutation(CODE, "total, note FROM orders WHERE id = ?", "total, note FROM orders"),
    Mutation(CODE, "ORDER BY sku LIMIT ?2", "ORDER BY sky LIMIT ?2"),
    Mutation(CODE, "VALUES (?, ?, ?) RETURNING id", "VALUES (?, ?) RETURNING id"),
    Mutation(CODE, "(user_id, title, note) VALUES (?, ?, ?)", "(title, note) VALUES (?, ?)"),
    Mutation(CODE, "RETURNING id", "RETURNING idd"),
    Mutation(CODE, " RETURNING id", ""),
    Mutation(CODE, "length(users.email)", "lenght(users.email)"),
    Mutation(CODE, "UPDATE orders SET title = ?", "UPDATE orders SET titel = ?"),
    Mutation(CODE, "DELETE FROM orders WHERE id = ?", "DELETE orders WHERE id = ?"),
    Mutation(CODE, "users.email AS name", "count(*) AS name"),
    # values
    Mutation(CODE, "insert.bind(1, new.title, None)", "insert.bind(None, new.title, None)"),
    Mutation(CODE, "insert.bind(1, new.title, None)", "insert.bind(1, new.title)"),
    Mutation(CODE, 'add.bind(made, "a", 1)', 'add.bind(made, "a", "many")'),
    Mutation(CODE, 'add.bind(made, "a", 1)', "add"),
    Mutation(CODE, '.bind("gone", 1)', ".bind(None, 1)"),
    Mutation(CODE, '.bind("gone", 1)', '.bind(["gone"], 1)'),
    # rows
    Mutation(CODE, "    title: str\n    total: float", "    title: int\n    total: float"),
    Mutation(CODE, "    title: str\n    total: float", "    titel: str\n    total: float"),
    Mutation(CODE, "    note: str | None", "    note: str"),
    Mutation(CODE, "    total: float", "    total: bytes"),
    Mutation(CODE, "    amount: int\n\n\n@attrs", "    amount: str\n\n\n@attrs"),
    Mutation(CODE, "    amount: int | None", "    amount: str | None"),
    Mutation(CODE, 'one("number")', 'one("nmuber")'),
    Mutation(CODE, "number: int = await", "number: str = await"),
    Mutation(CODE, 'one("id")', 'first("idd")'),
    # queues
    Mutation(CODE, '@app.queue("jobs")', '@app.queue("job")'),
    Mutation(CODE, "MessageBatch[Job]", "MessageBatch[Order]"),
    # an edit of a module among the 200
    Mutation("shop/m7.py", 'things107/:id"', 'things107/:key"'),
    Mutation("shop/m7.py", 'rate_limit(kv_binding="SESSIONS", limit=3,', 'rate_limit(kv_binding="SESSION", limit=3,'),
    Mutation(
        "shop/m7.py",
        "LEFT JOIN users u ON u.id = t.user_id WHERE t.id = ? AND 107 > 0",
        "LEFT JOIN users u ON u.idd = t.user_id WHERE t.id = ? AND 107 > 0",
    ),
    Mutation(
        "migrations/0001_init.sql",
        "CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT)",
        "CREATE TABLE users (id INTEGER PRIMARY KEY, mail TEXT)",
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


def from_check(root: Path) -> list[str]:
    """The findings of `core check`."""
    try:
        return [finding.text for finding in check_program(load_all(root / TOML))]
    except (CoreError, DeveloperError) as error:
        return [str(error)]


def from_mypy(root: Path, cache: Path) -> list[str]:
    """The findings of mypy with the plugin."""
    out, err, _ = api.run(["--config-file", str(root / "with.ini"), "--cache-dir", str(cache), "main.py"])
    return [line for line in (out + err).splitlines() if ": error:" in line or ": note: " in line]


def main() -> int:
    """Mutate, and print what was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", type=int, default=45)
    parser.add_argument("--some", type=int, default=1, metavar="N")
    arguments = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="core-mutations-")).resolve()
    missed = run(root, arguments.modules, MUTATIONS[:: arguments.some])
    shutil.rmtree(root, ignore_errors=True)
    return 1 if missed else 0


def run(root: Path, modules: int, mutations: Sequence[Mutation]) -> list[str]:
    """Make the project, mutate it, and return what was missed, or found in the project as it is."""
    lines = make(root, modules)
    os.chdir(root)
    cache = root / ".mypy_cache"
    clean = [*from_check(root), *from_mypy(root, cache)]
    print(f"{lines:,} lines; as they are: {len(clean)} findings", flush=True)
    missed = [f"false alarm: {line}" for line in clean]
    start = time.process_time()
    for number, (file, old, new) in enumerate(mutations, 1):
        path = root / file
        text = path.read_text()
        if text.count(old) < 1:
            sys.exit(f"{file} has no {old!r}")
        path.write_text(text.replace(old, new, 1))
        changed = root.parent / f"{root.name}-cache"
        shutil.copytree(cache, changed)
        try:
            for face, found in (("core check", from_check(root)), ("mypy", from_mypy(root, changed))):
                if not any(old_line not in clean for old_line in found):
                    missed.append(f"{face} misses {number}: {file}: {old!r} -> {new!r}")
                    print(missed[-1], flush=True)
        finally:
            path.write_text(text)
            shutil.rmtree(changed)
    total = len(mutations) * 2 - sum("misses" in line for line in missed)
    print(
        f"{len(mutations)} mutations, {total} of {len(mutations) * 2} found; {time.process_time() - start:.0f} s of processor"
    )
    print("\n".join(line for line in missed if "misses" not in line))
    return missed


if __name__ == "__main__":
    sys.exit(main())
