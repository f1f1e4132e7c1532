"""The programs below a folder: each configuration file with the sources that belong to it.

A source belongs to the configuration that the options name, or to the nearest above it. A project of its own on the way
up, without a worker in it, is a library of several workers: their programs judge it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from core.config.load import load_all
from core.config.model import Configuration
from core.config.nearest import FILE_NAMES
from core.errors import ConfigurationError
from core.program.settings import TOP_LEVEL, Settings
from core.program.sources import source_files

_MAIN: Final = re.compile(rb"^\s*[\"']?main[\"']?\s*[=:]\s*[\"']([^\"']+)[\"']", re.MULTILINE)
_NONE: Final = (
    "no wrangler.toml, wrangler.json or wrangler.jsonc in the folder of this module or above. Write one, name it in "
    "[core-mypy] config, or name the Env classes that have one in [core-mypy] env"
)


class ProgramFiles(NamedTuple):
    """A configuration file, or None, the environments in it, why it cannot be used, and the sources."""

    path: Path | None
    configurations: Sequence[Configuration]
    problems: Sequence[str]
    sources: Sequence[Path]


def programs(settings: Settings) -> Iterator[ProgramFiles]:
    """Every program below the folder of the options."""
    nearest: dict[Path, Path | bool] = {}
    files: dict[Path | None, list[Path]] = {}
    for source in map(Path, sorted(source_files(settings.root))):
        if source.parent not in nearest:
            nearest[source.parent] = _nearest(source.parent, settings)
        found = nearest[source.parent]
        if found is not True:
            files.setdefault(found or None, []).append(source)
    for path, sources in files.items():
        if path is None:
            yield ProgramFiles(None, (), (_NONE,), sources)
        elif not path.is_file():
            yield ProgramFiles(path, (), (f"{path} is not there. Write it, or correct [core-mypy] config",), sources)
        else:
            yield ProgramFiles(path, *_load(path, settings.environments), sources)


def _nearest(folder: Path, settings: Settings) -> Path | bool:
    """Return the configuration file of the sources in a folder; False where there is none, True for a library."""
    around = (folder, *folder.parents)
    if settings.config:
        above = [path for path in settings.config if path.parent.resolve() in around]
        return max(above, key=lambda path: len(path.parent.resolve().parts), default=settings.config[0])
    project: Path | None = None
    for directory in around:
        for name in FILE_NAMES:
            path = directory / name
            if path.is_file():
                return path if project in (None, directory) or _holds_main(project, path) else True
        if project is None and (directory / "pyproject.toml").is_file():
            project = directory
    return False


def _holds_main(folder: Path | None, configuration: Path) -> bool:
    """Return True if the entry file of a configuration lies in a folder; so it is taken where the file names none."""
    main = _MAIN.search(configuration.read_bytes())
    if main is None or folder is None:
        return True
    return (configuration.parent / main[1].decode("utf-8", "replace")).resolve().is_relative_to(folder.resolve())


def _load(path: Path, wanted: Sequence[str]) -> tuple[Sequence[Configuration], Sequence[str]]:
    try:
        everything = load_all(path)
    except ConfigurationError as error:
        return (), tuple(error.problems)
    except (OSError, ValueError) as error:
        return (), (f"{path.name} cannot be read: {error}",)
    names = [configuration.environment or TOP_LEVEL for configuration in everything]
    problems = [
        f"{path.name} has no environment {name}, which [core-mypy] environments names"
        for name in wanted
        if name not in (*names, TOP_LEVEL)
    ]
    return [one for one, name in zip(everything, names, strict=True) if not wanted or name in wanted], problems
