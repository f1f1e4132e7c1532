"""A stop of `core serve`, as every kind of connection sees it: WebSockets, streams that never end, requests,
silent ones.
"""

from __future__ import annotations

import asyncio
import http.client
import signal
import socket as sockets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.runtime.conftest import Make
from tests.support.collector import Collector
from tests.support.commands import PATIENCE, Command, ask, until
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from core.runtime.bundle import Bundle
from core.runtime.plan import Plan

MAIN = (
    (Path(__file__).parents[2] / "docs" / "examples" / "chatting.py").read_text()
    + """

import asyncio


@app.get("/")
async def hello(req, res):
    res.text("hello")


@app.get("/slow")
async def slow(req, res):
    print("slow began")
    await asyncio.sleep(4)
    res.text("slow")


@app.get("/traced")
async def traced(req, res):
    print("traced began")
    await asyncio.sleep(0.4)
    for _ in range(1800):
        with req.ctx.span("part", text="x" * 40_000):
            pass
    res.text("traced")


@app.get("/events")
async def events(req, res):
    async def forever():
        number = 0
        try:
            while True:
                yield f"{number}"
                number += 1
                await asyncio.sleep(0.05)
        finally:
            print("events ended")

    res.sse(forever())


@app.get("/silence")
async def silence(req, res):
    async def forever():
        yield "once"
        try:
            await asyncio.Event().wait()
        finally:
            print("silence ended")

    res.sse(forever())


@app.get("/file")
async def file(req, res):
    async def parts():
        for number in range(20):
            yield f"{number};"
            await asyncio.sleep(0.05)

    res.stream(parts())


@app.get("/endless")
async def endless(req, res):
    async def parts():
        while True:
            yield b"x"
            await asyncio.sleep(0.05)

    res.stream(parts())


@app.websocket("/echo")
async def echo(req, socket):
    try:
        async for message in socket:
            await socket.send(message)
    finally:
        print("echo ended")


@app.websocket("/deaf")
async def deaf(req, socket):
    await socket.send("hello")
    await asyncio.sleep(600)
"""
)
PLAN = Plan(name="stopping", durable_objects={"ROOMS": "Room"})


@pytest.fixture(scope="module")
def stopped(make: Make) -> Bundle:
    """An application with connections of every kind."""
    return make(MAIN, PLAN)


@pytest.fixture
def serve(tmp_path: Path, stopped: Bundle) -> Iterator[Callable[..., Command]]:
    """Start `core serve` on free ports."""
    started: list[Command] = []

    def serve(*options: str, env: Mapping[str, str] | None = None) -> Command:
        where = ["--port", "0", "--health", "127.0.0.1:0"]
        started.append(Command("serve", str(stopped.folder), *where, *options, folder=tmp_path, env=env))
        return started[-1]

    yield serve
    for command in started:
        if command.process.poll() is None:
            command.finish()


class Greeted:
    """Counts connections that have got something."""

    def __init__(self) -> None:
        self._count = threading.Semaphore(0)

    def one(self) -> None:
        self._count.release()

    def wait(self, count: int) -> None:
        for _ in range(count):
            assert self._count.acquire(timeout=PATIENCE)


async def closed(url: str, greeting: str | None, greeted: Greeted) -> tuple[int, str]:
    """Connect, be greeted, and wait for the end: its code and reason as the client sees them."""
    async with connect(url, open_timeout=PATIENCE) as socket:
        if greeting is not None:
            await socket.send(greeting)
        await socket.recv()
        greeted.one()
        try:
            while True:
                await socket.recv()
        except ConnectionClosed as end:
            return (end.rcvd.code, end.rcvd.reason) if end.rcvd is not None else (1006, "")


def streamed(port: int, path: str, greeted: Greeted) -> tuple[bytes, bool]:
    """A body as far as it came, and whether it ended as it should."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read1()
        greeted.one()
        try:
            while piece := response.read1():
                body += piece
            return body, True
        except (http.client.HTTPException, OSError):
            return body, False
    finally:
        connection.close()


def cut_off(connection: sockets.socket) -> bool:
    try:
        connection.send(b"x")
    except ConnectionError:
        return True
    return False


def test_sockets_are_told_and_streams_end_within_the_stop_timeout(serve: Callable[..., Command]) -> None:
    served = serve("--stop-timeout", "6")
    port, _ = served.ports()
    place = f"ws://127.0.0.1:{port}"
    greeted = Greeted()

    async def sessions() -> list[tuple[int, str]]:
        plain = [closed(f"{place}/echo", "hello", greeted) for _ in range(5)]
        deaf, room = closed(f"{place}/deaf", None, greeted), closed(f"{place}/rooms/tea?name=a", "hello", greeted)
        return await asyncio.gather(*plain, deaf, room)

    with ThreadPoolExecutor(5) as pool, sockets.create_connection(("127.0.0.1", port)) as silent:
        connected = pool.submit(lambda: asyncio.run(sessions()))
        paths = ("/events", "/silence", "/endless", "/file")
        bodies = {path: pool.submit(streamed, port, path, greeted) for path in paths}
        greeted.wait(7 + 4)
        asked = time.monotonic()
        served.process.send_signal(signal.SIGTERM)

        late = until(lambda: ask(port), lambda answer: answer.status == 503)
        assert dict(late.headers)["Retry-After"] == "1"
        assert connected.result() == [(1001, "the server stops")] * 7
        assert [bodies[path].result()[1] for path in ("/events", "/silence")] == [True, True]
        # One that has an end is not ended early, and one that is cut is not taken for a whole one.
        assert bodies["/file"].result() == (b"".join(b"%d;" % number for number in range(20)), True)
        assert not bodies["/endless"].result()[1]
        assert served.finish(by_itself=True) == 0
        assert time.monotonic() - asked < 6 + 60
        until(lambda: cut_off(silent), bool)
    assert {"events ended", "silence ended", "echo ended"} <= set(served.lines)
    assert not [line for line in served.lines if "Traceback" in line or "Error" in line]


def announced(kept: http.client.HTTPConnection) -> str | None:
    """The `Connection` header of the answer to a request on a connection that is kept."""
    kept.request("GET", "/")
    response = kept.getresponse()
    assert (response.status, response.read()) == (200, b"hello")
    return response.getheader("Connection")


def test_a_request_that_is_held_is_answered_beside_one_that_takes_long(serve: Callable[..., Command]) -> None:
    served = serve("--stop-timeout", "8")
    port, _ = served.ports()
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with ThreadPoolExecutor(1) as pool:
        earlier = pool.submit(ask, port, "/slow")
        served.until("slow began")
        served.process.send_signal(signal.SIGTERM)
        said = None
        while said is None:
            said = announced(kept)
        assert said == "close"
        assert earlier.result().text == "slow"
    assert served.finish(by_itself=True) == 0


def test_requests_are_held_however_long_the_last_spans_take(serve: Callable[..., Command]) -> None:
    collector = Collector()
    served = serve("--stop-timeout", "60", env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address})
    port, _ = served.ports()
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        greeted = Greeted()
        with ThreadPoolExecutor(2) as pool:
            ended = pool.submit(streamed, port, "/events", greeted)
            greeted.wait(1)
            assert announced(kept) is None
            earlier = pool.submit(ask, port, "/traced")
            served.until("traced began")
            served.process.send_signal(signal.SIGTERM)
            assert ended.result()[1]
            # Streams end, and then requests are held until the process has been told to stop.
            served.until("events ended")
            assert announced(kept) == "close"
            assert earlier.result().text == "traced"
        assert served.finish(by_itself=True) == 0
        assert {"GET /traced", "part"} <= {span.name for span in collector.spans}
    finally:
        kept.close()
        collector.close()


def test_requests_are_held_while_another_process_hangs(stateless: Bundle, tmp_path: Path) -> None:
    where = ["--port", "0", "--health", "127.0.0.1:0", "--processes", "2", "--stop-timeout", "6"]
    served = Command("serve", str(stateless.folder), *where, folder=tmp_path)
    port, _ = served.ports()
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    greeted = Greeted()
    with sockets.create_connection(("127.0.0.1", port)) as hanging, ThreadPoolExecutor(1) as pool:
        try:
            hanging.sendall(b"GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n")
            served.until("hang began")
            # One that hangs accepts nothing: these are the other's.
            ended = pool.submit(streamed, port, "/events", greeted)
            greeted.wait(1)
            assert announced(kept) is None
            served.process.send_signal(signal.SIGTERM)
            assert ended.result()[1]
            served.until("events ended")
            assert announced(kept) == "close"
        finally:
            kept.close()
            served.process.kill()  # the one that hangs would compute until it is ended
            served.finish(by_itself=True)
