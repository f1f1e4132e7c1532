"""`core build` on applications that would not run: one clear message each, before anything is deployed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.runtime.conftest import Background

from core.runtime.bundle import Bundle, BundleError
from core.runtime.capnp import Plan
from core.runtime.make import make_bundle, size_report
from core.runtime.toolchain import Toolchain

Build = Callable[..., Bundle]


@pytest.fixture
def build(tools: Toolchain, background: Background, tmp_path: Path) -> Build:
    """Build an application of the files given, without a snapshot."""

    def build(plan: Plan | None = None, **files: str) -> Bundle:
        project = tmp_path / "project"
        project.mkdir(exist_ok=True)
        for name, text in files.items():
            (project / f"{name}.py").write_text(dedent(text))
        return background.run(
            make_bundle(
                project / "main.py",
                project=project,
                plan=plan or Plan(),
                out=tmp_path / "dist",
                toolchain=tools,
                snapshot=False,
            )
        )

    return build


def told(build: Build, *args: Any, **files: str) -> str:
    """The output of a build that fails."""
    with pytest.raises(BundleError) as error:
        build(*args, **files)
    return str(error.value)


GOOD = """
    from core import create_app
    app = create_app()
"""


def test_an_extra_that_the_dependencies_do_not_name_is_told_with_the_line_to_write(build: Build) -> None:
    main = """
        from core import create_app
        from core.middleware.jwt import jwt_auth

        app = create_app()
        app.use(jwt_auth(secret=lambda req: req.env.SECRET))
    """
    message = told(build, main=main)
    assert message.endswith(
        "main.py, line 6: app.use(jwt_auth(secret=lambda req: req.env.SECRET)) needs the extra jwt, which the bundle has "
        'not. Write "core-edge[jwt]" among the dependencies in pyproject.toml, and install it: pip install '
        "'core-edge[jwt]'"
    )


def test_an_application_that_raises_at_import_is_told_with_its_own_lines(build: Build) -> None:
    message = told(build, main="import settings\nfrom core import create_app\napp = create_app()\n", settings="1 / 0\n")
    lines = message.splitlines()
    assert lines[0] == "the application raises while it is imported:"
    assert lines[1].endswith("main.py, line 1: import settings")
    assert lines[2].endswith("settings.py, line 1: 1 / 0")
    assert lines[3] == "ZeroDivisionError: division by zero"
    assert len(lines) == 5


def test_a_missing_binding_is_told_with_the_table_to_write(build: Build) -> None:
    message = told(
        build,
        main="""
        import attrs
        from core import Bindings, D1Database, KVNamespace, create_app

        @attrs.frozen
        class Env(Bindings):
            KV: KVNamespace
            DB: D1Database

        app = create_app(Env)
        """,
    )
    assert "Env.KV" in message
    assert '[[kv_namespaces]] binding = "KV"' in message
    assert '[[d1_databases]] binding = "DB"' in message


def test_a_dependency_that_is_not_pure_python_is_told_with_its_native_file(build: Build) -> None:
    message = told(build, main=f"import mypy.types\n{dedent(GOOD)}")
    assert "is not pure Python: it has" in message
    assert "--without mypy" in message


def test_a_module_that_is_missing_is_told_with_who_imports_it(build: Build) -> None:
    message = told(build, main=f"import nowhere_to_be_found\n{dedent(GOOD)}")
    assert message.startswith(("main.py, line 1 imports", "/"))
    assert "line 1 imports nowhere_to_be_found" in message
    assert message.endswith("Install it: pip install nowhere_to_be_found")


def test_a_bundle_without_a_snapshot_has_the_bytecode_of_what_is_loaded(build: Build) -> None:
    bundle = build(main=f"import helper\n{dedent(GOOD)}", helper="def unused():\n    import json.tool\n")
    described = (bundle.folder / "modules" / "bundle.mjs").read_text()
    compiled = {path.rsplit(".cpython-", 1)[0] for path in re.findall(r'"([^"]+\.pyc)"', described)}
    assert {"__pycache__/main", "__pycache__/helper", "core/__pycache__/app"} <= compiled
    assert "core/testing/__pycache__/__init__" not in compiled


def test_what_is_for_development_is_in_no_bundle(build: Build) -> None:
    message = told(build, main=f"import core.testing\n{dedent(GOOD)}")
    assert "core.testing is for development" in message


def test_randomness_files_and_javascript_at_import_are_told_with_the_import_chain(build: Build) -> None:
    message = told(
        build,
        main=f"import first\n{dedent(GOOD)}",
        first="import second\n",
        second="""
        import uuid
        import js

        def key():
            return uuid.uuid4()

        KEY = key()
        SECRET = open("/etc/hostname").read() if False else None
        open("/tmp/anything", "w").close()
        KEPT = js.Headers.new()
        """,
    )
    entropy, files, held = message.split("\n\n")
    assert "second.py draws randomness while it is imported: os.urandom" in entropy
    steps = [line.strip().rsplit("/", 1)[-1] for line in entropy.splitlines()[1:]]
    assert steps == ["main.py, line 1", "first.py, line 1", "second.py, line 8", "second.py, line 6, in key"]
    assert "second.py opens a file while it is imported: open('/tmp/anything')" in files
    assert "second.py keeps a JavaScript object from import time: second.KEPT" in held
    assert [line.strip().rsplit("/", 1)[-1] for line in held.splitlines()[1:]] == [
        "main.py, line 1",
        "first.py, line 1",
        "second.py",
    ]


def test_names_of_the_global_scope_may_be_imported_at_the_top(build: Build) -> None:
    build(main=f"import js\nfrom js import Object, Response\n{dedent(GOOD)}")


def test_a_class_that_the_configuration_binds_and_nobody_wrote_is_told(build: Build) -> None:
    message = told(build, Plan(durable_objects={"COUNTER": "Counter"}), main=dedent(GOOD))
    assert "the Durable Object class Counter, which the main module has not" in message


def test_a_main_file_without_an_application_is_told(build: Build) -> None:
    message = told(build, main="x = 1\n")
    assert "main has no application. Write `app = create_app(Env)`" in message


def test_a_folder_with_files_of_its_own_is_never_emptied(build: Build, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "thesis.txt").write_text("years of work")
    assert "has files of its own and is not a bundle" in told(build, main=dedent(GOOD))
    assert (tmp_path / "dist" / "thesis.txt").read_text() == "years of work"


def test_the_report_has_a_line_for_every_package_and_sizes(build: Build) -> None:
    bundle = build(main=dedent(GOOD))
    rows = size_report(bundle).splitlines()
    assert [row.split("  ")[0] for row in rows[1:6]] == [
        "application",
        "core-edge",
        "attrs",
        "cattrs",
        "typing_extensions",
    ]
    again = Bundle.read(bundle.folder)
    assert (again.packages, again.modules) == (bundle.packages, bundle.modules)
    assert again.plan.compatibility_date == Plan().compatibility_date
    text = (bundle.folder / "modules" / "bundle.mjs").read_text()
    for left_out in ("core/cli/", "core/testing/", "core/config/", "core/backends/embedded/", "core/mypy_plugin/"):
        assert left_out not in text
