"""One program with a mistake of every code, reported alike by every front end: mypy cold and warm, `-n 2`,
dmypy and `core check`.
"""

from __future__ import annotations

from pathlib import Path

import mypy.version
import pytest
from tests.mypy_plugin.conftest import WRANGLER, Project

from core.analysis.program import Options, check_program
from core.config.load import load_all

APP = """\
from core import ExecutionContext, MessageBatch, Request, Response, Router, create_app
from core.middleware.logger import logger
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from env import Env
from handlers import show

app = create_app(Env)
app.use(logger())
app.use(request_id())
#^ core-order: logger() is registered before request_id(), but logger() reads req.id. Register request_id() first
app.use(rate_limit(kv_binding="SESSION", limit=1, window=60))
#^ core-binding: rate_limit(kv_binding="SESSION"): Env has no attribute SESSION. Did you mean SESSIONS?
app.get("/users/:id", show)


@app.get("/users/me")
#^ core-route: get("/users/me") is never reached: get("/users/:id") is registered before it, and answers. Register get("/users/me") first
async def me(req: Request[Env], res: Response) -> None:
    await req.env.DB.prepare("SELECT nam FROM users").all()
    #^ core-sql: DB: no such column: nam. Did you mean name?


@app.queue("job")
#^ core-queue: queue("job"): wrangler.toml has no consumer of that queue. Did you mean jobs?
async def work(batch: MessageBatch[str], env: Env, ctx: ExecutionContext) -> None: ...


app.use("/empty", Router())
#^ core-route: use("/empty", Router()) mounts nothing: the router has neither routes nor middleware. Register them on it, or leave it out
"""

HANDLERS = """\
from core import Request, Response
from env import Env


async def show(req: Request[Env], res: Response) -> None:
    res.text(req.params["idd"])
    #^ core-params: req.params["idd"]: the path /users/:id has no parameter idd. Did you mean id?
"""


@pytest.fixture
def shop(tmp_path: Path, mypy_cache: Path) -> Project:
    project = Project(tmp_path.resolve(), mypy_cache).usual()
    project.write("wrangler.toml", WRANGLER + 'HOSTS = ["a", 1]\n\n[[queues.consumers]]\nqueue = "jobs"\n')
    project.write("app.py", APP)
    project.write("handlers.py", HANDLERS)
    path = project.root / "env.py"
    message = "Env.HOSTS is a list[str], but wrangler.toml:16 [vars] HOSTS[1] is a whole number, not a str. Correct one of the two"
    path.write_text(path.read_text() + f"    HOSTS: list[str]\n    #^ core-env: {message}\n")
    return project


COMMAND = ("mypy", "--show-traceback", "--config-file", "mypy.ini", "--cache-dir", ".mypy_cache", ".")


def test_mypy_says_it_cold_and_warm_and_core_check_says_it(shop: Project) -> None:
    shop.check()
    shop.check()
    findings = check_program(load_all(shop.root / "wrangler.toml"), Options(paths=[shop.root]))
    assert sorted(finding.text.replace(f"{shop.root}/", "") for finding in findings) == shop.expected()


@pytest.mark.skipif(mypy.version.__version__ < "2", reason="mypy 1 has no -n")
def test_two_workers_say_it(shop: Project) -> None:
    assert sorted(shop.process(*COMMAND, "-n", "2")) == shop.expected()
    assert sorted(shop.process(*COMMAND, "-n", "2")) == shop.expected()


@pytest.mark.slow
def test_the_daemon_says_it(shop: Project) -> None:
    daemon = ("mypy.dmypy", "--status-file", "status.json")
    try:
        told = shop.process(*daemon, "run", "--", "--config-file", "mypy.ini", ".", check=False)
        assert sorted(line for line in told if "[core-" in line) == shop.expected()
    finally:
        shop.process(*daemon, "stop", check=False)
