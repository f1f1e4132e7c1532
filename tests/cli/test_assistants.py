"""What a project tells an assistant, and the skill of the package: their commands run, their code passes its checks."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.libraries import STRICT

import core
from core.cli.new import render
from core.runtime.bundle import DEVELOPMENT

SKILL = Path(core.__file__).parent / ".agents" / "skills" / "core" / "SKILL.md"

pytestmark = pytest.mark.slow


def commands(text: str) -> list[str]:
    """The commands of a text, each once."""
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return list(dict.fromkeys(re.findall(r"^\$ (.+)$", "\n".join(blocks), re.MULTILINE)))


def files(text: str) -> dict[str, str]:
    """The files of a text: a block of code behind a line that ends with its path and a colon."""
    return dict(re.findall(r"`([\w/.-]+)`:\n\n```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def ran(command: str, folder: Path) -> str:
    """What a command prints, run as a person would run it in a project that stands alone."""
    program, *arguments = shlex.split(command)
    done = subprocess.run(
        [Path(sys.executable).parent / program, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MYPY", "COV"))},
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_skill_and_the_rules_of_a_project_do_what_they_say(tmp_path: Path, mypy_cache: Path) -> None:
    skill = SKILL.read_text("utf-8")
    new, enter, *rest = commands(skill)
    ran(new, tmp_path)
    folder = tmp_path / enter.removeprefix("cd ")
    shutil.copytree(mypy_cache, folder / ".mypy_cache")
    written = files(skill)
    assert sorted(written) == ["migrations/0002_tags.sql", "src/my_notes/routes/tags.py", "tests/routes/test_tags.py"]
    for path, code in written.items():
        (folder / path).write_text(code, "utf-8")
    main = folder / "src" / "my_notes" / "main.py"
    added, used = re.findall(r"^```python\n(from my_notes\.\S+ import \w+)\n\n(.+)\n```$", skill, re.MULTILINE)[0]
    near, below = "from my_notes.routes.notes import notes", 'app.use("/notes", public(), notes)'
    text = main.read_text("utf-8")
    assert near in text
    assert below in text
    main.write_text(text.replace(near, f"{near}\n{added}").replace(below, f"{below}\n{used}"), "utf-8")

    rules = (folder / "AGENTS.md").read_text("utf-8")
    said = {command: ran(command, folder) for command in dict.fromkeys([*rest, *commands(rules)])}

    assert re.search(r"\d+ passed", said["pytest"])
    assert "Success" in said["mypy"]
    assert "not read" not in said["core check --strict"]
    assert "/tags/:id" in said["core routes"]
    assert skill in said[commands(rules)[-1]]


AROUND = """
from typing import Any
import attrs
import core.testing
from core import *
from core.middleware.jwt import jwt_auth

@attrs.frozen
class Env(Bindings):
    DB: D1Database
    COUNTERS: KVNamespace
    JWT_SECRET: Secret

@attrs.frozen
class Note:
    id: int

class NewNote(Note): ...
class NewTag(Note): ...
class Page(Note): ...
class Event(Note): ...
app = create_app(Env)
anything: Any = None
"""
INSIDE = """
async def handler{n}(req: Request[Env], res: Response, db: D1Database, note_id: int, value: object) -> None:
    first = second = statement = db.prepare("SELECT 1")
    {code}
"""
OWNERS = {
    ".put(": "await req.env.COUNTERS",
    ".first(": "await statement",
    ".all(": "await statement",
    ".bind(": "statement",
}
DECORATED = {
    "@signed_in": "async def route(req: Request[Env, Any], res: Response) -> None: ...",
    "@app.queue": "async def queued(batch: MessageBatch[Event], env: Env, ctx: ExecutionContext) -> None: ...",
    "@app.scheduled": "async def cron(event: ScheduledEvent, env: Env, ctx: ExecutionContext) -> None: ...",
}


def test_the_code_within_a_line_passes_mypy(tmp_path: Path, mypy_cache: Path) -> None:
    prose = SKILL.read_text("utf-8") + render("my-notes", frozenset())["AGENTS.md"]
    prose = re.sub(r"^```.*?^```$", "", prose, flags=re.MULTILINE | re.DOTALL)
    # The options are those that the cache was made with, which the comment narrows for this file.
    written = f'# mypy: allow-untyped-defs, disable-error-code="core"\n{AROUND}'
    codes = [code for code in dict.fromkeys(re.findall(r"`([^`\n]+)`", prose)) if re.search(r"[(\[]|^re[qs]\.", code)]
    assert len(codes) > 30
    for n, code in enumerate(codes):
        whole = re.sub(r"…(?=\))", "anything", code)
        whole = next((f"{owner}{whole}" for start, owner in OWNERS.items() if whole.startswith(start)), whole)
        if whole.startswith("@"):
            written += f"{whole}\n{DECORATED[whole.partition('.get')[0].partition('(')[0]]}\n"
        elif whole.startswith("async def "):
            written += f"{whole}: ...\n"
        elif whole.startswith("signed_in"):
            written += f"{whole}\n"
        else:
            written += INSIDE.format(n=n, code=whole)
    (tmp_path / "snippets.py").write_text(written, "utf-8")
    (tmp_path / "mypy.ini").write_text(STRICT)
    ran(f"mypy --cache-dir {mypy_cache} snippets.py", tmp_path)


def test_the_rules_name_what_the_project_has() -> None:
    made = render("my-notes", frozenset())
    named = re.findall(r"`((?:src|tests|migrations)/[\w/.-]*|wrangler\.toml)`", made["AGENTS.md"])
    assert len(named) >= 4
    assert [path for path in named if path not in made and not any(file.startswith(path) for file in made)] == []


def test_the_skill_has_the_head_that_tools_read_and_is_not_uploaded() -> None:
    head = re.match(r"---\nname: ([a-z0-9-]{1,64})\ndescription: (.{1,1024})\n---\n", SKILL.read_text("utf-8"))
    assert head is not None
    assert head[1] == SKILL.parent.name
    assert "core/.agents" in DEVELOPMENT
