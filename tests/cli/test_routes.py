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
    assert lines[0].split() == ["METHOD", "PATH", "HANDLER", "MIDDLEWARE"]
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


def test_an_import_that_fails_shows_the_lines_of_the_application_alone(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text('name = "none"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    (tmp_path / "main.py").write_text("import users\n")
    (tmp_path / "users.py").write_text("from core import create_app\n\napp = create_app(nothing)\n")
    done = run("routes", folder=tmp_path)
    assert done.returncode == 1
    assert "NameError: name 'nothing' is not defined" in done.stderr
    assert "users.py:3" in done.stderr
    assert "main.py:1" in done.stderr
    assert "Traceback" not in done.stderr
    assert "core/" not in done.stderr
    assert "importlib" not in done.stderr


def test_a_module_that_ends_the_process_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text('name = "none"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    (tmp_path / "main.py").write_text("import sys\n\nsys.exit(0)\n")
    done = run("routes", folder=tmp_path)
    assert done.returncode == 1
    assert "main.py:3" in done.stderr
