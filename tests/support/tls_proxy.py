"""A proxy that ends TLS, as small as one can be: it says `https` in a header, and passes every other byte on."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["TlsProxy"]


class TlsProxy:
    """Listens on `port` of localhost, with a certificate of its own that `trust` believes, and passes on to `upstream`.

    It overwrites `X-Forwarded-Proto` of the first request of a connection: a client sends one on each.
    """

    def __init__(self, folder: Path) -> None:
        key, certificate = folder / "key.pem", folder / "certificate.pem"
        command = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost "
            "-addext subjectAltName=DNS:localhost -keyout key.pem -out certificate.pem"
        )
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
        self._own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._own.load_cert_chain(certificate, key)
        self.trust = ssl.create_default_context(cafile=str(certificate))
        self.upstream = 0
        self.port = 0
        self._listening = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listening.wait(60)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(60)

    async def _run(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        passing: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._pass(reader, writer))
            passing.add(task)
            task.add_done_callback(passing.discard)

        server = await asyncio.start_server(accept, "localhost", 0, ssl=self._own, ssl_shutdown_timeout=1)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await self._stopped.wait()
        server.close()
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        up: asyncio.Task[None] | None = None
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
                kept = [line for line in lines[1:] if not line.lower().startswith(b"x-forwarded-proto:")]
                up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
                writers.append(up_writer)
                up_writer.write(b"\r\n".join([lines[0], b"X-Forwarded-Proto: https", *kept]))
                up = asyncio.create_task(_copy(reader, up_writer))
                await _copy(up_reader, writer)
        finally:
            if up is not None:
                up.cancel()
                await asyncio.wait([up])
            for each in writers:
                each.close()
            for each in writers:
                with contextlib.suppress(OSError):
                    await each.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
