"""The middleware that covers a path: prefixes, each for itself and everything below.

A prefix tree, so that a client's path does not walk the list of all mounts. Asked with a route's
pattern, once, it answers in two parts: what certainly covers the route, and whether more may,
depending on the request (`use("/users/me", …)` before `get("/users/:id", …)`); asked with a
request's segments, exactly.
"""

from __future__ import annotations

import re
from typing import Any

from core.routing.pattern import Pattern


class Scope:
    """A value under a prefix, with its place in the order of registration."""

    __slots__ = ("names", "order", "prefix", "value")

    def __init__(self, order: int, prefix: Pattern, value: object) -> None:
        self.order: int = order
        self.prefix: Pattern = prefix
        self.value: Any = value
        self.names: tuple[tuple[str, int], ...] = tuple((name, index + 1) for name, index in prefix.names)

    def fits(self, segments: list[str]) -> bool:
        """Return True if the regular expressions of the prefix fit a request's segments."""
        return all(re.fullmatch(source, segments[index + 1]) for index, source in self.prefix.checks)


class _Node:
    __slots__ = ("any", "scopes", "texts")

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.texts: dict[str, _Node] = {}
        self.any: _Node | None = None


class Scopes:
    """Prefixes, in order of registration."""

    __slots__ = ("_all", "_root")

    def __init__(self) -> None:
        self._all: list[Scope] = []
        self._root: _Node = _Node()

    @property
    def everywhere(self) -> list[Scope]:
        """The scopes at the root, which cover every path, readable or not."""
        return self._root.scopes

    def add(self, order: int, prefix: Pattern, value: object) -> None:
        """Add a prefix. `order` must be higher than every order before."""
        node = self._root
        for part in prefix.parts:
            if part is None:
                node.any = node.any or _Node()
                node = node.any
            else:
                node = node.texts.setdefault(part, _Node())
        scope = Scope(order, prefix, value)
        node.scopes.append(scope)
        self._all.append(scope)

    def covering(self, segments: list[str], before: int, after: int = -1) -> list[Scope]:
        """The scopes between two orders that cover a request's segments (the first is the text before the slash)."""
        found: list[Scope] = []
        nodes = [self._root]
        for segment in [*segments[1:], None]:
            following: list[_Node] = []
            for node in nodes:
                found += [scope for scope in node.scopes if after < scope.order < before and scope.fits(segments)]
                if segment is not None:
                    if segment in node.texts:
                        following.append(node.texts[segment])
                    if node.any is not None:
                        following.append(node.any)
            if not following:
                break
            nodes = following
        found.sort(key=lambda scope: scope.order)
        return found

    def over(self, pattern: Pattern, before: int) -> tuple[list[Scope], bool]:
        """The scopes before the order that cover every path of `pattern`, and whether more of them cover some paths."""
        found = [scope for scope in self._all if scope.order < before and scope.prefix.meets(pattern)]
        # An expression of a prefix is certain of a string, but not of another route's parameter.
        certain = [scope for scope in found if scope.prefix.covers(pattern)]
        return certain, len(certain) < len(found)
