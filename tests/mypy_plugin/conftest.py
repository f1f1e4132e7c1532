"""Whole little projects, checked by mypy in this process with one cache for all of them.

A source says itself what is expected: `#^ core-env: message` stands below the line that the error is at. What is not
expected must not be there.
"""

from __future__ import annotations

import gc
import itertools
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import mypy.build  # first, or mypy's modules import each other in a circle  # noqa: F401
import pytest
from mypy import api
from tests.support.libraries import STRICT
from tests.support.starting import quick_starts as quick_starts

from core.config.load import load_all
from core.program.proof import Options, check_program
from core.program.settings import read_settings

WRANGLER = """\
name = "shop"
main = "app.py"
compatibility_date = "2026-04-01"

[[kv_namespaces]]
binding = "SESSIONS"
id = "a"

[[d1_databases]]
binding = "DB"
database_name = "shop"
database_id = "b"

[vars]
ORIGIN = "https://example.com"
"""

MIGRATION = """\
CREATE TABLE users (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT,
  score REAL NOT NULL DEFAULT 0
);
CREATE TABLE posts (
  id INTEGER PRIMARY KEY,
  user_id INTEGER NOT NULL,
  title TEXT NOT NULL
);
"""

ENV = """\
import attrs

from core import Bindings, D1Database, KVNamespace


@attrs.frozen
class Env(Bindings):
    SESSIONS: KVNamespace
    DB: D1Database
    ORIGIN: str
"""

MYPY_INI = f"{STRICT}show_error_codes = True\npretty = False\n"

OF_MYPY = {
    "test_awaits",
    "test_modes",
    "test_settings",
    "test_values_of_rows",
    "test_a_function_that_is_no_tool_is_told_by_mypy_and_by_core_check",
    "test_a_named_environment_that_lacks_a_binding_is_named",
    "test_a_type_that_can_be_none_does_not_fit_a_column_that_cannot",
    "test_the_values_of_a_starred_tuple_are_counted_and_checked",
    "test_columns_are_held_against_the_fields_of_inner_classes",
    "test_each_env_of_a_project_belongs_to_the_nearest_configuration",
}
"""The modules of tests, and tests, in which mypy itself is what is tried."""
_RUNS = itertools.count(1)
_EXPECTED = re.compile(r"^\s*#\^ ([\w-]+): (.*)$")


class Project:
    """A folder with a project, and mypy for it."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.root = root
        self.cache = cache
        self.write("mypy.ini", MYPY_INI)

    def write(self, name: str, text: str) -> Path:
        """Write a file, with the indentation of the test taken off."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        return path

    def usual(self) -> Project:
        """Write the usual configuration, migration and `env.py`."""
        self.write("wrangler.toml", WRANGLER)
        self.write("migrations/0001_init.sql", MIGRATION)
        self.write("env.py", ENV)
        return self

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a string that is there."""
        path = self.root / name
        text = path.read_text()
        assert old in text, f"{name} has no {old!r}"
        path.write_text(text.replace(old, new))

    def mypy(self, *arguments: str) -> list[str]:
        """mypy's findings about the whole project, line by line, without its summary."""
        deepest = sys.getrecursionlimit()  # mypy raises it, and Hypothesis minds
        out, err, _ = api.run(
            ["--config-file", str(self.root / "mypy.ini"), "--cache-dir", str(self.cache), *arguments, str(self.root)]
        )
        sys.setrecursionlimit(deepest)
        # mypy makes the interpreter collect so rarely that each run keeps 20 to 60 MB: these tests together took 4 GB.
        if next(_RUNS) % 8 == 0:
            gc.collect()
            gc.freeze()  # which mypy ended: what was there before its runs is no garbage
        assert err == "", err
        return self.told(out)

    def told(self, out: str) -> list[str]:
        """The lines of an output, with paths from the project on."""
        lines = [line for line in out.splitlines() if not line.startswith(("Found ", "Success:"))]
        prefixes = (f"{self.root}/", f"{_relative(self.root)}/")
        for prefix in prefixes:
            lines = [line.removeprefix(prefix) for line in lines]
        return lines

    def process(self, *command: str, check: bool = True) -> list[str]:
        """The output of another process, run in the project."""
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=self.root, capture_output=True, text=True, timeout=300
        )
        if check:
            assert done.stderr == "", done.stderr
        return self.told(done.stdout)

    def expected(self) -> list[str]:
        """The findings that the project's sources expect of mypy."""
        found: list[str] = []
        for path in sorted(self.root.rglob("*.py")):
            at = 0
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = _EXPECTED.match(line)
                if match is None:
                    at = number
                    continue
                found.append(f"{path.relative_to(self.root)}:{at}: error: {match[2]}  [{match[1]}]")
        return sorted(found)

    def check(self, *arguments: str) -> None:
        """mypy says what the sources expect, and nothing else."""
        assert sorted(self.mypy(*arguments)) == self.expected()


class Checked(Project):
    """A project that `core check` looks at: one reader finds what mypy reports, and it takes a tenth of the time."""

    def mypy(self, *arguments: str) -> list[str]:
        """The findings of `core check` in Python files, as mypy would print them, but that there is no app."""
        root = self.root.resolve()
        options = Options.of(read_settings(str(root / "mypy.ini")), [root])
        findings = check_program(load_all(root / "wrangler.toml"), options)
        told = [one for one in findings if one.file.endswith(".py") and not one.message.startswith("there is no `app`")]
        return [one.text.replace(f"{root}/", "") for one in told]


def _relative(path: Path) -> Path:
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, mypy_cache: Path) -> Project:
    """An empty project, which `core check` looks at where a module is about the rules and not about mypy."""
    names = {request.path.stem, request.node.originalname}
    kind = Project if names & OF_MYPY else Checked
    return kind(tmp_path, mypy_cache)


def programs(text: str) -> Mapping[str, str]:
    """Programs by their names, from one text with `### name` above each."""
    parts = re.split(r"^### (.+)$", textwrap.dedent(text), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))
