"""A room of many sockets, wherever it runs: who joins, who speaks, and what everyone has to hear."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from websockets.asyncio.client import ClientConnection, connect

__all__ = ["TOML", "everyone_hears_everything"]

TOML = """\
name = "chat"
main = "main.py"
compatibility_date = "2026-04-01"

[[durable_objects.bindings]]
name = "ROOMS"
class_name = "Room"

[[migrations]]
tag = "v1"
new_sqlite_classes = ["Room"]
"""
"""The configuration of `docs/examples/chatting.py`."""


async def everyone_hears_everything(url: Callable[[int], str], members: int, rounds: int) -> None:
    """Connect `members`; one in ten speaks in each of the rounds.

    Everyone hears every message, in one and the same order.
    """
    async with AsyncExitStack() as stack:
        sockets: list[ClientConnection] = []
        for first in range(0, members, 20):
            joining = [
                connect(url(number), open_timeout=60, max_queue=None)
                for number in range(first, min(first + 20, members))
            ]
            sockets += await asyncio.gather(*[stack.enter_async_context(one) for one in joining])
        speakers = range(0, members, 10)

        async def hear(socket: ClientConnection) -> list[str]:
            return [str(await asyncio.wait_for(socket.recv(), 60)) for _ in range(rounds * len(speakers))]

        hearing = [asyncio.create_task(hear(socket)) for socket in sockets]
        for turn in range(rounds):
            await asyncio.gather(*[sockets[number].send(f"{turn}") for number in speakers])
        heard = await asyncio.gather(*hearing)
    assert all(one == heard[0] for one in heard)
    for number in speakers:
        assert [text for text in heard[0] if text.startswith(f"m{number}: ")] == [
            f"m{number}: {t}" for t in range(rounds)
        ]
