"""A `core dev` that runs as its users run it, on a free port, with its lines kept."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.commands import Recorded

__all__ = ["Answer", "RunningDev"]

PATIENCE = 120.0


class Answer:
    """The server's answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


class RunningDev(Recorded):
    """Start `core dev` in `folder`; leave the block and it is stopped, whatever happened."""

    def __init__(self, folder: Path, state: Path, *options: str, python: str | Path = sys.executable) -> None:
        super().__init__("dev", "--port", "0", "--state", str(state), *options, folder=folder, python=python)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.close()

    @property
    def output(self) -> str:
        """Everything it has written."""
        return "\n".join(self.lines)

    def started(self) -> None:
        """Wait until it serves or has ended, which a busy machine may take any time for."""
        self.until("Ctrl-C stops", patience=math.inf)

    def until(self, text: str | Callable[[str], bool], *, since: int = 0, patience: float = PATIENCE) -> str:
        """Wait until it has written `text`; return the line."""
        deadline = time.monotonic() + patience

        def fits(line: str) -> bool:
            return text in line if isinstance(text, str) else text(line)

        while time.monotonic() < deadline:
            for line in self.lines[since:]:
                if fits(line):
                    return line
            if self.process.poll() is not None and not self._reader.is_alive():
                break
            time.sleep(0.02)
        raise AssertionError(f"{text!r} was not written. It wrote:\n{self.output}")

    @property
    def address(self) -> str:
        """The address it listens on."""
        line = self.until(lambda line: re.search(r"Address\s+http", line) is not None)
        # The port is open before the line is written, but the server behind it may still be starting.
        return line.split()[-1]

    def fetch(
        self, path: str, *, method: str = "GET", body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Send a request over HTTP."""
        request = urllib.request.Request(f"{self.address}{path}", data=body, method=method, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                return Answer(response.status, {k.lower(): v for k, v in response.headers.items()}, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())

    def interrupt(self) -> None:
        """Press Ctrl-C, as far as one process can."""
        self.process.send_signal(signal.SIGINT)

    def wait(self) -> int:
        """Wait for its end."""
        code = self.process.wait(PATIENCE)
        self._reader.join(5)
        return code
