"""The class that rows become against the columns of a statement: its fields, and those of the classes in it.

A column `author.username` fills the `username` of the class that the field `author` has, as `core.validation.rows`
puts rows together; `Profile | None` is None if and only if all of its columns are NULL. The columns of an outer join
are NULL together, so that only a column which is not NULL with them makes an object that lacks its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from core.sql.messages import did_you_mean, listed
from core.sql.rows import RowClass, RowField, unfit
from core.sql.statement import Column, Statement


def check_row(
    statement: Statement, title: str, fields: Sequence[RowField], whole: bool = True
) -> list[tuple[str, str]]:
    """Return the mistakes in `first(T)` and `all(T)`: a field of `T`, as `author.username`, and the message, for each.

    The field is "" for all. `whole`: `T` has no other fields.
    """
    if statement.columns is None or statement.problems:
        return []
    if not statement.columns:
        return [("", f"{title} is read from rows, but the statement gives none. Add RETURNING, or call run()")]
    columns = {column.name: column for column in statement.columns}
    return list(_mistakes(RowClass(title, fields, whole), columns, "", None))


def groups_of(statement: Statement) -> list[str]:
    """The fields that several columns fill: `author` of `author.username`."""
    return list(_parts({column.name: column for column in statement.columns or ()}, {}))


def is_absent(statement: Statement, name: str) -> bool:
    """True if all columns of a group may be NULL together, where an outer join finds no row."""
    own = [column for column in statement.columns or () if column.name.startswith(f"{name}.")]
    return all(column.join for column in own)


def inside(statement: Statement, name: str, *, optional: bool) -> Statement:
    """The columns of a group alone, by their names in it. `optional`: as they are where there is an object."""
    own = [column for column in statement.columns or () if column.name.startswith(f"{name}.")]
    joins = {column.join for column in own if column.name.count(".") == name.count(".") + 1}
    found: list[Column] = []
    for column in own:
        here = column
        if optional:
            null, full = _null(column, own), column.full if column.join else column.never
            join = "" if column.join in joins else column.join
            here = column._replace(null=null, never=full, join=join, arms=())
        found.append(here._replace(name=column.name.removeprefix(f"{name}.")))
    return attrs.evolve(statement, columns=tuple(found))


def _mistakes(
    row: RowClass, columns: Mapping[str, Column], path: str, group: Sequence[Column] | None
) -> Iterator[tuple[str, str]]:
    """The mistakes in a class. `columns` are its own, by their names below the `path` of the class.

    `group` are the columns that have to be NULL together for no object to be made; None where there is always one.
    """
    title = row.title
    fields = {field.name: field for field in row.fields}
    parts = {} if columns.keys() <= fields.keys() else _parts(columns, fields)
    unknown = [name for name in columns if path and name.isidentifier() and name not in fields]
    unknown += [name for name in parts if name not in fields]
    for name in unknown if row.whole else ():
        below = f".{next(iter(parts[name]))}" if name in parts else ""
        fix = did_you_mean(name, fields) or f" It has {listed(list(fields))}"
        yield f"{path}{name}", f'{title} has no field {name}, which the column "{path}{name}{below}" is for.{fix}'
    for field in row.fields:
        place = f"{path}{field.name}"
        named = f"{title}.{field.name}"
        column, own = columns.get(field.name), parts.get(field.name, {})
        part = f"{place}.{next(iter(own), '')}"
        inner = field.inside() if own and field.inside is not None else None
        if inner is not None and column is not None:
            yield place, f'{named} is a column of the result, and so is "{part}". Select it whole, or by its columns'
        elif inner is not None:
            yield from _inside(title, field, inner, own, place, group)
        elif own and field.inside is None and "any" not in field.kinds:
            yield (
                place,
                f'{named}: {field.shown} is no class, which the column "{part}" is for. Name it without the dot',
            )
        elif column is not None:
            if column.hides:
                both = f"{column.hides} and {column.source or column.text}"
                yield place, f'{named}: two columns are called "{place}", {both}. Give each its own name, with AS'
            message = unfit(title, column, field, _null(column, group))
            if message is not None:
                yield place, message
        elif not own and field.required and not (row.whole and did_you_mean(field.name, unknown)):
            yield place, f"{named} is not in the result.{_way_in(field, list(columns), path)}"


def _way_in(field: RowField, names: Sequence[str], path: str) -> str:
    near = did_you_mean(field.name, names) if not path else ""
    inner = field.inside() if field.inside is not None and not near else None
    if inner is not None and inner.fields:
        return f' Select its columns: AS "{path}{field.name}.{inner.fields[0].name}", or give the field a default'
    here = f' as "{path}{field.name}"' if path else ""
    return near or f" It has {listed([path + name for name in names])}: select it{here}, or give the field a default"


def _parts(columns: Mapping[str, Column], fields: Mapping[str, RowField]) -> dict[str, dict[str, Column]]:
    """The columns with a dot in their names, by what is before it. Expressions are no such names."""
    parts: dict[str, dict[str, Column]] = {}
    for name, column in columns.items():
        first, dot, rest = name.partition(".")
        if dot and name not in fields and all(part.isidentifier() for part in name.split(".")):
            parts.setdefault(first, {})[rest] = column
    return parts


def _inside(
    title: str,
    field: RowField,
    inner: RowClass,
    columns: Mapping[str, Column],
    place: str,
    group: Sequence[Column] | None,
) -> Iterator[tuple[str, str]]:
    """The mistakes in the class of a field."""
    own = list(columns.values())
    if "none" in field.kinds:
        group = own
        yield from _never_null(title, field, columns, place)
    elif group is None:
        needed = (columns.get(each.name) for each in inner.fields if not each.optional)
        absent = next((column for column in needed if column is not None and column.join), None)
        if absent is not None:
            about = f"cannot hold NULL, but {absent.about} {absent.null}"
            yield place, f"{title}.{field.name}: {field.shown} {about}. Make it {field.shown} | None"
            group = own  # what else there is to say then
            yield from _never_null(title, field, columns, place)
    yield from _mistakes(inner, columns, f"{place}.", group)


def _never_null(title: str, field: RowField, columns: Mapping[str, Column], place: str) -> Iterator[tuple[str, str]]:
    """The column for which no row of an outer join is an object all the same: `EXISTS (…)` is never NULL."""
    joined = [column for column in columns.values() if column.join]
    joined.sort(key=lambda column: not column.full)
    for name, column in columns.items():
        if joined and column.never:
            known = f"{joined[0].join}.{joined[0].source.rpartition('.')[2]}"
            message = (
                f'{title}.{field.name} is None only if all of its columns are NULL, but "{place}.{name}" never is. '
                f"Make it NULL with the others: CASE WHEN {known} IS NOT NULL THEN {column.source or column.text} END"
            )
            yield place, message


def _null(column: Column, group: Sequence[Column] | None) -> str:
    """The reason why a column may be NULL where there is an object with it."""
    if group is None:
        return column.null
    own = column.own if column.join else column.null
    others = (other for other in group if other is not column)
    is_there = any(other.never or (other.full and other.join == column.join) for other in others)
    return own if is_there else ""
