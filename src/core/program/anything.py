"""What a program is given for a name or a module that does not exist, so that its start can go on.

Such a value is a class, an object, a function, a decorator, a module or an exception: whatever is asked of it. The
names of modules are those that Sphinx's `autodoc_mock_imports` would be given.
"""

from __future__ import annotations

import inspect
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast


class _Meta(type):
    def __getattr__(cls, name: str) -> object:
        return anything(name)

    def __or__(cls, other: object) -> Any:
        return cls

    __ror__ = __or__

    def __iter__(cls) -> object:
        return iter(())


class _Anything(metaclass=_Meta):
    def __new__(cls, *args: Any, **options: Any) -> Any:
        # A decorator gives back what it decorates.
        if len(args) == 1 and not options and (inspect.isfunction(args[0]) or inspect.isclass(args[0])):
            return args[0]
        return super().__new__(cls)

    def __init__(self, *args: object, **options: object) -> None: ...

    def __getattr__(self, name: str) -> object:
        return anything(name)

    def __call__(self, *args: object, **options: object) -> object:
        return type(self)(*args, **options)

    def __class_getitem__(cls, key: object) -> object:
        return cls

    def __iter__(self) -> object:
        return iter(())


def anything(name: str) -> object:
    """Something to stand for a name. Raises AttributeError for those that Python itself asks for."""
    if name.startswith("__"):
        raise AttributeError(name)
    bases = (_Anything, Exception) if name.endswith(("Error", "Exception")) else (_Anything,)
    return _Meta(name, bases, {})


def is_anything(value: object) -> bool:
    """Return True for a value that `anything` gave, or one that came from it."""
    return isinstance(value, _Anything) or (isinstance(value, type) and issubclass(value, _Anything))


class Blank:
    """Loads a module that has every name."""

    @classmethod
    def spec(cls, name: str) -> ModuleSpec:
        """The module as Python imports it."""
        return ModuleSpec(name, cast("Any", cls()), is_package=True)

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing."""
        module.__path__ = []
        vars(module)["__getattr__"] = anything
