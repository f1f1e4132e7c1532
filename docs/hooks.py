"""Generated parts of the documentation: its menu, and what comes from the program itself.

A line `{{ help: dev }}` becomes what `core dev --help` prints; `{{ imports }}` the lines that import what a page
of the reference documents; `{{ names }}` a table of all of these; `{{ keys }}` the keys of the configuration file;
`{{ figures }}` the front page's part of what was measured; `{{ mistakes }}` the mistakes whose texts are tested.
The menu has the order of the links on each folder's `index.md`, under its headings; a page without a link comes last.
"""

from __future__ import annotations

import ast
import collections.abc
import gc
import importlib
import inspect
import json
import os
import re
import sys
import tomllib
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from mkdocs.structure.files import File

# A build makes millions of objects, and mostly keeps them: looking for garbage took a sixth of its time.
gc.set_threshold(100_000, 20, 20)

HERE = Path(__file__).parent
TABS = {"Tutorial": "tutorial", "How to": "how-to", "Reference": "reference", "Explanation": "explanation"}
EXAMPLES = {
    "main": '"src/shop/main.py"',
    "base_dir": '"src"',
    "name": '"shop"',
    "compatibility_date": '"2026-04-01"',
    "compatibility_flags": '["python_workers"]',
    "binding": '"COUNTERS"',
    "crons": '["0 3 * * *"]',
    "required": '["JWT_SECRET"]',
    "vars": '{ GREETING = "hello" }',
    "class_name": '"Room"',
    "new_sqlite_classes": '["Room"]',
    "app": '"shop.main:app"',
    "checks": '{ core-scan = "warning" }',
}
"""Values of keys that say more than a value of their type would."""
DIAGRAM = r"^!\[[^\]]*\]\((?:\.\./)?assets/(life-of-\w+-\w+|layers|one-application|durable-object-room|types-to-handlers)\.svg\)$"
SHOWN = ("raw, µs", "core", "starlette", "litestar", "fastapi")
"""The rows of the first table of measurements that the front page has."""


def on_config(config: Any) -> Any:
    """Called by MkDocs before anything is built."""
    config["nav"] = [
        {"Start": "index.md"},
        *({title: menu_of(folder) for title, folder in [tab]} for tab in TABS.items()),
    ]
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    config["copyright"] = f"{project['name']} {project['version']}, {project['license']} licence"
    return config


def on_files(files: Any, *, config: Any, **_: Any) -> Any:
    """Called by MkDocs with the files of the site. The fonts are those of the explorer."""
    for font in (HERE.parent / "src" / "core" / "dev" / "explorer" / "page").glob("geist*"):
        files.append(File.generated(config, f"assets/fonts/{font.name}", abs_src_path=str(font)))
    return files


def menu_of(folder: str) -> list[Any]:
    """The pages of a folder as a menu."""
    text = (HERE / folder / "index.md").read_text("utf-8")
    top: list[Any] = [f"{folder}/index.md"]
    group, seen = top, {f"{folder}/index.md"}
    for heading, link in re.findall(r"^## (.+)$|\]\(([\w/-]+\.md)\)", text, re.MULTILINE):
        if heading:
            group = []
            top.append({heading: group})
        elif (page := f"{folder}/{link}") not in seen and (HERE / page).exists():
            seen.add(page)
            inner = page.removesuffix("/index.md")
            group.append({title_of(page): menu_of(inner)} if inner != page else page)
            seen |= set() if inner == page else pages_of(inner)
    top += sorted(pages_of(folder) - seen)
    return [entry for entry in top if not isinstance(entry, dict) or any(entry.values())]


def pages_of(folder: str) -> set[str]:
    """Every page below a folder."""
    return {page.relative_to(HERE).as_posix() for page in (HERE / folder).rglob("*.md")}


def title_of(page: str) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.+)$", (HERE / page).read_text("utf-8"), re.MULTILINE)
    return found[1] if found else page


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    markdown = re.sub(r"^\{\{ figures \}\}$", lambda found: figures(), markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^\{\{ keys \}\}$", lambda found: keys(), markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^\{\{ help: ([\w-]+) \}\}$", lambda found: help_of(found[1]), markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^\{\{ overview \}\}$", lambda found: overview(), markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^\{\{ names \}\}$", lambda found: every_name(), markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^\{\{ mistakes \}\}$", lambda found: mistakes(), markdown, flags=re.MULTILINE)
    markdown = re.sub(DIAGRAM, lambda found: diagram(found[1]), markdown, flags=re.MULTILINE)
    page = markdown
    return re.sub(r"^\{\{ imports \}\}$", lambda found: imports(page), markdown, flags=re.MULTILINE)


def on_page_content(html: str, **_: Any) -> str:
    """Called by MkDocs for every page that was made. A table's empty corner is not a heading of anything."""
    return re.sub(r"<th( style=\"[^\"]*\")?></th>", r"<td\1></td>", html)


def diagram(name: str) -> str:
    """A drawing of `diagrams.py` as a part of the page, whose colours it has;
    a picture of another kind stays a picture. One that is drawn upright too is shown so on a narrow page.
    """
    upright = HERE / "assets" / f"{name}-upright.svg"
    if not upright.exists():
        return figure_of(name, "drawn")
    return f"{figure_of(name, 'drawn wide')}\n\n{figure_of(upright.stem, 'drawn upright')}"


def figure_of(name: str, kind: str) -> str:
    """One drawing."""
    svg = (HERE / "assets" / f"{name}.svg").read_text("utf-8")
    return f'<figure class="{kind}" data-search-exclude tabindex="0" markdown="0">{svg.strip()}</figure>'


def figures() -> str:
    """Some rows of the first table of `explanation/performance.md`, which `make bench` writes."""
    lines = (HERE / "explanation" / "performance.md").read_text("utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| | plaintext"))
    rows = [line for line in lines[start + 2 : start + 12] if line.startswith(tuple(f"| {name} |" for name in SHOWN))]
    return "\n".join([lines[start], lines[start + 1], *rows])


def mistakes() -> str:
    """Every program of `tests/messages/mistakes`, with what each tool says of it."""
    sections: list[str] = []
    for file in (HERE.parent / "tests" / "messages" / "mistakes").glob("*.md"):
        title, _, rest = file.read_text("utf-8").removeprefix("# ").partition("\n")
        blocks = re.findall(r"^```(\w+) ([^\n]+)\n(.*?)^```$", rest, re.MULTILINE | re.DOTALL)
        shown = [
            f'```{kind} title="{name}"\n{body.rstrip()}\n```'
            for kind, name, body in blocks
            if kind in ("python", "text") and not name.startswith("later ")
        ]
        sections.append("\n\n".join([f"## {title}", *shown]))
    return "\n\n".join(sorted(sections))


def keys() -> str:
    """Every key of the configuration model: its type, its default, whether a named environment inherits it,
    an example.
    """
    from core.config import model
    from core.config.keys import INHERITED_KEYS

    head = "| key | type | default | inherited | example |\n| --- | --- | --- | --- | --- |"
    plain: list[str] = []
    sections: list[str] = []
    for field in attrs.fields(attrs.resolve_types(model.Worker, vars(model))):
        inherited = "yes" if field.name in INHERITED_KEYS else "for all" if field.name == "dev" else "no"
        if field.name == "route":
            continue
        if tables_of(field.type):
            sections += sections_of(field, field.name, inherited)
        else:
            plain.append(row(field, inherited))
    return "\n".join(["## The top level", "", head, *plain, "", *(line.replace("{head}", head) for line in sections)])


def sections_of(field: Any, name: str, inherited: str) -> list[str]:
    """The section of one table, and those of the tables in it."""
    lines: list[str] = []
    for table in tables_of(field.type):
        fields = attrs.fields(attrs.resolve_types(table, vars(sys.modules[table.__module__])))
        rows = [row(inner, inherited) for inner in fields if not tables_of(inner.type)]
        title = f"[[{name}]]" if "Sequence" in str(field.type) else f"[{name}]"
        if rows:
            about = inspect.cleandoc(table.__doc__ or "")
            lines += [f"## `{title}`", "", about, "", "{head}", *rows, ""]
        for inner in fields:
            lines += sections_of(inner, f"{name}.{inner.name.rstrip('_')}", inherited) if tables_of(inner.type) else []
    return lines


def tables_of(annotation: Any) -> list[type]:
    """The tables that a key's type has in it."""
    if isinstance(annotation, type) and attrs.has(annotation):
        return [annotation]
    return [table for part in get_args(annotation) for table in tables_of(part)]


def row(field: Any, inherited: str) -> str:
    """One key."""
    name, kind = field.name.rstrip("_"), type_of(field.type)
    match field.default:
        case attrs.Factory():
            default = "none"
        case default if default is attrs.NOTHING:
            default = "required"
        case None | ():
            default = "none"
        case value:
            default = f"`{json.dumps(value)}`"
    example = f"{name} = {EXAMPLES.get(name) or example_of(kind)}"
    return f"| `{name}` | {kind.replace('|', chr(92) + '|')} | {default} | {inherited} | `{example}` |"


def type_of(annotation: Any) -> str:
    """A key's type in words of TOML."""
    origin, arguments = get_origin(annotation), [part for part in get_args(annotation) if part is not type(None)]
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_of(part) for part in arguments))
    if origin is collections.abc.Sequence:
        return f"list of {type_of(arguments[0])}"
    if origin is collections.abc.Mapping or annotation is Any:
        return "table"
    return {str: "text", int: "number", float: "number", bool: "boolean"}[annotation]


def example_of(kind: str) -> str:
    """A value of a kind."""
    if kind.startswith("`"):
        return json.dumps(kind.split("`")[1])
    return {"boolean": "true", "number": "10", "table": "{}"}.get(kind, '["…"]' if kind.startswith("list") else '"…"')


def help_of(command: str) -> str:
    """The help of a command as a block of text."""
    from core.cli import parser_for

    os.environ["COLUMNS"] = "100"
    os.environ["NO_COLOR"] = "1"
    chosen = parser_for(command).commands[command]
    return f"```text\n{chosen.format_help().rstrip()}\n```"


def overview() -> str:
    """The output of `core --help`."""
    from core.cli import _overview

    os.environ["NO_COLOR"] = "1"
    return f"```text\n{_overview().rstrip()}\n```"


def imports(markdown: str) -> str:
    """The line that imports each name of a page of the reference, from the `:::` lines of the page itself."""
    found: dict[str, list[str]] = {}
    for module, _, name in (path.rpartition(".") for path in documented(markdown)):
        found.setdefault(module, []).append(name)
    return "```python\n" + "\n".join(line for module in found for line in import_of(module, found[module])) + "\n```"


def import_of(module: str, names: list[str]) -> list[str]:
    """The line or lines that import names of a module.

    Names of `core.http` and of a page of fixtures are not imported.
    """
    if module == "core.http":
        return ["from core import http"]
    if module == "core.testing.plugin":
        return ["# pytest finds these by their names: def test_it(core_client): …"]
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= 100:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def documented(markdown: str) -> list[str]:
    """The names that a page documents, in its order."""
    return re.findall(r"^::: ([\w.]+)$", markdown, re.MULTILINE)


def every_name() -> str:
    """A table of every name of the reference: where its entry is, and the first line of its docstring."""
    rows: list[tuple[str, str]] = []
    for page in sorted((HERE / "reference").rglob("*.md")):
        where = os.path.relpath(page, HERE / "reference" / "api")
        for path in documented(page.read_text("utf-8")):
            shown = path.removeprefix("core.") if path.startswith("core.http.") else path.rpartition(".")[2]
            rows.append((shown, f"| [`{shown}`]({where}#{path}) | `{path.rpartition('.')[0]}` | {summary_of(path)} |"))
    head = "| name | imported from | what it is |\n| --- | --- | --- |\n"
    return head + "\n".join(row for _, row in sorted(rows, key=lambda row: row[0].lower()))


def summary_of(path: str) -> str:
    """The first line of a name's docstring; a constant's stands behind it in the source."""
    module, _, name = path.rpartition(".")
    home = str(getattr(getattr(importlib.import_module(module), name), "__module__", module))
    file = sys.modules[home if home.startswith("core.") else module].__file__
    before: ast.stmt | None = None
    for node in ast.parse(Path(file or "").read_text("utf-8")).body:
        text: str | None = None
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            text = ast.get_docstring(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and assigns(before, name):
            text = str(node.value.value)
        if text:
            return text.strip().splitlines()[0].replace("|", "\\|")
        before = node
    return ""


def assigns(node: ast.stmt | None, name: str) -> bool:
    """True if a statement gives a name its value."""
    targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)
