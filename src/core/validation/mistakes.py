"""The mistakes of a value: a second pass finds all of them, with their paths, and tells them in words for clients.

It runs where the first pass refused a value. After `MOST_ISSUES` mistakes nothing more is looked at, so that a document
full of them costs little more than a good one. A class's validators say theirs beside those of other fields. A message
shows what the program wrote for whoever sends the value, and nothing else of the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.validation.kinds import Field

if TYPE_CHECKING:
    from core.errors import Issue

Read: TypeAlias = Callable[[Any, Any], object]
"""Makes a value of a type of what stands for it: raises Mismatch, or StructureError where a part of it is wrong."""
MOST_ISSUES: Final = 100
"""The largest number of mistakes reported for one value."""
_LONGEST: Final = 100
_LONGEST_MESSAGE: Final = 500


class StructureError(ValueError):
    """A value is not of the type asked for. `issues` lists the mistakes as `{"path": …, "message": …}`.

    There are `MOST_ISSUES` at most, and then one more that says so.
    """

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__("; ".join(f"{issue['path'] or 'the value'} {issue['message']}" for issue in issues))
        self.issues = issues


class Mismatch(ValueError):
    """One value of the wrong kind. Its text is written here and may be shown to a client."""


def issues_of(error: Exception) -> list[Issue]:
    """The mistakes that an error of a reader, a converter or a validator stands for."""
    return error.issues if isinstance(error, StructureError) else [{"path": "", "message": _message(error)}]


def within(path: str, issues: Sequence[Issue]) -> list[Issue]:
    """The mistakes in a part of a value, with their paths in the whole of it."""
    found: list[Issue] = []
    for issue in issues[:MOST_ISSUES]:
        dot = "." if issue["path"] and issue["path"][0] != "[" else ""
        found.append({"path": f"{path}{dot}{issue['path']}", "message": issue["message"]})
    return [*found, *issues[MOST_ISSUES:]]  # the last says that there are more, of the whole


def read_parts(
    read: Read, parts: Iterable[tuple[Any, object]], types: Iterable[object]
) -> tuple[dict[Any, Any], dict[Any, list[Issue]]]:
    """What is read of the parts of a value, and the mistakes of the others, each by its place: a name, or a number.

    `parts` are places and values: the value `...` is one that has to be there, and is not.
    """
    found: dict[Any, Any] = {}
    wrong: dict[Any, list[Issue]] = {}
    count = 0
    for (place, value), type_ in zip(parts, types, strict=False):
        try:
            if value is ...:
                raise Mismatch("is required")
            found[place] = read(value, type_)
        except Exception as error:
            # Names in a mapping are the client's, and there may be a hundred mistakes below a long one.
            name = f"[{place}]" if isinstance(place, int) else str(place)
            wrong[place] = within(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…", issues_of(error))
            count += len(wrong[place])
            if count >= MOST_ISSUES:
                break
    return found, wrong


def read_all(read: Read, parts: Iterable[tuple[Any, object]], types: Iterable[object]) -> dict[Any, Any]:
    """The same of parts that all fit. Raises StructureError for others."""
    found, wrong = read_parts(read, parts, types)
    if wrong:
        raise StructureError([*chain(*wrong.values())])
    return found


def read_object(read: Read, fields: Sequence[tuple[str, Field]], value: Mapping[str, object], make: Any) -> object:
    """An object of a class, or a dict, whose fields have these keys in `value`.

    Raises StructureError with the mistakes of all fields, those of their validators too.
    """

    def read_field(value: object, field: Field) -> object:
        from cattrs.errors import StructureHandlerNotFoundError

        try:
            return read(value, field.type)
        except StructureHandlerNotFoundError:
            if getattr(field.made_as, "converter", None) is None:
                raise
            return value

    asked = {key: field for key, field in fields if field.is_read and (key in value or field.is_required)}
    found, wrong = read_parts(read_field, ((key, value.get(key, ...)) for key in asked), asked.values())
    others: list[Issue] = []
    if not wrong:
        try:
            return make(**{field.key: found[key] for key, field in asked.items()})
        except Exception as error:
            others = issues_of(error)
    if hasattr(make, "__attrs_attrs__"):
        wrong |= _ask_validators(make, [(key, field.made_as) for key, field in fields], found, wrong)
    # What it raised when it was made is one of those, unless it was the work of all fields together.
    raise StructureError([*chain(*(wrong.get(key, ()) for key, _ in fields))] or others)


def _ask_validators(
    cls: Any, fields: Sequence[tuple[str, Any]], given: Mapping[str, object], wrong: Collection[str]
) -> dict[str, list[Issue]]:
    """The mistakes that the converters and validators of a class find in the fields that could be read, by key."""
    found: dict[str, list[Issue]] = {}
    instance = object.__new__(cls)  # whatever it wants to be made of
    for key, field in fields:
        if key in wrong:
            continue
        try:
            if key in given:
                value = given[key]
            elif (default := field.default) is None or type(default).__name__ != "Factory":
                value = default
            else:
                value = default.factory(instance) if default.takes_self else default.factory()
            if field.converter is not None:
                convert = getattr(field.converter, "converter", None)
                value = field.converter(value) if convert is None else field.converter.__call__(value, instance, field)
            object.__setattr__(instance, field.name, value)
        except Exception as error:
            if key in given:
                found[key] = within(key, issues_of(error))
    for key, field in fields:
        if field.validator is None or key not in given or key in found:
            continue
        # Several come as one that asks them in order. Past the first mistake only those count that were written for
        # whoever sends the value: a later one may count on the checks of an earlier one.
        said: list[Issue] = []
        for validate in getattr(field.validator, "_validators", (field.validator,)):
            try:
                _ask(validate, instance, field, getattr(instance, field.name))
            except Exception as error:
                if isinstance(error, AttributeError) and wrong:
                    continue  # it looks at a field that could not be read
                if not said or isinstance(error, ValueError):
                    said += issues_of(error)
        found[key] = within(key, said)
    return found


def _ask(validate: Any, instance: object, field: Any, value: object) -> None:
    """Run a validator. Of `deep_iterable`, which stops at the first item without its place, every item is asked."""
    each = getattr(validate, "member_validator", None)
    if each is None or not isinstance(value, list | tuple):
        validate(instance, field, value)
        return
    if validate.iterable_validator is not None:
        validate.iterable_validator(instance, field, value)
    read_all(lambda item, _: each(instance, field, item), enumerate(cast("Sequence[object]", value)), repeat(None))


def in_json(value: object) -> str:
    if isinstance(value, Enum):
        value = value.value
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    return f'"{value}"' if isinstance(value, str) else str(value)


def bounded(issues: list[Issue]) -> list[Issue]:
    if len(issues) < MOST_ISSUES:
        return issues
    more = f"may have more mistakes: these are the first {MOST_ISSUES}"
    return [*issues[:MOST_ISSUES], {"path": "", "message": more}]


def _message(error: Exception) -> str:
    # A validator's ValueError was written for whoever sends the value; attrs' own carry the attribute, the
    # validator and the value behind the text. Any other error may say more than a client should know.
    if isinstance(error, ValueError) and error.args and isinstance(error.args[0], str):
        text = error.args[0] if isinstance(error, Mismatch) else _in_our_words(error)
        return text if isinstance(error, Mismatch) or len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"
    if isinstance(error, TypeError):
        return "is of the wrong type"
    return "is not valid"


_BOUND: Final = re.compile(r"(Length of )?'\w+' must be ([<>]=?) (.*?): .*", re.DOTALL)

_SIGNS: Final = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def _in_our_words(error: ValueError) -> str:
    """What a validator said, without what attrs' own say of the program: a field's name in Python, the value again."""
    text: str = error.args[0]
    given: object = error.args[2] if len(error.args) == 4 else None
    if isinstance(given, re.Pattern):
        return f"must match {cast('re.Pattern[str]', given).pattern}"
    if isinstance(given, list | tuple | range | AbstractSet | dict):
        shown = map(in_json, islice(cast("Iterable[object]", given), _LONGEST))
        # A set has no order of its own.
        return f"must be one of {', '.join(sorted(shown) if isinstance(given, AbstractSet) else shown)}"
    bound = _BOUND.fullmatch(text)
    return text if bound is None else f"must be {_SIGNS[bound[2]]} {bound[3]}{' long' if bound[1] else ''}"
