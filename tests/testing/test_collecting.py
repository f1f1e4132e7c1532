"""What pytest shows of an application that cannot be imported: the record of the failure, as everywhere else."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

MAIN = """\
from core import Request, Response, create_app

app = create_app()


@app.get("/notes/{id}")
async def show(req: Request, res: Response) -> None:
    res.json({})
"""
TEST = "from main import app\n\n\ndef test_it():\n    assert app\n"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.plugins = ["core.testing.plugin"]
    pytester.makefile(".toml", wrangler='name = "notes"\nmain = "main.py"\ncompatibility_date = "2026-04-01"\n')
    pytester.makepyfile(main=MAIN, test_it=TEST)
    return pytester


def test_what_a_test_module_cannot_import_is_told_with_line_fix_and_page(project: pytest.Pytester) -> None:
    result = project.runpytest_subprocess()
    result.stdout.fnmatch_lines(
        [
            "*ERROR collecting test_it.py*",
            "*collection failed*",
            "PathError: *",
            "  main.py:6 *",
            '    @app.get("/notes/{id}")',
            "*Page: reference/routing/",
        ]
    )


def test_so_is_what_a_conftest_cannot_import(project: pytest.Pytester) -> None:
    project.makeconftest("from main import app\n")
    result = project.runpytest_subprocess()
    told = result.stderr.str() + result.stdout.str()
    assert "  main.py:6 " in told
    assert "Page: reference/routing/" in told
    assert told.count("PathError: ") == 2, told  # pytest's own traceback, and the record


def test_so_is_what_a_conftest_of_a_folder_below_cannot_import(project: pytest.Pytester) -> None:
    folder = project.mkpydir("tests")
    (folder / "sub").mkdir()
    (folder / "sub" / "conftest.py").write_text("from main import app\n")
    (folder / "sub" / "test_more.py").write_text("def test_more():\n    pass\n")
    result = project.runpytest_subprocess("--ignore=test_it.py")
    result.stdout.fnmatch_lines(["*collection failed*", "PathError: *", "*Page: reference/routing/"])


def test_a_module_that_is_missing_and_a_syntax_error_are_told_too(project: pytest.Pytester) -> None:
    project.makepyfile(main="from core import create_ap\n")
    result = project.runpytest_subprocess()
    result.stdout.fnmatch_lines(["*collection failed*", "ImportError: *", "  main.py:1 *", "*Page: *"])
    project.makepyfile(main="app = (\n")
    result = project.runpytest_subprocess()
    result.stdout.fnmatch_lines(["*collection failed*", "SyntaxError: *", "  main.py:1", "*Page: *"])


def test_a_project_without_the_framework_gets_pytest_s_own_words_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="1 / 0\n")
    result = pytester.runpytest_subprocess()
    result.stdout.fnmatch_lines(["*ERROR collecting test_it.py*"])
    result.stdout.no_fnmatch_line("*collection failed*")
