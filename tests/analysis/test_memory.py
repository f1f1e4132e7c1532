"""`core check --watch`: a look with the memory of the last one finds what a fresh look finds, and looks at less."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.analysis.memory import Memory
from core.analysis.program import Options, prove
from core.config.load import load_all

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def users(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "users"
    shutil.copytree(
        ROOT / "examples" / "users", root, ignore=shutil.ignore_patterns(".core", "__pycache__", ".mypy_cache")
    )
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
    assert look() == ['req.params["id"]: the path /shown/:ids/x has no parameter id. Did you mean ids?']


def test_core_check_watch_answers_an_edit(users: Path) -> None:
    command = [sys.executable, "-m", "core.cli", "check", "--watch"]
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
