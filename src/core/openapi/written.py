"""A document as text: JSON as it is committed, and YAML (1.2) that every reader takes for the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from core.validation.schema import is_array, is_object

_PLAIN: Final = re.compile(r"[A-Za-z_/$][A-Za-z0-9_/{}$.-]*").fullmatch
_ODD: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_WORDS: Final = frozenset(["true", "false", "null", "yes", "no", "on", "off", "y", "n"])
"""Words that a YAML reader, an old one at least, does not read as strings."""


def as_json(document: Mapping[str, object]) -> str:
    """The document as JSON, one value a line, so that a change is a change of few lines."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


_UNORDERED: Final = frozenset(["anyOf", "enum", "parameters", "required", "security", "tags"])


def meaning(value: object, key: str = "") -> object:
    """A document without what says nothing: the order of fields, and of lists whose order means nothing."""
    if is_object(value):
        return {name: meaning(inner, name) for name, inner in value.items()}
    if is_array(value):
        items = [meaning(inner) for inner in value]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True)) if key in _UNORDERED else items
    return value


def as_yaml(document: Mapping[str, object]) -> str:
    """The document as YAML.

    Texts are in double quotes, as JSON has them; names of fields are plain where they can be.
    """
    return "\n".join(_mapping(document, "")) + "\n"


def _mapping(value: Mapping[str, object], indent: str) -> Iterator[str]:
    for name, inner in value.items():
        head = f"{indent}{_name(name)}:"
        if is_object(inner) and inner:
            yield head
            yield from _mapping(inner, f"{indent}  ")
        elif is_array(inner) and inner:
            yield head
            for item in inner:
                lines = "\n".join(_mapping(item, f"{indent}  ")) if is_object(item) else ""
                yield f"{indent}- {lines.lstrip() or _scalar(item)}"
        else:
            yield f"{head} {_scalar(inner)}"


def _name(name: str) -> str:
    return name if _PLAIN(name) and name.lower() not in _WORDS else _scalar(name)


def _scalar(value: object) -> str:
    # Characters that JSON leaves as they are end a line in YAML, or are not allowed there at all.
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
