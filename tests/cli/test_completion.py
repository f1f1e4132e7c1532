"""Completion scripts: the shells themselves read them, and bash is asked to complete."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.command_line import run

from core.cli import COMMANDS, main


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "core.bash"
    path.write_text(run("completion", "bash").stdout)
    return path


def completions(script: Path, *words: str) -> list[str]:
    typed = " ".join(f"'{word}'" for word in words)
    # Bash calls the function that was registered for the command, with the command and the word.
    registered = '_complete() { local words=($(complete -p core)); ${words[-2]} "$@"; }'
    command = f"{registered}; source '{script}'; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _complete core '{words[-1]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands(script: Path) -> None:
    assert set(COMMANDS) <= set(completions(script, "core", ""))
    assert completions(script, "core", "mig") == ["migrate"]


def test_bash_completes_paths(script: Path, tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").touch()
    assert completions(script, "core", "dev", "--config", f"{tmp_path}/wr") == [f"{tmp_path}/wrangler.toml"]
    assert completions(script, "core", "check", f"{tmp_path}/wr") == [f"{tmp_path}/wrangler.toml"]
    (tmp_path / "dist").mkdir()
    assert completions(script, "core", "serve", f"{tmp_path}/di") == [f"{tmp_path}/dist"]


def test_without_shtab_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert "pip install 'core-edge[dev]'" in capsys.readouterr().err


def test_bash_completes_options_and_their_choices(script: Path) -> None:
    assert "--no-reload" in completions(script, "core", "dev", "--no")
    assert completions(script, "core", "routes", "--format", "") == ["table", "json"]
    assert completions(script, "core", "migrate", "ap") == ["apply"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_find_no_fault_with_their_script(shell: str, tmp_path: Path) -> None:
    text = run("completion", shell).stdout
    assert all(name in text for name in COMMANDS)
    if shutil.which(shell) is None:
        return  # what the script says was checked; only its syntax could not be
    path = tmp_path / "script"
    path.write_text(text)
    done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
