"""The findings of `core check` in every program below the folder of mypy's configuration, by file.

Most runs of mypy find the project as the last one left it: then the findings come from the cache, and nothing of the
checks is imported.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.config.nearest import FILE_NAMES
from core.program.cache import Cache, python_of_now
from core.program.findings import Finding
from core.program.settings import Settings, read_settings
from core.program.table import is_set

if TYPE_CHECKING:
    from core.program.databases import Behind, CallPlace

_NAME: Final = "mypy"


class _Proven(NamedTuple):
    """The findings of all programs by file, the files that they were made from, and the variables: no files where there
    is no program, or where not all are known. `called` are their statements.
    """

    found: Mapping[str, Sequence[Finding]]
    files: Collection[str]
    environ: Sequence[tuple[str, str]]
    called: Sequence[Callable[[str, CallPlace], Behind | None]]


class Findings:
    """The findings of one run of mypy. `python` is the interpreter of the project, which starts its programs."""

    def __init__(self, config_file: str | None, root: Path, python: str) -> None:
        self._config_file = config_file
        self._python = python
        self._settings = read_settings(config_file) if config_file is not None else Settings(root)

    @cached_property
    def by_file(self) -> Mapping[str, Sequence[Finding]]:
        """The findings by real path: those of the last run, where everything is as it was then."""
        since = time.time_ns()
        cache = Cache(self._settings.root)
        key = [self._config_file, self._python, python_of_now()]
        cached: Any = cache.read(_NAME, key)
        if cached is not None and is_set(cached["environ"]):
            return {path: [Finding(*one) for one in found] for path, found in cached["found"].items()}
        proven = self._proven
        if proven.files:
            cache.write(_NAME, key, {"found": proven.found, "environ": proven.environ}, files=proven.files, since=since)
        return proven.found

    @property
    def files(self) -> Collection[str]:
        """The files and folders that all of it is made from; none where not all of them are known."""
        return self._proven.files

    def called(self, path: str, place: CallPlace) -> Behind | None:
        """The statement of a call in a file."""
        found = (called(path, place) for called in self._proven.called)
        return next((one for one in found if one is not None), None)

    @cached_property
    def _proven(self) -> _Proven:
        import attrs

        from core.config.checks import CHECKS
        from core.program.extensions import declared
        from core.program.module_rules import Memory, without_collecting
        from core.program.projects import programs
        from core.program.proof import Options, prove

        found: dict[str, dict[tuple[int, str], Finding]] = {}
        called: list[Callable[[str, CallPlace], Behind | None]] = []
        files: set[str] = set()
        environ: set[tuple[str, str]] = set()
        repeats = True
        problems = [*self._settings.problems, *declared().problems]
        for program in programs(self._settings):
            options = Options.of(self._settings, program.sources, [*problems, *program.problems])
            options = attrs.evolve(options, python=self._python, assume=True)
            memory = Memory(Cache(program.path.parent) if program.configurations and program.path else None)
            with without_collecting():
                proof = prove(program.configurations, options, memory)
            called.append(proof.called)
            for one in (*proof.findings, *proof.ignored):
                if CHECKS[one.code].title is not None:
                    found.setdefault(os.path.realpath(one.file), {}).setdefault((one.line, one.message), one)
            repeats = repeats and bool(proof.files or not program.configurations)
            environ |= {*proof.environ}
            files |= proof.files
            files |= {str(path) for path in (program.path, *program.sources) if program.path is not None}
        if files:
            folders = (self._settings.root, *self._settings.root.parents)
            files |= {*map(os.path.dirname, files), *(str(folder / name) for folder in folders for name in FILE_NAMES)}
            files |= {self._config_file} if self._config_file is not None else set()
        by_file = {
            file: sorted(by_place.values(), key=lambda one: (one.line, one.column, one.message))
            for file, by_place in found.items()
        }
        return _Proven(by_file, files if repeats else set(), sorted(environ), called)
