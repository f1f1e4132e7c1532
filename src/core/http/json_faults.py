"""A value that JSON cannot have, with its place, and keys that only we write: loaded when the encoder refused one."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from types import CoroutineType
from typing import Final, NoReturn, cast

import attrs

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})

# The place of a value: that of its container, and its own key or number. Made into text only for an error, since
# texts would take quadratic room in a deep document.
_Place = tuple["_Place | None", str]


@attrs.define(eq=False)
class Faults:
    """What cannot be written as JSON, by the converters of the writer."""

    _most: int
    _encode: Callable[[object, int], Sequence[str]]
    _converter: Callable[[type], Callable[[object], object] | None]
    _is_subclass: Callable[[type, str, str], bool]
    _above: set[int] = attrs.field(factory=set[int], init=False)
    _depth: int = attrs.field(default=0, init=False)

    @property
    def _too_deep(self) -> str:
        return f"is nested too deeply for JSON, {self._most} levels at most: send less of it at once, or a flat list"

    def write(self, value: object) -> str:
        """Write a document with keys that only we allow. Raises as `plain` does."""
        try:
            return "".join(self._encode(self.plain(value), 0))
        except RecursionError:
            raise ValueError(f"the value {self._too_deep}") from None

    def plain(self, value: object, place: _Place | None = None) -> object:
        """The value in JSON's own types, with keys that are texts.

        Raises an error for the first value that JSON cannot have, with its place.
        """
        if value is None or isinstance(value, (str, bool)):
            return value
        if isinstance(value, int):
            try:
                int.__repr__(value)
            except ValueError:
                problem = "is an int with too many digits to be written: send it as a string of your own"
                _refuse(ValueError, place, problem)
            return value
        if isinstance(value, float):
            if value - value != 0.0:
                _refuse(ValueError, place, f"is {value}, which JSON cannot have: send None or a string instead")
            return value
        here = builtins.id(value)
        if here in self._above:
            _refuse(ValueError, place, "is inside itself: JSON can have no cycles")
        self._above.add(here)
        is_container = isinstance(value, (dict, list, tuple))
        self._depth += is_container
        if self._depth > self._most:
            _refuse(ValueError, place, self._too_deep)
        plain: object
        # Loops, since a comprehension would be one more frame for each level.
        if isinstance(value, dict):
            plain = members = dict[str, object]()
            entries = [(self._name(key, place), inner) for key, inner in cast("dict[object, object]", value).items()]
            for name, inner in entries:
                members[name] = self.plain(inner, (place, f".{name}"))
        elif isinstance(value, (list, tuple)):
            plain = items = list[object]()
            for number, inner in enumerate(cast("list[object]", value)):
                items.append(self.plain(inner, (place, f"[{number}]")))
        else:
            plain = self.plain(self._convert_at(place, value), place)
        self._depth -= is_container
        self._above.discard(here)
        return plain

    def _name(self, key: object, place: _Place | None) -> str:
        name = self._text_key(key)
        if name is None:
            kind = type(key).__name__
            _refuse(TypeError, place, f"has a key of type {kind}, which JSON cannot have: use a str")
        return name

    def _convert_at(self, place: _Place | None, value: object) -> object:
        if isinstance(value, (bytes, bytearray, memoryview)):
            _refuse(TypeError, place, "is bytes, which JSON cannot have: decode it, or send base64 text")
        if self._is_subclass(type(value), "core.validation.unset", "Unset"):
            _refuse(TypeError, place, "is UNSET, which is left out where it is the field of a class: leave it out here")
        if hasattr(type(value), "__await__"):
            if isinstance(value, CoroutineType):
                value.close()  # or Python warns of it a second time, in words of its own
            _refuse(TypeError, place, "is a call that was not awaited. Write `await` before it")
        if self._is_subclass(type(value), "core.bindings.secret", "Secret"):
            _refuse(TypeError, place, "is a Secret, which belongs in no answer. Remove it from there")
        convert = self._converter(type(value))
        if convert is None:
            kind = type(value).__name__
            way = (
                "send its .model_dump(mode='json')"
                if hasattr(value, "model_dump")
                else "make a dict, a list or a str of it"
            )
            _refuse(TypeError, place, f"is of type {kind}, which JSON cannot have: {way}")
        if self._is_subclass(type(value), "decimal", "Decimal"):
            try:
                return convert(value)
            except ValueError:
                _refuse(ValueError, place, f"is {value}, which JSON cannot have: send None or a string instead")
        return convert(value)

    def _text_key(self, key: object) -> str | None:
        """A key as JSON writes it, or None for a value that cannot be one."""
        if isinstance(key, str):
            return key
        convert = self._converter(type(key))
        try:
            if key is None or isinstance(key, (int, float)):
                return "".join(self._encode(key, 0))
            converted = key if convert is None else convert(key)
        except ValueError:  # a number that JSON has not
            return None
        # A set, a mapping or an object is not a key; an enum's value is whatever it is.
        return None if convert is None or isinstance(converted, (dict, list)) else self._text_key(converted)

    def check_nesting(self, value: object) -> None:
        """Raise ValueError for a value nested too deeply. It looks at one level at a time, and never recurses."""
        level = [value]
        for _ in range(self._most + 1):
            # By id, so that an object in many places of a level is looked at once.
            below: dict[int, object] = {}
            for outer in level:
                for inner in self._inside(outer):
                    if inner.__class__ not in _SCALARS:
                        below[builtins.id(inner)] = inner
            if not below:
                return
            level = list(below.values())
        raise ValueError(f"the value {self._too_deep}")

    def _inside(self, value: object) -> Iterable[object]:
        """The values that are one level further down. Values that JSON cannot have are refused by the encoder."""
        if isinstance(value, dict):
            return cast("dict[object, object]", value).values()
        if isinstance(value, (list, tuple)):
            return cast("list[object]", value)
        if isinstance(value, (str, int, float)):
            return ()
        convert = self._converter(type(value))
        try:
            return () if convert is None else self._inside(convert(value))
        except ValueError:  # a Decimal that is not a number
            return ()


def _refuse(kind: type[Exception], place: _Place | None, problem: str) -> NoReturn:
    parts: list[str] = []
    while place is not None:
        place, part = place
        parts.append(part)
    path = "".join(reversed(parts)).removeprefix(".")
    if len(path) > 200:
        path = f"{path[:100]}…{path[-100:]}"
    raise kind(f"{path or 'the value'} {problem}") from None
