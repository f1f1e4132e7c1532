"""The Python files of a bundle: the application's own, its dependencies, and the part of `core` that a worker loads.

Dependencies are those of pyproject.toml and those that the application's files import, with their own requirements in
turn, taken from the environment that the command runs in. Only pure Python can go along: compiled modules stay behind,
and whether their package works without them is decided elsewhere. A requirement counts as it is in a worker (PEP 508).
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs

import core
from core.errors import DeveloperError, MissingExtraError
from core.program.entry import OTHER_FOLDERS
from core.runtime.bundle import DEVELOPMENT, MARK, PackageSize, compressed_size

try:
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name
except ImportError:
    raise MissingExtraError("core build: pip install 'core-edge[dev]'") from None

_COMPILED = re.compile(r"\.(so|pyd|dylib|dll)(\.[0-9]+)*$")
_LARGEST_DATA_FILE = 5_000_000
# The packages that the runtime has of its own.
_RUNTIME = frozenset({"js", "pyodide", "pyodide_js", "_pyodide", "workers", "cloudflare", "micropip"})
_FRAMEWORK = "core-edge"
_LEFT_OUT = tuple(f"{path}/" for path in DEVELOPMENT)
# Extras that bring nothing to a worker: there `jwt_auth` proves public keys with the runtime's WebCrypto, and what the
# extra requires is not pure Python.
_OF_NO_USE = {"pyjwt": frozenset({"crypto"})}


@attrs.frozen
class Compiled:
    """A package that was installed with compiled modules: its name and version, the requirements that led to it, the
    file of each compiled module that has no source of the same name, and those of its other modules.
    """

    package: str
    chain: Sequence[str]
    files: Mapping[str, str]
    modules: Mapping[str, str]


@attrs.frozen
class Collected:
    """The files of a bundle by path, and how much each package is of them, the application first.

    Of the packages in `compiled` only the Python files are among them. `own` are the paths of the application's files.
    """

    files: Mapping[str, bytes]
    packages: Sequence[PackageSize]
    compiled: Mapping[str, Compiled] = attrs.field(factory=dict[str, Compiled])
    own: frozenset[str] = frozenset()

    @property
    def packaged(self) -> dict[str, bytes]:
        """The files of packages, the framework's too."""
        return {path: content for path, content in self.files.items() if path not in self.own}


def collect(root: Path, *, project: Path, extra: Iterable[str] = (), left_out: Iterable[str] = ()) -> Collected:
    """The files for the application that is imported from the folder `root`.

    `extra` names further distributions to take along, `left_out` those that stay behind with what only they require.
    Raises DeveloperError for a dependency that is not installed.
    """
    own = dict(_application(root))
    wanted = [_FRAMEWORK, *_declared(project), *extra, *_imported(own)]
    problems: list[str] = []
    compiled: dict[str, Compiled] = {}
    parts: list[tuple[str, str, dict[str, bytes]]] = [("application", "", own)]
    for distribution, chain in _closure(wanted, frozenset(map(canonicalize_name, left_out)), problems):
        name, version = distribution.metadata["Name"], distribution.version
        if canonicalize_name(name) == _FRAMEWORK:
            places = _tree(Path(core.__path__[0]), "core")
            loaded = {path: places[path] for path in places if not f"{path}/".startswith(_LEFT_OUT)}
            parts.append((_FRAMEWORK, version, {path: place.read_bytes() for path, place in loaded.items()}))
        else:
            places = _files_of(distribution)
            content = {path: place.read_bytes() for path, place in places.items() if not _COMPILED.search(path)}
            parts.append((name, version, content))
            if (found := _compiled(f"{name} {version}", chain, places)) is not None:
                compiled[name] = found
    if problems:
        raise DeveloperError("\n".join(problems))
    files: dict[str, bytes] = {}
    packages: list[PackageSize] = []
    for name, version, content in parts:
        for path, data in content.items():
            files.setdefault(path, data)
        whole = b"".join(content[path] for path in sorted(content))
        packages.append(PackageSize(name, version, len(content), len(whole), compressed_size(whole)))
    return Collected(files, packages, compiled, frozenset(own))


# The application ------------------------------------------------------------------------------------------------------


def _application(root: Path) -> Iterator[tuple[str, bytes]]:
    """Python files below `root`, and the other files of packages. Never other files that lie loose in `root` itself."""
    for folder, names, files in os.walk(root):
        place = Path(folder)
        names[:] = sorted(
            name
            for name in names
            if not (name.startswith(".") or name in OTHER_FOLDERS or name.endswith(".egg-info"))
            and not any((place / name / mark).exists() for mark in ("pyvenv.cfg", MARK))
        )
        for file in sorted(files):
            path = place / file
            if file.startswith(".") or path.suffix == ".pyc" or _COMPILED.search(file):
                continue
            if path.suffix == ".py" or (place != root and path.stat().st_size <= _LARGEST_DATA_FILE):
                yield path.relative_to(root).as_posix(), path.read_bytes()


def _imported(files: Mapping[str, bytes]) -> list[str]:
    """The distributions of the modules that the application's files import, where they are installed."""
    tops = {path.split("/")[0].removesuffix(".py") for path in files}
    found: dict[str, None] = {}
    owners = _owners_of_modules()
    for path, content in files.items():
        if not path.endswith(".py"):
            continue
        try:
            tree = ast.parse(content)
        except SyntaxError as error:
            raise DeveloperError(f"{path}, line {error.lineno}: {error.msg}") from None
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                top = name.split(".")[0]
                if top not in tops and top not in sys.stdlib_module_names and top not in _RUNTIME:
                    found |= dict.fromkeys(_owners(name, owners.get(top, ())))
    return list(found)


def _owners_of_modules() -> Mapping[str, Sequence[str]]:
    """The distributions of each top-level module that is installed."""
    installed = (folder for entry in sys.path for folder in Path(entry).glob("*-info"))
    return _owners_in(frozenset((folder, folder.stat().st_mtime_ns) for folder in installed))


@lru_cache(maxsize=1)
def _owners_in(installed: frozenset[tuple[Path, int]]) -> Mapping[str, Sequence[str]]:
    # It reads the list of files of every distribution, which is more than half of what `collect` does.
    return importlib.metadata.packages_distributions()


def _owners(module: str, owners: Sequence[str]) -> Sequence[str]:
    """The distributions that a module is of, among the `owners` of the package at its top. A namespace has several."""
    if len(owners) < 2:
        return owners
    path = module
    while "." in path:
        start = path.replace(".", "/")
        within = (f"{start}/", f"{start}.")
        having = [
            owner
            for owner in dict.fromkeys(owners)
            if any(file.as_posix().startswith(within) for file in importlib.metadata.files(owner) or ())
        ]
        if having:
            return having
        path = path.rpartition(".")[0]
    return owners[:1]


# Dependencies ---------------------------------------------------------------------------------------------------------


def _declared(project: Path) -> list[str]:
    import tomllib

    file = project / "pyproject.toml"
    if not file.is_file():
        return []
    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise DeveloperError(f"{file}: {error}") from None
    return list(table.get("project", {}).get("dependencies", []))


def _closure(
    wanted: Iterable[str], left_out: frozenset[str], problems: list[str]
) -> Iterator[tuple[importlib.metadata.Distribution, tuple[str, ...]]]:
    """Every distribution that is needed, once, each with the chain of requirements that led to it.

    The extras that several requirements ask for are merged: a later one brings along the packages that only its extras
    require.
    """
    seen: dict[str, set[str]] = {}
    skipped = {"pyodide-py", "workers-py", *left_out}
    queue: list[tuple[Requirement, tuple[str, ...]]] = [(own, ()) for own in map(requirement, wanted) if applies(own)]
    for needed, chain in queue:  # which grows meanwhile
        name = canonicalize_name(needed.name)
        if name in skipped:
            continue
        asked = seen.setdefault(name, set())
        # The empty one stands for the requirements without an extra.
        added = {"", *map(canonicalize_name, needed.extras)} - asked - _OF_NO_USE.get(name, frozenset())
        if not added:
            continue
        first = not asked
        asked |= added
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            skipped.add(name)
            of = f", which {chain[-1]} requires," if chain else ""
            problems.append(f"{needed.name}{of} is not installed here. Install it first: pip install {needed.name}")
            continue
        if first:
            yield distribution, chain
        for required in map(installed_requirement, distribution.requires or ()):
            if required is not None and applies(required, added):
                queue.append((required, (*chain, needed.name)))


def _files_of(distribution: importlib.metadata.Distribution) -> dict[str, Path]:
    """The files of an installed distribution, by the path they are imported under."""
    files = [file for file in distribution.files or () if ".." not in file.parts]
    places = {file.as_posix(): Path(str(distribution.locate_file(file))) for file in files}
    if any(path.endswith(".py") and ".dist-info" not in path for path in places):
        return {path: place for path, place in places.items() if _is_shipped(path)}
    # Installed for editing: its files are elsewhere, and the import system knows where. Or all of it is compiled.
    found = {path: place for path, place in places.items() if _COMPILED.search(path)}
    for top in _tops(distribution):
        spec = importlib.util.find_spec(top)
        for place in (spec and spec.submodule_search_locations) or ():
            found |= _tree(Path(place), top)
    return found


def _compiled(package: str, chain: Sequence[str], paths: Iterable[str]) -> Compiled | None:
    """The compiled modules of a distribution with these files, if it has any."""
    paths = [path for path in paths if not {"tests", "test", "testing"}.intersection(path.split("/"))]
    sources = {_module(path): path for path in sorted(paths) if path.endswith(".py")}
    # mypyc has a library for all modules that it compiled, which those import; their sources are beside them.
    files = {_module(path): path for path in paths if _COMPILED.search(path) and "__mypyc." not in path}
    files = {module: path for module, path in files.items() if module not in sources}
    programs = ("__main__", "conftest", "setup")
    sources = {module: path for module, path in sources.items() if module.split(".")[-1] not in programs}
    return Compiled(package, chain, files, sources) if files else None


def _module(path: str) -> str:
    """The name by which the file at a path is imported: `a/b.cpython-314-x86_64-linux-gnu.so` is a.b."""
    folder, _, file = path.rpartition("/")
    name = file.partition(".")[0]
    return (folder if name == "__init__" else f"{folder}/{name}".lstrip("/")).replace("/", ".")


def _tops(distribution: importlib.metadata.Distribution) -> list[str]:
    wanted = canonicalize_name(distribution.metadata["Name"])
    return [
        top
        for top, owners in _owners_of_modules().items()
        if any(canonicalize_name(owner) == wanted for owner in owners)
    ] or [wanted.replace("-", "_")]


def _tree(folder: Path, name: str) -> dict[str, Path]:
    places = {f"{name}/{place.relative_to(folder).as_posix()}": place for place in sorted(folder.rglob("*"))}
    return {path: place for path, place in places.items() if place.is_file() and _is_shipped(path)}


def _is_shipped(path: str) -> bool:
    """Return True if a file of a package goes along: no bytecode, type stubs, tests or notes of its installer."""
    if ".dist-info/" in path:
        return path.endswith(("/METADATA", "/entry_points.txt"))
    if "__pycache__/" in path or path.endswith((".pyc", ".pyi", ".pth", ".mjs", "/py.typed", ".c", ".pyx", ".pxd")):
        return False
    return not path.startswith(("bin/", "../"))


MARKERS: Final = {
    "python_version": "3.14",
    "python_full_version": "3.14.2",
    "os_name": "posix",
    "sys_platform": "emscripten",
    "platform_system": "Emscripten",
    "platform_machine": "wasm32",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
    "implementation_version": "3.14.2",
    "platform_release": "",
    "platform_version": "",
}
"""The environment of a worker, for requirements that depend on it."""

_NAME: Final = re.compile(r"\s*[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def requirement(text: str) -> Requirement:
    """Return a requirement of the project. Raises DeveloperError where it cannot be read."""
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        reason = str(error).partition("\n")[0]
        raise DeveloperError(f"the requirement {text!r} cannot be read: {reason}. Write it as name>=version") from None


def installed_requirement(text: str) -> Requirement | None:
    """Return a requirement of an installed distribution; only its name where its installer read what we cannot."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        name = _NAME.match(text)
        return None if name is None else Requirement(name[0])


def applies(wanted: Requirement, extras: Collection[str] = ()) -> bool:
    """Return True if a requirement with these extras applies in a worker. What has no order counts as true."""
    try:
        return wanted.marker is None or any(
            wanted.marker.evaluate({**MARKERS, "extra": extra}) for extra in extras or ("",)
        )
    except (UndefinedComparison, UndefinedEnvironmentName):
        return True
