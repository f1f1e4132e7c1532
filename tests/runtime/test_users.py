"""The example application in workerd, over HTTP: its own tests as they stand, and what the two READMEs print.

The fixtures of its tests are replaced by a client of a running node; those that need the fakes have their counterparts
here.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import itertools
import json
import re
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from json import dumps
from pathlib import Path
from typing import Any

import jwt
import pytest
from tests.runtime.conftest import Background, Make, Running, make_of, start_running
from tests.support.commands import Answer
from tests.support.readme import blocks

from core import http
from core.runtime.bundle import Bundle
from core.runtime.node import make_ready
from core.runtime.options import Front
from core.runtime.project import Project, open_project
from core.runtime.toolchain import Toolchain

USERS = Path(__file__).parents[2] / "examples" / "users"
SECRET = "an-example-secret-that-everyone-may-know"
ADA = b'{"name": "Ada", "email": "ada@example.com"}'
addresses = (f"192.0.2.{number}" for number in itertools.count(1))

# These look behind the application, into its fakes.
NEED_FAKES = {
    "test_creating_a_user_leaves_an_event_in_the_background",
    "test_an_unexpected_error_tells_the_client_nothing_but_its_id",
}


def own_tests() -> Iterator[tuple[str, Any]]:
    """The test functions of the example."""
    for path in (USERS / "tests" / "test_main.py", USERS / "tests" / "routes" / "test_users.py"):
        spec = importlib.util.spec_from_file_location(f"users_in_workerd_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield from ((name, value) for name, value in vars(module).items() if name.startswith("test_"))


OWN_TESTS = dict(own_tests())
globals().update({name: test for name, test in OWN_TESTS.items() if name not in NEED_FAKES})


class HttpResponse:
    """An answer as the example's tests read it."""

    def __init__(self, answer: Answer) -> None:
        self.status = answer.status
        self.headers = http.Headers(answer.headers)
        self._body = answer.body

    async def text(self) -> str:
        return self._body.decode()

    async def json(self) -> Any:
        return json.loads(self._body)


class HttpClient:
    """`core.testing.Client` for the example's tests, over HTTP, with a client address of its own."""

    def __init__(self, node: Running) -> None:
        self._node = node
        self._address = next(addresses)

    async def request(
        self, method: str, path: str, *, json: object = None, headers: dict[str, str] | None = None
    ) -> HttpResponse:
        body = None if json is None else dumps(json)
        sent = {"X-Real-IP": self._address, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        return HttpResponse(self._node.request(method, path, body, sent))

    async def get(self, path: str, **given: Any) -> HttpResponse:
        return await self.request("GET", path, **given)

    async def post(self, path: str, **given: Any) -> HttpResponse:
        return await self.request("POST", path, **given)

    async def put(self, path: str, **given: Any) -> HttpResponse:
        return await self.request("PUT", path, **given)

    async def delete(self, path: str, **given: Any) -> HttpResponse:
        return await self.request("DELETE", path, **given)


class Undrained:
    """Background work needs nobody who waits for it in the real runtime."""

    async def drain(self) -> None: ...


def headers_of(*, is_admin: bool = False, secret: str = SECRET, hours: float = 1) -> dict[str, str]:
    """The example's own fixture `token`, signed with the secret of `.dev.vars`."""
    claims = {
        "sub": "7",
        "email": "grace@example.com",
        "isAdmin": is_admin,
        "exp": dt.datetime.now(dt.UTC) + dt.timedelta(hours=hours),
    }
    return {"Authorization": f"Bearer {jwt.encode(claims, secret, algorithm='HS256')}"}


@pytest.fixture(scope="module")
def project() -> Project:
    """The example as `core build` sees it."""
    return open_project(USERS / "wrangler.toml")


@pytest.fixture(scope="module")
def built(project: Project, make: Make) -> Bundle:
    """The example's bundle."""
    return make_of(make, project)


@pytest.fixture(scope="module")
def begin(
    project: Project,
    built: Bundle,
    tools: Toolchain,
    background: Background,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Running]]:
    """Start a node with an empty database; it is stopped when the module is done."""
    started: list[Running] = []

    def begin(*, migrate: bool = True) -> Running:
        node = start_running(
            tools,
            built,
            background,
            tmp_path_factory.mktemp("state"),
            plan=project.plan,
            env=project.environment,
            front=Front(ip_header="X-Real-IP"),
        )
        started.append(node)
        if migrate:
            said: list[str] = []
            background.run(make_ready(node.node, built, migrate=True, say=said.append))
            assert said == ["DB: applied 0001_users.sql", "DB: applied 0002_events.sql"]
        return node

    yield begin
    for node in started:
        node.stop()


@pytest.fixture(scope="module")
def users(begin: Callable[..., Running]) -> Running:
    """The node that the example's tests share."""
    return begin()


@pytest.fixture
def client(users: Running) -> Iterator[HttpClient]:
    # A counter is for one minute: none of the tests may begin in one and end in another.
    if (left := 60 - time.time() % 60) < 20:
        time.sleep(left)
    yield HttpClient(users)
    # The next test begins with an empty table again, and SQLite with the id 1.
    for user in users.get("/users?limit=100").json()["results"]:
        assert users.request("DELETE", f"/users/{user['id']}", headers=headers_of(is_admin=True)).status == 204


@pytest.fixture
def ctx() -> Undrained:
    return Undrained()


@pytest.fixture
def token() -> Callable[..., dict[str, str]]:
    return headers_of


def test_every_test_of_the_example_is_run_here_or_has_a_counterpart() -> None:
    assert len(OWN_TESTS) >= 17
    assert set(OWN_TESTS) > NEED_FAKES


def test_work_in_the_background_is_done_after_the_answer(begin: Callable[..., Running]) -> None:
    node = begin()
    assert node.request("POST", "/users", ADA, {"X-Request-Id": "test-1"}).json() == {"id": 1}
    assert node.stop() == 0  # requests and their background work are finished first

    assert events_of(node) == [("created", 1, "test-1")]


def test_an_unexpected_error_gives_its_id_and_the_log_the_rest(begin: Callable[..., Running]) -> None:
    node = begin(migrate=False)  # there is no table

    answer = node.get("/users", headers={"X-Request-Id": "test-3"})

    assert (answer.status, answer.json()) == (500, {"error": "Internal Server Error", "requestId": "test-3"})
    node.said("GET /users failed")
    node.said("no such table: users")


def test_the_curl_lines_of_both_readmes_are_answered_as_printed(begin: Callable[..., Running]) -> None:
    node = begin()
    (console,) = [block for block in blocks("console") if "$ curl" in block]
    exchanges = re.findall(r"^\$ (curl .*)\n(.*)$", console, re.MULTILINE)
    assert len(exchanges) == 5
    for command, printed in exchanges:
        words = shlex.split(command.replace("127.0.0.1:8787", f"127.0.0.1:{node.port}"))
        answer = subprocess.run([words[0], "--silent", "--show-error", *words[1:]], capture_output=True, text=True)
        assert (answer.stdout, answer.stderr) == (printed, ""), command

    text = (USERS / "README.md").read_text("utf-8")
    (console,) = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    commands = "\n".join(line[2:] for line in console.splitlines() if line.startswith("$ "))
    script = commands.replace("127.0.0.1:8787", f"127.0.0.1:{node.port}").replace("$(python ", f"$({sys.executable} ")
    script = script.replace("curl ", "curl --silent --write-out '\\n' ")
    answers = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert answers.stdout.splitlines() == [line for line in console.splitlines() if not line.startswith("$ ")]


def events_of(node: Running) -> list[tuple[str, int, str]]:
    """The rows that a stopped node has in the table `events` of its files."""
    for file in node.state.rglob("*.sqlite"):
        database = sqlite3.connect(file)
        try:
            if database.execute("SELECT name FROM sqlite_master WHERE name = 'events'").fetchone() is not None:
                return database.execute("SELECT kind, user_id, request_id FROM events").fetchall()
        finally:
            database.close()
    raise AssertionError(f"no file below {node.state} has a table `events`")
