"""Middleware and bindings of other packages are checked by their declarations, as the framework's own are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mypy_plugin.conftest import WRANGLER, Project

from core.config.load import load_all
from core.program.extensions import declared, unchecked_in
from core.program.proof import Options, check_program

ACME = {
    "acme_core/__init__.py": """
        from acme_core.quota import quota as quota
        """,
    "acme_core/py.typed": "",
    "acme_core/quota.py": """
        from typing import Any, Protocol

        from core import Middleware

        def quota(store: str, *, files: str = "") -> Middleware[Any, object]: raise NotImplementedError

        def answers() -> Middleware[Any, object]: raise NotImplementedError

        def traced() -> Middleware[Any, object]: raise NotImplementedError

        def audit() -> Middleware[Any, object]: raise NotImplementedError

        class Pipe(Protocol):
            async def send(self, records: list[object]) -> None: ...
        """,
    "acme_core/declared.py": """
        from core.extensions import DeclaredBinding, DeclaredMiddleware, Extension

        EXTENSION = Extension(
            middleware=[
                DeclaredMiddleware(
                    "acme_core.quota.quota",
                    exported_as=["acme_core.quota"],
                    bindings={"store": "KVNamespace", "files": "R2Bucket"},
                    first="store",
                ),
                DeclaredMiddleware("acme_core.quota.answers", answers=True),
                DeclaredMiddleware("acme_core.quota.traced", provides=["req.trace"]),
                DeclaredMiddleware("acme_core.quota.audit", reads=["req.trace"]),
            ],
            bindings=[DeclaredBinding("pipeline", "acme_core.quota.Pipe")],
        )
        """,
    "acme_core-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-core\nVersion: 1.0\n",
    "acme_core-1.0.dist-info/entry_points.txt": (
        "[console_scripts]\nx = y:z\n\n[core.extensions]\nacme = acme_core.declared:EXTENSION\n"
    ),
}


@pytest.fixture(autouse=True)
def acme(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that is installed, with an entry point."""
    place = tmp_path_factory.mktemp("installed")
    package = Project(place, place / "cache")
    for name, text in ACME.items():
        package.write(name, text)
    monkeypatch.setattr(sys, "path", [str(place), *sys.path])
    declared.cache_clear()
    yield place
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_core"]:
        del sys.modules[name]
    declared.cache_clear()


def shop(project: Project, acme: Path) -> None:
    project.usual()
    with project.root.joinpath("mypy.ini").open("a") as file:
        file.write(f"mypy_path = {acme}\n")
    project.write("wrangler.toml", WRANGLER + '\n[[pipelines]]\nbinding = "EVENTS"\npipeline = "events"\n')


class Checked(Project):
    """A project that `core check` looks at."""

    def mypy(self, *arguments: str) -> list[str]:
        """The findings of `core check`, as mypy would print them."""
        findings = check_program(load_all(self.root / "wrangler.toml"), Options(paths=[self.root]))
        return [finding.text.replace(f"{self.root}/", "") for finding in findings]


def test_a_kind_that_a_package_has_a_type_for_is_not_said_to_be_unchecked(tmp_path: Path, acme: Path) -> None:
    project = Project(tmp_path.resolve(), tmp_path / "cache").usual()
    tables = '\n[[{0}pipelines]]\nbinding = "EVENTS"\npipeline = "events"\n\n[[{0}vpc_services]]\nbinding = "OFFICE"\n'
    project.write("wrangler.toml", WRANGLER + tables.format("") + tables.format("env.staging."))
    configurations = load_all(project.root / "wrangler.toml")
    assert [part.key for part in unchecked_in(configurations)] == ["vpc_services", "env.staging.vpc_services"]


@pytest.mark.parametrize("front_end", [Project, Checked])
def test_an_entry_point_that_cannot_be_loaded_is_a_finding(
    tmp_path: Path, mypy_cache: Path, acme: Path, front_end: type[Project]
) -> None:
    project = front_end(tmp_path.resolve(), mypy_cache).usual()
    project.write("app.py", "from core import create_app\nfrom env import Env\n\napp = create_app(Env)\n")
    (acme / "acme_core" / "declared.py").write_text("import nothing_like_it\n")
    declared.cache_clear()
    (line,) = project.mypy()
    assert "the entry point acme = 'acme_core.declared:EXTENSION' of the group core.extensions" in line
    assert "ModuleNotFoundError: No module named 'nothing_like_it'" in line
    assert line.endswith("[core-env]")
