"""`core build` on applications that would not run: one clear message each, before anything is deployed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.runtime.conftest import Background, entry_at, start_running

from core.cli.build import size_report, start_report
from core.cli.new import BINDINGS, render
from core.errors import DeveloperError
from core.runtime import make
from core.runtime.bundle import Bundle, Migrations
from core.runtime.make import make_bundle
from core.runtime.node import make_ready
from core.runtime.plan import Plan
from core.runtime.project import open_project
from core.runtime.toolchain import Toolchain

Build = Callable[..., Bundle]


def builder(tools: Toolchain, background: Background, folder: Path) -> Build:
    """Builds an application of the files given in a folder, without a snapshot."""

    def build(plan: Plan | None = None, *, migrations: Mapping[str, Migrations] | None = None, **files: str) -> Bundle:
        project = folder / "project"
        project.mkdir(exist_ok=True)
        for name, text in files.items():
            (project / f"{name}.py").write_text(dedent(text))
        return background.run(
            make_bundle(
                make.Build(entry_at(project / "main.py"), project, plan or Plan(), tools),
                folder / "dist",
                snapshot=False,
                migrations=migrations,
            )
        )

    return build


@pytest.fixture
def build(tools: Toolchain, background: Background, tmp_path: Path) -> Build:
    return builder(tools, background, tmp_path)


ABSENT = {"FILES": "there is none", "OTHER": "there is none"}


@pytest.fixture(scope="module")
def good(tools: Toolchain, background: Background, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle that was built. Names of the global scope are imported at the top of its application."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("API_KEY", raising=False)  # no build needs a secret's value
        return builder(tools, background, tmp_path_factory.mktemp("good"))(
            Plan(secrets=["API_KEY", "TOKEN"], absent=ABSENT),
            main=f"import helper\nimport js\nfrom js import Object\n{dedent(WITH_ENV)}",
            helper="def unused():\n    import json.tool\n",
        )


def told(build: Build, *args: Any, **files: Any) -> str:
    """The output of a build that fails."""
    with pytest.raises(DeveloperError) as error:
        build(*args, **files)
    return str(error.value)


GOOD = """
    from core import create_app
    app = create_app()
"""
WITH_ENV = """
    import attrs
    import jinja2
    import markupsafe
    from core import Bindings, R2Bucket, Request, Response, Secret, create_app

    def long(env, attribute, value):
        if len(value.reveal()) < 32:
            raise ValueError("a key has 32 characters")

    def none(env, attribute, value):
        assert value is None

    @attrs.frozen
    class Env(Bindings):
        API_KEY: Secret = attrs.field(validator=long)
        TOKEN: str
        FILES: R2Bucket | None = attrs.field(validator=none)
        OTHER: R2Bucket

    app = create_app(Env)
    PAGE = jinja2.Environment(autoescape=True).from_string("<p>{{ name }}</p>")

    @app.get("/")
    async def page(req: Request[Env], res: Response) -> None:
        res.html(PAGE.render(name="<Ada>") + markupsafe.escape.__module__)
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


def test_what_the_env_asks_for_and_nothing_gives_is_told_with_what_to_write(build: Build) -> None:
    """A secret needs no value, a binding that workerd lacks is None where the Env can do without."""
    main = f"{dedent(WITH_ENV)}".replace(
        "    TOKEN: str\n", "    TOKEN: str\n    KV: KVNamespace\n    DB: D1Database\n"
    )
    main = f"from core import D1Database, KVNamespace\n{main}"
    message = told(build, Plan(secrets=["API_KEY"], absent={"FILES": ABSENT["FILES"]}), main=main)
    assert [line.partition(":")[0] for line in message.splitlines()] == ["Env.TOKEN", "Env.KV", "Env.DB", "Env.OTHER"]
    assert '[[kv_namespaces]] binding = "KV"' in message
    assert '[[d1_databases]] binding = "DB"' in message
    assert message.endswith('Env.OTHER: no binding of that name. Write [[r2_buckets]] binding = "OTHER"')


def test_a_dependency_that_is_not_pure_python_is_told_with_its_compiled_module(build: Build) -> None:
    message = told(build, main=f"import pydantic\n{dedent(GOOD)}")
    assert message.startswith("pydantic_core 2.")
    assert (
        " (needed by pydantic) is not pure Python: its module pydantic_core._pydantic_core is compiled (_pydantic_core."
        in message
    )
    assert "and pydantic_core needs it. A worker loads pure Python only." in message
    assert message.endswith("core build --without pydantic_core")


def test_a_package_that_works_without_its_compiled_module_is_bundled_without_it(
    good: Bundle, tools: Toolchain, background: Background, tmp_path: Path
) -> None:
    assert ".so" not in (good.folder / "modules" / "bundle.mjs").read_text()
    env = {**os.environ, "API_KEY": "k" * 32, "TOKEN": "t"}
    running = start_running(tools, good, background, tmp_path / "state", plan=good.plan, env=env)
    try:
        assert running.get("/").text.startswith("<p>&lt;Ada&gt;</p>markupsafe")
    finally:
        running.stop()


def test_a_module_that_is_missing_is_told_with_who_imports_it(build: Build) -> None:
    message = told(build, main=f"import nowhere_to_be_found\n{dedent(GOOD)}")
    assert message.startswith(("main.py, line 1 imports", "/"))
    assert "line 1 imports nowhere_to_be_found" in message
    assert message.endswith("Install it: pip install nowhere_to_be_found")


def test_a_bundle_without_a_snapshot_has_the_bytecode_of_what_is_loaded(good: Bundle) -> None:
    described = (good.folder / "modules" / "bundle.mjs").read_text()
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


def test_a_class_that_the_configuration_binds_and_nobody_wrote_is_told(build: Build) -> None:
    message = told(build, Plan(durable_objects={"COUNTER": "Counter"}), main=dedent(GOOD))
    assert "the Durable Object class Counter, which the main module has not" in message


def test_a_main_file_without_an_application_is_told(build: Build) -> None:
    message = told(build, main="x = 1\n")
    assert "main.py: there is no `app`. Write `app = create_app(Env)`" in message


def test_a_folder_with_files_of_its_own_is_never_emptied(build: Build, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "thesis.txt").write_text("years of work")
    assert "has files of its own and is not a bundle" in told(build, main=dedent(GOOD))
    assert (tmp_path / "dist" / "thesis.txt").read_text() == "years of work"


def test_the_report_has_a_line_for_every_package_and_sizes(good: Bundle) -> None:
    rows = size_report(good).splitlines()
    assert [row.split("  ")[0] for row in rows[1:3]] == ["application", "core-edge"]
    assert {row.split("  ")[0] for row in rows} > {"attrs", "cattrs", "typing_extensions", "Jinja2", "MarkupSafe"}
    again = Bundle.read(good.folder)
    assert (again.packages, again.modules) == (good.packages, good.modules)
    assert again.plan.compatibility_date == Plan().compatibility_date
    text = (good.folder / "modules" / "bundle.mjs").read_text()
    for left_out in ("core/cli/", "core/testing/", "core/config/", "core/backends/embedded/", "core/mypy_plugin/"):
        assert left_out not in text


def test_all_that_core_new_knows_is_built_and_works(tools: Toolchain, background: Background, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    for name, text in render("shop", frozenset(BINDINGS)).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    project = open_project(folder)
    bundle = background.run(
        make_bundle(
            make.Build(project.entry, folder, project.plan, tools), folder / "dist", migrations=project.migrations
        )
    )
    running = start_running(tools, bundle, background, tmp_path / "state", plan=Bundle.read(folder / "dist").plan)
    try:
        background.run(make_ready(running.node, bundle, migrate=True))
        assert running.request("POST", "/notes", b'{"text": "Built"}').json() == {"id": 1}
        assert running.request("PUT", "/notes/1/file", b"x").status == 204
        assert running.get("/notes/1/file").body == b"x"
    finally:
        running.stop()


def test_a_bundle_that_does_not_start_is_told_and_not_left_behind(build: Build, tmp_path: Path) -> None:
    """Only a start applies the migrations and restores what was made, which the look at the files does not."""
    plan = Plan(d1={"DB": "db"})
    broken = {
        "DB": Migrations("d1_migrations", [("0001_notes.sql", ["CREATE TABLE notes (id INTEGER) STRICT STRICT"])])
    }
    message = told(build, plan, migrations=broken, main=GOOD)
    assert message.startswith("the bundle was made, but does not start, and is removed again: DB: 0001_notes.sql")
    assert not (tmp_path / "dist").exists()


def test_a_build_says_what_it_tried_and_what_not(good: Bundle) -> None:
    assert start_report(good).endswith(
        "A placeholder stood for API_KEY, TOKEN: no value of a secret was tried. No request was sent, and no lifespan begun."
    )
