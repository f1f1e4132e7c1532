"""A program: a server of objects ends, and the next one goes on at the same socket. Run in each version of Python."""

from __future__ import annotations

import asyncio
import socket
import sys

from core.backends.remote.durable_object import ObjectServer


async def main(place: str) -> None:
    """Print what answers at `place` once the first of two servers has ended."""
    first = socket.socket(socket.AF_UNIX)
    first.bind(place)
    first.listen()
    second = first.dup()
    for listener in (first, second):
        listener.setblocking(False)
    ending, staying = ObjectServer(first, {}), ObjectServer(second, {})
    await ending.start()
    await ending.close()
    await staying.start()
    _, writer = await asyncio.open_unix_connection(place)
    writer.close()
    await writer.wait_closed()
    await staying.close()
    print("connected")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
