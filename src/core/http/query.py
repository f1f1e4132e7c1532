"""The names and values of a query string, to be read and changed: the URL standard's URLSearchParams.

https://url.spec.whatwg.org/#interface-urlsearchparams
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import cast

from core.http.escapes import encode_query, parse_query
from core.http.headers import Entries
from core.http.streams import well_formed


class URLSearchParams(MutableMapping[str, str], Entries):
    """The names and values of a query string, in order: the URL standard's class of this name, as a mapping.

    Made of a query string with or without `?`, of pairs, or of a mapping. As a mapping it has each name once, with its
    first value; `get_all` has them all, and `keys()`, `values()` and `items()` give every pair, as the standard's
    iterators do. Setting replaces all values of a name, `append` adds one. `str()` is the query string, without `?`.
    """

    __slots__ = ("_on_change", "_pairs")

    _pairs: list[tuple[str, str]]
    _on_change: Callable[[str], None] | None

    def __init__(self, init: str | Mapping[str, str] | Iterable[tuple[str, str]] = "", /) -> None:
        self._on_change = None
        if isinstance(init, str):
            self._pairs = parse_query(init.removeprefix("?"))
        else:
            pairs = cast("Mapping[str, str]", init).items() if isinstance(init, Mapping) else init
            self._pairs = [(well_formed(_text(name)), well_formed(_text(value))) for name, value in pairs]

    # ---- reading

    def __getitem__(self, name: str) -> str:
        for key, value in self._pairs:
            if key == name:
                return value
        raise KeyError(name)

    def get_all(self, name: str) -> list[str]:
        """Every value of a name, in order."""
        return [value for key, value in self._pairs if key == name]

    def has(self, name: str, value: str | None = None) -> bool:
        """Return True if there is the name, with that value where one is given."""
        return any(key == name and value in (None, there) for key, there in self._pairs)

    @property
    def size(self) -> int:
        """The number of pairs."""
        return len(self._pairs)

    def _entries(self) -> list[tuple[str, str]]:
        return self._pairs

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._pairs))

    def __len__(self) -> int:
        return len(dict(self._pairs))

    def to_string(self) -> str:
        """The query string, without `?`: blanks as `+`, everything but letters, digits and `*-._` percent-encoded."""
        return encode_query(self._pairs)

    def encode_body(self) -> tuple[bytes, str]:
        """The same as a body, and its content type."""
        return self.to_string().encode(), "application/x-www-form-urlencoded;charset=UTF-8"

    # ---- changing

    def __setitem__(self, name: str, value: str) -> None:
        pair = (well_formed(_text(name)), well_formed(_text(value)))
        first = next((place for place, (key, _) in enumerate(self._pairs) if key == pair[0]), None)
        if first is None:
            self._change([*self._pairs, pair])
        else:
            after = [other for other in self._pairs[first + 1 :] if other[0] != pair[0]]
            self._change([*self._pairs[:first], pair, *after])

    def set(self, name: str, value: str) -> None:
        """Replace all values of a name by one: the standard's spelling of `params[name] = value`."""
        self[name] = value

    def append(self, name: str, value: str) -> None:
        """Add a pair at the end."""
        self._change([*self._pairs, (well_formed(_text(name)), well_formed(_text(value)))])

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self.delete(name)

    def delete(self, name: str, value: str | None = None) -> None:
        """Take away every pair of a name, with that value where one is given. A missing one is not an error."""
        self._change([pair for pair in self._pairs if pair[0] != name or value not in (None, pair[1])])

    def sort(self) -> None:
        """Sort by name, in the order of UTF-16 units; pairs of one name stay in their order."""
        self._change(sorted(self._pairs, key=lambda pair: pair[0].encode("utf-16-be")))

    def _change(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs
        if self._on_change is not None:
            self._on_change(self.to_string())

    # ---- as a value

    def __eq__(self, other: object) -> bool:
        return self._pairs == other._pairs if isinstance(other, URLSearchParams) else super().__eq__(other)

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"URLSearchParams({self.to_string()!r})"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a query has texts, not {type(value).__name__}: write str(value)")
    return value
