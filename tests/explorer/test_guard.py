"""Guards of the explorer: Host, Origin and token, over real HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.running import RunningDev

from core.dev.guard import Guard, is_loopback

WORKSHOP = Path(__file__).parent / "workshop"


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDev]:
    with RunningDev(WORKSHOP, tmp_path_factory.mktemp("state"), "--no-reload") as dev:
        dev.until("Ctrl-C stops")
        yield dev


def token_of(dev: RunningDev) -> str:
    found = re.search(r'name="core-token" content="([^"]+)"', dev.fetch("/_core/").text)
    assert found is not None
    return found[1]


def test_the_page_carries_the_token_and_the_token_opens_the_interface(dev: RunningDev) -> None:
    assert dev.fetch("/_core/api/overview", headers={"X-Core-Token": token_of(dev)}).status == 200


@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_without_the_token_nothing_is_told(dev: RunningDev, token: str | None) -> None:
    headers = {} if token is None else {"X-Core-Token": token}
    assert dev.fetch("/_core/api/overview", headers=headers).status == 403
    assert (
        dev.fetch("/_core/api/d1/DB/query", method="POST", body=b'{"sql": "SELECT 1"}', headers=headers).status == 403
    )


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "localhost.evil.example", "127.0.0.1:1", ""])
def test_a_strange_host_is_refused_even_the_page(dev: RunningDev, host: str) -> None:
    port = dev.address.rpartition(":")[2]
    assert dev.fetch("/_core/", headers={"Host": host.format(port=port)}).status in (400, 403)


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}])  # fmt: skip
def test_another_origin_is_refused_even_with_the_token(dev: RunningDev, headers: dict[str, str]) -> None:
    answer = dev.fetch("/_core/api/overview", headers={"X-Core-Token": token_of(dev), **headers})
    assert answer.status == 403


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        (None, True),
        ("{own}", True),
        ("http://localhost:5173", True),  # a front end under development
        ("https://127.0.0.1", True),
        ("http://evil.example", False),
        ("http://localhost.evil.example", False),
        ("http://evil.example#://localhost", False),
        ("null", False),
    ],
)
@pytest.mark.parametrize("accept", ["*/*", "text/html"])
def test_only_pages_of_this_machine_read_why_a_request_failed(
    dev: RunningDev, origin: str | None, told: bool, accept: str
) -> None:
    headers = {} if origin is None else {"Origin": origin.format(own=dev.address)}
    answer = dev.fetch("/broken", headers={"Accept": accept, **headers})
    assert answer.status == 500
    if told:
        assert "no_such_table" in answer.text
    else:
        assert answer.text == '{"error":"Internal Server Error"}'


def test_a_strange_host_gets_no_error_page_either(dev: RunningDev) -> None:
    answer = dev.fetch("/broken", headers={"Host": "evil.example", "Accept": "text/html"})
    assert answer.status == 500
    assert answer.text == '{"error":"Internal Server Error"}'


def test_the_page_may_load_nothing_from_elsewhere(dev: RunningDev) -> None:
    answer = dev.fetch("/_core/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", answer.text.replace('href="data:', ""))


def test_on_a_public_address_there_is_no_explorer_and_no_error_page(tmp_path: Path) -> None:
    with RunningDev(WORKSHOP, tmp_path, "--no-reload", "--host", "0.0.0.0") as dev:
        dev.until("is reached from other machines")
        assert dev.fetch("/_core/").status == 404
        assert dev.fetch("/broken", headers={"Accept": "text/html"}).text == '{"error":"Internal Server Error"}'


def test_on_a_public_address_the_page_itself_asks_for_the_token(tmp_path: Path) -> None:
    with RunningDev(WORKSHOP, tmp_path, "--no-reload", "--host", "0.0.0.0", "--explorer") as dev:
        link = dev.until("Explorer").split()[-1]
        assert dev.fetch("/_core/").status == 403
        assert dev.fetch(link.removeprefix(dev.address)).status == 200


def test_names_that_nobody_can_point_here_are_the_only_ones_let_in() -> None:
    loopback = Guard("127.0.0.1", 8787, "token")
    everywhere = Guard("0.0.0.0", 8787, "token")

    assert loopback.allows_host("localhost:8787")
    assert loopback.allows_host("[::1]:8787")
    assert not loopback.allows_host("192.168.0.7:8787")
    assert not loopback.allows_host("localhost:8788")
    assert everywhere.allows_host("192.168.0.7:8787")
    assert not everywhere.allows_host("my-machine.example:8787")
    assert everywhere.public
    assert not loopback.public


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("::", False)],
)
def test_only_loopback_addresses_are_private(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
