"""Calls that nobody awaited, told with their line, and once.

Python warns of one when its coroutine is thrown away: with the name of a function inside the framework, and often
without a line. Where the error of the request says already that an `await` is missing, there is nothing to add.
"""

from __future__ import annotations

import gc
import linecache
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TextIO

from core.dev.exchange import Exchange, current
from core.errors import NothingSentError
from core.explain.diagnosis import misses_await
from core.explain.frames import is_own, shown

_MARK: Final = "coroutine .* was never awaited"
_ORIGIN: Final = re.compile(r'File "(.+)", line (\d+), in (.+)')
_DEPTH: Final = 4
"""Calls around a coroutine's making that Python notes: a binding's own wrappers, and the line that called it."""


class Unawaited:
    """Writes a line for each call that was not awaited. `root` is the folder of the application."""

    def __init__(self, root: Path, *, write: Callable[[str], None]) -> None:
        self._root = root
        self._write = write
        self._told: set[tuple[str, str]] = set()
        self._before: Callable[..., Any] | None = None

    def start(self) -> None:
        """Take Python's warnings of this kind from now on."""
        self._before = warnings.showwarning
        warnings.showwarning = self._show
        warnings.filterwarnings("always", _MARK, RuntimeWarning)
        sys.set_coroutine_origin_tracking_depth(_DEPTH)

    def stop(self) -> None:
        """Leave them to Python again, but for those that the error of a recorded request keeps until Python ends."""
        gc.collect()
        warnings.filterwarnings("ignore", _MARK, RuntimeWarning)
        sys.set_coroutine_origin_tracking_depth(0)
        if self._before is not None:
            warnings.showwarning = self._before

    def settle(self, exchange: Exchange) -> None:
        """Write the calls of a request that has ended, unless its error says the same."""
        calls, exchange.unawaited = exchange.unawaited, []
        error = exchange.error
        if error is not None and misses_await(error):
            codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
            self._told |= {(code.co_filename, code.co_name) for code in codes}
            if isinstance(error, NothingSentError):
                return
        for file, line, function in calls:
            self._tell(file, line, function)

    def _show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        found = re.match(_MARK, str(message))
        if found is None or not issubclass(category, RuntimeWarning):
            if self._before is not None:
                self._before(message, category, filename, lineno, file, line)
            return
        steps = [(name, int(number), function) for name, number, function in _ORIGIN.findall(str(message))]
        own = [step for step in steps if is_own(step[0], self._root)]
        call = (own or steps or [(filename, lineno, "")])[-1]
        exchange = current.get()
        if exchange is not None and exchange.kind == "request" and exchange.duration is None:
            exchange.unawaited.append(call)
        else:
            self._tell(*call)

    def _tell(self, file: str, line: int, function: str) -> None:
        if (file, function) in self._told:
            return
        text = linecache.getline(file, line).strip()
        self._write(
            f"{shown(file, self._root)}:{line}{f' ({function})' if function else ''}: a call was not awaited, so it did nothing: {text}. "
            "Write `await` before it"
        )
