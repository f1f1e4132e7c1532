"""Strings, numbers, dates and constants, each from the value or text that stands for it and from nothing alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeGuard, get_args

from core.validation.mistakes import Mismatch, in_json

if TYPE_CHECKING:
    from cattrs import Converter


EXACT: Final = range(-(2**53) + 1, 2**53)


def exactly(kind: type, wording: str, value: object, _: object) -> object:
    """Return the value as it is. Raises Mismatch for one of another class, a class below it as well."""
    if value.__class__ is kind:
        return value
    raise Mismatch(wording)


def integer_of_client(value: Any, _: object) -> int:
    if value.__class__ is int:
        if value in EXACT:
            return value
        raise Mismatch("must be a whole number from -(2^53-1) to 2^53-1")
    raise Mismatch("must be an integer")


def number(value: Any, _: object) -> float:
    if value.__class__ is float:
        return value
    if value.__class__ is int:
        try:
            return float(value)
        except OverflowError:
            raise Mismatch("is too large for a number") from None
    raise Mismatch("must be a number")


def boolean_of_sql(wording: str, value: object, _: object) -> bool:
    if value.__class__ in (int, bool) and value in (0, 1):
        return bool(value)
    raise Mismatch(wording)


def null(value: object, _: object) -> None:
    if value is not None:
        raise Mismatch("must be null")


def no_blob(_: object, __: object) -> bytes:
    raise Mismatch("must be bytes, which JSON has not: send base64 text in a str field")


def integer_of_text(value: object, _: object) -> int:
    # int() takes blanks, underscores and other scripts' digits as well; a query string has none of them.
    if isinstance(value, str) and value.isascii() and value[value[:1] in "+-" :].isdigit() and len(value) <= 400:
        return integer_of_client(int(value), _)
    raise Mismatch("must be an integer")


def _is_plain(value: object) -> TypeGuard[str]:
    """Whether it is a text without what float() and Decimal() take beside numbers, as integer_of_text says."""
    return isinstance(value, str) and value.isascii() and value.strip() == value and "_" not in value


def number_of_text(value: object, _: object) -> float:
    if _is_plain(value):
        try:
            number = float(value)
        except ValueError:
            pass
        else:
            if math.isfinite(number):
                return number
    raise Mismatch("must be a number")


def boolean_of_text(value: object, _: object) -> bool:
    if value in ("true", "1", "on"):  # `on` is a checkbox of HTML that is checked
        return True
    if value in ("false", "0"):
        return False
    raise Mismatch("must be true or false")


def from_text(read: Callable[[str], object], wording: str, value: object, _: object) -> object:
    if isinstance(value, str):
        try:
            return read(value)
        except ValueError:
            pass
    raise Mismatch(wording)


def decimal_number(decimal: Callable[[str], Any], value: object, _: object) -> object:
    text = str(value) if value.__class__ in (int, float) else value
    if _is_plain(text):
        try:
            number = decimal(text)
        except ArithmeticError:
            pass
        else:
            # int() or an "f" format of a larger exponent takes minutes or gigabytes.
            if number.is_finite() and abs(number.adjusted()) < 4300:
                return number
    raise Mismatch("must be a decimal number")


def is_subclass_of_scalar(type_: object) -> bool:
    return isinstance(type_, type) and issubclass(type_, (str, int, float))


def subclass_of_scalar(converter: Converter, type_: Any) -> Callable[[object, object], object]:
    base: Any = next(base for base in (str, int, float) if issubclass(type_, base))
    read = converter.get_structure_hook(base)
    return lambda value, _: type_(read(value, base))


def enum_member(strings: bool, value: Any, type_: Any) -> object:
    for member in type_:
        if _same(member.value, value, strings):
            return member
    shown = ", ".join(map(in_json, type_))
    if (mask := mask_of(type_)) is not None:
        number = int(value) if strings and value.isascii() and value.isdecimal() and len(value) < 20 else value
        if number.__class__ is int and number >= 0 and not number & ~mask:
            return type_(number)
        raise Mismatch(f"must be 0 or a sum of {shown}")
    raise Mismatch(f"must be one of {shown}")


def mask_of(type_: type) -> int | None:
    """Return the sum of all members of an `enum.Flag`; None for any other type."""
    mask: int | None = getattr(type_, "_flag_mask_", None)
    return mask


def literal(strings: bool, value: object, type_: object) -> object:
    for member in get_args(type_):
        if _same(getattr(member, "value", member), value, strings):
            return member
    raise Mismatch("must be one of " + ", ".join(map(in_json, get_args(type_))))


def _same(wanted: object, value: object, strings: bool) -> bool:
    if strings and not isinstance(wanted, str):
        return isinstance(value, str) and in_json(wanted) == value
    return wanted.__class__ is value.__class__ and bool(wanted == value)
