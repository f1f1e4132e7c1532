"""Modules that a worker loads: the list of them, and what may not be among them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from benchmarks.cold import BASE, CORE, CORE_ANSWER

PROGRAM = f"""
import sys
{BASE}
base = set(sys.modules)
{CORE}
{CORE_ANSWER}
print("\\n".join(sorted(set(sys.modules) - base)))
"""
"""The application whose cold start is measured, and its first answer."""

FORBIDDEN = (
    "cattrs", "core.cli", "core.config", "core.http.cookies", "core.testing", "core.backends.embedded", "core.mypy_plugin", "core.openapi", "email", "html",
    "http.client", "http.cookies", "ipaddress", "secrets", "sqlite3", "tomllib", "urllib.parse", "urllib.request", "uuid",
)  # fmt: skip


BY_TESTS = {"core.http.body", "core.http.request", "core.http.response"}
"""The values that `app.fetch` takes and gives: a server's host has a request of its own kind, and makes no response."""


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("module", FORBIDDEN)
def test_a_worker_does_not_load(module: str, loaded: set[str]) -> None:
    assert not [name for name in loaded if name == module or name.startswith(f"{module}.")]


def test_what_a_worker_loads_of_the_framework_is_this_list(loaded: set[str]) -> None:
    assert sorted(name for name in loaded if name.startswith("core")) == WORKER_MODULES


def test_an_application_behind_a_server_starts_without_the_values_of_fetch() -> None:
    program = f"import sys\nfrom core.hosts.asgi import asgi\n{CORE}\nasgi(app)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert BY_TESTS.isdisjoint(done.stdout.split())


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
