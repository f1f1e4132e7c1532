"""The platform's schema of a configuration file, as a table of keys: one line for each,
with its words if it is a choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

TOOL: Final = Path(__file__).with_name("tool.json")
TABLE: Final = Path(__file__).with_name("keys.txt")
SCHEMA: Final = Path(__file__).parents[3] / ".make" / "config-schema.json"
"""The file that `make schema` writes."""

# Environments are the same keys again, and previews are nearly so.
_AGAIN: Final = ("env", "previews")


def table(schema: Mapping[str, Any]) -> str:
    """Every key of every table by its path. `^` marks what only the top level can say."""
    definitions = schema["definitions"]
    everywhere = definitions["RawEnvironment"]["properties"]
    found: dict[tuple[str, ...], set[str]] = {}
    for path, choices in _keys(definitions["RawConfig"], definitions, (), ()):
        found.setdefault(path, set()).update(choices)
    lines: list[str] = []
    for path, words in sorted(found.items()):
        mark = "" if path[0] in everywhere else "^"
        lines.append(" ".join([mark + ".".join(path), *(["=", *sorted(words)] if words else [])]))
    return "\n".join(lines) + "\n"


def _keys(
    node: Mapping[str, Any], definitions: Mapping[str, Any], path: tuple[str, ...], within: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    while "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name in within:
            return
        within = (*within, name)
        node = definitions[name]
    for part in (*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())):
        yield from _keys(part, definitions, path, within)
    if isinstance(node.get("items"), dict):
        yield from _keys(node["items"], definitions, path, within)
    words = node.get("enum", [node["const"]] if "const" in node else [])
    if words and path:
        yield path, [word for word in words if isinstance(word, str)]
    for key, value in node.get("properties", {}).items():
        yield (*path, key), []
        if key not in _AGAIN or path:
            yield from _keys(value, definitions, (*path, key), within)
