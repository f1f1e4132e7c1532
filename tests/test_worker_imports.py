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

COUNTED = f"""
import builtins, sys
from importlib.util import find_spec
{BASE}
base, build, classes = set(sys.modules), builtins.__build_class__, []
builtins.__build_class__ = lambda *given, **named: classes.append(given[1]) or build(*given, **named)
{CORE}
builtins.__build_class__ = build
def size(code):
    return 1 + sum(size(inner) for inner in code.co_consts if hasattr(inner, "co_code"))
modules = [name for name in set(sys.modules) - base if name.startswith("core")]
print(len(modules), len(classes), sum(size(find_spec(name).loader.get_code(name)) for name in modules))
"""

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


def test_what_a_start_is_made_of_stays_within_its_limits() -> None:
    """A cold start of core is to take 15.5 % more than attrs, typing_extensions and asyncio at most.

    On CPython 3.11 that is 48.6 million instructions (`python -m benchmarks.cold --instructions`). A module takes about
    280,000 of them, a class 70,000, a function, lambda or comprehension 10,000: nearly all that a start is made of.
    """
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    modules, classes, codes = map(int, done.stdout.split())
    thousands = 280 * modules + 70 * classes + 10 * codes
    assert thousands <= 25_200, (
        f"{modules} modules, {classes} classes, {codes} code objects. Load later what a first request does without"
    )


def test_an_escape_in_a_path_or_a_query_does_not_load_urllib() -> None:
    # It takes a worker a quarter of a second, and a visitor waits for it.
    program = """
import sys
from core.http.paths import split_path
from core.http.query import URLSearchParams
assert (split_path("/a%20b"), URLSearchParams("c=d%20e")["c"]) == (("a b",), "d e")
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not {"urllib.parse", "ipaddress"} & set(done.stdout.split())


def test_an_application_behind_a_server_starts_without_the_values_of_fetch() -> None:
    program = f"import sys\nfrom core.hosts.asgi import asgi\n{CORE}\nasgi(app)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert BY_TESTS.isdisjoint(done.stdout.split())


WORKER_MODULES = [
    "core",
    "core.app",
    "core.bindings",
    "core.bindings.d1",
    "core.bindings.kv",
    "core.bindings.secret",
    "core.context",
    "core.dispatch",
    "core.dispatch.answers",
    "core.dispatch.chain",
    "core.dispatch.dispatcher",
    "core.dispatch.finder",
    "core.env",
    "core.errors",
    "core.handlers",
    "core.http",
    "core.http.body",
    "core.http.escapes",
    "core.http.header_block",
    "core.http.headers",
    "core.http.json",
    "core.http.paths",
    "core.http.request",
    "core.http.response",
    "core.http.streams",
    "core.http.url",
    "core.middleware",
    "core.middleware.cors",
    "core.middleware.logger",
    "core.middleware.options",
    "core.middleware.rate_limit",
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
