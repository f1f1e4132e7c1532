"""The README says what is true: its code is that of files that are tested, its answers are those of `core dev`."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

from tests.hosts.dev.running import RunningDev

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def without_docstring(path: Path) -> str:
    return re.sub(r'\A""".*?"""\n+', "", path.read_text("utf-8"), flags=re.DOTALL)


def test_the_smallest_application_and_its_test_are_files_that_run() -> None:
    application, test = blocks("python")[:2]

    assert application == without_docstring(ROOT / "docs" / "examples" / "hello.py")
    assert test == without_docstring(ROOT / "docs" / "examples" / "test_hello.py")


def test_make_dev_answers_the_five_curl_lines_as_printed(tmp_path: Path) -> None:
    (console,) = [block for block in blocks("console") if "$ curl" in block]
    exchanges = re.findall(r"^\$ (curl .*)\n(.*)$", console, re.MULTILINE)
    assert len(exchanges) == 5

    with RunningDev(ROOT / "examples" / "users", tmp_path / "state", "--no-reload") as dev:
        for command, printed in exchanges:
            words = shlex.split(command.replace("http://127.0.0.1:8787", dev.address))
            answer = subprocess.run([words[0], "--silent", "--show-error", *words[1:]], capture_output=True, text=True)
            assert answer.returncode == 0, answer.stderr
            assert answer.stdout == printed, command


def test_the_addresses_that_the_readme_names_are_those_of_core_dev() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")

    assert re.search(r"^dev:.*\n\t@cd examples/users && \S*core dev$", makefile, re.MULTILINE)
    assert set(re.findall(r"http://127\.0\.0\.1:(\d+)", README)) == {"8787"}
