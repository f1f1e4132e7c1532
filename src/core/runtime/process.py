"""A process of a service: its end, and what Linux knows of it; and workerd: started, watched until it listens, read
line by line, and asked.

Nothing is known here of an application, nor of a configuration beyond the file that workerd is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import io
import json
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Self, cast

from core.errors import DeveloperError

if TYPE_CHECKING:
    from core.telemetry.metrics import Snapshot

# Starting compiles 10 MB of wasm; on a busy machine with two cores that has taken 12 seconds.
_START_SECONDS = 60.0
_LONGEST_LINE = 2**20


class WorkerdError(DeveloperError):
    """workerd did not start, or ended by itself; the message has its output."""


class Process:
    """A running process, from its start to its end. `tasks` belong to its end, such as the reading of its output."""

    def __init__(self, process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]] = ()) -> None:
        self._process = process
        self._tasks = [*tasks]
        self.pid: int = process.pid
        self.numbers: Snapshot = {}
        """Its numbers, as it gave them last."""
        self.ended: asyncio.Future[int] = asyncio.ensure_future(self._end())
        """Its status, once it has ended. Never cancelled: that would end the reading of its output."""

    @property
    def returncode(self) -> int | None:
        """The exit code, or None while it runs."""
        return self._process.returncode

    async def _end(self) -> int:
        status = await self._process.wait()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return status

    def signal(self, number: int) -> None:
        """Send it a signal, unless it is gone."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def stop(self, *, seconds: float = 10.0) -> int:
        """Let it finish what it does, for `seconds` at most; its status."""
        self.signal(signal.SIGTERM)
        await asyncio.wait({self.ended}, timeout=seconds)
        return await self.kill()

    async def kill(self) -> int:
        """End it at once; its status."""
        self.signal(signal.SIGKILL)
        return await asyncio.shield(self.ended)


class Workerd(Process):
    """A running workerd. `ports` has the port of every socket that was bound to an address, by the socket's name."""

    ports: dict[str, int]

    @classmethod
    async def start(
        cls,
        binary: Path,
        config: Path,
        text: str,
        *,
        sockets: int = 1,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        fds: Mapping[str, socket.socket] | None = None,
        inherited: Sequence[int] = (),
        on_line: Callable[[str], object] = lambda line: None,
        seconds: float = _START_SECONDS,
    ) -> Self:
        """Start `workerd serve` and return when all its `sockets` listen.

        `text` is its configuration, which is written to `config`, for its user alone: a cluster's key may be in it.
        `fds` gives sockets that are open already, by name, `inherited` further descriptors that it is to hold. On Linux
        it ends with this process. Raises WorkerdError, with its last lines, if it ends first or takes longer than
        `seconds`.
        """
        with os.fdopen(os.open(config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        listening = dict(fds or {})
        control, theirs = socket.socketpair()
        # Cap'n Proto looks for a file whose path begins with a slash below its import paths.
        command = [str(binary), "serve", "--experimental", "--import-path=/", f"--control-fd={theirs.fileno()}"]
        command += [f"--socket-fd={name}={opened.fileno()}" for name, opened in listening.items()]
        said = deque[str](maxlen=20)

        def heard(line: str) -> None:
            said.append(f"\n  {line}")
            on_line(line)

        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                str(config),
                cwd=cwd,
                env=None if env is None else dict(env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=[theirs.fileno(), *inherited, *(opened.fileno() for opened in listening.values())],
                # A terminal's Ctrl-C is for the supervisor, which then stops its processes in order.
                start_new_session=True,
                preexec_fn=functools.partial(die_with_parent, os.getpid()),
                limit=_LONGEST_LINE,
            )
        except BaseException:
            control.close()
            raise
        finally:
            theirs.close()
        streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
        tasks = [asyncio.create_task(read_lines(stream, heard)) for stream in streams]
        started = cls(process, tasks)
        started.ports = {}
        try:
            await asyncio.wait_for(_listening(control, started.ports, sockets), seconds)
        except TimeoutError:
            await started.kill()
            raise WorkerdError(f"workerd did not start within {seconds:.0f} s.{''.join(said)}") from None
        except EOFError:
            status = await started.ended
            raise WorkerdError(f"workerd ended with status {status} instead of starting.{''.join(said)}") from None
        except BaseException:
            await started.kill()
            raise
        return started

    def at_end(self, action: Callable[[], Awaitable[None]]) -> None:
        """Have `action` run once it has ended, as a part of its end."""

        async def act() -> None:
            await self._process.wait()
            await action()

        self._tasks.append(asyncio.create_task(act()))


async def read_lines(stream: asyncio.StreamReader, heard: Callable[[str], object]) -> None:
    """Call `heard` with each line of a process's output, until there is no more."""
    while True:
        try:
            line = await stream.readline()
        except ValueError:  # a line longer than the limit: told in pieces
            line = await stream.read(_LONGEST_LINE)
        if not line:
            return
        heard(line.decode("utf-8", "replace").rstrip("\n"))


async def _listening(control: socket.socket, ports: dict[str, int], expected: int) -> None:
    """Fill `ports` from the control messages until `expected` sockets have reported."""
    reader, writer = await asyncio.open_connection(sock=control)
    try:
        while len(ports) < expected:
            line = await reader.readline()
            if not line:
                raise EOFError
            message = json.loads(line)
            if message.get("event") == "listen":
                ports[message["socket"]] = int(message["port"])
    finally:
        writer.close()


async def exchange(
    port: int, method: str, path: str, body: bytes, seconds: float | None, *, token: str = ""
) -> tuple[int, bytes]:
    """One request to 127.0.0.1, on a connection of its own: the status and the body. 0 is the status of no answer, and
    of one that ended early. `token` is the text of Authorization.
    """
    from http.client import HTTPException, HTTPResponse

    async with asyncio.timeout(seconds):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            head = (
                f"{method} {path} HTTP/1.1\r\nHost: health\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
                f"Authorization: {token}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()

    def makefile(mode: str) -> io.BytesIO:
        return io.BytesIO(answer)

    received = SimpleNamespace(makefile=makefile)  # in place of a socket
    response = HTTPResponse(cast("socket.socket", received), method=method)
    try:
        response.begin()
        return response.status, response.read()
    except HTTPException:
        return 0, b""


_PR_SET_PDEATHSIG = 1
# Found beforehand: a process that was forked a moment ago does as little as it can.
_prctl: Callable[..., int] | None = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def die_with_parent(parent: int) -> None:
    """Have this process killed when `parent`, which started it, ends, however it ends. On Linux; nothing elsewhere.

    Nothing that was acknowledged is lost by it, and no process goes on in a state folder that has another owner.
    """
    if _prctl is None:
        return
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before we had asked.
        os.kill(os.getpid(), signal.SIGKILL)


def memory_of(pid: int) -> int:
    """The resident memory of a process in bytes; 0 where it is gone, or the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
