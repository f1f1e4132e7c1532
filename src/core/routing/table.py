"""The first registered route that matches a path, found without walking all of them.

Routes are grouped by *shape*: how many segments, and which of them are text. All routes of
one shape stand in one dict under their texts, so a request asks one dict per shape of its
length, however many routes there are. Paths without parameters stand in one more dict, under
the path itself, with the winner already decided. Among the routes found the lowest order wins;
shapes are kept in that order, so the search ends as soon as nothing earlier can come.

Paths arrive as lists of decoded segments whose first is the empty text before the leading
slash. The meaning of a match is the caller's business: here it is a value of any type.

A pattern with a regular expression has a shape of its own, which asks the expressions of those under the same
texts, one after the other. Tables without such patterns have no such shape.

Most paths with a parameter have one, and it comes last. The path before it then decides which
route it is, and is kept in `single_parameter_routes`, unless an earlier route might want some of those paths.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, cast

from core.http.paths import CANONICAL
from core.routing.pattern import Pattern
from core.values import Generic, TypeVar

__all__ = ["Leaf", "Table"]

T = TypeVar("T")
K = TypeVar("K")


class Leaf(Generic[T]):
    """One registered pattern: its place in the order of registration, and its value."""

    __slots__ = ("checks", "last", "names", "next", "one", "order", "place", "rest", "value")

    def __init__(self, order: int, pattern: Pattern, value: T) -> None:
        self.order: int = order
        self.value: T = value
        # The list of segments begins with the empty text before the first slash, hence the 1.
        self.names: tuple[tuple[str, int], ...] = tuple((name, index + 1) for name, index in pattern.names)
        self.rest: int = len(pattern.parts) + 1 if pattern.rest else 0
        self.checks: tuple[tuple[int, re.Pattern[str]], ...] = tuple(
            (index + 1, re.compile(source)) for index, source in pattern.checks
        )
        # Most patterns with a parameter have one: its name and place can be read without a loop.
        single = len(self.names) == 1 and not self.rest and not self.checks
        self.one: str = self.names[0][0] if single else ""
        self.place: int = self.names[0][1] if single else 0
        # Patterns that match exactly the same paths stand in a row; its first knows its last.
        self.next: Leaf[T] | None = None
        self.last: Leaf[T] = self

    def parameters(self, segments: list[str]) -> dict[str, str]:
        """The values of the parameters in `segments`, which the pattern matches."""
        found = {name: segments[index] for name, index in self.names}
        if self.rest:
            found["*"] = "/".join(segments[self.rest :])
        return found

    def fits(self, segments: list[str]) -> bool:
        """Return True if every regular expression of the pattern fits its segment."""
        return all(expression.fullmatch(segments[index]) for index, expression in self.checks)


class _Shape(Generic[T]):
    """All patterns with text in the same places."""

    __slots__ = ("checked", "first", "key", "leaves", "places")

    def __init__(self, first: int, places: tuple[int, ...], checked: bool) -> None:
        self.first = first
        self.places = places
        self.checked = checked
        self.leaves: dict[object, Leaf[T]] = {}
        self.key: Callable[[list[str]], object] = _key_of(places)
        if checked:
            # The table asks for `leaves.get(key(segments))`: here the segments themselves are the key.
            self.leaves = cast("dict[object, Leaf[T]]", _CheckedLeaves[T](_key_of(places)))
            self.key = _same


def _key_of(places: tuple[int, ...]) -> Callable[[list[str]], object]:
    if not places:
        return _nothing
    return cast("Callable[[list[str]], object]", itemgetter(*places))


class _CheckedLeaves(dict[object, Leaf[T]]):
    """The patterns of one shape by their texts, looked up by the segments of a path."""

    __slots__ = ("_key",)

    def __init__(self, key: Callable[[list[str]], Any]) -> None:
        self._key = key

    def get(self, segments: Any, default: Any = None, /) -> Any:
        leaf = super().get(self._key(segments))
        while leaf is not None and not leaf.fits(segments):
            leaf = leaf.next
        return leaf


def _same(segments: list[str]) -> list[str]:
    return segments


def _nothing(_: list[str]) -> object:
    return None


class Table(Generic[T]):
    """Patterns of one method, in order of registration."""

    __slots__ = ("_by_length", "_shapes", "_texts", "single_parameter_routes", "static")

    def __init__(self) -> None:
        self.static: dict[str, Leaf[T]] = {}
        """The winner for every registered path without parameters, under the path as most requests have it."""
        self.single_parameter_routes: dict[str, Leaf[T]] = {}
        """The winner for every path of one segment more that has no special character in it and is not in `static`."""
        self._texts: dict[str, Leaf[T]] = {}
        self._shapes: dict[tuple[int, tuple[int, ...], bool, bool], _Shape[T]] = {}
        self._by_length: dict[int, list[_Shape[T]]] = {}

    def add(self, order: int, pattern: Pattern, value: T) -> None:
        """Add a pattern without an optional segment.

        `order` must be higher than those before, but for another variant's.
        """
        leaf = Leaf(order, pattern, value)
        if pattern.static:
            segments = ["", *(part for part in pattern.parts if part is not None)]
            text = "/".join(segments)
            _chain(self._texts, text, leaf)
            # An empty last segment is written with one slash more ("//" is not "/"): such paths are found by `find`.
            if segments[-1] or len(segments) == 1:
                self.static.setdefault(text or "/", self.find_among_shapes(segments, leaf) or leaf)
            return
        self.single_parameter_routes.clear()
        places = tuple(index + 1 for index, part in enumerate(pattern.parts) if part is not None)
        named = (len(pattern.parts) + 1, places, pattern.rest, bool(pattern.checks))
        shape = self._shapes.get(named)
        if shape is None:
            shape = self._shapes[named] = _Shape(order, places, bool(pattern.checks))
            # Which shapes a length has is worked out when the first path of that length comes.
            self._by_length.clear()
        texts = tuple(part for part in pattern.parts if part is not None)
        _chain(shape.leaves, texts[0] if len(texts) == 1 else texts or None, leaf)

    def find(self, segments: list[str]) -> Leaf[T] | None:
        """The first pattern that matches, or None."""
        return self.find_among_shapes(segments, self._text(segments))

    def matches(self, segments: list[str], after: int) -> Iterator[Leaf[T]]:
        """All patterns that match and come after the order `after`, in order."""
        found: list[Leaf[T]] = []
        leaf = self._text(segments)
        shapes = iter(self._shapes_of(len(segments)))
        while True:
            while leaf is not None:
                if leaf.order > after and leaf.fits(segments):
                    found.append(leaf)
                leaf = leaf.next
            shape = next(shapes, None)
            if shape is None:
                break
            leaf = shape.leaves.get(shape.key(segments))
        return iter(sorted(found, key=lambda leaf: leaf.order))

    def _text(self, segments: list[str]) -> Leaf[T] | None:
        leaf = self._texts.get("/".join(segments))
        if leaf is not None and any("/" in segment for segment in segments):
            return None  # %2F stays inside its segment, so this is another path
        return leaf

    def find_among_shapes(self, segments: list[str], best: Leaf[T] | None = None) -> Leaf[T] | None:
        """The first pattern with a parameter or a rest that matches; `best` where that comes before it."""
        length = len(segments)
        shapes = self._by_length.get(length)
        if shapes is None:
            shapes = self._shapes_of(length)
        for shape in shapes:
            if best is not None and shape.first > best.order:
                break
            leaf = shape.leaves.get(shape.key(segments))
            if leaf is not None and (best is None or leaf.order < best.order):
                best = leaf
        return best

    def keep_single_parameter_route(self, leaf: Leaf[T], segments: list[str]) -> None:
        """Keep `leaf`, which is what `find` gives for `segments`, in `single_parameter_routes` if every such path is
        its own.
        """
        last = len(segments) - 1
        if not leaf.one or leaf.place != last:
            return
        head = "/".join(segments[:last])
        if head.strip(CANONICAL) or "/." in head:
            return
        for shape in self._shapes_of(last + 1):
            if shape.first < leaf.order and (last in shape.places or shape.checked):
                return  # an earlier route with a string or an expression there may win for some paths
        self.single_parameter_routes[head] = leaf

    def _shapes_of(self, length: int) -> list[_Shape[T]]:
        shapes = self._by_length.get(length)
        if shapes is None:
            shapes = [
                shape
                for (size, _, rest, _), shape in self._shapes.items()
                if size == length or (rest and size < length)
            ]
            # A client chooses how long its paths are; the memory kept for that is bounded.
            if len(self._by_length) < 64:
                self._by_length[length] = shapes
        return shapes


def _chain(leaves: dict[K, Leaf[T]], key: K, leaf: Leaf[T]) -> None:
    first = leaves.setdefault(key, leaf)
    if first is not leaf:
        first.last.next = leaf
        first.last = leaf
