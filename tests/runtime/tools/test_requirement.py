"""Requirements as they are in a worker."""

from __future__ import annotations

import json

import pytest

from core.errors import DeveloperError
from core.runtime.collect import MARKERS, applies, installed_requirement, requirement
from core.runtime.toolchain import find_toolchain


@pytest.mark.parametrize(
    ("marker", "held"),
    [
        ('python_version < "3.11"', False),
        ('python_version >= "3.9"', True),
        ('python_version >= "3.14"', True),
        ('python_version == "3.14.0"', True),
        ('python_version == "3.*"', True),
        ('python_version != "3.14.*"', False),
        ('python_version ~= "3.9"', True),
        ('python_version ~= "3.9.1"', False),
        ('python_version ~= "2.7"', False),
        ('"3.9" <= python_version', True),
        ('python_version in "2.7 3.1"', False),
        ('python_version not in "3.13, 3.14"', False),
        ('python_full_version <= "3.11.0a6"', False),
        ('sys_platform == "emscripten"', True),
        ("sys.platform == 'win32' or os.name == 'nt'", False),
        ("python_implementation == 'CPython'", True),
        ('sys_platform == "win32" or os_name == "posix"', True),
        ('(sys_platform == "linux" or extra == "b") and python_version > "3"', False),
        ('platform_system != "Windows" and python_full_version < "3.10.1"', False),
        ('platform_machine == "x86_64" or platform_machine == "aarch64"', False),
        ('extra == "test"', False),
        ('extra == "Some_Extra"', True),
        ('"linux" in sys_platform', False),
        ('"script" in sys_platform', True),
    ],
)
def test_a_marker_is_read_as_for_a_worker(marker: str, held: bool) -> None:
    assert applies(requirement(f"x; {marker}"), {"some-extra"}) is held


def test_the_versions_are_those_of_the_pinned_runtime() -> None:
    tools = find_toolchain()
    if tools is None:
        pytest.skip("the runtime is not installed")
    info = json.loads((tools.pyodide / "pyodide-lock.json").read_bytes())["info"]
    assert info["python"] == MARKERS["python_full_version"] == MARKERS["implementation_version"]
    assert info["python"].startswith(f"{MARKERS['python_version']}.")
    assert info["arch"] == MARKERS["platform_machine"]


def test_a_requirement_has_a_name_extras_and_a_condition() -> None:
    one = requirement("Foo.Bar[a, b]>=1,<2")
    assert (one.name, one.extras, applies(one)) == ("Foo.Bar", {"a", "b"}, True)
    assert applies(requirement("x (>=1) ; extra == 'a'"), {"a"})
    assert not applies(requirement("x; extra == 'b'"), {"a"})
    assert not applies(requirement("x[e] @ https://x.test/x.whl ; sys_platform == 'linux'"))


def test_a_requirement_of_the_project_that_cannot_be_read_is_told_with_the_reason() -> None:
    with pytest.raises(
        DeveloperError, match=r"the requirement 'a b' cannot be read: Expected .*\. Write it as name>=version"
    ):
        requirement("a b")


@pytest.mark.parametrize("text", ["x>=1.*", "x; this cannot be read", "x (>=1"])
def test_one_of_an_installed_distribution_that_cannot_be_read_still_names_its_package(text: str) -> None:
    found = installed_requirement(text)
    assert found is not None
    assert (found.name, applies(found)) == ("x", True)


def test_one_that_names_nothing_is_passed_over() -> None:
    assert installed_requirement("(>=1)") is None


def test_a_marker_whose_values_have_no_order_counts_as_true() -> None:
    assert applies(requirement("x; sys_platform ~= 'emscripten'"))
