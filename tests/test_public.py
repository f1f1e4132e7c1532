"""Public names: those of `core`, held by a list here, and the rules every module follows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_origin

import pytest

import core
from core import Request, Router

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


def exported(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
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


def broken(tree: ast.Module) -> Iterator[str]:
    """The rules that a module does not follow."""
    names = exported(tree)
    if names is not None and names != sorted(names):
        yield "public names are sorted"
    if tree.body and not ast.get_docstring(tree):
        yield "a file begins by saying what it decides"


@pytest.mark.slow
def test_every_module_says_what_it_decides_and_what_is_public_in_order() -> None:
    assert [
        f"{path.relative_to(SOURCES)}: {rule}"
        for path in MODULES
        for rule in broken(ast.parse(path.read_text("utf-8")))
    ] == []


def test_a_module_that_breaks_the_rules_would_be_found() -> None:
    assert list(broken(ast.parse('__all__ = ["b", "a"]'))) == [
        "public names are sorted",
        "a file begins by saying what it decides",
    ]
    assert list(broken(ast.parse(""))) == []


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


def test_the_type_arguments_of_an_annotation_can_be_read() -> None:
    """Libraries that inject by annotation, and documentation tools, look at them when the program runs."""
    assert get_args(Request[int, str]) == (int, str, str)
    assert get_origin(Router[int]) is Router
