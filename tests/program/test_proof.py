"""`core check` reads the whole program from its text, where the mypy plugin sees one module at a time."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config.load import load_all
from core.errors import ConfigurationError
from core.program.proof import Options, check_program, find_env
from core.program.registered import refused
from core.program.table import Place, Refusal

WRANGLER = """\
name = "shop"
main = "src/app.py"

[[kv_namespaces]]
binding = "SESSIONS"

[[d1_databases]]
binding = "DB"

[[queues.producers]]
binding = "JOBS"
queue = "jobs"

[vars]
ORIGIN = "https://example.com"
"""

ENV = """\
import attrs
from core import Bindings, D1Database, KVNamespace, Queue

@attrs.frozen
class Job:
    id: int

@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    DB: D1Database
    JOBS: Queue[Job]
    ORIGIN: str
"""

MIGRATION = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT);\n"

HEAD = """\
from core import MessageBatch, Request, Response, Router, create_app
from core.middleware.rate_limit import rate_limit
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from env import Env, Job
"""


def project(root: Path, **files: str) -> Path:
    """Write a project; `src__app` is `src/app.py`, and `app` stands for the entry file below the usual imports."""
    defaults = {"wrangler.toml": WRANGLER, "src/env.py": ENV, "migrations/0001_init.sql": MIGRATION, "src/app.py": HEAD}
    for name, text in files.items():
        path = (
            "src/app.py"
            if name == "app"
            else f"{name.replace('____init__', '/@').replace('__', '/').replace('@', '__init__')}.py"
        )
        defaults[path] = (HEAD if name == "app" else "") + textwrap.dedent(text)
    if "app = " not in defaults["src/app.py"]:
        defaults["src/app.py"] += "\napp = create_app(Env)\n"
    for name, text in defaults.items():
        path_ = root / name
        path_.parent.mkdir(parents=True, exist_ok=True)
        path_.write_text(text)
    return root


def check(root: Path, options: Options | None = None) -> list[str]:
    """The findings, with paths from the project on."""
    found = check_program(load_all(root / "wrangler.toml"), options)
    return [f"{Path(f.file).relative_to(root.resolve())}:{f.line} {f.code}: {f.message}" for f in found]


def line_of(root: Path, file: str, text: str) -> int:
    return next(n for n, line in enumerate((root / file).read_text().splitlines(), 1) if text in line)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path.resolve()


# Which files ----------------------------------------------------------------------------------------------------------


def test_only_what_the_entry_file_imports_is_checked(root: Path) -> None:
    other = "import attrs\nfrom core import Bindings\n@attrs.frozen\nclass Other(Bindings):\n    X: str\n"
    project(root, src__unused=other, tests__test_app=other)
    assert check(root) == []
    assert len(check(root, Options(paths=[root / "src" / "unused.py"]))) == 2 + 3
    assert len(check(root, Options(paths=[root / "tests"]))) == 5


def test_imports_are_followed_into_packages_functions_and_relatively(root: Path) -> None:
    bad = "\n\nasync def f(req, res):\n    req.params['x']\n"
    project(
        root,
        app="from shop.routes import users\nimport shop.late, shop.lazy\napp = create_app(Env)\n"
        "app.use('/users', users.router)\n",
        src__shop____init__="",
        src__shop__routes____init__="from . import users, teams\n",
        src__shop__routes__users="from ..base import router\n\n@router.get('/:id')\nasync def f(req, res):\n    req.params['idd']\n",
        src__shop__routes__teams="def late():\n    import shop.lazy\n",
        src__shop__lazy="from shop.base import router\n\n@router.get('/lazy/:id')\nasync def f(req, res):\n    req.params['iid']\n",
        src__shop__base="from core import Router\nrouter = Router()\n",
        src__shop__late=bad,
    )
    assert check(root) == [
        'src/shop/lazy.py:5 core-params: req.params["iid"]: the path /users/lazy/:id has no parameter iid. Did you mean id?',
        'src/shop/routes/users.py:5 core-params: req.params["idd"]: the path /users/:id has no parameter idd. Did you mean id?',
    ]


def test_a_missing_entry_file_and_a_file_that_is_no_python_are_findings(root: Path) -> None:
    project(root, app="import broken\n", src__broken="def f(:\n")
    assert check(root) == ["src/broken.py:1 core-import: syntax error: invalid syntax. Fix it"]
    (root / "wrangler.toml").write_text(WRANGLER.replace("src/app.py", "src/main.py"))
    assert "wrangler.toml:2 core-env: main: there is no file src/main.py. Write it, or correct main" in check(root)
    (root / "wrangler.toml").write_text(WRANGLER.replace("src/app.py", "wrangler.toml"))
    told = "main: wrangler.toml is not a Python file. Write the one that has `app`"
    assert f"wrangler.toml:2 core-env: {told}" in check(root)


def test_without_a_python_entry_all_files_but_tests_are_checked(root: Path) -> None:
    project(root, tests__test_env="from core import Bindings\nclass E(Bindings):\n    X: str\n")
    (root / "wrangler.toml").write_text(WRANGLER.replace('main = "src/app.py"\n', "").replace("SESSIONS", "SESSION"))
    assert check(root) == [
        (
            "src/env.py:10 core-env: Env.SESSIONS: no binding of that name in wrangler.toml. Did you mean SESSION "
            "(wrangler.toml:4 [[kv_namespaces]])?"
        )
    ]


def test_what_fails_while_the_application_is_imported_is_one_finding(root: Path) -> None:
    project(root, app="from users import users\nraise SystemExit(3)\n", src__users="from env import Evn\nusers = 1\n")
    assert check(root) == [
        "src/app.py:7 core-import: importing the program fails here: SystemExit: 3. Fix it, or let a lifespan do it",
        "src/users.py:1 core-import: env has no Evn. Did you mean Env?",
    ]


def test_a_protocol_that_core_itself_does_not_have_is_told_its_module(root: Path) -> None:
    project(root, app="from core import RateLimit\n")
    assert check(root) == [
        "src/app.py:6 core-import: core has no RateLimit. Write from core.bindings.rate_limit import RateLimit"
    ]


def test_a_module_of_the_runtime_is_told_where_it_is_there(root: Path) -> None:
    told = "there is no module js. Import it in the function that needs it, and run that with `core serve`: "
    project(root, app="import js\napp = create_app(Env)\n")
    assert check(root)[0].startswith(f"src/app.py:6 core-import: {told}")
    installed = Refusal(
        "ModuleNotFoundError", "No module named 'js'", Place("app.py", 1)
    )  # in a package that it imports
    assert refused(installed).message.startswith(told)


def test_every_tool_prompt_and_resource_that_is_refused_is_told_at_its_line(root: Path) -> None:
    project(
        root,
        app="""
        from core.mcp import MCP
        app = create_app(Env)
        mcp = MCP(app, "notes")
        @mcp.tool
        async def one(req: Request[Env], id: int) -> str:
            return ""
        @mcp.tool
        async def two(req: Request[Env], file: memoryview) -> str:
            \"\"\"Two.\"\"\"
            return ""
        async def show(req: Request[Env], res: Response) -> None:
            \"\"\"Show.\"\"\"
        mcp.expose(show)
        @mcp.resource("notes:///{id}")
        async def note(req: Request[Env], name: str) -> str:
            \"\"\"Note.\"\"\"
            return ""
        @mcp.prompt
        async def hello(req: Request[Env]) -> str:
            \"\"\"Hello.\"\"\"
            return ""
        @mcp.complete(hello, "text")
        async def texts(req: Request[Env], text: str) -> list[str]:
            return []
        """,
    )
    assert [told.partition(". ")[0] for told in check(root)] == [
        "src/app.py:10 core-route: tool one: one has no docstring, which is what a model chooses by",
        "src/app.py:13 core-route: tool two: file is or has memoryview, which JSON cannot hold",
        "src/app.py:19 core-route: expose(show): it is the handler of no route here",
        "src/app.py:20 core-route: resource notes:///{id}: the names in braces and the parameters of note are the same ones",
        "src/app.py:28 core-route: complete(hello, 'text'): no prompt or resource with such a parameter",
    ]


def test_a_route_that_is_no_tool_is_told_at_its_line(root: Path) -> None:
    project(
        root,
        app="""
        from core.mcp import MCP
        from users import users
        app = create_app(Env)
        app.use("/users", users)
        @app.get("/", tool=True)
        async def fine(req: Request[Env], res: Response) -> None:
            \"\"\"Fine.\"\"\"
        mcp = MCP(app, "notes")
        """,
        src__users="""
        from core import Request, Response, Router
        from env import Env
        users: Router[Env] = Router()
        @users.get("/:id", tool=True)
        async def show(req: Request[Env], res: Response) -> None: ...
        """,
    )
    assert [told.partition(". ")[0] for told in check(root)] == [
        "src/users.py:5 core-route: tool show: show has no docstring, which is what a model chooses by"
    ]


def test_a_tool_that_sends_no_body_to_a_route_that_reads_one_is_told(root: Path) -> None:
    project(
        root,
        app="""
        from typing import TypedDict
        from core.mcp import MCP
        app = create_app(Env)
        @app.post("/a", tool=True)
        async def add(req: Request[Env], res: Response) -> None:
            \"\"\"Add.\"\"\"
            await req.json(User)
        @app.post("/b")
        async def keyed(req: Request[Env], res: Response) -> None:
            \"\"\"Add one.\"\"\"
            await req.json(User, key="user")
        @app.put("/c")
        async def fine(req: Request[Env], res: Response) -> None:
            \"\"\"Put.\"\"\"
            await req.json(User)
        @app.get("/d/:id", tool=True)
        async def path(req: Request[Env], res: Response) -> None:
            \"\"\"Show.\"\"\"
            await req.env.DB.prepare("SELECT 1").first()
        class User(TypedDict):
            id: int
        mcp = MCP(app, "notes")
        mcp.expose(keyed)
        mcp.expose(fine, body=User)
        """,
    )
    first, second = check(root)
    assert first == (
        "src/app.py:13 core-handler: req.json(User): the tool add sends no body, and is answered with 400. Name what it reads: "
        "mcp.expose(add, body=User)"
    )
    assert second == (
        "src/app.py:17 core-handler: req.json(User, key='user'): the tool keyed sends no body, and is answered with 400. "
        "Name what it reads: mcp.expose(keyed, body=User, key='user')"
    )


def test_a_tool_without_a_server_is_told_at_its_line(root: Path) -> None:
    project(root, app="app = create_app(Env)\n@app.get('/', tool=True)\nasync def show(req, res): ...\n")
    assert [told.partition(". ")[0] for told in check(root)] == [
        "src/app.py:7 core-route: GET /: tool=True, and no MCP server would offer it"
    ]


def test_a_module_of_the_framework_whose_extra_is_missing_has_names_that_nobody_knows(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "core.hosts.otel", raising=False)
    project(root, app="def later():\n    from core.hosts.otel import OpenTelemetry\napp = create_app(Env)\n")
    assert check(root) == []


def test_imports_that_a_start_does_not_run_are_of_what_exists(root: Path) -> None:
    project(
        root,
        app="""
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from core import Requset
            from users import Uesr, users
            from core.middleware.jwt import jwt_auth, no_auth
            from core.http import WebSocket
        def later():
            from users import nothing, __doc__
            from shop import of, absent
            import core.nowhere, shop.of, shop.absent
            try:
                from users import fast
            except ImportError:
                fast = None
        app = create_app(Env)
        """,
        src__users="from env import Env\nclass User: pass\nusers = 1\n",
        src__shop____init__="",
        src__shop__of="",
    )
    assert check(root) == [
        "src/app.py:9 core-import: core has no Requset. Did you mean Request?",
        "src/app.py:10 core-import: users has no Uesr. Did you mean User?",
        "src/app.py:11 core-import: core.middleware.jwt has no no_auth. Did you mean jwt_auth?",
        (
            'src/app.py:12 core-import: core.http has no WebSocket. In core this is `@app.websocket("/path")` over '
            "`async def handler(req, socket)`; its type is `WebSocket` of `core.http.websocket`"
        ),
        "src/app.py:14 core-import: users has no nothing. Correct the name, or define it there",
        "src/app.py:15 core-import: shop has no absent. Correct the name, or define it there",
        "src/app.py:16 core-import: there is no module core.nowhere. Correct the name",
        "src/app.py:16 core-import: there is no module shop.absent. Install the package where this runs, or correct the name",
    ]


# Across modules -------------------------------------------------------------------------------------------------------


def test_a_handler_of_another_module_is_checked_against_its_path(root: Path) -> None:
    project(
        root,
        app="from handlers import show\nimport handlers\napp = create_app(Env)\napp.get('/users/:id', show)\n"
        "app.put('/users/:id', handlers.change)\n",
        src__handlers="async def show(req, res):\n    req.params['idd']\n\nasync def change(req, res):\n    req.params['id']\n",
    )
    assert check(root) == [
        'src/handlers.py:2 core-params: req.params["idd"]: the path /users/:id has no parameter idd. Did you mean id?'
    ]


def test_a_type_of_json_that_has_itself_inside_is_read_to_the_end_of_the_value(root: Path) -> None:
    project(
        root,
        app="""
        from typing import Union
        import attrs
        Json = Union[int, "list[Json]"]
        @attrs.frozen
        class Limited(Env):
            LIMITS: list[Json]
        app = create_app(Limited)
        """,
    )
    config = root / "wrangler.toml"
    config.write_text(f"{config.read_text()}LIMITS = [1, [2, [3]]]\n")
    assert check(root) == []
    config.write_text(config.read_text().replace("[3]", '["3"]'))
    (found,) = check(root)
    assert "LIMITS[1] is a list, not an int | list[int | list[Json]]" in found, found


def test_what_a_class_of_another_module_gives_its_objects_is_followed(root: Path) -> None:
    project(
        root,
        app="""
        from texts import Kept, PATH

        class Users(Kept):
            async def show(self, req: Request[Env], res: Response) -> None:
                await self.db.prepare(self.SQL).all()

        app = create_app(Env)
        app.get(PATH + "/:id{")
        """,
        src__texts="""
        from core import D1Database

        PATH = "/users"

        class Kept:
            SQL = "SELECT nmae FROM users"

            def __init__(self, db: D1Database) -> None:
                self.db = db
        """,
    )
    statement, path = check(root)
    assert statement.startswith(
        f"src/app.py:{line_of(root, 'src/app.py', 'self.SQL')} core-sql: DB: no such column: nmae"
    )
    assert path.startswith(f"src/app.py:{line_of(root, 'src/app.py', 'PATH +')} core-params: ")


def test_a_limiter_of_another_module_is_checked_where_it_is_made(root: Path) -> None:
    project(
        root,
        app="from limits import limited\napp = create_app(Env)\napp.use(limited)\n",
        src__limits="from core.middleware.rate_limit import rate_limit\nfrom names import STORE\n"
        "limited = rate_limit(kv_binding=STORE, limit=1, window=60)\n",
        src__names="from typing import Final\nSTORE: Final = 'SESION'\n",
    )
    assert check(root) == [
        'src/limits.py:3 core-binding: rate_limit(kv_binding="SESION"): Env has no attribute SESION. Did you mean SESSIONS?'
    ]


def test_a_router_without_an_env_has_that_of_what_it_is_mounted_on(root: Path) -> None:
    router = "from core import Router\nfrom core.middleware.rate_limit import rate_limit\nusers = Router()\n"
    project(
        root,
        app="from users import users\napp = create_app(Env)\napp.use('/users', users)\n",
        src__users=router + "users.get('/', rate_limit(kv_binding='DB', limit=1, window=60))\n",
    )
    assert check(root) == [
        (
            'src/users.py:4 core-binding: rate_limit(kv_binding="DB"): Env.DB is a D1Database, not a KVNamespace. '
            "Did you mean SESSIONS?"
        )
    ]


def test_a_router_that_is_mounted_on_two_different_envs_is_not_judged(root: Path) -> None:
    project(
        root,
        app="import attrs\nfrom core import Bindings\nfrom users import users\nclass Other(Env): pass\n"
        "create_app(Env).use(users)\ncreate_app(Other).use(users)\n",
        src__users="from core import Router\nfrom core.middleware.rate_limit import rate_limit\nusers = Router()\n"
        "users.use(rate_limit(kv_binding='X', limit=1, window=60))\n",
    )
    assert check(root) == []


def test_an_app_made_in_a_function_and_one_that_is_handed_over_are_understood(root: Path) -> None:
    project(
        root,
        app="""
        from core import App
        def make():
            app = create_app(Env)
            @app.get("/a/:id")
            async def show(req: Request[Env], res: Response) -> None:
                req.params["x1"]
            register(app)
            return app

        def register(app: App[Env]) -> None:
            @app.get("/b/:id")
            async def show(req: Request[Env], res: Response) -> None:
                req.params["x2"]
            app.use(rate_limit(kv_binding="ORIGIN", limit=1, window=60))

        app = make()
        """,
    )
    assert [line.partition(": ")[2] for line in check(root)] == [
        'req.params["x1"]: the path /a/:id has no parameter x1. It has id',
        'req.params["x2"]: the path /b/:id has no parameter x2. It has id',
        'rate_limit(kv_binding="ORIGIN"): Env.ORIGIN is a str, not a KVNamespace. Did you mean SESSIONS?',
    ]


def test_the_env_of_an_unannotated_handler_is_that_of_its_router(root: Path) -> None:
    project(
        root,
        app="""
        app = create_app(Env)
        @app.get("/")
        async def show(req, res):
            await req.env.DB.prepare("SELECT nope FROM users").all()
        """,
    )
    (told,) = check(root)
    assert told.startswith("src/app.py:10 core-sql: DB: no such column: nope")


def test_the_request_of_an_option_has_the_env_of_the_application(root: Path) -> None:
    """mypy takes the parameter of such a lambda for Any, where an option may be one function or another."""
    project(
        root,
        app="""
        from core.middleware.cors import cors
        app = create_app(Env)
        app.use(cors(origins=lambda req: req.env.ORIGINS.split(",")))
        app.use(rate_limit(kv_binding=lambda req: req.env.SESSIONS, limit=lambda req: req.env.LIMIT, window=60))
        """,
    )
    assert [line.partition(": ")[2] for line in check(root)] == [
        "Env has no ORIGINS. Did you mean ORIGIN?",
        "Env has no LIMIT. Write it in the class, and the binding in the configuration file",
    ]


def test_an_authenticator_in_a_variable_is_met_by_the_requests_of_its_routes(root: Path) -> None:
    project(
        root,
        app="""
        from core import optional
        from core.middleware.jwt import jwt_auth
        app = create_app(Env)
        auth = jwt_auth(Env, secret=lambda req: req.env.SECRET)
        other = jwt_auth(Env, secret=lambda req: [req.env.OLD])
        anyone = optional(other)
        nobody = jwt_auth(Env, secret=lambda req: req.env.UNUSED)
        @app.authenticated(auth).get("/a")
        async def a(req, res):
            res.send()
        @app.authenticated(anyone).get("/b")
        async def b(req, res):
            res.send()
        """,
    )
    assert [line.partition(": ")[2].partition(".")[0] for line in check(root)] == [
        "Env has no SECRET",
        "Env has no OLD",
    ]


# Names that are not certain -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        # a name that is given twice
        "NAME = 'X'\nNAME = 'SESSIONS'\napp = create_app(Env)\napp.use(rate_limit(kv_binding=NAME, limit=1, window=60))\n",
        # one that is changed from inside a function
        (
            "NAME = 'X'\ndef f():\n    global NAME\n    NAME = 'SESSIONS'\napp = create_app(Env)\n"
            "app.use(rate_limit(kv_binding=NAME, limit=1, window=60))\n"
        ),
        # a parameter, a loop, a walrus, an unpacking, an except
        "app = create_app(Env)\ndef f(name):\n    app.use(rate_limit(kv_binding=name, limit=1, window=60))\n",
        "app = create_app(Env)\nfor name in ('X',):\n    app.use(rate_limit(kv_binding=name, limit=1, window=60))\n",
        "app = create_app(Env)\nif (name := 'X'):\n    app.use(rate_limit(kv_binding=name, limit=1, window=60))\n",
        "app = create_app(Env)\nname, other = sorted('XY')\napp.use(rate_limit(kv_binding=name, limit=1, window=60))\n",
        "app = create_app(Env)\nname = 'X'\nname += 'Y'\napp.use(rate_limit(kv_binding=name, limit=1, window=60))\n",
        # another rate_limit, and one that no route meets
        (
            "def rate_limit(**options):\n    async def f(req, res, next): ...\n    return f\n"
            "app = create_app(Env)\napp.use(rate_limit(kv_binding='X'))\n"
        ),
        "app = create_app(Env)\nlimit = rate_limit(kv_binding='X', limit=1, window=60)\n",
        # lambdas that no middleware is given, and one whose parameter is not the handler's request
        "app = create_app(Env)\nlimit = rate_limit(kv_binding=lambda req: req.env.X, limit=1, window=60)\n",
        (
            "app = create_app(Env)\n@app.get('/')\nasync def h(req: Request[Env], res: Response) -> None:\n"
            "    sorted([1], key=lambda req: req.env.X)\n    res.send()\n"
        ),
        # parameters whose path is not known, or that are asked for first
        "app = create_app(Env)\ndef f(path):\n    @app.get(path)\n    async def h(req, res):\n        req.params['x']\n",
        "app = create_app(Env)\n@app.get('/a')\nasync def h(req, res):\n    if 'x' in req.params:\n        req.params['x']\n",
        "app = create_app(Env)\n@app.get('/a')\nasync def h(req, res):\n    req = object()\n    req.params['x']\n",
        "app = create_app(Env)\n@app.get('/a')\nasync def h(req, res):\n    def g(req):\n        return req.params['x']\n",
        "app = create_app(Env)\n@app.get('/a')\nasync def h(req, res):\n    req.params['x'] = 1\n",
        # SQL that is put together, on a database that is not known
        "app = create_app(Env)\n@app.get('/a')\nasync def h(req: Request[Env], res):\n    req.env.DB.prepare(f'SELECT {1}')\n",
        "async def h(db):\n    await db.prepare('SELEC').all()\n",
        "class Other:\n    DB: str\nasync def h(env: Other):\n    env.DB.prepare('SELEC')\n",
        "async def h(env: Env, values):\n    await env.DB.prepare('SELECT ?, ?').bind(*values).all()\n",
        (
            "async def h(env: Env):\n    statement = env.DB.prepare('SELECT ?')\n    statement = statement.bind(1)\n"
            "    await statement.all()\n"
        ),
    ],
)
def test_what_is_not_certain_is_not_judged(body: str, root: Path) -> None:
    project(root, app=body)
    assert check(root) == []


@pytest.mark.parametrize(
    ("comment", "silent"),
    [
        ("# type: ignore[core-params]", True),
        ("# type: ignore[core-params, index]  # for a reason", True),
        ("# type: ignore[core]", True),
        ("# type: ignore", True),
        ("# type: ignore[core-env]", False),
        ("# ignore", False),
    ],
)
def test_the_comment_that_mypy_goes_by_switches_a_finding_off_here_too(comment: str, silent: bool, root: Path) -> None:
    project(root, app=f"app = create_app(Env)\n@app.get('/')\nasync def f(req, res):\n    req.params['x']  {comment}\n")
    assert (check(root) == []) is silent


# Env in all its spellings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        (
            "from __future__ import annotations\nimport attrs\nimport core\n@attrs.frozen\nclass Env(core.Bindings):\n"
            "    SESSIONS: core.KVNamespace\n    DB: core.D1Database\n    JOBS: core.Queue[Job]\n    ORIGIN: str\n"
            "class Job: ...\n"
        ),
        (
            "import attrs\nfrom core.env import Bindings as B\nfrom core.bindings.kv import KVNamespace as KV\n"
            "from core.bindings.d1 import D1Database\nfrom core.bindings.queue import Queue\nfrom typing import *\n"
            "@attrs.define(frozen=True)\nclass Env(B):\n    SESSIONS: 'KV'\n    JOBS: Queue['Job']\n"
            "    ORIGIN: Optional[str]\n    DB: 'D1Database | None' = None\nclass Job: ...\n"
        ),
        (
            "import attrs\nfrom typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NewType, Union\nfrom core import Bindings\n"
            "if TYPE_CHECKING:\n    from core import D1Database, KVNamespace, Queue\nelse:\n    from core import *\n"
            "Job = int\nOrigin = NewType('Origin', str)\nStore = Annotated['KVNamespace', 1]\n@attrs.frozen\nclass Env(Bindings):\n"
            "    extra: ClassVar[int] = 1\n    SESSIONS: Store\n    _DB: Union['D1Database', None]\n"
            "    jobs: 'Queue[Job]' = attrs.field(alias='JOBS')\n    ORIGIN: Origin\n    size: int = attrs.field(init=False)\n"
        ),
        (
            "import dataclasses\nfrom core import Bindings, D1Database, KVNamespace, Queue\nJob = int\n"
            "@dataclasses.dataclass(frozen=True)\nclass HasStore(Bindings):\n    SESSIONS: KVNamespace\n"
            "@dataclasses.dataclass(frozen=True)\nclass Env(HasStore):\n    DB: D1Database\n    JOBS: Queue[int]\n    ORIGIN: str\n"
        ),
        (
            "import attrs\nfrom core import Bindings, D1Database, KVNamespace, Queue\nfrom typing import Protocol\n"
            "class Sessions(KVNamespace, Protocol): ...\nclass Job: ...\ndef split(text: str) -> list[str]: ...\n@attrs.frozen\n"
            "class Env(Bindings):\n    SESSIONS: Sessions\n    DB: D1Database\n    JOBS: Queue[Job]\n"
            "    ORIGIN: list[str] = attrs.field(converter=split)\n"
        ),
    ],
)
def test_an_env_that_mirrors_its_file_is_understood_in_every_spelling(body: str, root: Path) -> None:
    project(root, src__env=body)
    assert check(root) == []


def test_a_name_that_other_frameworks_have_is_guessed_in_a_module_of_the_program_as_any_other(root: Path) -> None:
    project(root, app="from pages import redirect\n", src__pages="def redirects() -> None: ...\n")
    assert check(root) == ["src/app.py:6 core-import: pages has no redirect. Did you mean redirects?"]


def test_a_database_is_known_by_the_alias_of_its_attribute(root: Path) -> None:
    aliased = ENV.replace("    DB: D1Database\n", '    database: D1Database = attrs.field(alias="DB")\n')
    assert aliased != ENV
    body = "async def h(env: Env):\n    await env.database.prepare('SELECT nope FROM users').all()\n"
    project(root, app=body, src__env=aliased)
    (told,) = check(root)
    assert "no such column: nope" in told


def test_env_classes_can_be_named(root: Path) -> None:
    plain = ENV.replace("(Bindings)", "").replace("    ORIGIN: str\n", "")
    project(root, src__env=plain)
    (told,) = check(root)
    assert told == (
        "src/app.py:7 core-env: create_app(Env): Env does not derive from Bindings, so it is compared with nothing. Write class "
        "Env(Bindings), or env = env.Env under [core-mypy] in mypy.ini (a string under [tool.core-mypy] in pyproject.toml)"
    )
    assert check(root, Options(env=["env.Envv"]))[0].startswith(
        "src/app.py:7 core-env: --env-class names env.Envv, and "
    )
    (root / "src" / "app.py").write_text("from core import create_app\napp = create_app()\n")
    none = (
        "src/app.py:2 core-env: wrangler.toml:5 [[kv_namespaces]] declares SESSIONS, and the program has no Env to "
        "compare it with. Write class Env(Bindings) as `core types` does, and create_app(Env)"
    )
    assert check(root) == [none]
    (root / "src" / "app.py").write_text(HEAD + "app = create_app(Env)\n")
    for name in ("env.Env", "*.Env"):
        assert check(root, Options(env=[name])) == [
            "src/env.py:9 core-env: Env has no attribute for the variable ORIGIN (wrangler.toml:15 [vars]). Write ORIGIN: str"
        ]


def test_a_class_has_the_name_that_the_program_imports_it_by(root: Path) -> None:
    project(
        root,
        src__shop____init__="",
        src__shop__env=ENV.replace("(Bindings)", "") + "from core import create_app\napp = create_app(Env)\n",
    )
    (root / "wrangler.toml").write_text(
        WRANGLER.replace("src/app.py", "src/shop/env.py").replace("SESSIONS", "SESSION")
    )
    for name in ("shop.env.Env", "shop.*.Env"):
        assert len(check(root, Options(env=[name]))) == 1
    (told,) = check(root, Options(env=["env.Env"]))
    assert told.endswith("--env-class names env.Env, and no class is called that. Did you mean shop.env.Env?")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("Job(1)", "create_app takes the Env class, not an object of Job. Write create_app(Env)"),
        ("5", "create_app takes the Env class, not an object of int. Write create_app(Env)"),
        ("dict", "create_app(dict): dict does not derive from Bindings, so it is compared with nothing. "),
        ("Job", "create_app(Job): Job does not derive from Bindings, so it is compared with nothing. "),
    ],
)
def test_an_app_over_what_is_no_env_class_is_told(given: str, told: str, root: Path) -> None:
    project(root, app=f"app = create_app({given})\n")
    (line,) = check(root)
    assert line.startswith(f"src/app.py:6 core-env: {told}")


def test_a_code_can_be_a_warning_for_the_whole_project(root: Path) -> None:
    project(root, app="app = create_app(Env)\n@app.get('/')\nasync def f(req, res):\n    req.params['x']\n")
    (root / "wrangler.toml").write_text(WRANGLER + '[core.checks]\ncore-params = "warning"\n')
    (finding,) = check_program(load_all(root / "wrangler.toml"))
    assert (finding.code, finding.severity) == ("core-params", "warning")


def test_a_level_and_a_code_that_are_not_known_are_mistakes_of_the_file(root: Path) -> None:
    project(root)
    (root / "wrangler.toml").write_text(
        WRANGLER + '[core.checks]\ncore-param = "off"\ncore-sql = "no"\ncore-env = true\n'
    )
    with pytest.raises(ConfigurationError) as raised:
        load_all(root / "wrangler.toml")
    assert raised.value.problems == [
        ('wrangler.toml:16: core.checks must have strings only, but core-env is true. Write "true".'),
        "wrangler.toml:17: core.checks.core-param: there is no finding of that code. Did you mean core-params?",
        'wrangler.toml:18: core.checks.core-sql = "no" must be "off", "warning" or "error".',
    ]


def test_env_classes_are_found_by_their_names(root: Path) -> None:
    project(root)
    configurations = load_all(root / "wrangler.toml")
    (shape,) = find_env(configurations, "Env")
    assert [attribute.name for attribute in shape.attributes] == ["SESSIONS", "DB", "JOBS", "ORIGIN"]
    assert find_env(configurations, "Other") == []
    assert find_env(configurations, "Env", root / "src" / "app.py") == []


def test_a_consumer_takes_what_the_producer_sends(root: Path) -> None:
    project(
        root,
        app="""
        app = create_app(Env)
        @app.queue("jobs")
        async def bad(batch: "MessageBatch[str]", env: Env, ctx) -> None: ...
        @app.queue("job")
        async def ugly(batch, env, ctx) -> None: ...
        """,
    )
    (root / "wrangler.toml").write_text(WRANGLER + '[[queues.consumers]]\nqueue = "jobs"\n')
    bad, ugly = line_of(root, "src/app.py", "bad(") - 1, line_of(root, "src/app.py", "ugly(") - 1
    assert check(root) == [
        (
            f'src/app.py:{bad} core-queue: queue("jobs"): the consumer takes MessageBatch[str], but Env.JOBS (wrangler.toml:11 '
            "[[queues.producers]]) is a Queue[Job]. Write the same type in both"
        ),
        f'src/app.py:{ugly} core-queue: queue("job"): wrangler.toml has no consumer of that queue. Did you mean jobs?',
    ]


def test_the_findings_of_one_environment(root: Path) -> None:
    project(root)
    (root / "wrangler.toml").write_text(WRANGLER + "[env.staging]\n")
    everything = load_all(root / "wrangler.toml")
    assert len(check_program(everything)) == 4
    assert check_program(everything[:1]) == []
    assert {f.environment for f in check_program(everything[1:])} == {"staging"}


# Properties -----------------------------------------------------------------------------------------------------------

KINDS = {"KVNamespace": "kv_namespaces", "D1Database": "d1_databases", "R2Bucket": "r2_buckets"}
VARS = {"str": '"x"', "int": "1", "bool": "true", "list[str]": '["a"]', "dict[str, int]": "{ a = 1 }", "float": "0.5"}
SPELLINGS = ["{}", '"{}"', 'Annotated[{}, "x"]', '"Annotated[{}, 1]"', "Alias{}"]


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """An Env and a file that mirror each other, in varied spellings, and the names."""
    names = draw(st.lists(st.from_regex(r"[A-Z]{4}_[0-9]", fullmatch=True), min_size=1, max_size=5, unique=True))
    env = "import attrs\nfrom typing import Annotated\nfrom core import Bindings, D1Database, KVNamespace, R2Bucket, Secret, create_app\n"
    body, toml, variables = "", 'main = "app.py"\n', "[vars]\n"
    secrets: list[str] = []
    for name in names:
        kind = draw(st.sampled_from([*KINDS, *VARS, "Secret"]))
        spelling = draw(st.sampled_from(SPELLINGS))
        if spelling.startswith("Alias"):
            env += f"Alias{name} = {kind}\n"
            body += f"    {name}: Alias{name}\n"
        else:
            body += f"    {name}: {spelling.format(kind)}\n"
        if kind in KINDS:
            toml += f'[[{KINDS[kind]}]]\nbinding = "{name}"\n'
        elif kind == "Secret":
            secrets.append(name)
        else:
            variables += f"{name} = {VARS[kind]}\n"
    return (
        f"{env}\n@attrs.frozen\nclass Env(Bindings):\n{body}\napp = create_app(Env)\n",
        f"{toml}{variables}[secrets]\nrequired = {secrets}\n",
        names,
    )


@given(programs(), st.data())
def test_generated_programs_agree_and_one_changed_name_is_one_finding(
    tmp_path_factory: pytest.TempPathFactory, program: tuple[str, str, list[str]], data: st.DataObject
) -> None:
    env, toml, names = program
    root = tmp_path_factory.getbasetemp().resolve() / "generated"
    root.mkdir(exist_ok=True)
    (root / "app.py").write_text(env)
    (root / "wrangler.toml").write_text(toml)
    assert check(root) == []
    name = data.draw(st.sampled_from(names))
    new = f"{name[:-2]}X{name[-2:]}"
    (root / "wrangler.toml").write_text(re.sub(rf"\b{name}\b", new, toml))
    line = next(n for n, text in enumerate(env.splitlines(), 1) if text.startswith(f"    {name}:"))
    found = check(root)
    assert len(found) == 1
    assert found[0].startswith(
        f"app.py:{line} core-env: Env.{name}: no binding of that name in wrangler.toml. Did you mean {new} "
    )
