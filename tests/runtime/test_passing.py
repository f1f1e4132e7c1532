"""Lifespans, mounts, responses that are passed on and clients that go away, inside workerd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest
from tests.runtime.conftest import Background, Make, Running, make_of, start_running
from tests.support.passing import check_lifespan, check_mount, check_passing, check_sockets, check_waiting

from core.runtime.project import open_project
from core.runtime.toolchain import Toolchain

PASSING = Path(__file__).parent / "tools" / "passing"


@pytest.fixture(scope="module")
def begin(
    tools: Toolchain, make: Make, background: Background, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Running]]:
    """Start a node, with compatibility flags of its own where they are given."""
    project = open_project(PASSING / "wrangler.toml")
    place = tmp_path_factory.mktemp("passing")
    bundle = make_of(make, project)
    started: list[Running] = []

    def begin(*flags: str) -> Running:
        plan = attrs.evolve(project.plan, compatibility_flags=flags)
        started.append(start_running(tools, bundle, background, place / f"state{len(started)}", plan=plan))
        return started[-1]

    yield begin
    for node in started:
        node.stop()


@pytest.fixture(scope="module")
def node(begin: Callable[..., Running]) -> Running:
    """The node that the tests share."""
    return begin("enable_request_signal")


def test_a_lifespan_is_entered_with_the_first_event(node: Running) -> None:
    check_lifespan(node.port)


def test_requests_and_responses_are_passed_on(node: Running) -> None:
    check_passing(node.port)


def test_applications_are_mounted(node: Running) -> None:
    check_mount(node.port)


@pytest.mark.parametrize("prefix", ["/inner", "/old"])
def test_the_websockets_of_a_mounted_application(node: Running, prefix: str) -> None:
    check_sockets(node.port, prefix)


def test_a_streaming_handler_hears_that_its_client_is_gone(node: Running) -> None:
    check_waiting(node.port, "/streaming/one")


def test_workerd_does_not_look_at_the_connection_before_it_answers(node: Running) -> None:
    """The hosted platform does; docs/how-to/mount.md says so."""
    with pytest.raises(AssertionError, match="it did not hear"):
        check_waiting(node.port, "/waiting/one")


def test_without_the_flag_every_client_seems_to_be_there(begin: Callable[..., Running]) -> None:
    with pytest.raises(AssertionError, match="it did not hear"):
        check_waiting(begin().port, "/streaming/one")
