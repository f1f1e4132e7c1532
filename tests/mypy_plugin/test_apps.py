"""`core-env`: which class is the Env, and that there is one:
a proof that looks at nothing must not look like a proof.
"""

from __future__ import annotations

import pytest
from tests.mypy_plugin.conftest import MYPY_INI, Project

APP = """
from core import create_app
from env import Env

app = create_app(Env)
"""


def test_a_name_in_the_options_that_no_class_has_is_told_beside_the_class_that_is_meant(project: Project) -> None:
    project.usual()
    project.write("mypy.ini", MYPY_INI + "[core-mypy]\nenv = env.Envv\n")
    project.write("app.py", APP)
    project.edit(
        "env.py",
        "(Bindings):\n",
        "(Bindings):\n#^ core-env: Env: mypy.ini [core-mypy] env names env.Envv, and no class is called that. "
        "Did you mean env.Env?\n",
    )
    project.check()


def test_one_name_of_several_that_no_class_has_is_told_beside_the_class_that_another_names(project: Project) -> None:
    project.usual()
    project.write("mypy.ini", MYPY_INI + "[core-mypy]\nenv = env.Env, zzz.*\n")
    project.edit(
        "env.py",
        "(Bindings):\n",
        "(Bindings):\n#^ core-env: Env: mypy.ini [core-mypy] env names zzz.*, and no class is called that. "
        "Write the full name of a class, or take it out\n",
    )
    project.check()


def test_a_name_that_only_another_folder_would_give_the_class_is_no_name_of_it(project: Project) -> None:
    project.usual()
    text = project.root.joinpath("env.py").read_text()
    project.root.joinpath("env.py").unlink()
    told = "Env: mypy.ini [core-mypy] env names source.shop.env.Env, and no class is called that. Did you mean shop.env.Env?"
    project.write("mypy.ini", MYPY_INI + "[core-mypy]\nenv = source.shop.env.Env\n")
    project.write("shop/__init__.py", "")
    project.write("shop/env.py", text.replace("(Bindings):\n", f"(Bindings):\n#^ core-env: {told}\n"))
    project.check()


def test_names_and_patterns_of_classes_that_are_there_are_passed(project: Project) -> None:
    project.usual()
    project.write("app.py", APP)
    project.write("mypy.ini", MYPY_INI + "[core-mypy]\nenv = env.Env, *.E*, env.*\n")
    project.check()


def test_what_create_app_is_given_by_others_is_not_judged(project: Project) -> None:
    project.usual()
    project.write(
        "app.py",
        """
        from typing import TypeVar
        from core import App, create_app
        from env import Env

        E = TypeVar("E")

        def make(env: type[E]) -> App[E]:
            return create_app(env)

        Shop = Env
        app = create_app(Shop)
        other = make(Env)
        """,
    )
    project.check()


WRONG = """
from core import Request, Response, create_app
from core.middleware.logger import logger
from core.middleware.request_id import request_id
from env import Env

app = create_app(Env)
app.use(logger())
app.use(request_id())


@app.get("/:id")
async def show(req: Request[Env], res: Response) -> None:
    req.env.DB.prepare("SELECT nope FROM users")
    req.params["idd"]
"""


def codes(project: Project) -> list[tuple[str, str]]:
    """The severity and the code of what is told."""
    told = [line for line in project.mypy() if "[core-" in line]
    return sorted((line.rpartition("[")[2].rstrip("]"), line.split(": ")[1]) for line in told)


def test_the_configuration_file_gives_codes_a_level(project: Project) -> None:
    project.usual()
    project.write("app.py", WRONG)
    text = project.root.joinpath("wrangler.toml").read_text().replace('"SESSIONS"', '"SESSION"')
    project.write("wrangler.toml", text)
    everything = [("core-env", "error"), ("core-order", "error"), ("core-params", "error"), ("core-sql", "error")]
    assert codes(project) == everything
    checks = '\n[core.checks]\ncore-env = "off"\ncore-order = "off"\ncore-params = "off"\ncore-sql = "error"\n'
    project.write("wrangler.toml", text + checks)
    assert codes(project) == [("core-sql", "error")]
    project.write("wrangler.toml", text)
    assert codes(project) == everything  # with a warm cache, in which no Python was edited


@pytest.mark.slow
def test_the_daemon_takes_a_code_that_is_switched_off_in_the_configuration_file(project: Project) -> None:
    project.usual()
    project.edit("wrangler.toml", '"SESSIONS"', '"SESSION"')
    project.edit("wrangler.toml", "[vars]", '[core.checks]\ncore-env = "off"\n\n[vars]')
    command = ("mypy.dmypy", "--status-file", "status.json")
    try:
        told = project.process(*command, "run", "--", "--config-file", "mypy.ini", ".", check=False)
        assert told == ["Daemon started"]
    finally:
        project.process(*command, "stop", check=False)
