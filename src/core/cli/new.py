"""`core new`: a small project in the recommended layout, which runs and passes its checks as it is.

The files lie in `template/`, each with `.in` behind its name. A line `#: if kv` begins lines for a project
with a key-value namespace, `#: if not kv` lines for one without, `#: end` ends either. A file of which nothing
remains is left out.
"""

from __future__ import annotations

import argparse
import keyword
import re
import shlex
import sys
from difflib import get_close_matches
from pathlib import Path
from secrets import token_hex
from typing import Final

from core.errors import DeveloperError, UsageError

BINDINGS: Final = ("kv", "mcp", "queue", "r2")
"""What a project may have beside its database: bindings, and an MCP server."""

_MODULES: Final = {"core": "the framework", "tests": "every project"} | dict.fromkeys(
    ("js", "pyodide", "workers"), "the runtime"
)
"""Modules that may be no installed package's, and whose they are."""

DESCRIPTION: Final = """\
Make a folder with a small API: an application, its Env, one router over a SQL database, a migration, tests over
fakes, and the configuration of mypy, pytest and the editor. Its tests, `mypy` and `core check` pass as they are.

Bindings: the SQL database is always there. --with adds kv (a rate limit), queue (events and their consumer),
r2 (files of notes), mcp (tools for models, at /mcp), or `all`."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the project's name and folder: lower-case letters, digits and hyphens")
    further = "further bindings, as in kv,queue, and mcp"
    parser.add_argument("--with", dest="bindings", metavar="BINDINGS", action="append", default=[], help=further)
    git = "make no git repository (default: one, unless inside of another)"
    parser.add_argument("--no-git", dest="git", action="store_false", help=git)
    parser.add_argument("--folder", type=Path, help="where to make it (default: a folder of its name)")


def run(args: argparse.Namespace) -> int:
    from core.dev.terminal import Style

    name: str = args.name
    wanted = _bindings(",".join(args.bindings))
    folder: Path = args.folder if args.folder is not None else Path(name)
    files = render(name, wanted)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DeveloperError(f"{folder} is there already and not empty. Choose another name, or a --folder")
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    paint = Style(sys.stdout)
    is_repository = args.git and _init_repository(folder)
    print(
        f"Made {paint(str(folder), 'bold')} with {len(files)} files{', a git repository' if is_repository else ''}.\n"
    )
    for command, why in (
        (f"cd {shlex.quote(str(folder))}", ""),
        ("core dev", "serve it, with its explorer"),
        ("pytest", "run its tests"),
        ("core check", "prove Env against wrangler.toml"),
    ):
        print(f"  {paint(command.ljust(16), 'cyan')} {paint(why, 'dim')}".rstrip())
    return 0


def _init_repository(folder: Path) -> bool:
    """Make a git repository of a folder that is not inside of one. Returns False where git is missing or fails."""
    import subprocess

    if any((parent / ".git").exists() for parent in folder.resolve().parents):
        return False
    try:
        done = subprocess.run(["git", "init", "--quiet"], cwd=folder, capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def render(name: str, bindings: frozenset[str]) -> dict[str, str]:
    """The files of a project: their paths and texts. Raises UsageError for a name that is none."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or len(name) > 54:
        raise UsageError(
            f"{name!r} cannot be the name of a worker. Begin with a lower-case letter, and use lower-case letters, digits "
            f"and single hyphens, 54 characters at most{_near(name)}"
        )
    from importlib.metadata import packages_distributions

    from core.runtime.bundle import DEVELOPMENT

    package = name.replace("-", "_")
    owners = {module: f"the installed package {names[0]}" for module, names in packages_distributions().items()}
    owners |= {**_MODULES, **dict.fromkeys((*keyword.kwlist, *sys.stdlib_module_names), "Python")}
    if package in owners:
        raise UsageError(f"{package} is a name of {owners[package]}. Choose another one, as in {name}-api")
    left_out = ", ".join(f'"{path}"' if path.endswith(".py") else f'"{path}/**"' for path in DEVELOPMENT)
    names = {"name": name, "package": package, "sources": _sources(), "left_out": left_out}
    files: dict[str, str] = {}
    templates = Path(__file__).parent / "template"
    for file in sorted(templates.rglob("*.in")):
        path, text = file.relative_to(templates).as_posix().removesuffix(".in"), file.read_text("utf-8")
        filled = re.sub(rf"\{{\{{({'|'.join(names)})\}}\}}", lambda found: names[found[1]], _choose(text, bindings))
        # Local ids: whoever deploys puts the platform's own in their place.
        filled = re.sub(r"\{\{id:(\w+)\}\}", lambda found: f"local-{found[1]}-{token_hex(4)}", filled)
        if filled.strip():
            files[path.replace("src/package", f"src/{package}").replace("dot-", ".")] = filled
    return files


def _near(name: str) -> str:
    """A name that is one, made of what was given, or nothing."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    near = "-".join(words).lstrip("0123456789-")[:54].rstrip("-")
    return f": core new {near}" if near else ""


def _sources() -> str:
    """The table that has uv find `core`, if it was installed from a folder (PEP 610): a checkout is in no index."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    from core.dev.reload import source_of

    try:
        source = source_of(distribution("core-edge"))
    except PackageNotFoundError:
        return ""
    # A string of JSON is one of TOML.
    path = json.dumps(str(source), ensure_ascii=False)
    return "" if source is None else f"\n[tool.uv.sources]\ncore-edge = {{ path = {path} }}\n"


def _bindings(text: str) -> frozenset[str]:
    chosen = {part.strip() for part in text.split(",") if part.strip()}
    if "all" in chosen:
        return frozenset(BINDINGS)
    unknown = sorted(chosen - {*BINDINGS, "d1"})
    if unknown:
        near = [each for word in unknown for each in get_close_matches(word, [*BINDINGS, "d1", "all"], n=1)]
        hint = f"Did you mean {','.join(near)}?" if near else f"It knows {', '.join(BINDINGS)} and all"
        raise UsageError(f"--with knows no {', '.join(unknown)}. {hint}")
    return frozenset(chosen - {"d1"})


def _choose(text: str, bindings: frozenset[str]) -> str:
    """The lines that are there with these bindings."""
    lines: list[str] = []
    conditions: list[bool] = []
    for line in text.splitlines(keepends=True):
        mark = re.fullmatch(r"#: (?:if (not )?(\w+)|(end))\n", line)
        if mark is None:
            if all(conditions):
                lines.append(line)
        elif mark[3]:
            conditions.pop()
        else:
            conditions.append((mark[2] in bindings) != bool(mark[1]))
    return "".join(lines)
