"""The files of a program: the one that it starts with, its application, and the folders that its imports start from.

`main` names a file. The folder of `base_dir`, and else the one above the file's outermost package, is put on the path,
and the file imported by its dotted name, so that `src/users/main.py` with `src/users/__init__.py` beside it is
`users.main`.
"""

from __future__ import annotations

import sys
from importlib import import_module, invalidate_caches
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from core.errors import ConfigurationError

if TYPE_CHECKING:
    from types import ModuleType

    from core.config.model import Configuration

OTHER_FOLDERS: Final = frozenset(
    {"node_modules", "__pycache__", "tests", "test", "build", "dist", "htmlcov", "venv", "site-packages"}
)
"""Folders of a project that are no part of its application; those with a dot before their name are none, either."""


class Entry(NamedTuple):
    """Where an application is: the module, the folder that it is imported from, and its name there.

    `file` is that of the module, where `main` names it; `config` that of the configuration.
    """

    folder: str
    module: str
    attribute: str
    config: str
    file: str = ""

    @property
    def main(self) -> str:
        """The application as a worker imports it: `module:name`."""
        return f"{self.module}:{self.attribute}"


def entry_of(configuration: Configuration) -> Entry:
    """The place of an application, by `main` and `[core] app`. Raises ConfigurationError where `main` is wrong."""
    main, directory = configuration.worker.main, configuration.directory.resolve()
    named, _, attribute = (configuration.worker.core.app or "").partition(":")
    config, attribute = str(configuration.path), attribute or "app"
    if main is None:
        if not named:
            raise ConfigurationError(
                [f'{configuration.path.name}:1: main is missing. Write the entry file, as in main = "src/main.py"']
            )
        folder = directory / "src" if (directory / "src").is_dir() else directory
        return Entry(str(folder), named, attribute, config)
    file = (directory / main).resolve()
    at = f"{configuration.path.name}:{configuration.line_of('main')}"
    if not file.is_file():
        fix = "Write it, or correct main"
        if ":" in main:  # as a server's `module:name`
            fix = f'Write its file, as in main = "{main.partition(":")[0].replace(".", "/")}.py"'
        raise ConfigurationError([f"{at}: main: there is no file {main}. {fix}"])
    if file.suffix != ".py":
        raise ConfigurationError([f"{at}: main: {main} is not a Python file. Write the one that has `{attribute}`"])
    folder, module = module_of(file)
    if (base := configuration.worker.base_dir) is not None:
        # By what is written, as the configuration is checked: main may be a link to a file elsewhere.
        folder, written = Path(normpath(directory / base)), Path(normpath(directory / main))
        module = ".".join(written.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    return Entry(str(folder), named or module, attribute, config, str(file))


def import_main(entry: Entry) -> ModuleType:
    """Import the module of an application. Raises whatever it raises."""
    if entry.folder not in sys.path:
        sys.path.insert(0, entry.folder)
    invalidate_caches()
    return import_module(entry.module)


def module_of(file: Path) -> tuple[Path, str]:
    """The folder to put on the path, and the dotted name, of the module in `file`."""
    parts = [file.stem] if file.stem != "__init__" else []
    folder = file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts) or file.parent.name


def import_roots(directory: Path, entry: Path | None) -> list[Path]:
    """The folders that imports start from: the one above the entry's package, `src`, the project, the entry's own."""
    roots = [] if entry is None else [module_of(entry)[0], entry.parent]
    roots += [directory / "src", directory]
    return list(dict.fromkeys(root.resolve() for root in roots if root.is_dir()))
