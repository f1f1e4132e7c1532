"""A program tells by its own start what it registers, and everything that is refused, each at its line."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from pathlib import Path

import pytest
from tests.support.command_line import run
from tests.support.libraries import with_libraries

from core.config.load import load_all
from core.program.ask import ask
from core.program.entry import entry_of
from core.program.registered import refused
from core.program.table import Table, from_json, to_json

HEAD = """\
from typing import Any

from core import App, Request, Response, Router, create_app

"""


def write(root: Path, text: str, **others: str) -> None:
    (root / "src").mkdir(parents=True, exist_ok=True)
    (root / "wrangler.toml").write_text('name = "x"\nmain = "src/main.py"\n')
    for name, other in {"main": HEAD + textwrap.dedent(text), **others}.items():
        (root / "src" / f"{name}.py").write_text(textwrap.dedent(other))


def table_of(root: Path, text: str = "", *, assume: bool = False, **others: str) -> Table:
    if text:
        write(root, text, **others)
    return ask(entry_of(load_all(root / "wrangler.toml")[0]), assume=assume)


def routes(table: Table) -> list[str]:
    """Each route with what runs for it: the steps, the handler, and the functions behind that."""
    found: list[str] = []
    for route in (route for app in table.apps for route in app.routes):
        steps = "".join(f"{table.callbacks[step].name} > " for step in route.middleware)
        handler = table.callbacks[route.handler] if route.handler is not None else None
        bodies = (
            [f"{body.qualname}+{body.bound}" if body.bound else body.qualname for body in handler.bodies]
            if handler
            else []
        )
        found.append(f"{route.method} {route.path}: {steps}{', '.join(bodies)}")
    return found


def refusals(table: Table) -> list[str]:
    return [f"{Path(one.place.file).name}:{one.place.line} {one.kind}: {one.message}" for one in table.refusals]


def line(root: Path, text: str, file: str = "main") -> int:
    return next(n for n, one in enumerate((root / f"src/{file}.py").read_text().splitlines(), 1) if text in one)


# Registrations --------------------------------------------------------------------------------------------------------

SHOW = """
async def show(req: Request[Any], res: Response) -> None:
    res.json(1)
"""

FORMS: dict[str, tuple[str, list[str]]] = {
    "decorated": ("app = create_app()\n@app.get('/a')" + SHOW, ["GET /a: show"]),
    "given": (SHOW + "app = create_app()\napp.get('/a', show)\n", ["GET /a: show"]),
    "decorator in a variable": ("app = create_app()\nroute = app.post('/a')\n@route" + SHOW, ["POST /a: show"]),
    "method of a class": (
        """
        class Users:
            def __init__(self) -> None:
                self.router: Router[Any] = Router()
                self.router.get("/:id", self.show)
            async def show(self, req: Request[Any], res: Response) -> None: ...
        app = create_app()
        app.use("/users", Users().router)
        """,
        ["GET /users/:id: Users.show+1"],
    ),
    "static method, class method, object": (
        """
        class Api:
            @staticmethod
            async def a(req: Request[Any], res: Response) -> None: ...
            @classmethod
            async def b(cls, req: Request[Any], res: Response) -> None: ...
            async def __call__(self, req: Request[Any], res: Response) -> None: ...
        app = create_app()
        app.get("/a", Api.a)
        app.get("/b", Api.b)
        app.get("/c", Api())
        """,
        ["GET /a: Api.a", "GET /b: Api.b+1", "GET /c: Api.__call__+1"],
    ),
    "factory and loop": (
        """
        def build(names: list[str]) -> App[Any]:
            app = create_app()
            for name in names:
                async def show(req: Request[Any], res: Response, name: str = name) -> None: ...
                app.get(f"/{name}/:id")(show)
            return app
        app = build(["a", "b"])
        """,
        ["GET /a/:id: build.<locals>.show", "GET /b/:id: build.<locals>.show"],
    ),
    "partial": (
        """
        import functools
        async def show(kind: str, req: Request[Any], res: Response) -> None: ...
        app = create_app()
        app.get("/a", functools.partial(show, "x"))
        """,
        ["GET /a: show+1"],
    ),
    "decorators": (
        """
        import functools
        def wraps(f: Any) -> Any:
            @functools.wraps(f)
            async def inner(req: Request[Any], res: Response) -> None: await f(req, res)
            return inner
        def bare(f: Any) -> Any:
            async def inner(req: Request[Any], res: Response) -> None: await f(req, res)
            return inner
        class Timed:
            def __init__(self, f: Any) -> None: self.f = f
            async def __call__(self, req: Request[Any], res: Response) -> None: await self.f(req, res)
        app = create_app()
        @app.get("/a")
        @wraps
        async def a(req: Request[Any], res: Response) -> None: ...
        @app.get("/b")
        @bare
        async def b(req: Request[Any], res: Response) -> None: ...
        @app.get("/c")
        @Timed
        async def c(req: Request[Any], res: Response) -> None: ...
        """,
        ["GET /a: wraps.<locals>.inner, a", "GET /b: bare.<locals>.inner, b", "GET /c: Timed.__call__+1, c"],
    ),
    "decorators that give a function of another kind": (
        """
        import functools
        def answered(f: Any) -> Any:
            @functools.wraps(f)
            async def handler(req: Request[Any], res: Response, *, pretty: bool = False) -> None: res.json(await f(req))
            return handler
        def checked(f: Any) -> Any:
            @functools.wraps(f)
            async def middleware(req: Request[Any], res: Response, next: Any) -> None:
                if await f(req): await next()
            return middleware
        def logged(f: Any) -> Any:
            @functools.wraps(f)
            async def anything(*args: Any, **named: Any) -> Any: return await f(*args, **named)
            return anything
        app = create_app()
        @checked
        async def allowed(req: Request[Any]) -> bool: return True
        @app.get("/a", allowed)
        @logged
        @answered
        async def a(req: Request[Any]) -> int: return 1
        class Shown:
            @logged
            async def c(self, req: Request[Any], res: Response) -> None: ...
        app.get("/c", Shown().c)
        async def with_kind(kind: str, req: Request[Any], res: Response) -> None: ...
        app.get("/d", functools.update_wrapper(functools.partial(with_kind, "x"), with_kind))
        """,
        [
            "GET /a: allowed > logged.<locals>.anything, answered.<locals>.handler, a",
            "GET /c: logged.<locals>.anything+1, Shown.c+1",
            "GET /d: with_kind+1",
        ],
    ),
    "steps, views and prefixes": (
        """
        from core.middleware.request_id import request_id
        async def who(req: Request[Any]) -> str: return "x"
        async def step(req: Request[Any], res: Response, next: Any) -> None: await next()
        async def show(req: Request[Any], res: Response) -> None: ...
        app = create_app()
        app.use(request_id())
        admin: Router[Any] = app.Router()
        admin.authenticated(who).get("/:id", step, show)
        app.use("/admin/:team", admin)
        app.get("/open", show)
        """,
        ["GET /admin/:team/:id: request_id > who > step > show", "GET /open: request_id > show"],
    ),
    "WebSocket": (
        """
        app = create_app()
        @app.websocket("/rooms/:id")
        async def chat(req: Request[Any], socket: Any) -> None: ...
        """,
        ["GET /rooms/:id: chat"],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_routes_are_told_as_requests_meet_them(tmp_path: Path, form: str) -> None:
    text, expected = FORMS[form]
    table = table_of(tmp_path, text)
    assert routes(table) == expected
    assert table.finished
    assert not table.refusals
    assert all(step.whole for step in table.callbacks)


def test_everything_that_an_application_registers_is_told(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        """
        import attrs
        from core import Bindings, CoreError, DurableObject, KVNamespace
        @attrs.frozen
        class Env(Bindings):
            KV: KVNamespace
            _ORIGIN: str
        class Room(DurableObject[Env]): ...
        app = create_app(Env)
        @app.queue("jobs")
        async def work(batch: Any, env: Env, ctx: Any) -> None: ...
        @app.scheduled("0 3 * * *")
        async def nightly(event: Any, env: Env, ctx: Any) -> None: ...
        @app.lifespan
        async def pool(env: Env) -> Any:
            yield 1
        @app.on_error(CoreError)
        async def failed(err: Any, req: Request[Env], res: Response, next: Any) -> None: ...
        @app.not_found
        async def missing(req: Request[Env], res: Response) -> None: ...
        async def other(request: Any) -> Any: ...
        app.mount("/old", other)
        """,
    )
    app = table.app
    assert app is not None
    assert app.env is not None
    assert app.place.line == line(tmp_path, "app = create_app")
    assert (app.env.qualname, app.env.bindings) == ("Env", True)
    events = [(one.kind, one.name, table.callbacks[one.handler].name, one.place.line) for one in app.events]
    assert events == [
        ("queue", "jobs", "work", line(tmp_path, "@app.queue")),
        ("scheduled", "0 3 * * *", "nightly", line(tmp_path, "@app.scheduled")),
        ("lifespan", None, "pool", line(tmp_path, "@app.lifespan")),
        ("error", None, "failed", line(tmp_path, "@app.on_error")),
        ("error", None, "missing", line(tmp_path, "@app.not_found")),
    ]
    assert [(one.path, one.kind) for one in app.routes] == [("/old", "mount"), ("/old/*", "mount")]
    assert table.objects == ("Room",)


def test_a_table_is_the_same_behind_json(tmp_path: Path) -> None:
    table = table_of(tmp_path, FORMS["steps, views and prefixes"][0])
    assert from_json(to_json(table)) == table
    assert from_json("[1, []]") is None
    with pytest.raises(ValueError, match="not a table"):
        from_json("{}")


def test_routes_that_no_application_serves_are_told_and_those_of_a_package_that_workers_share_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    routers = """
        from typing import Any
        from core import Request, Response, Router
        served: Router[Any] = Router()
        forgotten: Router[Any] = Router()

        @served.get("/a")
        @forgotten.get("/b")
        async def show(req: Request[Any], res: Response) -> None: ...
        """
    worker = tmp_path / "worker"
    write(
        worker, "from own import served\nfrom shared import served as too\n"
        "app = create_app()\napp.use('/own', served)\napp.use('/shared', too)\n", own=routers
    )  # fmt: skip
    (tmp_path / "shared.py").write_text(textwrap.dedent(routers))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    table = table_of(worker)
    assert routes(table) == ["GET /own/a: show", "GET /shared/a: show"]
    assert [(Path(place.file).name, place.line) for place in table.unmounted] == [
        ("own.py", line(worker, "@forgotten", "own"))
    ]


def test_a_function_that_code_of_a_package_stands_around_is_not_what_a_request_calls(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "answers.py"
    package.parent.mkdir()
    package.write_text("def answering(f):\n    async def run(req, res): res.json(await f(req, res))\n    return run\n")
    table = table_of(
        tmp_path,
        f"""
        import sys
        sys.path.append({str(package.parent)!r})
        from answers import answering
        app = create_app()
        @app.get("/a")
        async def a(req: Any, res: Any) -> None: ...
        @app.get("/b")
        @answering
        async def b(req: Any, res: Any) -> Any: return 1
        """,
    )
    assert routes(table) == ["GET /a: a", "GET /b: b"]
    assert [step.direct for step in table.callbacks] == [True, False]


# Refusals -------------------------------------------------------------------------------------------------------------


def test_one_start_tells_everything_that_registrations_refuse(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        """
        from core.middleware.logger import logger
        from users import users
        app = create_app()
        app.use("/u", users)
        app.use(logger(), users, lambda: 1)
        @app.get("nopath")
        async def a(req: Any, res: Any) -> None: ...
        @app.get("/sync")
        def b(req: Any, res: Any) -> None: ...
        @app.queue("jobs")
        async def c(batch: Any) -> None: ...
        app.route("/x")
        @app.get("/good")
        async def d(req: Any, res: Any) -> None: ...
        """,
        users="""
        from core import Router
        from core.middleware.request_id import request_id
        users = Router()
        users.use(request_id())
        users.get("/")
        """,
    )
    told = {one.partition(": ")[0] for one in refusals(table)}
    assert told == {
        f"main.py:{line(tmp_path, 'app.use(logger')} HandlerError",
        f"main.py:{line(tmp_path, 'nopath')} PathError",
        f"main.py:{line(tmp_path, '/sync')} HandlerError",
        f"main.py:{line(tmp_path, 'jobs')} HandlerError",
        f"main.py:{line(tmp_path, 'app.route')} ForeignName",
        f"users.py:{line(tmp_path, 'users.get', 'users')} RegistrationError",
        f"users.py:{line(tmp_path, 'users.use', 'users')} OrderError",
    }
    assert [one for one in routes(table) if "good" in one] == ["GET /good: logger > request_id > d"]
    assert not table.finished


def test_routes_that_default_deny_refuses_are_told_at_their_lines(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        """
        from core import public
        from core.middleware.static import static
        app = create_app(default_deny=True)
        app.use("/files", static(bucket="FILES"))
        @app.get("/open")
        async def a(req: Any, res: Any) -> None: ...
        @app.get("/health", public())
        async def b(req: Any, res: Any) -> None: ...
        """,
    )
    assert [one.partition(", so")[0] for one in refusals(table)] == [
        (
            f'main.py:{line(tmp_path, "/files")} DefaultDeny: default_deny: use("/files", static(…)) is neither public nor '
            "behind an authenticator"
        ),
        f"main.py:{line(tmp_path, '/open')} DefaultDeny: default_deny: GET /open is neither public nor behind an authenticator",
    ]
    assert table.finished


def test_a_module_that_fails_is_told_at_its_line_and_the_rest_is_read(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        """
        import broken
        from core import Requset
        from gone import thing
        from users import users, shwo
        from raising import value
        app = create_app()
        app.use("/users", users)
        app.get("/x", thing)
        """,
        broken="def f(:\n",
        users="from core import Router\nusers = Router()\n@users.get('/:id')\nasync def show(req, res): ...\n",
        raising="VALUE = 1\n\ndef f():\n    return {}['x']\nf()\n",
    )
    assert refusals(table) == [
        "broken.py:1 SyntaxError: invalid syntax",
        f"main.py:{line(tmp_path, 'Requset')} NoName: core has no Requset. Did you mean Request?",
        (
            f"main.py:{line(tmp_path, 'gone')} NoModule: there is no module gone. Install the package where this runs, or "
            "correct the name"
        ),
        f"main.py:{line(tmp_path, 'shwo')} NoName: users has no shwo. Did you mean show?",
        "raising.py:4 KeyError: 'x'",
    ]
    assert routes(table) == ["GET /users/:id: show"]
    assert [one.line for one in table.unread] == [line(tmp_path, "thing)")]
    assert not table.finished


def test_imports_that_the_program_expects_to_fail_are_its_own_business(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        """
        import contextlib, importlib.util
        try:
            import orjson2
            from core import Nothing
        except ImportError:
            orjson2 = None
        with contextlib.suppress(ImportError):
            import uvloop2
        assert importlib.util.find_spec("absent") is None
        import settings
        assert getattr(settings, "DEBUG", False) is False and not hasattr(settings, "X")
        app = create_app()
        @app.get("/a" if orjson2 is None else "/b")
        async def show(req: Any, res: Any) -> None: ...
        """,
        settings="",
    )
    assert table.finished
    assert not table.refusals
    assert routes(table) == ["GET /a: show"]


def test_packages_that_are_not_installed_are_assumed_for_a_type_checker_alone(tmp_path: Path) -> None:
    text = """
    import httpx_of_tomorrow
    from pydantick import BaseModel, Field
    class Item(BaseModel):
        name: str = Field(min_length=2)
    app = create_app()
    client = httpx_of_tomorrow.AsyncClient(timeout=3)
    @app.get("/x/:id")
    @httpx_of_tomorrow.decorated
    async def index(req: Request[Any], res: Response) -> None: ...
    app.use(client.middleware())
    """
    strict, assumed = table_of(tmp_path, text), table_of(tmp_path, text, assume=True)
    assert [one.kind for one in strict.refusals] == ["NoModule", "NoModule"]
    assert not assumed.refusals
    assert assumed.assumed == ("httpx_of_tomorrow", "pydantick")
    assert routes(strict) == routes(assumed) == ["GET /x/:id: index"]
    assert [one.line for one in assumed.unread] == [line(tmp_path, "app.use(client")]


def test_what_a_program_prints_starts_or_ends_with_is_no_part_of_the_answer(tmp_path: Path) -> None:
    text = """
    import os, sys, threading, time
    print("hello")
    sys.stdout.write("[3, []]")
    os.system("echo from a child; sleep 90 &")
    threading.Thread(target=time.sleep, args=(90,)).start()
    app = create_app()
    """
    begin = time.monotonic()
    table = table_of(tmp_path, text)
    assert table.finished
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize(("text", "told"), [("os.abort()", "ends its process"), ("sys.exit(3)", "3")])
def test_a_program_that_ends_itself_is_one_finding(tmp_path: Path, text: str, told: str) -> None:
    [refusal] = table_of(tmp_path, f"import os, sys\n{text}\n").refusals
    assert told in refusal.message


def test_a_start_that_hangs_is_given_up(tmp_path: Path) -> None:
    write(tmp_path, "while True: pass\n")
    [refusal] = ask(entry_of(load_all(tmp_path / "wrangler.toml")[0]), seconds=1).refusals
    assert "takes longer than 1 s" in refusal.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "x = 3\napi = create_app()",
            '6 NoApp: there is no `app`, but an App named api. Write [core] app = "main:api" in wrangler.toml',
        ),
        ("x = 3\napp = 3", "6 NoApp: `app` is an int, not an App. Write `app = create_app(Env)`"),
        (
            "class App:\n    pass\n\napp = App()",
            "8 NoApp: `app` is a main.App, not an App of core. Write `app = create_app(Env)`",
        ),
        ("x = 3", "1 NoApp: there is no `app`. Write `app = create_app(Env)`"),
    ],
)
def test_a_module_without_the_application_is_told(tmp_path: Path, text: str, told: str) -> None:
    assert refusals(table_of(tmp_path, text)) == [f"main.py:{told}"]


# What is kept ---------------------------------------------------------------------------------------------------------

COUNTED = """
import os
from pathlib import Path
from users import users
counter = Path(os.environ["COUNTER"])
counter.write_text("x" * (counter.stat().st_size + 1))
app = create_app()
app.use("/" + os.environ.get("PREFIX", "users"), users)
"""
USERS = """
import pkgutil
from core import Router
users = Router()

@users.get("/:id")
async def show(req, res):
    "Doc"
    res.json(1)
"""


@pytest.fixture
def counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "counter"
    file.write_text("")
    monkeypatch.setenv("COUNTER", str(file))
    return file


def test_a_program_is_started_again_only_where_its_start_may_tell_something_else(
    tmp_path: Path, counter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    users = root / "src" / "users.py"

    def starts() -> int:
        return len(counter.read_text())

    table_of(root, COUNTED, users=USERS)
    assert starts() == 1
    table_of(root)
    users.write_text(USERS.replace("res.json(1)", "await req.json()\n    res.json([x for x in (1, 2)])"))
    assert routes(table_of(root)) == ["GET /users/:id: show"]
    (root / "wrangler.toml").write_text((root / "wrangler.toml").read_text() + '[vars]\nX = "1"\n')
    table_of(root)
    monkeypatch.setenv("UNRELATED", "1")
    table_of(root)
    assert starts() == 1, "neither bodies of async functions, nor bindings, nor variables that it does not read"
    for edit in ('"Doc of it"', '"Doc"\n    yield'):
        users.write_text(USERS.replace('"Doc"', edit))
        table_of(root)
    users.write_text(USERS.replace("/:id", "/:name"))
    assert routes(table_of(root)) == ["GET /users/:name: show"]
    monkeypatch.setenv("PREFIX", "people")
    assert routes(table_of(root)) == ["GET /people/:name: show"]
    assert starts() == 5
    (root / "src" / "pkgutil.py").write_text("")
    table_of(root)
    assert starts() == 6, "a module that appears may be imported in the place of another one"


def test_a_table_is_kept_for_every_command_and_mypy(tmp_path: Path, counter: Path) -> None:
    table_of(tmp_path, COUNTED, users=USERS)
    table_of(tmp_path, assume=True)
    assert len(counter.read_text()) == 1, "what is refused is none, and nothing is assumed"
    refused = COUNTED + "import absent_package\n"
    assert not table_of(tmp_path / "refused", refused, users=USERS).finished
    assert table_of(tmp_path / "refused", assume=True).assumed == ("absent_package",)
    assert len(counter.read_text()) == 3


def test_a_description_of_an_application_starts_it_once(tmp_path: Path, counter: Path) -> None:
    write(tmp_path, COUNTED, users=USERS)
    done = run("openapi", "-o", "openapi.json", folder=with_libraries(tmp_path))
    assert done.returncode == 0, done.stderr
    assert len(counter.read_text()) == 1
    table_of(tmp_path)
    assert len(counter.read_text()) == 1


def test_a_kept_table_has_the_lines_of_now(tmp_path: Path, counter: Path) -> None:
    late = """
    @users.post(
        "/",
    )
    async def add(
        req, res,
    ): res.json(2)
    users.get("/late", add)
    """
    root = tmp_path / "project"
    users = root / "src" / "users.py"
    table_of(root, COUNTED, users=USERS + textwrap.dedent(late))
    for body in ("res.json(1)\n    # more\n    await req.json()\n    res.json(\n        2\n    )", "res.json(1)"):
        users.write_text(USERS.replace("res.json(1)", body) + textwrap.dedent(late))
        kept = table_of(root)
        (root / ".core").rename(root / f"core{len(body)}")
        new = table_of(root)
        assert [kept.apps, kept.callbacks] == [new.apps, new.callbacks]
    assert len(counter.read_text()) == 3


def test_an_edit_within_a_second_and_of_the_same_size_is_seen(tmp_path: Path) -> None:
    write(tmp_path, "from users import users\napp = create_app()\napp.use(users)\n", users=USERS)
    users = tmp_path / "src" / "users.py"
    for path in ("/aaa", "/bbb", "/ccc"):
        users.write_text(USERS.replace("/:id", path))
        os.utime(users, (1_700_000_000, 1_700_000_000))
        assert routes(table_of(tmp_path)) == [f"GET {path}: show"]


def test_a_program_that_runs_an_event_loop_or_asks_elsewhere_is_started_every_time(
    tmp_path: Path, counter: Path
) -> None:
    loop = "import asyncio\nasync def f(): ...\nasyncio.run(f())\n"
    for number, extra in enumerate((loop, "import subprocess\nsubprocess.run(['true'])\n")):
        counter.write_text("")
        root = tmp_path / str(number)
        table_of(root, COUNTED + extra, users=USERS)
        (root / "src" / "users.py").write_text(USERS.replace("res.json(1)", "res.json(2)"))
        table_of(root)
        assert len(counter.read_text()) == 2


def test_a_start_beside_whose_modules_python_makes_a_folder_is_kept(tmp_path: Path, counter: Path) -> None:
    root = tmp_path / "project"
    table_of(root, COUNTED + 'Path(__file__).with_name("__pycache__").mkdir(exist_ok=True)\n', users=USERS)
    table_of(root)
    assert len(counter.read_text()) == 1


@pytest.mark.parametrize("before", ["import nowhere\n", None], ids=["edited", "made"])
@pytest.mark.parametrize("file", ["words.py", "words/__init__.py"])
def test_what_is_saved_while_the_program_starts_is_seen_by_the_next_look(
    file: str, before: str | None, tmp_path: Path
) -> None:
    """As somebody saves the next file while `core dev` looks at the program; here the program does it itself."""
    write(
        tmp_path,
        f"""
        from pathlib import Path
        import words

        app = create_app()
        words = Path(__file__).parent / {file!r}
        words.parent.mkdir(exist_ok=True)
        words.write_text("A = 1\\n")
        """,
    )
    if before is not None:
        words = tmp_path / "src" / file
        words.parent.mkdir(exist_ok=True)
        words.write_text(before)
    assert len(table_of(tmp_path).refusals) == 1

    assert table_of(tmp_path).refusals == ()


def test_another_interpreter_without_this_framework_is_told(tmp_path: Path) -> None:
    write(tmp_path, "app = create_app()\n")
    entry = entry_of(load_all(tmp_path / "wrangler.toml")[0])
    [refusal] = ask(entry, python="/nowhere/python").refusals
    assert "cannot be started with /nowhere/python" in refusal.message
    assert ask(entry, python=sys.executable).finished


@pytest.mark.parametrize(
    ("base", "main", "module"),
    [
        ('"src"', "src/shop/main.py", "shop.main"),
        ('"./src/"', "src/shop/web/main.py", "shop.web.main"),
        ('"."', "src/main.py", "src.main"),
        (None, "src/main.py", "main"),
    ],
)
def test_names_begin_at_base_dir_where_folders_have_no_init(
    base: str | None, main: str, module: str, tmp_path: Path
) -> None:
    file = tmp_path / main
    file.parent.mkdir(parents=True)
    beside = ".".join([*module.split(".")[:-1], "words"])
    file.write_text(f"from core import create_app\nfrom {beside} import A\napp = create_app()\n")
    (file.parent / "words.py").write_text("A = 1\n")
    (tmp_path / "wrangler.toml").write_text(f'name = "x"\nmain = "{main}"\n' + (f"base_dir = {base}\n" if base else ""))
    entry = entry_of(load_all(tmp_path / "wrangler.toml")[0])
    assert entry.module == module
    assert ask(entry).refusals == ()


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ('from core.middleware.cors import cors\ncors(origin=["https://a.example"])', "In core this is `cors(origins="),
        ("class Room:\n    size: int = limt", "Import `limt`, define it, or correct its spelling"),
        ("{}['a']", "Fix it, or let a lifespan do it"),
        ("from core import Requset", "core has no Requset. Did you mean Request?"),
        ("from core import AI", "core has no AI. Did you mean Ai?"),
        ("from core import cors", "core has no cors. Write from core.middleware.cors import cors"),
        ("from core import Client", "core has no Client. Write from core.testing import Client"),
        ("from core import EnvError", "core has no EnvError. Write from core.errors import EnvError"),
        ("from core import jwt", "core has no jwt. Import what you need from core.middleware.jwt"),
        ("from core.http import Event", "core.http has no Event. Write from core.http.sse import Event"),
        ("from core.testing import FakeKV", "core.testing has no FakeKV. Did you mean FakeKVNamespace?"),
        ("from core import HTTPError", "core has no HTTPError. Correct the name"),
        (
            "from core.mcp import MCP\nMCP(App(), name='x')",
            "Give `name` without its name, in its place: `MCP(app, name)`",
        ),
        (
            "from core.errors import MissingExtraError\nraise MissingExtraError('pip install x')",
            "MissingExtraError: pip install x",
        ),
    ],
)
def test_what_stops_an_import_comes_with_what_is_known_of_it(text: str, fix: str, tmp_path: Path) -> None:
    table = table_of(tmp_path, f"{text}\napp = create_app()\n")
    [finding] = [refused(one) for one in table.refusals]
    assert finding.code == "core-import"
    assert fix in finding.message
    assert finding.message.count(fix) == 1


def test_what_may_stand_behind_the_line_that_stops_is_not_missed(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        """
        app = create_app()

        @app.post("/", tool=True)
        async def add(req: Request, res: Response) -> None:
            \"\"\"Add.\"\"\"

        1 / 0
        """,
    )
    assert [one.kind for one in table.refusals] == ["ZeroDivisionError"]


def test_a_main_that_is_a_link_has_its_name_in_base_dir(tmp_path: Path) -> None:
    (tmp_path / "project" / "src" / "shop").mkdir(parents=True)
    (tmp_path / "elsewhere.py").write_text("from core import create_app\napp = create_app()\n")
    (tmp_path / "project" / "src" / "shop" / "main.py").symlink_to(tmp_path / "elsewhere.py")
    (tmp_path / "project" / "wrangler.toml").write_text('name = "x"\nmain = "src/shop/main.py"\nbase_dir = "src"\n')
    entry = entry_of(load_all(tmp_path / "project" / "wrangler.toml")[0])
    assert entry.module == "shop.main"
    assert ask(entry).refusals == ()


# Classes --------------------------------------------------------------------------------------------------------------

USED = """
import copy
import linecache
import pickle
from typing import get_type_hints

import attr
import attrs
import cattrs

@attrs.frozen
class Point:
    '''Where it is.'''

    x: int
    y: int

@attr.frozen
class Unused:
    x: int

@attrs.frozen
class Kept(Point):
    z: int = 0

class Bare(Point): ...

def place(value: object) -> str:
    match value:
        case Point(x, y):
            return f"{x} {y}"
        case _:
            return ""

point = Point(1, y=2)
assert point == Point(1, 2) != Point(2, 1) and {point: 1}[Point(1, 2)] and place(point) == "1 2"
assert repr(point) == "Point(x=1, y=2)" and Point.__doc__ == "Where it is."
assert repr(Kept(1, 2)) == "Kept(x=1, y=2, z=0)" and Bare(1, 2).y == 2 and attrs.evolve(point, x=3).x == 3
assert [field.name for field in attrs.fields(Point)] == ["x", "y"] and list(get_type_hints(Point)) == ["x", "y"]
assert cattrs.structure({"x": "1", "y": 2}, Point) == point == copy.copy(point) == pickle.loads(pickle.dumps(point))
for wrong in (lambda: setattr(point, "x", 2), lambda: Point(1), lambda: Point(1, 2, 3)):
    try:
        wrong()
    except (attrs.exceptions.FrozenInstanceError, TypeError):
        continue
    raise AssertionError("taken")
written = [name for name in linecache.cache if "attrs generated" in name]
assert any(".Point" in name for name in written) and not any(".Unused" in name for name in written)
app = create_app()
"""


def test_attrs_finishes_a_class_of_the_program_when_it_is_used(tmp_path: Path) -> None:
    table = table_of(tmp_path, USED)
    assert refusals(table) == []
    assert table.finished


@pytest.mark.parametrize("fields", ["self: int", "_x: int\n    x: int", "x: int = 1\n    y: int"])
def test_what_attrs_refuses_is_told_at_the_class(tmp_path: Path, fields: str) -> None:
    text = f"import attrs\n\n@attrs.frozen\nclass Wrong:\n    {fields}\n\napp = create_app()\n"
    (told,) = table_of(tmp_path, text).refusals
    assert told.place.line in (line(tmp_path, "@attrs.frozen"), line(tmp_path, "class Wrong"))
