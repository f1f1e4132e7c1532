"""The RealWorld example in workerd, over HTTP: sign up, sign in, write, list, favourite, comment; and its passwords."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.runtime.conftest import Background, Make, Running, make_of, start_running

from core import passwords
from core.runtime.node import make_ready
from core.runtime.plan import Plan
from core.runtime.project import Project, open_project
from core.runtime.toolchain import Toolchain

CONDUIT = Path(__file__).parents[2] / "examples" / "conduit"
ADA = {"username": "ada", "email": "ada@example.com", "password": "analytical \N{LATIN SMALL LETTER E WITH ACUTE}"}


@pytest.fixture(scope="module")
def project() -> Project:
    """The example as `core build` sees it."""
    return open_project(CONDUIT / "wrangler.toml")


@pytest.fixture(scope="module")
def begin(
    project: Project, tools: Toolchain, make: Make, background: Background, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Plan], Running]]:
    """Start a node with an empty database, by a plan; it is stopped when the module is done."""
    bundle = make_of(make, project)
    started: list[Running] = []

    def begin(plan: Plan) -> Running:
        state = tmp_path_factory.mktemp("state")
        node = start_running(tools, bundle, background, state, plan=plan, env=project.environment)
        started.append(node)
        said: list[str] = []
        background.run(make_ready(node.node, bundle, migrate=True, say=said.append))
        assert said == ["DB: applied 0001_conduit.sql"]
        return node

    yield begin
    for node in started:
        node.stop()


@pytest.fixture(scope="module")
def conduit(begin: Callable[[Plan], Running], project: Project) -> Running:
    """The node that the tests share."""
    return begin(project.plan)


def ask(node: Running, method: str, path: str, body: object = None, token: str | None = None) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Token {token}"} if token else {})
    answer = node.request(method, f"/api{path}", None if body is None else json.dumps(body), headers)
    return answer.status, answer.json() if answer.body else None


def test_a_writer_and_a_reader_meet_in_the_real_runtime(conduit: Running) -> None:
    status, _ = ask(conduit, "POST", "/users", {"user": ADA})
    assert status == 201
    status, signed_in = ask(conduit, "POST", "/users/login", {"user": ADA})
    assert (status, signed_in["user"]["username"]) == (200, "ada")
    wrong = ask(conduit, "POST", "/users/login", {"user": {**ADA, "password": "differential"}})
    assert wrong == (401, {"errors": {"credentials": ["invalid"]}})
    again = ask(conduit, "POST", "/users", {"user": {**ADA, "email": "another@example.com"}})
    assert again == (409, {"errors": {"username": ["has already been taken"]}})
    assert ask(conduit, "GET", "/user") == (401, {"errors": {"token": ["is missing"]}})
    ada = signed_in["user"]["token"]
    _, joined = ask(conduit, "POST", "/users", {"user": {**ADA, "username": "grace", "email": "g@example.com"}})
    grace = joined["user"]["token"]

    article = {"title": "Über alles", "description": "What", "body": "Text", "tagList": ["b", "a"]}
    status, written = ask(conduit, "POST", "/articles", {"article": article}, ada)
    assert status == 201
    slug = written["article"]["slug"]
    assert re.fullmatch(r"über-alles-[0-9a-f]{8}", slug)
    path = f"/articles/{slug.replace('ü', '%C3%BC')}"
    assert ask(conduit, "GET", path) == (200, written)

    assert ask(conduit, "POST", "/profiles/ada/follow", token=grace)[1]["profile"]["following"] is True
    assert ask(conduit, "POST", f"{path}/favorite", token=grace)[1]["article"]["favoritesCount"] == 1
    status, commented = ask(conduit, "POST", f"{path}/comments", {"comment": {"body": "Well said"}}, grace)
    assert (status, commented["comment"]["author"]["username"]) == (201, "grace")

    expected = {name: value for name, value in written["article"].items() if name != "body"}
    expected |= {"favorited": True, "favoritesCount": 1, "author": {**expected["author"], "following": True}}
    for listed in ("/articles", "/articles/feed", "/articles?tag=a&author=ada&favorited=grace&limit=1"):
        assert ask(conduit, "GET", listed, token=grace) == (200, {"articles": [expected], "articlesCount": 1})
    assert ask(conduit, "GET", "/articles?tag=c") == (200, {"articles": [], "articlesCount": 0})
    assert ask(conduit, "GET", "/tags") == (200, {"tags": ["a", "b"]})
    (comment,) = ask(conduit, "GET", f"{path}/comments")[1]["comments"]
    assert comment["createdAt"].endswith("Z")

    assert ask(conduit, "DELETE", f"{path}/comments/{comment['id']}", token=ada)[0] == 403
    assert ask(conduit, "PUT", "/user", {"user": {"bio": "", "image": "x.png"}}, ada)[1]["user"]["image"] == "x.png"
    assert ask(conduit, "PUT", path, {"article": {"title": None}}, ada)[0] == 422
    assert ask(conduit, "DELETE", path, token=ada) == (204, None)
    assert ask(conduit, "GET", path) == (404, {"errors": {"article": ["not found"]}})


def test_a_password_that_the_worker_keeps_is_proven_by_cpython(conduit: Running) -> None:
    user = {**ADA, "username": "eve", "email": "eve@example.com"}
    assert ask(conduit, "POST", "/users", {"user": user})[0] == 201
    (kept,) = [
        row[0]
        for file in conduit.state.rglob("*.sqlite")
        for row in rows(file, "SELECT password FROM users WHERE username = 'eve'")
    ]

    assert asyncio.run(passwords.verify(ADA["password"], kept))
    assert not asyncio.run(passwords.verify("another", kept))
    assert not asyncio.run(passwords.needs_rehash(kept))


def test_a_worker_without_the_flag_for_passwords_says_which(begin: Callable[[Plan], Running], project: Project) -> None:
    node = begin(attrs.evolve(project.plan, compatibility_flags=(), compatibility_date="2026-04-01"))

    assert ask(node, "GET", "/tags") == (200, {"tags": []})
    assert ask(node, "POST", "/users", {"user": ADA}) == (500, {"errors": {"body": ["Internal Server Error"]}})
    node.said('Add "nodejs_compat" to compatibility_flags in wrangler.toml')


def rows(file: Path, sql: str) -> list[tuple[str]]:
    database = sqlite3.connect(file)
    try:
        return database.execute(sql).fetchall()
    except sqlite3.OperationalError:  # not the database of the application
        return []
    finally:
        database.close()
