"""`core routes`: the table of routes, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command_line import run

USERS = Path(__file__).parents[2] / "examples" / "users"


def test_the_table_shows_what_runs_before_each_handler() -> None:
    done = run("routes", folder=USERS)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["METHOD", "PATH", "HANDLER", "MIDDLEWARE", "TOOLS"]
    assert any(
        line.split()[:4] == ["DELETE", "/users/:id", "delete_user", "*"] and "request_id > logger" in line
        for line in lines
    )


def test_json_has_every_field() -> None:
    done = run("routes", "--format", "json", folder=USERS)

    routes = json.loads(done.stdout)
    (created,) = [route for route in routes if route["handler"] == "create_user"]
    assert created["method"] == "POST"
    assert created["path"] == "/users"
    assert created["middleware"][-1] == "rate_limit"
    assert created["authenticated"] is False
    assert created["public"] is False


def test_tools_are_shown_at_the_routes_that_they_call(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text('name = "pens"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    (tmp_path / "main.py").write_text(
        "from core import create_app\nfrom core.mcp import MCP\napp = create_app()\nMCP(app, 'pens')\n"
        "@app.get('/pens', tool=True)\nasync def pens(req, res):\n    'All pens.'\n"
    )
    lines = [line.split() for line in run("routes", folder=tmp_path).stdout.splitlines()]
    assert lines[0][-1] == "TOOLS"
    assert [line for line in lines if line[-1] == "pens"] == [
        ["POST", "/mcp", "mcp", "-", "pens"],
        ["GET", "/pens", "pens", "-", "pens"],
    ]
    shown = json.loads(run("routes", "--format", "json", folder=tmp_path).stdout)
    assert [route["tools"] for route in shown] == [["pens"], [], ["pens"]]


def test_a_project_is_found_from_a_folder_inside_it() -> None:
    assert run("routes", folder=USERS / "src" / "users_api").stdout == run("routes", folder=USERS).stdout


def test_an_application_without_routes_says_how_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text('name = "none"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    (tmp_path / "main.py").write_text("from core import create_app\napp = create_app()\n")
    assert "No routes yet" in run("routes", folder=tmp_path).stdout


def test_a_missing_application_is_told_with_the_line_to_write(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text('name = "none"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    (tmp_path / "main.py").write_text("from core import create_app\napi = create_app()\n")
    done = run("routes", folder=tmp_path)
    assert done.returncode == 1
    assert 'Write [core] app = "main:api"' in done.stderr


def test_everything_that_is_refused_is_told_beside_the_routes_there_are(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text('name = "none"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    (tmp_path / "main.py").write_text(
        "from core import create_app\nimport users\n\napp = create_app()\n"
        '@app.get("/good")\nasync def good(req, res): ...\n@app.get("bad")\nasync def bad(req, res): ...\n'
    )
    (tmp_path / "users.py").write_text("from core import create_app\n\napp = create_app(nothing)\n")
    done = run("routes", folder=tmp_path)
    assert done.returncode == 1
    assert [line.split()[:3] for line in done.stdout.splitlines()[1:]] == [["GET", "/good", "good"]]
    first, second = done.stderr.splitlines()
    assert first.startswith(
        "users.py:3: error: importing the program fails here: NameError: name 'nothing' is not defined"
    )
    assert second.startswith("main.py:7: error: ")
    assert second.endswith("[core-params]")


def test_a_module_that_ends_the_process_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text('name = "none"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    (tmp_path / "main.py").write_text("import sys\n\nsys.exit(0)\n")
    done = run("routes", folder=tmp_path)
    assert done.returncode == 1
    assert "main.py:3" in done.stderr
