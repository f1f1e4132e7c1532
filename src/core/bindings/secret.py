"""A secret of the worker: a string that nothing prints by accident.

Decides the operations on one: `reveal()`, a comparison, a truth test, and nothing else.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn, final

_WAY_OUT = "so that it cannot leak. Write secret.reveal() where the text itself is needed."


@final
class Secret:
    """A secret's text, behind one door: `reveal()`.

    `str()`, f-strings, JSON and pickle are refused with TypeError, and `repr()` shows no part of the text, so that a
    log line, a traceback or an error page cannot carry it; the argument of a log record is shown by `repr()`. Two
    secrets compare in a time that does not depend on where they differ. An empty secret is false.

    Raises TypeError for anything but a `str`.
    """

    __slots__ = ("__text",)

    __text: str

    def __init__(self, text: str, /) -> None:
        if not isinstance(text, str):
            raise TypeError(f"Secret() takes a str, not {type(text).__name__}")
        self.__text = text

    def reveal(self) -> str:
        """Return the text itself."""
        return self.__text

    def __repr__(self) -> str:
        return "Secret(hidden)"

    # A masked text would travel on as if it were the secret ("Bearer ***"), and fail far away from the mistake.
    def __str__(self) -> str:
        # A log record formats its arguments behind the call, where an error of them would lose the record.
        if sys._getframe(1).f_code.co_name == "getMessage":
            return repr(self)
        raise TypeError(f"A Secret has no str(), {_WAY_OUT}")

    def __format__(self, format_spec: str, /) -> NoReturn:
        raise TypeError(f"A Secret cannot be formatted, {_WAY_OUT}")

    def __reduce_ex__(self, protocol: object, /) -> NoReturn:
        raise TypeError(f"A Secret cannot be pickled, {_WAY_OUT}")

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, Any], /) -> Secret:
        return self

    def __bool__(self) -> bool:
        return bool(self.__text)

    def __eq__(self, other: object, /) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        # Imported here, because a worker pays for every module that it loads at start.
        from hmac import compare_digest

        return compare_digest(
            self.__text.encode("utf-8", "surrogatepass"), other.reveal().encode("utf-8", "surrogatepass")
        )

    def __hash__(self) -> int:
        return hash((Secret, self.__text))
