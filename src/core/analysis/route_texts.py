"""The parts of a module's text that decide the paths of its routes, for a digest.

A module that calls `url_for` has to be checked again when one of these changes anywhere in the project, and not
whenever something else does. A part too many costs a check, one too few would keep a finding that is not true any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["linked_names", "registered_names", "route_parts"]

# Compiled by `re` when they are first used, as those of `sources.py`.
_CALL: Final = rb"\.(?:all|delete|get|head|on|options|patch|post|put|use|websocket)\("
_PATH: Final = rb"\s*(?:[rRuUfF]?[\"'](?:/|[A-Z]+[\"'])|[A-Za-z_*])"
_CONSTANT: Final = rb"=\s*[rRuUfF]?[\"']/[^\"'\n]*|/:[^\n]*"
_ROUTER: Final = rb"\b(?:Router|App|create_app|authenticated)\b"
_IMPORT: Final = rb"(?m)^(?:from|import)\s[^\n(]*(?:\([^)]*\))?"
_LINK: Final = rb"url_for\(\s*(?:\w+\.)*(\w+)"
_NAME: Final = rb"\w+"


def route_parts(text: bytes) -> Iterator[bytes]:
    """Everything in a module's text that registers or mounts something, or that such a call may take its path from."""
    path = re.compile(_PATH)
    calls = False
    for match in re.finditer(_CALL, text):
        begin = text.rfind(b"\n", 0, match.start()) + 1
        if text[begin : match.start()].lstrip().startswith(b"@"):
            yield text[begin : text.find(b"(", text.find(b"def ", match.end()))]
        elif path.match(text, match.end()):
            calls = True
            yield text[begin : text.find(b")", match.end())]
    for match in re.finditer(_CONSTANT, text):
        yield match[0]
    for match in re.finditer(_ROUTER, text):
        yield text[text.rfind(b"\n", 0, match.start()) + 1 : text.find(b"\n", match.end())]
    if calls:
        yield from re.findall(_IMPORT, text)


def registered_names(parts: Sequence[bytes]) -> frozenset[bytes]:
    """Every name in the parts of some modules, but for imports: a name that is not among them is given to no route."""
    return frozenset(re.findall(_NAME, b"\n".join(part for part in parts if not part.startswith((b"from", b"import")))))


def linked_names(text: bytes) -> frozenset[bytes]:
    """The names of the handlers that a module gives to `url_for`."""
    return frozenset(re.findall(_LINK, text))
