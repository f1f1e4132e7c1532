"""The order in which rows of tables are written that refer to themselves or, in a circle, to each other.

A row goes behind those that it refers to, so that a transaction may end after it. Rows mostly come so by themselves;
one that does not waits, by its key alone. At the end are rows that wait for each other, which go in one transaction. If
they are too many for one, references that may be NULL are NULL at first, and are set when all of these rows are
written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import attrs

from core.errors import DeveloperError
from core.statements.tokens import quoted

Row: TypeAlias = Sequence[Any]
# The number of a table, and the values of a row's key.
_Node: TypeAlias = tuple[int, tuple[Any, ...]]
N = TypeVar("N", bound=Hashable)


@attrs.frozen
class Table:
    """A table: the columns that are written, and those by which a row is found, as `given` or with a collation."""

    name: str
    columns: Sequence[str]
    key: Sequence[str]
    collations: Sequence[str | None]

    def expressions(self, alias: str = "") -> Sequence[str]:
        """The columns of the key in SQL, each with the collation in which it is unique."""
        return [
            f"{alias}{quoted(name)}" if collation is None else f"{alias}{quoted(name)} COLLATE {collation}"
            for name, collation in zip(self.key, self.collations, strict=True)
        ]


@attrs.frozen
class Change:
    """A row to insert with all its columns; or those of `set` to set in the row that `key` finds.

    A transaction may end behind it if it is an `end`.
    """

    table: Table
    values: Row
    end: bool
    set: Sequence[str] | None = None
    key: Row = ()


@attrs.frozen
class _Reference:
    """A foreign key: its parent's number, the join to it, and those of its columns that may be NULL for a while."""

    parent: int
    condition: str
    free: Sequence[str]


def size_of(row: Row) -> int:
    """The bytes of a row's values, about."""
    return sum(len(value) if isinstance(value, (str, bytes)) else 8 for value in row)


def in_order(connection: sqlite3.Connection, tables: Sequence[Table], largest: int) -> Iterator[Change]:
    """The rows of tables that refer to each other and to no later ones. A transaction takes `largest` bytes of them.

    Raises DeveloperError for rows that are too many for one transaction and cannot be divided.
    """
    return _Rows(connection, tables, largest).in_order()


class _Rows:
    def __init__(self, connection: sqlite3.Connection, tables: Sequence[Table], largest: int) -> None:
        self._connection = connection
        self._tables = tables
        self._largest = largest
        self._references = _references(connection, tables)
        self._free = [list(dict.fromkeys(name for one in found for name in one.free)) for found in self._references]
        # The rows that wait for one, and whether a reference that may never be NULL makes them.
        self._waiting: dict[_Node, list[tuple[_Node, bool]]] = {}

    def in_order(self) -> Iterator[Change]:
        missing: dict[_Node, int] = {}
        for at, table in enumerate(self._tables):
            for this, parents, row in self._all(at):
                needed: dict[_Node, bool] = {}
                for parent, ahead, always in parents:
                    if parent != this and (ahead or parent in missing):
                        needed[parent] = needed.get(parent, False) or always
                if needed:
                    missing[this] = len(needed)
                    for parent, always in needed.items():
                        self._waiting.setdefault(parent, []).append((this, always))
                    continue
                yield Change(table, row, end=True)
                written = [this]
                while written:
                    for child, _ in self._waiting.pop(written.pop(), ()):
                        missing[child] -= 1
                        if missing[child] == 0:
                            del missing[child]
                            yield Change(self._tables[child[0]], self._one(child), end=True)
                            written.append(child)
        children = {node: [child for child, _ in found] for node, found in self._waiting.items()}
        for component in components(missing, children):
            yield from self._together(component)

    def _all(self, at: int) -> Iterator[tuple[_Node, Sequence[tuple[_Node, bool, bool]], Row]]:
        """The rows of a table by their keys, each with those that it refers to.

        Of these, the first flag tells those that come later than the row, and the second whether it can never be NULL.
        """
        table, references = self._tables[at], self._references[at]
        own = table.expressions("c.")
        columns = [f"c.{quoted(name)}" for name in table.key]
        joins = ""
        for number, reference in enumerate(references):
            parent = self._tables[reference.parent]
            columns += [f"p{number}.{quoted(name)}" for name in parent.key]
            compared = f"({', '.join(parent.expressions(f'p{number}.'))}) > ({', '.join(own)})"
            columns.append(compared if reference.parent == at else str(int(reference.parent > at)))
            joins += f" LEFT JOIN {quoted(parent.name)} p{number} ON {reference.condition}"
        columns += [f"c.{quoted(name)}" for name in table.columns]
        for values in self._connection.execute(
            f"SELECT {', '.join(columns)} FROM {quoted(table.name)} c{joins} ORDER BY {', '.join(own)}"
        ):
            there = len(own)
            this = (at, tuple(values[:there]))
            parents: list[tuple[_Node, bool, bool]] = []
            for reference in references:
                end = there + len(self._tables[reference.parent].key)
                if values[there] is not None:
                    node = (reference.parent, tuple(values[there:end]))
                    parents.append((node, bool(values[end]), not reference.free))
                there = end + 1
            yield this, parents, values[there:]

    def _one(self, node: _Node) -> Row:
        table = self._tables[node[0]]
        # Text that is not UTF-8 is read as bytes of a class of their own.
        places = [
            "CAST(? AS TEXT)" if isinstance(value, bytes) and type(value) is not bytes else "?" for value in node[1]
        ]
        condition = " AND ".join(f"{name} = {place}" for name, place in zip(table.expressions(), places, strict=True))
        row: Row = self._connection.execute(
            f"SELECT {', '.join(map(quoted, table.columns))} FROM {quoted(table.name)} WHERE {condition}", node[1]
        ).fetchone()
        return row

    def _together(self, component: Sequence[_Node]) -> Iterator[Change]:
        """Rows that refer to each other: in one transaction, or with references that are set at their end."""
        rows = self._gathered(component, emptied=False)
        if rows is not None:
            yield from rows
            return
        inside = {*component}
        always = {
            node: [child for child, never_null in self._waiting.get(node, ()) if never_null and child in inside]
            for node in component
        }
        for part in components(component, always):
            rows = self._gathered(part, emptied=True)
            if rows is None:
                names = " and ".join(sorted({self._tables[node[0]].name for node in part}))
                raise DeveloperError(
                    f"{len(part):,} rows of {names} refer to each other in a circle, and are more than one transaction "
                    f"takes ({self._largest:,} bytes). Make a column of their foreign keys one that may be NULL, "
                    "or take a row out of the circle, and make another backup"
                )
            yield from rows
        for node in component:
            table, free = self._tables[node[0]], self._free[node[0]]
            row = self._one(node)
            values = [row[table.columns.index(name)] for name in free]
            if any(value is not None for value in values):
                yield Change(table, values, end=True, set=free, key=node[1])

    def _gathered(self, nodes: Sequence[_Node], *, emptied: bool) -> Sequence[Change] | None:
        """Rows that are written in one transaction, or None if they are too large for one."""
        found: list[Change] = []
        size = 0
        for number, node in enumerate(nodes, 1):
            table, free = self._tables[node[0]], self._free[node[0]]
            row = self._one(node)
            size += size_of(row)
            if size > self._largest and len(nodes) > 1:
                return None
            if emptied:
                row = [None if name in free else value for name, value in zip(table.columns, row, strict=True)]
            found.append(Change(table, row, end=number == len(nodes)))
        return found


def _references(connection: sqlite3.Connection, tables: Sequence[Table]) -> Sequence[Sequence[_Reference]]:
    """The foreign keys of each of the tables to one of them."""
    numbers = {table.name.lower(): at for at, table in enumerate(tables)}
    columns = [connection.execute(f"PRAGMA table_xinfo({quoted(table.name)})").fetchall() for table in tables]
    primary = [[row[1] for row in sorted(found, key=lambda row: row[5]) if row[5]] for found in columns]
    keys: list[dict[int, list[tuple[int, str, str]]]] = [{} for _ in tables]
    for at, table in enumerate(tables):
        for number, place, parent, own, other, *_ in connection.execute(
            f"PRAGMA foreign_key_list({quoted(table.name)})"
        ):
            to = numbers.get(parent.lower())
            if to is not None:
                named = other or (primary[to][place] if place < len(primary[to]) else "")
                keys[at].setdefault(number, []).append((to, own, named))
        # One to columns that are not there has no rows.
        keys[at] = {
            number: pairs
            for number, pairs in keys[at].items()
            if all(any(row[1].lower() == other.lower() for row in columns[to]) for to, _, other in pairs)
        }
    # A column that others refer to, or by which a row is found, has its value from the beginning.
    fixed = {(to, other.lower()) for found in keys for pairs in found.values() for to, _, other in pairs}
    for at, rows in enumerate(columns):
        fixed |= {(at, row[1].lower()) for row in rows if row[3] or row[5] or row[6]}
    return [
        [
            _Reference(
                pairs[0][0],
                # The value of a child is compared as one of the parent's column, whatever its own type is.
                " AND ".join(f"p{at}.{quoted(other)} = +c.{quoted(own)}" for _, own, other in pairs),
                [own for _, own, _ in pairs if (number, own.lower()) not in fixed],
            )
            for at, pairs in enumerate(found.values())
        ]
        for number, found in enumerate(keys)
    ]


def components(nodes: Collection[N], children: Mapping[N, Iterable[N]]) -> Sequence[Sequence[N]]:
    """The nodes that reach each other together, each group behind those from which it is reached.

    By R. Tarjan's algorithm: https://doi.org/10.1137/0201010
    """
    found: list[Sequence[N]] = []
    number: dict[N, int] = {}
    lowest: dict[N, int] = {}
    left: dict[N, Iterator[N]] = {}
    open_: dict[N, None] = {}
    for start in nodes:
        steps: list[N] = [start] if start not in number else []
        while steps:
            node = steps[-1]
            if node not in number:
                number[node] = lowest[node] = len(number)
                open_[node] = None
                left[node] = iter(children.get(node, ()))
            for child in left[node]:
                if child not in number:
                    steps.append(child)
                    break
                if child in open_:
                    lowest[node] = min(lowest[node], number[child])
            if steps[-1] != node:
                continue
            del left[node]
            steps.pop()
            if steps:
                lowest[steps[-1]] = min(lowest[steps[-1]], lowest[node])
            if lowest[node] == number[node]:
                group: list[N] = []
                while not group or group[-1] != node:
                    group.append(open_.popitem()[0])
                found.append(group)
    return found[::-1]
