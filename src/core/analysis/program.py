"""A whole program against its configuration, read from its text: the findings of `core check`.

Starts from the file that `main` names and follows its imports. Env classes, routers, routes, consumers and SQL are
found here; their mistakes are decided where the mypy plugin asks too: `check.py`, `routes.py`, `sql.py`.
Nothing of the program runs, and nothing is reported about code that is not understood.

One file, since one walk over the program gathers the facts of all the rules.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import attrs

from core.analysis.classes import ClassRef
from core.analysis.databases import Databases
from core.analysis.entry import entry_file, import_roots, python_files
from core.analysis.envs import ANYTHING, EnvShape, check_env, declares_bindings, migration_problems
from core.analysis.events import app_call, unhandled
from core.analysis.extensions import declared
from core.analysis.findings import Finding, level_of, sort_findings
from core.analysis.front_end import Problem
from core.analysis.memory import Memory
from core.analysis.module_rules import ModuleRules
from core.analysis.modules import External, Module, Modules, Scope
from core.analysis.nodes import parents_of, scopes_in
from core.analysis.problems import (
    names_nothing,
    no_class,
    no_env,
    not_bindings,
)
from core.analysis.reader import Reader
from core.analysis.registrations import path_of
from core.analysis.row_classes import RowClasses
from core.analysis.settings import Settings
from core.analysis.sources import CLASSES, Sources, defined_names, dotted_names, named_nowhere, read_sources
from core.analysis.syntax import Node, Registered, SyntaxTrees
from core.analysis.unreachable import nothing_mounted
from core.analysis.urls import Urls
from core.analysis.worker import worker_findings
from core.config.checks import Code
from core.config.model import Configuration

__all__ = ["Options", "Proof", "check_program", "find_env", "find_rows", "prove"]

_MAKES: Final = frozenset(["core.create_app", "core.app.create_app"])
_NO_ENVS: Final = ("builtins.", "typing.", "collections.")


@attrs.frozen
class Options:
    """`env`: full names or patterns of Env classes, in place of all over `Bindings`. `paths`: further files or folders.

    `option` is where `env` was read, for messages. `root` is the folder that the options stand in: a name of `env` may
    be that of another worker's class below it.
    """

    env: Sequence[str] | None = None
    paths: Sequence[Path] = ()
    option: str = "--env-class"
    root: Path | None = None

    @classmethod
    def of(cls, settings: Settings | None, paths: Sequence[Path] = ()) -> Options:
        """The options of the mypy plugin, which hold for every check of a program."""
        if settings is None:
            return cls(paths=paths)
        return cls(settings.env, paths, f"{settings.where} env", settings.root)


@attrs.frozen
class Proof:
    """The findings, and the items compared: `names` of Envs with a known kind, `routes` with a known path,
    `statements`.
    """

    findings: Sequence[Finding]
    names: int
    routes: int
    statements: int


def prove(
    configurations: Sequence[Configuration], options: Options | None = None, memory: Memory | None = None
) -> Proof:
    """Everything that is wrong between a program and the given environments of its configuration, and the files that
    were read.

    With the `memory` of an earlier look, only modules are analysed whose text, or whose dependencies, have changed.
    """
    program = _Program(configurations, options or Options(), memory)
    return Proof(program.findings(), program.names, program.paths, program.statements)


def check_worker(configurations: Sequence[Configuration]) -> list[Finding]:
    """The findings of `core-worker` alone, which a build is stopped by."""
    program = _Program(configurations, Options())
    return list(program.levelled(sort_findings(worker_findings(program.modules, program.program, configurations))))


def check_program(configurations: Sequence[Configuration], options: Options | None = None) -> list[Finding]:
    """The findings alone."""
    return list(prove(configurations, options).findings)


def find_env(configurations: Sequence[Configuration], name: str, file: Path | None = None) -> list[EnvShape]:
    """The Env classes of that name in the program, or in one file of it."""
    program = _Program(configurations, Options(paths=[file] if file is not None and file.is_file() else ()))
    return [
        program.reader.shape(class_)
        for class_ in program.envs()
        if class_.node.name == name and (file is None or class_.module.path == file.resolve())
    ]


def find_rows(configurations: Sequence[Configuration], paths: Sequence[Path] = ()) -> tuple[RowClasses, frozenset[str]]:
    """The classes that rows become: all of them, or those that the queries in files or folders need.

    The names are those of the program's own packages and modules.
    """
    program = _Program(configurations, Options(paths=paths))
    files = {module.path for module in program.modules_of(paths)} if paths else None
    for module in program.program:
        program.trees.registrations(module)  # by which a handler without annotations has its Env
    rows = RowClasses(program.databases, program.program, files)
    for path, line, text in program.modules.problems:
        rows.problems.append(Finding("core-env", f"syntax error: {text}. Fix it", str(path), line))
    return rows, frozenset(module.name.partition(".")[0] for module in program.program)


class _Program:
    def __init__(self, configurations: Sequence[Configuration], options: Options, memory: Memory | None = None) -> None:
        self.memory = memory if memory is not None else Memory()
        self.configurations = configurations
        self.options = options
        self.names = self.paths = self.statements = 0
        self.configuration = configurations[0]
        self.directory = self.configuration.directory.resolve()
        self.found: list[Finding] = []
        self.entry, problem = entry_file(self.configuration)
        if problem is not None:
            self.found.append(problem)
        self.modules = Modules(import_roots(self.directory, self.entry), self.memory.module)
        start = self._start(options.paths)
        self.program = self.modules.reachable(start)
        self.reader = Reader(self.modules, self._named(options.env) if options.env is not None else None)
        self.sources: Sources = read_sources(self.directory)
        self.modules.derived = self.sources.bases if self.sources.complete else None
        self.trees = SyntaxTrees(self.modules, self.reader)
        self.databases = Databases(self.trees, configurations, self.sources)

    def findings(self) -> list[Finding]:
        """All findings, in order."""
        linecache.checkcache()
        for text in declared().problems:
            self.found.append(Finding("core-env", text, str(self.configuration.path), 1))
        for path, line, text in self.modules.problems:
            self.found.append(Finding("core-env", f"syntax error: {text}. Fix it", str(path), line))
        registrations = {module: self.trees.registrations(module) for module in self.program}
        self._check_envs()
        self._check_mounts([one for registered in registrations.values() for one in registered])
        self._check_apps()
        events = [one for found in registrations.values() for one in found if one.method in ("queue", "scheduled")]
        self._check_events(events)
        whole = self._whole()
        rules = ModuleRules(self.trees, self.databases, self.sources, self._shape)
        for module, registered in registrations.items():
            looked = self.memory.look(rules, module, registered, whole)
            self.found += looked.findings
            self.paths += looked.paths
            self.statements += looked.statements
        self._check_urls(registrations)
        if not self.found and not (self.paths + self.statements or events) and not any(True for _ in self.envs()):
            message = (
                "nothing was found to compare with this file: no Env, no route and no statement of SQL. Name the "
                "program's file with main, with app in [core], or as a PATH"
            )
            self.found.append(Finding("core-env", message, str(self.configuration.path), 1))
        return list(self.levelled(finding for finding in sort_findings(self.found) if not _ignored(finding)))

    def _whole(self) -> str:
        """Everything that the findings of every module depend on, as a string: the configuration, the migrations, and
        facts of all the texts.
        """
        folders = {
            configuration.migrations_directory(binding.entry)
            for configuration in self.configurations
            for binding in configuration.bindings.values()
            if binding.kind == "d1"
        }
        migrations = [
            (path, stat.st_mtime_ns, stat.st_size)
            for folder in sorted(folders)
            for path in sorted(folder.glob("*.sql"))
            for stat in (path.stat(),)
        ]
        texts = self.sources
        facts = [sorted(texts.bases), sorted(texts.prefixes), texts.complete, texts.computed, sorted(texts.tables)]
        return repr((self.configurations, self.options, sorted(self.reader.named or ()), migrations, facts))

    def levelled(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings as errors or warnings, as the project wants its codes."""
        for finding in findings:
            match level_of(finding.code, self.configurations, finding.file):
                case "error":
                    yield finding
                case "warning":
                    yield attrs.evolve(finding, severity="warning")
                case _:
                    pass

    def add(self, code: Code, message: str, module: Module, node: ast.expr | ast.stmt) -> None:
        """Note a finding at a node."""
        self.found.append(Finding(code, message, str(module.path), node.lineno, node.col_offset + 1))

    def report(self, problem: Problem[Node] | None) -> None:
        """Add the finding of a rule."""
        if problem is not None and isinstance(problem.node.node, ast.expr | ast.stmt):
            self.add(problem.code, problem.message, problem.node.scope.module, problem.node.node)

    # -- the files

    def _start(self, paths: Sequence[Path]) -> list[Module]:
        files: list[Path] = [self.entry] if self.entry is not None else []
        app = self.modules.find((self.configuration.worker.core.app or "").partition(":")[0])
        if app is not None:
            files.append(app.path)
        given = self.modules_of(paths)
        if not files and not given:
            files = python_files(self.directory)
        return [*(module for module in map(self.modules.add, files) if module is not None), *given]

    def modules_of(self, paths: Sequence[Path]) -> list[Module]:
        """The modules in files and folders."""
        files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
        return [module for module in map(self.modules.add, dict.fromkeys(files)) if module is not None]

    def _named(self, patterns: Sequence[str]) -> frozenset[str]:
        """The full names of the Env classes that the options name."""
        return frozenset(
            class_.name
            for class_ in self._classes()
            if any(fnmatchcase(name, pattern) for name in _names(class_) for pattern in patterns)
        )

    def _unmatched(self) -> list[str]:
        """Yield the problems of names in the options that no class has."""
        classes = list(self._classes())
        patterns = [
            pattern
            for pattern in self.options.env or ()
            if not any(fnmatchcase(name, pattern) for class_ in classes for name in _names(class_))
        ]
        if patterns and self.options.root is not None:
            others: dict[str, list[str]] = {}
            own = {str(module.path) for module in self.program}

            def look(path: str, text: bytes) -> None:
                if path not in own:
                    others[path] = [name.decode("utf-8", "replace") for name in re.findall(CLASSES, text)]

            read_sources(self.options.root.resolve(), each=look)
            patterns = named_nowhere(patterns, others)
        near = [class_.name for class_ in classes if self.reader.is_marked(class_)] or [c.name for c in classes]
        return [names_nothing(self.options.option, pattern, near) for pattern in patterns]

    # -- Env

    def _classes(self) -> Iterator[ClassRef]:
        """The classes of the program."""
        for module in self.program:
            for scope in scopes_in(module.scope):
                if isinstance(scope.node, ast.ClassDef) and scope.parent is not None:
                    yield ClassRef(scope.node, scope.parent)

    def envs(self) -> Iterator[ClassRef]:
        """The Env classes of the program."""
        return filter(self.reader.is_env, self._classes())

    def _check_envs(self) -> None:
        names = self._entry_names()
        unmatched = self._unmatched()
        told = False
        for class_ in self._classes():
            checked = self.reader.is_env(class_)
            for problem in unmatched if checked or self.reader.is_marked(class_) else ():
                told = True
                self.add("core-env", f"{class_.node.name}: {problem}", class_.module, class_.node)
            if not checked:
                continue
            node = class_.node
            own = any(isinstance(statement, ast.AnnAssign) for statement in node.body)
            if own and not node.decorator_list and not self.reader.is_protocol(class_) and not node.keywords:
                message = f"{node.name} has attributes of its own but no decorator. Put @attrs.frozen above it"
                self.add("core-env", message, class_.module, node)
                continue
            shape = self._shape(class_)
            self.names += sum(a.kind not in ANYTHING and not a.inherited for a in shape.attributes)
            self.found += check_env(shape, self.configurations, entry_names=names)
            self._check_migrations(shape)
        if not told:
            where = str(self.configuration.path)
            self.found += (Finding("core-env", problem, where, 1) for problem in unmatched)

    def _check_apps(self) -> None:
        """Every `create_app(Env)`: over a class that is an Env, wherever there are bindings to compare with."""
        message = (
            None if self.options.env is not None or any(True for _ in self.envs()) else no_env(self.configurations)
        )
        unsure = told = False
        for module in self.program:
            for scope in scopes_in(module.scope):
                for call in parents_of(scope):
                    if not isinstance(call, ast.Call) or not self._makes_app(call.func, scope):
                        continue
                    given = call.args[0] if call.args else None
                    problem = self._app_problem(call.func, given, scope) if given is not None else message
                    unsure = unsure or problem is None
                    if problem is not None:
                        told = True
                        self.add("core-env", problem, module, given or call)
        # With names in the options, or a class from elsewhere in create_app, it is only not said to agree.
        if message is not None and not told and not unsure:
            binding = declares_bindings(self.configurations)
            line = binding.line or 1 if binding is not None else 1
            self.found.append(Finding("core-env", message, str(self.configuration.path), line))

    def _makes_app(self, function: ast.expr, scope: Scope) -> bool:
        if isinstance(function, ast.Attribute) and function.attr != "create_app":
            return False  # most calls are of methods
        resolved = self.modules.resolve(function, scope)
        return isinstance(resolved, External) and resolved.name in _MAKES

    def _app_problem(self, function: ast.expr, given: ast.expr, scope: Scope) -> str | None:
        """Return the problem of the argument of `create_app`, if it has a known one."""
        call = f"{self.trees.shown(Node(function, scope))}({ast.unparse(given)})"
        value, inner = self.modules.value(given, scope)
        if isinstance(value, ast.Constant):
            return no_class(call, None) if value.value is not None else no_env(self.configurations)
        if isinstance(value, ast.Call):
            made = self.reader.class_of(value.func, inner)
            return no_class(call, made.node.name) if made is not None else None
        class_ = self.reader.class_of(given, scope)
        if class_ is None:
            resolved = self.modules.resolve(given, scope)
            if not isinstance(resolved, External) or not resolved.name.startswith(_NO_ENVS):
                return None
            name = resolved.name.rpartition(".")[2]
            return not_bindings(f"{self.trees.shown(Node(function, scope))}({name})", name)
        if self.reader.named is not None or self.reader.is_marked(class_) or not self.reader.is_whole(class_):
            return None
        return not_bindings(f"{self.trees.shown(Node(function, scope))}({class_.node.name})", class_.node.name)

    def _check_events(self, registrations: Sequence[Registered]) -> None:
        """Every cron and queue of the configuration that nothing handles, at the call that makes the application."""
        names = {(one.method, path_of(self.trees, one) or "") for one in registrations}
        names |= self.sources.events.keys()  # and those that are not understood
        problems = unhandled(self.configurations, lambda method: {name for own, name in names if own == method})
        for code, message in problems if self.sources.complete else ():
            made = app_call(self.configuration, self.trees)
            if made is not None:
                self.found.append(Finding(code, message, str(made[0]), made[1].lineno, made[1].col_offset + 1))

    def _check_migrations(self, shape: EnvShape) -> None:
        for place, text in migration_problems(shape, self.configurations, self.databases.schema):
            self.found.append(Finding("core-sql", text, place.file, place.line, place.column))

    def _shape(self, class_: ClassRef) -> EnvShape:
        partial = self.reader.named is None and (not self.sources.complete or class_.node.name in self.sources.bases)
        return self.reader.shape(class_, partial=partial)

    def _entry_names(self) -> frozenset[str] | None:
        if self.entry is None or not any(c.worker.durable_objects.bindings for c in self.configurations):
            return None
        return defined_names(self.entry)

    # -- registrations

    def _check_urls(self, registrations: Mapping[Module, Sequence[Registered]]) -> None:
        """Every `url_for(handler, …)`, whose paths may be registered and mounted in any module."""
        urls = Urls(self.trees, self.sources, self.directory, registrations)
        for module in self.program:
            for call, scope in urls.calls(module) if module.links else ():
                problem = urls.problem(call, scope)
                if problem is not None:
                    self.add("core-params", problem[0], module, problem[1])

    def _check_mounts(self, registrations: Sequence[Registered]) -> None:
        """Routers with nothing on them that are mounted, and that nothing else can put anything on."""
        filled = {registration.router for registration in registrations}
        mounts = {
            (handler.node, handler.scope): (registration, router)
            for registration in registrations
            if registration.method == "use"
            for handler in registration.handlers
            if isinstance(handler.node, ast.Name | ast.Attribute)
            and (router := self.trees.router(handler.node, handler.scope)) is not None
            and router.key not in filled
            and isinstance(router.key, ast.Call)
        }
        if not mounts:
            return
        empty = {router.key for _, router in mounts.values()}
        mounted = {node for node, _ in mounts}
        for module in self.program:
            for scope in scopes_in(module.scope):
                for node in parents_of(scope):
                    if isinstance(node, ast.Name | ast.Attribute) and node not in mounted and empty:
                        router = self.trees.router(node, scope) if isinstance(node.ctx, ast.Load) else None
                        if router is not None:
                            empty.discard(router.key)
        for (node, scope), (registration, router) in mounts.items():
            if router.key in empty:
                message = nothing_mounted(path_of(self.trees, registration), ast.unparse(node))
                self.report(Problem("core-route", message, Node(node, scope)))


_IGNORE: Final = re.compile(r"#\s*type:\s*ignore(?:\[(?P<codes>[^\]]*)\])?")


def _ignored(finding: Finding) -> bool:
    """Return True if the line of a finding switches it off, with the comment that mypy goes by: `# type:
    ignore[core-env]`.
    """
    if not finding.file.endswith(".py"):
        return False
    match = _IGNORE.search(linecache.getline(finding.file, finding.line))
    if match is None:
        return False
    codes = {code.strip() for code in (match["codes"] or "").split(",")} - {""}
    return not codes or bool(codes & {finding.code, "core"})


def _names(class_: ClassRef) -> Iterator[str]:
    """The names that options may call a class by: that of the program, and those from folders further up."""
    own = class_.module.name.count(".")
    for name in dotted_names(str(class_.module.path)):
        if name.count(".") >= own:
            yield f"{name}.{class_.body.qualname}"
