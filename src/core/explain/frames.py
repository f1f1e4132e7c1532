"""The steps that led to an error, each with its source: which code is the program's, and how its path is shown."""

from __future__ import annotations

import linecache
import os
import re
import traceback
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs

from core.errors import BindingError, DeveloperError
from core.explain.diagnosis import words_of

_CORE: Final = Path(__file__).parent.parent
_FRAMEWORK: Final = f"{_CORE}{os.sep}"
_PYTHON: Final = os.path.join(os.path.dirname(os.__file__), "")
_PACKAGES: Final = frozenset({"site-packages", "dist-packages", "python_modules"})
_PLACE: Final = re.compile(r"^(?:\w+: )?(\S+\.(?:toml|jsonc?|sql|py)):(\d+)[: ]")
_AROUND: Final = 5
_DEEPEST: Final = 100
"""Steps that are kept of a traceback: a recursion without an end has a thousand."""


@lru_cache(None)
def is_own(file: str, root: Path | None = None) -> bool:
    """Return True for a file of the program: not the framework's, not Python's, not of a package, and below `root`."""
    if file[:1] in ("", "<") or file.startswith((_FRAMEWORK, _PYTHON)) or _PACKAGES.intersection(file.split(os.sep)):
        return False
    return root is None or Path(file).is_relative_to(root)


def shown(file: str, root: Path | None) -> str:
    """A path as developers know it: from the folder `root` or the current one, and the framework's as `core/…`."""
    path = Path(file)
    for folder in (root or Path.cwd(), _CORE.parent):
        if path.is_relative_to(folder):
            return str(path.relative_to(folder))
    return file


@attrs.frozen
class Frame:
    """One step of a traceback. `source` has the lines around it with their numbers; `own` is the program's code."""

    file: str
    line: int
    function: str
    source: tuple[tuple[int, str], ...]
    own: bool

    @property
    def text(self) -> str:
        """The line itself; empty where its file cannot be read."""
        return next((text.strip() for number, text in self.source if number == self.line), "")

    def as_json(self) -> dict[str, object]:
        """For the log and for API clients of `core dev`."""
        return {"file": self.file, "line": self.line, "function": self.function, "source": self.text}


def frames_of(error: BaseException, root: Path | None) -> Iterator[Frame]:
    """The steps that led to an error, the last one first. `root` is the folder of the program, where it is known."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        yield _frame(error.filename, error.lineno, "", root)
        return
    if isinstance(error, DeveloperError) and error.location is not None:
        yield _frame(*error.location, "", root)
    elif isinstance(error, (DeveloperError, BindingError)):
        # A mistake in a file that is no Python: the message begins with its line.
        places = [_PLACE.match(line) for line in words_of(error).splitlines()]
        yield from (_frame(str((root or Path.cwd()) / found[1]), int(found[2]), "", root) for found in places if found)
    # The last step is where it happened: it comes first.
    for step, line in reversed(deque(traceback.walk_tb(error.__traceback__), maxlen=_DEEPEST)):
        yield _frame(step.f_code.co_filename, line, step.f_code.co_qualname, root)


def _frame(file: str, line: int, function: str, root: Path | None) -> Frame:
    lines = [(number, linecache.getline(file, number)) for number in range(max(1, line - _AROUND), line + _AROUND + 1)]
    source = tuple((number, text.rstrip("\n")) for number, text in lines if text)
    return Frame(shown(file, root), line, function, source, is_own(file, root))
