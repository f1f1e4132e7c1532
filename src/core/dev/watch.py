"""Mistakes that raise nothing while a program runs, told with their line: what keeps the event loop from running, and
calls that nobody awaited.

The loop is kept by `time.sleep`, a client that is not async, a long computation. A timer in the loop beats; a thread
looks whether it still does. Where it stopped, the thread notes the line of the application that is running, and the
next beat reports that line with the time it took. Time in which the thread was ready and other programs had the
processor is the machine's load, and is not counted.

Python warns of a call that was not awaited when its coroutine is thrown away: with the name of a function inside the
framework, and often without a line. Each is told once, and not where the error of the request says already that an
`await` is missing.
"""

from __future__ import annotations

import asyncio
import gc
import linecache
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

from core.context import Clock, system_clock
from core.dev.exchange import Exchange, current
from core.errors import NothingSentError
from core.explain.diagnosis import misses_await
from core.explain.frames import is_own, shown

_BEAT: Final = 0.05
_LONG: Final = 0.5
"""Seconds without a beat that are reported."""

_MARK: Final = "coroutine .* was never awaited"
_ORIGIN: Final = re.compile(r'File "(.+)", line (\d+), in (.+)')
_DEPTH: Final = 4
"""Calls around a coroutine's making that Python notes: a binding's own wrappers, and the line that called it."""


def waited_for_processor() -> float:
    """Seconds that this thread was ready to run without a processor, as Linux counts them; 0 elsewhere."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_bytes().split()[1]) / 1e9
    except OSError:
        return 0.0


class LoopWatch:
    """Reports the code that blocks the loop of the thread it is made in. `root` is the folder of the application."""

    def __init__(
        self,
        root: Path,
        *,
        write: Callable[[str], None],
        clock: Clock = system_clock,
        waited: Callable[[], float] = waited_for_processor,
    ) -> None:
        self._root = root
        self._write = write
        self._clock = clock
        self._waited = waited
        self._thread = threading.get_ident()
        self._last, self._last_waited = clock.monotonic(), waited()
        self._seen: str | None = None
        self._stopped = threading.Event()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to beat in the running loop, and to look from a thread."""
        threading.Thread(target=self._look_on, name="core-loop-watch", daemon=True).start()
        self._beat_on()

    def stop(self) -> None:
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()

    def beat(self) -> None:
        """Report the stacks noted since the last beat, with the time that passed."""
        now, waited = self._clock.monotonic(), self._waited()
        seen, self._seen = self._seen, None
        took = now - self._last - (waited - self._last_waited)
        self._last, self._last_waited = now, waited
        if seen is not None and took >= _LONG:
            self._write(
                f"the loop stood still for {took:.1f} s in {seen}. No other request was answered meanwhile. Await an async "
                "call there, or run it with `await asyncio.to_thread(…)`; a worker has no threads"
            )

    def look(self) -> None:
        """Note the running line of the application, if the last beat is too long ago."""
        if self._seen is None and self._clock.monotonic() - self._last >= _LONG:
            self._seen = self._line(sys._current_frames().get(self._thread))

    def _line(self, frame: FrameType | None) -> str | None:
        while frame is not None:
            file = frame.f_code.co_filename
            if is_own(file, self._root):
                text = linecache.getline(file, frame.f_lineno).strip()
                return f"{shown(file, self._root)}:{frame.f_lineno} ({frame.f_code.co_qualname}): {text}"
            frame = frame.f_back
        return None

    def _beat_on(self) -> None:
        self.beat()
        self._timer = asyncio.get_running_loop().call_later(_BEAT, self._beat_on)

    def _look_on(self) -> None:
        while not self._stopped.wait(_BEAT):
            self.look()


class Unawaited:
    """Writes a line for each call that was not awaited. `root` is the folder of the application."""

    def __init__(self, root: Path, *, write: Callable[[str], None]) -> None:
        self._root = root
        self._write = write
        self._reported: set[tuple[str, str]] = set()
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
            self._reported |= {(code.co_filename, code.co_name) for code in codes}
            if isinstance(error, NothingSentError):
                return
        for file, line, function in calls:
            self._tell(file, line, function)

    def _show(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any, **named: Any
    ) -> None:
        found = re.match(_MARK, str(message))
        if found is None or not issubclass(category, RuntimeWarning):
            if self._before is not None:
                self._before(message, category, filename, lineno, *rest, **named)
            return
        frames = [(name, int(number), function) for name, number, function in _ORIGIN.findall(str(message))]
        own = [frame for frame in frames if is_own(frame[0], self._root)]
        call = (own or frames or [(filename, lineno, "")])[-1]
        exchange = current.get()
        if exchange is not None and exchange.kind == "request" and exchange.duration is None:
            exchange.unawaited.append(call)
        else:
            self._tell(*call)

    def _tell(self, file: str, line: int, function: str) -> None:
        if (file, function) in self._reported:
            return
        text = linecache.getline(file, line).strip()
        self._write(
            f"{shown(file, self._root)}:{line}{f' ({function})' if function else ''}: a call was not awaited, so it did nothing: {text}. "
            "Write `await` before it"
        )
