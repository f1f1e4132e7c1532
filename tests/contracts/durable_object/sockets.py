"""The promises of the WebSockets that a Durable Object owns: who hears which message, in which order, and the end of a
connection.
"""

from __future__ import annotations

import asyncio

from tests.contracts.contract import refused
from tests.contracts.durable_object.subject import Subject, Subjects, case, contract

from core.errors import DurableObjectError
from core.http import Request
from core.http.websocket import WebSocket, WebSocketClosed


async def join(subjects: Subjects, name: str, *, tags: str = "", welcome: str | None = None) -> WebSocket:
    """Return the client's end of a new WebSocket of the object `one`."""
    asked = f"name={name}&tags={tags}" + ("" if welcome is None else f"&welcome={welcome}")
    request = Request(f"https://object/socket?{asked}", headers={"Upgrade": "websocket"})
    response = await subjects.get_by_name("one").fetch(request)
    assert response.status == 101
    assert response.headers["sec-websocket-protocol"] == "chat"
    assert response.web_socket is not None
    return response.web_socket


async def closed(socket: WebSocket) -> tuple[int, str]:
    """Return why a WebSocket closed, after the messages that are left."""
    try:
        while True:
            await socket.receive()
    except WebSocketClosed as error:
        return error.code, error.reason


async def leave(*sockets: WebSocket) -> None:
    """Close WebSockets from their client's side."""
    for socket in sockets:
        await socket.close()


async def noted(subjects: Subjects, count: int) -> list[list[object]]:
    """Return the closes that the object has noted, once there are so many."""
    one = subjects.get_by_name("one")
    closes: list[list[object]] = []
    for _ in range(1000):
        closes = await one.get("closes") or []
        if len(closes) >= count:
            break
        await asyncio.sleep(0.001)
    return closes


@contract.case()
async def every_message_reaches_every_member_in_order(subjects: Subjects) -> None:
    members = [await join(subjects, f"m{number}") for number in range(5)]
    for turn in range(4):
        for number, member in enumerate(members):
            await member.send(f"all:{turn}-{number}")
    heard = [[await member.receive() for _ in range(20)] for member in members]
    assert all(one == heard[0] for one in heard)
    for number in range(5):
        assert [m for m in heard[0] if str(m).startswith(f"m{number}:")] == [
            f"m{number}: {t}-{number}" for t in range(4)
        ]
    await leave(*members)


@contract.case()
async def what_is_sent_before_the_answer_arrives_first(subjects: Subjects) -> None:
    member = await join(subjects, "a", welcome="hello")
    await member.send("all:1")
    assert [await member.receive(), await member.receive()] == ["hello", "a: 1"]
    await leave(member)


@contract.case()
async def bytes_come_and_go_as_bytes(subjects: Subjects) -> None:
    member = await join(subjects, "a")
    await member.send(b"\x00\xff")
    assert await member.receive() == b"bytes:\x00\xff"
    await leave(member)


@contract.case()
async def tags_find_the_members_again(subjects: Subjects) -> None:
    a, b = await join(subjects, "a", tags="x,y,x"), await join(subjects, "b", tags="y")
    await a.send("tagged:x:only a")
    await a.send("tagged:y:both")
    await a.send("tags:")
    assert [await a.receive() for _ in range(2)] == ["only a", "both"]
    assert sorted(str(await a.receive()).split(",")) == ["x", "y"]
    assert await b.receive() == "both"
    assert await subjects.get_by_name("one").count_sockets("y") == 2
    assert await subjects.get_by_name("one").count_sockets("z") == 0
    await leave(a, b)


@contract.case()
async def a_socket_is_itself_alone(subjects: Subjects) -> None:
    a, b = await join(subjects, "a"), await join(subjects, "b")
    await a.send("same:")
    assert sorted(str(await a.receive())[1:-1].split(", ")) == ["False", "True"]
    await leave(a, b)


@contract.case()
async def an_attachment_is_a_copy_that_can_be_replaced(subjects: Subjects) -> None:
    member = await join(subjects, "a")
    await member.send("keep:b")
    await member.send("all:1")
    assert await member.receive() == "b: 1"
    await leave(member)


@contract.case()
async def an_attachment_has_16_384_bytes(subjects: Subjects) -> None:
    member = await join(subjects, "a")
    await member.send("attach:20000")
    await member.send("all:still here")
    assert await member.receive() == "a: still here"
    await leave(member)


@contract.case()
async def a_handler_that_raises_leaves_the_socket_open(subjects: Subjects) -> None:
    member = await join(subjects, "a")
    await member.send("nonsense")
    await member.send("all:1")
    assert await member.receive() == "a: 1"
    await leave(member)


@contract.case()
async def a_message_that_waits_lets_the_next_one_in(subjects: Subjects) -> None:
    member = await join(subjects, "a")
    await member.send("wait:first")
    await member.send("all:second")
    assert [await member.receive(), await member.receive()] == ["a: second", "first"]
    await leave(member)


@contract.case()
async def the_object_closes_with_a_code_of_its_own(subjects: Subjects) -> None:
    member = await join(subjects, "a")
    await member.send("close:4001")
    assert await closed(member) == (4001, "as asked")
    # It could send nothing after that, and no longer had the socket.
    # Whether a client's answer repeats the reason is its own business.
    code, _, *rest = (await noted(subjects, 1))[0]
    assert [code, *rest] == [4001, True, False]
    assert await subjects.get_by_name("one").get("refused") == 0


@contract.case()
async def a_client_that_leaves_is_there_until_its_close_was_taken(subjects: Subjects) -> None:
    a, b = await join(subjects, "a"), await join(subjects, "b")
    await a.close(4002, "bye")
    assert await b.receive() == "a left"
    assert await noted(subjects, 1) == [[4002, "bye", True, True]]
    await b.send("all:1")
    assert await b.receive() == "b: 1"
    assert await subjects.get_by_name("one").count_sockets() == 1
    await leave(b)


@contract.case()
async def an_automatic_answer_comes_without_the_object(subjects: Subjects) -> None:
    member = await join(subjects, "a")
    await member.send("answered:")
    await member.send("automatic:pong")
    await member.send("answered:")
    assert [await member.receive(), await member.receive()] == ["never", "never"]
    await member.send("ping")
    assert await member.receive() == "pong"
    await member.send("answered:")
    assert await member.receive() == "in UTC"
    await member.send("automatic:")
    await member.send("all:now")
    assert await member.receive() == "a: now"
    await member.send("ping")
    await member.send("all:no answer any more")
    assert await member.receive() == "a: no answer any more"
    await leave(member)


@contract.case()
async def an_abort_cuts_every_connection(subjects: Subjects) -> None:
    a, b = await join(subjects, "a"), await join(subjects, "b")
    await a.send("abort:")
    assert [(await closed(member))[0] for member in (a, b)] == [1006, 1006]
    assert await subjects.get_by_name("one").count_sockets() == 0


@case()
async def sockets_have_limits(one: Subject) -> None:
    await refused(
        one.accept_under([str(number) for number in range(11)]),
        DurableObjectError,
        "a Hibernatable WebSocket cannot have more than 10 tags",
    )
    await refused(
        one.accept_under(["x" * 257]),
        DurableObjectError,
        f'"{"x" * 257}" is longer than the max tag length (256 characters).',
    )
    assert await one.count_sockets() == 0


@case()
async def a_socket_is_accepted_once_and_before_it_is_answered(one: Subject) -> None:
    await refused(one.accept_twice(), DurableObjectError)
    error = await refused(one.forget_to_accept(), Exception)
    assert "accept_web_socket(server) first" in str(error)
