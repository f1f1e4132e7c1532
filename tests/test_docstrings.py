"""Every public function, method and property has a docstring: read from the sources.

Not asked for are overloads and setters, whose words stand with the function itself, and special methods, whose words
Python has.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import core

Function = ast.FunctionDef | ast.AsyncFunctionDef
SENTENCE = re.compile(r"""[.:!?…]["'`)\]]*$""")
WIDTH = 120
ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for folder in ("src", "stubs", "tests", "benchmarks", "examples", "docs")
    for path in (ROOT / folder).rglob("*.py*")
    if path.suffix in {".py", ".pyi"} and not {"node_modules", ".core"} & set(path.parts)
)
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(core.__path__, "core.")
    if not module.name.endswith("__main__") and not any(part.startswith("_") for part in module.name.split("."))
)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, also below an `if`: properties for type checkers are written there."""
    for node in body:
        if isinstance(node, ast.If):
            yield from statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from statements([*node.body, *(line for handler in node.handlers for line in handler.body)])
        else:
            yield node


def wordless(node: Function) -> bool:
    """True if a function has no docstring, and is neither an overload nor a setter."""
    if ast.get_docstring(node):
        return False
    marks = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return not marks & {"overload", "setter", "deleter"}


def is_ours(class_: type) -> bool:
    """True if a class is the framework's."""
    return class_.__module__.partition(".")[0] == "core"


def undocumented(name: str) -> Iterator[str]:
    """The public functions of a module, and of its public classes, without a word anywhere."""
    module = import_module(name)
    source = Path(str(module.__file__)).read_text("utf-8")
    public: set[str] = set(getattr(module, "__all__", ()))
    for node in statements(ast.parse(source).body):
        if isinstance(node, Function) and node.name in public and wordless(node):
            yield node.name
        elif isinstance(node, ast.ClassDef) and node.name in public:
            class_: Any = getattr(module, node.name)
            if not ast.get_docstring(node) and not class_.__doc__:
                yield node.name
            documented = {
                member.name
                for member in statements(node.body)
                if isinstance(member, Function) and ast.get_docstring(member)
            }
            for member in statements(node.body):
                if not isinstance(member, Function) or member.name.startswith("_") or not wordless(member):
                    continue
                if member.name in documented or inspect.getdoc(getattr(class_, member.name, None)):
                    continue
                # What overrides a method of another package is described there; compiled packages leave it out.
                if not any(member.name in vars(base) for base in class_.__mro__[1:] if not is_ours(base)):
                    yield f"{node.name}.{member.name}"


def test_every_public_function_method_and_property_has_a_docstring() -> None:
    assert [f"{name}: {member}" for name in MODULES for member in undocumented(name)] == []


def test_a_function_without_a_docstring_would_be_found() -> None:
    tree = ast.parse("@overload\ndef a(): ...\n@x.setter\ndef b(self): ...\ndef c(): 'Words.'\ndef d(): ...")
    assert [node.name for node in tree.body if isinstance(node, Function) and wordless(node)] == ["d"]


@cache
def docstrings(source: str) -> list[tuple[ast.Expr, str]]:
    """Every docstring of a source in its order, without the indentation of the code around it; those of attributes and
    constants included. Only statements are looked at, and two tests read each source.
    """
    found: list[tuple[ast.Expr, str]] = []
    todo: list[ast.AST] = [ast.parse(source)]
    while todo:
        match node := todo.pop():
            case ast.Expr(value=ast.Constant(value=str(text))):
                found.append((node, inspect.cleandoc(text)))
            case _:
                for field in ("cases", "finalbody", "orelse", "handlers", "body"):
                    todo += reversed(getattr(node, field, ()))
    return found


def broken(source: str) -> Iterator[tuple[int, str]]:
    """Every line of a first paragraph that ends in mid-sentence although the next word has room in it."""
    for node, text in docstrings(source):
        lines = text.splitlines()
        summary = list(itertools.takewhile(str.strip, lines))
        for number, (line, following) in enumerate(itertools.pairwise(summary)):
            end = node.col_offset + len(line) + (0 if number else len('"""'))
            # The last word has to leave room for the quotes.
            word = following.split()[0]
            if following is lines[-1] and following == word:
                word += '"""'
            if not SENTENCE.search(line) and end + 1 + len(word) < WIDTH:
                yield node.lineno, line


def reflowed(source: str) -> Iterator[tuple[int, str]]:
    """Every line of an example that a program filled as if it were prose: statements run into each other."""
    for node, text in docstrings(source):
        for line in text.splitlines():
            if line.startswith("    ") and re.search(r"#.*\w = \w+\.\w+\(|\) \w+\.\w+\(", line):
                yield node.lineno, line


def not_set_apart(source: str) -> Iterator[tuple[int, str]]:
    """Every paragraph of a docstring that is code and no further in than the text, and so is shown as text."""
    for node, text in docstrings(source):
        for paragraph in text.split("\n\n"):
            try:
                body = ast.parse(paragraph.replace("…", "...")).body
            except SyntaxError:
                continue
            if not all(
                isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Call | ast.Await)
                for statement in body
            ):
                yield node.lineno, paragraph.splitlines()[0]


FRAMEWORK = [path for path in SOURCES if path.is_relative_to(ROOT / "src")]


def test_the_first_paragraph_of_a_docstring_breaks_no_line_in_mid_sentence_that_has_room() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in FRAMEWORK
        for line, text in broken(path.read_text("utf-8"))
    ] == []


def test_no_example_in_a_docstring_is_filled_as_if_it_were_prose() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in FRAMEWORK
        for line, text in reflowed(path.read_text("utf-8"))
    ] == []


def test_an_example_in_a_docstring_is_set_apart_from_the_text() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in FRAMEWORK
        for line, text in not_set_apart(path.read_text("utf-8"))
    ] == []


def test_a_broken_summary_and_a_filled_example_would_be_found() -> None:
    assert [line for line, _ in broken('"""The one,\nor the other."""')] == [1]
    assert [line for line, _ in broken('"""The one.\nThe other."""')] == []
    assert [line for line, _ in reflowed('"""A.\n\n    row: f(row)) res.header("Link", a)\n\nB.\n"""')] == [1]
    assert [line for line, _ in not_set_apart('"""A.\n\nawait f(…)\n"""')] == [1]
    assert [line for line, _ in not_set_apart('"""A.\n\n    await f(…)\n\n`b` is text.\n"""')] == []
