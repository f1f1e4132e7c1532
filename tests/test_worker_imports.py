"""Modules that a worker loads: the list of them, and what may not be among them."""

from __future__ import annotations

import subprocess
import sys

import pytest

APPLICATION = """
import sys
before = set(sys.modules)
import attrs, asyncio, typing_extensions
base = set(sys.modules)
from core import App, Bindings, D1Database, KVNamespace, Request, Response, Secret, create_app, http
from core.middleware.cors import cors
from core.middleware.logger import logger
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs
from core.middleware.timeout import timeout

@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    DB: D1Database
    JWT_SECRET: Secret

app = create_app(Env)
app.use(request_id())
app.use(logger(write=lambda line: None))
app.use(secure_hdrs())
app.use(cors(origins=["https://example.test"]))
app.use("/limited", rate_limit(kv_binding="SESSIONS", limit=1, window=60))

async def show(req: Request[Env], res: Response) -> None:
    res.json(req.params)

for number in range(10):
    app.get(f"/things{number}/:id", timeout(duration=1000), show)

class Context:
    def wait_until(self, awaitable): ...
    def pass_through_on_exception(self): ...

async def main():
    response = await app.fetch(http.Request("https://example.test/things1/7"), None, Context())
    assert response.status == 200, response.status

asyncio.run(main())
print("\\n".join(sorted(set(sys.modules) - base)))
"""

FORBIDDEN = (
    "cattrs", "core.cli", "core.config", "core.http.cookies", "core.testing", "core.backends.embedded", "core.mypy_plugin", "core.openapi", "email", "html",
    "http.client", "http.cookies", "ipaddress", "secrets", "sqlite3", "tomllib", "urllib.parse", "urllib.request", "uuid",
)  # fmt: skip


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    done = subprocess.run([sys.executable, "-c", APPLICATION], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("module", FORBIDDEN)
def test_a_worker_does_not_load(module: str, loaded: set[str]) -> None:
    assert not [name for name in loaded if name == module or name.startswith(f"{module}.")]


def test_what_a_worker_loads_of_the_framework_is_this_list(loaded: set[str]) -> None:
    assert sorted(name for name in loaded if name.startswith("core")) == WORKER_MODULES


WORKER_MODULES = [
    "core",
    "core.answers",
    "core.app",
    "core.bindings",
    "core.bindings.d1",
    "core.bindings.kv",
    "core.bindings.secret",
    "core.chain",
    "core.context",
    "core.dispatch",
    "core.env",
    "core.errors",
    "core.finding",
    "core.handlers",
    "core.header_block",
    "core.http",
    "core.http.body",
    "core.http.escapes",
    "core.http.headers",
    "core.http.json",
    "core.http.request",
    "core.http.response",
    "core.http.streams",
    "core.http.url",
    "core.middleware",
    "core.middleware.cors",
    "core.middleware.logger",
    "core.middleware.options",
    "core.middleware.rate_limit",
    "core.middleware.rate_limit_stores",
    "core.middleware.request_id",
    "core.middleware.secure_headers",
    "core.middleware.timeout",
    "core.request",
    "core.response",
    "core.router",
    "core.routing",
    "core.routing.pattern",
    "core.routing.scopes",
    "core.routing.table",
    "core.values",
]
