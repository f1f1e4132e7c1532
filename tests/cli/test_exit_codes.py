"""The table of exit codes, true for every command: each one is run to each code that it can end with.

What ends a server, and what needs workerd or a cluster's state, is run where those are: `tests/dev/test_serving.py`,
`tests/dev/test_recording.py`, `tests/runtime/test_serve.py`, `tests/runtime/test_build.py` and
`tests/runtime/test_backup.py`; what needs the types of a program is in `tests/cli/test_openapi.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from tests.support.command_line import run

from core.cli import COMMANDS, main

TABLE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
EXAMPLES = Path(__file__).parents[2] / "examples"

RUNS: list[tuple[int, str]] = [
    (0, "new other"),
    (0, "routes"),
    (0, "migrate list"),
    (0, "sql -c 'SELECT 1'"),
    (0, "seed seed.sql"),
    (0, "check"),
    (0, "types --check"),
    (0, "client openapi.json -o client.py"),
    (0, "completion bash"),
    (1, "new full --folder src"),
    (1, "dev --no-reload --port 0 --config broken/wrangler.toml"),
    (1, "routes --config broken/wrangler.toml"),
    (1, "migrate apply --config broken/wrangler.toml"),
    (1, "sql -c SELEC"),
    (1, "seed broken/migrations/0001_broken.sql"),
    (1, "check --config broken/wrangler.toml"),
    (1, "types --check --config broken/wrangler.toml"),
    (1, "client wrangler.toml -o client.py"),
    (1, "build --config broken/wrangler.toml"),
    (1, "serve ."),
    (1, "backup . src"),
    (1, "restore . src"),
    *(
        (2, words)
        for words in (
            "serve missing",
            "serve --python --config missing.toml",
            "serve --python --secrets-dir missing",
            "dev --config missing.toml",
            "backup missing copy",
            "restore missing state",
            "client missing.json",
            "check missing.py",
            "types --rows missing.py",
            "seed missing.sql",
            "sql missing.sql",
            "sql --state openapi.json -c 'SELECT 1'",
            "backup .core/state openapi.json/copy",
            "record --last -1",
            "backup '' copy",
            "serve --python --state ''",
        )
    ),
    *((2, f"{name} --no-such-option") for name in COMMANDS),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of `core new`, and in `broken/` one whose program and migration have a mistake each."""
    folder = tmp_path_factory.mktemp("exit-codes") / "notes"
    assert run("new", "notes", folder=folder.parent).returncode == 0
    shutil.copy(EXAMPLES / "users" / "openapi.json", folder)
    (folder / "seed.sql").write_text("INSERT INTO notes (text) VALUES ('first');\n")
    broken = folder / "broken"
    (broken / "migrations").mkdir(parents=True)
    (broken / "wrangler.toml").write_text(
        'name = "broken"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n'
        '[[d1_databases]]\nbinding = "DB"\ndatabase_name = "notes"\ndatabase_id = "a"\n'
    )
    (broken / "main.py").write_text(
        "import a_module_that_is_not_there\nfrom core import create_app\napp = create_app()\n"
    )
    (broken / "migrations" / "0001_broken.sql").write_text("CREATE TABEL notes (id INTEGER);\n")
    assert run("migrate", "apply", folder=folder).returncode == 0
    return folder


@pytest.mark.parametrize(("code", "arguments"), RUNS, ids=lambda value: str(value))
def test_a_command_ends_with_the_code_of_the_table(code: int, arguments: str, project: Path) -> None:
    words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", arguments)]
    done = run(*words, folder=project)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if code:
        assert done.stderr or done.stdout


def test_every_command_is_run_to_every_code() -> None:
    elsewhere = {(0, name) for name in ("dev", "build", "serve", "backup", "restore", "record")}
    elsewhere |= {(1, "completion"), (0, "openapi"), (1, "openapi"), (1, "record")}
    run_here = {(code, arguments.split()[0]) for code, arguments in RUNS}
    assert run_here | elsewhere == {(code, name) for code in (0, 1, 2) for name in COMMANDS}
    assert not run_here & elsewhere


@pytest.mark.parametrize("name", COMMANDS)
def test_an_interruption_is_130(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module(f"core.cli.{name}"), "run", interrupted)
    needed = {"new": ["a"], "completion": ["bash"], "migrate": ["list"], "client": ["a"], "backup": ["a", "b"]}
    assert main([name, *needed.get(name, needed["backup"] if name == "restore" else [])]) == 130


@pytest.mark.parametrize("module", ["core.cli", "argparse", "core.cli.routes", "core.errors"])
def test_an_interruption_while_a_module_is_imported_is_130_and_no_traceback(module: str) -> None:
    script = (
        "import os, signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        f"sys.modules.pop({module!r}, None)\n"
        "sys.argv = ['core', 'routes']\n"
        "from core.__main__ import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_handler_of_an_interruption_stands_before_anything_is_imported() -> None:
    script = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[2] / 'src')!r})\n"
        "before = {*sys.modules}\n"
        "import core.__main__\n"
        "print(*sorted({*sys.modules} - before))\n"
    )
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["__future__", "core", "core.__main__", "core.values"]
    assert tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]["scripts"] == {
        "core": "core.__main__:main"
    }


def test_the_table_has_these_codes_and_no_other() -> None:
    codes = re.findall(r"^\| (\d+) \|", TABLE.read_text("utf-8"), re.MULTILINE)
    assert codes == ["0", "1", "2", "130"]


def test_ctrl_c_at_a_prompt_ends_without_a_traceback(project: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "core", "sql"],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as prompt:
        assert prompt.stdin is not None
        assert prompt.stdout is not None
        prompt.stdin.write(b"SELECT 1 AS one;\n")
        prompt.stdin.flush()
        assert prompt.stdout.readline()
        prompt.send_signal(signal.SIGINT)
        _, errors = prompt.communicate(timeout=60)
    assert (prompt.returncode, errors) == (130, b"")


def test_a_command_waits_for_threads_and_handlers_and_takes_no_interpreter_down() -> None:
    """obstore's own threads would abort the process then, now and then: the order is what can be tried at will."""
    script = (
        "import atexit, sys, threading\n"
        "import core.cli\n"
        "from core.__main__ import main\n"
        "class Last:\n"
        "    def __del__(self): print('taken down', flush=True)\n"
        "last = Last()\n"
        "atexit.register(print, 'handlers ran')\n"
        "at_end = threading.Event()\n"
        "threading._register_atexit(at_end.set)\n"
        "threading.Thread(target=lambda: print('a thread ran', at_end.wait())).start()\n"
        "core.cli.main = lambda: 3\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines() == ["a thread ran True", "handlers ran"]
