"""The checks of `tests/runtime/tools/passing` over a real socket, the same for every host."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from tests.support.commands import PATIENCE, ask, until
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

__all__ = ["check_lifespan", "check_mount", "check_passing", "check_sockets", "check_waiting"]


def check_lifespan(port: int) -> None:
    """It was entered once before the first answer."""
    assert ask(port, "/lifespan").json() == ["hello", ["hello"]]
    assert ask(port, "/lifespan").json() == ["hello", ["hello"]]


def check_passing(port: int, path: str = "a%2Fb") -> None:
    """A request as a standard value, and a standard response, in pieces, as the answer."""
    answer = ask(port, f"/room/{path}?q=1", "POST", "text")
    assert (answer.status, answer.text) == (203, f"POST /room/{path} None text and more")
    headers = [(name.lower(), value) for name, value in answer.headers]
    assert ("x-theirs", "1") in headers
    assert ("x-own", "1") in headers
    assert ("x-mark", "203") in headers
    assert [value for name, value in headers if name == "content-type"] == ["text/css"]
    assert [value.split(";")[0] for name, value in headers if name == "set-cookie"] == ["a=1", "b=2", "own=3"]
    assert ask(port, "/room/x", "HEAD").body == b""


def check_mount(port: int) -> None:
    """An ASGI application and a function, with bodies in and out, and background work."""
    answer = ask(port, "/inner/x%20y?q", "POST", "b" * 200_000)
    assert (answer.status, answer.text) == (202, "0;1;2;POST /inner /inner/x y 200000 open")
    headers = [(name.lower(), value) for name, value in answer.headers]
    assert [value for name, value in headers if name == "set-cookie"] == ["a=1", "b=2"]
    assert ("x-mark", "202") in headers
    until(lambda: ask(port, "/seen/background").json(), lambda said: True in said)
    assert ask(port, "/old/a/7?q=1", "POST", "body").json() == ["7", "1", "body", "hello"]
    assert ask(port, "/old/nothing").status == 404


def check_sockets(port: int, prefix: str, *, whole: bool = True) -> None:
    """A WebSocket of what is mounted at `prefix`; `whole` where the host has subprotocols and codes of a close."""

    async def talk() -> None:
        offered: Any = ["chat.v1"] if whole else None
        async with connect(f"ws://127.0.0.1:{port}{prefix}/talk", subprotocols=offered) as client:
            assert client.subprotocol == ("chat.v1" if whole else None)
            for number in range(20):
                await client.send(f"{number}")
            assert [await client.recv() for _ in range(20)] == [f"{prefix}/talk {number}" for number in range(20)]
            await client.send(b"\x00\xff")
            assert await client.recv() == b"\xff\x00"
            await client.send("leave")
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), PATIENCE)
            if whole:
                assert closed.value.rcvd is not None
                assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "bye")
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://127.0.0.1:{port}{prefix}/refused")
        assert refused.value.response.status_code == 403

    asyncio.run(talk())
    until(lambda: ask(port, f"/seen/closed-{prefix[1:]}").json(), lambda said: True in said)


def check_waiting(port: int, path: str = "/waiting/one") -> None:
    """A handler asks whether its client is there, and hears when it goes."""
    name = path.rpartition("/")[2]
    assert ask(port, "/still/x").json() == [False, False, False]
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        until(lambda: ask(port, f"/seen/{name}").json(), lambda said: len(said) >= 2)
    said = until(lambda: ask(port, f"/seen/{name}").json(), lambda said: said[-1] or len(said) >= 100)
    assert said[-1], "it did not hear of the end"
    assert not said[0]
