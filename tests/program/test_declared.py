"""The framework's own declarations for the checks say what its middleware is."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import core.middleware
from core.bindings.kinds import PROTOCOLS
from core.extensions import DeclaredMiddleware
from core.middleware.declared import EXTENSION

SOURCES = Path(core.middleware.__file__).parent


def made(declared: DeclaredMiddleware) -> object:
    module, _, name = declared.function.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_every_option_that_is_declared_is_one() -> None:
    for declared in EXTENSION.middleware:
        maker = made(declared)
        assert callable(maker)
        parameters = inspect.signature(maker).parameters
        assert set(declared.bindings) <= set(parameters), declared.function
        assert set(declared.bindings.values()) <= set(PROTOCOLS)
        if declared.first:
            assert next(iter(parameters)) == declared.first


def test_every_option_that_names_a_binding_is_declared() -> None:
    """An option is called `kv_binding`, `bucket` and the like, and takes a `str`."""
    known = {(declared.function, option) for declared in EXTENSION.middleware for option in declared.bindings}
    assert set(options()) == known, "write its row in core/middleware/declared.py"


def options() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCES.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            match node:
                case ast.FunctionDef(name=name, args=arguments) if name == path.stem:
                    pass
                case ast.ClassDef(name=name, body=body) if not name.startswith("_"):
                    found = [
                        inner.args for inner in body if isinstance(inner, ast.FunctionDef) and inner.name == "__init__"
                    ]
                    if not found:
                        continue
                    arguments = found[0]
                case _:
                    continue
            for argument in (*arguments.args, *arguments.kwonlyargs):
                if (
                    argument.arg.endswith(("binding", "bucket"))
                    and argument.annotation
                    and "str" in ast.unparse(argument.annotation)
                ):
                    yield f"core.middleware.{path.stem}.{name}", argument.arg
