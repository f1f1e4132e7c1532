"""The socket that a service listens at: open from its start to its end, while processes behind it come and go."""

from __future__ import annotations

import asyncio
import socket
import sys

from core.errors import DeveloperError
from core.hosts.process import UNAVAILABLE

__all__ = ["accept_with_request", "open_listener", "turn_away"]

# How long a connection may wait without a word until a process gets it all the same.
_SILENT_SECONDS = 30
_BACKLOG = 2048


def open_listener(host: str, port: int, *, options: str = "--host and --port") -> socket.socket:
    """Listen. Raises DeveloperError, which names `options`, where the address is taken or not one of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(_BACKLOG)
        opened.setblocking(False)
    except OSError as error:
        opened.close()
        raise DeveloperError(
            f"cannot listen on {host}:{port}: {error.strerror}. Choose another address with {options}"
        ) from error
    return opened


def accept_with_request(listener: socket.socket) -> None:
    """Have a connection wait at `listener` until its client has said something; on Linux, nothing elsewhere.

    workerd cuts a connection without a request off when it stops. One that was not accepted yet waits for the next
    process.
    """
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _SILENT_SECONDS)


async def turn_away(listener: socket.socket) -> asyncio.Server:
    """Answer the connections that wait at `listener`, and all that arrive there from now on, with 503.

    workerd does not accept any more once it stops, but has the socket until it ends, and everybody would wait for that.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(1):
                # Bytes that were not read would reset the connection, and the answer with it.
                await reader.readuntil(b"\r\n\r\n")
                writer.write(UNAVAILABLE)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # whoever asked is gone, or sent something else
        finally:
            writer.close()

    return await asyncio.start_server(answer, sock=listener, backlog=_BACKLOG)
