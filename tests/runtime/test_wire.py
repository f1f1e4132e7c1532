"""The contract of the wire: the same bytes to uvicorn and to workerd, as `core serve` starts them."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest
from tests.runtime.conftest import Make
from tests.support.commands import PATIENCE, Command, ask, until
from tests.support.openmetrics import samples

from core.runtime.plan import Plan

WIRE = Path(__file__).parent / "wire"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "wire.md"
PLACES = ("CPython", "workerd")
HOST = b"Host: a.test\r\n"
T = TypeVar("T")
PATIENT = 12.0
"""The seconds after which a client that is told nothing gives up: the timeouts of CPython are shorter here."""


class Server:
    """A server of the application, and a client that speaks bytes."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.port, self.health = command.ports()
        assert ask(self.port).text == "hello"

    def open(self, sent: bytes) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        connection.sendall(sent)
        return connection

    def told(self, sent: bytes) -> str:
        """The answers to `sent`, until the server closes or a client gives up."""
        with self.open(sent) as connection:
            return heard(connection)

    def counted(self) -> dict[str, float]:
        """The requests that were counted, by route and status."""
        found = samples(ask(self.health, "/metrics").text)
        return {labels: number for (name, labels), number in found.items() if name == "core_http_requests_total"}

    def broken_off(self, path: str, head: bytes, body: bytes) -> str:
        """The status that is counted for a request whose client leaves in its body; nothing else may come of it."""
        request = b"POST /%b HTTP/1.1\r\n%b%b\r\n" % (path.encode(), HOST, head) + body
        return self.counted_of(lambda: self.open(request).close())[1]

    def counted_of(self, give: Callable[[], T]) -> tuple[T, str]:
        """What comes of a body that ends early, and the status that is counted; nothing else may come of it."""
        before = self.counted()
        lines = len(self.command.lines)
        given = give()
        after = until(self.counted, lambda now: now != before)
        status: list[str] = [
            labels.rpartition("=")[2] for labels, number in after.items() if number != before.get(labels)
        ]
        said = [line for line in self.command.lines[lines:] if "ERROR" in line or "Traceback" in line]
        assert not said
        assert len(status) == 1
        assert ask(self.port, "/whole").json() == []
        return given, status.pop()


def heard(connection: socket.socket) -> str:
    """The statuses and bodies that come, and whether the server closes."""
    connection.settimeout(PATIENT)
    received, end = b"", "closed"
    try:
        while piece := connection.recv(65536):
            received += piece
    except TimeoutError:
        end = "open"
    except ConnectionResetError:
        end = "reset"
    statuses = [status.decode() for status in re.findall(rb"HTTP/1\.[01] (\d+) ", received)]
    return f"{', '.join(statuses) or 'nothing'}; {end}"


Row = Callable[[Server], str]
LENGTH = (b"Content-Length: 100000\r\n", b"x" * 50_000)
CHUNKED = (b"Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n")
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


def broken(path: str, how: tuple[bytes, bytes]) -> Row:
    return lambda server: server.broken_off(path, (FORM if path == "form" else b"") + how[0], how[1])


def mounted(how: tuple[bytes, bytes]) -> Row:
    def row(server: Server) -> str:
        status = server.broken_off("mounted/", *how)
        return f"{status}, after `{ask(server.port, '/received').json()[-1]}`"

    return row


def sent(text: bytes) -> Row:
    return lambda server: server.told(text)


def get(host: bytes, version: bytes = b"1.1") -> Row:
    return sent(b"GET / HTTP/%b\r\n%bConnection: close\r\n\r\n" % (version, host))


def framed(path: bytes) -> Row:
    """An answer whose length is not what it says, and the request behind it on the same connection."""
    return sent(b"GET /%b HTTP/1.1\r\n%b\r\nGET / HTTP/1.1\r\n%bConnection: close\r\n\r\n" % (path, HOST, HOST))


def counted(head: bytes, body: bytes) -> Row:
    """The answer to a body that ends early, and the status that is counted."""

    def row(server: Server) -> str:
        request = b"POST /stream HTTP/1.1\r\n%b%b\r\n" % (HOST, head) + body
        told, status = server.counted_of(lambda: server.told(request))
        return f"{told}; counted as {status}"

    return row


def malformed(body: bytes) -> Row:
    return counted(b"Transfer-Encoding: chunked\r\n", body)


def beside_a_thousand(server: Server) -> str:
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(server.open(b""))
        return str(ask(server.port).status)


def at_a_stop(server: Server) -> str:
    with server.open(b"GET /events HTTP/1.1\r\n%b\r\n" % HOST) as connection:
        received = b""
        while b"data: first" not in received:
            received += connection.recv(65536)
        server.command.process.send_signal(signal.SIGTERM)
        while piece := connection.recv(65536):
            received += piece
    assert server.command.finish(by_itself=True) == 0
    return "ended by its last chunk" if received.endswith(b"0\r\n\r\n") else "cut"


READERS = ("stream", "bytes", "form", "json", "limited")
ROWS: Mapping[str, Row] = {
    **{f"A client leaves in a body with a length, `{path}`": broken(path, LENGTH) for path in READERS},
    **{f"A client leaves in a chunked body, `{path}`": broken(path, CHUNKED) for path in READERS},
    "A client leaves in a body that its answer echoes": broken("echo", LENGTH),
    "A client leaves in a body, and a mounted ASGI application answers": mounted(LENGTH),
    "A client leaves in a chunked body, and a mounted ASGI application answers": mounted(CHUNKED),
    "A chunk without a size": malformed(b"zz\r\nabc\r\n"),
    "A chunk longer than its size": malformed(b"3\r\nabcdef\r\n0\r\n\r\n"),
    "A chunk of a negative size": malformed(b"-1\r\n\r\n"),
    "One Host": get(HOST),
    "No Host": get(b""),
    "No Host, in HTTP/1.0": get(b"", b"1.0"),
    "Two equal Hosts": get(HOST + HOST),
    "Two different Hosts": get(HOST + b"Host: b.test\r\n"),
    "The Host `a/b?c`": get(b"Host: a/b?c\r\n"),
    "The Host `<svg>`": get(b"Host: <svg>\r\n"),
    "The Host `u@a`": get(b"Host: u@a\r\n"),
    "`CONNECT a.test:443`": sent(b"CONNECT a.test:443 HTTP/1.1\r\n%b\r\n" % HOST),
    "A text of 4 bytes that says 2": framed(b"said/2"),
    "A text of 4 bytes that says 999": framed(b"said/999"),
    "A stream of 4 bytes that says 2": framed(b"streamed/2"),
    "A stream of 4 bytes that says 999": framed(b"streamed/999"),
    "A request beside 1,000 idle connections": beside_a_thousand,
    "Half a head, and then nothing": sent(b"GET / HTTP/1.1\r\nHost: a"),
    "Half a body, and then nothing": counted(b"Content-Length: 9\r\n", b"x"),
    "A stream of events at a stop": at_a_stop,
}
SEEN: dict[tuple[str, str], str] = {}


@pytest.fixture(scope="module")
def servers(make: Make, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    """One server in each place."""
    bundle = make(WIRE / "main.py", Plan(name="wire")).folder
    common = ["serve", "--port", "0", "--health", "127.0.0.1:0", "--metrics"]
    limits = ["--head-timeout", "2", "--body-timeout", "2", "--workers", "1"]
    state = tmp_path_factory.mktemp("wire_state")
    commands = {
        "CPython": Command(*common, "--python", *limits, "--state", str(state / "python"), folder=WIRE),
        "workerd": Command(*common, str(bundle), "--state", str(state / "workerd"), folder=state),
    }
    yield {place: Server(command) for place, command in commands.items()}
    for command in commands.values():
        if command.process.poll() is None:
            command.finish()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("row", list(ROWS))
def test_what_a_place_answers(servers: dict[str, Server], row: str, place: str) -> None:
    seen = SEEN[row, place] = ROWS[row](servers[place])
    if os.environ.get("CORE_WRITE_DOCS") != "1":
        assert seen == written()[row, place]


def test_the_documentation_has_the_table_of_this_run() -> None:
    """A whole run writes what it saw with `CORE_WRITE_DOCS=1`."""
    if os.environ.get("CORE_WRITE_DOCS") == "1":
        assert len(SEEN) == len(ROWS) * len(PLACES), "a table is written by a run of every row: leave out -k and -n"
        PAGE.write_text(page(SEEN), "utf-8")
    assert PAGE.read_text("utf-8") == page({**written(), **SEEN}), (
        "write it anew: CORE_WRITE_DOCS=1 pytest tests/runtime/test_wire.py"
    )


def written() -> dict[tuple[str, str], str]:
    """The cells of the page, by row and place."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    return {(row, place): cell for row, *cells in rows[2:] for place, cell in zip(PLACES, cells, strict=True)}


def page(seen: Mapping[tuple[str, str], str]) -> str:
    """The table, by row and place."""
    return "\n".join(
        [
            "# The wire, in both places",
            "",
            "The same bytes over raw sockets, to uvicorn (`core serve --python`) and to workerd (`core serve`). The table is",
            "written by a run of `tests/runtime/test_wire.py`. A cell has the statuses of the answers, and whether the server",
            "closes the connection. For a client that leaves, which reads no answer, it has the status in the metrics; the log",
            "has no error then, and the handler does not go on. On CPython heads and bodies have 2 seconds here; workerd has no",
            "such limit, so a proxy in front has to have one. A client that sends nothing more waits 4 seconds.",
            "",
            f"| | {' | '.join(PLACES)} |",
            f"| --- |{' --- |' * len(PLACES)}",
            *(f"| {row} | {' | '.join(seen[row, place] for place in PLACES)} |" for row in ROWS),
            "",
            "workerd answers `CONNECT` and a request without Host by itself, before the application. It says the same of a",
            "chunked body that is malformed and of one whose client is gone: both are 400.",
            "",
        ]
    )
