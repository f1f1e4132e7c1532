"""`core openapi`: the document written, compared with the one that is committed, and what is not known told."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # has none of its own
from tests.support.command_line import run
from tests.support.copies import copy_project
from tests.support.libraries import with_libraries

from core.cli.openapi import _parsed
from core.errors import DeveloperError

USERS = Path(__file__).parents[2] / "examples" / "users"


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with a document and a warm cache, and a copy of them beside it."""
    folder = tmp_path_factory.mktemp("warm") / "users"
    copy_project(USERS, folder)
    done = run("openapi", "-o", "openapi.json", folder=with_libraries(folder))
    assert (done.returncode, done.stdout, done.stderr) == (0, "openapi.json written.\n", "")
    shutil.copytree(folder, folder.with_name("copy"))
    return folder


@pytest.fixture
def users(warm: Path) -> Path:
    """The example as it was: in its own folder, since elsewhere mypy would read all of it anew."""
    shutil.rmtree(warm)
    return shutil.copytree(warm.with_name("copy"), warm)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_the_examples_document_is_the_committed_one(warm: Path) -> None:
    assert (warm / "openapi.json").read_text("utf-8") == (USERS / "openapi.json").read_text("utf-8"), (
        "run `core openapi -o openapi.json` in examples/users"
    )


def test_a_document_that_is_up_to_date_is_said_to_be(users: Path) -> None:
    done = run("openapi", "--check", folder=users)
    assert (done.returncode, done.stdout) == (0, "openapi.json is up to date.\n")


def test_what_changed_for_a_client_is_told_with_its_line(users: Path) -> None:
    routes = users / "src" / "users_api" / "routes" / "users.py"
    edit(routes, "    id: int\n    name: str\n    email: str", "    id: int\n    name: str")
    edit(routes, "res.status(201).json", "res.status(202).json")
    done = run("openapi", "--check", folder=users)
    assert done.returncode == 1
    lines = routes.read_text("utf-8").splitlines()
    shown = next(number for number, line in enumerate(lines, 1) if "res.json(user)" in line)
    told = done.stdout.splitlines()
    words = "breaking: `get_user` no longer answers `email` of the body of 200"
    advice = "Clients rely on it. Keep it"
    assert f"{words}, src/users_api/routes/users.py:{shown}. {advice}" in told
    assert any(line.startswith("breaking: `create_user` no longer answers 201, ") for line in told)
    assert [line.partition(":")[0] for line in told[:-1]] == ["breaking"] * 3 + ["change"]
    assert told[-1] == (
        "openapi.json is not up to date. 3 of 4 changes break a client. Write it anew: core openapi -o openapi.json"
    )


def test_other_words_are_no_change_for_a_client(users: Path) -> None:
    edit(users / "src" / "users_api" / "routes" / "users.py", '404, "User not found"', '404, "No such user"')
    done = run("openapi", "--check", folder=users)
    assert done.returncode == 1
    assert "Nothing changed for a client" in done.stdout


def test_a_missing_file_is_told_with_the_command_that_writes_it(users: Path) -> None:
    done = run("openapi", "--check", "-o", "api.json", folder=users)
    assert done.returncode == 1
    assert done.stderr == ("error: api.json does not exist. Write it, and commit it: core openapi -o api.json\n")


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"paths": []}, "paths is not an object"),
        ({"components": []}, "components is not an object"),
        ({"paths": {"/": "x"}}, "paths / is not an object"),
        ({"paths": {"/": {"get": "x"}}}, "GET / is not an object"),
        ({"paths": {"/": {"get": {"responses": "x"}}}}, "responses of GET / is not an object"),
        ({"components": {"schemas": []}}, "components schemas is not an object"),
    ],
)
def test_a_file_of_another_form_is_told_at_its_place(document: dict[str, object], told: str) -> None:
    with pytest.raises(DeveloperError, match=f"^api.json is not an OpenAPI document: {told}. Write it anew: make it$"):
        _parsed(json.dumps({"openapi": "3.2.0", **document}), "api.json", "make it", "openapi")


def test_a_file_with_a_part_of_another_type_is_told_and_written_anew(users: Path) -> None:
    file = users / "openapi.json"
    whole = file.read_text("utf-8")
    document = json.loads(whole)
    document["paths"]["/users"]["get"]["responses"]["200"]["content"] = "json"
    file.write_text(json.dumps(document), "utf-8")
    done = run("openapi", "-o", "openapi.json", "--check", folder=users)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        r"error: openapi\.json is not an OpenAPI document in all of its parts \(.+\)\. Write it anew: "
        r"core openapi -o openapi\.json\n",
        done.stderr,
    )
    assert run("openapi", "-o", "openapi.json", folder=users).returncode == 0
    assert file.read_text("utf-8") == whole


def test_yaml_by_the_files_name_and_a_page(users: Path) -> None:
    done = run("openapi", "-o", "api.yaml", "--openapi", "3.1", "--html", "api.html", folder=users)
    assert done.returncode == 0, done.stderr
    document = yaml.safe_load((users / "api.yaml").read_text("utf-8"))
    assert document["openapi"].startswith("3.1")
    page = (users / "api.html").read_text("utf-8")
    assert "<script" not in page
    assert "http" not in page.replace("http token", "")
    assert 'id="get_user"' in page
    assert run("openapi", "--check", "-o", "api.yaml", "--openapi", "3.1", folder=users).returncode == 0


def test_a_formatter_of_yaml_may_take_the_quotes_of_a_date_and_of_a_status_away(users: Path) -> None:
    (users / "pyproject.toml").write_text('[project]\nversion = "2026-11-27"\n')
    assert run("openapi", "-o", "api.yaml", folder=users).returncode == 0
    edit(users / "api.yaml", '"2026-11-27"', "2026-11-27")
    edit(users / "api.yaml", '"200":', "200:")
    assert run("openapi", "--check", "-o", "api.yaml", folder=users).stdout == "api.yaml is up to date.\n"


def test_the_document_alone_goes_to_the_output(users: Path) -> None:
    done = run("openapi", folder=users)
    assert json.loads(done.stdout) == json.loads((users / "openapi.json").read_text("utf-8"))


def test_the_version_is_the_projects(users: Path) -> None:
    (users / "pyproject.toml").write_text('[project]\nname = "users"\nversion = "2.5.0"\n')
    assert json.loads(run("openapi", folder=users).stdout)["info"]["version"] == "2.5.0"


def test_what_is_not_known_is_a_warning_unless_the_project_says_otherwise(users: Path) -> None:
    main = users / "src" / "users_api" / "main.py"
    edit(main, 'res.json({"ok": True})', 'res.json({"ok": req.state["ok"]})')
    line = main.read_text("utf-8").splitlines().index('    res.json({"ok": req.state["ok"]})') + 1
    done = run("openapi", "-o", "openapi.json", folder=users)
    assert done.returncode == 0
    assert done.stderr == (
        f"src/users_api/main.py:{line}: warning: the type of a value is not known (Any). Give it a type  [core-openapi]\n"
    )
    with (users / "wrangler.toml").open("a") as file:
        file.write('\n[core.checks]\ncore-openapi = "error"\n')
    assert run("openapi", folder=users).returncode == 1
    edit(main, 'req.state["ok"]})', 'req.state["ok"]})  # core: ignore[core-openapi]')
    done = run("openapi", folder=users)
    assert (done.returncode, done.stderr) == (0, "")


def test_everything_that_is_refused_is_told_at_its_line(users: Path) -> None:
    main = users / "src" / "users_api" / "main.py"
    edit(main, "app = create_app(Env)", 'print("starting")\napp = create_app(Env)\napp.get("bad")\napp.use(lambda: 1)')
    done = run("openapi", folder=users)
    assert (done.returncode, done.stdout) == (1, "")
    line = main.read_text("utf-8").splitlines().index('app.get("bad")') + 1
    said, *told = done.stderr.splitlines()
    assert said == "starting"
    assert [(one.partition(": ")[0], one.rpartition("  ")[2]) for one in told] == [
        (f"src/users_api/main.py:{line}", "[core-params]"),
        (f"src/users_api/main.py:{line + 1}", "[core-handler]"),
    ]


def test_errors_of_mypy_are_a_note(users: Path) -> None:
    edit(users / "src" / "users_api" / "main.py", 'res.json({"ok": True})', 'res.json({"ok": True})\n    res.missing()')
    done = run("openapi", folder=users)
    assert done.returncode == 0
    assert "note: mypy finds 1 error in the program" in done.stderr


def test_notes_of_mypy_are_no_errors(users: Path) -> None:
    # An overload that does not fit is one error, with a note for each of them.
    edit(users / "src" / "users_api" / "main.py", 'res.json({"ok": True})', 'res.json({"ok": sum(1)})')
    done = run("openapi", folder=users)
    assert "note: mypy finds 1 error in the program" in done.stderr
