"""`core check` says what the mypy plugin says: the plugin's own tests, and changed examples, seen by both.

The plugin's tests hold whole little projects with the exact findings below the lines they are at. Here the same
functions run again, with `core check` in mypy's place.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mypy import api
from tests.mypy_plugin import (
    test_apps,
    test_awaits,
    test_bindings,
    test_env,
    test_followed,
    test_params,
    test_queues,
    test_routes,
    test_sql,
    test_urls,
)
from tests.mypy_plugin.conftest import Project

from core.analysis.program import Options, check_program
from core.analysis.settings import read_settings
from core.config.load import load_all

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "users"

# These are about where the plugin finds its options and several configuration files, which a command is told, and about
# where None was ruled out, which types alone tell.
OF_THE_PLUGIN_ALONE = {
    "test_a_type_that_can_be_none_does_not_fit_a_column_that_cannot",
    "test_a_named_environment_that_lacks_a_binding_is_named",
    "test_next_is_left_to_mypy_where_mypy_tells_it",
    "test_each_env_of_a_project_belongs_to_the_nearest_configuration",
    "test_the_daemon_takes_a_code_that_is_switched_off_in_the_configuration_file",
}


class Checked(Project):
    """A project that `core check` looks at."""

    def mypy(self, *arguments: str) -> list[str]:
        """The findings of `core check`, as mypy would print them;
        that these projects have no entry file is not the point.
        """
        root = self.root.resolve()
        options = read_settings(str(root / "mypy.ini"))
        findings = check_program(
            load_all(root / "wrangler.toml"), Options(options.env, [root], f"{options.where} env", root)
        )
        return [
            finding.text.replace(f"{root}/", "")
            for finding in findings
            if not finding.message.startswith("main: there is no file")
            # Their handlers send one answer for each line that is looked at; mypy says nothing of that.
            and "a response was sent already" not in finding.message
        ]


def cases() -> Iterator[Callable[[Project], None]]:
    for module in (
        test_apps,
        test_awaits,
        test_env,
        test_followed,
        test_params,
        test_bindings,
        test_queues,
        test_routes,
        test_sql,
        test_urls,
    ):
        for name, function in vars(module).items():
            if not name.startswith("test_") or name in OF_THE_PLUGIN_ALONE:
                continue
            if list(inspect.signature(function).parameters) == ["project"]:
                yield function


@pytest.mark.parametrize("case", [pytest.param(case, id=case.__name__) for case in cases()])
def test_core_check_says_what_the_plugin_says(case: Callable[[Project], None], tmp_path: Path) -> None:
    case(Checked(tmp_path, tmp_path / "cache"))


def test_there_are_cases_of_every_code() -> None:
    assert len(list(cases())) >= 20


# The example, with one thing changed ----------------------------------------------------------------------------------


def changed(directory: Path, file: str, old: str, new: str) -> Path:
    root = directory / "users"
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns(".core", "__pycache__", ".mypy_cache"))
    path = root / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    (root / "mypy.ini").write_text("[mypy]\nstrict = True\nmypy_path = src\nplugins = core.mypy_plugin\n")
    return root


def from_check(root: Path) -> list[str]:
    return [finding.text.replace(f"{root}/", "") for finding in check_program(load_all(root / "wrangler.toml"))]


def from_mypy(root: Path, cache: Path) -> list[str]:
    arguments = ["--config-file", str(root / "mypy.ini"), "--cache-dir", str(cache), "--no-error-summary"]
    out, err, _ = api.run([*arguments, str(root / "src" / "users_api")])
    assert err == ""
    return [line[line.index("src/users_api") :] for line in out.splitlines()]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (
            "wrangler.toml",
            'binding = "COUNTERS"',
            'binding = "TALLIES"',
            (
                "src/users_api/env.py:10: error: Env.COUNTERS: no binding of that name in wrangler.toml. "
                "Did you mean TALLIES (wrangler.toml:8 [[kv_namespaces]])?  [core-env]"
            ),
        ),
        (
            "src/users_api/routes/users.py",
            '@users.get("/:id")',
            '@users.get("/:user_id")',
            (
                'src/users_api/routes/users.py:56: error: req.params["id"]: the path /:user_id has no parameter id. '
                "It has user_id  [core-params]"
            ),
        ),
        (
            "migrations/0002_events.sql",
            "kind TEXT",
            "kynd TEXT",
            "src/users_api/background.py:17: error: DB: table events has no column named kind. Did you mean kynd?  [core-sql]",
        ),
    ],
)
def test_one_new_name_in_the_example_is_exactly_one_finding_in_both(
    file: str, old: str, new: str, told: str, tmp_path: Path, cache: Path
) -> None:
    root = changed(tmp_path.resolve(), file, old, new)
    assert from_check(root) == [told]
    assert from_mypy(root, cache) == [told]


def test_the_examples_as_they_are_have_no_finding() -> None:
    configured = sorted((ROOT / "examples").glob("*/wrangler.*"))
    assert configured
    for path in configured:
        assert [finding.text for finding in check_program(load_all(path))] == []
