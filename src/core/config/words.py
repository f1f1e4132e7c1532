"""Words for messages: key paths, tables and types as people who write the file call them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from keyword import iskeyword
from typing import Final

from core.config.toml_text import KeyPath


def section_of(path: KeyPath) -> tuple[str, ...]:
    """A key path without environment and without indexes: the section it is in."""
    names = [key for key in path if isinstance(key, str)]
    return tuple(names[2:] if names[:1] == ["env"] else names)


def dotted(path: KeyPath) -> str:
    """A key path in words: `kv_namespaces[1].binding`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f".{key}" if text else key
    return text


def as_attribute(name: str) -> str:
    """The nearest name that an attribute of Env can have: the name itself where it is one.

    A word of Python is none, under an alias neither: attrs writes aliases as parameters of `__init__`, beside `self`.
    """
    if iskeyword(name) or name == "self":
        return name.upper()
    return re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("0123456789") or "BINDING"


def type_name(value: object) -> str:
    """The type of a value, as people who write the file call it."""
    return str(value).lower() if isinstance(value, bool) else _TYPES.get(type(value), "null")


_TYPES: Final[Mapping[type[object], str]] = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "a table",
    **dict.fromkeys([dt.datetime, dt.date, dt.time], "a date or time"),
}


def listed(words: Sequence[str], last: str) -> str:
    """The words with commas, and `last`, such as `and`, before the last one."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def did_you_mean(name: str, known: Collection[str], otherwise: str) -> str:
    """A question with the known name that is nearest to a name; `otherwise` where none is near."""
    near = get_close_matches(name, known, n=1)
    return f"Did you mean {near[0]}?" if near else otherwise
