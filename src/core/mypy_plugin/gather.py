"""Facts of a whole program: mypy is run in this process, and the facts of each module are kept beside its cache.

mypy checks a module again when it, or the interface of its imports, has changed; then its facts are read anew.
All others come from their files. The cache is one of its own, since facts and types have to be of one run.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
from mypy import build
from mypy.config_parser import parse_config_file
from mypy.defaults import CONFIG_NAMES, SHARED_CONFIG_NAMES
from mypy.errors import CompileError
from mypy.modulefinder import BuildSource
from mypy.nodes import CallExpr, MypyFile
from mypy.options import Options
from mypy.plugin import MethodSigContext
from mypy.types import FunctionLike

from core.analysis.settings import Project
from core.errors import DeveloperError
from core.mypy_plugin.facts import RESPONSE, read_module
from core.mypy_plugin.followed import ColumnsOf
from core.mypy_plugin.hooks import CorePlugin, SignatureHook
from core.mypy_plugin.index import Index
from core.mypy_plugin.statements import asked
from core.mypy_plugin.version import OWN_VERSION
from core.openapi.facts import ModuleFacts, Schema, any_of, from_json, to_json
from core.sql.statement import Column

__all__ = ["GatheredFacts", "gather"]

_PLUGIN: Final = "core.mypy_plugin"


@attrs.frozen
class GatheredFacts:
    """The facts of every module of a program, and mypy's messages about it."""

    modules: Sequence[ModuleFacts]
    errors: Sequence[str]
    followed: Sequence[str] = ()
    """The files of all modules that mypy followed, those of other packages too."""
    folders: Sequence[str] = ()
    """The folders of the project that mypy looks for modules in."""
    cache: str = ""


def gather(main: str, *, source: Path, root: Path) -> GatheredFacts:
    """The facts of the module `main` and of everything below `root` that it imports.

    `source` is the folder that goes on the path. Raises DeveloperError where mypy cannot read the program at all.
    """
    options = _options(root, source)
    folder = Path(options.cache_dir) / "facts"
    finished = folder / "finished.json"
    if not _holds(finished):
        # Facts and types may be of two runs, or of two versions.
        shutil.rmtree(options.cache_dir, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    finished.unlink(missing_ok=True)
    started = time.time()
    gathered = _run(main, options, root, folder)
    if gathered is None:
        shutil.rmtree(options.cache_dir, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        started = time.time()
        gathered = _run(main, options, root, folder)
    assert gathered is not None  # without a cache, every module is read
    recent = [path for path in gathered.followed if os.path.isfile(path) and os.stat(path).st_mtime >= started - 2]
    marks = [(path, *_mark(path), _digest(path)) for path in recent]
    finished.write_text(json.dumps({"version": OWN_VERSION, "recent": marks}), "utf-8")
    return gathered


def _holds(finished: Path) -> bool:
    """Return True if the cache is of a run of this version that ended, and mypy would see every edit since.

    mypy compares the times of files in whole seconds: where one was edited in the second of its run, and again in it to
    the same size, mypy takes it to be unchanged.
    """
    try:
        found = json.loads(finished.read_text("utf-8"))
        return found["version"] == OWN_VERSION and not any(
            _mark(path) == (second, size) and _digest(path) != digest for path, second, size, digest in found["recent"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _mark(path: str) -> tuple[int, int]:
    """The time and the size of a file, as mypy compares them."""
    state = os.stat(path)
    return int(state.st_mtime), state.st_size


def _digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class _Gathering(CorePlugin):
    """The plugin, with `res.json` taking an `object`: for Any, mypy makes `list[Any]` of a `list[int]`."""

    def find_method_signature_hook(self, fullname: str) -> SignatureHook | None:
        """The hook for a call of a method."""
        return _takes_object if fullname == f"{RESPONSE}.json" else super().find_method_signature_hook(fullname)


def _takes_object(ctx: MethodSigContext) -> FunctionLike:
    signature = ctx.default_signature
    return signature.copy_modified(  # pyright: ignore[reportUnknownMemberType]  # some of its parameters have no types
        arg_types=[ctx.api.named_generic_type("builtins.object", [])]
    )


def _run(main: str, options: Options, root: Path, folder: Path) -> GatheredFacts | None:
    """Run mypy once. None where it took a module from its cache that has no facts."""
    plugin = _Gathering(options)
    try:
        # Handed over, since mypy loads those of a configuration file alone.
        result = build.build([BuildSource(None, main, None)], options, extra_plugins=[plugin])
    except CompileError as error:
        raise DeveloperError("\n".join(error.messages)) from None
    own = {name for name, state in result.graph.items() if state.path is not None and _is_own(Path(state.path), root)}

    def is_program(name: str) -> bool:
        while name:
            if name in own:
                return True
            name = name.rpartition(".")[0]
        return False

    modules: list[ModuleFacts] = []
    for name in sorted(own):
        tree = result.graph[name].tree
        file = folder / f"{name}.json"
        if tree is not None and not tree.is_cache_skeleton:
            facts = read_module(tree, result.types, is_program=is_program, columns_of=_columns_of(tree, plugin.project))
            file.write_text(json.dumps(to_json(facts)), "utf-8")
        else:
            try:
                facts = from_json(json.loads(file.read_text("utf-8")))
            except (OSError, ValueError, KeyError, TypeError):
                return None
        modules.append(facts)
    followed = [state.path for state in result.graph.values() if state.path is not None]
    return GatheredFacts(modules, list(result.errors), followed, [str(root), *options.mypy_path], options.cache_dir)


def _columns_of(tree: MypyFile, project: Project) -> ColumnsOf:
    """Return the columns of a module's statements, by the migrations that the plugin has found."""
    index = Index(tree)

    def columns_of(call: CallExpr) -> tuple[str, Mapping[str, Schema]] | None:
        found = asked(project, call, index)
        if found is None or found[1].columns is None:
            return None
        return found[0], {column.name: _column(column, found[0]) for column in found[1].columns}

    return columns_of


_COUNT: Final = re.compile(r"\b(count\s*\([^()]*\))(?:\s+AS)?(?:\s+(\w+))?", re.IGNORECASE).findall
_STORED: Final[Mapping[str, Schema]] = {
    "integer": {"type": "integer"},
    "real": {"type": "number"},
    "text": {"type": "string"},
    "blob": {"$unknown": "a BLOB, which JSON cannot have"},
}


def _column(column: Column, sql: str) -> Schema:
    if not column.storage and not column.source:
        counted = {name or whole for whole, name in _COUNT(sql)}
        if column.name in counted:
            return {"type": "integer"}
    if not column.storage:
        return {"$unknown": f"the column {column.source or column.name}, which has no type"}
    kinds = [_STORED[storage] for storage in sorted(column.storage)]
    return any_of([*kinds, {"type": "null"}] if column.null else kinds)


def _is_own(path: Path, root: Path) -> bool:
    try:
        parts = path.resolve().relative_to(root).parts
    except ValueError:
        return False
    return not {"site-packages", "node_modules", ".venv", "venv"} & set(parts)


def _options(root: Path, source: Path) -> Options:
    """The project's own options of mypy, as far as they decide the types."""
    options = Options()
    config = next((str(root / name) for name in [*CONFIG_NAMES, *SHARED_CONFIG_NAMES] if (root / name).is_file()), None)
    if config is not None:
        parse_config_file(options, lambda: None, config, io.StringIO(), io.StringIO())
        options.config_file = config
    options.plugins = [plugin for plugin in options.plugins if plugin != _PLUGIN]
    options.mypy_path = [*dict.fromkeys([str(source), *options.mypy_path])]
    options.strict_optional = True
    options.check_untyped_defs = True
    options.export_types = True
    options.preserve_asts = True
    options.incremental = True
    options.sqlite_cache = True
    options.cache_dir = str(Path(options.cache_dir if options.cache_dir != "/dev/null" else root / ".mypy_cache"))
    options.cache_dir = str((root / options.cache_dir).resolve() / "core-openapi")
    if hasattr(options, "num_workers"):  # mypy 1 has no workers
        options.num_workers = 0
    return options
