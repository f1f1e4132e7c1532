"""The plugin's tests with another mypy: `python tests/mypy_plugin/with_mypy.py 1.17.0 [pytest arguments]`.

Makes an environment of its own, `.venv-mypy-VERSION` beside the project, when it is not there yet, and runs tests of
the plugin in it. The documented range of versions is tried at both ends: the project's own environment has the newest
and runs all tests of the plugin; this one has the oldest and runs those of `DEPENDS`.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("hypothesis>=6.100", "pyjwt[crypto]>=2.10", "pytest>=8.3", "pytest-asyncio>=1.0", "pytest-xdist>=3.6")

# A result depends on mypy's version where the plugin touches mypy itself: names of its functions and classes, its
# nodes and types, its cache and daemon, its options and its way of reporting. Everything after that is `core.analysis`,
# which is the same code over the same facts with any mypy, and over the program's text in `core check`.
DEPENDS = {
    "test_targets.py": "the full names that hooks are registered for",
    "test_modes.py": "the cache, what makes an entry of it stale, and the daemon",
    "test_front_ends.py": "a finding of every code, cold, from the cache and from the daemon",
    "test_correct_programs.py::test_nothing_is_said_about_a_correct_program": "the nodes of sixty kinds of program",
    "test_agreement.py::test_both_front_ends_agree_about_a_program_with_every_kind_of_mistake": "positions of findings",
    "test_agreement.py::test_one_name_changed_in_the_example_is_one_finding_in_both_front_ends": "a program of packages",
    "test_followed.py": "names followed through nodes: Final, annotations, f-strings, methods",
    "test_env.py": "attributes and their types: bases, aliases, strings, attrs and dataclasses",
    "test_sql.py": "the types of values and rows, and what is inferred for a query",
    "test_apps.py::test_the_configuration_file_gives_codes_a_level": "errors made warnings in mypy's own report",
    "test_apps.py::test_the_configuration_file_gives_codes_a_level_per_path": "the same, by the path of a file",
    "test_apps.py::test_the_daemon_takes_a_code_that_is_switched_off_in_the_configuration_file": "the same, in the daemon",
    "test_settings.py::test_a_code_can_be_ignored_on_its_line_and_disabled_by_name": "mypy's error codes",
    "test_settings.py::test_every_code_can_be_disabled_by_itself": "their families",
    "test_settings.py::test_pretty_output_and_columns_point_at_the_place": "the columns of nodes",
}
"""The tests whose results can depend on mypy's version, and by which part of mypy."""


def environment(version: str) -> Path:
    """The Python of an environment with that mypy."""
    folder = ROOT / f".venv-mypy-{version}"
    python = folder / "bin" / "python"
    stamp = folder / "made"
    if not stamp.exists() or stamp.read_text() != "\n".join(NEEDED):
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"mypy=={version}", *NEEDED, "-e", str(ROOT)], check=True)
        stamp.write_text("\n".join(NEEDED))
    return python


def main() -> int:
    """Run the tests."""
    if len(sys.argv) < 2:
        sys.exit("name a version of mypy, for example: python tests/mypy_plugin/with_mypy.py 1.17.0")
    python = environment(sys.argv[1])
    tests = [f"tests/mypy_plugin/{name}" for name in DEPENDS]
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *sys.argv[2:]]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
