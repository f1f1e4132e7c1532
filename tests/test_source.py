"""The shape of the sources: no two modules import each other, and what is long says why."""

from __future__ import annotations

import ast
from pathlib import Path

import grimp

import core

ROOT = Path(str(core.__file__)).parent
FILES = sorted(ROOT.rglob("*.py"))
LONGEST_FILE = 400
LONGEST_FUNCTION = 60


def test_no_modules_import_each_other() -> None:
    """An import under TYPE_CHECKING or inside a function counts; move what both need below both."""
    graph = grimp.build_graph("core", cache_dir=None)
    ways = [
        (module, graph.find_shortest_chain(importer=imported, imported=module))
        for module in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(module))
    ]
    assert [" -> ".join([module, *back]) for module, back in ways if back] == []


def test_a_long_file_says_why_it_is_one() -> None:
    """Split it, or write in its docstring `One file, since …`."""
    long = [file for file in FILES if len(file.read_text("utf-8").splitlines()) > LONGEST_FILE]
    words = {file: ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "" for file in long}
    assert [
        str(file.relative_to(ROOT)) for file in long if "One file, since" not in " ".join(words[file].split())
    ] == []


def test_a_long_function_says_why_it_is_one() -> None:
    """Split it, or write above it `# One function: …`. Those inside it count as its lines."""
    silent: list[str] = []
    for file in FILES:
        lines = file.read_text("utf-8").splitlines()
        waiting: list[ast.AST] = [ast.parse("\n".join(lines))]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                if "# One function: " in lines[first - 2]:
                    continue
                if node.end_lineno - node.lineno >= LONGEST_FUNCTION:
                    silent.append(f"{file.relative_to(ROOT)}: {node.name}")
            # A function stands among statements, never inside an expression.
            waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
    assert silent == []
