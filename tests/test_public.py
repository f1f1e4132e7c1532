"""Public names: those of `core`, held by a list here, and the rules every module follows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import core

SOURCES = Path(core.__file__).parent
MODULES = sorted(SOURCES.rglob("*.py"))

PROMISED = [
    "Ai",
    "App",
    "Authenticator",
    "Bindings",
    "CoreError",
    "D1Database",
    "D1PreparedStatement",
    "DurableObjectNamespace",
    "EdgeMetadata",
    "ErrorHandler",
    "ExecutionContext",
    "Handler",
    "KVNamespace",
    "Middleware",
    "Next",
    "Params",
    "Query",
    "Queue",
    "R2Bucket",
    "Request",
    "Response",
    "Router",
    "Secret",
    "create_app",
    "http",
]


def exported(module: Path) -> list[str] | None:
    for node in ast.parse(module.read_text()).body:
        target = (
            node.target
            if isinstance(node, ast.AnnAssign)
            else node.targets[0]
            if isinstance(node, ast.Assign)
            else None
        )
        if isinstance(target, ast.Name) and target.id == "__all__":
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            assert node.value is not None
            return list(ast.literal_eval(node.value))
    return None


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_public_names_are_sorted(module: Path) -> None:
    names = exported(module)
    if names is None:
        # A package root that holds no code, or a script, exports nothing.
        code = [node for node in ast.parse(module.read_text()).body if not isinstance(node, ast.Expr)]
        assert not code or module.name in ("__init__.py", "__main__.py"), "a module with code says what is public"
    else:
        assert names == sorted(names)


@pytest.mark.parametrize("name", PROMISED)
def test_every_promised_name_is_there(name: str) -> None:
    assert name in core.__all__
    assert getattr(core, name) is not None


def test_every_public_name_can_be_imported_and_is_listed() -> None:
    for name in core.__all__:
        assert getattr(core, name) is not None
    assert set(core.__all__) <= set(dir(core))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nope'"):
        core.Nope  # type: ignore[attr-defined]  # noqa: B018 - the access is what is tested


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_every_file_begins_by_saying_what_it_decides(module: Path) -> None:
    tree = ast.parse(module.read_text())
    assert not tree.body or ast.get_docstring(tree)
