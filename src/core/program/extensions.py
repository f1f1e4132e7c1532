"""The middleware and bindings that the framework and the packages beside it declare (`core.extensions`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from core.bindings.kinds import KINDS
from core.config.words import dotted
from core.extensions import DeclaredMiddleware, Extension
from core.middleware.declared import EXTENSION

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from core.config.model import Binding, Configuration, Unchecked

_GROUP: Final = "core.extensions"


class Declared(NamedTuple):
    """Everything that is declared.

    `middleware` is by every full name. `kinds` are the kinds of bindings that a package has a type for, with the full
    name of the type; `types` every name of such a type, with that full name. `problems` name those that could not be
    loaded, and `sources` the entry points, for digests.
    """

    middleware: Mapping[str, DeclaredMiddleware]
    kinds: Mapping[str, str]
    types: Mapping[str, str]
    problems: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@lru_cache(1)
def declared() -> Declared:
    """Return the declarations of the framework and of every package that this Python finds. Raises nothing."""
    extensions: list[Extension] = [EXTENSION]
    problems: list[str] = []
    sources: list[str] = []
    for point in _entry_points():
        installed = _installed(point)
        sources.append(f"{installed} {point.name} {point.value}")
        try:
            extensions.append(_loaded(point))
        except Exception as error:  # importing a package may raise anything
            problems.append(
                f"the entry point {point.name} = {point.value!r} of the group {_GROUP} ({installed}) cannot be loaded: "
                f"{type(error).__name__}: {error}. Correct that package, or uninstall it"
            )
    middleware = {
        name: one
        for extension in extensions
        for one in extension.middleware
        for name in (one.function, *one.exported_as)
    }
    bindings = [binding for extension in extensions for binding in extension.bindings]
    return Declared(
        middleware,
        {binding.kind: binding.protocol for binding in bindings},
        {name: binding.protocol for binding in bindings for name in (binding.protocol, *binding.exported_as)},
        tuple(problems),
        tuple(sources),
    )


def protocol_of(binding: Binding) -> str | None:
    """The Protocol that an attribute for a binding is of, by the framework or by a package; None where there is
    none.
    """
    return binding.protocol or declared().kinds.get(binding.kind)


def unchecked_in(configurations: Sequence[Configuration]) -> list[Unchecked]:
    """The parts of a configuration file that nothing checks: neither the framework nor by a package's declaration."""
    sections = [KINDS[kind].section for kind in declared().kinds if kind in KINDS]
    found: dict[str, Unchecked] = {}
    for configuration in configurations:
        levels = [(), ("env", configuration.environment)] if configuration.environment else [()]
        checked = {dotted((*level, *key)) for level in levels for section in sections for key in (section, section[:1])}
        found |= {part.key: part for part in configuration.unchecked if part.key not in checked}
    return list(found.values())


def _entry_points() -> Iterable[EntryPoint]:
    """The entry points of the group. Most programs have none: a look at the files tells it sooner."""
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        installed = [name for name in names if name.endswith((".dist-info", ".egg-info"))]
        if any(_has_group(os.path.join(folder, name, "entry_points.txt")) for name in installed):
            from importlib.metadata import entry_points

            return entry_points(group=_GROUP)
    return ()


def _has_group(file: str) -> bool:
    try:
        with open(file, "rb") as opened:
            return f"[{_GROUP}]".encode() in opened.read()
    except OSError:
        return False


def _installed(point: EntryPoint) -> str:
    """The package of an entry point and its version; nothing where it has no metadata that say so."""
    try:
        return f"{point.dist.name}-{point.dist.version}" if point.dist is not None else ""
    except Exception:  # Python 3.13 warns of missing ones, which may be an error, and later ones raise
        return ""


def _loaded(point: EntryPoint) -> Extension:
    found: object = point.load()
    if not isinstance(found, Extension):
        raise TypeError(f"{point.value} is of type {type(found).__name__}, not core.extensions.Extension")
    return found
