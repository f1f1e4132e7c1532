"""The Python sources of a project as strings, for questions that no single file can answer.

A type checker sees one module at a time, and a cached one not at all. Two things are therefore read from the texts:
which classes are derived from, and which path parameters a prefix may bring along. Both only ever keep a finding back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

__all__ = [
    "Sources",
    "TextFacts",
    "defined_names",
    "dotted_names",
    "named_nowhere",
    "read_sources",
    "text_facts",
]

FILES_AT_MOST: Final = 4_000
CLASSES: Final = rb"class\s+(\w+)"

# Compiled by `re` when they are first used: a run of mypy needs none where no file has changed. Each begins with a
# literal string, which is searched for many times faster than a position; a look-behind then tests the text before it.
_CLASS: Final = rb"class\s(?<![^\s]class\s)\s*\w+\s*(?:\[[^\]]*\])?\(([^)]*)\)"
_IN_PATH: Final = rb"/:([\w\x80-\xff]*)(\{(?!\{))?"
_BEGINS: Final = rb":(?<=[\"']:)([^\W\d][\w\x80-\xff]*)[\"'/?{]"
"""A string that begins with a parameter, as behind `"/" +`."""
_JOINED: Final = rb"/[\"']\s*\+\s*[\"']:[\"']"
_QUOTED: Final = rb"([fF]?)[rR]?[\"'](?=[^\"']*\Z)"
"""The opening quote of the string that a text ends in."""
_OF_ROUTE: Final = (
    rb"\.(?:all|delete|get|head|on|options|patch|post|put|websocket)\(\s*(?:[\"'][A-Z]+[\"']\s*,\s*)?[rRuUfF]*\Z"
)
"""The text before the path of a route. Every other string with parameters may become a prefix, in any way."""
_MADE: Final = rb"use\((?<!\wuse\()\s*(?:\w+\.)*(\w+)\("
_STRINGS: Final = rb"def\s+(\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?:->\s*[\"']?str\b|:)"
"""Functions that return a string, or do not say what they return."""
_FORMATTED: Final = rb"use\((?<!\wuse\()\s*[fF][\"']"
_HANDLERS: Final = rb"\.(?:all|delete|get|head|on|options|patch|post|put)\(\s*(?:[\"'][A-Z]+[\"']\s*,\s*)?[\"'][^\"'\n]*[\"']\s*,([^)]*)"
_RENAMED: Final = rb"(?<=[\s(,])(\w+)\sas\s(\w+)"
_TABLES: Final = rb"(?i)create\s+table\s+(?:if\s+not\s+exists\s+)?[\"'`\[]?(\w+)"
_EVENTS: Final = rb"\.(queue|scheduled)\(\s*(?:([\"'])([^\"'\\\n]+)\2\s*,?\s*\))?"
_OWN_EVENTS: Final = rb"def\s+(queue|scheduled)\b"
"""Methods of a class of the platform, which handles events itself."""
_NAME: Final = r"[^\W\d]\w*"
_LEFT_OUT: Final = frozenset(
    ["node_modules", "__pycache__", "site-packages", "build", "dist", "python_modules", "venv"]
)


# A tuple and not an attrs class: the mypy plugin reads the sources in every run, also where there is nothing to check,
# and importing attrs would be most of the cost.
class Sources(NamedTuple):
    """The facts found in the sources.

    `bases` are the names, without their modules, that stand among the bases of a class. `prefixes` are the names of
    parameters in a string that may be a prefix; `computed` is True where one is put together at run time, so that any
    name may come from it. `complete` is False where there are too many files: then any class may be derived from, too.
    `others` are the paths of files that were asked for beside the sources. `handlers` are the names given to a route in
    a call, with the files that do so and the calls up to there, also where the file imports them by another name;
    `mounting` the files that call `use`; `tables` the names, in lower case, of tables that the program itself creates.
    `events` are the queues and crons that handlers are registered for, as `TextFacts` has them, with the files.
    """

    bases: frozenset[str]
    prefixes: frozenset[str]
    complete: bool
    others: tuple[Path, ...] = ()
    handlers: Mapping[str, frozenset[tuple[str, str]]] = {}
    tables: frozenset[str] = frozenset()
    mounting: frozenset[str] = frozenset()
    computed: bool = False
    events: Mapping[tuple[str, str], frozenset[str]] = {}

    def may_prefix(self, name: str) -> bool:
        """Return True if a prefix that a router is mounted at may have a parameter of that name."""
        return not self.complete or self.computed or name in self.prefixes

    def files_of(self, name: str, path: str) -> frozenset[str]:
        """The files other than its own that may register a handler of that name."""
        found = self.handlers.get(name)
        if found is None:
            return frozenset()  # so for most
        own = os.path.abspath(path)
        return frozenset(file for file, _ in found if file != own)


class TextFacts(NamedTuple):
    """The facts found in one source, of which `Sources` are made. `handlers` are pairs of a name and the call.

    `made` are the functions that a prefix comes from, `strings` those that may return one. `events` are the methods
    `queue` and `scheduled` and the name that each is given, "" where that may be any.
    """

    bases: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    handlers: tuple[tuple[str, str], ...] = ()
    tables: frozenset[str] = frozenset()
    mounts: bool = False
    computed: bool = False
    made: frozenset[bytes] = frozenset()
    strings: frozenset[bytes] = frozenset()
    events: frozenset[tuple[str, str]] = frozenset()


def text_facts(text: bytes) -> TextFacts:
    """Return the facts found in one source."""
    bases: set[str] = set()
    prefixes: set[str] = set()
    handlers: list[tuple[str, str]] = []
    computed = False
    if b"class " in text:
        for match in re.finditer(_CLASS, text):
            bases.update(re.findall(_NAME, match[1].decode("utf-8", "replace")))
    if b"':" in text or b'":' in text:
        prefixes.update(name.decode("utf-8", "replace") for name in re.findall(_BEGINS, text))
        computed = re.search(_JOINED, text) is not None
    if b"/:" in text:
        for match in re.finditer(_IN_PATH, text):
            line = text[text.rfind(b"\n", 0, match.start()) + 1 : match.start()]
            quote = re.search(_QUOTED, line)
            before = match.start() - len(line) + (quote.start() if quote is not None else 0)
            if re.search(_OF_ROUTE, text[max(0, before - 80) : before]) is None:
                if match[1]:
                    prefixes.add(match[1].decode("utf-8", "replace"))
                # f"/:{name}" and "/:" + name may be any parameter.
                if quote is not None and (not match[1] or (match[2] and quote[1])):
                    computed = True
        called: dict[bytes, list[str]] = {
            match[0]: re.findall(_NAME, match[1].decode("utf-8", "replace")) for match in re.finditer(_HANDLERS, text)
        }
        renamed: dict[str, str] = dict(_renamed(text)) if called and b" as " in text else {}
        for call, names in called.items():
            shown = call.decode("utf-8", "replace")
            handlers += [(renamed.get(name, name), shown) for name in names]
    creates = b"reate " in text or b"REATE " in text
    mounts = b".use(" in text
    return TextFacts(
        frozenset(bases),
        frozenset(prefixes),
        tuple(handlers),
        frozenset(name.decode("utf-8", "replace").lower() for name in (re.findall(_TABLES, text) if creates else ())),
        mounts,
        computed or (mounts and re.search(_FORMATTED, text) is not None),
        frozenset(re.findall(_MADE, text) if mounts else ()),
        frozenset(re.findall(_STRINGS, text) if b"def " in text and b":" in text else ()),
        frozenset(_events(text)),
    )


def _events(text: bytes) -> Iterator[tuple[str, str]]:
    """The methods `queue` and `scheduled` that a source calls, or has itself, and the name that each is given."""
    if b".queue(" in text or b".scheduled(" in text:
        for match in re.finditer(_EVENTS, text):
            if b"#" not in text[text.rfind(b"\n", 0, match.start()) + 1 : match.start()]:
                yield match[1].decode(), (match[3] or b"").decode("utf-8", "replace")
    if b"def queue" in text or b"def scheduled" in text:
        yield from ((method.decode(), "") for method in re.findall(_OWN_EVENTS, text))


def read_sources(
    root: Path,
    others: Sequence[str] = (),
    each: Callable[[str, bytes], object] | None = None,
    walked: Callable[[str, Sequence[str]], object] | None = None,
    read: Callable[[str], TextFacts | None] | None = None,
) -> Sources:
    """Read the `.py` files below `root`, without environments, packages of others and hidden folders.

    `others` are names of files that are to be found on the way. `each` is given every source with its path, and
    `walked` every folder with the names in it. `read` returns the facts of a source in place of reading it here.
    """
    facts: dict[str, TextFacts] = {}
    found: list[Path] = []
    complete = True
    left = FILES_AT_MOST
    for path in _files(root, others, walked):
        if not path.endswith(".py"):
            found.append(Path(path))
            continue
        left -= 1
        if left < 0:
            complete = False
            continue
        known = read(path) if read is not None else _read(path, each)
        if known is not None:
            facts[os.path.abspath(path)] = known
    handlers: dict[str, set[tuple[str, str]]] = {}
    for path, one in facts.items():
        for name, call in one.handlers:
            handlers.setdefault(name, set()).add((path, call))
    events: dict[tuple[str, str], set[str]] = {}
    for path, one in facts.items():
        for event in one.events:
            events.setdefault(event, set()).add(path)
    every = facts.values()
    made = frozenset[bytes]().union(*(one.made for one in every))
    return Sources(
        frozenset[str]().union(*(one.bases for one in every)),
        frozenset[str]().union(*(one.prefixes for one in every)),
        complete,
        tuple(sorted(found)),
        {name: frozenset(files) for name, files in handlers.items()},
        frozenset[str]().union(*(one.tables for one in every)),
        frozenset(path for path, one in facts.items() if one.mounts),
        any(one.computed or not made.isdisjoint(one.strings) for one in every),
        {event: frozenset(files) for event, files in events.items()},
    )


def _read(path: str, each: Callable[[str, bytes], object] | None) -> TextFacts | None:
    try:
        with open(path, "rb", buffering=0) as file:
            text = file.read()
    except OSError:
        return None
    if each is not None:
        each(path, text)
    return text_facts(text)


def _renamed(text: bytes) -> Iterator[tuple[str, str]]:
    """The names that `import show as page` gives, and those in the module that they come from."""
    for name, other in re.findall(_RENAMED, text):
        yield other.decode("utf-8", "replace"), name.decode("utf-8", "replace")


def _files(root: Path, others: Sequence[str], walked: Callable[[str, Sequence[str]], object] | None) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        if walked is not None:
            walked(folder, [*folders, *names])
        folders[:] = [
            name
            for name in folders
            if name not in _LEFT_OUT
            and not name.startswith(".")
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        for name in names:
            if name.endswith(".py") or name in others:
                yield os.path.join(folder, name)


def dotted_names(path: str) -> Iterator[str]:
    """The names that a module may go by, shortest first: imports may start from any folder above it."""
    parts = [part for part in os.path.splitext(path)[0].split(os.sep) if part]
    if len(parts) > 1 and parts[-1] == "__init__":
        parts.pop()
    for at in reversed(range(len(parts))):
        yield ".".join(parts[at:])


def named_nowhere(patterns: Sequence[str], classes: Mapping[str, Collection[str]]) -> list[str]:
    """Those of the full names or patterns that none of the classes can have. `classes` are bare names by file."""
    left = list(patterns)
    for path, names in classes.items():
        if not left:
            break
        # Whether a class is in another one cannot be seen from its bare name.
        bare = [*names, *(f"{outer}.{inner}" for outer in names for inner in names)]
        left = [
            pattern
            for pattern in left
            if not any(fnmatchcase(f"{module}.{name}", pattern) for module in dotted_names(path) for name in bare)
        ]
    return left


def defined_names(path: Path) -> frozenset[str] | None:
    """The names that a module defines or imports at its top; None where that cannot be told."""
    import ast

    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (OSError, ValueError, SyntaxError):
        return None
    names: set[str] = set()
    todo: list[ast.stmt] = list(tree.body)
    while todo:
        statement = todo.pop()
        match statement:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                names.add(statement.name)
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    if alias.name == "*":
                        return None
                    names.add(alias.asname or alias.name.partition(".")[0])
            case ast.Assign() | ast.AnnAssign():
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names |= {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
            case _:
                todo += [
                    child for child in ast.walk(statement) if isinstance(child, ast.stmt) and child is not statement
                ]
    return frozenset(names)
