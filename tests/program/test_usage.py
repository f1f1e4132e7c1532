"""`core-handler` and `core-await` as `core check` tells them, which reads no types; and what is no mistake."""

from __future__ import annotations

import inspect
import pydoc
from pathlib import Path

from core import pagination, passwords
from core.config.load import load_all
from core.middleware import sessions
from core.program.proof import check_program
from core.program.receivers import ASYNC_FUNCTIONS, async_methods

HEAD = """\
import asyncio
import attrs
from core import Bindings, CoreError, D1Database, DurableObject, DurableObjectNamespace, DurableObjectState
from core import DurableObjectStorage, ExecutionContext, KVNamespace, Next, Request, Response, Router, create_app, http

class Room(DurableObject[Bindings]):
    async def tell(self, count):
        return count

@attrs.frozen
class Env(Bindings):
    KV: KVNamespace
    ROOMS: DurableObjectNamespace[Room]

app = create_app(Env)
"""
WRANGLER = """\
name = "x"
main = "main.py"
[[kv_namespaces]]
binding = "KV"
id = "a"
[[durable_objects.bindings]]
name = "ROOMS"
class_name = "Room"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Room"]
"""


def found(place: Path, *texts: str, **modules: str) -> list[list[tuple[int, str]]]:
    """The lines and codes of the findings in each text, a module of one program; below its head is line 1."""
    modules |= {f"case{number}": HEAD + text for number, text in enumerate(texts)}
    modules["main"] = HEAD + "".join(f"import case{number}\n" for number in range(len(texts)))
    for name, text in modules.items():
        (place / f"{name}.py").write_text(text)
    (place / "wrangler.toml").write_text(WRANGLER)
    each: dict[str, list[tuple[int, str]]] = {f"case{number}": [] for number in range(len(texts))}
    for finding in check_program(load_all(place / "wrangler.toml")):
        each[Path(finding.file).stem].append((finding.line - HEAD.count("\n"), finding.code))
    return [*each.values()]


def handler(*lines: str, head: str = "async def show(req, res):") -> str:
    return "\n".join(['@app.get("/:id")', head, *(f"    {line}" for line in lines)]) + "\n"


WRONG = [
    (handler("res.json(limit)", head="async def show(req, res, limit: int = 10):"), 2),
    (handler("res.json(limit)", head="async def show(req, res, *, limit: int = 10):"), 2),
    (handler("return {}"), 3),
    (handler("if req.path:", "    return res.json(1)", "return [1]"), 5),
    (handler("if req.path:", "    res.json(1)", "    return", "return 'a', 404"), 6),
    (handler("res.status(201)", "return f'{req.path}'"), 4),
    (handler("return http.Response('a')"), 3),
    (handler("res.send()", head="def show(req, res):"), 1),
    (handler("res.send()", head="async def show(req):"), 1),
    (handler("res.send()", head="async def show():"), 1),
    (handler("res.send()", head="async def show(req, res, id, more):"), 1),
    (handler("res.send()", head="async def show(response, request):"), 1),
    ("def show(req, res): res.send()\napp.get('/', show)\n", 2),
    ("class A:\n    def show(self, req, res): ...\na = A()\napp.get('/', a.show)\n", 4),
    ("async def failed(err, req, res, next): ...\napp.use(failed)\n", 2),
    ("async def show(req, res): ...\napp.use('/a', show)\n", 2),
    (handler("raise CoreError('Not found', 404)"), 3),
    (handler("raise CoreError(200, 'a')"), 3),
    (handler("res.json(await Env.KV.get('a'))"), 3),
    (handler("res.status(7).json({})"), 3),
    (handler("res.status(101).send()"), 3),
    (handler("res.header('a', 'b').redirect('/b', 200)"), 3),
    (handler("res.redirect('/b', status=404)"), 3),
    (handler("req.ctx.wait_until(job)") + "async def job(): ...\n", 3),
    ("async def job(): ...\nasync def work(batch, env, ctx: ExecutionContext):\n    ctx.wait_until(job)\n", 3),
    (handler("res.json({}, 201)"), 3),
    (handler("res.header('a', 'b').text('', status=201)"), 3),
    (handler("return req.body", head="async def show(req: Request[Env], res):"), 3),
    (handler("r = req", "res.text(r.query_params['a'])"), 4),
    (handler("res.set_header('a', 'b')"), 3),
    (handler("res.abc()"), 3),
    (handler("res.status(201).jsn({})"), 3),
    (handler("res.text(req.heders['a'])"), 3),
    (handler("req.ctx.waitUntil(1)"), 3),
    (handler("await req.env.KV.gett('a')", "res.send()", head="async def show(req: Request[Env], res):"), 3),
    ("async def keep(db: D1Database):\n    await db.prepar('SELECT 1')\n", 2),
    (handler("res.send(http.Response.json({}))"), 3),
    ("@app.route('/')\nasync def show(req, res): ...\n", 1),
    ("router: Router[Env] = Router()\napp.include_router(router)\n", 2),
    ("def register(app):\n    app.run()\napp.run(port=1)\n", 3),
    (handler("res.json(req.env.VK)", head="async def show(req: Request[Env], res):"), 3),
    ("@app.on_error\nasync def failed(err, req, res): ...\n", 1),
    ("@app.on_error(ValueError)\ndef failed(err, req, res, next): ...\n", 1),
    ("def sent(f):\n    return f\n@app.get('/')\n@sent\nasync def show(req, res):\n    return {}\n", 6),
    ("async def show(*given): ...\napp.get('/', show)\n", 2),
    (handler("if req.path:", "    CoreError(404, 'Not found')", "res.json({})"), 4),
    ("class Gone(CoreError): ...\n" + handler("Gone(410, 'a')", "res.json({})"), 4),
    (handler("res.status(201).json({})", "x = 1", "return res.send()"), 5),
    (handler("if req.path:", "    res.status(404).json({})", "res.json({})"), 5),
    (
        handler("if req.path:", "    pass", "elif req.url:", "    if req.id:", "        res.send()", "res.json({})"),
        8,
    ),
    (handler("for _ in 'ab':", "    res.text('a')", "    res.text('b')"), 5),
    ("async def refuse(res: Response) -> None:\n    res.send()\n    res.json({})\n", 3),
]


def test_a_shape_that_does_not_work_is_found(tmp_path: Path) -> None:
    each = found(tmp_path, *(text for text, _ in WRONG))
    assert dict(zip(WRONG, each, strict=True)) == {case: [(case[1], "core-handler")] for case in WRONG}


RIGHT = [
    handler("res.json({})", "return {}"),
    handler("res.json(req.env.KV)", head="async def show(req: Request[Env], res):"),
    "@app.on_error\nasync def failed(err, req, res, next): ...\n",
    "def on_error(f): return f\n@on_error\ndef failed(err): ...\n",
    handler("error = CoreError(404, 'a')", "raise error"),
    handler("if req.path:", "    res.json({})", "return {}"),
    handler("other(res)", "return {}") + "def other(res): res.json({})\n",
    handler("def inner(): res.json({})", "inner()", "return {}"),
    handler("for _ in [1, 2]:", "    if req.path:", "        return {}", "    res.json({})"),
    handler("return res.json({})"),
    handler("return None"),
    handler("if req.path:", "    return res.json({})", "res.json({})"),
    handler("if req.path:", "    res.send()", "    return", "res.json({})"),
    handler("if req.path:", "    res.send()", "else:", "    res.json({})"),
    handler("if req.path:", "    res.send()", "if not req.path:", "    res.json({})"),
    handler("if req.path:", "    res.send()", "if req.path:", "    return", "res.json({})"),
    handler("res.send()", "res.discard()", "res.json({})"),
    handler("res.send()", "again(res)", "res.json({})") + "def again(res): res.discard()\n",
    handler("res.send()", "try:", "    res.send()", "except ValueError:", "    res.send()"),
    handler("res.json({})", "res.status(201)"),
    handler("for _ in 'ab':", "    if req.path:", "        res.send()", "        break", "else:", "    res.json({})"),
    "async def twice(req, res: Response, next):\n    res.send()\n    await next()\n    res.json({})\n",
    "def both(a: Response, b: Response):\n    a.send()\n    b.send()\n",
    "def other(res):\n    res.send()\n    res.send()\n",
    "async def timing(req, res, next): await next()\napp.use(timing)\napp.get('/', timing, timing)\n",
    "async def show(req, res, extra=None): res.send()\napp.get('/', show)\n",
    "for n in 'ab':\n    @app.get(f'/{n}')\n    async def show(req, res, n=n): res.text(n)\n",
    handler("res.json(limit)", head="async def show(req, res, limit=10):")
    + "async def all(a, b): await show(a, b, 5)\n",
    (
        "def paged(f):\n    async def inner(req, res):\n        await f(req, res, limit=5)\n    return inner\n"
        "@app.get('/')\n@paged\nasync def show(req, res, limit=10): res.json(limit)\n"
    ),
    "class A:\n    async def show(req, res): ...\napp.get('/', A.show)\n",
    "class A:\n    @staticmethod\n    async def show(req, res): ...\napp.get('/', A.show)\n",
    "class A:\n    async def show(self, req, res): ...\na = A()\napp.get('/', a.show)\n",
    handler("raise CoreError(404, 'Not found')"),
    handler("res.status(int(req.query['a'])).json({})"),
    handler("if req.path:", "    res.status(418).json({})", "else:", "    res.redirect('/b', 308)"),
    "def other(job):\n    job.status(7)\n    job.redirect('a', 7)\n",
    handler("raise CoreError(int(req.params['id']), 'a')"),
    handler("class CoreError(Exception): ...", "raise CoreError('Not found', 404)"),
    handler("req.ctx.wait_until(job())") + "async def job(): ...\n",
    "def ready(): ...\nasync def test(page):\n    page.wait_until(ready)\n",
    handler("values = ({},)", "res.json(*values)"),
    "def f(res, req, app):\n    res.json(1, 2)\n    req.body\n    app.run()\n",
    "app.state = 1\nprint(app.state)\n",
    "class Held:\n    KV: KVNamespace\n    LIMIT: int = 5\n\ndef f():\n    Held.KV.get('a')\n    return Env.KV, Env.__name__.lower()\n",
    handler("if hasattr(res, 'abc'):", "    res.abc()", "res.send()"),
    handler("class Mine: ...", "if isinstance(res, Mine):", "    res.abc()", "res.send()"),
    (
        "def with_user(f):\n    async def inner(req, res):\n        await f(res, 'a')\n        res.send()\n    return inner\n"
        "@app.get('/')\n@with_user\nasync def show(a, b):\n    a.status(201)\n    b.upper()\n"
    ),
    handler("res.text(req.tenant)"),
    "async def tenant(req, res: Response, next):\n    req.tenant = 1\n    await next()\n",
    "class Mine(KVNamespace):\n    def more(self): ...\nasync def keep(kv: Mine):\n    kv.more()\n",
    "from core.testing import FakeKVNamespace\ndef called(kv: FakeKVNamespace):\n    return kv.calls\n",
    "from core.bindings.fetcher import Fetcher\nasync def ask(other: Fetcher):\n    await other.verify()\n",
    handler("res.send((await http.Response('a').json())['a'])"),
    handler("app = object()", "app.run()"),
    "try:\n    from core import HTTPException\nexcept ImportError:\n    pass\n",
]


def test_a_shape_that_works_or_is_not_known_is_not(tmp_path: Path) -> None:
    each = found(tmp_path, *RIGHT)
    assert dict(zip(RIGHT, each, strict=True)) == {text: [] for text in RIGHT}


NOT_AWAITED = [
    (handler("req.env.KV.put('a', 'b')", "res.send()"), 3),
    (handler("note = req.json()", "res.json({'t': note['text']})"), 4),
    (handler("res.text(req.json().text)"), 3),
    (handler("if req.env.KV.get('a'):", "    res.send()"), 3),
    (handler("res.text(f\"{req.env.KV.get('a')}\")"), 3),
    (handler("res.text(str(req.env.KV.get('a')))"), 3),
    (handler("kept = req.env.KV.get('a')", "if kept is None:", "    return", "res.json(await kept)"), 4),
    (handler("kept = req.env.KV.get('a')", "res.text('b' if kept else 'c')"), 4),
    (handler("kept = req.json()", "res.text(f'{kept}')"), 4),
    (handler("req.env.ROOMS.get_by_name('a').tell(5)", "res.send()"), 3),
    (handler("room = req.env.ROOMS.get_by_name('a')", "res.json({'count': room.tell(5)})"), 4),
    ("class R(DurableObject[Env]):\n    async def f(self):\n        return str(self.ctx.storage.get('a') or 0)\n", 3),
    ("async def seen(storage: DurableObjectStorage):\n    storage.put('a', 1)\n", 2),
    ("async def seen(state: DurableObjectState):\n    if not state.storage.get('a'): ...\n", 2),
    (handler("kv = req.env.KV", "res.json([kv.get('a')])"), 4),
    (handler("job()", "res.send()") + "async def job(): ...\n", 3),
    ("class A:\n    async def job(self): ...\n    async def run(self):\n        self.job()\n", 4),
    ("async def timing(req, res: Response, next):\n    next()\n", 2),
    ("async def keep(kv: KVNamespace):\n    kv.put('a', 'b')\n", 2),
    ("def kept(env: Env) -> KVNamespace: return env.KV\nasync def keep(env: Env):\n    kept(env).put('a', 'b')\n", 3),
    (
        "class A:\n    def __init__(self, kv: KVNamespace): self.kv = kv\n    async def f(self): self.kv.put('a', 'b')\n",
        3,
    ),
    (handler("kv = req.env.KV if req.path else req.env.KV", "kv.put('a', 'b')", "res.send()"), 4),
    ("async def all(db: D1Database):\n    db.prepare('SELECT 1').all()\n", 2),
    ("from core import passwords\nasync def right(a: str):\n    return not passwords.verify(a, None) or not a\n", 3),
    ("from core.passwords import hash as hashed\nasync def kept(a: str):\n    hashed(a)\n", 3),
]


def test_a_call_that_was_not_awaited_is_found(tmp_path: Path) -> None:
    each = found(tmp_path, *(text for text, _ in NOT_AWAITED))
    assert dict(zip(NOT_AWAITED, each, strict=True)) == {case: [(case[1], "core-await")] for case in NOT_AWAITED}


AWAITED = [
    handler("await req.env.KV.put('a', 'b')", "res.send()"),
    handler("note = req.json()", "note = await note", "res.json(note['text'])"),
    handler("calls = [req.env.KV.get(key) for key in 'ab']", "res.json(await asyncio.gather(*calls))"),
    handler("waiting = req.env.KV.get('a')", "res.json(await waiting)", "waiting.close()"),
    handler("room = req.env.ROOMS.get_by_name('a')", "res.json([await room.tell(1), room.id])"),
    handler("kept = req.env.KV.get('a')", "kept = await kept", "if kept is None: ...", "res.json(str(kept))"),
    handler("kept = {req.env.KV.get(key): key for key in 'ab'}", "for each in kept:", "    res.text(str(await each))"),
    handler("def str(a): return a", "res.json(await str(req.env.KV.get('a')))"),
    "class R(DurableObject[Env]):\n    async def f(self):\n        return str(self.ctx.storage.kv.get('a') or 0)\n",
    "class R(DurableObject[Env]):\n    ctx = {}\n    async def f(self): return str(await self.ctx.get('a'))\n",
    handler("req.ctx.wait_until(req.env.KV.put('a', 'b'))", "res.send()"),
    handler("cached = req.path and req.env.KV.get('a')", "res.json(await cached)"),
    handler("async for part in parts():", "    print(part)", "parts()") + "async def parts():\n    yield 1\n",
    handler("task = asyncio.create_task(job())", "task.cancel()") + "async def job(): ...\n",
    "async def timing(req, res, next: Next):\n    return await next()\n",
    "def walk(next):\n    next()\n",
    "def keep(kv):\n    kv.put('a', 'b')\n",
    "def sync(f): return f\n@sync\nasync def job(): ...\nasync def other():\n    job()\n",
]


def test_a_call_that_is_awaited_or_not_known_is_not(tmp_path: Path) -> None:
    each = found(tmp_path, *AWAITED)
    assert dict(zip(AWAITED, each, strict=True)) == {text: [] for text in AWAITED}


def test_what_one_request_cannot_await_of_another_is_found_where_it_waits(tmp_path: Path) -> None:
    text = handler("await ready.wait()", "own = asyncio.Event()", "await own.wait()", "ready.set()")
    assert found(tmp_path, "from other import ready\n" + text, other="import asyncio\nready = asyncio.Event()\n") == [
        [(4, "core-worker")]
    ]


def test_a_module_that_imports_a_name_from_itself_is_read(tmp_path: Path) -> None:
    assert found(tmp_path, "from case0 import show\napp.get('/', show)\n") == [[(1, "core-import")]]


def test_the_methods_and_functions_that_are_awaited_are_those_of_the_framework() -> None:
    assert async_methods("Request") == {"bytes", "form", "is_disconnected", "json", "text"}
    assert async_methods("D1PreparedStatement") == {"all", "first", "one", "raw", "run"}
    assert async_methods("Queue") == {"metrics", "send", "send_batch"}
    modules = (pagination, passwords, sessions)
    named = {f"{module.__name__}.{name}" for module in modules for name in module.__all__}
    assert {name for name in named if inspect.iscoroutinefunction(pydoc.locate(name))} == ASYNC_FUNCTIONS
