"""From a handler back to its path: `url_for`.

The paths are those of the table of routes, whole, prefixes of mounted routers included. A value is percent-encoded into
its segment; a value that the route would not match again is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from core.errors import PathError
from core.http.escapes import percent_encode
from core.routing.pattern import Pattern, has_nameless, unfit
from core.routing.table import Route


class Urls:
    """The paths of the handlers of some routes."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._patterns: dict[object, list[Pattern]] = {}
        for route in routes:
            if route.method is not None and route.handler is not None:
                # The handler of a WebSocket is behind the one that opens it.
                handler = getattr(route.handler, "__core_opens__", route.handler)
                self._patterns.setdefault(handler, []).extend(route.pattern.variants)

    def url_for(self, handler: Callable[..., object], name: str, params: Mapping[str, object]) -> str:
        """The path of the first route of `handler` that has just these parameters, without those that are None.

        Raises PathError, which calls the handler `name`.
        """
        patterns = self._patterns.get(handler)
        if patterns is None:
            raise PathError(
                f"url_for({name}): it is not the handler of a route. Register it, or name the function that "
                "was registered"
            )
        params = {key: value for key, value in params.items() if value is not None}
        for pattern in patterns:
            if set(pattern.parameters) == set(params) and not has_nameless(pattern):
                return _written(pattern, params, name)
        texts = ", ".join(dict.fromkeys(pattern.text for pattern in patterns))
        raise PathError(
            f"url_for({name}): no route of it has the parameters {', '.join(sorted(params)) or '(none)'}. "
            f"Give those of {texts}"
        )


def _written(pattern: Pattern, params: Mapping[str, object], handler: str) -> str:
    values = {name: str(value) for name, value in params.items()}
    wrong = unfit(pattern, values)
    if wrong == "*":
        raise PathError(f'url_for({handler}): "." and ".." are resolved before routing. Leave them out of the rest')
    if wrong is not None:
        raise PathError(
            f"url_for({handler}, {wrong}={values[wrong]!r}): the route {pattern.text} does not match this value. Give another one"
        )
    segments = ["" if part is None else _encoded(part) for part in pattern.parts]
    for name, index in pattern.names:
        segments[index] = _encoded(values[name])
    if pattern.rest:
        segments += map(_encoded, values["*"].split("/"))
    path = "/" + "/".join(segments)
    # A path that begins with an empty segment would name another host (RFC 3986, section 4.2); the URL standard writes
    # such a path with a "/." before it, which is resolved before routing.
    return f"/.{path}" if path.startswith("//") else path


def _encoded(text: str) -> str:
    """A string as a segment: everything but what RFC 3986, section 3.3, has in one is percent-encoded."""
    return percent_encode(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@]+", text)
