"""A value that may be of several types: its own kind decides, and between classes their fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Union, cast, get_args

from core.errors import DeveloperError
from core.validation.kinds import fields_of, is_class, is_literal, name_of
from core.validation.mistakes import Mismatch, StructureError, in_json

if TYPE_CHECKING:
    from cattrs import Converter


def optional(converter: Converter, type_: object) -> Callable[[object, object], object]:
    """The hook of `T | None`, with that of `T`: cattrs asks for it with the first value, too late to refuse a type."""
    member = next(member for member in get_args(type_) if member is not type(None))
    read = converter.get_structure_hook(member)
    return lambda value, _: None if value is None else read(value, member)


def union(converter: Converter, guarded: Callable[..., Any], type_: object) -> Callable[[object, object], object]:
    members = get_args(type_)
    classes = [member for member in members if is_class(member)]
    rest: list[object] = [member for member in members if member not in classes]
    if len(classes) <= 1:
        rest += classes
    # Structured are exact kinds only, so at most the order of texts and numbers matters: narrow ones come first.
    rest.sort(key=_width)
    hooks = [(member, converter.get_structure_hook(member)) for member in rest]
    if len(classes) > 1:
        together: object = cast("Any", Union)[tuple(classes)]
        by_fields = guarded(_classes(converter, classes), dict, "must be an object")
        if not rest:
            return cast("Callable[[Any, Any], Any]", by_fields)
        hooks.append((together, by_fields))
        hooks.sort(key=lambda one: _width(one[0]))
    wording = "must be " + " or ".join(dict.fromkeys(name_of(member) for member in members))
    by = f": {_discriminator(classes)}" if len(classes) > 1 else ""

    def hook(value: object, _: object) -> object:
        telling: list[StructureError] = []
        for member, read in hooks:
            try:
                return read(value, member)
            except StructureError as error:
                telling.append(error)
            except Exception:  # a value of another kind
                continue
        # Where one member alone is made from an object or array, its own mistakes say more than the union's.
        if len(telling) == 1:
            raise telling[0]
        raise Mismatch(f"{wording}{by if isinstance(value, dict) else ''}")

    return hook


def _classes(converter: Converter, classes: Sequence[Any]) -> Callable[[Any, Any], object]:
    """Make the hook that reads an object as the one of several classes whose fields it has.

    Raises DeveloperError where no field tells them apart.
    """
    from cattrs.disambiguators import create_default_dis_func

    try:
        class_of: Any = create_default_dis_func(converter, *classes)
    except TypeError:
        from core.errors.mistakes import alike

        raise DeveloperError(alike([name_of(cls) for cls in classes])) from None
    wording = f"must be {' or '.join(map(name_of, classes))}: {_discriminator(classes)}"

    def hook(value: dict[str, object], _: object) -> object:
        try:
            cls = class_of(value)
        except Exception:
            raise Mismatch(wording) from None
        # Asked for when it is needed, since a class may have itself among its fields.
        return converter.get_structure_hook(cls)(value, cls)

    return hook


def _discriminator(classes: Sequence[object]) -> str:
    """The fields by which a client's object is one of several classes."""
    fields = [{field.key: field.type for field in fields_of(cls) or ()} for cls in classes]
    common = [name for name in fields[0] if all(is_literal(each.get(name)) for each in fields)]
    if common:
        values = [in_json(value) for each in fields for value in get_args(each[common[0]])]
        return f'"{common[0]}" is one of {", ".join(dict.fromkeys(values))}'
    own = [
        (cls, next((name for name in each if sum(name in other for other in fields) == 1), None))
        for cls, each in zip(classes, fields, strict=True)
    ]
    return " or ".join(f'with "{name}" it is {name_of(cls)}' for cls, name in own if name)


def _width(type_: object) -> int:
    if type_ is str:
        return 3  # a date is a string too, so text comes last
    if type_ is float:
        return 2  # and an integer is a number
    return 1
