"""The files that go into a bundle."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.runtime.bundle import BundleError
from core.runtime.collect import _holds, _requirement, collect, main_module


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ('python_version < "3.11"', False),
        ('python_version >= "3.9"', True),
        ('sys_platform == "emscripten"', True),
        ('sys_platform == "win32" or os_name == "posix"', True),
        ('platform_system != "Windows" and python_full_version < "3.10.1"', False),
        ('extra == "test"', False),
        ('"linux" in sys_platform', False),
        ("this cannot be read", True),
    ],
)
def test_a_marker_is_read_as_for_a_worker(marker: str, holds: bool) -> None:
    assert _holds(marker, "") is holds


def test_a_requirement_has_a_name_extras_and_a_condition() -> None:
    assert _requirement("Foo.Bar[a, b]>=1,<2", frozenset()) == ("Foo.Bar", frozenset({"a", "b"}), True)
    assert _requirement("x (>=1) ; extra == 'a'", frozenset({"a"})) == ("x", frozenset(), True)
    assert _requirement("x; extra == 'b'", frozenset({"a"}))[2] is False


def test_a_main_file_in_a_package_is_imported_as_a_part_of_it(tmp_path: Path) -> None:
    package = tmp_path / "src" / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "main.py").touch()
    assert main_module(package / "main.py") == (tmp_path / "src", "shop.main")
    with pytest.raises(BundleError, match="does not exist"):
        main_module(tmp_path / "nowhere.py")
    (tmp_path / "index.js").touch()
    with pytest.raises(BundleError, match="not a Python file"):
        main_module(tmp_path / "index.js")


def test_secrets_tests_and_what_is_hidden_stay_behind(tmp_path: Path) -> None:
    for name in (
        "main.py",
        "shop/__init__.py",
        "shop/page.html",
        "shop/__pycache__/x.pyc",
        "tests/test_main.py",
        ".venv/pyvenv.cfg",
        "venv/pyvenv.cfg",
        "venv/lib/thing.py",
        "node_modules/x/y.py",
        ".dev.vars",
        "wrangler.toml",
        "secret.key",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    own = [path for path in collect(tmp_path / "main.py", project=tmp_path).files if "core/" not in path]
    own = [
        path for path in own if not path.startswith(("attr", "cattr", "typing_extensions")) and "dist-info" not in path
    ]
    assert sorted(own) == ["main.py", "shop/__init__.py", "shop/page.html"]


def test_of_the_framework_only_what_a_worker_loads_goes_along(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("from core import create_app\napp = create_app()\n")
    files = collect(tmp_path / "main.py", project=tmp_path).files
    ours = {path for path in files if path.startswith("core/")}
    assert "core/hosts/workers/isolate.py" in ours
    for left_out in (
        "core/cli",
        "core/config",
        "core/testing",
        "core/mypy_plugin",
        "core/openapi",
        "core/backends/embedded",
    ):
        assert not any(path.startswith(f"{left_out}/") for path in ours)


def test_a_dependency_that_is_not_installed_is_told(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["not-there-at-all>=1"]\n')
    with pytest.raises(BundleError, match="not-there-at-all is not installed here"):
        collect(tmp_path / "main.py", project=tmp_path)
    collect(tmp_path / "main.py", project=tmp_path, left_out=["not_there-at.all"])


def test_an_extra_of_the_framework_goes_along(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import core")
    assert "jwt/__init__.py" not in collect(tmp_path / "main.py", project=tmp_path).files
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["core-edge[jwt]"]\n')
    files = collect(tmp_path / "main.py", project=tmp_path).files
    assert "jwt/__init__.py" in files
    assert not [path for path in files if path.startswith("cryptography/")]  # a worker has WebCrypto


def install(place: Path, name: str, *requires: str) -> None:
    (place / f"{name}.py").write_text("")
    folder = place / f"{name}-1.0.dist-info"
    folder.mkdir()
    lines = ["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {r}" for r in requires)]
    (folder / "METADATA").write_text("\n".join([*lines, "", ""]))
    (folder / "RECORD").write_text(f"{name}.py,,\n")


def test_extras_that_several_ask_for_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install(site, "base_x", "one_x; extra == 'one'", "two_x; extra == 'Two_B'", "cycle_x")
    install(site, "cycle_x", "base_x[one]", "base_x[two-b]", "plain_x")
    for name in ("one_x", "two_x", "plain_x", "three_x"):
        install(site, name)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.py").write_text("import core")
    (project / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["base_x"]\n')
    collected = collect(project / "main.py", project=project)
    assert {"base_x.py", "one_x.py", "two_x.py", "cycle_x.py", "plain_x.py"} <= collected.files.keys()
    assert len({package.name for package in collected.packages}) == len(collected.packages)
    left = collect(project / "main.py", project=project, left_out=["one_x"]).files
    assert "one_x.py" not in left
    assert "two_x.py" in left
