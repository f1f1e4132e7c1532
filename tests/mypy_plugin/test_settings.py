"""The plugin's options, what is missing or broken, and how a finding is switched off."""

from __future__ import annotations

import pytest
from tests.mypy_plugin.conftest import MYPY_INI, Project

from core.program.settings import read_settings

WRONG = (
    "env.py:8: error: Env.SESSIONS: no binding of that name in wrangler.toml. "
    "Did you mean SESSION (wrangler.toml:6 [[kv_namespaces]])?  [core-env]"
)
NOWHERE = (
    "env.py:7: error: Env: no wrangler.toml, wrangler.json or wrangler.jsonc in the folder of this module or above. "
    "Write one, name it in [core-mypy] config, or name the Env classes that have one in [core-mypy] env  [core-env]"
)


def test_a_missing_configuration_is_told(project: Project) -> None:
    project.usual().root.joinpath("wrangler.toml").unlink()
    assert project.mypy() == [NOWHERE]


def test_a_broken_configuration_is_told_with_every_mistake(project: Project) -> None:
    project.usual().edit("wrangler.toml", 'database_id = "b"', "database_id = 5\nnonsense = 1")
    told = project.mypy()
    assert len(told) >= 1
    assert all(line.startswith("env.py:7: error: Env: wrangler.toml:") and line.endswith("[core-env]") for line in told)
    assert "database_id" in told[0]
    project.write("wrangler.toml", "name = [[[")
    told = project.mypy()
    assert len(told) == 1
    assert told[0].startswith("env.py:7: error: Env: wrangler.toml:1: this is not TOML")


def test_the_configuration_can_be_named(project: Project) -> None:
    project.usual()
    project.write("config/wrangler.toml", project.root.joinpath("wrangler.toml").read_text())
    project.root.joinpath("wrangler.toml").unlink()
    project.write("mypy.ini", MYPY_INI + "[core-mypy]\nconfig = config/wrangler.toml\n")
    assert project.mypy() == []
    project.edit("config/wrangler.toml", '"SESSIONS"', '"SESSION"')
    assert project.mypy() == [WRONG]
    project.write("mypy.ini", MYPY_INI + "[core-mypy]\nconfig = conf/wrangler.toml\n")
    told = project.mypy()
    assert told == [
        (
            f"env.py:7: error: Env: {project.root}/conf/wrangler.toml is not there. Write it, or correct [core-mypy] "
            "config  [core-env]"
        )
    ]


def test_options_in_pyproject(project: Project) -> None:
    project.usual()
    project.root.joinpath("mypy.ini").unlink()
    project.write(
        "pyproject.toml",
        '[tool.mypy]\nplugins = ["core.mypy_plugin"]\nstrict = true\nenable_error_code = ["unused-awaitable"]\n'
        "[tool.core-mypy]\nenv = []\n",
    )
    project.edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    arguments = ["--config-file", str(project.root / "pyproject.toml")]
    assert project.mypy(*arguments) == []  # no class is named, so none is an Env
    project.edit("pyproject.toml", "env = []", 'env = ["*.Env", "env.E*"]\nenvironments = ["top-level", "nope"]')
    assert project.mypy(*arguments) == [
        "env.py:7: error: Env: wrangler.toml has no environment nope, which [core-mypy] environments names  [core-env]",
        WRONG,
    ]


def test_a_class_can_be_named_as_an_env_without_the_base_class(project: Project) -> None:
    project.usual()
    project.write("mypy.ini", MYPY_INI + "[core-mypy]\nenv = env.Env\n")
    project.edit("env.py", "class Env(Bindings)", "class Env")
    project.edit("env.py", "Bindings, ", "")
    project.edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    assert project.mypy() == [WRONG]


def test_an_unknown_option_is_told(project: Project) -> None:
    project.usual()
    project.write("mypy.ini", MYPY_INI + "[core-mypy]\nconfigs = wrangler.toml\n")
    assert project.mypy() == [
        (
            "env.py:7: error: Env: mypy.ini [core-mypy]: there is no option configs. The options are config, env, "
            "environments  [core-env]"
        )
    ]


@pytest.mark.parametrize("text", ["[core-mypy\n", "[core-mypy]\nno equals\n", "\x00"])
def test_an_unreadable_file_of_options_is_a_problem_and_no_crash(project: Project, text: str) -> None:
    path = project.write("setup.cfg", text)
    settings = read_settings(str(path))
    assert len(settings.problems) == (0 if text == "\x00" and not settings.problems else 1)


def test_a_code_can_be_ignored_on_its_line_and_disabled_by_name(project: Project) -> None:
    project.usual().edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    assert project.mypy() == [WRONG]
    for code in ("core-env", "core"):
        # For this module alone: mypy would check its cache of the libraries anew with another option for all.
        project.write("mypy.ini", f"{MYPY_INI}[mypy-env]\ndisable_error_code = {code}\n")
        assert project.mypy() == []
    project.write("mypy.ini", MYPY_INI)
    project.edit("env.py", "SESSIONS: KVNamespace", "SESSIONS: KVNamespace  # type: ignore[core-env]")
    assert project.mypy() == []
    project.edit("wrangler.toml", '"SESSION"', '"SESSIONS"')
    assert project.mypy() == ['env.py:8: error: Unused "type: ignore" comment  [unused-ignore]']


def test_every_code_can_be_disabled_by_itself(project: Project) -> None:
    project.usual().edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    project.write(
        "app.py",
        """
        from core import Request, Response, create_app
        from core.middleware.logger import logger
        from core.middleware.rate_limit import rate_limit
        from core.middleware.request_id import request_id
        import attrs
        from core import Bindings, D1Database

        @attrs.frozen
        class Env(Bindings):
            DB: D1Database
            ORIGIN: int

        app = create_app(Env)
        app.use(logger())
        app.use(request_id())
        app.use(rate_limit(kv_binding="NOPE", limit=1, window=60))

        @app.get("/:id")
        async def show(req: Request[Env], res: Response) -> None:
            req.env.DB.prepare("SELECT x FROM users")
            req.params["x"]

        @app.queue("q")
        async def q(batch: object, env: object, ctx: object) -> None: ...
        """,
    )
    project.root.joinpath("env.py").unlink()
    source = project.root.joinpath("app.py").read_text()
    codes = ["core-binding", "core-env", "core-order", "core-params", "core-queue", "core-sql"]
    told = [line for line in project.mypy() if "[core-" in line]
    assert sorted({line.rpartition("[")[2].rstrip("]") for line in told}) == codes
    for code in codes:
        project.write("app.py", f'# mypy: disable-error-code="{code}"\n{source}')
        left = {line.rpartition("[")[2].rstrip("]") for line in project.mypy() if "[core-" in line}
        assert left == {*codes} - {code}
    project.write("app.py", f'# mypy: disable-error-code="core"\n{source}')
    assert not any("[core-" in line for line in project.mypy())


def test_pretty_output_and_columns_point_at_the_place(project: Project) -> None:
    project.usual().edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    assert project.mypy("--show-column-numbers")[0].startswith("env.py:8:5: error: Env.SESSIONS")


def test_a_library_of_several_workers_is_not_judged_by_the_configuration_above_it(project: Project) -> None:
    project.usual()
    query = """
        from core import D1Database

        async def count(db: D1Database) -> None:
            await db.prepare("SELECT count(*) FROM orders").all()
        """
    project.write("libs/shared/src/shared_queries.py", query)
    told = (
        "libs/shared/src/shared_queries.py:4: error: DB: no such table: orders. The migrations make posts, users  "
        "[core-sql]"
    )
    assert project.mypy() == [told]
    project.write("libs/shared/pyproject.toml", '[project]\nname = "shared"\n')
    assert project.mypy() == []
    project.edit("wrangler.toml", 'main = "app.py"', 'main = "libs/shared/src/app.py"')  # now it is the worker's own
    assert project.mypy() == [told]
