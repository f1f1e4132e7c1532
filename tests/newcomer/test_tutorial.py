"""Somebody follows the tutorial word by word: an empty folder, the built wheel, and nothing else of this repository.

What the pages show after a command is what the command must print. Packages come from the registry that pip is set up
for; where there is none, these tests say so and are skipped.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.tutorial import CHAPTERS, Text, steps, write

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def free_port() -> str:
    """A port that nobody has at this moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


class Newcomer:
    """One person's terminal: a folder, an environment, and servers that are left running."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.wheel = wheel
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST", "MYPY", "COV", "VIRTUAL_ENV", "PYTHON"))
        }
        # Python compiles what is imported when it is. pip would compile all that there is, used or not.
        self.environment["PIP_NO_COMPILE"] = "1"
        self.server: subprocess.Popen[str] | None = None
        self.log = folder / "server.log"
        self.address = ""
        self.started = 0.0
        self.served = "core dev"

    def type(self, command: str, printed: str) -> None:
        """Type a command, and compare what it prints where the page shows something."""
        if command.startswith("cd "):
            self.folder = self.folder / command[3:]
            return
        if command.startswith(". "):
            bin_folder = self.folder / ".venv" / "bin"
            self.environment["PATH"] = f"{bin_folder}{os.pathsep}{self.environment['PATH']}"
            return
        if command in ("core dev", "core serve --python"):
            self.serve(command)
            return
        command = command.replace("http://127.0.0.1:8787", self.address)
        command = re.sub(r"'(?:core-edge|\./core)(\[[\w,]+\])'", rf"'core-edge\1 @ {self.wheel.as_uri()}'", command)
        kept = re.fullmatch(r"(?:export )?(\w+)=\$\((.*)\)", command)
        command = re.sub(r"^curl ", "curl --silent --show-error ", kept[2] if kept else command)
        command = re.sub(r"^python3 ", f"{shlex.quote(sys.executable)} ", command)
        command = re.sub(r"^pip install ", "pip install --quiet ", command)
        done = self.run(command)
        if command.startswith("pip") and "No matching distribution" in done.stderr:
            pytest.skip("no package registry can be reached")
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if command.startswith("core openapi"):
            assert "warning:" not in done.stderr, done.stderr  # the chapters' own code is described whole
        if kept:
            self.environment[kept[1]] = done.stdout.strip()
        if printed:
            assert done.stdout.strip() == printed.strip(), command

    def follow(self, chapter: str) -> None:
        """Do what a page says, block by block."""
        for step in steps(chapter):
            if isinstance(step, Text):
                write(self.folder, step)
                if self.written():
                    self.stop()  # it would load every file of a chapter; the next request is answered by a new one
                continue
            if step.line.startswith("curl ") and self.written():
                self.serve(self.served)
            self.type(step.line, step.printed)

    def written(self) -> bool:
        """True if a file of the project is newer than the server, which would load it with the next request."""
        files = (file for part in ("src", "migrations", "wrangler.toml") for file in self.sources(part))
        return any(file.stat().st_mtime > self.started for file in files)

    def sources(self, part: str) -> list[Path]:
        place = self.folder / part
        return [place] if place.is_file() else [file for file in place.rglob("*") if "__pycache__" not in file.parts]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300
        )

    def serve(self, command: str = "core dev") -> None:
        self.stop()
        self.started = time.time()
        self.served = command
        ports = (
            ["--port", "0"]
            if command == "core dev"
            else ["--port", free_port(), "--health", f"127.0.0.1:{free_port()}"]
        )
        with self.log.open("w") as log:
            self.server = subprocess.Popen(
                [*command.split(), *ports],
                cwd=self.folder,
                env={**self.environment, "PYTHONUNBUFFERED": "1"},
                executable=str(self.which("core")),
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.address = self.until(r"(?:Address\s+|serving on )(http://[^\s,]+)")

    def which(self, name: str) -> Path:
        folder = self.environment["PATH"].split(os.pathsep)[0]
        return Path(folder) / name

    def until(self, pattern: str) -> str:
        for _ in range(1500):
            found = re.search(pattern, self.log.read_text())
            if found is not None:
                return found[found.re.groups]
            time.sleep(0.02)
        raise AssertionError(f"{pattern} was not written:\n{self.log.read_text()}")

    def stop(self) -> None:
        if self.server is not None:
            self.server.send_signal(signal.SIGINT)
            assert self.server.wait(120) == 0
            self.server = None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT],
        check=True,
        capture_output=True,
        timeout=300,
    )
    (found,) = folder.glob("core_edge-*.whl")
    return found


@pytest.fixture
def newcomer(tmp_path: Path, wheel: Path) -> Iterator[Newcomer]:
    person = Newcomer(tmp_path, wheel)
    yield person
    if person.server is not None and person.server.poll() is None:
        person.server.kill()
        person.server.wait()


def test_the_tutorial_holds_word_by_word(newcomer: Newcomer) -> None:
    for chapter in CHAPTERS:
        typed = {step.line for step in steps(chapter) if not isinstance(step, Text)}
        assert {"pytest", "mypy", "core check"} <= typed or chapter == "explorer", chapter  # it writes no code
        newcomer.follow(chapter)
        if chapter == "begin":
            what_the_page_says_of_a_wrong_name_is_so(newcomer)
    newcomer.stop()


def what_the_page_says_of_a_wrong_name_is_so(newcomer: Newcomer) -> None:
    """ "Now rename DB to BD …" """
    env = newcomer.folder / "src" / "my_notes" / "env.py"
    original = env.read_text()
    env.write_text(original.replace("DB:", "BD:"))
    checked = newcomer.run("core check")
    assert checked.returncode == 1
    assert re.search(r"env\.py:\d+: error: .*BD", checked.stdout)
    assert "d1_databases" in checked.stdout
    typed = newcomer.run("mypy")
    assert typed.returncode == 1
    assert "core-env" in typed.stdout
    env.write_text(original)


def test_the_wheel_alone_answers_requests_and_says_what_else_to_install(tmp_path: Path, wheel: Path) -> None:
    person = Newcomer(tmp_path, wheel)
    person.type("python3 -m venv --without-pip .venv", "")
    person.type(". .venv/bin/activate", "")
    pip = f"{shlex.quote(sys.executable)} -m pip --python .venv"
    installed = person.run(f"{pip} install --quiet {shlex.quote(str(wheel))}")
    if "No matching distribution" in installed.stderr:
        pytest.skip("no package registry can be reached")
    assert installed.returncode == 0, installed.stderr

    names = {name.partition("==")[0] for name in person.run(f"{pip} list --format freeze").stdout.split()}
    assert {name.replace("_", "-") for name in names} == {"attrs", "cattrs", "core-edge", "typing-extensions"}

    (tmp_path / "hello.py").write_text((ROOT / "docs" / "examples" / "hello.py").read_text())
    (tmp_path / "run.py").write_text(
        "import asyncio\n"
        "from core import http\n"
        "from core.testing import FakeExecutionContext, FakeKVNamespace\n"
        "from hello import Env, app\n"
        "env = Env(GREETINGS=FakeKVNamespace({'ada': 'Ada Lovelace'}))\n"
        "async def main():\n"
        "    response = await app.fetch(http.Request('https://x.test/hello/ada'), env, FakeExecutionContext())\n"
        "    print(response.status, await response.text())\n"
        "asyncio.run(main())\n"
    )
    person.type("python run.py", '200 {"hello":"Ada Lovelace"}')

    person.type("core new my-notes", (person.run("true").stdout))
    person.folder = tmp_path / "my-notes"
    person.type("core check", "")
    for command in ("core dev", "core dev --no-reload"):
        hint = person.run(command)
        assert hint.returncode == 1
        assert "pip install 'core-edge[dev]'" in hint.stderr
        assert len(hint.stderr.strip().splitlines()) == 1
    hint = person.run("""python -c 'from core.middleware.jwt import jwt_auth; jwt_auth(secret=lambda req: "x")'""")
    assert "pip install 'core-edge[jwt]'" in hint.stderr
