"""`core check` reads the whole program from its text, where the mypy plugin sees one module at a time."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analysis.program import Options, check_program, find_env
from core.config.load import load_all
from core.errors import ConfigurationError

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
        app="from shop.routes import users\nimport shop.late\n",
        src__shop____init__="",
        src__shop__routes____init__="from . import users, teams\n",
        src__shop__routes__users="from ..base import router\n\n@router.get('/:id')\nasync def f(req, res):\n    req.params['idd']\n",
        src__shop__routes__teams="def late():\n    import shop.lazy\n",
        src__shop__lazy="from shop.base import router\n\n@router.get('/:id')\nasync def f(req, res):\n    req.params['iid']\n",
        src__shop__base="from core import Router\nrouter = Router()\n",
        src__shop__late=bad,
    )
    assert check(root) == [
        'src/shop/lazy.py:5 core-params: req.params["iid"]: the path /:id has no parameter iid. Did you mean id?',
        'src/shop/routes/users.py:5 core-params: req.params["idd"]: the path /:id has no parameter idd. Did you mean id?',
    ]


def test_a_missing_entry_file_and_a_file_that_is_no_python_are_findings(root: Path) -> None:
    project(root, app="import broken\n", src__broken="def f(:\n")
    assert check(root) == ["src/broken.py:1 core-env: syntax error: invalid syntax. Fix it"]
    (root / "wrangler.toml").write_text(WRANGLER.replace("src/app.py", "src/main.py"))
    assert "wrangler.toml:2 core-env: main: there is no file src/main.py. Write it, or correct main" in check(root)


def test_without_a_python_entry_all_files_but_tests_are_checked(root: Path) -> None:
    project(root, tests__test_env="from core import Bindings\nclass E(Bindings):\n    X: str\n")
    (root / "wrangler.toml").write_text(WRANGLER.replace('main = "src/app.py"\n', "").replace("SESSIONS", "SESSION"))
    assert check(root) == [
        (
            "src/env.py:10 core-env: Env.SESSIONS: no binding of that name in wrangler.toml. Did you mean SESSION "
            "(wrangler.toml:4 [[kv_namespaces]])?"
        )
    ]


def test_nothing_of_the_application_runs(root: Path) -> None:
    project(root, app="from pathlib import Path\nPath(__file__).with_name('ran').touch()\nraise SystemExit(3)\n")
    assert check(root) == []
    assert not (root / "src" / "ran").exists()


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


def test_a_limiter_of_another_module_is_checked_where_it_lands(root: Path) -> None:
    project(
        root,
        app="from limits import limited\napp = create_app(Env)\napp.use(limited)\n",
        src__limits="from core.middleware.rate_limit import rate_limit\nfrom names import STORE\n"
        "limited = rate_limit(kv_binding=STORE, limit=1, window=60)\n",
        src__names="from typing import Final\nSTORE: Final = 'SESION'\n",
    )
    assert check(root) == [
        'src/app.py:8 core-binding: rate_limit(kv_binding="SESION"): Env has no attribute SESION. Did you mean SESSIONS?'
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
        "app = create_app(Env)\nname, other = 'X', 'Y'\napp.use(rate_limit(kv_binding=name, limit=1, window=60))\n",
        "app = create_app(Env)\nname = 'X'\nname += 'Y'\napp.use(rate_limit(kv_binding=name, limit=1, window=60))\n",
        # another rate_limit, another app
        "def rate_limit(**options): ...\napp = create_app(Env)\napp.use(rate_limit(kv_binding='X'))\n",
        "class App:\n    def use(self, *a): ...\napp = App()\napp.use(rate_limit(kv_binding='X', limit=1, window=60))\n",
        "app = create_app(Env)\napp = object()\napp.use(rate_limit(kv_binding='X', limit=1, window=60))\n",
        # parameters whose path is not known, or that are asked for first
        "app = create_app(Env)\ndef f(path):\n    @app.get(path)\n    async def h(req, res):\n        req.params['x']\n",
        "app = create_app(Env)\n@app.get('/a')\n@app.get('/b/:x')\nasync def h(req, res):\n    req.params['x']\n",
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
            "@attrs.define(frozen=True)\nclass Env(B):\n    SESSIONS: 'KV'\n    DB: 'D1Database | None' = None\n"
            "    JOBS: Queue['Job']\n    ORIGIN: Optional[str]\nclass Job: ...\n"
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


def test_env_classes_can_be_named(root: Path) -> None:
    plain = ENV.replace("(Bindings)", "").replace("    ORIGIN: str\n", "")
    project(root, src__env=plain)
    none = (
        "wrangler.toml:5 core-env: wrangler.toml:5 [[kv_namespaces]] declares SESSIONS, and the program has no Env to "
        "compare it with. Write class Env(Bindings) as `core types` does, and create_app(Env)"
    )
    assert check(root) == [none]
    (root / "src" / "app.py").write_text("from shared import Env\nfrom core import create_app\napp = create_app(Env)\n")
    assert "nothing was found to compare" in check(root)[0]  # it may be an Env, so that is all there is to say
    (root / "src" / "app.py").write_text(HEAD)
    for name in ("env.Env", "*.Env"):
        assert check(root, Options(env=[name])) == [
            "src/env.py:9 core-env: Env has no attribute for the variable ORIGIN (wrangler.toml:15 [vars]). Write ORIGIN: str"
        ]
    (told,) = check(root, Options(env=[]))
    assert "nothing was found to compare" in told


def test_a_class_has_the_name_that_the_program_imports_it_by(root: Path) -> None:
    project(
        root, app="from shop.env import Env\n", src__shop____init__="", src__shop__env=ENV.replace("(Bindings)", "")
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
        ("Env('a')", "create_app(Env('a')): that is an instance of Env. Give the class itself: create_app(Env)"),
        ("made", "create_app(made): that is an instance of Env. Give the class itself: create_app(Env)"),
        ("5", "create_app(5): that is no class. Give the class itself: create_app(Env)"),
        ("dict", "create_app(dict): dict does not derive from Bindings, so it is compared with nothing. "),
        ("Job", "create_app(Job): Job does not derive from Bindings, so it is compared with nothing. "),
    ],
)
def test_an_app_over_what_is_no_env_class_is_told(given: str, told: str, root: Path) -> None:
    project(root, app=f"made = Env('a')\napp = create_app({given})\n")
    (line,) = check(root)
    assert line.startswith(f"src/app.py:7 core-env: {told}")


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
        async def good(batch: MessageBatch[Job], env: Env, ctx) -> None: ...
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
    env = "import attrs\nfrom typing import Annotated\nfrom core import Bindings, D1Database, KVNamespace, R2Bucket, Secret\n"
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
        f"{env}\n@attrs.frozen\nclass Env(Bindings):\n{body}",
        f"{toml}{variables}[secrets]\nrequired = {secrets}\n",
        names,
    )


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
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
