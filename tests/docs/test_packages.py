"""The page of packages: made of its data, and true for those that are installed here."""

from __future__ import annotations

import importlib.metadata

import pytest
from benchmarks.packages import PAGE, build, page, read, short

from core.runtime.toolchain import missing_reason


def test_the_page_is_made_of_what_the_last_run_found() -> None:
    packages = read()
    assert len({package["package"] for package in packages}) == len(packages) == 100
    assert all(package["version"] for package in packages)
    assert PAGE.read_text("utf-8") == page(packages)


def test_a_reason_is_one_line() -> None:
    assert short(
        "the application raises while it is imported:\n  x/y.py, line 3: import z\nValueError: no z\nA worker imports it"
    ) == ("raises while it is imported: `ValueError: no z` (x/y.py, line 3)")
    told = "p 1.0 (needed by q) is not pure Python: its module p._x is compiled (_x.abi3.so), and p needs it. A worker loads"
    assert short(told) == "p 1.0 (needed by q) is not pure Python: its module p._x is compiled, and p needs it"
    assert short("/tmp/a/main.py, line 1 imports ssl. The standard library of a worker has no ssl. Do") == (
        "needs ssl. The standard library of a worker has no ssl. Do"
    )


@pytest.mark.runtime
@pytest.mark.skipif(missing_reason() is not None, reason=str(missing_reason()))
@pytest.mark.parametrize("name", ["Jinja2", "pydantic"])
def test_a_package_that_is_installed_here_has_the_row_that_a_build_gives(name: str) -> None:
    row = next(package for package in read() if package["package"] == name)
    found = build(name, row["module"])
    assert found["version"] == importlib.metadata.version(name)
    assert (found["why"] is None, found["note"] is None) == (row["why"] is None, row["note"] is None)
