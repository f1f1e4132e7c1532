"""Every engine has a method for each call of its Protocol, with its parameters: type checkers compare neither."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import core.backends
from core.bindings import binding_call
from core.bindings.calls import Hookable

for found in pkgutil.walk_packages(core.backends.__path__, "core.backends."):
    import_module(found.name)


def engines(base: type) -> Iterator[type]:
    """The engines that derive from `base`, without those that are there to be derived from."""
    every: list[type] = base.__subclasses__()
    derived = [cls for cls in every if cls.__module__.startswith("core.backends.")]
    for cls in derived:
        yield from engines(cls)
    if not derived:
        yield base


def calls(cls: type) -> Iterator[str]:
    """The calls that the Protocols of a class carry."""
    marked = binding_call(calls).__code__
    yield from (name for name, given in inspect.getmembers(cls, inspect.isfunction) if given.__code__ is marked)


CALLS = [pytest.param(cls, name, id=f"{cls.__name__}.{name}") for cls in engines(Hookable) for name in calls(cls)]


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a method, without their types."""
    given = inspect.signature(function).parameters.values()
    return {each.name: each.replace(annotation=inspect.Parameter.empty) for each in given}


@pytest.mark.parametrize(("cls", "name"), CALLS)
def test_an_engine_has_a_method_for_a_call_with_the_same_parameters(cls: Any, name: str) -> None:
    own, promised = parameters(getattr(cls, f"_{name}")), parameters(getattr(cls, name))
    rest = [each.name for each in own.values() if each.kind == each.VAR_KEYWORD]
    for each in rest:
        del own[each]
    assert own == {name: each for name, each in promised.items() if name in own or not rest}
