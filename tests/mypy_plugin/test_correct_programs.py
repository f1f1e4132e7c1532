"""Correct programs of many shapes, about which nothing is said: not by mypy with the plugin, and not when they run.

Those of `forms` are programs of their own, in which `core check` reads everything: a mistake anywhere in them is found.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from tests.mypy_plugin.conftest import Project, programs
from tests.mypy_plugin.forms import FORMS, MONOREPO

from core import App
from core.config.load import load_all
from core.mypy_plugin.hooks import Findings
from core.program.proof import Proof, prove

WRANGLER = """\
name = "shop"
main = "app.py"
compatibility_date = "2026-04-01"

kv_namespaces = [
  { binding = "SESSIONS", id = "a" },
  { binding = "COUNTERS", id = "c" },
]

[[d1_databases]]
binding = "DB"
database_name = "shop"
database_id = "b"

[[d1_databases]]
binding = "LOG"
database_name = "log"
database_id = "l"
migrations_dir = "log"

[[r2_buckets]]
binding = "FILES"
bucket_name = "files"

[[queues.producers]]
binding = "JOBS"
queue = "jobs"

[[queues.consumers]]
queue = "jobs"

[ai]
binding = "AI"

[vars]
ORIGIN = "https://example.com"
MOST = 5

[secrets]
required = ["KEY"]

# Each program has an application of its own, and the configuration names none of them.
[core.checks]
core-import = "off"
"""

MIGRATIONS = {
    "migrations/0001_init.sql": """\
CREATE TABLE users (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT UNIQUE,
  manager_id INTEGER REFERENCES users(id),
  score REAL NOT NULL DEFAULT 0,
  avatar BLOB,
  is_admin BOOLEAN NOT NULL DEFAULT 0,
  tags TEXT NOT NULL DEFAULT '[]',
  created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE posts (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, title TEXT NOT NULL, body TEXT) STRICT;
CREATE VIEW authors AS SELECT u.id, u.name, count(*) AS posts FROM users u JOIN posts p ON p.user_id = u.id GROUP BY u.id;
""",
    "migrations/0002_search.sql": """\
CREATE VIRTUAL TABLE pages USING fts5(title, body);
ALTER TABLE users ADD COLUMN nickname TEXT;
CREATE TRIGGER posts_score AFTER INSERT ON posts BEGIN
  UPDATE users SET score = score + CASE WHEN new.body IS NULL THEN 1 ELSE 2 END WHERE id = new.user_id;
END;
""",
    "log/1_lines.sql": "CREATE TABLE lines (id TEXT PRIMARY KEY, at INTEGER NOT NULL, text TEXT) WITHOUT ROWID;\n",
}

ENV = """\
import attrs
from core import Ai, Bindings, D1Database, KVNamespace, Queue, R2Bucket, Secret

@attrs.frozen
class Job:
    id: int

@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    COUNTERS: KVNamespace
    DB: D1Database
    LOG: D1Database
    FILES: R2Bucket
    JOBS: Queue[Job]
    AI: Ai
    ORIGIN: str
    MOST: int
    KEY: Secret
"""

HEAD = """\
# mypy: allow-untyped-decorators
import attrs
from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final, Literal, NewType, NotRequired, Optional, Protocol, TypedDict
from core import (
    Ai, App, Bindings, CoreError, D1Database, D1PreparedStatement, ExecutionContext, KVNamespace, MessageBatch, Next,
    Params, Queue, R2Bucket, Request, Response, Router, Secret, create_app,
)
from core.middleware.cors import cors
from core.middleware.logger import logger
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs
from core.middleware.timeout import timeout
from env import Env, Job
"""

PROGRAMS = programs(
    '''
### env_again
@attrs.frozen
class Env2(Env):
    pass

### env_dataclass
from dataclasses import dataclass
@dataclass(frozen=True)
class Mirror(Bindings):
    SESSIONS: KVNamespace
    COUNTERS: KVNamespace
    DB: D1Database
    LOG: D1Database
    FILES: R2Bucket
    JOBS: Queue[Job]
    AI: Ai
    ORIGIN: str
    MOST: int
    KEY: Secret

### env_defined
@attrs.define
class Mirror(Bindings):
    SESSIONS: "KVNamespace"
    COUNTERS: Annotated[KVNamespace, "counts"]
    DB: D1Database = attrs.field()
    LOG: D1Database = attrs.field(repr=False)
    FILES: R2Bucket
    JOBS: "Queue[Job]"
    AI: Any
    ORIGIN: Literal["https://example.com"]
    MOST: float
    KEY: str

### env_aliases
Store = KVNamespace
Origin = NewType("Origin", str)
@attrs.frozen
class Mirror(Bindings):
    sessions: Store = attrs.field(alias="SESSIONS")
    _COUNTERS: Store
    database: D1Database = attrs.field(alias="DB")
    LOG: D1Database
    FILES: R2Bucket
    JOBS: Queue[Any]
    AI: Ai
    ORIGIN: Origin
    MOST: int
    KEY: Secret

### env_optional
@attrs.frozen
class Mirror(Env):
    EXTRA: KVNamespace | None = None
    OTHER: Optional[Secret] = None
    FLAG: str = "off"
    computed: int = attrs.field(init=False, default=3)

### env_converted
def split(text: str) -> list[str]:
    return text.split(",")
@attrs.frozen
class Wide(Env):
    EXTRA: list[str] = attrs.field(converter=split, default="a,b")

### env_methods
@attrs.frozen
class Wide(Env):
    @property
    def origins(self) -> list[str]:
        return self.ORIGIN.split(",")
    def nothing(self) -> None: ...

### env_nested_partials
@attrs.frozen
class HasSessions(Bindings):
    SESSIONS: KVNamespace
@attrs.frozen
class HasStores(HasSessions):
    COUNTERS: KVNamespace
@attrs.frozen
class Whole(HasStores):
    DB: D1Database
    LOG: D1Database
    FILES: R2Bucket
    JOBS: Queue[Job]
    AI: Ai
    ORIGIN: str
    MOST: int
    KEY: Secret

### names_inline
app = create_app(Env)
app.use(rate_limit(kv_binding="SESSIONS", limit=1, window=60), rate_limit(kv_binding="COUNTERS", limit=1, window=60))

### names_lambda
app = create_app(Env)
app.use(rate_limit(kv_binding=lambda req: req.env.COUNTERS, limit=1, window=60))

### names_final
NAME: Final = "COUNTERS"
limit: Final = rate_limit(kv_binding=NAME, limit=1, window=60)
app = create_app(Env)
app.post("/x", limit)

### names_computed
import os
app = create_app(Env)
app.use(rate_limit(kv_binding=os.environ.get("X", "COUNTERS"), limit=1, window=60))

### names_in_a_list
app = create_app(Env)
stack = [rate_limit(kv_binding="SESSIONS", limit=1, window=60), request_id(), logger()]
stack.append(rate_limit(kv_binding="COUNTERS", limit=1, window=60))
for step in stack:
    app.use(step)

### names_on_a_protocol
class HasCounters(Protocol):
    @property
    def COUNTERS(self) -> KVNamespace: ...
router: Router[HasCounters] = Router()
router.use(rate_limit(kv_binding="COUNTERS", limit=1, window=60))
app = create_app(Env)
app.use("/x", router)

### names_of_a_fake
@attrs.frozen
class Fake:
    ANY: KVNamespace
app = App(Fake)
app.use(rate_limit(kv_binding="ANY", limit=1, window=60))

### names_without_env
app = create_app()
app.use(rate_limit(kv_binding="ANYTHING", limit=1, window=60))

### names_by_attribute_or_alias
@attrs.frozen
class Fake:
    counters: KVNamespace = attrs.field(alias="COUNTERS")
app = App(Fake)
app.use(rate_limit(kv_binding="counters", limit=1, window=60))

### names_from_a_function
def limiter(most: int) -> Any:
    return rate_limit(kv_binding="SOMETHING", limit=most, window=60)
app = create_app(Env)
app.use(limiter(5))

### names_of_a_narrower_handler
class HasDB(Protocol):
    @property
    def DB(self) -> D1Database: ...
async def show(req: Request[HasDB], res: Response) -> None:
    res.json(await req.env.DB.prepare("SELECT id FROM users").all())
app = create_app(Env)
app.get("/x", rate_limit(kv_binding="SESSIONS", limit=1, window=60), show)

### params_plain
app = create_app(Env)
@app.get("/users/:id/posts/:post")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["id"], req.params["post"]])

### params_rest
app = create_app(Env)
@app.get("/files/*")
async def show(req: Request[Env], res: Response) -> None:
    res.text(req.params["*"])

### params_variables
app = create_app(Env)
@app.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    name = "id" if req.query.get("x") else "nope"
    for key in req.params:
        res.header("x", req.params[key])
    if name in req.params:
        res.text(req.params[name])
    params: Params[str] = req.params
    def take(given: Params) -> str:
        return given.get("nope", "")
    res.json([take(params), dict(req.params)])

### params_typed
app = create_app(Env)
@app.get("/orgs/:org")
async def show(req: Request[Env, object, Literal["org"]], res: Response) -> None:
    res.text(req.params["org"])
app.get("/orgs/:org/users/:id", show)

### params_two_paths
app = create_app(Env)
@app.get("/by-id/:id")
@app.get("/by-name/:name")
async def show(req: Request[Env], res: Response) -> None:
    res.text(req.params["id"] if "id" in req.params else req.params["name"])

### params_under_a_prefix
inner: Router[Env] = Router()
@inner.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    res.json([req.params["org"], req.params["id"]])
app = create_app(Env)
app.use("/orgs/:org", inner)

### params_under_a_constant_prefix
PREFIX: Final = "/teams/:team"
inner = Router[Env]()
@inner.get("/")
async def show(req: Request[Env, object, Literal["team"]], res: Response) -> None:
    res.json(req.params["team"])
app = create_app(Env)
app.use(PREFIX, inner)

### params_of_middleware
app = create_app(Env)
async def guard(req: Request[Env], res: Response, next: Next) -> None:
    if req.params["id"] == "0":
        raise CoreError(404, "none")
    await next()
async def show(req: Request[Env], res: Response) -> None: ...
app.get("/a/:id", guard, show)
app.get("/b/:id/:other", guard, show)

### params_computed_path
app = create_app(Env)
for kind in ("users", "posts"):
    @app.get(f"/{kind}/:id")
    async def show(req: Request[Env], res: Response) -> None:
        res.text(req.params["id"])

### params_in_a_factory
def make(prefix: str) -> Router[Env]:
    router: Router[Env] = Router()
    @router.get(prefix + "/:id")
    async def show(req: Request[Env], res: Response) -> None:
        res.text(req.params["whatever"])
    return router

### params_in_a_class
class Users:
    def __init__(self) -> None:
        self.router: Router[Env] = Router()
        self.router.get("/:id", self.show)
    async def show(self, req: Request[Env], res: Response) -> None:
        res.text(req.params["id"])

### handlers_last
app = create_app(Env)
async def guard(req: Request[Env], res: Response, next: Next) -> None:
    await next()
async def show(req: Request[Env], res: Response) -> None: ...
app.get("/a", guard, guard, show)
app.get("/b", guard)
app.get("/c", show)
@app.get("/d", guard)
async def d(req: Request[Env], res: Response) -> None: ...
app.all("/e", *[guard, guard], show)

### handlers_with_defaults
app = create_app(Env)
async def guard(req: Request[Env], res: Response, next: Next, *, strict: bool = False) -> None:
    await next()
async def show(req: Request[Env], res: Response, extra: int = 0) -> None: ...
app.get("/a", guard, show)

### handlers_partial
import functools
app = create_app(Env)
async def show(req: Request[Env], res: Response, *, title: str) -> None: ...
app.get("/a", functools.partial(show, title="a"))

### order_right
app = create_app(Env)
app.use(request_id())
app.use(logger(), secure_hdrs(), cors(origins=["https://a.example"]), timeout(duration=1000))

### order_logger_alone
app = create_app(Env)
app.use(logger())

### order_apart
app = create_app(Env)
app.use("/a", logger())
app.use("/b", request_id())
app.get("/c", request_id())

### order_branches
app = create_app(Env)
if __debug__:
    app.use(request_id(), logger())
else:
    app.use(logger())

### order_two_apps
one = create_app(Env)
two = create_app(Env)
one.use(logger())
two.use(request_id())

### order_twice
app = create_app(Env)
app.use(request_id())
app.use(logger())
app.use("/api", request_id(header_name="X-Inner"))

### order_in_functions
def a(app: App[Env]) -> None:
    app.use(logger())
def b(app: App[Env]) -> None:
    app.use(request_id())

### sql_first
@attrs.frozen
class UserRow:
    id: int
    name: str
    email: str | None
    manager_id: Optional[int]
    score: float
    avatar: bytes | None
    is_admin: bool
    created_at: datetime
    nickname: str | None = None
    missing: str = "default"
async def f(env: Env) -> UserRow | None:
    return await env.DB.prepare("SELECT * FROM users WHERE id = ?").bind(1).first(UserRow)

### sql_keyword_only
import dataclasses
@dataclasses.dataclass
class UserRow:
    id: int
    _: dataclasses.KW_ONLY
    name: str
async def f(env: Env) -> UserRow | None:
    return await env.DB.prepare("SELECT id, name FROM users WHERE id = ?").bind(1).first(UserRow)

### sql_names
async def f(env: Env) -> Any:
    count = await env.DB.prepare("SELECT count(*) AS n FROM users").first("n")
    other = await env.DB.prepare("SELECT count(*) FROM users").first("count(*)")
    return count, other

### sql_rows_of_joins
class Row(TypedDict):
    name: str
    title: str | None
    posts: NotRequired[int]
async def f(env: Env) -> list[Row]:
    statement = env.DB.prepare("SELECT u.name, p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id WHERE u.id = ?1")
    return (await statement.bind(1).all(Row)).results

### sql_filtered_nulls
@attrs.frozen
class Mail:
    email: str
async def f(env: Env) -> None:
    await env.DB.prepare("SELECT email FROM users WHERE email IS NOT NULL").all(Mail)
    await env.DB.prepare("SELECT email FROM users WHERE email = ?").bind("a").first(Mail)
    await env.DB.prepare("SELECT coalesce(email, '') AS email FROM users").all(Mail)
    await env.DB.prepare("SELECT u.email FROM users u JOIN users v ON v.email = u.email").all(Mail)
    await env.DB.prepare("UPDATE users SET email = ? WHERE id = ? RETURNING email").bind("a", 1).first(Mail)
    await env.DB.prepare("INSERT INTO users (name, email) VALUES (?, ?) RETURNING email").bind("a", "b").first(Mail)

### sql_inner_after_left
@attrs.frozen
class Row:
    title: str
async def f(env: Env) -> None:
    await env.DB.prepare(
        "SELECT p.title FROM users u LEFT JOIN posts p ON p.user_id = u.id WHERE p.title LIKE ?"
    ).bind("a%").all(Row)

### sql_expressions
@attrs.frozen
class Stats:
    most: float
    names: str
    flag: bool
    first: datetime
async def f(env: Env) -> None:
    await env.DB.prepare(
        "SELECT max(score) AS most, group_concat(name, ', ') AS names, 1 AS flag, min(created_at) AS first FROM users "
        "GROUP BY manager_id"
    ).all(Stats)

### sql_with
@attrs.frozen
class Row:
    id: int
    depth: int
async def f(env: Env) -> None:
    await env.DB.prepare(
        """
        WITH RECURSIVE chain(id, depth) AS (
          SELECT id, 0 FROM users WHERE id = ?
          UNION ALL
          SELECT u.id, chain.depth + 1 FROM users u JOIN chain ON u.manager_id = chain.id
        )
        SELECT id, depth FROM chain ORDER BY depth LIMIT ?
        """
    ).bind(1, 10).all(Row)

### sql_windows
async def f(env: Env) -> None:
    await env.DB.prepare(
        "SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY id) AS nth FROM posts"
    ).raw(column_names=True)

### sql_json
async def f(env: Env) -> None:
    await env.DB.prepare("SELECT json_extract(tags, '$[0]') AS t, tags ->> '$[0]' AS u FROM users").all()
    await env.DB.prepare("SELECT j.value FROM users, json_each(users.tags) AS j WHERE users.id = ?").bind(1).all()

### sql_upsert
async def f(env: Env) -> None:
    await env.DB.prepare(
        "INSERT INTO users (id, name, email) VALUES (?1, ?2, ?3) "
        "ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = coalesce(excluded.email, email)"
    ).bind(1, "a", None).run()

### sql_views_and_search
@attrs.frozen
class Author:
    id: int
    name: str
    posts: int
@attrs.frozen
class Page:
    title: str
    snippet: str
async def f(env: Env) -> None:
    await env.DB.prepare("SELECT * FROM authors").all(Author)
    await env.DB.prepare(
        "SELECT title, snippet(pages, 1, '<b>', '</b>', '…', 8) AS snippet FROM pages WHERE pages MATCH ? ORDER BY rank"
    ).bind("x").all(Page)

### sql_other_database
async def f(env: Env) -> None:
    log = env.LOG
    await log.prepare("INSERT INTO lines (id, at, text) VALUES (?, ?, ?)").bind("a", 1, None).run()
    await env.LOG.prepare("SELECT max(at) AS at FROM lines").first("at")

### sql_unknown_database
async def f(db: D1Database) -> None:
    await db.prepare("SELECT text FROM lines").all()

### sql_formatted
async def f(env: Env, ids: list[int], order: Literal["id", "name"]) -> None:
    marks = ", ".join("?" * len(ids))
    await env.DB.prepare(f"SELECT id FROM users WHERE id IN ({marks}) ORDER BY {order}").bind(*ids).all()

### sql_grown
async def f(env: Env, name: str | None) -> None:
    sql = "SELECT id FROM users"
    values: list[str] = []
    if name is not None:
        sql += " WHERE name = ?"
        values.append(name)
    await env.DB.prepare(sql).bind(*values).all()

### sql_reassigned
async def f(env: Env, late: bool) -> None:
    statement = env.DB.prepare("SELECT id FROM users WHERE id = ?")
    statement = statement.bind(1)
    await statement.first()
    other = env.DB.prepare("SELECT id FROM users") if late else env.DB.prepare("SELECT id FROM posts WHERE id = ?").bind(1)
    await other.all()

### sql_batches
async def f(env: Env, names: Sequence[str]) -> None:
    insert = env.DB.prepare("INSERT INTO users (name) VALUES (?)")
    statements = [insert.bind(name) for name in names]
    statements.append(env.DB.prepare("DELETE FROM posts"))
    await env.DB.batch(statements)
    await env.DB.batch([insert.bind("a"), env.DB.prepare("SELECT id FROM users"), *statements])

### sql_given_on
def by_id(db: D1Database) -> D1PreparedStatement:
    return db.prepare("SELECT id FROM users WHERE id = ?")
async def f(env: Env) -> None:
    await by_id(env.DB).bind(1).first()
    await env.DB.with_session("first-primary").prepare("SELECT id FROM users LIMIT ?").bind(1).all()

### sql_statements_in_a_class
class Users:
    def __init__(self, db: D1Database) -> None:
        self.db = db
        self.by_id = db.prepare("SELECT id FROM users WHERE id = ?")
    async def one(self, id: int) -> Any:
        return await self.by_id.bind(id).first()
    async def all(self) -> Any:
        return await self.db.prepare("SELECT at FROM lines").all()

### sql_kinds
class Role(Enum):
    ADMIN = "a"
UserId = NewType("UserId", int)
@attrs.frozen
class Row:
    id: UserId
    name: Role
    email: Literal["a", "b"] | None
    score: int | float
    tags: Any
    created_at: str | datetime
async def f(env: Env) -> None:
    await env.DB.prepare("SELECT id, name, email, score, tags, created_at FROM users").all(Row)

### sql_generic_and_private_fields
@attrs.frozen
class Row:
    _id: int
    name: str = attrs.field(alias="NAME")
    twice: str = attrs.field(init=False, default="")
    shout: str = attrs.field(converter=str, default="")
async def f(env: Env) -> None:
    await env.DB.prepare("SELECT id AS _id, name FROM users").all(Row)

### sql_runtime_tables
async def f(env: Env) -> None:
    await env.DB.prepare("CREATE TABLE IF NOT EXISTS later (id INTEGER PRIMARY KEY)").run()
    await env.DB.prepare("PRAGMA table_info(users)").all()
    await env.DB.exec("DELETE FROM later")

### sql_quoting
async def f(env: Env) -> None:
    await env.DB.prepare("""SELECT "id", [name], `email` FROM "users" WHERE name <> 'it''s ?' -- ?""").all()

### queue_right
app = create_app(Env)
@app.queue("jobs")
async def work(batch: MessageBatch[Job], env: Env, ctx: ExecutionContext) -> None:
    for message in batch.messages:
        message.ack()

### queue_any
app = create_app(Env)
@app.queue("jobs")
async def work(batch: MessageBatch[Any], env: Env, ctx: ExecutionContext) -> None: ...

### queue_computed
import os
app = create_app(Env)
@app.queue(os.environ.get("QUEUE", "jobs"))
async def work(batch: MessageBatch[str], env: Env, ctx: ExecutionContext) -> None: ...

### other_gets
from unittest.mock import Mock
table = {"/x": 1}
table.get("users")
class Client:
    def get(self, path: str) -> int:
        return 1
    def use(self, name: str) -> None: ...
    def prepare(self, sql: str) -> str:
        return sql
    def first(self, kind: str) -> str:
        return kind
    def bind(self, *values: int) -> None: ...
    def queue(self, name: str) -> None: ...
client = Client()
client.get("users")
client.use("logger")
client.prepare("SELECT nonsense")
client.bind(1, 2)
client.queue("none")
Mock().prepare("SELECT nonsense").bind(1).first("x")
'''
)


def write(root: Path, name: str, text: str) -> Path:
    """Write a program as a package with a configuration of its own, and return that."""
    parts = re.split(r"^#### (.+)\n", text, flags=re.MULTILINE)
    files = {
        "__init__.py": "",
        "app.py": HEAD + parts[0],
        **dict(zip(parts[1::2], parts[2::2], strict=True)),
        **MIGRATIONS,
    }
    own = files.pop("wrangler.toml", "")
    usual = WRANGLER.partition("\n# Each")[0]
    if ".queue(" not in text:  # nothing is to come from a queue that the program does not read
        usual = usual.replace('[[queues.consumers]]\nqueue = "jobs"\n', "")
    if own.startswith("main"):
        usual = usual.replace('main = "app.py"\n', own)
        own = ""
    for file, content in {**files, "wrangler.toml": usual + own}.items():
        path = root / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root / name / "wrangler.toml"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, mypy_cache: Path) -> Project:
    project = Project(tmp_path_factory.mktemp("corpus"), mypy_cache)
    project.write("wrangler.toml", WRANGLER)
    for name, text in MIGRATIONS.items():
        project.root.joinpath(name).parent.mkdir(exist_ok=True)
        project.root.joinpath(name).write_text(text)
    project.write("env.py", ENV)
    project.write("app.py", HEAD + "app = create_app(Env)\n" + PROGRAMS["queue_right"].partition("\n")[2])
    for name, text in PROGRAMS.items():
        project.root.joinpath(f"case_{name}.py").write_text(HEAD + text)
    for name, text in FORMS.items():
        write(project.root, name, text)
    return project


def test_mypy_says_nothing_about_correct_programs(corpus: Project) -> None:
    assert corpus.mypy() == []


_PARAMETER = re.compile(r'params\["(\w+)"\]')


def look(root: Path, name: str, text: str) -> Proof:
    root.mkdir(exist_ok=True)
    (root / "env.py").write_text(ENV)
    return prove(load_all(write(root, name, text)))


@pytest.mark.parametrize("name", FORMS)
def test_everything_in_a_correct_program_is_read(name: str, tmp_path: Path) -> None:
    text = FORMS[name]
    statements, parameters = text.count(".prepare("), len(_PARAMETER.findall(text))
    proof = look(tmp_path, name, text)
    assert [one.text for one in proof.findings] == [str(one) for one in proof.unread] == []
    assert proof.statements == statements

    text = re.sub(r"\bSELECT ", "SELECT nope, ", _PARAMETER.sub(r'params["\1_"]', text))
    text = text.replace(" WHERE ", " WHERE nope AND ").replace("SET score = ", "SET score = nope + ")
    text = text.replace("INTO posts (", "INTO posts (nope, ")
    found = look(tmp_path / "wrong", name, text).findings
    assert sum(one.code == "core-params" for one in found) == parameters
    assert len({(one.file, one.line) for one in found if "nope" in one.message}) == statements


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_is_correct_when_it_runs(corpus: Project, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(corpus.root))
    for module in ("env", f"case_{name}"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    spec = importlib.util.spec_from_file_location(f"case_{name}", corpus.root / f"case_{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module_ = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, f"case_{name}", module_)
    spec.loader.exec_module(module_)
    for value in list(vars(module_).values()):
        if isinstance(value, App):
            value.check()


@pytest.fixture
def monorepo(tmp_path: Path) -> Path:
    """Two workers, each with its configuration and its migrations, over one package."""
    for name, text in MONOREPO.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for worker, columns in (("users", "id INTEGER, name TEXT, email TEXT"), ("admin", "id INTEGER, name TEXT")):
        folder = tmp_path / "apps" / worker
        (folder / "migrations").mkdir()
        (folder / "migrations" / "1.sql").write_text(f"CREATE TABLE users ({columns});")
        (folder / "__init__.py").write_text("")
        binding = '[[d1_databases]]\nbinding = "DB"\ndatabase_name = "x"\n'
        (folder / "wrangler.toml").write_text(f'name = "{worker}"\nmain = "main.py"\n{binding}')
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "judge"),
    [("", "", None), ('params["id"]', 'params["team"]', "users"), ("SELECT name", "SELECT email", "admin")],
)
def test_a_shared_package_is_judged_by_each_worker_that_calls_it(
    monorepo: Path, old: str, new: str, judge: str | None
) -> None:
    shared = monorepo / "shared" / "users.py"
    shared.write_text(shared.read_text().replace(old, new))
    proofs = {name: prove(load_all(monorepo / "apps" / name / "wrangler.toml")) for name in ("users", "admin")}
    assert all((proof.unread, proof.handlers, proof.statements) == ([], 2, 1) for proof in proofs.values())
    assert {name: {one.file for one in proof.findings} for name, proof in proofs.items() if proof.findings} == (
        {} if judge is None else {judge: {str(shared)}}
    )
    told = Findings(str(monorepo / "mypy.ini"), monorepo, sys.executable).by_file
    assert {*told} == (set() if judge is None else {str(shared)})
