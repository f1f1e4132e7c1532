"""The files of a program: the one that it starts with, its application, and the folders that its imports start from.

`main` names a file. The folder above its outermost package is put on the path, and the file imported by its dotted
name, so that `src/users/main.py` with `src/users/__init__.py` beside it is `users.main`.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from core.errors import ConfigurationError, DeveloperError

if TYPE_CHECKING:
    from types import ModuleType

    from core.app import App
    from core.config.model import Configuration


class Entry(NamedTuple):
    """Where an application is: the module, the folder that it is imported from, and its name there.

    `file` is that of the module, where `main` names it; `config` that of the configuration.
    """

    folder: str
    module: str
    attribute: str
    config: str
    file: str = ""


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
    if not file.is_file():
        at = f"{configuration.path.name}:{configuration.line_of('main')}"
        fix = f'Write its file, as in main = "{_file_of(main)}"' if ":" in main else "Write it, or correct main"
        raise ConfigurationError([f"{at}: main: there is no file {main}. {fix}"])
    folder, module = module_of(file)
    return Entry(str(folder), named or module, attribute, config, str(file))


def _file_of(main: str) -> str:
    """The file of a main that was written as a server's `module:name`."""
    return f"{main.partition(':')[0].replace('.', '/')}.py"


def import_main(entry: Entry) -> ModuleType:
    """Import the module of an application. Raises whatever it raises."""
    if entry.folder not in sys.path:
        sys.path.insert(0, entry.folder)
    invalidate_caches()
    return import_module(entry.module)


def find_app(module: ModuleType, entry: Entry) -> App[Any]:
    """The application of a module. Raises DeveloperError where it is missing or something else."""
    from core.app import App

    name, attribute = module.__name__, entry.attribute
    app = getattr(module, attribute, None)
    config = Path(entry.config)
    path, root = Path(module.__file__ or name), config.parent.resolve()
    file = path.relative_to(root) if path.is_relative_to(root) else path.name
    if isinstance(app, App):
        return cast("App[object]", app)
    others = [key for key, value in vars(module).items() if isinstance(value, App)]
    if app is not None:
        from core.program.wording import with_article

        cls, wanted = type(app).__name__, "an App"
        if cls == "App":
            cls, wanted = f"{type(app).__module__}.App", "an App of core"
        error = DeveloperError(
            f"{file}: `{attribute}` is {with_article(cls)}, not {wanted}. Write `{attribute} = create_app(Env)`"
        )
    elif others:
        error = DeveloperError(
            f"{file}: there is no `{attribute}`, but an App named {others[0]}. Write [core] app = "
            f'"{name}:{others[0]}" in {config.name}'
        )
    else:
        error = DeveloperError(f"{file}: there is no `{attribute}`. Write `{attribute} = create_app(Env)`")
    if path.is_file():
        made = re.compile(rf"(?:{attribute if app is not None or not others else others[0]})\s*[:=]")
        lines = path.read_text("utf-8", "replace").splitlines()
        error.location = str(path), next((number for number, line in enumerate(lines, 1) if made.match(line)), 1)
    raise error


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


def python_files(directory: Path) -> list[Path]:
    """The Python files of a project, without its tests, environments and hidden folders."""
    left_out = {"node_modules", "__pycache__", "tests", "test", "build", "dist", "venv", "site-packages"}
    return sorted(
        path
        for path in directory.rglob("*.py")
        if not any(part in left_out or part.startswith(".") for part in path.relative_to(directory).parts)
    )
