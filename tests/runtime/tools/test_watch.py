"""The watch over a node: a process of its own, and a health endpoint that says what the test has it say."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence

from core.runtime.keeper import until_unwell
from core.runtime.node import Node

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
FAILING = b'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 26\r\n\r\n{"problems": "DB is lost"}'
CUT_OFF = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n"
STRANGE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nnull"


class Watched:
    """A node that is well, and its answers, one after the other; the last one is given again and again."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.answers = answers
        self.asked = 0
        self.questioned = asyncio.Event()
        self.open: set[asyncio.StreamWriter] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(writer)
        await reader.readuntil(b"\r\n\r\n")
        said = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        self.questioned.set()
        if said:
            writer.write(said)
        else:
            await reader.read()  # it hangs: until the other end gives up
        writer.close()
        self.open.discard(writer)

    @contextlib.asynccontextmanager
    async def node(self) -> AsyncGenerator[Node]:
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        process = await asyncio.create_subprocess_exec("sleep", "60")
        node = Node(process)
        node.ports = {"health": server.sockets[0].getsockname()[1]}
        try:
            yield node
        finally:
            await node.kill()
            server.close()
            for writer in self.open:
                writer.close()
            await server.wait_closed()


async def test_three_failing_answers_in_a_row_are_too_many() -> None:
    watched = Watched([OK, FAILING, FAILING, OK, FAILING, FAILING, FAILING])
    async with watched.node() as node:
        assert await until_unwell(node, patience=30, every=0.01) == "is not well: DB is lost"
    assert watched.asked == 7


async def test_one_question_without_an_answer_is_enough() -> None:
    watched = Watched([OK, b""])
    async with watched.node() as node:
        assert await until_unwell(node, patience=0.1, every=0.01) == "is not well: it did not answer within 0.1 s"
    assert watched.asked == 2


async def test_the_end_of_the_process_is_noticed_while_it_is_asked() -> None:
    watched = Watched([b""])
    async with watched.node() as node:
        watching = asyncio.create_task(until_unwell(node, patience=30, every=0.01))
        await watched.questioned.wait()
        await node.kill()
        assert await watching == "ended with status -9"


async def test_an_answer_that_is_cut_off_or_is_no_answer_is_a_problem_and_no_error() -> None:
    async with Watched([CUT_OFF, STRANGE]).node() as node:
        assert await node.answers() == "it closed the connection"
        assert await node.answers() == "null"
