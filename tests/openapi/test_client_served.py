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
from tests.support.libraries import with_libraries
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


@pytest.fixture(scope="module", params=sorted(SECRETS))
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    name: str = request.param
    folder = with_libraries(tmp_path_factory.mktemp(name))
    shutil.copytree(HERE / "strangers" / name, folder, dirs_exist_ok=True)
    (folder / ".dev.vars").write_text(SECRETS[name])
    (folder / "use").mkdir()
    for command in (["openapi", "-o", "openapi.json"], ["client", "openapi.json", "-o", "use/client.py"]):
        done = run(*command, folder=folder)
        assert done.returncode == 0, done.stderr
    shutil.copy(HERE / f"client_{name}_uses.py.in", folder / "use" / "use.py")
    return folder


def test_files_go_up_and_down_and_events_are_read_from_the_running_server(project: Path, tmp_path: Path) -> None:
    with RunningDev(project, tmp_path / "state", "--no-reload") as dev:
        done = subprocess.run(
            [sys.executable, "-B", "use/use.py", dev.address], cwd=project, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr + dev.output
    synchronous, asynchronous = json.loads(done.stdout)
    assert synchronous == SEEN[project.name.rstrip("0123456789")]
    if project.name.startswith("store"):  # whose second form has all the pieces
        assert asynchronous.pop(4) == 2_000_000
        synchronous.pop(4)
    assert asynchronous == synchronous


def test_it_and_its_use_pass_the_type_checkers_at_their_strictest(project: Path) -> None:
    settings = {"typeCheckingMode": "strict", "venvPath": str(BIN.parents[1]), "venv": BIN.parent.name}
    (project / "use" / "pyrightconfig.json").write_text(json.dumps(settings))
    for command in (["mypy", "--strict", "--cache-dir", "../../mypy-of-clients", "use.py", "client.py"], ["pyright"]):
        done = subprocess.run([BIN / command[0], *command[1:]], cwd=project / "use", capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
