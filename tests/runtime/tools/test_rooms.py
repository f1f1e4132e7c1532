"""The page's chat room under `core serve --python`: its members at several processes, the room in one."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.support.commands import Command, until
from tests.support.rooms import TOML, everyone_hears_everything
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "chatting.py"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Command]:
    """The example, served by three processes that answer requests and one that has the rooms."""
    (tmp_path / "wrangler.toml").write_text(TOML)
    (tmp_path / "main.py").write_text(EXAMPLE.read_text())
    where = ["--port", "0", "--health", "127.0.0.1:0", "--workers", "3"]
    served = Command("serve", "--python", *where, folder=tmp_path)
    yield served
    if served.process.poll() is None:
        served.finish()


def processes(served: Command, role: str) -> list[int]:
    """The processes of a service that have a role."""
    return [
        pid for pid in served.children() if re.search(f'"role": "{role}"', Path(f"/proc/{pid}/cmdline").read_text())
    ]


def sockets_of(pid: int) -> int:
    """The number of sockets that a process has open."""
    found = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
        except OSError:
            continue
    return found


def test_a_room_of_200_sockets_over_several_processes(chat: Command) -> None:
    port, _ = chat.ports()
    before = {pid: sockets_of(pid) for pid in processes(chat, "web")}
    most: dict[int, int] = dict(before)

    def url(number: int) -> str:
        for pid in before:
            most[pid] = max(most[pid], sockets_of(pid))
        return f"ws://127.0.0.1:{port}/rooms/tea?name=m{number}"

    asyncio.run(everyone_hears_everything(url, 200, 5))
    # The room was not at one process by chance.
    assert sum(most[pid] > before[pid] + 4 for pid in before) >= 2, (before, most)
    # Nothing of the members is left.
    (state,) = processes(chat, "state")
    until(lambda: sockets_of(state), lambda count: count < 60)


async def closed(socket: ClientConnection) -> int | None:
    """The code with which a connection is closed."""
    await asyncio.wait_for(socket.wait_closed(), 60)
    return socket.close_code


def test_members_are_cut_off_with_their_room_and_join_again(chat: Command) -> None:
    port, _ = chat.ports()

    async def try_it() -> None:
        # Each round in a room of its own, which hears nothing of those who leave the other.
        for room, number, code in (("tea", signal.SIGKILL, 1012), ("coffee", signal.SIGTERM, 1001)):
            place = f"ws://127.0.0.1:{port}/rooms/{room}"
            async with connect(f"{place}?name=a") as a, connect(f"{place}?name=b") as b:
                await a.send("hello")
                assert [await a.recv(), await b.recv()] == ["a: hello"] * 2
                (state,) = processes(chat, "state")
                os.kill(state, number)
                assert [await closed(a), await closed(b)] == [code, code]
                # A handshake that comes meanwhile waits for the next process.
                async with connect(f"{place}?name=a", open_timeout=60) as again:
                    await again.send("back")
                    assert await asyncio.wait_for(again.recv(), 60) == "a: back"

    asyncio.run(try_it())


def test_members_whose_process_is_killed_have_left_the_room(chat: Command) -> None:
    port, _ = chat.ports()
    before = {pid: sockets_of(pid) for pid in processes(chat, "web")}

    async def try_it() -> None:
        async with AsyncExitStack() as stack:
            place = f"ws://127.0.0.1:{port}/rooms/tea"
            members = [
                await stack.enter_async_context(connect(f"{place}?name=m{number}", max_queue=None))
                for number in range(30)
            ]
            held = {pid: sockets_of(pid) - before[pid] for pid in before}
            os.kill(min((pid for pid in held if held[pid] > 1), key=lambda pid: held[pid]), signal.SIGKILL)
            gone = await asyncio.gather(*map(is_lost, members))
            lost = {f"m{number} left" for number in range(30) if gone[number]}
            staying = [member for member, left in zip(members, gone, strict=True) if not left]
            assert lost
            assert staying
            for member in staying:
                assert {await asyncio.wait_for(member.recv(), 60) for _ in lost} == lost

    asyncio.run(try_it())


async def is_lost(member: ClientConnection) -> bool:
    """Return True where a connection was cut. A ping is answered by the server, whatever the room does."""
    try:
        await asyncio.wait_for(await member.ping(), 60)
    except ConnectionClosed:
        return True
    return False
