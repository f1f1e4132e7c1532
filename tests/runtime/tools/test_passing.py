"""Lifespans, mounts, responses that are passed on and clients that go away: `core dev` and `core serve --python`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.commands import Command
from tests.support.passing import check_lifespan, check_mount, check_passing, check_sockets, check_waiting

PASSING = Path(__file__).parent / "passing"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]


class Place:
    """One way to serve it, and the port."""

    def __init__(self, name: str, command: Command) -> None:
        self.name = name
        self.command = command
        self.port = int(command.until(r"Address\s+http://[^:]*:(\d+)")[1]) if name == "dev" else command.ports()[0]


@pytest.fixture(scope="module", params=["dev", "python"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The application where it is served by a command."""
    state = str(tmp_path_factory.mktemp("state"))
    name: str = request.param
    options = ["serve", "--python", "--workers", "1", "--health", "127.0.0.1:0"]
    begin = ["dev"] if name == "dev" else options
    command = Command(*begin, "--port", "0", "--state", state, folder=PASSING)
    try:
        yield Place(name, command)
    finally:
        command.finish()
    # Each process has its own: one that answers, and one that has the objects.
    processes = 1 if name == "dev" else 2
    assert [line for line in command.lines if line.endswith("left")] == ["inner left", "lifespan left"] * processes


def test_a_lifespan_is_entered_once_and_left_at_the_end(place: Place) -> None:
    check_lifespan(place.port)


def test_requests_and_responses_are_passed_on(place: Place) -> None:
    check_passing(place.port)


def test_applications_are_mounted(place: Place) -> None:
    check_mount(place.port)


@pytest.mark.parametrize("prefix", ["/inner", "/old"])
def test_the_websockets_of_a_mounted_application(place: Place, prefix: str) -> None:
    check_sockets(place.port, prefix)


@pytest.mark.parametrize("path", ["waiting", "streaming"])
def test_a_handler_hears_that_its_client_is_gone(place: Place, path: str) -> None:
    check_waiting(place.port, f"/{path}/{path}")
