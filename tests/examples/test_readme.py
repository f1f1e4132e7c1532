"""The README says what is true: its code is that of files that are tested, its answers are those of `core dev`."""

from __future__ import annotations

import ast
import io
import json
import re
import shlex
import subprocess
import sys
import tokenize
from pathlib import Path

from tests.support.copies import copy_project
from tests.support.libraries import STRICT
from tests.support.readme import README, blocks
from tests.support.running import RunningDev

ROOT = Path(__file__).parents[2]
CONDUIT = ROOT / "examples" / "conduit"
CONDUIT_README = (CONDUIT / "README.md").read_text("utf-8")


def without_docstring(path: Path) -> str:
    return re.sub(r'\A""".*?"""\n+', "", path.read_text("utf-8"), flags=re.DOTALL)


def test_the_smallest_application_and_its_test_are_files_that_run() -> None:
    application, test = blocks("python")[:2]

    assert application == without_docstring(ROOT / "docs" / "examples" / "hello.py")
    assert test == without_docstring(ROOT / "docs" / "examples" / "test_hello.py")


def test_make_dev_answers_the_five_curl_lines_as_printed(tmp_path: Path) -> None:
    (console,) = [block for block in blocks("console") if "$ curl" in block]
    exchanges = re.findall(r"^\$ (curl .*)\n(.*)$", console, re.MULTILINE)
    assert len(exchanges) == 5

    with RunningDev(ROOT / "examples" / "users", tmp_path / "state", "--no-reload") as dev:
        for command, printed in exchanges:
            words = shlex.split(command.replace("http://127.0.0.1:8787", dev.address))
            answer = subprocess.run([words[0], "--silent", "--show-error", *words[1:]], capture_output=True, text=True)
            assert answer.returncode == 0, answer.stderr
            assert answer.stdout == printed, command


def test_a_token_opens_what_the_examples_own_readme_says(tmp_path: Path) -> None:
    users = ROOT / "examples" / "users"
    (console,) = re.findall(
        r"^```console\n(.*?)^```$", (users / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    with RunningDev(users, tmp_path / "state", "--no-reload") as dev:
        dev.fetch("/users", method="POST", body=b'{"name": "Ada", "email": "ada@example.com"}')
        commands = "\n".join(line[2:] for line in console.splitlines() if line.startswith("$ "))
        script = commands.replace("http://127.0.0.1:8787", dev.address).replace("$(python ", f"$({sys.executable} ")
        script = script.replace("curl ", "curl --silent --write-out '\\n' ")
        answers = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        printed = [line for line in console.splitlines() if not line.startswith("$ ")]
        assert answers.stdout.splitlines() == printed, answers.stderr


def test_the_realworld_example_answers_as_its_own_readme_prints(tmp_path: Path) -> None:
    exchanges = re.findall(r"^\$ (curl .*)\n(.*)$", CONDUIT_README, re.MULTILINE)
    assert len(exchanges) == 3

    with RunningDev(CONDUIT, tmp_path / "state", "--no-reload") as dev:
        for command, printed in exchanges:
            words = shlex.split(command.replace("http://127.0.0.1:8787", dev.address))
            answer = subprocess.run([words[0], "--silent", *words[1:]], capture_output=True, text=True, check=True)
            assert re.sub(r'"eyJ[^"]+"', '"eyJ…"', answer.stdout) == printed, command

        _, client = blocks("python", CONDUIT_README)
        command = [
            sys.executable,
            "-m",
            "core",
            "client",
            "openapi.json",
            "-o",
            str(tmp_path / "conduit_client.py"),
        ]
        subprocess.run(command, cwd=CONDUIT, check=True)
        script = "import conduit_client\nimport httpx\n\n" + client.replace("http://127.0.0.1:8787", dev.address)
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("ada 0\n", "")


def test_the_realworld_example_is_described_as_its_own_readme_prints() -> None:
    handler, _ = blocks("python", CONDUIT_README)
    assert handler in (CONDUIT / "src" / "conduit" / "routes" / "users.py").read_text("utf-8")

    document = json.loads((CONDUIT / "openapi.json").read_text("utf-8"))
    operation = document["paths"]["/api/users"]["post"]
    (printed,) = blocks("json", CONDUIT_README)
    assert json.loads(printed) == {
        "summary": operation["summary"],
        "body": operation["requestBody"]["content"]["application/json"]["schema"]["properties"],
        "NewUser.password": document["components"]["schemas"]["NewUser"]["properties"]["password"],
        "answers": list(operation["responses"]),
    }


def test_wrong_letters_in_the_realworld_example_are_told_as_its_own_readme_prints(tmp_path: Path) -> None:
    project = tmp_path / "conduit"
    copy_project(CONDUIT, project)
    for file, right, wrong in (
        ("tags.py", "json_each(tag_list)", "json_each(tags)"),
        ("comments.py", 'find.bind(req.params["id"]', 'find.bind(req.params["comment"]'),
    ):
        path = project / "src" / "conduit" / "routes" / file
        assert path.read_text().count(right) == 1
        path.write_text(path.read_text().replace(right, wrong))
    (printed,) = blocks("text", CONDUIT_README)

    done = subprocess.run([sys.executable, "-m", "core", "check"], cwd=project, capture_output=True, text=True)
    assert (done.returncode, done.stdout.startswith(printed)) == (1, True), done.stdout + done.stderr


def test_the_realworld_example_is_as_long_as_its_own_readme_says() -> None:
    (stated,) = re.findall(r"^\| this one \| \| (\d+),", CONDUIT_README, re.MULTILINE)
    counted = sum(map(lines_of_code, (CONDUIT / "src").rglob("*.py")))

    assert counted == int(stated) < 400
    assert f" {stated} lines." in CONDUIT_README


def lines_of_code(path: Path) -> int:
    """The lines that are neither blank, comment nor docstring."""
    text = path.read_text("utf-8")
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {line for each in tokens if each.type not in skipped for line in range(each.start[0], each.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            lines -= {*range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)}
    return sum(bool(line.strip()) for number, line in enumerate(text.splitlines(), 1) if number in lines)


def test_one_wrong_letter_is_told_as_printed_by_mypy_and_by_core_check(tmp_path: Path, mypy_cache: Path) -> None:
    project = tmp_path / "users"
    copy_project(ROOT / "examples" / "users", project)
    for file, right, wrong in (
        ("env.py", "COUNTERS: KV", "COUNTER: KV"),
        ("routes/users.py", 'params["id"]).first(UserRecord)', 'params["idd"]).first(UserRecord)'),
        ("routes/users.py", "name, email FROM users ORDER", "name, mail FROM users ORDER"),
    ):
        path = project / "src" / "users_api" / file
        assert path.read_text().count(right) == 1
        path.write_text(path.read_text().replace(right, wrong))
    (project / "mypy.ini").write_text(
        f"{STRICT}mypy_path = $MYPY_CONFIG_FILE_DIR/src\nexplicit_package_bases = True\nfiles = src\n"
    )
    (printed,) = [block for block in blocks("text") if "[core-env]" in block]

    for module in ("mypy", "core"):
        arguments = ["check"] if module == "core" else ["--cache-dir", str(mypy_cache)]
        done = subprocess.run([sys.executable, "-m", module, *arguments], cwd=project, capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stdout.startswith(printed), done.stdout + done.stderr


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if not link.startswith("http") and not (ROOT / link).exists()] == []


def test_the_addresses_that_the_readme_names_are_those_of_core_dev() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")

    assert re.search(r"^EXAMPLE \?= users$", makefile, re.MULTILINE)
    assert re.search(r"^dev:.*\n\t@cd examples/\$\(EXAMPLE\) && \S*core dev$", makefile, re.MULTILINE)
    assert set(re.findall(r"http://127\.0\.0\.1:(\d+)", README)) == {"8787"}


def test_every_row_that_a_run_of_a_peer_decides_has_its_run_beside_it() -> None:
    runs = (Path(__file__).parent / "peers.md").read_text("utf-8")
    rows = re.findall(r"^\| ([a-z][^|]+) \| ", README, re.MULTILINE)
    decided = ("a parameter that the path does not have", "bindings in a test", "run-time dependencies")
    assert all(row in rows and f"| {row}, " in runs for row in decided)
    assert "4.13.19" in runs
    assert "hono@4.13.19" in (ROOT / "Makefile").read_text("utf-8"), "Hono is another version: run peers.md again"
