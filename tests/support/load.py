"""Requests at a steady rate over connections that are kept, as a browser or a proxy sends them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from itertools import count
from types import TracebackType
from typing import Self

__all__ = ["SteadyLoad"]


class SteadyLoad:
    """Sends `rate` requests a second to `port`, on `connections`, from a thread of its own, until its block ends.

    `request` is the method and the path, with the request's number for `{}`.

    A request on a connection that was used before, and that ended without a byte of an answer, is sent once more on a
    new one, as RFC 9112 (section 9.3.1) has it and browsers and proxies do. Only a GET is.
    """

    def __init__(self, port: int, *, rate: float = 200.0, connections: int = 20, request: str = "GET /") -> None:
        self._port = port
        self._request = request
        self._numbers = count()
        self._connections = connections
        self._every = connections / rate
        self.answers: list[tuple[float, float, bytes]] = []
        """The answers: when it was asked for and when it came, by `time.monotonic`, and the body."""
        self.acknowledged: list[int] = []
        """The numbers of the requests that were answered well."""
        self.failed: list[str] = []
        self.sent_again = 0
        self.announced = 0
        """The connections that ended with an answer that said so."""
        self.longest = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join()

    async def _run(self) -> None:
        await asyncio.gather(*(self._send(number) for number in range(self._connections)))

    async def _send(self, number: int) -> None:
        due = time.monotonic() + self._every * number / self._connections
        connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while not self._stopping.is_set():
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = max(due + self._every, time.monotonic())
            began = time.monotonic()
            try:
                async with asyncio.timeout(60):
                    used = connection is not None
                    try:
                        connection = await self._ask(connection)
                    except (asyncio.IncompleteReadError, OSError) as error:
                        begun = isinstance(error, asyncio.IncompleteReadError) and error.partial
                        if not used or begun or not self._request.startswith("GET "):
                            raise
                        self.sent_again += 1
                        connection = await self._ask(None)
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                self.failed.append(repr(error))
                connection = None
            self.longest = max(self.longest, time.monotonic() - began)
        if connection is not None:
            connection[1].close()

    async def _ask(
        self, connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        if connection is not None and connection[0].at_eof():
            # Its end has arrived: nothing is sent there, as by every client that keeps connections.
            connection[1].close()
            connection = None
        reader, writer = connection or await asyncio.open_connection("127.0.0.1", self._port)
        number = next(self._numbers)
        asked = time.monotonic()
        try:
            request = f"{self._request.format(number)} HTTP/1.1\r\nHost: load\r\nContent-Length: 0\r\n\r\n"
            writer.write(request.encode())
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
            body = await reader.readexactly(length)
        except BaseException:
            writer.close()
            raise
        status = int(head.split(b" ", 2)[1])
        self.answers.append((asked, time.monotonic(), body))
        if status == 200:
            self.acknowledged.append(number)
        else:
            self.failed.append(f"{status} {body!r}")
        if b"\r\nconnection: close\r\n" in head:
            self.announced += 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return None
        return reader, writer
