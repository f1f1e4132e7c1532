"""Facts of other modules, for a front end that sees one at a time: the routes of a handler (`core-params`), and the
call that makes the application.

The files that give a handler's name to a route are read as text, with `core.analysis.syntax`, and for `url_for` those
that mount routers.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from core.analysis.entry import entry_file, import_roots
from core.analysis.events import app_call
from core.analysis.modules import Module, Modules
from core.analysis.nodes import scopes_in
from core.analysis.reader import Reader
from core.analysis.registrations import unknown_read
from core.analysis.sources import Sources
from core.analysis.syntax import SyntaxTrees
from core.analysis.urls import Urls
from core.config.model import Configuration

__all__ = ["Elsewhere"]


class Elsewhere:
    """The registrations of handlers in other modules than their own. `folders` are where imports may start, too."""

    def __init__(self, root: Path, folders: Sequence[str], sources: Sources) -> None:
        self._root = root
        self._folders = [Path(folder) for folder in folders]
        self._sources = sources
        self._read: dict[tuple[str, str], tuple[SyntaxTrees, Module] | None] = {}
        self._urls: dict[tuple[Path, ...], Urls] = {}
        self._urls_for: dict[str, Urls] = {}
        self._around: list[Path] | None = None

    def unknown_read(self, parameter: str, handler: str, line: int, path: str, parsed: str) -> str | None:
        """`req.params["idd"]` in the handler of that name at that line of a file, over all its routes."""
        key = (handler, path)
        if key not in self._read:
            self._read[key] = self._trees(handler, path)
        found = self._read[key]
        if found is None:
            return None
        trees, module = found
        function = next((s.node for s in scopes_in(module.scope) if _is(s.node, handler, line)), None)
        routes = trees.routes.get(function, ()) if function is not None else ()
        files = {route.call.scope.module.path for route in routes}
        # A file that names the handler and whose registration was not understood may bring any path.
        if not files or not {file.resolve() for file in self._files(handler, path)} <= files:
            return None
        return unknown_read(trees, parameter, routes, self._sources, parsed)

    def wrong_url(self, path: str, line: int, column: int) -> tuple[str, int, int] | None:
        """The mistake in the `url_for` at a place of a file, and the place that it is at."""
        urls = self._urls_for.get(path)
        if urls is None:
            urls = self._urls_for[path] = self._make_urls(path)
        module = urls.modules.add(Path(path))
        found = urls.at(module, line, column) if module is not None else None
        return (found[0], found[1].lineno, found[1].col_offset) if found is not None else None

    def app_call(self, configuration: Configuration) -> tuple[Path, ast.Call] | None:
        """The call that makes the application of a worker, and the file that it is in."""
        directory = configuration.directory.resolve()
        modules = Modules(import_roots(directory, entry_file(configuration)[0]))
        return app_call(configuration, SyntaxTrees(modules, Reader(modules)))

    def _make_urls(self, path: str) -> Urls:
        """The paths of handlers as a file sees them: those of another file that imports start from the same folders."""
        if self._around is None:
            handlers = (file for files in self._sources.handlers.values() for file, _ in files)
            around = sorted({*self._sources.mounting, *handlers})
            self._around = [root for file in around for root in import_roots(self._root, Path(file))]
        roots = [*self._folders, *import_roots(self._root, Path(path)), *self._around]
        key = tuple(dict.fromkeys(root.resolve() for root in dict.fromkeys(roots) if root.is_dir()))
        if key not in self._urls:
            modules = Modules(key)
            self._urls[key] = Urls(SyntaxTrees(modules, Reader(modules)), self._sources, self._root)
        return self._urls[key]

    def _files(self, handler: str, path: str) -> list[Path]:
        return sorted(Path(file) for file in self._sources.files_of(handler, path))

    def _trees(self, handler: str, path: str) -> tuple[SyntaxTrees, Module] | None:
        files = self._files(handler, path)
        roots = [*self._folders, *import_roots(self._root, Path(path))]
        for file in files:
            roots += import_roots(self._root, file)
        modules = Modules(list(dict.fromkeys(root.resolve() for root in roots if root.is_dir())))
        own = modules.add(Path(path))
        trees = SyntaxTrees(modules, Reader(modules))
        for module in (own, *map(modules.add, files)):
            if module is None:
                return None
            trees.registrations(module)
        return (trees, own) if own is not None else None


def _is(node: ast.AST, name: str, line: int) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name and node.lineno == line
