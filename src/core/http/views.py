"""The views of a mapping whose names may come more than once: every entry, as the standards' iterators give them.

Of headers and of the parameters of a query. Loaded when a program first asks for one.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Protocol

    class _Repeating(Protocol):
        def _entries(self) -> list[tuple[str, str]]: ...


class _OfEntries:
    _mapping: _Repeating

    def __len__(self) -> int:
        return len(self._mapping._entries())


class Keys(_OfEntries, KeysView[str]):
    """The names of the entries."""

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._mapping._entries()])


class Values(_OfEntries, ValuesView[str]):
    """The values of the entries, in the order of their names."""

    def __iter__(self) -> Iterator[str]:
        return iter([value for _, value in self._mapping._entries()])


class Items(_OfEntries, ItemsView[str, str]):
    """The entries."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._mapping._entries())

    def __contains__(self, item: object) -> bool:
        return item in self._mapping._entries()
