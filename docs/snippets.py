"""Completes the Python snippets of a page, so that each shows its imports and what else it uses of its file.

A part of an example's file is shown with the imports that it uses, and with the short definitions that it uses and that
the page has not shown yet. Names that an earlier snippet of the page has are named in a comment,
`# As above: app, Env`.
"""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
import re
import symtable
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
BASES = (ROOT / "docs" / "examples", ROOT / "examples", ROOT)
FENCE = re.compile(r"^( *)```(?:python|py)\b([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r'^ *--8<-- "([^":]+)(?::([\w-]+))?"$', re.MULTILINE)
MARKER = re.compile(r"^.*--8<-- \[(?:start|end):[\w-]+\].*\n", re.MULTILINE)
NOTE = "# As above: "
LONGEST = 14
"""Lines of a definition that a snippet may be completed with."""


def on_page_markdown(markdown: str, *, page: Any = None, **_: Any) -> str:
    """Called by MkDocs for every page, before examples are included."""
    return completed(markdown)


def completed(markdown: str) -> str:
    """A page whose parts of examples have what they use."""
    shown: dict[str, set[str]] = {}

    def complete(found: re.Match[str]) -> str:
        indent, options, body = found.groups()
        include = INCLUDE.fullmatch(textwrap.dedent(body).strip())
        if include is None:
            return found[0]
        file = next(base / include[1] for base in BASES if (base / include[1]).is_file())
        part = section(file.read_text("utf-8"), include[2])
        seen = shown.setdefault(include[1], set())
        code = prefix(part, seen) + part.code
        seen |= defined(code)
        return f"{indent}```python{options}\n{textwrap.indent(code, indent)}{indent}```"

    return FENCE.sub(complete, markdown)


class Part(NamedTuple):
    """A part of a file: its code, and the statements of the whole file."""

    code: str
    start: int
    text: str
    tree: ast.Module


def section(text: str, name: str | None) -> Part:
    """The part of a file that is marked with a name, without the markers."""
    start, code = 0, text
    if name is not None:
        found = re.search(rf"\[start:{name}\].*\n((?:.*\n)*?).*\[end:{name}\]", text)
        if found is None:
            raise ValueError(f"there is no part {name} in the example")
        start, code = text[: found.start(1)].count("\n") + 1, found[1]
    return Part(textwrap.dedent(MARKER.sub("", code)).strip("\n") + "\n", start, text, ast.parse(text))


def prefix(part: Part, seen: set[str]) -> str:
    """The lines that a part needs before it."""
    needed = used(part.code)
    above, made = set[str](), dict[int, ast.stmt]()
    wanted = list(needed)
    while wanted:
        name = wanted.pop()
        node = definition(part, name)
        if node is None:
            continue
        if name in seen:
            above.add(name)
        elif node.lineno not in made and lines(part.text, node).count("\n") < LONGEST:
            made[node.lineno] = node
            inner = used(lines(part.text, node))
            wanted += inner - needed
            needed |= inner
    blocks = [imports(part, needed)] if imports(part, needed) else []
    if above:
        blocks.append(f"{NOTE}{', '.join(sorted(above))}\n")
    blocks += [lines(part.text, made[line]) for line in sorted(made)]
    text = ""
    for block, following in itertools.pairwise([*blocks, part.code]):
        plain = is_plain(block) and is_plain(following)
        text += block + (
            ""
            if plain
            else "\n"
            if block.startswith(NOTE)
            else "\n\n"
            if is_large(block) or is_large(following)
            else "\n"
        )
    return text


def is_plain(block: str) -> bool:
    """True if a block is an assignment or a call that needs no empty line before the next one."""
    return not is_large(block) and not block.startswith((NOTE, "import ", "from "))


def is_large(block: str) -> bool:
    """True if two empty lines come before a block."""
    return block.startswith(("class ", "def ", "async def ", "@"))


def lines(text: str, node: ast.stmt) -> str:
    """A statement as it is in its file, with its decorators and without comments of tools."""
    first = min([node.lineno, *(found.lineno for found in getattr(node, "decorator_list", []))])
    return MARKER.sub("", "".join(text.splitlines(keepends=True)[first - 1 : node.end_lineno]))


def definition(part: Part, name: str) -> ast.stmt | None:
    """The statement of the file that gives a name its value where the part begins."""
    found = [
        node for node in part.tree.body if not isinstance(node, ast.Import | ast.ImportFrom) and name in names(node)
    ]
    return next((node for node in reversed(found) if node.lineno < part.start), found[0] if found else None)


def names(node: ast.stmt) -> set[str]:
    """The names that a statement of a module defines."""
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()


def imports(part: Part, needed: set[str]) -> str:
    """The imports of the file that are needed, in its own groups."""
    text, last = "", 0
    for node in imported(part.tree.body):
        aliases = [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in needed]
        if not aliases or getattr(node, "module", "") == "__future__":
            continue
        gap = "\n" if text and "\n\n" in "".join(part.text.splitlines(keepends=True)[last - 1 : node.lineno]) else ""
        shown = copy.copy(node)
        shown.names = aliases
        text += f"{gap}{ast.unparse(shown)}\n"
        last = node.end_lineno or 0
    return text


def imported(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports of a module, those for type checkers too."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If):
            yield from imported(node.body)


def used(code: str) -> set[str]:
    """The names that code uses, and neither imports nor defines."""
    table = symtable.symtable(code, "snippet", "exec")
    own = {found.get_name() for found in table.get_symbols() if found.is_assigned() or found.is_imported()}
    return {name for name in _globals(table, top=True) - own if not hasattr(builtins, name)} - {"__file__", "__name__"}


def defined(code: str) -> set[str]:
    """The names that code imports or defines."""
    table = symtable.symtable(code, "snippet", "exec")
    return {found.get_name() for found in table.get_symbols() if found.is_assigned() or found.is_imported()}


def _globals(table: symtable.SymbolTable, *, top: bool = False) -> set[str]:
    found = {name.get_name() for name in table.get_symbols() if name.is_global() or (top and name.is_referenced())}
    return found.union(*(_globals(child) for child in table.get_children()))
