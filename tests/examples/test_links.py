"""`examples/links` on CPython: with `core dev` and with `core serve --python`, and what its README says of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.support.command_line import run
from tests.support.commands import Command
from tests.support.running import RunningDev
from tests.support.shortener import ALL_OF_IT, sign_up_and_see_a_click

LINKS = Path(__file__).parents[2] / "examples" / "links"
README = (LINKS / "README.md").read_text("utf-8")
SECRET = "an-example-secret-that-everyone-may-know"


def test_a_click_is_counted_and_seen_in_core_dev(tmp_path: Path) -> None:
    with RunningDev(LINKS, tmp_path / "state", "--no-reload") as dev:
        assert sign_up_and_see_a_click(dev.address) == ALL_OF_IT


def test_a_click_is_counted_and_seen_on_cpython_between_processes(tmp_path: Path) -> None:
    where = ("--port", "0", "--health", "127.0.0.1:0", "--workers", "1", "--state", str(tmp_path / "state"))
    served = Command("serve", "--python", *where, folder=LINKS, env={"JWT_SECRET": SECRET})
    try:
        assert sign_up_and_see_a_click(f"http://127.0.0.1:{served.ports()[0]}") == ALL_OF_IT
    finally:
        served.finish()


def test_it_is_proven_and_described() -> None:
    checked = run("check", folder=LINKS)
    assert (checked.returncode, checked.stdout.count("\n"), checked.stderr) == (0, 1, ""), checked.stdout
    assert "10 handlers, 9 statements, 5 names proven" in checked.stdout
    described = run("openapi", "--check", folder=LINKS)
    assert (described.returncode, described.stdout, described.stderr) == (0, "openapi.json is up to date.\n", "")


def test_it_is_as_long_as_its_readme_says() -> None:
    def lines(pattern: str, comment: str) -> int:
        texts = [file.read_text("utf-8") for file in LINKS.glob(pattern)]
        return sum(
            bool(line.strip()) and not line.lstrip().startswith(comment) for line in "\n".join(texts).splitlines()
        )

    def docstrings() -> int:
        return sum(
            (node.end_lineno or 0) - node.lineno + 1 - node.value.value.count("\n\n")
            for file in LINKS.glob("src/**/*.py")
            for node in ast.walk(ast.parse(file.read_text("utf-8")))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )

    said = re.search(r"(\d+) lines of Python, (\d+) of SQL, (\d+) of templates", README)
    assert said is not None
    python = lines("src/**/*.py", "#") - docstrings()
    counted = [python, lines("migrations/*.sql", "--"), lines("src/**/*.html", "{#")]
    assert [int(number) for number in said.groups()] == counted
    assert python < 350
