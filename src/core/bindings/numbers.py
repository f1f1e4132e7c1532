"""Integers that the platform carries: those that a JavaScript number holds exactly.

A larger one would arrive as another number there, without an error. So it is refused on the way in, by the embedded
bindings as by the runtime's own, and nothing works here that is wrong there.
"""

from __future__ import annotations

import re
from typing import Final

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest whole number that every JavaScript number of its size can be told from."""

MIN_SAFE_INTEGER: Final = -MAX_SAFE_INTEGER
"""The smallest one."""

TOO_LARGE: Final = "is beyond 2**53 - 1, which no number of the platform can hold. Write it as a string: str(number)"
"""The end of a message that begins with the number."""

# Most JSON has no number as long as that, and is not read again.
_LONG: Final = re.compile("[0-9]{16}")


def refuse_large_numbers(text: str) -> None:
    """Raise ValueError if JSON has a whole number beyond 2**53 - 1.

    Longer digits in its strings are nobody's matter.
    """
    if _LONG.search(text) is not None:
        import json

        json.loads(text, parse_int=_whole)


def _whole(digits: str) -> int:
    number = int(digits)
    if abs(number) > MAX_SAFE_INTEGER:
        raise ValueError(f"{digits} {TOO_LARGE}")
    return number
