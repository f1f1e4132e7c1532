"""`core check`: what it prints, in three formats, and its exit codes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import run
from tests.support.copies import copy_project

USERS = Path(__file__).parents[2] / "examples" / "users"


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A copy of the example."""
    folder = tmp_path / "users"
    copy_project(USERS, folder)
    return folder


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


TOLD = (
    "Env.COUNTERS: no binding of that name in wrangler.toml. Did you mean COUNTER (wrangler.toml:8 [[kv_namespaces]])?"
)


PROVEN = "6 handlers, 6 statements, 4 names proven."


def test_a_program_that_agrees_is_said_to_agree(users: Path) -> None:
    done = run("check", folder=users)
    assert (done.returncode, done.stdout) == (
        0,
        "The program agrees with wrangler.toml (the top level): 6 handlers, 6 statements, 4 names proven.\n",
    )


def test_findings_are_printed_as_mypy_prints_them_and_the_exit_code_is_1(users: Path) -> None:
    edit(users / "wrangler.toml", '"COUNTERS"', '"COUNTER"')
    done = run("check", folder=users)
    assert done.returncode == 1
    assert done.stdout == f"src/users_api/env.py:10: error: {TOLD}  [core-env]\nFound 1 error in 1 file.\n{PROVEN}\n"


def test_json_has_every_field(users: Path) -> None:
    edit(users / "wrangler.toml", '"COUNTERS"', '"COUNTER"')
    done = run("check", "--format", "json", folder=users)
    assert done.returncode == 1
    assert json.loads(done.stdout)["findings"] == [
        {
            "file": "src/users_api/env.py",
            "line": 10,
            "column": 5,
            "severity": "error",
            "code": "core-env",
            "message": TOLD,
            "environment": None,
        }
    ]


def test_json_of_nothing_is_what_was_proven(users: Path) -> None:
    done = run("check", "--format", "json", folder=users)
    proven, unread = {"handlers": 6, "statements": 6, "names": 4}, {"handlers": 0, "statements": 0}
    assert (done.returncode, json.loads(done.stdout)) == (0, {"findings": [], "proven": proven, "unread": unread})


def test_what_was_not_read_is_said_and_is_an_error_where_everything_is_to_be_read(users: Path) -> None:
    routes = users / "src/users_api/routes/users.py"
    routes.write_text(
        f"{routes.read_text()}\n\ndef statement() -> str:\n    return 'SELECT 1'\n\n\nasync def one(env: Env) -> None:\n"
        "    await env.DB.prepare(statement()).run()\n"
    )
    line = len(routes.read_text().splitlines())
    place = f"src/users_api/routes/users.py:{line}"
    done, strict = run("check", folder=users), run("check", "--strict", folder=users)
    told = "this statement is not read: its text is not known before it runs  [core-unread]"
    assert (done.returncode, done.stdout) == (
        0,
        f"{place}: note: {told}\nThe program agrees with wrangler.toml (the top level): {PROVEN[:-1]}; not read: 1 statement.\n",
    )
    assert (strict.returncode, strict.stdout.splitlines()) == (
        1,
        [f"{place}: error: {told}", "Found 1 error in 1 file.", f"{PROVEN[:-1]}; not read: 1 statement."],
    )
    log = json.loads(run("check", "--format", "sarif", folder=users).stdout)["runs"][0]
    assert [(one["ruleId"], one["level"]) for one in log["results"]] == [("core-unread", "note")]
    proven, unread = {"handlers": 6, "statements": 6, "names": 4}, {"handlers": 0, "statements": 1}
    assert log["properties"] == {"proven": proven, "unread": unread}
    assert json.loads(run("check", "--format", "json", folder=users).stdout)["unread"] == unread


@pytest.mark.skipif(sqlite3.sqlite_version_info >= (3, 46), reason="this SQLite knows it")
def test_a_statement_for_a_newer_sqlite_is_not_proven_by_an_older_one(users: Path) -> None:
    routes = users / "src/users_api/routes/users.py"
    sql = '    await env.DB.prepare("SELECT 1_000 AS n").run()'
    routes.write_text(f"{routes.read_text()}\n\nasync def one(env: Env) -> None:\n{sql}\n")
    assert (
        "note: this statement is not read: it needs SQLite 3.46, which the platform has. This Python has "
        f"{sqlite3.sqlite_version}, and core dev and tests refuse it: use a newer Python, or write it otherwise  [core-unread]"
    ) in run("check", folder=users).stdout


def test_sarif_has_what_the_standard_demands(users: Path) -> None:
    edit(users / "wrangler.toml", '"COUNTERS"', '"COUNTER"')
    edit(users / "src/users_api/routes/users.py", '@users.get("/:id")', '@users.get("/:user_id")')
    log: dict[str, Any] = json.loads(run("check", "--format", "sarif", folder=users).stdout)
    assert log["version"] == "2.1.0"
    (one,) = log["runs"]
    driver = one["tool"]["driver"]
    rules = driver["rules"]
    assert driver["name"] == "core check"
    assert [rule["id"] for rule in rules] == sorted(
        [
            "core-await",
            "core-binding",
            "core-env",
            "core-handler",
            "core-import",
            "core-openapi",
            "core-order",
            "core-params",
            "core-queue",
            "core-route",
            "core-scan",
            "core-sql",
            "core-unread",
            "core-user",
            "core-worker",
        ]
    )
    assert [result["ruleId"] for result in one["results"]] == ["core-env", "core-params"]
    for result in one["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert not place["artifactLocation"]["uri"].startswith("/")
        assert (users / place["artifactLocation"]["uri"]).is_file()
        assert place["region"]["startLine"] >= 1
        assert place["region"]["startColumn"] >= 1


def test_sarif_counts_columns_in_characters(users: Path) -> None:
    edit(users / "src/users_api/routes/users.py", 'req.params["id"]', '("é", req.params["idd"])[1]')
    log: dict[str, Any] = json.loads(run("check", "--format", "sarif", folder=users).stdout)
    for result in log["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        line = (users / place["artifactLocation"]["uri"]).read_text().splitlines()[place["region"]["startLine"] - 1]
        if "é" in line:
            column: int = place["region"]["startColumn"]
            assert line[column - 1 :].startswith(("req.params", '"idd"', "["))
            return
    raise AssertionError("the misspelt parameter was not found")


def test_a_configuration_that_cannot_be_read_is_told_in_every_format_and_the_exit_code_is_2(users: Path) -> None:
    edit(users / "wrangler.toml", 'name = "users"\nmain', "name = 3\nworkers_de = true\nmain")
    text = run("check", folder=users)
    assert text.returncode == 2
    assert text.stdout == (
        'wrangler.toml:1: error: name must be a string, not a whole number. Write "3".  [core-env]\n'
        "wrangler.toml:2: error: workers_de is not a key of the configuration. Did you mean workers_dev?  [core-env]\n"
        "wrangler.toml cannot be used. 2 mistakes.\n"
    )
    assert run("check", "--format", "json", folder=users).returncode == 2
    sarif = run("check", "--format", "sarif", folder=users)
    assert sarif.returncode == 2
    assert len(json.loads(sarif.stdout)["runs"][0]["results"]) == 2


def test_a_wrong_command_is_exit_code_2(users: Path) -> None:
    assert run("check", "nowhere.py", folder=users).returncode == 2
    assert run("check", "--format", "xml", folder=users).returncode == 2
    assert run("check", "--config", "nowhere.toml", folder=users).returncode == 2
    done = run("check", folder=Path(users.anchor))
    assert done.returncode == 2
    assert "no wrangler.toml, wrangler.json or wrangler.jsonc here or above" in done.stderr


def test_one_environment_can_be_chosen(users: Path) -> None:
    with (users / "wrangler.toml").open("a") as file:
        file.write('\n[env.staging]\nname = "staging"\n')
    assert run("check", "--env", "staging", folder=users).stdout.count("in [env.staging]") == 3
    assert run("check", folder=users).stdout.count("in [env.staging]") == 3
    unknown = run("check", "--env", "stagin", folder=users)
    assert unknown.returncode == 2
    assert "there is no environment stagin. Did you mean staging?" in unknown.stdout


def test_the_options_of_the_plugin_hold_here_too(users: Path) -> None:
    with (users / "wrangler.toml").open("a") as file:
        file.write('\n[env.staging]\nname = "staging"\n')
    (users / "mypy.ini").write_text("[mypy]\n[core-mypy]\nenvironments = top-level\n")
    assert run("check", folder=users).returncode == 0
    (users / "mypy.ini").unlink()
    (users / "pyproject.toml").write_text('[tool.core-mypy]\nenv = ["other.*"]\n')
    done = run("check", folder=users)
    assert done.returncode == 1
    assert "Env: pyproject.toml [tool.core-mypy] env names other.*, and no class is called that" in done.stdout
    other = users / "other.py"
    other.write_text("class Other: ...\n")  # another worker's, which this one does not import
    assert run("check", folder=users).returncode == 0
    assert run("check", "--env-class", "users_api.env.Env", folder=users).returncode == 1
    (users / "pyproject.toml").write_text("[tool.core-mypy]\nenvs = []\n")
    done = run("check", folder=users)
    assert (done.returncode, done.stderr) == (
        2,
        "error: pyproject.toml [tool.core-mypy]: there is no option envs. The options are config, env, environments\n",
    )


def test_what_looks_at_nothing_does_not_agree(users: Path) -> None:
    done = run("check", "--env-class", "users_api.env.Envv", folder=users)
    assert done.returncode == 1
    assert (
        "src/users_api/env.py:9: error: Env: --env-class names users_api.env.Envv, and no class is called that. "
        "Did you mean users_api.env.Env?  [core-env]\n"
    ) in done.stdout
    edit(users / "src/users_api/env.py", "class Env(Bindings)", "class Env")
    done = run("check", folder=users)
    assert (done.returncode, "agrees" in done.stdout) == (1, False)
    assert "create_app(Env): Env does not derive from Bindings" in done.stdout
    (users / "wrangler.toml").write_text('name = "x"\nmain = "other.py"\n')
    (users / "other.py").write_text("x = 1\n")
    done = run("check", folder=users)
    assert done.returncode == 1
    assert done.stdout.startswith("other.py:1: error: there is no `app`. Write `app = create_app(Env)`  [core-import]")


def test_an_env_from_elsewhere_is_not_said_to_agree(users: Path) -> None:
    edit(users / "src/users_api/env.py", "class Env(Bindings)", "class Env(Shared)")
    edit(users / "src/users_api/env.py", "import attrs\n", "import attrs\nfrom shared import Shared\n")
    done = run("check", folder=users)
    assert done.returncode == 1
    assert done.stdout == (
        "src/users_api/env.py:4: error: there is no module shared. Install the package where this runs, or correct the "
        "name  [core-import]\nFound 1 error in 1 file.\n6 handlers, 6 statements proven.\n"
    )


def test_what_is_unchecked_is_said(users: Path) -> None:
    with (users / "wrangler.toml").open("a") as file:
        file.write('\n[[pipelines]]\nbinding = "EVENTS"\npipeline = "p"\n')
    done = run("check", folder=users)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "wrangler.toml: pipelines: core does not check it"


def test_warnings_are_counted_apart_and_the_exit_code_is_0(users: Path) -> None:
    edit(users / "wrangler.toml", '"COUNTERS"', '"COUNTER"')
    with (users / "wrangler.toml").open("a") as file:
        file.write('\n[core.checks]\ncore-env = "warning"\n')
    done = run("check", folder=users)
    assert done.returncode == 0
    assert (
        done.stdout == f"src/users_api/env.py:10: warning: {TOLD}  [core-env]\nFound 1 warning in 1 file.\n{PROVEN}\n"
    )
    edit(users / "src/users_api/routes/users.py", '@users.get("/:id")', '@users.get("/:user_id")')
    done = run("check", folder=users)
    assert done.returncode == 1
    assert done.stdout.endswith("Found 1 error and 1 warning in 2 files.\n{PROVEN}\n".replace("{PROVEN}", PROVEN))
