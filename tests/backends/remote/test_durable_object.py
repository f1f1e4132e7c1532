"""Durable Objects behind a socket keep the contract of those in the same process,
and their WebSockets stay in order.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.contracts.contract import Case
from tests.contracts.durable_object import Subject, contract
from tests.support.pythons import VERSIONS, packages, python_of, run

from core import http
from core.backends.embedded.durable_object import EmbeddedDurableObjectNamespace
from core.backends.embedded.store import Store
from core.backends.remote.durable_object import ObjectServer, RemoteObjects
from core.backends.remote.link import Frame, Link, RemoteWebSocket
from core.errors import DurableObjectError
from core.http.websocket import WebSocket, WebSocketClosed
from core.testing.clock import FakeClock

Namespace = EmbeddedDurableObjectNamespace[Subject]


class Ends:
    """Both ends of the socket: the namespaces that have the objects, and those that call them."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.store = Store(folder / "state", clock=clock)
        self.here = {name: Namespace(self.store, name, Subject) for name in ("one", "two")}
        place = str(folder / "objects.sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(place)
        listener.listen(64)
        listener.setblocking(False)
        self.server = ObjectServer(listener, self.here)
        self.there = [Namespace.over(RemoteObjects(name, Subject, place)) for name in self.here]


@asynccontextmanager
async def ends(folder: Path) -> AsyncGenerator[Ends]:
    made = Ends(folder, FakeClock())
    await made.server.start()
    try:
        yield made
    finally:
        for namespace in made.there:
            await namespace.close()
        await made.server.close()
        for namespace in made.here.values():
            await namespace.close()
        made.store.close()


@pytest.mark.parametrize("case", contract.select(timed=False), ids=lambda case: case.name)
async def test_remote_objects_keep_the_contract(
    case: Case[Namespace], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "core.durable_object")
    async with ends(tmp_path) as both:
        one, other = both.there
        await asyncio.wait_for(case.run(one, other=other, clock=None), 60)


async def test_the_place_where_an_object_failed_is_logged_where_it_lives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ends(tmp_path) as both:
        with pytest.raises(DurableObjectError, match=r"^in the section$"):
            await both.there[0].get_by_name("one").fail_in_section("k", caught=False)
    assert "a call of one.fail_in_section failed" in caplog.text
    assert "LookupError: in the section" in caplog.text


async def test_a_call_whose_process_ends_may_be_made_again(tmp_path: Path) -> None:
    async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(reader, writer)
        await link.receive()
        await link.send(Frame.BEGUN)
        link.close()

    place = str(tmp_path / "objects.sock")
    async with await asyncio.start_unix_server(end, place):
        namespace = Namespace.over(RemoteObjects("one", Subject, place))
        with pytest.raises(DurableObjectError, match=r"Subject\.get: the process .* carried out or not") as caught:
            await namespace.get_by_name("one").get("key")
        await namespace.close()
    # As in workerd where a connection is lost: the answer is 503 where nothing catches it.
    assert caught.value.retryable


async def join(namespace: Namespace, name: str) -> WebSocket:
    request = http.Request(f"https://object/socket?name={name}&tags=", headers={"Upgrade": "websocket"})
    response = await namespace.get_by_name("one").fetch(request)
    assert response.web_socket is not None
    return response.web_socket


async def test_a_socket_ends_with_1001_when_its_objects_stop_and_with_1012_when_they_are_killed(tmp_path: Path) -> None:
    async with ends(tmp_path) as both:
        member = await join(both.there[0], "a")
        await member.send("all:1")
        assert await member.receive() == "a: 1"
        await both.server.close()
        with pytest.raises(WebSocketClosed) as closed:
            await member.receive()
        assert closed.value.code == 1001

    near, far = socket.socketpair()
    far.close()
    lost = RemoteWebSocket(Link(*await asyncio.open_connection(sock=near)))
    with pytest.raises(WebSocketClosed) as closed:
        await lost.receive()
    assert (closed.value.code, closed.value.reason) == (1012, "Service Restart")
    await lost.close()


async def test_a_client_that_is_lost_is_told_to_the_object(tmp_path: Path) -> None:
    async with ends(tmp_path) as both:
        a, b = await join(both.there[0], "a"), await join(both.there[0], "b")
        end = getattr(a, "end")  # noqa: B009 - a host does so, and the Protocol of handlers has it not
        end(1006)
        assert await b.receive() == "a left"
        closes = await both.there[0].get_by_name("one").get("closes")
        assert closes == [[1006, "WebSocket disconnected without sending Close frame.", False, True]]
        await b.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_next_process_is_found_at_the_socket_of_one_that_has_ended(version: str, tmp_path: Path) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    program = str(Path(__file__).with_name("ending.py"))
    path = {"PYTHONPATH": str(packages(tmp_path)), "PYTHONDONTWRITEBYTECODE": "1"}
    assert run(python, "-S", program, str(tmp_path / "objects"), **path) == "connected"
