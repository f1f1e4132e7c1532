"""Clients of the strangers' applications that take files and send streams: type-checked, and used while those run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.checkers import BIN
from tests.support.command_line import run
from tests.support.libraries import STRICT, with_libraries
from tests.support.running import RunningDev

HERE = Path(__file__).parent
SECRETS = {
    "store": "TOKEN=token\nLINK_SECRET=a-secret-for-tests-that-is-long-enough\n",
    "board": "SESSION_SECRET=a-secret-for-tests-that-is-long-enough\n",
}
SEEN = {
    "store": [2_000_000, 2_000_000, 201, ["forms/0", "forms/1"], 100_000, "No such file"],
    "board": [1, [1, 2], [{"id": "1", "author": "ada"}]],
}


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made: dict[str, Path] = {}
    for name, secrets in SECRETS.items():
        made[name] = folder = with_libraries(tmp_path_factory.mktemp(name))
        shutil.copytree(HERE / "strangers" / name, folder, dirs_exist_ok=True)
        (folder / ".dev.vars").write_text(secrets)
        (folder / "use").mkdir()
        for command in (["openapi", "-o", "openapi.json"], ["client", "openapi.json", "-o", "use/client.py"]):
            done = run(*command, folder=folder)
            assert done.returncode == 0, done.stderr
        shutil.copy(HERE / f"client_{name}_uses.py.in", folder / "use" / "use.py")
    return made


@pytest.mark.parametrize("name", SECRETS)
def test_files_go_up_and_down_and_events_are_read_from_the_running_server(
    name: str, projects: dict[str, Path], tmp_path: Path
) -> None:
    project = projects[name]
    with RunningDev(project, tmp_path / "state", "--no-reload") as dev:
        done = subprocess.run(
            [sys.executable, "-B", "use/use.py", dev.address], cwd=project, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr + dev.output
    synchronous, asynchronous = json.loads(done.stdout)
    assert synchronous == SEEN[name]
    if name == "store":  # whose second form has all the pieces
        assert asynchronous.pop(4) == 2_000_000
        synchronous.pop(4)
    assert asynchronous == synchronous


def test_they_and_their_uses_pass_the_type_checkers_at_their_strictest(
    projects: dict[str, Path], tmp_path: Path, mypy_cache: Path
) -> None:
    for name, project in projects.items():
        shutil.copy(project / "use" / "client.py", tmp_path / f"client_{name}.py")
        use = (project / "use" / "use.py").read_text("utf-8")
        (tmp_path / f"use_{name}.py").write_text(
            use.replace("from client import", f"from client_{name} import"), "utf-8"
        )
    settings = {"typeCheckingMode": "strict", "venvPath": str(BIN.parents[1]), "venv": BIN.parent.name}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    (tmp_path / "mypy.ini").write_text(STRICT)
    files = sorted(file.name for file in tmp_path.glob("*.py"))
    assert len(files) == 4
    for command in (["mypy", "--cache-dir", str(mypy_cache), *files], ["pyright"]):
        done = subprocess.run([BIN / command[0], *command[1:]], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
