"""An Env class from a configuration: a new file, or the parts that are missing in one that people have written.

Hand-written lines stay as they are: payloads of queues, secrets, further attributes, comments, the order. Only what the
configuration contradicts is changed: an attribute of the wrong kind, and one of a binding that is gone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

import core
from core.bindings.kinds import KINDS, PROTOCOLS
from core.config.model import Binding, Configuration
from core.program.envs import EnvClass, contradicted, declared_bindings, deployed
from core.program.wording import annotation_for

_HOMES: Final[Mapping[str, str]] = {
    protocol: kind.module for protocol, kind in PROTOCOLS.items() if protocol not in core.__all__
}
"""The modules of types that `core` itself does not have."""


@attrs.frozen
class Wanted:
    """An attribute that the configuration asks for. `type` is the name to import for it, if any."""

    name: str
    annotation: str
    type: str | None
    optional: bool

    @property
    def line(self) -> str:
        """The attribute as it is written in the class."""
        annotation = f"{self.annotation} | None" if self.optional else self.annotation
        if self.name[0] == "_":  # attrs strips underscores from the names of parameters
            default = "default=None, " if self.optional else ""
            return f'binding{self.name}: {annotation} = attrs.field({default}alias="{self.name}")'
        return f"{self.name}: {annotation} = None" if self.optional else f"{self.name}: {annotation}"


def wanted_attributes(configurations: Sequence[Configuration]) -> list[Wanted]:
    """The attributes of an Env for all given environments: optional where one of them lacks the binding.

    Kinds that the framework has no type for, and secrets that only this machine has, are left out.
    """
    environments = deployed(configurations)
    found: dict[str, list[Binding]] = {}
    for configuration in environments:
        for name, binding in declared_bindings(configuration).items():
            if binding.kind == "var" or binding.protocol is not None:
                found.setdefault(name, []).append(binding)
    wanted: list[Wanted] = []
    for name, bindings in found.items():
        types = dict.fromkeys(
            annotation_for(one) if one.kind == "var" else annotation_for(one).partition("[")[0] for one in bindings
        )
        annotation = " | ".join("Queue[object]" if type_ == "Queue" else type_ for type_ in types)
        imported = None if len(types) > 1 or bindings[0].kind == "var" else annotation.partition("[")[0]
        wanted.append(Wanted(name, annotation, imported, len(bindings) < len(environments)))
    # An attribute with a default comes after those without.
    return sorted(wanted, key=lambda item: item.optional)


# A new file ---------------------------------------------------------------------------------------------------------


def new_env(configurations: Sequence[Configuration], *, class_name: str = "Env") -> str:
    """The text of a module with an Env class."""
    wanted = wanted_attributes(configurations)
    modules = _modules({"Bindings", *(item.type for item in wanted if item.type is not None)})
    file = configurations[0].path.name
    lines = [
        f'"""The bindings of this worker: one attribute for each one in {file}."""',
        "",
        "import attrs",
        "",
        *(line for module, names in modules.items() for line in _from(module, names)),
        "",
        "",
        "@attrs.frozen",
        f"class {class_name}(Bindings):",
        *(f"    {item.line}" for item in wanted),
    ]
    if not wanted:
        lines.append(f'    """{file} declares no binding yet."""')
    return "\n".join(lines) + "\n"


def _modules(names: set[str]) -> dict[str, list[str]]:
    """Return the modules that types of the framework are imported from."""
    modules: dict[str, list[str]] = {}
    for name in sorted(names):
        modules.setdefault(f"core.bindings.{_HOMES[name]}" if name in _HOMES else "core", []).append(name)
    return dict(sorted(modules.items()))


# A file that people have written ------------------------------------------------------------------------------------


def update_env(source: str, env: EnvClass, configurations: Sequence[Configuration]) -> str:
    """The text of a module with its Env class brought up to date.

    `env` is that class, as `source` has it. Attributes that it inherits are left to the class that has them.
    """
    class_ = _class(source, env)
    if class_.body[0].lineno == class_.lineno:
        lines = source.split("\n")
        source = edited(lines, [_spread(class_, lines)])
        class_ = _class(source, env)
    wanted = {item.name: item for item in wanted_attributes(configurations)}
    lines = source.split("\n")
    names = {attribute.name for attribute in env.attributes}
    types: set[str] = set()
    edits: list[LineEdit] = []
    moved: list[str] = []
    indent = " " * written_indent(class_, lines)
    for attribute in env.attributes:
        statement = next((one for one in _attributes(class_) if _name(one) == attribute.attribute), None)
        if statement is None:
            continue
        item = wanted.get(attribute.name)
        start, end = statement.lineno - 1, statement.end_lineno or statement.lineno
        if item is None:
            # A binding that is gone. An attribute that may be a secret, or has a default, is for its author to decide.
            if attribute.kind in _GENERATED and not attribute.optional:
                edits.append((start, end, []))
        elif contradicted(env, attribute, configurations):
            old = statement.annotation
            line = lines[old.lineno - 1]
            if old.lineno == old.end_lineno:
                before, after = cut(line, old.col_offset), cut(line, old.end_col_offset or 0)
                edits.append((old.lineno - 1, old.lineno, [line[:before] + item.annotation + line[after:]]))
                types.update(() if item.type is None else (item.type,))
        elif item.optional and not attribute.optional:
            # Some environment lacks it, so it needs a default, and a place after those without.
            annotation = ast.get_source_segment(source, statement.annotation) or item.annotation
            first_line, last_line = _with_remarks(class_, statement, lines)
            line = lines[end - 1]
            edits.append((first_line, last_line, []))
            moved += (text.removeprefix(indent) for text in lines[first_line:start])
            moved.append(
                f"{_name(statement)}: {annotation} | None = None{line[cut(line, statement.end_col_offset or 0) :]}"
            )
            moved += (text.removeprefix(indent) for text in lines[end:last_line])
    new = [item for name, item in wanted.items() if name not in names]
    required = [item.line for item in new if not item.optional]
    optional = [*moved, *(item.line for item in new if item.optional)]
    if first_with_default(class_) is None:
        required, optional = [*required, *optional], []
    edits += [added(class_, required, lines)] if required else []
    if optional:
        end = last_attribute(class_)
        edits.append((end, end, [indent + line if line else line for line in optional]))
    types |= {item.type for item in new if item.type is not None}
    text = _with_something_inside(edited(lines, edits), class_)
    if any(item.name[0] == "_" for item in new):
        text = with_attrs(text)
    return _with_imports(text, types)


LineEdit: TypeAlias = "tuple[int, int, list[str]]"
"""From line, to line (exclusive), and the new lines."""


def edited(lines: list[str], edits: Sequence[LineEdit]) -> str:
    """The text of lines after edits. Of two at one place the first one is above; of two of one line one is left out."""
    begun = len(lines)
    for start, end, replacement in sorted(edits, key=lambda edit: edit[:2])[::-1]:
        if end <= begun:
            lines[start:end] = replacement
            begun = start
    return "\n".join(lines)


def _spread(class_: ast.ClassDef, lines: Sequence[str]) -> LineEdit:
    """A class of one line, with its statements on lines of their own."""
    line, indent = lines[class_.lineno - 1], " " * written_indent(class_, lines)
    head = line[: cut(line, class_.body[0].col_offset)].rstrip()
    return class_.lineno - 1, class_.lineno, [head, *(indent + ast.unparse(statement) for statement in class_.body)]


def added(class_: ast.ClassDef, fields: Sequence[str], lines: Sequence[str]) -> LineEdit:
    """The attributes that a class lacks: above the first that has a default, else behind the last."""
    indent = " " * written_indent(class_, lines)
    new = [indent + field if field else field for field in fields]
    body, first = class_.body[0], first_with_default(class_)
    alone = len(class_.body) == 1
    is_empty = alone and (isinstance(body, ast.Pass) or ast.unparse(body) == "...")
    if body.lineno == class_.lineno:
        start, end, (head, *there) = _spread(class_, lines)
        there = [] if is_empty else there
        return start, end, [head, *there, *new] if first is None else [head, *new, *there]
    if is_empty:
        return body.lineno - 1, body.end_lineno or body.lineno, new
    at = first.lineno - 1 if first is not None and not is_keyword_only(class_) else last_attribute(class_)
    while first is not None and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    if alone and isinstance(body, ast.Expr):
        new.insert(0, "")  # below the docstring
    elif not any(_attributes(class_)):
        new.append("")  # above the methods
    return at, at, new


_GENERATED: Final = frozenset(kind.protocol for kind in KINDS.values() if kind.protocol not in (None, "Secret"))


def _class(source: str, env: EnvClass) -> ast.ClassDef:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == env.name and node.lineno == env.location.line:
            return node
    raise ValueError(f"{env.name} is not on line {env.location.line}")


def _name(statement: ast.AnnAssign) -> str:
    return statement.target.id if isinstance(statement.target, ast.Name) else ""


def _attributes(class_: ast.ClassDef) -> Iterator[ast.AnnAssign]:
    yield from (statement for statement in class_.body if isinstance(statement, ast.AnnAssign))


def _end(class_: ast.ClassDef, statement: ast.AnnAssign) -> int:
    """The line after an attribute and the text below it that describes it."""
    at = class_.body.index(statement) + 1
    below = class_.body[at] if at < len(class_.body) else statement
    if not isinstance(below, ast.Expr) or not isinstance(below.value, ast.Constant):
        below = statement
    return below.end_lineno or below.lineno


def _with_remarks(class_: ast.ClassDef, statement: ast.AnnAssign, lines: Sequence[str]) -> tuple[int, int]:
    """The lines of an attribute with its docstring below and the comments above it.

    A comment above several attributes in a row is about all of them, and stays.
    """
    start, end = statement.lineno - 1, _end(class_, statement)
    follows = lines[end].strip() if end < len(lines) else ""
    if not follows or follows.startswith("#") or statement is list(_attributes(class_))[-1]:
        while start > class_.lineno and lines[start - 1].strip().startswith("#"):
            start -= 1
    return start, end


def first_with_default(class_: ast.ClassDef) -> ast.AnnAssign | None:
    """The first attribute that has a default, which none without one may follow."""
    return next((statement for statement in _attributes(class_) if _has_default(statement.value)), None)


def _has_default(value: ast.expr | None) -> bool:
    """True if a value is a default, and not `attrs.field(…)` without one."""
    match value:
        case None:
            return False
        case ast.Call(func=ast.Attribute(attr="field" | "ib") | ast.Name(id="field"), keywords=keywords):
            return any(keyword.arg in ("default", "factory", "default_factory") for keyword in keywords)
        case _:
            return True


def last_attribute(class_: ast.ClassDef) -> int:
    """The line after the last attribute, or after the docstring, or after the line of `class`."""
    attributes = list(_attributes(class_))
    if attributes:
        return _end(class_, attributes[-1])
    first = class_.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return first.end_lineno or first.lineno
    return first.lineno - 1


def is_keyword_only(class_: ast.ClassDef) -> bool:
    """Return True if a decorator of the class has the option `kw_only`."""
    return any(keyword.arg == "kw_only" for d in class_.decorator_list for keyword in getattr(d, "keywords", ()))


def written_indent(class_: ast.ClassDef, lines: Sequence[str]) -> int:
    """The number of blanks that the statements of a class begin with."""
    first = class_.body[0]
    on_own_line = first.lineno > class_.lineno
    return (
        first.col_offset if on_own_line else len(lines[class_.lineno - 1]) - len(lines[class_.lineno - 1].lstrip()) + 4
    )


def cut(line: str, column: int) -> int:
    """ast counts bytes of UTF-8; this is the same place in characters."""
    return len(line.encode()[:column].decode("utf-8", "ignore"))


def _with_something_inside(text: str, class_: ast.ClassDef) -> str:
    """The text of a module, with a docstring in a class whose last attribute is gone."""
    lines = text.split("\n")
    try:
        ast.parse(text)
    except SyntaxError:
        lines.insert(class_.body[0].lineno - 1, f'{" " * (class_.col_offset + 4)}"""No binding is declared yet."""')
    return "\n".join(lines)


def _with_imports(text: str, types: set[str]) -> str:
    """The text with the framework's names that it needs imported: in an import that is there, or in one of its own."""
    tree = ast.parse(text)
    bound = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    lines = text.split("\n")
    edits: list[LineEdit] = []
    for module, names in _modules(types - bound).items():
        there = next(
            (
                node
                for node in tree.body
                if isinstance(node, ast.ImportFrom)
                and node.module == module
                and not node.level
                and not any("#" in line for line in lines[node.lineno - 1 : node.end_lineno])
            ),
            None,
        )
        if there is not None:
            aliases = [f"{a.name} as {a.asname}" if a.asname else a.name for a in there.names]
            merged = sorted({*aliases, *names}, key=str.casefold)
            edits.append((there.lineno - 1, there.end_lineno or there.lineno, _from(module, merged)))
        else:
            at = _import_line(tree)
            edits.append((at, at, _from(module, names)))
    return edited(lines, edits)


def _from(module: str, names: Sequence[str]) -> list[str]:
    one = f"from {module} import {', '.join(names)}"
    if len(one) <= 88:
        return [one]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def _import_line(tree: ast.Module) -> int:
    """The line after the last import at the top, or after the docstring."""
    last = 0
    for node in tree.body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or (is_docstring and last == 0):
            last = node.end_lineno or node.lineno
    return last


def with_attrs(text: str) -> str:
    """The text of a module with `import attrs`: above what it imports from `core`, else behind all imports."""
    tree = ast.parse(text)
    imported = [
        (alias.name, alias.asname) for node in tree.body if isinstance(node, ast.Import) for alias in node.names
    ]
    if ("attrs", None) in imported:
        return text
    lines, new = text.split("\n"), ["import attrs"]
    ours = (one for one in tree.body if isinstance(one, ast.ImportFrom) and (one.module or "").split(".")[0] == "core")
    if (first := next(ours, None)) is not None:
        line = first.lineno - 1
    elif line := _import_line(tree):
        new.insert(0, "")
    else:
        line = next((at for at, one in enumerate(lines) if not one.startswith("#")), len(lines))
        new.append("")
    lines[line:line] = new
    return "\n".join(lines)
