"""The Python files of a bundle: the application's own, its dependencies, and the part of `core` that a worker loads.

Dependencies are those of pyproject.toml and those that the application's files import, with what they require in
turn, taken from the environment that the command runs in. Only pure Python can go along.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from core.runtime.bundle import BundleError, PackageSize, compressed_size

__all__ = ["Collected", "collect", "main_module"]

# What of `core` a worker never loads. Left out, it cannot be imported by mistake, and the bundle is smaller.
_DEVELOPMENT = (
    "core/analysis",
    "core/assembly",
    "core/backends/embedded",
    "core/backends/remote",
    "core/cli",
    "core/config",
    "core/dev",
    "core/hosts/asgi.py",
    "core/hosts/asgi_websocket.py",
    "core/hosts/output.py",
    "core/hosts/rsgi.py",
    "core/hosts/rsgi_websocket.py",
    "core/mypy_plugin",
    "core/openapi",
    "core/runtime",
    "core/sql",
    "core/testing",
)
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "dist", "build", "tests", "test", "site-packages"})
_NATIVE = (".so", ".pyd", ".dylib", ".dll")
_LARGEST_DATA_FILE = 5_000_000
# What the runtime has of its own.
_RUNTIME = frozenset({"js", "pyodide", "pyodide_js", "_pyodide", "workers", "cloudflare", "micropip"})
_FRAMEWORK = "core-edge"
# Extras that bring nothing to a worker: there `jwt_auth` proves public keys with the runtime's WebCrypto, and what the
# extra requires is not pure Python.
_OF_NO_USE = {"pyjwt": frozenset({"crypto"})}


@attrs.frozen
class Collected:
    """The files of a bundle by path, and how much each package is of them, the application first."""

    files: Mapping[str, bytes]
    packages: Sequence[PackageSize]


def main_module(main: Path) -> tuple[Path, str]:
    """The folder that goes on `sys.path` for a main file, and the name that the file is imported by.

    A file inside a package is imported as a part of it, so that its relative imports work.
    """
    if not main.is_file():
        raise BundleError(
            f"{main} does not exist. `main` in the configuration names the file that has the application."
        )
    if main.suffix != ".py":
        raise BundleError(f"{main} is not a Python file. `main` in the configuration names the file that has `app`.")
    parts = [main.stem] if main.stem != "__init__" else []
    folder = main.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def collect(main: Path, *, project: Path, extra: Iterable[str] = (), left_out: Iterable[str] = ()) -> Collected:
    """The files for the application whose main file is `main`. `extra` names further distributions to take
    along, `left_out` those that stay behind with all that only they require.

    Raises BundleError for a dependency that is not installed or not pure Python.
    """
    root, _ = main_module(main)
    own = dict(_application(root))
    wanted = [_FRAMEWORK, *_declared(project), *extra, *_imported(own)]
    problems: list[str] = []
    parts: list[tuple[str, str, dict[str, bytes]]] = [("application", "", own)]
    for name, chain in _closure(wanted, frozenset(map(_normal, left_out)), problems):
        if _normal(name) == _FRAMEWORK:
            parts.append((_FRAMEWORK, _version(name), dict(_framework())))
        else:
            parts.append((name, _version(name), dict(_distribution(name, chain, problems))))
    if problems:
        raise BundleError("\n".join(problems))
    files: dict[str, bytes] = {}
    packages: list[PackageSize] = []
    for name, version, content in parts:
        for path, data in content.items():
            files.setdefault(path, data)
        size = sum(map(len, content.values()))
        packages.append(
            PackageSize(
                name, version, len(content), size, compressed_size(b"".join(content[p] for p in sorted(content)))
            )
        )
    return Collected(files, packages)


# The application ------------------------------------------------------------------------------------------------------


def _application(root: Path) -> Iterator[tuple[str, bytes]]:
    """Python files below `root`, and what lies beside them in packages. Never what lies loose in `root` itself."""
    for folder, names, files in os.walk(root):
        place = Path(folder)
        names[:] = sorted(
            name
            for name in names
            if not name.startswith(".")
            and name not in _SKIPPED_FOLDERS
            and not name.endswith(".egg-info")
            and not (place / name / "pyvenv.cfg").exists()
            and not (place / name / "manifest.json").exists()
        )
        for file in sorted(files):
            path = place / file
            if file.startswith(".") or path.suffix in (".pyc", *_NATIVE):
                continue
            if path.suffix == ".py" or (place != root and path.stat().st_size <= _LARGEST_DATA_FILE):
                yield path.relative_to(root).as_posix(), path.read_bytes()


def _imported(files: Mapping[str, bytes]) -> list[str]:
    """The distributions of the modules that the application's files import, where they are installed."""
    tops = {path.split("/")[0].removesuffix(".py") for path in files}
    found: dict[str, None] = {}
    owners = importlib.metadata.packages_distributions()
    for path, content in files.items():
        if not path.endswith(".py"):
            continue
        try:
            tree = ast.parse(content)
        except SyntaxError as error:
            raise BundleError(f"{path}, line {error.lineno}: {error.msg}") from None
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            for name in names:
                top = name.split(".")[0]
                if top not in tops and top not in sys.stdlib_module_names and top not in _RUNTIME:
                    for owner in owners.get(top, ())[:1]:
                        found[owner] = None
    return list(found)


# Dependencies ---------------------------------------------------------------------------------------------------------


def _declared(project: Path) -> list[str]:
    """The run-time dependencies of pyproject.toml, if there is one."""
    import tomllib

    file = project / "pyproject.toml"
    if not file.is_file():
        return []
    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BundleError(f"{file}: {error}") from None
    return list(table.get("project", {}).get("dependencies", []))


def _closure(
    wanted: Iterable[str], left_out: frozenset[str], problems: list[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every distribution that is needed, once, each with the chain of requirements that led to it.

    The extras that several requirements ask for are merged: a later one brings along what only its extras require.
    """
    seen: dict[str, set[str]] = {}
    skipped = {"pyodide-py", "workers-py", *left_out}
    queue: list[tuple[str, tuple[str, ...]]] = [(requirement, ()) for requirement in wanted]
    index = 0
    while index < len(queue):
        requirement, chain = queue[index]
        index += 1
        name, extras, applies = _requirement(requirement, frozenset())
        if not applies or _normal(name) in skipped:
            continue
        asked = seen.setdefault(_normal(name), set())
        # The empty one stands for what is required without an extra.
        added = {"", *extras} - asked - _OF_NO_USE.get(_normal(name), frozenset())
        if not added:
            continue
        first = not asked
        asked |= added
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            skipped.add(_normal(name))
            needed = f", which {chain[-1]} requires," if chain else ""
            problems.append(f"{name}{needed} is not installed here. Install it first: pip install {name}")
            continue
        if first:
            yield distribution.metadata["Name"], chain
        for required in distribution.requires or ():
            _, _, needed_here = _requirement(required, frozenset(added))
            if needed_here:
                # Its condition held; it would not without the extras that are known here.
                queue.append((required.partition(";")[0], (*chain, name)))


_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?[^;]*(?:;(.*))?$")


def _requirement(text: str, extras: frozenset[str]) -> tuple[str, frozenset[str], bool]:
    """The name of a requirement, the extras it asks for, and whether it applies inside a worker."""
    match = _REQUIREMENT.match(text)
    if match is None:
        raise BundleError(f"the requirement {text!r} cannot be read. Write it as name>=version")
    name, asked, marker = match.groups()
    wanted = frozenset(_normal(extra.strip()) for extra in (asked or "").split(",") if extra.strip())
    return name, wanted, marker is None or any(_holds(marker, extra) for extra in (extras or {""}))


# Where the bundle will run, for requirements that depend on it (PEP 508).
_MARKERS = {
    "python_version": "3.14",
    "python_full_version": "3.14.0",
    "os_name": "posix",
    "sys_platform": "emscripten",
    "platform_system": "Emscripten",
    "platform_machine": "wasm32",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
    "implementation_version": "3.14.0",
    "platform_release": "",
    "platform_version": "",
}


def _holds(marker: str, extra: str) -> bool:
    """Return True if an environment marker holds in a worker. One that cannot be read counts as true."""
    try:
        tree = ast.parse(marker.strip().replace("~=", ">="), mode="eval").body
        return bool(_evaluate(tree, {**_MARKERS, "extra": extra}))
    except (SyntaxError, KeyError, TypeError, ValueError):
        return True


def _evaluate(node: ast.expr, names: Mapping[str, str]) -> bool:
    match node:
        case ast.BoolOp(op=ast.And()):
            return all(_evaluate(value, names) for value in node.values)
        case ast.BoolOp():
            return any(_evaluate(value, names) for value in node.values)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            one, other = _term(left, names), _term(right, names)
            if "'extra'" in ast.dump(left) + ast.dump(right):
                one, other = _normal(one), _normal(other)  # PEP 685
            if isinstance(op, (ast.In, ast.NotIn)):
                return (one in other) == isinstance(op, ast.In)
            versions = "version" in ast.dump(left) + ast.dump(right)
            a, b = (_numbers(one), _numbers(other)) if versions else (one, other)
            match op:
                case ast.Eq():
                    return a == b
                case ast.NotEq():
                    return a != b
                case ast.Lt():
                    return a < b  # type: ignore[operator]  # both are of one kind
                case ast.LtE():
                    return a <= b  # type: ignore[operator]  # as above
                case ast.Gt():
                    return a > b  # type: ignore[operator]  # as above
                case ast.GtE():
                    return a >= b  # type: ignore[operator]  # as above
                case _:
                    pass
        case _:
            pass
    raise ValueError(ast.dump(node))


def _term(node: ast.expr, names: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return names[node.id]
    raise ValueError(ast.dump(node))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _distribution(name: str, chain: Sequence[str], problems: list[str]) -> Iterator[tuple[str, bytes]]:
    """The files of an installed distribution, by the path they are imported under."""
    distribution = importlib.metadata.distribution(name)
    files = [file for file in distribution.files or () if ".." not in file.parts]
    native = [file for file in files if file.suffix in _NATIVE]
    if native:
        needed = f" (needed by {' <- '.join(reversed(chain))})" if chain else ""
        problems.append(
            f"{name} {distribution.version}{needed} is not pure Python: it has {native[0].name}. A worker loads pure "
            f"Python only. Use another package, a version of it with a py3-none-any wheel, "
            f"or leave it out where it is optional: core build --without {name}"
        )
        return
    if any(file.suffix == ".py" and ".dist-info" not in str(file) for file in files):
        for file in files:
            if _is_shipped(file.as_posix()):
                yield file.as_posix(), Path(str(distribution.locate_file(file))).read_bytes()
        return
    # Installed for editing: its files are elsewhere, and the import system knows where.
    for top in _tops(distribution):
        spec = importlib.util.find_spec(top)
        if spec is not None:
            for place in spec.submodule_search_locations or ():
                yield from _tree(Path(place), top)


def _tops(distribution: importlib.metadata.Distribution) -> list[str]:
    wanted = _normal(distribution.metadata["Name"])
    return [
        top
        for top, owners in importlib.metadata.packages_distributions().items()
        if any(_normal(owner) == wanted for owner in owners)
    ] or [wanted.replace("-", "_")]


def _framework() -> Iterator[tuple[str, bytes]]:
    import core

    for path, content in _tree(Path(core.__path__[0]), "core"):
        if not any(path == left_out or path.startswith(f"{left_out}/") for left_out in _DEVELOPMENT):
            yield path, content


def _tree(folder: Path, name: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        relative = f"{name}/{path.relative_to(folder).as_posix()}"
        if path.is_file() and _is_shipped(relative):
            yield relative, path.read_bytes()


def _is_shipped(path: str) -> bool:
    """Return True if a file of a package goes along: not its bytecode, its type stubs, its tests or its installer's
    notes.
    """
    if ".dist-info/" in path:
        return path.endswith(("/METADATA", "/entry_points.txt"))
    if "__pycache__/" in path or path.endswith((".pyc", ".pyi", ".pth", ".mjs", "/py.typed")):
        return False
    return not path.startswith(("bin/", "../"))


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
