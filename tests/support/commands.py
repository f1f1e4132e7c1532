"""A `core` command as its users run it: a process of its own, with its lines kept, asked over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

__all__ = ["PATIENCE", "Answer", "Command", "Recorded", "ask", "until"]


class Answer:
    """An answer to a request."""

    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"<Answer {self.status} {self.body[:500]!r}>"


PATIENCE = 120.0


class Recorded:
    """A process of the command line, with its lines kept while it runs."""

    def __init__(
        self,
        *arguments: str,
        folder: Path,
        env: Mapping[str, str | None] | None = None,
        python: str | Path = sys.executable,
    ) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [python, "-u", "-m", "core", *arguments],
            cwd=folder,
            env={name: value for name, value in {**os.environ, **(env or {})}.items() if value is not None},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def close(self) -> None:
        """Take the last lines of a process that has ended."""
        self._reader.join(5)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Command(Recorded):
    """A `core` command that runs until it is told to stop."""

    def __init__(self, *arguments: str, folder: Path, env: Mapping[str, str | None] | None = None) -> None:
        own = {"TOKEN": "secret", "AWS_EC2_METADATA_DISABLED": "true"}
        super().__init__(*arguments, folder=folder, env={**own, **(env or {})})

    def until(self, pattern: str, *, since: int = 0) -> re.Match[str]:
        """Wait until it has written a line that matches."""
        end = time.monotonic() + PATIENCE
        while True:
            alive = self._reader.is_alive()
            for line in self.lines[since:]:
                if (found := re.search(pattern, line)) is not None:
                    return found
            assert alive, f"{pattern!r} was never written, but {self.lines}"
            assert time.monotonic() < end, f"{pattern!r} is not written yet, but {self.lines}"
            time.sleep(0.02)

    def ports(self) -> tuple[int, int]:
        """The ports of `core serve`: for requests, and for health."""
        found = self.until(r"serving on http://127\.0\.0\.1:(\d+), health on http://127\.0\.0\.1:(\d+)")
        return int(found[1]), int(found[2])

    def children(self) -> list[int]:
        """The processes that it has started, and that have not ended."""
        found: list[int] = []
        # Not the kernel's list of children, which leaves some out while another one ends (proc(5)).
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, parent, *_ = stat.read_text().rpartition(")")[2].split()
                if int(parent) == self.process.pid and state != "Z":
                    found.append(int(stat.parent.name))
        return found

    def finish(self, *, by_itself: bool = False) -> int:
        """Ask it to stop, unless it ends `by_itself`; its exit code."""
        if not by_itself and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.close()


def ask(
    port: int,
    path: str = "/",
    method: str = "GET",
    body: str | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Answer:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return Answer(response.status, response.getheaders(), response.read())
    finally:
        connection.close()


def until(ask: Callable[[], Any], accept: Callable[[Any], bool]) -> Any:
    """Ask again until the answer is accepted."""
    end = time.monotonic() + PATIENCE
    while not accept(answer := ask()):
        assert time.monotonic() < end, f"still {answer!r}"
        time.sleep(0.02)
    return answer
