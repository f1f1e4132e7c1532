"""A client of `core client` in workerd: requests go through a service binding, and answers come back as its classes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.conftest import Background, Make, Running, start_running
from tests.support.command_line import run
from tests.support.libraries import with_libraries

from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain

HERE = Path(__file__).parent / "clients"
PLAN = Plan(name="clients", services={"ITSELF": "clients"})
CONFIGURATION = """
name = "clients"
main = "api.py"
compatibility_date = "2026-04-01"

[[services]]
binding = "ITSELF"
service = "clients"
"""


@pytest.fixture(scope="module")
def node(
    tools: Toolchain, make: Make, background: Background, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("clients") / "project"
    shutil.copytree(HERE, folder)
    (folder / "main.py.in").rename(folder / "main.py")  # without its client no type checker understands it
    (folder / "wrangler.toml").write_text(CONFIGURATION)
    described = run("openapi", "-o", "openapi.json", folder=with_libraries(folder))
    assert (described.returncode, described.stderr) == (0, "")
    written = run("client", "openapi.json", "-o", "client.py", folder=folder)
    assert written.returncode == 0, written.stderr
    running = start_running(
        tools, make(folder / "main.py", PLAN, snapshot=False), background, folder.parent / "state", plan=PLAN, env={}
    )
    yield running
    running.stop()


def test_an_answer_is_of_its_class(node: Running) -> None:
    assert (node.get("/ask/user/1").status, node.get("/ask/user/1").text) == (200, "Ada, born in 1815")


def test_a_declared_error_is_too(node: Running) -> None:
    answer = node.get("/ask/user/2")
    assert (answer.status, answer.json()) == (410, {"error": "User not found (NO_USER)"})


def test_bodies_and_headers_are_sent(node: Running) -> None:
    assert node.get("/ask/new/Grace").text == "Grace by a worker, application/json"


def test_events_are_iterated_over(node: Running) -> None:
    assert json.loads(node.get("/ask/sum").text) == 6
