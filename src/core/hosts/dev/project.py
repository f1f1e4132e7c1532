"""From a configuration file to an application with its bindings: what `core dev` loads, once for each process.

`main` names a file. The folder above its outermost package is put on the path, and the file imported by its dotted
name, so that `src/users/main.py` with `src/users/__init__.py` beside it is `users.main`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from core.app import App
from core.backends.embedded import migrations
from core.backends.embedded.bindings import EmbeddedBindings, embed
from core.backends.embedded.store import Store
from core.config.model import Configuration
from core.env import inject
from core.errors import ConfigurationError, DeveloperError
from core.hosts.dev.options import Options
from core.hosts.dev.record import Recorder
from core.hosts.dev.traced import trace

__all__ = [
    "Loaded",
    "find_app",
    "import_app",
    "load",
    "migrations_of",
    "module_of",
    "open_bindings",
    "read_configuration",
]


@attrs.frozen
class Loaded:
    """An application, its bindings on their store, and what a developer should hear about them."""

    root: Path
    configuration: Configuration
    app: App[Any]
    env: object
    store: Store
    bindings: EmbeddedBindings
    notices: Sequence[str]

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each binding by its name."""
        return {name: binding.kind for name, binding in self.configuration.bindings.items()}

    @property
    def crons(self) -> list[str]:
        """The cron expressions of the configuration."""
        return list(self.configuration.worker.triggers.crons)

    def close(self) -> None:
        """Give the state back."""
        self.store.close()


async def load(options: Options, recorder: Recorder | None = None) -> Loaded:
    """Read the configuration, import the application, open the bindings, apply migrations and build the Env.

    With a `recorder`, every call of a binding is noted in it. Raises DeveloperError, and whatever the application's
    own modules raise.
    """
    configuration = read_configuration(options)
    app = import_app(configuration)
    app.check()
    store, bindings = open_bindings(options, configuration)
    try:
        notices = [f"{name}: {reason}" for name, reason in bindings.absent.items()]
        notices += await _migrate(configuration, bindings, apply=options.migrate)
        # Once as they are, for the sake of messages that name what was found, and once traced.
        env = inject(app.env_class, bindings.values)
        if recorder is not None:
            kinds = {name: binding.kind for name, binding in configuration.bindings.items()}
            traced = {
                name: value
                if kinds[name] in ("var", "secret")
                else trace(value, name=name, kind=kinds[name], recorder=recorder)
                for name, value in bindings.values.items()
            }
            env = inject(app.env_class, traced)
    except BaseException:
        store.close()
        raise
    return Loaded(options.root, configuration, app, env, store, bindings, notices)


def read_configuration(options: Options) -> Configuration:
    """The configuration of the environment that was asked for. Raises ConfigurationError with every mistake."""
    from core.config.load import load as load_configuration

    return load_configuration(options.config, environment=options.environment)


def open_bindings(options: Options, configuration: Configuration) -> tuple[Store, EmbeddedBindings]:
    """The embedded bindings on the state folder. Close the store when done."""
    from core.config.secrets import read_local_secrets

    folder = options.state_folder
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", "utf-8")
    store = Store(folder)
    try:
        local = read_local_secrets(configuration.directory, configuration.environment)
        return store, embed(configuration, store, secrets=local.values)
    except BaseException:
        store.close()
        raise


async def _migrate(configuration: Configuration, bindings: EmbeddedBindings, *, apply: bool) -> list[str]:
    said: list[str] = []
    for name, binding in configuration.bindings.items():
        if binding.kind != "d1":
            continue
        database: Any = bindings.values[name]
        files = migrations_of(configuration, name)
        table = binding.entry.migrations_table
        if apply:
            done = await migrations.apply(database, files, table=table)
            if done:
                said.append(f"{name}: applied {', '.join(file.name for file in done)}")
        else:
            left = await migrations.pending(database, files, table=table)
            if left:
                names = ", ".join(file.name for file in left)
                said.append(f"{name}: pending {names}. Apply with `core migrate apply`")
    return said


def migrations_of(configuration: Configuration, name: str) -> list[migrations.Migration]:
    """The migrations of a database by its binding's name; none where it has no folder of them."""
    folder = configuration.migrations_directory(configuration.bindings[name].entry)
    return migrations.read(folder) if folder.is_dir() else []


# -- importing


def import_app(configuration: Configuration) -> App[Any]:
    """Import the module that `main` names and return its application. Raises ConfigurationError where there is none."""
    worker = configuration.worker
    directory = configuration.directory
    module_name: str | None = None
    attribute = "app"
    if worker.core.app is not None:
        module_name, _, named = worker.core.app.partition(":")
        attribute = named or "app"
    if worker.main is None:
        if module_name is None:
            raise ConfigurationError(
                [f'{configuration.path.name}: main is missing. Write the entry file, as in main = "src/main.py"']
            )
        _put_on_path(directory / "src" if (directory / "src").is_dir() else directory)
    else:
        file = (directory / worker.main).resolve()
        if not file.is_file():
            raise ConfigurationError(
                [f'{configuration.path.name}: main = "{worker.main}" is no file. Write the path of the entry file']
            )
        folder, own_name = module_of(file)
        _put_on_path(folder)
        module_name = module_name or own_name
    importlib.invalidate_caches()
    module = importlib.import_module(module_name)
    return find_app(module, attribute)


def find_app(module: Any, attribute: str = "app") -> App[Any]:
    """The application of a module. Raises DeveloperError where it is missing or something else."""
    app = getattr(module, attribute, None)
    if isinstance(app, App):
        return app
    name = getattr(module, "__name__", "the entry file")
    if app is None:
        others = [key for key, value in vars(module).items() if isinstance(value, App)]
        hint = f'. There is {others[0]}: write [core] app = "{name}:{others[0]}"' if others else ""
        raise DeveloperError(f"{name} has no `{attribute}`. Write `{attribute} = create_app(Env)` in it{hint}")
    raise DeveloperError(
        f"{name}.{attribute} is a {type(app).__name__} and no App. Write `{attribute} = create_app(Env)`"
    )


def module_of(file: Path) -> tuple[Path, str]:
    """The folder to put on the path, and the dotted name, of the module in `file`."""
    parts = [file.stem] if file.stem != "__init__" else []
    folder = file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts) or file.parent.name


def _put_on_path(folder: Path) -> None:
    text = str(folder)
    if text not in sys.path:
        sys.path.insert(0, text)
