"""A whole program, checked by mypy in this process, and ready to be read.

Libraries come from mypy's cache. The program's own modules are checked anew each time, since the cache keeps the
members of enums and TypedDicts in another order than they are written in, and no text: so a document is the same
whatever was run before.
"""

from __future__ import annotations

import io
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
from mypy import build
from mypy.config_parser import parse_config_file
from mypy.defaults import CONFIG_NAMES, SHARED_CONFIG_NAMES
from mypy.errors import CompileError
from mypy.modulefinder import BuildSource
from mypy.nodes import CallExpr, MypyFile, TypeInfo
from mypy.options import Options
from mypy.plugin import ReportConfigContext

from core.errors import DeveloperError
from core.explain.frames import is_own
from core.mypy_plugin.hooks import TypesOfQueries
from core.openapi.facts import ClassDetails
from core.openapi.program import Program
from core.openapi.schemas import Schemas
from core.openapi.values import Rows
from core.sql.statement import Column
from core.validation.schema import Schema, any_of

_PLUGIN: Final = "core.mypy_plugin"


@attrs.frozen
class Gathered:
    """The expressions of a program with their types, and the errors that mypy finds in it, without its notes."""

    program: Program
    errors: Sequence[str]
    plugin: TypesOfQueries
    followed: Sequence[str]
    """The files of all modules that mypy followed, those of other packages too."""

    def files(self) -> Collection[str]:
        """The files and folders of the project that all of it is made from; none where not all of them are known."""
        files = self.plugin.findings.files
        return {*files, *(path for path in self.followed if "site-packages" not in path)} if files else files


def gather(main: str, *, source: Path, root: Path, classes: Mapping[str, ClassDetails] | None = None) -> Gathered:
    """The module `main` and everything below `root` that it imports.

    `source` is the folder that goes on the path, and `classes` what the classes say when they run. Raises
    DeveloperError where mypy cannot read the program at all.
    """
    options = _options(root, source)
    plugin = _Gathering(options, root)
    try:
        # Handed over, since mypy loads those of a configuration file alone.
        result = build.build([BuildSource(None, main, None)], options, extra_plugins=[plugin])
    except CompileError as error:
        raise DeveloperError("\n".join(error.messages)) from None
    trees: dict[str, MypyFile] = {}
    for name, state in result.graph.items():
        if state.path is not None and state.tree is not None and is_own(str(Path(state.path).resolve()), root):
            trees[name] = state.tree

    def rows_of(call: CallExpr, tree: MypyFile) -> Rows | None:
        found = plugin.called(tree.path, call)
        if found is None or found.statement.columns is None:
            return None
        columns = {column.name: _column(column) for column in found.statement.columns}
        return Rows(columns, found.statement.certain is True)

    def lookup(name: str) -> TypeInfo | None:
        symbol = plugin.lookup_fully_qualified(name) if "." in name else None
        return symbol.node if symbol is not None and isinstance(symbol.node, TypeInfo) else None

    schemas = Schemas(classes or {}, {name: tree.path for name, tree in trees.items()})
    program = Program(trees, result.types, schemas, lookup, rows_of)
    followed = [state.path for state in result.graph.values() if state.path is not None]
    return Gathered(program, [line for line in result.errors if ": error: " in line], plugin, followed)


class _Gathering(TypesOfQueries):
    """The plugin, with the modules of the program checked anew in each run."""

    def __init__(self, options: Options, root: Path) -> None:
        super().__init__(options, root)
        self._root = root
        self._run = str(time.time_ns())

    def report_config_data(self, ctx: ReportConfigContext) -> object:
        """Return for a module of the program what no run before has returned, so that it is checked anew."""
        own = is_own(str(Path(ctx.path).resolve()), self._root)
        return self._run if own else super().report_config_data(ctx)


_STORED: Final[Mapping[str, Schema]] = {
    "integer": {"type": "integer"},
    "real": {"type": "number"},
    "text": {"type": "string"},
    "blob": {"$unknown": "a BLOB, which JSON cannot have"},
}


def _column(column: Column) -> Schema:
    if not column.storage:
        return {"$unknown": f"the column {column.source or column.name}, which has no type"}
    kinds = [_STORED[storage] for storage in sorted(column.storage)]
    return any_of([*kinds, {"type": "null"}] if column.null else kinds)


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
    options.num_workers = 0
    # Where mypy keeps the trees it checks the bodies of all functions. Those of the framework took half of the time.
    options.per_module_options.setdefault("core.*", {})["preserve_asts"] = False
    return options
