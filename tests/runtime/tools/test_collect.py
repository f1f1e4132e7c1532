"""The files that go into a bundle."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from core.errors import DeveloperError
from core.program.entry import Entry
from core.runtime.collect import collect
from core.runtime.make import Build, make_bundle
from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain

pytestmark = pytest.mark.slow  # each reads the lists of all files that are installed


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
    own = [path for path in collect(tmp_path, project=tmp_path).files if "core/" not in path]
    own = [
        path for path in own if not path.startswith(("attr", "cattr", "typing_extensions")) and "dist-info" not in path
    ]
    assert sorted(own) == ["main.py", "shop/__init__.py", "shop/page.html"]


def test_a_folder_is_a_bundle_by_more_than_a_manifest(tmp_path: Path) -> None:
    # A page has one of that name, too.
    for name in ("site/manifest.json", "site/page.html", "old/manifest.json", "old/modules/entry.mjs"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    own = collect(tmp_path, project=tmp_path).own
    assert own == {"site/manifest.json", "site/page.html"}
    toolchain = Toolchain(tmp_path, tmp_path, tmp_path)
    build = Build(Entry(str(tmp_path), "main", "app", ""), tmp_path, Plan(), toolchain)
    for out in (tmp_path / "site", tmp_path / "site" / "page.html"):
        with pytest.raises(DeveloperError, match="has files of its own and is not a bundle"):
            asyncio.run(make_bundle(build, out))
    assert (tmp_path / "site" / "page.html").read_text() == "{}"


def test_of_the_framework_only_what_a_worker_loads_goes_along(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("from core import create_app\napp = create_app()\n")
    files = collect(tmp_path, project=tmp_path).files
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
    with pytest.raises(DeveloperError, match="not-there-at-all is not installed here"):
        collect(tmp_path, project=tmp_path)
    collect(tmp_path, project=tmp_path, left_out=["not_there-at.all"])


def test_an_extra_of_the_framework_goes_along(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import core")
    assert "jwt/__init__.py" not in collect(tmp_path, project=tmp_path).files
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["core-edge[jwt]"]\n')
    files = collect(tmp_path, project=tmp_path).files
    assert "jwt/__init__.py" in files
    assert not [path for path in files if path.startswith("cryptography/")]  # a worker has WebCrypto


def install(site: Path, name: str, *requires: str, file: str | None = None) -> None:
    file = file or f"{name}.py"
    (site / file).parent.mkdir(parents=True, exist_ok=True)
    (site / file).write_text("")
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir()
    lines = ["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {r}" for r in requires)]
    (folder / "METADATA").write_text("\n".join([*lines, "", ""]))
    (folder / "RECORD").write_text(f"{file},,\n")


def test_extras_that_several_ask_for_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    install(site, "base_x", "one_x; extra == 'one'", "two_x; extra == 'Two_B'", "cycle_x")
    install(site, "cycle_x", "base_x[one]", "base_x[two-b]", "plain_x")
    for name in ("one_x", "two_x", "plain_x", "three_x"):
        install(site, name)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.py").write_text("import core")
    (project / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["base_x"]\n')
    collected = collect(project, project=project)
    assert {"base_x.py", "one_x.py", "two_x.py", "cycle_x.py", "plain_x.py"} <= collected.files.keys()
    assert len({package.name for package in collected.packages}) == len(collected.packages)
    left = collect(project, project=project, left_out=["one_x"]).files
    assert "one_x.py" not in left
    assert "two_x.py" in left


def test_of_a_namespace_the_distribution_that_has_the_module_goes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    for name in ("one", "two"):
        install(site, f"space_{name}", file=f"space_x/{name}/__init__.py")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.py").write_text("from space_x import two")
    files = collect(project, project=project).files
    assert "space_x/two/__init__.py" in files
    assert "space_x/one/__init__.py" not in files
    (project / "main.py").write_text("import space_x.one.deeper\nfrom space_x.two import something")
    assert {"space_x/one/__init__.py", "space_x/two/__init__.py"} <= collect(project, project=project).files.keys()


def test_what_is_installed_between_two_builds_goes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    install(site, "early_x")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.py").write_text("import early_x, late_x")
    assert "late_x.py" not in collect(project, project=project).files
    install(site, "late_x")
    assert {"early_x.py", "late_x.py"} <= collect(project, project=project).files.keys()


def test_an_extra_of_an_extra_goes_along_as_the_worker_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    install(
        site,
        "self_x",
        "self_x[one,two]; extra == 'all'",
        "deep_x[inner]; extra == 'one'",
        "worker_x; extra == 'two' and sys_platform == 'emscripten'",
        "laptop_x; extra == 'two' and sys_platform == 'linux'",
        "old_x; python_version < '3.13' and extra == 'two'",
    )
    install(site, "deep_x", "inner_x>=1; extra == 'inner'", "unasked_x; extra == 'other'")
    for name in ("worker_x", "inner_x"):
        install(site, name)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.py").write_text("import core")
    (project / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["self_x[all]"]\n')
    files = collect(project, project=project).files
    assert {"self_x.py", "deep_x.py", "inner_x.py", "worker_x.py"} <= files.keys()
