"""The plugin's own options, and the configuration files of the project they lead to.

`[core-mypy]` in mypy.ini or setup.cfg, `[tool.core-mypy]` in pyproject.toml:

    config        one or more wrangler files, relative to this file; by default the nearest one above each module
    env           full names of the Env classes, or patterns (`*.env.Env`); by default every class over `Bindings`
    environments  names of environments to check, `top-level` among them; by default all

What is wrong with them is said where the Env stands, since a plugin has no other place to say it.
"""

from __future__ import annotations

import configparser
import hashlib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import attrs

from core.config.load import FILE_NAMES, load_all
from core.config.migrations import migration_digest
from core.config.model import Binding, Configuration
from core.config.sources import Sources, defined_names, read_sources
from core.config.sql import Schema, schema_of
from core.errors import ConfigurationError

__all__ = ["Configured", "Project", "Settings", "read_settings"]

_KEYS: Final = ("config", "env", "environments")


@attrs.frozen
class Settings:
    """The options as they were read. `env` is None where none were named; `problems` is what is wrong with them."""

    root: Path
    config: tuple[Path, ...] = ()
    env: tuple[str, ...] | None = None
    environments: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def names(self, fullname: str) -> bool:
        """Whether a class is named as an Env."""
        return self.env is not None and any(fnmatchcase(fullname, pattern) for pattern in self.env)


def read_settings(config_file: str | None) -> Settings:
    """Read the options beside mypy's own. Raises nothing."""
    if config_file is None:
        return Settings(Path.cwd())
    path = Path(config_file).absolute()
    root = path.parent
    try:
        table = _toml(path) if path.suffix == ".toml" else _ini(path)
    except Exception as error:  # mypy has read the same file, and said what is wrong with its own part
        return Settings(root, problems=(f"{path.name}: the options of core.mypy_plugin cannot be read: {error}",))
    problems: list[str] = []
    where = f"{path.name} [{'tool.' if path.suffix == '.toml' else ''}core-mypy]"
    values: dict[str, tuple[str, ...]] = {}
    for key, value in table.items():
        if key not in _KEYS:
            problems.append(f"{where}: there is no option {key}. The options are {', '.join(_KEYS)}")
            continue
        listed = _listed(value)
        if listed is None:
            problems.append(f"{where}: {key} must be a text or a list of texts")
        else:
            values[key] = listed
    return Settings(
        root,
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
    return table


def _ini(path: Path) -> Mapping[str, Any]:
    parser = configparser.RawConfigParser()
    parser.read_string(path.read_text("utf-8"), str(path))
    return dict(parser.items("core-mypy")) if parser.has_section("core-mypy") else {}


def _listed(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.replace("\n", ",").split(",") if part.strip())
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    return None


@attrs.frozen
class Configured:
    """A configuration file, read: its environments, or why it cannot be read. `digest` changes with all it depends on."""

    path: Path | None
    configurations: Sequence[Configuration] = ()
    problems: Sequence[str] = ()
    digest: str = ""

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


class Project:
    """What there is beside the Python modules: configuration files, migrations, and the sources as texts.

    Read at most once for each run of mypy; a daemon makes a new one when anything here changes.
    """

    def __init__(self, config_file: str | None) -> None:
        self.settings: Settings = read_settings(config_file)
        self._configured: dict[Path | None, Configured] = {}
        self._nearest: dict[Path, Path | None] = {}
        self._schemas: dict[Path, Schema] = {}
        self._migrations: dict[Path, str] = {}
        self._sources: Sources | None = None

    @property
    def sources(self) -> Sources:
        """The sources of the project as texts."""
        if self._sources is None:
            self._sources = read_sources(self.settings.root, FILE_NAMES)
        return self._sources

    def configured_for(self, module: str) -> Configured:
        """The configuration that a module belongs to: the nearest of the named ones, or the nearest above the module."""
        path = self._path_for(Path(module).absolute().parent)
        found = self._configured.get(path)
        if found is None:
            found = self._configured[path] = self._read(path)
        return found

    def _path_for(self, folder: Path) -> Path | None:
        if self.settings.config:
            above = [path for path in self.settings.config if path.parent.resolve() in (folder, *folder.parents)]
            if above:
                return max(above, key=lambda path: len(path.parent.resolve().parts))
            return self.settings.config[0]
        if folder not in self._nearest:
            self._nearest[folder] = next(
                (
                    directory / name
                    for directory in (folder, *folder.parents)
                    for name in FILE_NAMES
                    if (directory / name).is_file()
                ),
                None,
            )
        return self._nearest[folder]

    def _read(self, path: Path | None) -> Configured:
        if path is None:
            return Configured(
                None,
                problems=[
                    (
                        "no wrangler.toml, wrangler.json or wrangler.jsonc in the folder of this module or above. Write one, "
                        "name it in [core-mypy] config, or name the Env classes that have one in [core-mypy] env"
                    )
                ],
                digest="none",
            )
        digest = _digest([path, *sorted(path.parent.glob(".dev.vars*")), *sorted(path.parent.glob(".env*"))])
        if not path.is_file():
            return Configured(
                path, problems=[f"{path} is not there. Write it, or correct [core-mypy] config"], digest="none"
            )
        try:
            everything = load_all(path)
        except ConfigurationError as error:
            return Configured(path, problems=error.problems, digest=digest)
        except (OSError, ValueError) as error:
            return Configured(path, problems=[f"{path.name} cannot be read: {error}"], digest=digest)
        wanted = self.settings.environments
        names = [configuration.environment for configuration in everything]
        problems = [
            f"{path.name} has no environment {name}, which [core-mypy] environments names"
            for name in wanted
            if name not in names and name not in _TOP_LEVEL
        ]
        chosen = [
            configuration
            for configuration in everything
            if not wanted
            or configuration.environment in wanted
            or (configuration.environment is None and any(name in wanted for name in _TOP_LEVEL))
        ]
        return Configured(path, chosen, problems, digest)

    def entry_names(self, configured: Configured) -> frozenset[str] | None:
        """The names in the module of `main`, where a configuration has Durable Objects; else None."""
        for configuration in configured.configurations:
            if configuration.worker.durable_objects.bindings and configuration.worker.main:
                return defined_names(configuration.directory / configuration.worker.main)
        return None

    def schema(self, configuration: Configuration, database: Binding) -> Schema:
        """The schema of a database."""
        folder = configuration.migrations_directory(database.entry)
        schema = self._schemas.get(folder)
        if schema is None:
            schema = self._schemas[folder] = schema_of(folder)
        return schema

    def migrations(self, configured: Configured) -> str:
        """A digest of the migrations of all databases."""
        return "".join(
            self._migration(configuration.migrations_directory(binding.entry))
            for configuration in configured.configurations
            for binding in configuration.bindings.values()
            if binding.kind == "d1"
        )

    def _migration(self, folder: Path) -> str:
        digest = self._migrations.get(folder)
        if digest is None:
            digest = self._migrations[folder] = migration_digest(folder)[:16]
        return digest

    def digest(self) -> str:
        """A digest of everything, for a daemon: the options, every configuration that is known of, migrations, sources."""
        parts = [repr(self.settings), repr(sorted(self.sources.bases)), repr(sorted(self.sources.prefixes))]
        parts.append(str(self.sources.complete))
        for path in self.settings.config or self.sources.others:
            configured = self._configured.get(path) or self._read(path)
            names = self.entry_names(configured)
            parts += [str(path), configured.digest, self.migrations(configured), repr(sorted(names or ()))]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


_TOP_LEVEL: Final = ("top-level",)


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0")
        try:
            digest.update(path.read_bytes())
        except OSError:
            digest.update(b"\0")
    return digest.hexdigest()[:16]
