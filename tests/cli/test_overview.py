"""The command line as a whole: its overview, its errors, its exit codes, and how fast it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from tests.support.command_line import run, run_alone

from core.cli import COMMANDS, main, parser_for
from core.cli.style import Progress


def test_the_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert "Exit codes" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_documents_its_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: core {name}")
    assert "Exit codes" in shown


def test_a_heading_of_the_help_keeps_its_capitals(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    assert "\nCPython:\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option_is_a_usage_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser_for(name).parse_args([name, "--no-such-option"])
    assert ended.value.code == 2
    assert "--help" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["dev", "--prot", "1"], "--port"),
        (["check", "--formt=json"], "--format"),
        (["new", "a", "--wiht", "kv"], "--with"),
        (["dev", "--runtime", "workred"], "workerd"),
        (["migrate", "aply"], "apply"),
        (["completion", "bsh"], "bash"),
        (["openapi", "--format", "ymal"], "yaml"),
    ],
)
def test_a_misspelt_option_or_value_is_answered_with_the_one_that_may_be_meant(
    arguments: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert f"Did you mean {near}?" in shown
    assert f"See `core {arguments[0]} --help`." in shown


def test_an_option_that_is_like_none_is_answered_with_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["routes", "--jsn"])
    assert "Did you mean" not in capsys.readouterr().err


def test_a_misspelt_option_before_the_command_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--verison"]) == 2
    assert "there is no option `--verison`. Did you mean `core --version`?" in capsys.readouterr().err


def test_help_of_a_command_is_found_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["help", "routes"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: core routes")


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", ">/dev/full"])
def test_output_that_cannot_be_written_ends_without_a_traceback(redirection: str) -> None:
    command = f"{sys.executable} -m core completion bash {redirection}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert done.returncode == (1 if "full" in redirection else 0)
    if "full" in redirection:
        assert (
            done.stderr
            == "error: the output cannot be written: No space left on device. Make room there, or write elsewhere\n"
        )


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_can_be_written_where_there_is_ascii_alone(name: str) -> None:
    done = run_alone(*[name][: bool(name)], "--help", LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_letter_that_the_output_does_not_have_is_written_as_its_number(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text('name = "a"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    program = "from core import create_app\napp = create_app()\n@app.get('/café')\nasync def show(req, res): ...\n"
    (tmp_path / "main.py").write_text(program, "utf-8")
    done = run_alone("routes", folder=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "/caf\\xe9" in done.stdout


class Terminal(StringIO):
    """A terminal that keeps what is drawn on it."""

    def isatty(self) -> bool:
        return True


def test_long_work_shows_the_time_that_is_left() -> None:
    times = iter([0.0, 30.0, 1200.0])
    terminal = Terminal()
    with Progress(stream=terminal, clock=lambda: next(times)) as bar:
        bar.show("0001_users.sql", 0, 4)
        bar.show("0002_notes.sql", 1, 4)
        bar.show("0003_tags.sql", 2, 4)
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert [line.partition("] ")[2] for line in drawn[1:4]] == [
        "0/4 0001_users.sql",
        "1/4, 90 s left 0002_notes.sql",
        "2/4, 20 min left 0003_tags.sql",
    ]
    assert drawn[4] == ""


def test_no_bar_is_drawn_into_a_pipe() -> None:
    pipe = StringIO()
    with Progress(stream=pipe) as bar:
        bar.show("0001_users.sql", 0, 4)
    assert pipe.getvalue() == ""


def test_lines_reach_a_pipe_while_the_command_runs() -> None:
    # The commands are asked for nothing but `main`, which sets the stream up before any of them.
    script = "import sys\nfrom core.cli import main\nmain(['--version'])\nprint(sys.stdout.line_buffering)\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("True\n"), done.stdout


def test_a_mistyped_command_is_told_with_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chekc"]) == 2
    assert "Did you mean `core check`?" in capsys.readouterr().err


def test_no_command_is_a_usage_error_that_shows_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage" in capsys.readouterr().out


def test_colours_are_for_terminals_and_for_who_asks() -> None:
    assert "\x1b" not in run("--help").stdout
    assert "\x1b" in run("--help", FORCE_COLOR="1").stdout
    assert "\x1b" not in run("--help", FORCE_COLOR="1", NO_COLOR="1").stdout


def test_the_overview_loads_nothing_of_the_framework() -> None:
    script = (
        "import sys\nfrom core.cli import main\nmain(['--help'])\n"
        "heavy = {'cattrs', 'core.app', 'core.config.load', 'uvicorn', 'asyncio'} & set(sys.modules)\n"
        "print('LOADED', sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert "LOADED []" in done.stderr


def test_outside_of_a_project_the_way_in_is_told(tmp_path: Path) -> None:
    done = run("routes", folder=tmp_path)
    assert done.returncode == 2
    assert "core new NAME" in done.stderr
    assert "Traceback" not in done.stderr


IN_A_PROJECT = ["dev", "routes", "migrate", "check", "types", "build"]


@pytest.mark.parametrize("name", IN_A_PROJECT)
@pytest.mark.parametrize("toml", [None, "name = "], ids=["missing", "malformed"])
def test_a_configuration_that_cannot_be_read_is_2_as_the_help_says(name: str, toml: str | None, tmp_path: Path) -> None:
    if toml is not None:
        (tmp_path / "wrangler.toml").write_text(toml)
    options = {"dev": ["--no-reload", "--port", "0"], "migrate": ["list"]}.get(name, [])
    done = run(name, *options, folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "2 the c" in run(name, "--help").stdout


@pytest.mark.parametrize("name", IN_A_PROJECT)
def test_a_configuration_file_that_is_not_there_is_2_too(name: str, tmp_path: Path) -> None:
    options = {"dev": ["--port", "0"], "migrate": ["list"]}.get(name, [])
    assert run(name, *options, "--config", "nowhere.toml", folder=tmp_path).returncode == 2


def test_a_wrong_argument_is_2(tmp_path: Path) -> None:
    assert run("new", "No Name", folder=tmp_path).returncode == 2
    assert run("serve", "--health", "nowhere", folder=tmp_path).returncode == 2


@pytest.mark.parametrize("text", ["127.0.0.1:9000", "9000"])
def test_a_port_alone_is_one_of_this_machine(text: str) -> None:
    assert parser_for("serve").parse_args(["serve", "--health", text]).health == ("127.0.0.1", 9000)


@pytest.mark.parametrize("arguments", [["--version"], ["completion", "bash"]], ids=["short", "long"])
def test_output_into_a_closed_pipe_ends_quietly(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "core", *arguments],
            stdout=closed,
            stderr=subprocess.PIPE,
            env=buffered,
            timeout=300,
        )
    assert (done.returncode, done.stderr) == (1, b"")
