"""The plugin's own options, and the configuration files of the project they lead to.

`[core-mypy]` in mypy.ini or setup.cfg, `[tool.core-mypy]` in pyproject.toml:

    config        one or more wrangler files, relative to this file; by default the nearest one above each module
    env           full names of the Env classes, or patterns (`*.env.Env`); by default every class over `Bindings`
    environments  names of environments to check, `top-level` among them; by default all

Their mistakes are reported at the Env, since a plugin has no other place to report them.

One file, since the options are read for one use: to find the configuration files of a module, and their findings.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from core.analysis.extensions import declared
from core.analysis.kept import is_foreign, is_settled, stamp, stamp_of_names
from core.analysis.route_texts import linked_names, registered_names, route_parts
from core.analysis.sources import (
    CLASSES,
    FILES_AT_MOST,
    Sources,
    TextFacts,
    defined_names,
    named_nowhere,
    read_sources,
    text_facts,
)
from core.config.nearest import FILE_NAMES

if TYPE_CHECKING:
    from core.analysis.elsewhere import Elsewhere
    from core.analysis.results import Results
    from core.config.checks import Code
    from core.config.model import Binding, Configuration
    from core.sql.schema import Schema
    from core.sql.statement import Statement

__all__ = ["Configured", "Project", "Settings", "find_settings", "read_settings"]

_KEYS: Final = ("config", "env", "environments")


# Tuples and not attrs classes: most runs of mypy have nothing to check, and then importing attrs, cattrs and the
# model of the configuration would be most of the plugin's cost. Here only texts and digests are looked at, and
# whatever reads a configuration is imported by the first finding that needs it.
class Settings(NamedTuple):
    """The options as they were read. `env` is None where none were named; `problems` are their mistakes."""

    root: Path
    where: str = "[core-mypy]"
    config: tuple[Path, ...] = ()
    env: tuple[str, ...] | None = None
    environments: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def names(self, fullname: str) -> bool:
        """Return True if a class is named as an Env."""
        return self.env is not None and any(fnmatchcase(fullname, pattern) for pattern in self.env)

    def chosen(self, configurations: Sequence[Configuration]) -> list[Configuration]:
        """Those of the environments that are named, or all of them where none is."""
        named = [c for c in configurations if (c.environment or TOP_LEVEL) in self.environments]
        return named or list(configurations)


def find_settings(folder: Path) -> Settings | None:
    """The options of the nearest file above that has any. Raises DeveloperError where something is wrong with them."""
    from core.errors import DeveloperError

    for directory in (folder, *folder.parents):
        for name, section in (
            ("mypy.ini", "[core-mypy]"),
            ("pyproject.toml", "[tool.core-mypy]"),
            ("setup.cfg", "[core-mypy]"),
        ):
            file = directory / name
            if file.is_file() and section in file.read_text("utf-8", "replace"):
                settings = read_settings(str(file))
                if settings.problems:
                    raise DeveloperError("; ".join(settings.problems))
                return settings
        if (directory / ".git").exists():
            break
    return None


def read_settings(config_file: str | None) -> Settings:
    """Read the options beside mypy's own. Raises nothing."""
    if config_file is None:
        return Settings(Path.cwd())
    path = Path(config_file).absolute()
    root = path.parent
    try:
        table = _toml(path) if path.suffix == ".toml" else _ini(path)
    except Exception as error:  # mypy has read the same file, and reported the mistakes of its own part
        return Settings(
            root, path.name, problems=(f"{path.name}: the options of core.mypy_plugin cannot be read: {error}",)
        )
    problems: list[str] = []
    where = f"{path.name} [{'tool.' if path.suffix == '.toml' else ''}core-mypy]"
    values: dict[str, tuple[str, ...]] = {}
    for key, value in table.items():
        if key not in _KEYS:
            problems.append(f"{where}: there is no option {key}. The options are {', '.join(_KEYS)}")
            continue
        listed = _listed(value)
        if listed is None:
            problems.append(f"{where}: {key} must be a string or a list of strings")
        else:
            values[key] = listed
    return Settings(
        root,
        where,
        tuple(root / name for name in values.get("config", ())),
        values.get("env"),
        values.get("environments", ()),
        tuple(problems),
    )


def _toml(path: Path) -> Mapping[str, Any]:
    import tomllib

    table = tomllib.loads(path.read_text("utf-8")).get("tool", {}).get("core-mypy", {})
    if not isinstance(table, dict):
        raise ValueError("[tool.core-mypy] must be a table")
    return cast("dict[str, object]", table)


def _ini(path: Path) -> Mapping[str, Any]:
    import configparser

    parser = configparser.RawConfigParser()
    parser.read_string(path.read_text("utf-8"), str(path))
    return dict(parser.items("core-mypy")) if parser.has_section("core-mypy") else {}


def _listed(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.replace("\n", ",").split(",") if part.strip())
    if isinstance(value, list):
        items = cast("list[object]", value)
        texts = tuple(item for item in items if isinstance(item, str))
        return texts if len(texts) == len(items) else None
    return None


class Configured(NamedTuple):
    """A configuration file, read: its environments, or why it cannot be read."""

    path: Path | None
    configurations: Sequence[Configuration] = ()
    problems: Sequence[str] = ()

    def database(self, attribute: str | None) -> tuple[Configuration, Binding] | None:
        """The SQL database under an attribute of Env; of an unknown one, the only database there is."""
        only: dict[str, tuple[Configuration, Binding]] = {}
        for configuration in self.configurations:
            for binding in configuration.bindings.values():
                if binding.kind != "d1":
                    continue
                if attribute is not None and binding.name == attribute.lstrip("_"):
                    return configuration, binding
                only.setdefault(binding.name, (configuration, binding))
        return next(iter(only.values())) if len(only) == 1 else None


class Facts(NamedTuple):
    """The parts of a module's text that decide which edits beside it matter."""

    env: bool
    app: bool
    sql: bool
    queue: bool
    params: bool
    core: bool
    classes: frozenset[str]
    links: frozenset[bytes] = frozenset()


class _Source(NamedTuple):
    """The facts of a source that the next run may take, by the stamp of the file. `routes` are a digest of the parts of
    its text that make routes and the names in them, where some module has asked.
    """

    stamp: str
    facts: Facts
    found: TextFacts
    routes: tuple[str, frozenset[bytes]] | None = None


_SOURCES: Final = "sources"
_MAKERS: Final = (b"frozen", b"define", b"dataclass", b"mutable", b"attrs", b"attributes", b"@attr.s", b"@s")
_MAIN: Final = re.compile(r"^\s*[\"']?main[\"']?\s*[=:]\s*[\"']([^\"']+)[\"']", re.MULTILINE)
_APP: Final = rb"(?m)^(?:.*\bimport\b.*|app\b.*=.*)$"
"""The lines of an entry file that tell where its application is made."""
_FOLDER: Final = re.compile(r"migrations_dir[\"']?\s*[=:]\s*[\"']([^\"']+)[\"']")


def facts_of(text: bytes) -> Facts:
    """Read a module's text. A fact too many is only one more reason to check the module again, so words are enough."""
    env = b"class " in text and b"@" in text and any(maker in text for maker in _MAKERS)
    names: list[bytes] = re.findall(CLASSES, text) if env or b".prepare" in text else []
    return Facts(
        env,
        b"create_app" in text or b"App" in text,
        b".prepare" in text,
        b".queue" in text,
        b"params" in text or b"Literal" in text,
        b"core" in text,
        frozenset(name.decode("utf-8", "replace") for name in names),
        linked_names(text) if b"url_for" in text else frozenset(),
    )


class Project:
    """The files of a project beside its Python modules: configuration files, migrations, and the sources as strings.

    Read at most once for each run of mypy; a daemon makes a new one when anything here changes.
    """

    def __init__(self, config_file: str | None, search: Sequence[str] = (), results: Results | None = None) -> None:
        self.settings: Settings = read_settings(config_file)
        if declared().problems:
            self.settings = self.settings._replace(problems=(*self.settings.problems, *declared().problems))
        self._search = search
        self._results = results
        self._configured: dict[Path | None, Configured] = {}
        self._by_module: dict[str, Configured] = {}
        self._databases: dict[tuple[str, str | None], tuple[str, Path] | None] = {}
        self._statements: dict[str, tuple[_Known, _Known]] = {}
        self._migrations: dict[Path, str] = {}
        self._nearest: dict[str, Path | None] = {}
        self._libraries: set[str] = set()
        self._schemas: dict[Path, Schema] = {}
        self._levels: dict[Path | None, list[str]] = {}
        self._digests: dict[Path | None, str] = {}
        self._facts: dict[str, Facts] = {}
        self._texts: dict[str, _Source] = {}
        self._known: Mapping[str, _Source] = {}
        self._outside: dict[str, Facts] = {}
        self._sources: Sources | None = None
        self._handlers_text: str | None = None
        self._routes: tuple[str, frozenset[bytes]] | None = None
        self._elsewhere: Elsewhere | None = None
        self._config_file = config_file
        self._beside: set[str] = set()
        self._folders: dict[str, str] = {}

    # -- texts and digests

    @property
    def sources(self) -> Sources:
        """The sources of the project as texts."""
        if self._sources is None:
            self._known = (self._results.read(_SOURCES, "") if self._results is not None else None) or {}
            self._sources = read_sources(self.settings.root, FILE_NAMES, walked=self._walked, read=self._look)
        return self._sources

    @property
    def _handlers(self) -> str:
        """The handlers that routes are given, as a string for digests: made once, since every module asks for it."""
        if self._handlers_text is None:
            handlers = self.sources.handlers
            self._handlers_text = _hash(repr([(name, sorted(handlers[name])) for name in sorted(handlers)]).encode())
        return self._handlers_text

    @property
    def _events(self) -> list[str]:
        """The events that are handled, and where, for digests."""
        return [repr((event, sorted(files))) for event, files in sorted(self.sources.events.items())]

    def _routes_for(self, links: frozenset[bytes]) -> list[str]:
        """Everything elsewhere that the findings about `url_for` with these handlers depend on: all routes, and, of a
        handler that no route is given, the files that mention it.
        """
        if self._routes is None:
            digests: list[str] = []
            registered: frozenset[bytes] = frozenset()
            for path in sorted(path for path, facts in self._facts.items() if facts.core):
                source = self._texts[path]
                if source.routes is None:
                    parts = [*route_parts(_bytes(Path(path)))]
                    source = source._replace(routes=(_hash(b"\0".join(parts)), registered_names(parts)))
                    self._texts[path] = source
                digest, names = source.routes or ("", frozenset())
                digests += [path, digest]
                registered |= names
            self._routes = _hash("\0".join(digests).encode()), registered
        digest, registered = self._routes
        lost = links - registered
        mentions = (
            [path for path in sorted(self._facts) if any(name in _bytes(Path(path)) for name in lost)] if lost else []
        )
        return [digest, *mentions]

    @property
    def elsewhere(self) -> Elsewhere:
        """The routes that other modules register handlers on."""
        if self._elsewhere is None:
            from core.analysis.elsewhere import Elsewhere

            self._elsewhere = Elsewhere(self.settings.root, self._search, self.sources)
        return self._elsewhere

    def _look(self, path: str) -> TextFacts | None:
        """The facts of a source: those of the last run, where the file has the stamp that it had then."""
        now = stamp(path)
        source = self._known.get(path)
        if source is None or source.stamp != now:
            try:
                with open(path, "rb", buffering=0) as file:
                    text = file.read()
            except OSError:
                return None
            source = _Source(now, facts_of(text), text_facts(text))
        self._texts[path], self._facts[path] = source, source.facts
        return source.found

    def keep_sources(self, started: int) -> None:
        """Keep the facts of the sources for the next run, but for those that may change within their last time."""
        kept = {path: source for path, source in self._texts.items() if is_settled(source.stamp, started)}
        if self._results is not None and any(self._known.get(path) != source for path, source in kept.items()):
            self._results.write(_SOURCES, "", kept)

    def _walked(self, folder: str, names: Sequence[str]) -> None:
        self._folders[folder] = stamp_of_names(names)

    def unmatched(self, path: str = "", module: str = "") -> list[str]:
        """The names and patterns of `env` that no class of the project has.

        mypy's name of a module is only known for the one that is being checked, in `path`; the others may go by any of
        their names.
        """
        if not self.settings.env:
            return []
        sources, own = self.sources, os.path.abspath(path) if path else ""
        if not sources.complete and len(self._facts) >= FILES_AT_MOST:
            return []
        classes = {file: facts.classes for file, facts in self._facts.items() if file != own and facts.classes}
        known = self._facts.get(own) or self._outside.get(own)
        named = [f"{module}.{name}" for name in known.classes] if known is not None else []
        return [
            pattern
            for pattern in named_nowhere(self.settings.env, classes)
            if not any(fnmatchcase(name, pattern) or pattern.startswith(f"{name}.") for name in named)
            and not self._is_elsewhere(pattern)
        ]

    def _is_elsewhere(self, name: str) -> bool:
        """Return True if a class is in a module that mypy is told to look for outside of the project."""
        module, _, bare = name.rpartition(".")
        for folder in self._search:
            base = os.path.join(folder, *module.split("."))
            for path in (f"{base}.py", os.path.join(base, "__init__.py")):
                try:
                    with open(path, "rb") as file:
                        return bare.encode() in re.findall(CLASSES, file.read())
                except OSError:
                    continue
        return False

    def data_for(self, module: str) -> str | None:
        """A digest of the files beside a module that its findings depend on; None where there are none."""
        sources = self.sources
        path = os.path.abspath(module)
        facts = self._facts.get(path) or self._outside.get(path)
        if facts is None:
            if is_foreign(path):
                return None
            # Apart from the project's own: what is said of a handler is the same whichever module is asked about first.
            try:
                with open(path, "rb") as file:
                    facts = self._outside[path] = facts_of(file.read())
            except OSError:
                return None
        data: list[str] = []
        if facts.env or facts.app or facts.sql or facts.queue:
            data += [repr(self.settings), self._digest_for(self._path_for(os.path.dirname(path)))]
        if facts.env or facts.app:
            data += [*self.unmatched(), str("Bindings" in sources.bases)]
        if facts.app:
            data += self._events
        if facts.env or facts.sql:
            data += [*sorted(facts.classes & sources.bases), str(sources.complete)]
        if facts.core:
            data += declared().sources
            data += self._levels_for(self._path_for(os.path.dirname(path)))
        if facts.params:
            data += [str(sources.complete), str(sources.computed), *sorted(sources.prefixes), self._handlers]
        if facts.sql:
            data += sorted(sources.tables)
        if facts.links:
            data += [
                str(sources.complete),
                str(sources.computed),
                *sorted(sources.prefixes),
                *self._routes_for(facts.links),
            ]
        return _hash("\0".join(data).encode()) if data else None

    def all_data(self) -> tuple[dict[str, str | None], set[str], dict[str, str]] | None:
        """The data of every source, the files that it was made from, and the stamps of the folders.

        None where it was made from other files, too.
        """
        if self.settings.env and self._search:
            return None
        sources = self.sources
        data = {path: self.data_for(path) for path in self._facts}
        around = {above for folder in self._nearest for above in (Path(folder), *Path(folder).parents)}
        asked = {str(folder / name) for folder in around for name in (*FILE_NAMES, "pyproject.toml")}
        files = {*self._facts, *map(str, (*sources.others, *self.settings.config)), *self._beside, *asked}
        return data, files | ({self._config_file} if self._config_file is not None else set()), self._folders

    def digest(self) -> str:
        """A digest of everything, for a daemon: the options, every configuration, all migrations, the sources."""
        sources = self.sources
        parts = [
            repr(self.settings),
            repr(sorted(sources.bases)),
            repr(sorted(sources.prefixes)),
            self._handlers,
            repr(sorted(sources.tables)),
            str((sources.complete, sources.computed)),
            repr(self.unmatched()),
            *declared().sources,
            *self._events,
        ]
        links = frozenset(name for facts in self._facts.values() for name in facts.links)
        if links:
            parts += self._routes_for(links)
        for path in self.settings.config or sources.others:
            parts += [str(path), self._digest_for(path)]
        return _hash("\0".join(parts).encode())

    def _digest_for(self, path: Path | None) -> str:
        """A digest of a configuration file and of the files it leads to: secrets, migrations, the names in `main`."""
        digest = self._digests.get(path)
        if digest is None:
            digest = self._digests[path] = self._make_digest(path) if path is not None else "none"
        return digest

    def _levels_for(self, path: Path | None) -> list[str]:
        """Return the levels of findings of a configuration file, which hold in every module."""
        if path not in self._levels:
            self._levels[path] = _checks_of(path) if path is not None else []
        return self._levels[path]

    def _make_digest(self, path: Path) -> str:
        folder = path.parent
        self._beside.add(str(path))
        self._folders[str(folder)] = stamp(str(folder))
        try:
            text = path.read_text("utf-8", errors="replace")
        except OSError:
            return "not there"
        parts = [text.encode()]
        for beside in sorted(name for name in os.listdir(folder) if name.startswith((".dev.vars", ".env"))):
            self._beside.add(str(folder / beside))
            parts += [beside.encode(), _bytes(folder / beside)]
        for name in sorted({"migrations", *_FOLDER.findall(text)}):
            self._folders[str(folder / name)] = stamp(str(folder / name))
            try:
                files = sorted(file for file in os.listdir(folder / name) if file.endswith(".sql"))
            except OSError:
                continue
            for file in files:
                self._beside.add(str(folder / name / file))
                parts += [f"{name}/{file}".encode(), _bytes(folder / name / file)]
        main = _MAIN.search(text)
        if "durable_objects" in text and main is not None:
            self._beside.add(str(folder / main[1]))
            parts.append(repr(sorted(defined_names(folder / main[1]) or ())).encode())
        if ("crons" in text or "consumers" in text) and main is not None:
            self._beside.add(str(folder / main[1]))
            parts += re.findall(_APP, _bytes(folder / main[1]))
        return _hash(b"\0".join(parts))

    # -- configurations

    def configured_for(self, module: str) -> Configured:
        """The configuration that a module belongs to: the nearest of the named ones, or the nearest above the
        module.
        """
        found = self._by_module.get(module)
        if found is None:
            folder = os.path.dirname(os.path.abspath(module))
            path = self._path_for(folder)
            found = Configured(None) if folder in self._libraries else self._configured.get(path)
            if found is None:
                found = self._configured[path] = self._read(path)
            self._by_module[module] = found
        return found

    def database(self, module: str, attribute: str | None) -> tuple[str, Path] | None:
        """The SQL database under an attribute of the Env that a module uses: its name, and the folder of its
        migrations.
        """
        key = (module, attribute)
        if key not in self._databases:
            found = self.configured_for(module).database(attribute)
            self._databases[key] = (
                (found[1].name, found[0].migrations_directory(found[1].entry)) if found is not None else None
            )
        return self._databases[key]

    def statement(self, module: str, attribute: str | None, sql: str) -> tuple[str, Statement] | None:
        """The name of the SQL database under such an attribute, and the facts about a statement that it is given."""
        found = self.database(module, attribute)
        if found is None:
            return None
        name, folder = found
        if self._results is None:
            return name, self.schema(folder).analyse(sql)
        key, statement = self._kept_statement(module, folder, sql)
        if statement is None:
            schema = self.schema(folder)
            statement = schema.analyse(sql)
            key = (schema.digest, sql)
        self._statements[module][1][key] = statement
        return name, statement

    def _kept_statement(self, module: str, folder: Path, sql: str) -> tuple[tuple[str, str], Statement | None]:
        """The key of the facts about a statement, and the facts where they are kept."""
        if module not in self._statements:
            before = self._results.read(f"statements {module}", "") if self._results is not None else None
            self._statements[module] = before or {}, {}
        before, now = self._statements[module]
        if folder not in self._migrations:
            from core.sql.migrations import migration_digest

            self._migrations[folder] = migration_digest(folder)
        key = (self._migrations[folder], sql)
        return key, now.get(key) or before.get(key)

    def keep_statements(self, module: str) -> None:
        """Keep the facts about the statements of a module, as far as they were asked for, for the next run."""
        before, now = self._statements.get(module, ({}, {}))
        if self._results is not None and before.keys() != now.keys():
            self._results.write(f"statements {module}", "", now)

    def _path_for(self, folder: str) -> Path | None:
        if folder not in self._nearest:
            self._nearest[folder] = self._find(Path(folder))
        return self._nearest[folder]

    def _find(self, folder: Path) -> Path | None:
        around = (folder, *folder.parents)
        if self.settings.config:
            above = [path for path in self.settings.config if path.parent.resolve() in around]
            return max(above, key=lambda path: len(path.parent.resolve().parts), default=self.settings.config[0])
        project: Path | None = None
        for directory in around:
            for name in FILE_NAMES:
                if (directory / name).is_file():
                    # A project of its own on the way up, without a worker in it, is a library of several workers.
                    shared = project is not None and project != directory and not _holds_main(project, directory / name)
                    if shared:
                        self._libraries.add(str(folder))
                        return None
                    return directory / name
            if project is None and (directory / "pyproject.toml").is_file():
                project = directory
        return None

    def _read(self, path: Path | None) -> Configured:
        if path is None:
            return Configured(
                None,
                problems=(
                    (
                        "no wrangler.toml, wrangler.json or wrangler.jsonc in the folder of this module or above. Write "
                        "one, name it in [core-mypy] config, or name the Env classes that have one in [core-mypy] env"
                    ),
                ),
            )
        if not path.is_file():
            return Configured(path, problems=(f"{path} is not there. Write it, or correct [core-mypy] config",))
        if self._results is None:
            return self._load(path)
        name, digest = f"configuration {path}", self._digest_for(path)
        key = repr((digest, self.settings.environments))
        found: Configured | None = self._results.read(name, key)
        if found is None:
            found = self._load(path)
            if self._make_digest(path) == digest:  # else it was edited meanwhile
                self._results.write(name, key, found)
        return found

    def _load(self, path: Path) -> Configured:
        from core.config.load import load_all
        from core.errors import ConfigurationError

        try:
            everything = load_all(path)
        except ConfigurationError as error:
            return Configured(path, problems=tuple(error.problems))
        except (OSError, ValueError) as error:
            return Configured(path, problems=(f"{path.name} cannot be read: {error}",))
        wanted = self.settings.environments
        names = [configuration.environment for configuration in everything]
        problems = tuple(
            f"{path.name} has no environment {name}, which [core-mypy] environments names"
            for name in wanted
            if name not in names and name != TOP_LEVEL
        )
        chosen = [
            configuration
            for configuration in everything
            if not wanted or (TOP_LEVEL if configuration.environment is None else configuration.environment) in wanted
        ]
        return Configured(path, tuple(chosen), problems)

    def entry_names(self, configured: Configured) -> frozenset[str] | None:
        """The names in the module of `main`, where a configuration has Durable Objects; else None."""
        for configuration in configured.configurations:
            if configuration.worker.durable_objects.bindings and configuration.worker.main:
                return defined_names(configuration.directory / configuration.worker.main)
        return None

    def unhandled(self, module: str, line: int, column: int) -> Sequence[tuple[Code, str]]:
        """The crons and queues that nothing handles, for the call that makes the application of a configuration."""
        configured = self.configured_for(module)
        events = self.sources.events

        def names_of(method: str) -> set[str]:
            own = (None, configured.path)
            return {
                name
                for (other, name), files in events.items()
                if other == method and any(self.configured_for(file).path in own for file in files)
            }

        from core.analysis.events import unhandled

        found = [*unhandled(configured.configurations, names_of)] if self.sources.complete else []
        made = self.elsewhere.app_call(configured.configurations[0]) if found else None
        here = made is not None and (str(made[0]), made[1].lineno, made[1].col_offset) == (
            os.path.realpath(module),
            line,
            column,
        )
        return found if here else ()

    def schema(self, folder: Path) -> Schema:
        """The schema that the migrations in a folder make."""
        schema = self._schemas.get(folder)
        if schema is None:
            from core.sql.schema import schema_of

            schema = self._schemas[folder] = schema_of(folder)
        return schema


TOP_LEVEL: Final = "top-level"
_Known: TypeAlias = "dict[tuple[str, str], Statement]"
"""The facts about statements, by the digest of the migrations and their text."""


def _holds_main(folder: Path, configuration: Path) -> bool:
    """Return True if the entry file of a configuration lies in a folder; so it is taken where the file names none."""
    main = _MAIN.search(_bytes(configuration).decode("utf-8", "replace"))
    return main is None or (configuration.parent / main[1]).resolve().is_relative_to(folder.resolve())


def _checks_of(path: Path) -> list[str]:
    """Return the lines of a configuration file about levels of findings: the lines below `[core.checks]`, or all of a
    JSON file.
    """
    text = _bytes(path).decode("utf-8", "replace")
    if "checks" not in text:
        return []
    if path.suffix != ".toml":
        return [text]
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        inside = "checks" in line if line.lstrip().startswith("[") else inside or "checks" in line
        if inside:
            found.append(line)
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
