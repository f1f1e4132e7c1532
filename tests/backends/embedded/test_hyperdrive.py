"""Hyperdrive on CPython: which address counts, what a wrong one says, and asyncpg against a real PostgreSQL."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from tests.support.commands import Command, ask
from tests.support.postgres import postgres

import postgres as example
from core.assembly.embedded import embed
from core.backends.embedded.hyperdrive import VARIABLES, EmbeddedHyperdrive
from core.backends.embedded.store import Store
from core.config.addresses import connection_problem
from core.config.load import load
from core.errors import ConfigurationError, UnsupportedBindingError
from core.testing import Client, FakeHyperdrive, env

EXAMPLE = Path(example.__file__ or "")
TABLE = 'name = "users"\nmain = "postgres.py"\ncompatibility_date = "2026-04-01"\n[[hyperdrive]]\nbinding = "DATABASE"\nid = "1"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("postgres://ada:secret@h/shop", None),
        ("mysql://ada:secret@h:3306/shop", None),
        ("http://ada:secret@h/shop", "it must begin with postgres://, postgresql:// or mysql://"),
        ("postgres://ada:secret@h", "a database is missing"),
        ("postgres://ada@h/shop", "a password is missing"),
        ("postgres:///shop", "a host, a user, a password is missing"),
        ("postgres://ada:secret@h:x/shop", "it is not a URL"),
    ],
)
def test_a_wrong_connection_string_is_told_without_a_word_of_it(text: str, problem: str | None) -> None:
    assert connection_problem(text) == problem
    if problem is not None:
        with pytest.raises(ConfigurationError) as raised:
            EmbeddedHyperdrive(text, binding="DATABASE")
        assert "secret" not in str(raised.value)


def made(folder: Path, text: str, secrets: dict[str, str] | None = None) -> EmbeddedHyperdrive:
    (folder / "wrangler.toml").write_text(text)
    with Store(None) as store:
        bindings = embed(load(folder / "wrangler.toml"), store, secrets=secrets)
    found = bindings.values["DATABASE"]
    assert isinstance(found, EmbeddedHyperdrive)
    return found


def test_a_wrong_local_connection_string_is_a_mistake_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"hyperdrive\[0\]\.localConnectionString cannot be used") as raised:
        made(tmp_path, TABLE + 'localConnectionString = "http://ada:secret@h/shop"\n')
    assert "secret" not in str(raised.value)


def test_the_variable_counts_then_the_local_connection_string(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedBindingError, match=r"DATABASE: no database is named .* Set \w+_STRING_DATABASE"):
        _ = made(tmp_path, TABLE).host
    local = TABLE + 'localConnectionString = "postgres://a:b@local/one"\n'
    assert made(tmp_path, local).host == "local"
    named = "postgres://a:b@{}/one"
    assert made(tmp_path, local, {f"{VARIABLES[1]}DATABASE": named.format("dotfile")}).host == "dotfile"
    monkeypatch.setenv(f"{VARIABLES[1]}DATABASE", named.format("older"))
    assert made(tmp_path, local).host == "older"
    monkeypatch.setenv(f"{VARIABLES[0]}DATABASE", named.format("newer"))
    assert made(tmp_path, local).host == "newer"


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres() as address:
        yield address


async def emptied(address: str) -> None:
    connection = await asyncpg.connect(address)
    await connection.execute(
        "DROP TABLE IF EXISTS users; CREATE TABLE users (id serial PRIMARY KEY, name text NOT NULL)"
    )
    await connection.close()


@pytest.mark.slow
async def test_the_example_reads_and_writes_a_real_database(database: str) -> None:
    await emptied(database)
    async with Client(example.app, env(example.Env, DATABASE=FakeHyperdrive(database))) as client:
        created = await client.post("/users", json={"name": "Ada"})
        assert await created.json() == {"id": 1, "name": "Ada"}
        found = await client.get("/users/1")
        assert await found.json() == {"id": 1, "name": "Ada"}
        assert (await client.get("/users/2")).status == 404


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")
def test_core_serve_on_cpython_opens_a_pool_in_each_process(database: str, tmp_path: Path) -> None:
    asyncio.run(emptied(database))
    (tmp_path / "postgres.py").write_text(EXAMPLE.read_text())
    (tmp_path / "wrangler.toml").write_text(TABLE)
    options = ["--port", "0", "--health", "127.0.0.1:0", "--workers", "2"]
    variable = {f"{VARIABLES[0]}DATABASE": database}
    served = Command("serve", "--python", *options, folder=tmp_path, env=variable)
    try:
        port, _ = served.ports()
        for number in range(1, 9):
            assert ask(port, "/users", "POST", '{"name": "Ada"}').json() == {"id": number, "name": "Ada"}
            assert ask(port, f"/users/{number}").status == 200
    finally:
        assert served.finish() == 0
    assert not [line for line in served.lines if "secret" in line]
