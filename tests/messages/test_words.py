"""Mistakes of people who come from other frameworks and libraries, and the fix that each of them is told.

`words.txt` is the table: a mistake (`-`), the fix that an error report ends with (`>`), and the same done as the fix
says (`+`), which runs. It stands in a handler, in a Durable Object, in a test or at the top of a module.
`CORE_MESSAGES=write pytest tests/messages` writes the fixes anew, to be read before they are committed.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from core import Bindings, D1Database, DurableObjectNamespace, KVNamespace, Queue, R2Bucket, Secret, create_app
from core.explain.diagnosis import explain, with_note
from core.testing import (
    Client,
    FakeD1Database,
    FakeDurableObjectNamespace,
    FakeKVNamespace,
    FakeQueue,
    FakeR2Bucket,
)

TABLE = Path(__file__).with_name("words.txt")
IMPORTS = """
import datetime, json, os, uuid
from core import *
from core.testing import *
"""
OBJECT = """
class Counter(DurableObject):
    async def add(self):
        return 1

    async def go(self):
{}
"""


@attrs.frozen
class Env(Bindings):
    """One binding of each kind that has a fake."""

    KV: KVNamespace
    DB: D1Database
    FILES: R2Bucket
    JOBS: Queue[Any]
    COUNTER: DurableObjectNamespace[Any]
    TOKEN: Secret
    NAME: str


@attrs.frozen
class Row:
    """One row of the table: where the code stands, and its three texts."""

    place: str
    mistake: str
    fix: str
    instead: str

    @classmethod
    def read(cls, text: str) -> Row:
        """Read a block of lines."""
        place, *lines = text.strip().splitlines()
        parts = ("\n".join(line[2:] for line in lines if line[0] == sign) for sign in "->+")
        return cls(place, *parts)


ROWS = [Row.read(block) for block in re.split(r"\n\n+", TABLE.read_text("utf-8").strip())]


def indented(code: str, by: int) -> str:
    """The code as the body of a function."""
    return textwrap.indent(code, " " * by)


async def run(place: str, code: str) -> Exception | None:
    """The error of code in its place, if it has one."""
    names: dict[str, Any] = {}
    exec(IMPORTS + OBJECT.format(indented(code if place == "object" else "pass", 8)), names)
    if place == "module":
        return await error_of(code, names, None, None)
    database, files, values = FakeD1Database(), FakeR2Bucket(), FakeKVNamespace()
    await database.exec("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)")
    await database.prepare("INSERT INTO users (name) VALUES ('ada')").run()
    await values.put("a", "1")
    await files.put("f", b"x", http_metadata={"content_type": "text/plain"})
    counter = FakeDurableObjectNamespace(names["Counter"])
    env = Env(values, database, files, FakeQueue[Any](), counter, Secret("hidden"), "notes")
    if place == "object":
        return await error_of("await env.COUNTER.get_by_name('a').go()", names, env, create_app(Env))
    app = create_app(Env)
    errors: list[Exception] = []
    app.dispatcher.failures.on_failure = errors.append
    body = code if place == "handler" else "res.json({'a': 1})"
    exec(f"async def handler(req, res):\n    env = req.env\n{indented(body, 4)}\n    res.sent or res.send()", names)
    app.all("/", names["handler"])
    if place == "test":
        return await error_of(code, names, env, app)
    await Client(app, env).post("/?q=1", json={"a": 1})
    return errors[0] if errors else None


async def error_of(code: str, names: dict[str, Any], env: Env | None, app: object) -> Exception | None:
    """The error of code that is called with an Env and an application, or at the top of a module."""
    try:
        if app is None:
            exec(code, names)
            return None
        exec(f"async def test(env, app):\n{indented(code, 4)}", names)
        test: Callable[[object, object], Awaitable[None]] = names["test"]
        await test(env, app)
    except Exception as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.mistake.splitlines()[-1][:60])
async def test_a_mistake_is_told_its_fix_and_the_fix_runs(row: Row) -> None:
    error = await run(row.place, row.mistake)

    assert error is not None
    fix = explain(error) or "–"
    if os.environ.get("CORE_MESSAGES") == "write":
        rewrite(row, fix)
        return
    assert fix == row.fix
    with_note(error)
    assert fix.rstrip(".").lower() in "\n".join([str(error), *getattr(error, "__notes__", ())]).lower()
    assert await run(row.place, row.instead) is None


def rewrite(row: Row, fix: str) -> None:
    """Write one fix anew."""
    mistake = "".join(f"- {line}\n" for line in row.mistake.splitlines())
    text = TABLE.read_text("utf-8")
    before = f"{row.place}\n{mistake}"
    end = text.index(before) + len(before)
    rest = text[end:].partition("+ ")
    TABLE.write_text(f"{text[:end]}> {fix}\n{rest[1]}{rest[2]}", "utf-8")
