"""The mistakes of a value: a second pass finds all of them, with their paths, and tells them in words for clients.

It runs where the first pass refused a value, in place of cattrs. After `MOST_ISSUES` mistakes nothing more is looked
at, so that a document full of them costs little more than a good one. A class's validators say theirs beside those of
other fields. A message shows what the program wrote for whoever sends the value, and nothing else of the program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast, get_origin

import attrs

from core.validation.kinds import attrs_fields

if TYPE_CHECKING:
    from cattrs import Converter

    from core.errors import Issue


MOST_ISSUES: Final = 100
"""The largest number of mistakes reported for one value."""


class StructureError(ValueError):
    """A value is not of the type asked for. `issues` lists the mistakes as `{"path": …, "message": …}`.

    There are `MOST_ISSUES` at most, and then one more that says so.
    """

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__("; ".join(f"{issue['path'] or 'the value'} {issue['message']}" for issue in issues))
        self.issues = issues


class Mismatch(ValueError):
    """One value of the wrong kind. Its text is written here and may be shown to a client."""


class _Enough(Exception):
    """Raised in place of looking further once there are enough mistakes; it is none itself."""


@attrs.define(eq=False)
class Report:
    """The number of mistakes that one reading has found, and the fields that it has read of the current object."""

    count: int = 0
    fields: dict[str, object] = attrs.field(factory=dict[str, object])

    def add(self, errors: Sequence[BaseException]) -> None:
        # The members of a group were counted where the group was made.
        self.count += sum(map(_is_one, errors))


def _is_one(error: BaseException) -> bool:
    return not isinstance(error, (_Enough, BaseExceptionGroup))


current: ContextVar[Report] = ContextVar("core_structure_telling")


def within(path: str, issues: Sequence[Issue]) -> list[Issue]:
    """The mistakes in a part of a value, with their paths in the whole of it."""
    found: list[Issue] = []
    for issue in issues[:MOST_ISSUES]:
        dot = "." if issue["path"] and issue["path"][0] != "[" else ""
        found.append({"path": f"{path}{dot}{issue['path']}", "message": issue["message"]})
    return [*found, *issues[MOST_ISSUES:]]  # the last says that there are more, of the whole


def counting(inner: Callable[[object, object], object]) -> Callable[[object, object], object]:
    def hook(value: object, type_: object) -> object:
        report = current.get()
        if report.count >= MOST_ISSUES:
            raise _Enough
        around, report.fields = report.fields, {}
        try:
            return inner(value, type_)
        except ExceptionGroup as error:
            report.add(error.exceptions)
            raise
        finally:
            report.fields = around

    return hook


def read_list(converter: Converter, element: object, value: list[object], _: object) -> list[object]:
    read = converter.get_structure_hook(element)
    return _every(value, lambda item: read(item, element), element)


def _every(items: Iterable[object], read: Callable[[object], object], type_: object) -> list[object]:
    """What is read of each item: a group of all mistakes where there are some, each with its place."""
    from cattrs.errors import IterableValidationError, IterableValidationNote

    report = current.get()
    structured: list[object] = []
    errors: list[Exception] = []
    own = 0
    for index, item in enumerate(items):
        try:
            structured.append(read(item))
        except Exception as error:
            error.add_note(IterableValidationNote("", index, type_))
            errors.append(error)
            own += _is_one(error)
            if report.count + own >= MOST_ISSUES:
                break
    if errors:
        raise IterableValidationError("", errors, list)  # pyright: ignore[reportCallIssue]  # pyright goes by the constructor of ExceptionGroup
    return structured


def read_mapping(inner: Callable[[object, object], object], value: dict[object, object], type_: object) -> object:
    from cattrs.errors import IterableValidationError

    # Some at a time, since cattrs does not stop at a mistake.
    entries, errors = iter(value.items()), list[Exception]()
    while some := dict(islice(entries, MOST_ISSUES)):
        try:
            inner(some, type_)
        except IterableValidationError as error:
            errors += error.exceptions
            if current.get().count + sum(map(_is_one, errors)) >= MOST_ISSUES:
                break
    if errors:
        raise IterableValidationError("", errors, dict)  # pyright: ignore[reportCallIssue]  # pyright goes by the constructor of ExceptionGroup
    return inner(value, type_)


def read_field(converter: Converter, field: Any, value: object, type_: object) -> object:
    """The value of a field, remembered for the validators of its object."""
    from cattrs.errors import StructureHandlerNotFoundError

    report = current.get()
    read = value
    if type_ is not None:
        try:
            hook = converter.get_structure_hook(type_)
        except StructureHandlerNotFoundError:
            if field.converter is None:
                raise
        else:
            read = hook(value, type_)
    report.fields[field.name] = read
    return read


def read_object(
    inner: Callable[[object, object], object], renamed: Mapping[str, str], value: dict[object, object], type_: Any
) -> object:
    """An object of a class: a group of all mistakes, those of validators too, each with its field's name."""
    from cattrs.errors import AttributeValidationNote, BaseValidationError, ClassValidationError

    try:
        return inner(value, type_)
    except BaseValidationError as group:
        cls = get_origin(type_) or type_
        by_field: dict[str, Exception] = {}
        others: list[Exception] = []
        for error in group.exceptions:
            note = next((n for n in getattr(error, "__notes__", ()) if isinstance(n, AttributeValidationNote)), None)
            if note is None:
                others.append(error)
            else:
                by_field[note.name] = error
                note.name = renamed.get(note.name, note.name)
        errors: list[Exception] = []
        found = _ask_validators(cls, current.get().fields, by_field.keys())
        for field in attrs_fields(cls):
            if field.name in by_field:
                errors.append(by_field[field.name])
            for error in found.get(field.name, ()):
                error.add_note(AttributeValidationNote("", renamed.get(field.name, field.name), field.type))
                errors.append(error)
        # What it raised when it was made is one of those, unless it was the work of all fields together.
        raise ClassValidationError("", errors or others, cls) from None  # pyright: ignore[reportCallIssue]  # pyright goes by the constructor of ExceptionGroup


def _ask_validators(cls: Any, given: Mapping[str, object], wrong: Any) -> dict[str, list[Exception]]:
    """Run the converters and validators of a class over the fields that could be read."""
    found: dict[str, list[Exception]] = {}
    instance = object.__new__(cls)  # whatever it wants to be made of
    fields = attrs_fields(cls)
    for field in fields:
        if field.name in wrong:
            continue
        try:
            if field.name in given:
                value = given[field.name]
            elif (default := field.default) is None or type(default).__name__ != "Factory":
                value = default
            else:
                value = default.factory(instance) if default.takes_self else default.factory()
            if field.converter is not None:
                convert = getattr(field.converter, "converter", None)
                value = field.converter(value) if convert is None else field.converter.__call__(value, instance, field)
            object.__setattr__(instance, field.name, value)
        except Exception as error:
            if field.name in given:
                found[field.name] = [_reported(error)]
    for field in fields:
        if field.validator is None or field.name not in given or field.name in found:
            continue
        # Several come as one that asks them in order. Past the first mistake only those count that were written for
        # whoever sends the value: a later one may count on the checks of an earlier one.
        said: list[Exception] = []
        for validate in getattr(field.validator, "_validators", (field.validator,)):
            try:
                _ask(validate, instance, field, getattr(instance, field.name))
            except Exception as error:
                if isinstance(error, AttributeError) and wrong:
                    continue  # it looks at a field that could not be read
                if not said or isinstance(error, ValueError):
                    said.append(_reported(error))
        if said:
            found[field.name] = said
    return found


def _ask(validate: Any, instance: object, field: Any, value: object) -> None:
    """Run a validator. Of `deep_iterable`, which stops at the first item without its place, every item is asked."""
    each = getattr(validate, "member_validator", None)
    if each is None or not isinstance(value, list | tuple):
        validate(instance, field, value)
        return
    if validate.iterable_validator is not None:
        validate.iterable_validator(instance, field, value)

    def ask(item: object) -> None:
        try:
            each(instance, field, item)
        except Exception as error:
            raise _reported(error) from None

    _every(cast("Sequence[object]", value), ask, field.type)


def _reported(error: Exception) -> Exception:
    # A KeyError is how cattrs says that a name is missing.
    return Mismatch("is not valid") if isinstance(error, KeyError) else error


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


def leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [each for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions for each in leaves(inner)]


def issues_of(error: BaseException, path: str) -> list[Issue]:
    from cattrs.errors import AttributeValidationNote, BaseValidationError, IterableValidationNote

    if isinstance(error, BaseValidationError):
        found: list[Issue] = []
        for inner in error.exceptions:
            if isinstance(inner, _Enough):
                continue
            note = next((n for n in getattr(inner, "__notes__", ()) if type(n) is not str), None)
            at = path
            if isinstance(note, IterableValidationNote):
                # A mapping's key is named as a field is, a list's place by its number.
                at = f"{path}[{note.index}]" if isinstance(note.index, int) else _below(path, str(note.index))
            elif isinstance(note, AttributeValidationNote):
                at = _below(path, note.name)
            if isinstance(inner, KeyError):
                found.append({"path": at if note is not None else path, "message": "is required"})
            else:
                found += issues_of(inner, at)
        return found
    return [{"path": path, "message": _message(error)}]


def _below(path: str, name: str) -> str:
    # Names in a mapping are the client's, and there may be a hundred mistakes below a long one.
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}…"
    return f"{path}.{name}" if path else name


_LONGEST: Final = 100

_LONGEST_MESSAGE: Final = 500


def _message(error: BaseException) -> str:
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
