"""Every name that the plugin and the checks go by is there: moving code must not silence them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mypy.build
import pytest
from mypy.main import process_options
from mypy.nodes import Decorator, FuncDef, OverloadedFuncDef, SymbolNode, TypeInfo, Var
from tests.support.libraries import STRICT

from core.middleware.declared import EXTENSION
from core.mypy_plugin.hooks import ERROR_CODES

TARGETS = (
    "core.env.Bindings",
    "core.app.App",
    "core.app.App.queue",
    "core.app.App.scheduled",
    "core.app.App.url_for",
    "core.app.create_app",
    "core.bindings.d1._Queries.batch",
    "core.bindings.d1._Queries.prepare",
    "core.bindings.d1.D1Database",
    "core.bindings.d1.D1DatabaseSession",
    "core.bindings.d1.D1PreparedStatement",
    "core.bindings.d1.D1PreparedStatement.all",
    "core.bindings.d1.D1PreparedStatement.as_",
    "core.bindings.d1.D1PreparedStatement.bind",
    "core.bindings.d1.D1PreparedStatement.first",
    "core.bindings.d1.D1PreparedStatement.one",
    "core.bindings.d1.D1PreparedStatement.raw",
    "core.bindings.d1.D1PreparedStatement.run",
    "core.bindings.durable_object.DurableObject",
    "core.bindings.durable_object.DurableObjectNamespace",
    "core.bindings.queue.MessageBatch",
    "core.types.BoundMiddleware",
    "core.types.Next",
    "core.types.Next.__call__",
    *(middleware.function for middleware in EXTENSION.middleware),
    "core.request.Params",
    "core.request.Params.parse",
    "core.request.Request",
    "core.request.Request.params",
    "core.request.Request.url_for",
    "core.response.Response",
    "core.response.Response.json",
    "core.router.Router",
    *(
        f"core.router.Router.{name}"
        for name in ["all", "delete", "get", "head", "on", "options", "patch", "post", "put", "use"]
    ),
)
MODULES = sorted({middleware.function.rpartition(".")[0] for middleware in EXTENSION.middleware})
SOURCE = "import core\n" + "".join(f"import {name}\n" for name in MODULES)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, mypy_cache: Path) -> mypy.build.BuildResult:
    file = tmp_path_factory.mktemp("targets") / "mypy.ini"
    file.write_text(STRICT)  # with the same options the cache has most of it
    return mypy.build.build(
        *process_options(["--config-file", str(file), "--cache-dir", str(mypy_cache), "-c", SOURCE])
    )


def find(result: mypy.build.BuildResult, fullname: str) -> SymbolNode | None:
    """The symbol of a full name, in a module or in a class of one."""
    parts = fullname.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        tree = result.files.get(".".join(parts[:cut]))
        if tree is None:
            continue
        symbol = tree.names.get(parts[cut])
        for name in parts[cut + 1 :]:
            node = symbol.node if symbol is not None else None
            symbol = node.names.get(name) if isinstance(node, TypeInfo) else None
        return symbol.node if symbol is not None else None
    return None


@pytest.mark.parametrize("target", TARGETS)
def test_every_hook_target_exists_under_its_own_name(result: mypy.build.BuildResult, target: str) -> None:
    node = find(result, target)
    assert isinstance(node, TypeInfo | FuncDef | OverloadedFuncDef | Decorator | Var), target
    assert node.fullname == target


def test_codes_belong_to_one_family() -> None:
    families = {code.sub_code_of.code for code in ERROR_CODES.values() if code.sub_code_of is not None}
    assert families == {"core"}
    assert all(name == code.code and name.startswith("core-") for name, code in ERROR_CODES.items())


def test_a_run_with_nothing_to_check_imports_neither_attrs_nor_the_model(tmp_path: Path) -> None:
    text = "import sys, core.mypy_plugin.hooks; print({'attr', 'cattrs', 'sqlite3', 'core.config.model'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
