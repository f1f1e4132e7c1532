"""A whole program against its configuration: the findings of `core check`.

What is registered is told by the program's own start, Env classes and the bodies of functions are read from the texts:
the file that `main` names, and all that it imports. Nothing is reported about code that is not understood; what could
not be read is counted and named.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from core.config.checks import Severity
from core.config.model import Configuration
from core.config.words import did_you_mean
from core.errors import ConfigurationError
from core.program.ask import ask
from core.program.bodies import Bodies
from core.program.cache import stamps
from core.program.classes import classes_in
from core.program.databases import Behind, CallPlace, Databases
from core.program.entry import OTHER_FOLDERS, Entry, entry_of, import_roots
from core.program.envs import ANYTHING, EnvClass, check_env, declares_bindings, migration_problems
from core.program.extensions import declared
from core.program.findings import Finding, Unread, configuration_findings, is_ignored, level_of, levelled, sort_findings
from core.program.module_rules import Memory
from core.program.modules import ClassScope, Module, Modules
from core.program.reader import Reader
from core.program.registered import registered
from core.program.settings import Settings
from core.program.sources import Sources, dotted_names, may_have, read_sources, source_files
from core.program.table import Env, Place, Table
from core.program.worker import worker_findings

if TYPE_CHECKING:
    from core.program.row_classes import RowClasses


@attrs.frozen
class Options:
    """`env`: full names or patterns of Env classes, in place of all over `Bindings`. `paths`: further files or folders.

    `option` is where `env` was read, for messages. `root` is the folder that the options stand in: a name of `env` may
    be that of another worker's class below it. `python` is the interpreter that a type checker has, which tells itself
    of packages that are not installed. `problems` are mistakes of the options, which every Env tells.
    """

    env: Sequence[str] | None = None
    paths: Sequence[Path] = ()
    option: str = "--env-class"
    root: Path | None = None
    python: str = ""
    problems: Sequence[str] = ()

    @classmethod
    def of(
        cls, settings: Settings | None, paths: Sequence[Path] = (), problems: Sequence[str] = (), python: str = ""
    ) -> Options:
        """The options of the mypy plugin, which hold for every check of a program."""
        if settings is None:
            return cls(paths=paths)
        return cls(settings.env, paths, f"{settings.where} env", settings.root, python, problems)


@attrs.frozen
class Proof:
    """The findings, and what was proven: `names` of Envs with a known kind, `handlers` of routes and events, and
    `statements`. `unread` are the handlers and statements that were not read.
    """

    findings: Sequence[Finding]
    names: int
    handlers: int
    statements: int
    unread: Sequence[Unread] = ()
    ignored: Sequence[Finding] = ()
    """The findings that the program switches off by `# type: ignore` at their lines."""
    files: frozenset[str] = attrs.field(default=frozenset[str](), eq=False)
    """The files and folders that all of it was made from."""
    environ: Sequence[tuple[str, str]] = attrs.field(default=(), eq=False)
    """The variables that the program reads when it is imported, with digests of their values."""
    called: Callable[[str, CallPlace], Behind | None] = attrs.field(default=lambda path, place: None, eq=False)
    """The statement of a call in a file."""

    def not_read(self, configurations: Sequence[Configuration], *, strict: bool = False) -> Iterator[Finding]:
        """Every handler and statement that was not read (`core-unread`): notes, unless the project or `strict` wants
        more.
        """
        for one in dict.fromkeys(self.unread):
            level = "error" if strict else level_of("core-unread", configurations, one.file)
            severity: Severity = "error" if level == "error" else "warning" if level == "warning" else "note"
            found = Finding("core-unread", f"this {one.what} is not read: {one.why}", one.file, one.line, 0, severity)
            if not is_ignored(found):
                yield found


def prove(
    configurations: Sequence[Configuration],
    options: Options | None = None,
    memory: Memory | None = None,
) -> Proof:
    """Everything that is wrong between a program and the given environments of its configuration, and the files that
    were read.

    With the `memory` of an earlier look, only modules are analysed whose text, or whose dependencies, have changed.
    """
    options = options or Options()
    memory = memory if memory is not None else Memory()
    if not configurations:
        return Proof([*_at_every_env(options, memory)], 0, 0, 0)
    program = _Program(configurations, options, memory)
    found = program.findings()
    memory.keep()
    ignored = [*filter(is_ignored, found)]
    return Proof(
        [finding for finding in found if finding not in ignored],
        program.names,
        program.handlers,
        program.statements,
        program.unread,
        ignored,
        program.files(),
        program.table.environ,
        program.receivers.called,
    )


def check_worker(configurations: Sequence[Configuration]) -> list[Finding]:
    """The findings of `core-worker` alone, which a build is stopped by."""
    program = _Program(configurations, Options(), Memory(), table=Table())
    found = sort_findings(worker_findings(program.modules, program.program, configurations))
    return [finding for finding in levelled(found, configurations) if not is_ignored(finding)]


def check_program(configurations: Sequence[Configuration], options: Options | None = None) -> list[Finding]:
    """The findings alone."""
    return list(prove(configurations, options).findings)


def find_env(configurations: Sequence[Configuration], name: str, file: Path | None = None) -> list[EnvClass]:
    """The Env classes of that name in the program, or in one file of it."""
    paths = [file] if file is not None and file.is_file() else ()
    program = _Program(configurations, Options(paths=paths), Memory(), table=Table())
    return [
        program.reader.env_class(class_)
        for class_ in program.envs()
        if class_.node.name == name and (file is None or class_.module.path == file.resolve())
    ]


def find_rows(configurations: Sequence[Configuration], paths: Sequence[Path] = ()) -> RowClasses:
    """The classes that rows become: all of them, or those that the queries in files or folders need."""
    from core.program.row_classes import RowClasses

    program = _Program(configurations, Options(paths=paths), Memory())
    files = {module.path for module in program.modules_of(paths)} if paths else None
    rows = RowClasses(program.receivers, program.program, files)
    rows.problems += program.modules.problems
    return rows


def _at_every_env(options: Options, memory: Memory) -> Iterator[Finding]:
    """The problems of a program without a configuration, at every Env in its files."""
    modules = Modules(import_roots(options.root or Path.cwd(), None), memory.modules)
    reader = Reader(modules)
    for module in map(modules.add, options.paths):
        for class_ in classes_in(module) if module is not None else ():
            for problem in options.problems if reader.is_env(class_) else ():
                message = f"{class_.node.name}: {problem}"
                yield Finding("core-env", message, str(class_.module.path), class_.node.lineno)


class _Program:
    def __init__(
        self,
        configurations: Sequence[Configuration],
        options: Options,
        memory: Memory,
        table: Table | None = None,
    ) -> None:
        self.memory = memory
        self.configurations = configurations
        self.options = options
        self.names = self.statements = 0
        self.unread: list[Unread] = []
        self.configuration = configurations[0]
        self.directory = self.configuration.directory.resolve()
        self.found: list[Finding] = []
        entry: Entry | None = None
        try:
            entry = entry_of(self.configuration)
        except ConfigurationError as error:
            if self.configuration.worker.main is not None:
                self.found += configuration_findings(error, self.configuration.path)
        if table is None:
            table = Table() if entry is None else ask(entry, python=options.python, assume=bool(options.python))
        self.table: Table = table
        main = Path(entry.file) if entry is not None and entry.file else None
        roots = [*import_roots(self.directory, main), *map(Path, table.path)]
        self.modules = Modules(list(dict.fromkeys(roots)), self.memory.modules)
        start = self._start(main, options.paths)
        self.program = self.modules.reachable(start)
        self.reader = Reader(self.modules, self._named(options.env) if options.env is not None else None)
        self.sources: Sources = read_sources(self.directory)
        self.modules.derived = self.sources.bases
        bodies = Bodies(table, self.modules, self.program)
        self.handlers: int = bodies.handlers
        self.receivers = Databases(self.reader, bodies, configurations, self.sources)

    def findings(self) -> list[Finding]:
        linecache.checkcache()
        for text in declared().problems:
            self.found.append(Finding("core-env", text, str(self.configuration.path), 1))
        self.found += self.modules.problems
        self._check_envs()
        self._check_apps()
        self.found += registered(self.receivers)
        self.unread += self.receivers.bodies.unread
        whole = self._whole()
        for module in self.program:
            looked = self.memory.look(self.receivers, module, whole)
            self.found += looked.findings
            self.statements += looked.statements
            self.unread += looked.unread
        if (
            not self.found
            and not (self.handlers + self.statements or self.unread)
            and not any(True for _ in self.envs())
        ):
            message = (
                "nothing was found to compare with this file: no Env, no route and no statement of SQL. Name the "
                "program's file with main, with app in [core], or as a PATH"
            )
            self.found.append(Finding("core-env", message, str(self.configuration.path), 1))
        return [*levelled(sort_findings(self.found), self.configurations)]

    def files(self) -> frozenset[str]:
        """The files and folders that the findings were made from; none where a start does not say them all."""
        if not self.table.repeats:
            return frozenset()
        files = {*self.sources.files, *map(str, self.modules.files), *self._migrations(), *self.table.files}
        for configuration in self.configurations:
            folder = configuration.directory
            secrets = (path for path in folder.iterdir() if path.name.startswith((".env", ".dev.vars")))
            files |= {str(configuration.path), *map(str, secrets)}
        folders = {*map(os.path.dirname, files), *map(str, self.modules.roots), *self.table.folders}
        for path in [*folders]:
            while path.startswith(f"{self.directory}{os.sep}"):
                path = os.path.dirname(path)
                folders.add(path)
        return frozenset(files | folders)

    def _whole(self) -> str:
        """A digest of everything that the findings of every module depend on: the configuration, the migrations, and
        facts of all the texts.
        """
        facts = [sorted(self.sources.bases), sorted(self.sources.tables)]
        named, migrations = sorted(self.reader.named or ()), stamps(self._migrations())
        parts = (self.configurations, self.options.env, named, migrations, facts, declared().sources)
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def _migrations(self) -> list[str]:
        """The folders of the migrations, and the files in them."""
        folders = {
            configuration.migrations_directory(binding.entry)
            for configuration in self.configurations
            for binding in configuration.bindings.values()
            if binding.kind == "d1"
        }
        return [str(path) for folder in sorted(folders) for path in (folder, *sorted(folder.glob("*.sql")))]

    # -- the files

    def _start(self, main: Path | None, paths: Sequence[Path]) -> list[Module]:
        files = [main] if main is not None else []
        # A module that is imported by a name that is computed is one of the program, too.
        imported = map(Path, self.table.modules)
        files += [file for file in imported if any(file.is_relative_to(root) for root in self.modules.roots)]
        given = self.modules_of(paths)
        if not files and not given:
            found = map(Path, sorted(source_files(self.directory)))
            files = [file for file in found if OTHER_FOLDERS.isdisjoint(file.relative_to(self.directory).parts)]
        return [*(module for module in map(self.modules.add, files) if module is not None), *given]

    def modules_of(self, paths: Sequence[Path]) -> list[Module]:
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
        """The problems of names in the options that no class has."""
        patterns = [pattern for pattern in self.options.env or () if not self._named([pattern])]
        classes = list(self._classes()) if patterns else []
        if patterns and self.options.root is not None:
            own = {str(module.path) for module in self.program}
            others = [path for path in source_files(self.options.root.resolve()) if path not in own]
            patterns = [pattern for pattern in patterns if not any(may_have(path, pattern) for path in others)]
        near = [class_.name for class_ in classes if self.reader.is_marked(class_)] or [c.name for c in classes]
        other = "Write the full name of a class, or take it out"
        return [
            f"{self.options.option} names {name}, and no class is called that. {did_you_mean(name, sorted(near), other)}"
            for name in patterns
        ]

    # -- Env

    def _classes(self) -> Iterator[ClassScope]:
        return (class_ for module in self.program for class_ in classes_in(module))

    def envs(self) -> Iterator[ClassScope]:
        return filter(self.reader.is_env, self._classes())

    def _check_envs(self) -> None:
        names = frozenset(self.table.objects) if self.table.finished else None
        unmatched = self._unmatched()
        is_reported = False
        for class_ in self._classes():
            node, checked = class_.node, self.reader.is_env(class_)
            if not (checked or self.reader.is_marked(class_)):
                continue
            place = str(class_.module.path), node.lineno, node.col_offset + 1
            is_reported = is_reported or bool(unmatched)
            at_class = [*unmatched, *(self.options.problems if checked else ())]
            self.found += (Finding("core-env", f"{node.name}: {problem}", *place) for problem in at_class)
            if not checked:
                continue
            own = any(isinstance(statement, ast.AnnAssign) for statement in node.body)
            if own and not node.decorator_list and not self.reader.is_protocol(class_) and not node.keywords:
                message = f"{node.name} has attributes of its own but no decorator. Put @attrs.frozen above it"
                self.found.append(Finding("core-env", message, *place))
                continue
            env_class = self.reader.env_class(class_)
            self.names += sum(a.kind not in ANYTHING and not a.inherited for a in env_class.attributes)
            self.found += check_env(env_class, self.configurations, entry_names=names)
            self.found += migration_problems(env_class, self.configurations, self.receivers.schema)
        if not is_reported:
            # mypy tells what is in a file of Python alone.
            where = next((one.place for one in self.table.apps), Place(str(self.configuration.path), 1))
            self.found += (Finding("core-env", problem, *where) for problem in unmatched)

    def _check_apps(self) -> None:
        """Every application: over a class that is an Env, wherever there are bindings to compare with."""
        known = self.options.env is not None or any(True for _ in self.envs())
        binding = None if known else declares_bindings(self.configurations)
        message = ""
        if binding is not None:
            message = (
                f"{binding.place} declares {binding.name}, and the program has no Env to compare it with. "
                "Write class Env(Bindings) as `core types` does, and create_app(Env)"
            )
        for app in self.table.apps:
            if app.env is not None and not app.env.bindings and self.options.env is None:
                self.found.append(Finding("core-env", _not_bindings(app.env), *app.place))
            elif app.env is not None:
                self.found += (Finding("core-env", problem, *app.place) for problem in app.env.problems)
            elif message and self.table.finished and not self.table.assumed:
                self.found.append(Finding("core-env", message, *app.place))
        if binding is not None and not self.table.apps:
            self.found.append(Finding("core-env", message, str(self.configuration.path), binding.line or 1))


def _not_bindings(env: Env) -> str:
    """`create_app(Env)` over a class that is not an Env."""
    name = env.qualname
    problem = f"create_app({name}): {name} does not derive from Bindings, so it is compared with nothing"
    if env.module == "builtins":
        return f"{problem}. Write class Env(Bindings), and create_app(Env)"
    return (
        f"{problem}. Write class {name}(Bindings), or env = {env.module}.{name} under [core-mypy] in mypy.ini (a string "
        "under [tool.core-mypy] in pyproject.toml)"
    )


def _names(class_: ClassScope) -> Iterator[str]:
    """The names that options may call a class by: that of the program, and those from folders further up."""
    own = class_.module.name.count(".")
    for name in dotted_names(str(class_.module.path)):
        if name.count(".") >= own:
            yield f"{name}.{class_.qualname}"
