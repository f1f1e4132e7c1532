"""Calls that keep the event loop from running: `time.sleep`, a client that is not async, a long computation.

A timer in the loop beats; a thread looks whether it still does. Where it stopped, the thread notes the line of the
application that is running, and the next beat reports that line with the time it took. Time in which the thread was
ready and other programs had the processor is the machine's load, and is not counted.
"""

from __future__ import annotations

import asyncio
import linecache
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

from core.context import Clock, system_clock
from core.explain.frames import is_own, shown

_BEAT: Final = 0.05
_LONG: Final = 0.5
"""Seconds without a beat that are reported."""


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
        """End both."""
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
