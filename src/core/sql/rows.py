"""A statement against the program: the values bound to it, and the kinds of values that a field holds.

Every number is bound as a REAL (`D1PreparedStatement.bind`), and a column's affinity converts the values it is compared
with and the values it is given (https://www.sqlite.org/datatype3.html), so that only values that can never work are
reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from core.sql.messages import did_you_mean, in_quotes, left_out, listed
from core.sql.statement import ANY, Column, Slot, Statement, Storage

Kind = Literal["int", "float", "bool", "str", "date", "bytes", "json", "none", "unset", "any"]
"""The kinds of values a field accepts. `date` covers everything read from a string: dates, times, UUIDs; `json` for
lists and objects, which no column gives; `unset` for what was left out; `any` for an unknown type.
"""

ROW_KINDS: Final[Mapping[str, Kind]] = {
    "builtins.str": "str",
    "builtins.int": "int",
    "builtins.float": "float",
    "builtins.bool": "bool",
    "builtins.bytes": "bytes",
    **dict.fromkeys(("datetime.datetime", "datetime.date", "datetime.time", "uuid.UUID"), "date"),
    **dict.fromkeys(("builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset", "typing.List"), "json"),
    **dict.fromkeys(("builtins.dict", "typing.Dict"), "json"),
    **dict.fromkeys(("core.Unset", "core.validation.unset.Unset"), "unset"),
}
"""The kind of the fields that are annotated with a type, by its full name."""

_FROM: Final[dict[str, frozenset[Storage]]] = {
    "int": frozenset(["integer"]),
    "bool": frozenset(["integer"]),
    "float": frozenset(["integer", "real"]),
    "str": frozenset(["text"]),
    "date": frozenset(["text"]),
    "bytes": frozenset(["blob"]),
    "json": frozenset(["text"]),
    "none": frozenset(),
    "unset": frozenset(),
}
_FITS: Final[dict[Storage, Kind]] = {"integer": "int", "real": "float", "text": "str", "blob": "bytes"}
_TAKES: Final[dict[Kind, frozenset[Kind]]] = {
    "int": frozenset(["int", "float"]),
    "float": frozenset(["float"]),
    "str": frozenset(["str"]),
    "bytes": frozenset(["bytes"]),
    "none": frozenset(["none"]),
}
_SHOWN: Final[dict[Storage, str]] = {"integer": "an integer", "real": "a real", "text": "a text", "blob": "a blob"}
_ORDER: Final[tuple[Kind, ...]] = ("bool", "int", "float", "str", "bytes")
_DATED: Final[frozenset[Storage]] = frozenset(["integer", "real", "text"])
_NONE: Final[frozenset[Kind]] = frozenset(["none"])
_DATE: Final[frozenset[Kind]] = frozenset(["date"])
_JSON: Final[frozenset[Kind]] = frozenset(["json"])
_BYTES: Final[frozenset[Kind]] = frozenset(["bytes"])
_TEXTS: Final[frozenset[Storage]] = frozenset(["text"])
_INTEGERS: Final[frozenset[Storage]] = frozenset(["integer"])
_NUMBER: Final = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")


class RowField(NamedTuple):
    """A field of the class that rows become. `shown` is its type as written; `required` says that it has no default.

    `inside` reads the class that it has, which columns such as `author.username` fill: None for a field without one.
    `texts` are those that a Literal or an Enum holds, None for a field of another type. `alias` is its name elsewhere
    than in a row.
    """

    name: str
    shown: str
    kinds: frozenset[Kind]
    required: bool = True
    inside: Callable[[], RowClass | None] | None = None
    texts: frozenset[str] | None = None
    alias: str = ""

    @property
    def optional(self) -> bool:
        """True if it takes NULL."""
        return bool(self.kinds & {"none", "any"})


class RowClass(NamedTuple):
    """A class that rows become. `whole`: it has no other fields."""

    title: str
    fields: Sequence[RowField]
    whole: bool = True


def check_values(statement: Statement, given: int | None) -> str | None:
    """Return the mistake in the number of values given to `bind`; `given` is None for a statement never bound."""
    takes = statement.takes
    if takes is None or takes == (given or 0):
        return None
    values = "1 value" if takes == 1 else f"{takes} values"
    if given is None:
        return f"the statement takes {values}, and nothing was bound. Call bind() with {'it' if takes == 1 else 'them'}"
    if takes == 0:
        return f"the statement takes no values, but bind() gives {given}. Write a ? for each, or leave bind() out"
    return f"the statement takes {values}, but bind() gives {given}. Give one for each ? of the statement"


class Given(NamedTuple):
    """An argument of `bind`: the kinds it may have, its text where that is a literal, and all `texts` that it may be
    where a Literal or an Enum says so.

    `enum` names an Enum that is neither an int nor a str, and `refused` a dict or a set.
    """

    kinds: frozenset[Kind]
    text: str | None = None
    enum: str = ""
    refused: str = ""
    texts: frozenset[str] = frozenset()


def check_parameter(number: int, slots: Sequence[Slot], given: Given) -> str | None:
    """Return the mistake in the value of a parameter, by its number from 1, or None."""
    if given.enum:
        return f"bind() takes no {given.enum}. Bind its value: .value"
    if given.refused:
        text = ", or json.dumps() of it" if given.refused == "dict" else ""
        return f"bind() takes no {given.refused}. Bind its values one by one{text}"
    if given.kinds == _DATE:
        return "bind() takes no dates, times and UUIDs. Bind their text: str()"
    if "unset" in given.kinds and any(slot.number == number and slot.use == "outside" for slot in slots):
        may = "is" if len(given.kinds) == 1 else "may be"
        return (
            f"value {number} {may} UNSET, but the statement reads it outside of an assignment of UPDATE … SET, where "
            "nothing can be left out. Bind None for NULL, or ask `is UNSET` before"
        )
    # A statement that asks whether a value is NULL does not count on it elsewhere.
    asks = given.kinds == _NONE and any(slot.use == "null" for slot in slots)
    for slot in slots:
        if slot.number == number and not (asks and slot.use in ("compare", "list")):
            message = _mistake(slot, given)
            if message is not None:
                return message
    return None


def _mistake(slot: Slot, given: Given) -> str | None:
    kinds = given.kinds - {"unset"}
    column = slot.column
    if kinds == _JSON:
        return _list(slot)
    if "any" in kinds or not kinds:
        return None
    if "none" in kinds:
        if slot.use == "store" and slot.full:
            may = "is" if kinds == _NONE else "may be"
            return f"{column} is NOT NULL, but the value {may} None. Bind another"
        if kinds == _NONE and slot.use in ("compare", "list"):
            return f"nothing is equal to NULL, {column} neither. Write IS NULL in place of the comparison with None"
        if kinds == _NONE and slot.use == "limit":
            return "LIMIT takes a number, but the value is None. Bind -1 for no limit"
    texts = given.texts if given.text is None else {given.text}
    strange = [text for text in sorted(texts) if slot.allowed and text not in slot.allowed]
    if strange:
        return left_out(column, slot.allowed, strange[0])
    if slot.storage == _TEXTS and kinds <= {"int", "bool"}:
        return f'{column} is TEXT, where a number arrives as "5.0". Bind its text: str()'
    if slot.exact and slot.storage == _INTEGERS and given.text is not None and not _NUMBER.fullmatch(given.text):
        requirement = "takes an integer" if slot.use == "limit" else "is an INTEGER"
        return f'{column} {requirement}, but the value is the text "{given.text}". Bind a number'
    if slot.exact and kinds == _BYTES and slot.storage and "blob" not in slot.storage:
        return f"{column} holds no blobs, but the value is bytes. Bind a text or a number"
    return None


def _list(slot: Slot) -> str | None:
    if slot.use == "json":
        return f"{slot.column} reads JSON text, but the value is a list or an object. Bind json.dumps() of it"
    if not slot.storage or "blob" in slot.storage:
        return None
    if slot.use == "list":
        return (
            "a list is bound as one blob. Write a ? for each of its values, or IN (SELECT value FROM json_each(?)) and "
            "bind json.dumps() of it"
        )
    return f"a list is bound as one blob, which {slot.column} is not. Bind json.dumps() of it, or one of its values"


def check_column(statement: Statement, name: str) -> str | None:
    """Return the mistake in `first("name")`, or None."""
    if statement.columns is None or statement.problems:
        return None
    if not statement.columns:
        return f'first("{name}") asks for a column, but the statement gives no rows. Add RETURNING, or call run()'
    if statement.column(name) is not None:
        return None
    names = [column.name for column in statement.columns]
    return f'the result has no column "{name}".{did_you_mean(name, names) or f" It has {listed(names)}"}'


def never_a_row(shown: str, kind: Kind) -> str:
    """The mistake in `first(T)` of a `T` that is a bare value, or an array."""
    if kind == "json":
        return (
            f"a row is an object, and {shown} is read from an array. Make it an attrs class, a dataclass or a TypedDict"
        )
    return f'a row is an object, and never {shown}. Ask for one column by its name: first("column")'


def value_kinds(statement: Statement, name: str, *, one: bool) -> frozenset[Kind] | None:
    """Return the kinds of values that `first("name")` gives, or `one("name")`; None where that is not known."""
    column = statement.column(name)
    if column is None or statement.problems or statement.certain is None:
        return None
    parts = column.arms or (column,)
    if not all(part.storage for part in parts):
        return None
    kinds: set[Kind] = {_FITS[storage] for part in parts for storage in part.storage}
    if column.null or not (one or statement.certain):
        kinds.add("none")
    elif not column.never:
        return None
    return frozenset(kinds)


def check_value(statement: Statement, call: str, name: str, shown: str, kinds: frozenset[Kind]) -> str | None:
    """Return the mistake in giving `first("name")` to a variable annotated as `shown`, or None.

    `call` is `first` or `one`.
    """
    given = value_kinds(statement, name, one=call == "one")
    if given is None or not kinds or "any" in kinds:
        return None
    wrong = [kind for kind in given if not _TAKES[kind] & kinds]
    if not wrong:
        return None
    type_ = " | ".join([kind for kind in _ORDER if kind in given] + (["None"] if "none" in given else []))
    column = statement.column(name)
    lacks_row = wrong == ["none"] and call == "first" and column is not None and not column.null
    fix = f', or call one("{name}")' if lacks_row else ""
    return f'{call}("{name}") is {type_}, which {shown} cannot hold. Make it {type_}{fix}'


def unfit(title: str, column: Column, field: RowField, null: str) -> str | None:
    """Return the mistake in a field that a column fills, or None. `null` says why the column may be NULL there."""
    for part in column.arms or (column,):
        if not _holds(field.kinds, part):
            kind = part.declared if part.source else " or ".join(_SHOWN[storage] for storage in sorted(part.storage))
            return (
                f"{title}.{field.name}: {field.shown} cannot hold {part.source or part.text}, which is {kind}. "
                f"Make it {_type_of([column], optional=bool(null))}"
            )
        lacking = [text for text in part.allowed if field.texts is not None and text not in field.texts]
        if lacking:
            allowed = f"{in_quotes(lacking)}, which the CHECK of {part.source} allows"
            return f"{title}.{field.name}: {field.shown} cannot hold {allowed}. Add it"
    if null and not field.optional:
        return (
            f"{title}.{field.name}: {field.shown} cannot hold NULL, but {column.about} {null}. "
            f"Make it {field.shown} | None"
        )
    return None


def _holds(kinds: frozenset[Kind], column: Column) -> bool:
    return not column.storage or "any" in kinds or any(_FROM[kind] & column.storage for kind in kinds)


def misfit(column: Column, field: RowField) -> bool:
    """Return True if a field cannot hold every value of a column."""
    return any(not _holds(field.kinds, part) for part in column.arms or (column,)) or bool(
        column.null and not field.optional
    )


def field_type(columns: Sequence[Column], *, optional: bool = False) -> str:
    """Return the type of a field that holds each of these columns.

    One that may be NULL, for all that is known, is optional.
    """
    return _type_of(columns, optional=optional or not all(column.never for column in columns))


def _type_of(columns: Sequence[Column], *, optional: bool) -> str:
    parts = [part for column in columns for part in column.arms or (column,)]
    kinds: set[Kind] = set()
    for part in parts:
        boolean = "BOOL" in part.declared.upper() and part.storage == _FROM["bool"]
        dated = not part.storage and any(word in part.declared.upper() for word in ("DATE", "TIME"))
        known = part.storage or (_DATED if dated else ANY)
        kinds |= {"bool"} if boolean else {_FITS[storage] for storage in known}
    if kinds <= {"bool", "int", "float"} and len(kinds) > 1:
        kinds = kinds & {"float"} or {"int"}  # which is read from all of them
    return " | ".join([kind for kind in _ORDER if kind in kinds] + (["None"] if optional else []))
