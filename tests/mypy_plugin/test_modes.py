"""The same findings cold, warm, after an edit beside the Python, in parallel, and from the daemon."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mypy import api
from tests.mypy_plugin.conftest import Project
from tests.support.libraries import STRICT

from core.config.load import load_all
from core.program.cache import Cache
from core.program.module_rules import Memory
from core.program.proof import Options, prove

APP = """\
from core import Request, Response, Router, create_app
from core.middleware.rate_limit import rate_limit
from env import Env
from users import users

app = create_app(Env)
app.use(rate_limit(kv_binding="SESSIONS", limit=1, window=60))
app.use("/users", users)


@app.get("/health/:name")
async def health(req: Request[Env], res: Response) -> None:
    res.json({"ok": req.params["name"]})
"""

USERS = """\
import attrs

from core import Request, Response, Router
from env import Env

users: Router[Env] = Router()


@attrs.frozen
class UserRow:
    id: int
    name: str


@users.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    statement = req.env.DB.prepare("SELECT id, name FROM users WHERE id = ?")
    res.json(await statement.bind(req.params["id"]).first(UserRow))
"""

LINKS = """\
from app import app
from core import Request, Response
from env import Env
from users import show


async def home(req: Request[Env], res: Response) -> None:
    res.redirect(req.url_for(show, id=7))


app.get("/", home)
"""

NEEDS_USER = (
    "links.py:8: error: url_for(show, id=…): the path /users/:user has no parameter id. It has user  [core-params]"
)
OTHER_ROUTE = "links.py:8: error: url_for(show): the path /users/:id/of/:org needs org. Give org=…  [core-params]"
RENAMED = (
    "env.py:8: error: Env.SESSIONS: no binding of that name in wrangler.toml. "
    "Did you mean SESSION (wrangler.toml:6 [[kv_namespaces]])?  [core-env]"
)
MOVED = "users.py:17: error: DB: no such column: name. users has id, fullname, email, score  [core-sql]"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory, mypy_cache: Path) -> Project:
    """A project of a few modules, checked once. Only copies of it and of its cache are edited."""
    project = Project(tmp_path_factory.mktemp("shop"), mypy_cache).usual()
    project.write("app.py", APP)
    project.write("users.py", USERS)
    project.write("links.py", LINKS)
    assert project.mypy() == []
    return project


@pytest.fixture
def shop(generated: Project, tmp_path: Path) -> Project:
    """The project with a cache of its own, which is warm."""
    shutil.copytree(generated.root, tmp_path, dirs_exist_ok=True)
    shutil.copytree(generated.cache, tmp_path / ".mypy_cache")
    return Project(tmp_path, tmp_path / ".mypy_cache")


def test_an_edit_of_the_configuration_alone_is_seen_by_a_warm_cache_and_so_is_its_undoing(shop: Project) -> None:
    assert shop.mypy() == []
    assert shop.mypy() == []
    shop.edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    assert shop.mypy() == [RENAMED]
    assert shop.mypy() == [RENAMED]
    shop.edit("wrangler.toml", '"SESSION"', '"SESSIONS"')
    assert shop.mypy() == []


def test_line_numbers_of_the_configuration_stay_right_in_replayed_findings(shop: Project) -> None:
    shop.edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    assert shop.mypy() == [RENAMED]
    shop.edit("wrangler.toml", 'main = "app.py"', '# a comment\nmain = "app.py"')
    assert shop.mypy() == [RENAMED.replace("wrangler.toml:6", "wrangler.toml:7")]


def test_an_edit_of_a_migration_alone_is_seen_by_a_warm_cache(shop: Project) -> None:
    assert shop.mypy() == []
    shop.edit("migrations/0001_init.sql", "name TEXT NOT NULL", "fullname TEXT NOT NULL")
    assert shop.mypy() == [MOVED]
    assert shop.mypy() == [MOVED]
    shop.write("migrations/0002_back.sql", "ALTER TABLE users RENAME COLUMN fullname TO name;\n")
    assert shop.mypy() == []


def test_an_edit_of_a_prefix_in_another_module_is_seen_by_a_warm_cache(shop: Project) -> None:
    shop.edit("users.py", 'req.params["id"]', 'req.params["org"]')
    found = [
        'users.py:18: error: req.params["org"]: the path /users/:id has no parameter org. It has id  [core-params]'
    ]
    assert shop.mypy() == found
    shop.edit("app.py", '"/users"', '"/:org/users"')
    shop.edit("links.py", "id=7", "id=7, org=1")
    assert shop.mypy() == []
    shop.edit("links.py", "id=7, org=1", "id=7")
    shop.edit("app.py", '"/:org/users"', '"/users"')
    assert shop.mypy() == found


def test_an_edit_of_a_route_or_mount_in_another_module_reaches_url_for(shop: Project) -> None:
    shop.edit("users.py", 'req.params["id"]', 'req.params.get("id")')
    assert shop.mypy() == []
    shop.edit("users.py", '"/:id"', '"/:user"')
    assert shop.mypy() == [NEEDS_USER]
    assert shop.mypy() == [NEEDS_USER]
    shop.edit("users.py", '"/:user"', '"/:id"')
    assert shop.mypy() == []
    shop.edit("app.py", '"/users"', '"/:tenant/users"')
    assert shop.mypy() == [
        "links.py:8: error: url_for(show): the path /:tenant/users/:id needs tenant. Give tenant=…  [core-params]"
    ]
    shop.edit("app.py", '"/:tenant/users"', '"/users"')
    assert shop.mypy() == []
    shop.edit("users.py", '@users.get("/:id")', "")
    shop.edit("links.py", "id=7", "")
    lost = "links.py:8: error: url_for(show): it is not the handler of a route. Register it, or name the function that was registered"
    empty = 'app.py:8: error: use("/users", Router()) mounts nothing: the router has neither routes nor middleware'
    assert shop.mypy() == [f"{empty}. Register them on it, or leave it out  [core-route]", f"{lost}  [core-params]"]


def test_an_env_derived_from_elsewhere_is_seen_by_a_warm_cache(shop: Project) -> None:
    shop.edit("env.py", "    ORIGIN: str\n", "")
    found = [
        (
            "env.py:7: error: Env has no attribute for the variable ORIGIN (wrangler.toml:15 [vars]). Write ORIGIN: str  "
            "[core-env]"
        )
    ]
    assert shop.mypy() == found
    shop.write("wide.py", "import attrs\nfrom env import Env\n\n\n@attrs.frozen\nclass Wide(Env):\n    ORIGIN: str\n")
    assert shop.mypy() == []
    shop.root.joinpath("wide.py").unlink()
    assert shop.mypy() == found


def test_an_edit_of_env_reaches_the_modules_that_name_its_bindings(shop: Project) -> None:
    assert shop.mypy() == []
    shop.edit("env.py", "SESSIONS: KVNamespace", 'sessions: KVNamespace = attrs.field(alias="SESSIONS")')
    assert shop.mypy() == []
    shop.edit("env.py", 'sessions: KVNamespace = attrs.field(alias="SESSIONS")', "SESSION: KVNamespace")
    shop.edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    assert shop.mypy() == [
        (
            'app.py:7: error: rate_limit(kv_binding="SESSIONS"): Env has no attribute SESSIONS. Did you mean SESSION?  '
            "[core-binding]"
        )
    ]


def test_two_workers_say_what_one_says(shop: Project) -> None:
    shop.edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    shop.edit("migrations/0001_init.sql", "name TEXT NOT NULL", "fullname TEXT NOT NULL")
    command = ("mypy", "--config-file", "mypy.ini", "--cache-dir", ".mypy_cache", ".")
    parallel = shop.process(*command, "-n", "2")
    assert sorted(parallel) == sorted([RENAMED, MOVED])
    assert sorted(shop.process(*command, "-n", "2")) == sorted(parallel)
    assert sorted(shop.process(*command)) == sorted(parallel)
    shop.edit("wrangler.toml", '"SESSION"', '"SESSIONS"')
    assert shop.process(*command, "-n", "2") == [MOVED]
    shop.edit("migrations/0001_init.sql", "fullname TEXT NOT NULL", "name TEXT NOT NULL")
    shop.edit("users.py", '"/:id"', '"/:id/of/:org"')
    assert shop.process(*command, "-n", "2") == [OTHER_ROUTE]


def test_nothing_is_kept_in_the_folder_of_mypy(shop: Project) -> None:
    assert shop.mypy() == []
    assert [path for path in shop.cache.rglob("*") if "core-plugin" in path.name] == []
    kept = {path.name for path in (shop.root / ".core" / "cache").iterdir()}
    assert kept >= {".gitignore", "modules.json", "mypy.json"}


def test_an_edited_module_alone_is_looked_at_again(shop: Project) -> None:
    assert shop.mypy() == []
    shop.edit("users.py", "SELECT id, name", "SELECT id, name, email")
    memory = Memory(Cache(shop.root))
    prove(load_all(shop.root / "wrangler.toml"), Options(paths=[shop.root]), memory)
    changed = {"users.py", "app.py", "links.py"}  # itself, and what imports it
    assert memory.looked == len(changed)


@pytest.fixture
def daemon(shop: Project) -> Iterator[Project]:
    """The project with a daemon of its own, which is ended by its own client."""
    yield shop
    shop.process("mypy.dmypy", "--status-file", "status.json", "stop", check=False)


@pytest.mark.slow
def test_the_daemon_sees_what_lies_beside_the_python(daemon: Project) -> None:
    moment = time.time()

    def run() -> list[str]:
        command = ("mypy.dmypy", "--status-file", "status.json", "run", "--", "--config-file", "mypy.ini", ".")
        told = daemon.process(*command, check=False)
        return [line for line in told if not line.startswith(("Daemon", "Restarting"))]

    def edit(name: str, old: str, new: str) -> None:
        nonlocal moment
        daemon.edit(name, old, new)
        moment += 2  # the daemon compares whole seconds: an edit is dated ahead rather than waited for
        os.utime(daemon.root / name, (moment, moment))

    assert run() == []
    edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    assert run() == [RENAMED]
    edit("wrangler.toml", '"SESSION"', '"SESSIONS"')
    assert run() == []
    edit("migrations/0001_init.sql", "name TEXT NOT NULL", "fullname TEXT NOT NULL")
    assert run() == [MOVED]
    edit("migrations/0001_init.sql", "fullname TEXT NOT NULL", "name TEXT NOT NULL")
    assert run() == []
    edit("users.py", '"/:id"', '"/:user"')
    assert run() == [
        'users.py:18: error: req.params["id"]: the path /users/:user has no parameter id. It has user  [core-params]',
        NEEDS_USER,
    ]
    edit("users.py", '"/:user"', '"/:id"')
    assert run() == []
    edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    assert run() == [RENAMED]
    edit("env.py", "import attrs", "import attrs\n")
    edit("env.py", "import attrs\n\n", "import attrs\n")
    edit("env.py", "    ORIGIN: str", "    ORIGIN: str  # where it is")
    assert run() == [RENAMED]  # in a module that was read again


def test_modules_from_elsewhere_are_not_checked_again_without_a_change(project: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name, other in (("links_a", "links_b"), ("links_b", "links_c"), ("links_c", "core")):
        text = (
            f"from collections.abc import Callable\n\nimport {other}\nfrom core import Request\n\n\n"
            "def link(req: Request, route: Callable[..., object]) -> str:\n"
        )
        (elsewhere / f"{name}.py").write_text(f'{text}    return req.url_for(route) + {other}.__name__ + "/:id"\n')
    project = Project(tmp_path / "project", project.cache)
    project.write("mypy.ini", f"{STRICT}mypy_path = {elsewhere}\n")
    project.usual()
    project.write(
        "app.py", "import links_a\nfrom core import create_app\nfrom env import Env\n\napp = create_app(Env)\n"
    )
    arguments = ["--config-file", str(project.root / "mypy.ini"), "--cache-dir", str(project.cache), "-v"]
    _, first, _ = api.run([*arguments, str(project.root / "app.py")])
    assert "Could not load cache for links_a" in first
    said, again, _ = api.run([*arguments, str(project.root / "app.py")])
    assert said.startswith("Success"), said
    assert "Metadata fresh for links_a" in again
    assert [line for line in again.splitlines() if "abandoned" in line] == []
