"""The arguments of one `url_for` against the paths that its handler may have (`core-params`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from core.analysis.problems import unknown_parameter
from core.analysis.wording import listed
from core.routing.pattern import Pattern

__all__ = ["Given", "Way", "arguments_of", "mismatch"]

_PLAIN: Final = frozenset(["", ".", ".."])


class Way(NamedTuple):
    """A path that a route may have. `open`: a prefix that is not known may come before it."""

    pattern: Pattern
    open: bool


class Given(NamedTuple):
    """The arguments of a `url_for`, by their names. `whole` is False where there may be others."""

    values: Mapping[str, ast.expr]
    whole: bool


def arguments_of(call: ast.Call) -> Given | None:
    """The arguments of a `url_for`; None for more than a handler without names."""
    values: dict[str, ast.expr] = {}
    whole = True
    for keyword in call.keywords:
        if keyword.arg is not None:
            values[keyword.arg] = keyword.value
            continue
        written = keyword.value if isinstance(keyword.value, ast.Dict) else None
        whole = whole and written is not None
        for name, value in zip(written.keys, written.values, strict=True) if written is not None else ():
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                values[name.value] = value
            else:
                whole = False
    return Given(values, whole) if len(call.args) == 1 else None


def mismatch(
    shown: str, given: Given, ways: Sequence[Way], text_of: Callable[[ast.expr], str | None]
) -> tuple[str, ast.expr | None] | None:
    """Everything that is wrong in `url_for(shown, …)`, and the argument that it is about, where it is one."""
    known = list(dict.fromkeys(name for way in ways for name in way.pattern.parameters))
    paths = " or ".join(dict.fromkeys(way.pattern.text for way in ways))
    for name, value in given.values.items():
        if name not in known and not any(way.open for way in ways):
            return unknown_parameter(name, paths, known, f"url_for({shown}, {_named(name)})"), value
    if not given.whole:
        return None
    fitting = [way.pattern for way in ways if _fits(way, frozenset(given.values))]
    if fitting:
        texts = {name: text_of(value) for name, value in given.values.items()}
        refused = [_refused(pattern, texts) for pattern in fitting]
        wrong = refused[0] if all(refused) else None
        if wrong is None:
            return None
        message = f"the route {fitting[0].text} does not match this value. Give another one"
        return f'url_for({shown}, {wrong}="{texts[wrong]}"): {message}', given.values[wrong]
    if all(_has_nameless(way.pattern) for way in ways):
        message = f"the path {paths} has a * for any segment, which no argument fills. Give it a name: /:name"
        return f"url_for({shown}): {message}", None
    lacking = min((sorted(set(way.pattern.parameters) - set(given.values)) for way in ways), key=len)
    if lacking and len({way.pattern.text for way in ways}) == 1:
        message = f"the path {paths} needs {listed(lacking)}. Give {', '.join(map(_named, lacking))}"
        return f"url_for({shown}): {message}", None
    has = f"has just {listed(list(given.values))}" if given.values else "is without parameters"
    return f"url_for({shown}): no route of it {has}. Give those of {paths}", None


def _named(name: str) -> str:
    """An argument as it is written, without its value."""
    return f"{name}=…" if name.isidentifier() else f'**{{"{name}": …}}'


def _refused(pattern: Pattern, texts: Mapping[str, str | None]) -> str | None:
    """The name of a value that a path does not match."""
    checks = dict(pattern.checks)
    for name, index in pattern.names:
        text = texts[name]
        if text is None:
            continue
        source = checks.get(index)
        if text in _PLAIN or (source is not None and re.fullmatch(source, text) is None):
            return name
    rest = texts.get("*") if pattern.rest else None
    return "*" if rest is not None and not {".", ".."}.isdisjoint(rest.split("/")) else None


def _fits(way: Way, names: frozenset[str]) -> bool:
    """Return True if a path has just these parameters, or may have."""
    own = frozenset(way.pattern.parameters)
    return not _has_nameless(way.pattern) and (own == names or (way.open and own <= names))


def _has_nameless(pattern: Pattern) -> bool:
    """Return True for a path with a `*` before its end, which nothing can fill."""
    return pattern.parts.count(None) > len(pattern.names)
