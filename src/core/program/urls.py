"""Every `url_for(handler, …)` against the paths of the handler's routes (`core-params`), which the table tells."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from core.config.words import listed
from core.program.findings import Finding
from core.program.modules import Modules, Scope
from core.program.receivers import REQUEST, Receivers
from core.program.registered import pattern_of, unknown_parameter
from core.program.syntax import finding_at
from core.routing.pattern import Pattern, has_nameless, unfit

_APPS: Final = frozenset(["core.create_app", "core.app.create_app", "core.App", "core.app.App"])


def url_problems(receivers: Receivers, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """Everything that is known to be wrong with one `url_for`."""
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr="url_for"), args=[ast.Name() | ast.Attribute() as named]):
            handler = receivers.reader.function(named, scope)
        case _:
            return
    if handler is None or not receivers.bodies.table.finished:
        return
    shown = named.id if isinstance(named, ast.Name) else named.attr
    served = receivers.bodies.served.get(handler.node)
    if served is None or not served.handles:
        made = receivers.modules.maker_of(*receivers.modules.value(owner, scope))
        if not receivers.bodies.unread and (made in _APPS or receivers.kind(owner, scope) == REQUEST):
            text = "it is not the handler of a route. Register it, or name the function that was registered"
            yield finding_at(named, scope, "core-params", f"url_for({shown}): {text}")
        return
    ways = [variant for route in served.handles for variant in pattern_of(route.path).variants]
    found = _mismatch(shown, call, ways, lambda value: _text(receivers.modules, value, scope))
    if found is not None:
        yield finding_at(found[1] or call, scope, "core-params", found[0])


def _text(modules: Modules, value: ast.expr, scope: Scope) -> str | None:
    """The text that a value becomes, where it is written out."""
    written, inner = modules.value(value, scope)
    if isinstance(written, ast.Constant) and isinstance(written.value, str | int):
        return str(written.value)
    return modules.string(written, inner)


def _arguments_of(call: ast.Call) -> tuple[Mapping[str, ast.expr], bool]:
    """The arguments of a `url_for` by their names, and whether they are all."""
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
    return values, whole


def _mismatch(
    shown: str, call: ast.Call, ways: Sequence[Pattern], text_of: Callable[[ast.expr], str | None]
) -> tuple[str, ast.expr | None] | None:
    """Everything that is wrong in `url_for(shown, …)`, and the argument that it is about, where it is one."""
    given, whole = _arguments_of(call)
    known = list(dict.fromkeys(name for way in ways for name in way.parameters))
    paths = " or ".join(dict.fromkeys(way.text for way in ways))
    for name, value in given.items():
        if name not in known:
            return unknown_parameter(name, paths, known, f"url_for({shown}, {_named(name)})"), value
    if not whole:
        return None
    fitting = [way for way in ways if not has_nameless(way) and set(way.parameters) == set(given)]
    if fitting:
        texts = {name: text_of(value) for name, value in given.items()}
        refused = [unfit(pattern, texts) for pattern in fitting]
        wrong = refused[0] if all(refused) else None
        if wrong is None:
            return None
        message = f"the route {fitting[0].text} does not match this value. Give another one"
        return f'url_for({shown}, {wrong}="{texts[wrong]}"): {message}', given[wrong]
    if all(has_nameless(way) for way in ways):
        message = f"the path {paths} has a * for any segment, which no argument fills. Give it a name: /:name"
        return f"url_for({shown}): {message}", None
    lacking = min((sorted(set(way.parameters) - set(given)) for way in ways), key=len)
    if lacking and len({way.text for way in ways}) == 1:
        message = f"the path {paths} needs {listed(lacking, 'and')}. Give {', '.join(map(_named, lacking))}"
        return f"url_for({shown}): {message}", None
    has = f"has just {listed(list(given), 'and')}" if given else "is without parameters"
    return f"url_for({shown}): no route of it {has}. Give those of {paths}", None


def _named(name: str) -> str:
    """An argument as it is written, without its value."""
    return f"{name}=…" if name.isidentifier() else f'**{{"{name}": …}}'
