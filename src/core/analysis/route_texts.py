"""The parts of a module's text that decide the paths of its routes, for a digest.

A module that calls `url_for` has to be checked again when one of these changes anywhere in the project, and not
whenever something else does. A part too many costs a check, one too few would keep a finding that is not true any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["linked_names", "registered_names", "route_parts"]

_CALL: Final = re.compile(rb"\.(?:all|delete|get|head|on|options|patch|post|put|use|websocket)\(")
_PATH: Final = re.compile(rb"\s*(?:[rRuUfF]?[\"'](?:/|[A-Z]+[\"'])|[A-Za-z_*])")
_CONSTANT: Final = re.compile(rb"=\s*[rRuUfF]?[\"']/[^\"'\n]*|/:[^\n]*")
_ROUTER: Final = re.compile(rb"\b(?:Router|App|create_app|authenticated)\b")
_IMPORT: Final = re.compile(rb"^(?:from|import)\s[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
_LINK: Final = re.compile(rb"url_for\(\s*(?:\w+\.)*(\w+)")
_NAME: Final = re.compile(rb"\w+")


def route_parts(text: bytes) -> Iterator[bytes]:
    """Everything in a module's text that registers or mounts something, or that such a call may take its path from."""
    calls = False
    for match in _CALL.finditer(text):
        begin = text.rfind(b"\n", 0, match.start()) + 1
        if text[begin : match.start()].lstrip().startswith(b"@"):
            yield text[begin : text.find(b"(", text.find(b"def ", match.end()))]
        elif _PATH.match(text, match.end()):
            calls = True
            yield text[begin : text.find(b")", match.end())]
    for match in _CONSTANT.finditer(text):
        yield match[0]
    for match in _ROUTER.finditer(text):
        yield text[text.rfind(b"\n", 0, match.start()) + 1 : text.find(b"\n", match.end())]
    if calls:
        yield from _IMPORT.findall(text)


def registered_names(parts: Sequence[bytes]) -> frozenset[bytes]:
    """Every name in the parts of some modules, but for imports: a name that is not among them is given to no route."""
    return frozenset(_NAME.findall(b"\n".join(part for part in parts if not part.startswith((b"from", b"import")))))


def linked_names(text: bytes) -> frozenset[bytes]:
    """The names of the handlers that a module gives to `url_for`."""
    return frozenset(_LINK.findall(text))
