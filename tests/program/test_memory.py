"""`core check --watch`: a look with the memory of the last one finds what a fresh look finds, and looks at less."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.mutations import MUTATIONS, make
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.copies import copy_project

from core.config.load import load_all
from core.errors import ConfigurationError
from core.program.module_rules import Memory, without_collecting
from core.program.proof import Options, Proof, prove

ROOT = Path(__file__).resolve().parents[2]
MISSING = "shop/m7.py"  # in projects of more modules alone
# One for all examples of the property below: a file that two of them leave at one time would seem unchanged.
SECONDS = itertools.count(1)


@pytest.fixture
def users(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "users"
    copy_project(ROOT / "examples" / "users", root)
    return root


def changed(path: Path, old: str, new: str) -> Callable[[], None]:
    """Change a file, and give the way back. Its time is moved on, in case the clock of the file system is coarse."""
    text = path.read_text()
    assert old in text
    moment = path.stat().st_mtime + 10

    def write(text: str, at: float) -> None:
        path.write_text(text)
        os.utime(path, (at, at))

    write(text.replace(old, new), moment)
    return lambda: write(text, moment + 10)


SOURCE = "src/users_api"


@pytest.mark.parametrize(
    ("file", "old", "new", "most"),
    [
        (f"{SOURCE}/routes/users.py", '@users.get("/:id")', '@users.get("/:user_id")', 4),
        (f"{SOURCE}/env.py", "COUNTERS", "TALLIES", None),
        ("wrangler.toml", 'binding = "COUNTERS"', 'binding = "TALLIES"', None),
        ("migrations/0002_events.sql", "kind TEXT", "kynd TEXT", None),
    ],
)
def test_a_look_with_memory_finds_what_a_fresh_one_finds(
    users: Path, file: str, old: str, new: str, most: int | None
) -> None:
    memory = Memory()

    def look(memory: Memory) -> list[str]:
        return [finding.text for finding in prove(load_all(users / "wrangler.toml"), Options(), memory).findings]

    assert look(memory) == []
    everything = memory.looked
    back = changed(users / file, old, new)
    found = look(memory)
    assert found
    assert found == look(Memory())
    looked = memory.looked - everything
    assert looked <= (everything if most is None else most)
    assert look(memory) == found
    assert memory.looked - everything == looked  # nothing has changed since
    back()
    assert look(memory) == []


def test_what_another_module_registers_is_looked_at_again(users: Path) -> None:
    (users / "src/users_api/handlers.py").write_text(
        "from core import Request, Response\nfrom users_api.env import Env\n\n\n"
        'async def show(req: Request[Env], res: Response) -> None:\n    res.text(req.params["id"])\n'
    )
    app = users / "src/users_api/routes/users.py"
    app.write_text(
        app.read_text() + '\n\nfrom users_api.handlers import show as shown\n\nusers.get("/shown/:id/x", shown)\n'
    )
    memory = Memory()

    def look() -> list[str]:
        return [finding.message for finding in prove(load_all(users / "wrangler.toml"), Options(), memory).findings]

    assert look() == []
    changed(app, "/shown/:id/x", "/shown/:ids/x")
    assert look() == ['req.params["id"]: the path /users/shown/:ids/x has no parameter id. Did you mean ids?']


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shop").resolve()
    make(root, 2)
    return root


@settings(max_examples=settings().max_examples // 5)
@given(edits=st.lists(st.integers(0, len(MUTATIONS) - 1), min_size=1, max_size=6, unique=True), data=st.data())
def test_after_any_edits_a_look_with_memory_finds_what_a_fresh_one_finds(
    shop: Path, edits: list[int], data: st.DataObject
) -> None:
    """Each edit is one of the benchmark's mutations, made upon those before it; at times one file is put back."""
    texts = {file: (shop / file).read_text() for file in {mutation.file for mutation in MUTATIONS} if file != MISSING}
    memory = Memory()

    def write(file: str, text: str) -> None:
        (shop / file).write_text(text)
        os.utime(shop / file, (10**9, 10**9 + next(SECONDS)))  # as an editor's files would have, on a fine clock

    def look(memory: Memory) -> Proof | str:
        try:
            return prove(load_all(shop / "wrangler.toml"), Options(), memory)
        except ConfigurationError as error:
            return str(error)

    try:
        look(memory)
        for number in edits:
            file, old, new = MUTATIONS[number][:3]
            text = (shop / file).read_text() if file != MISSING else ""
            if old not in text:
                continue
            write(file, text.replace(old, new, 1))
            assert look(memory) == look(Memory())
            if data.draw(st.booleans()):
                back = data.draw(st.sampled_from(sorted(texts)))
                write(back, texts[back])
                assert look(memory) == look(Memory())
    finally:
        for file, text in texts.items():
            write(file, text)


def test_a_copy_that_keeps_time_and_size_is_seen(shop: Path) -> None:
    env, memory = shop / "shop/env.py", Memory()
    text, stat = env.read_text(), env.stat()
    assert not prove(load_all(shop / "wrangler.toml"), Options(), memory).findings
    try:
        env.write_text(text.replace("JOBS: Queue[Job]", "JOBS: Queue[str]"))
        os.utime(env, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        codes = [finding.code for finding in prove(load_all(shop / "wrangler.toml"), Options(), memory).findings]
    finally:
        env.write_text(text)
    assert codes == ["core-queue"]


def test_what_was_frozen_before_a_look_stays_so() -> None:
    gc.freeze()
    with without_collecting():
        pass
    assert gc.get_freeze_count()


def test_core_check_watch_answers_an_edit(users: Path) -> None:
    command = [sys.executable, "-m", "core", "check", "--watch"]
    with subprocess.Popen(command, cwd=users, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as watching:
        assert watching.stdout is not None
        try:
            told = iter(watching.stdout)
            assert next(told) == "Checking…\n"
            assert next(told).startswith("The program agrees with wrangler.toml")
            changed(users / "src/users_api/routes/users.py", '@users.get("/:id")', '@users.get("/:user_id")')
            assert next(line for line in told if "core-params" in line).startswith("src/users_api/routes/users.py:")
        finally:
            watching.kill()
