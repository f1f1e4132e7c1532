"""Rooms and lobbies inside workerd: members on their own connections, messages across requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.conftest import Background, Make, Running, start_running
from tests.support.rooms import everyone_hears_everything
from websockets.asyncio.client import connect

from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain

PLAN = Plan(name="rooms", durable_objects={"ROOMS": "Room"})
MAIN = (
    (Path(__file__).parents[2] / "docs" / "examples" / "chatting.py").read_text()
    + """

import asyncio
from core.errors import DeveloperError
from core.http.websocket import WebSocket

made = 0


class Counted(Room):
    def __init__(self, ctx: object, env: object) -> None:
        global made
        made += 1
        super().__init__(ctx, env)


Room = Counted
Room.__name__ = "Room"


@app.get("/made")
async def instances(req, res):
    res.json(made)


members: set[WebSocket] = set()


@app.websocket("/lobby/:name")
async def lobby(req, socket):
    members.add(socket)
    try:
        async for message in socket:
            for member in list(members):
                await member.send(f"{req.params['name']}: {message}")
            if message == "out":
                for member in list(members):
                    if member is not socket:
                        try:
                            await member.close(4000, "closing time")
                        except DeveloperError as error:
                            await member.send(str(error))
    finally:
        members.discard(socket)


queues: set[asyncio.Queue] = set()


@app.websocket("/queue/:name")
async def queued(req, socket):
    mine = asyncio.Queue()
    queues.add(mine)

    async def write():
        while True:
            await socket.send(await mine.get())

    writing = asyncio.ensure_future(write())
    try:
        async for message in socket:
            for queue in list(queues):
                queue.put_nowait(f"{req.params['name']}: {message}")
    finally:
        queues.discard(mine)
        writing.cancel()
"""
)


@pytest.fixture(scope="module")
def rooms(
    tools: Toolchain, make: Make, background: Background, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A worker with the page's example and a lobby."""
    running = start_running(
        tools, make(MAIN, PLAN, snapshot=False), background, tmp_path_factory.mktemp("state"), plan=PLAN
    )
    yield running
    running.stop()


def test_a_room_of_200_sockets(rooms: Running) -> None:
    place = f"ws://127.0.0.1:{rooms.port}/rooms/tea"
    asyncio.run(everyone_hears_everything(lambda number: f"{place}?name=m{number}", 200, 5))


@pytest.mark.parametrize("route", ["lobby", "queue"])
def test_a_lobby_of_plain_routes(rooms: Running, route: str) -> None:
    place = f"ws://127.0.0.1:{rooms.port}/{route}"
    asyncio.run(everyone_hears_everything(lambda number: f"{place}/m{number}", 40, 5))


def test_a_lobby_is_told_that_it_cannot_close_the_sockets_of_others(rooms: Running) -> None:
    async def try_it() -> None:
        place = f"ws://127.0.0.1:{rooms.port}/lobby"
        async with connect(f"{place}/a") as a, connect(f"{place}/b") as b:
            await a.send("out")
            assert await asyncio.wait_for(b.recv(), 10) == "a: out"
            assert "let a Durable Object own the connections" in str(await asyncio.wait_for(b.recv(), 10))
            assert await asyncio.wait_for(a.recv(), 10) == "a: out"
            await b.send("still here")
            assert await asyncio.wait_for(a.recv(), 10) == "b: still here"

    asyncio.run(try_it())


def test_an_evicted_room_keeps_its_members(rooms: Running) -> None:
    """The runtime evicts an object ten seconds after its last event: the one place where only waiting shows it."""

    async def try_it() -> None:
        place = f"ws://127.0.0.1:{rooms.port}/rooms/quiet"
        async with connect(f"{place}?name=a") as a, connect(f"{place}?name=b") as b:
            await a.send("hello")
            assert await b.recv() == "a: hello"
            before = rooms.request("GET", "/made").json()
            await asyncio.sleep(13)
            await a.send("again")
            assert await asyncio.wait_for(b.recv(), 10) == "a: again"
            assert rooms.request("GET", "/made").json() == before + 1

    asyncio.run(try_it())
