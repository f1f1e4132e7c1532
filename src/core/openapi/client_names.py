"""Names in a client: those of a document as Python takes them, and as people would say them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection
from http import HTTPStatus
from unicodedata import normalize

from core.errors import phrase_of


def singular(name: str) -> str:
    """A plural's singular; a word that is none stays."""
    for ending, one in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if name.lower().endswith(ending) and len(name) > len(ending) + 1:
            return name[: -len(ending)] + one
    return name[:-1] if re.search(r"[^siu]s$", name) else name


def inside(name: str, attribute: str) -> str:
    """The name of the class of an attribute: `LoginErrors` of `errors` in `LoginError`, whose word says it once."""
    last = re.split(r"(?=[A-Z])", name)[-1]
    stem = name.removesuffix(last) if singular(attribute) == last != attribute else name
    return f"{stem} {attribute}"


def phrase(status: str) -> str:
    """The name of an error."""
    if not status.isdigit():
        return "Client Error" if status[0] == "4" else "Server Error"
    return phrase_of(int(status)).replace("'", "") if int(status) in {*HTTPStatus} else f"Status {status}"


def sentence(text: str) -> str:
    """A text as one line, a sentence."""
    return f"{' '.join(''.join(one if one.isprintable() else ' ' for one in text).split()).rstrip('.')}."


def identifier(name: str, hidden: Collection[str] = ()) -> str:
    """A name in snake case that Python takes; one of `hidden` has an underscore behind it."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", normalize("NFKC", name))
    # Python takes names that are equal under NFKC for one, so that is what they are compared by.
    snake = normalize("NFKC", re.sub(r"[\W_]+", "_", words).strip("_").lower()) or "value"
    if not snake.isidentifier():
        snake = re.sub(r"[^0-9a-z_]", "_", f"value_{snake}")
    return f"{snake}_" if keyword.iskeyword(snake) or snake in hidden else snake


def camel(name: str) -> str:
    parts = [part for part in re.split(r"[\W_]+", normalize("NFKC", name)) if part]
    camel = normalize("NFKC", "".join(part[0].upper() + part[1:] for part in parts)) or "Value"
    return camel if camel.isidentifier() else re.sub(r"[^0-9a-zA-Z_]", "_", f"Value{camel}")


def unique(name: str, taken: Collection[str]) -> str:
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name.rstrip('_')}_{number}" if name.islower() else f"{name}{number}"
    return unique
