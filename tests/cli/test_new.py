"""`core new`: what it makes passes its own tests, mypy and `core check`, with any choice of bindings."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.support.command_line import run
from tests.support.nested import PLAIN
from tests.support.running import RunningDev

from core.cli.new import BINDINGS, render
from core.errors import DeveloperError, UsageError

CHOICES = [
    frozenset(choice) for count in range(len(BINDINGS) + 1) for choice in itertools.combinations(BINDINGS, count)
]


def tool(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        # A project stands alone: nothing of this repository's settings may reach it.
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MYPY", "COV"))},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "near"),
    [("1bad", ": core new bad"), ("Bad_Name", ": core new bad-name"), ("my app", ": core new my-app"), ("é", "")],
)
def test_a_name_that_is_none_is_told_the_rule_and_one_that_is(name: str, near: str) -> None:
    with pytest.raises(UsageError) as refused:
        render(name, frozenset())
    assert str(refused.value).endswith(
        f"Begin with a lower-case letter, and use lower-case letters, digits and single hyphens, 54 characters at most{near}"
    )
    if near:
        assert render(near.rpartition(" ")[2], frozenset())


@pytest.mark.parametrize(
    "bindings",
    [frozenset({name}) for name in BINDINGS] + [frozenset(BINDINGS)],
    ids=lambda choice: ",".join(sorted(choice)),
)
def test_tests_and_core_check_pass_as_generated(tmp_path: Path, bindings: frozenset[str]) -> None:
    made = run("new", "my-notes", "--with", ",".join(bindings), folder=tmp_path)
    assert made.returncode == 0, made.stderr
    folder = tmp_path / "my-notes"

    assert "passed" in tool(folder, "pytest", "-q", *PLAIN, "-W", "error")
    workflow = (folder / ".github" / "workflows" / "check.yml").read_text()
    assert "- run: core check --strict\n" in workflow
    assert run("check", "--strict", folder=folder).returncode == 0


def test_ruff_finds_nothing_in_any_choice_of_bindings_and_no_mark_of_the_templates_is_left(tmp_path: Path) -> None:
    for number, bindings in enumerate(CHOICES):
        for name, text in render("my-notes", bindings).items():
            assert "#:" not in text, name
            assert "{{" not in text, name
            file = tmp_path / str(number) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")

    tool(tmp_path, "ruff", "check", "--select", "E,F,I,UP,B", "--config", "line-length=120", ".")
    tool(tmp_path, "ruff", "format", "--check", ".")


def test_mypy_passes_as_generated_with_the_plugin_on(tmp_path: Path, mypy_cache: Path) -> None:
    """Without further bindings `tests/newcomer` begins, and finds the same."""
    run("new", "my-notes", "--with", "all", folder=tmp_path)

    folder = tmp_path / "my-notes"
    command = ("mypy", "--cache-dir", str(mypy_cache))
    assert "Success" in tool(folder, *command)

    main = folder / "src" / "my_notes" / "main.py"
    main.write_text(
        f"{main.read_text()}\n\nasync def hurry(req: Request[Env], res: Response, next: Next) -> None:\n    next()\n"
    )
    with pytest.raises(AssertionError, match=r'main\.py:\d+: error: Value of type "Awaitable\[None\]" must be used'):
        tool(folder, *command)


def test_what_a_binding_says_of_its_error_is_the_status_and_only_the_log_has_the_rest(tmp_path: Path) -> None:
    run("new", "my-notes", folder=tmp_path)
    folder = tmp_path / "my-notes"
    (folder / "tests" / "test_away.py").write_text(
        textwrap.dedent("""\
            from core import D1Error
            from core.testing import Client, FakeD1Database

            from my_notes.env import Env
            from my_notes.main import app


            class Gone(Exception):
                status = 410


            async def test_away() -> None:
                db = FakeD1Database()
                db.fail_next(D1Error("D1_ERROR: Network connection lost."))
                db.fail_next(Gone("at /etc/shadow"))
                client = Client(app, Env(DB=db))

                away, gone = await client.get("/notes"), await client.get("/notes")

                assert (away.status, away.headers["Retry-After"]) == (503, "1")
                assert (gone.status, await gone.json()) == (410, {"error": "Gone"})
        """)
    )

    assert "passed" in tool(folder, "pytest", "-q", *PLAIN, "tests/test_away.py")


def test_core_check_finds_a_binding_with_a_wrong_letter(tmp_path: Path) -> None:
    run("new", "my-notes", folder=tmp_path)
    env = tmp_path / "my-notes" / "src" / "my_notes" / "env.py"
    env.write_text(env.read_text().replace("DB:", "BD:"))

    done = run("check", folder=tmp_path / "my-notes")

    assert done.returncode == 1
    assert "env.py" in done.stdout
    assert "BD" in done.stdout


def test_it_is_served(tmp_path: Path) -> None:
    run("new", "my-notes", "--with", "all", folder=tmp_path)
    with RunningDev(tmp_path / "my-notes", tmp_path / "state", "--no-reload") as dev:
        assert dev.fetch("/notes", method="POST", body=b'{"text": "Served"}').text == '{"id":1}'
        assert dev.fetch("/notes/1").text == '{"id":1,"text":"Served"}'
        dev.until("QUEUE")


@pytest.mark.parametrize("name", ["My-Notes", "notes_", "1notes", "a" * 55, "", "../up"])
def test_a_name_that_is_none_is_told(name: str) -> None:
    with pytest.raises(DeveloperError, match="cannot be the name of a worker"):
        render(name, frozenset())


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("class", "Python"),
        ("json", "Python"),
        ("core", "the framework"),
        ("tests", "every project"),
        ("js", "the runtime"),
        ("attrs", "the installed package attrs"),
    ],
)
def test_a_module_that_there_is_already_is_told_with_its_owner(name: str, owner: str) -> None:
    with pytest.raises(DeveloperError, match=rf"^{name} is a name of {owner}\. Choose another one, as in {name}-api$"):
        render(name, frozenset())


def test_it_is_a_git_repository_unless_it_lies_in_one(tmp_path: Path) -> None:
    assert "a git repository" in run("new", "my-notes", folder=tmp_path).stdout
    assert (tmp_path / "my-notes" / ".git").is_dir()
    run("new", "inner", folder=tmp_path / "my-notes")
    assert not (tmp_path / "my-notes" / "inner" / ".git").exists()
    run("new", "without", "--no-git", folder=tmp_path)
    assert not (tmp_path / "without" / ".git").exists()


def test_the_hosted_platform_finds_its_entry_and_no_route_is_open_by_accident() -> None:
    main = render("my-notes", frozenset())["src/my_notes/main.py"]
    assert "Default = entrypoint(app)" in main
    assert "default_deny=True" in main


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "my-notes").mkdir()
    (tmp_path / "my-notes" / "mine.txt").write_text("mine")

    done = run("new", "my-notes", folder=tmp_path)

    assert done.returncode == 1
    assert "not empty" in done.stderr
    assert [path.name for path in (tmp_path / "my-notes").iterdir()] == ["mine.txt"]


def test_an_unknown_binding_is_told_with_those_there_are(tmp_path: Path) -> None:
    done = run("new", "my-notes", "--with", "kv,redis", folder=tmp_path)
    assert done.returncode == 2
    assert "redis" in done.stderr
    assert "kv, mcp, queue, r2" in done.stderr


def test_bindings_add_up_and_the_folder_can_be_pasted(tmp_path: Path) -> None:
    done = run("new", "my-notes", "--with", "kv", "--with", "r2", "--folder", "my notes", folder=tmp_path)
    assert "  cd 'my notes'\n" in done.stdout
    text = (tmp_path / "my notes" / "wrangler.toml").read_text("utf-8")
    assert "kv_namespaces" in text
    assert "r2_buckets" in text
