"""The classes for the hosted platform, inside workerd, behind the platform's own SDK and its wrapped values."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.conftest import APPLICATION, PLAN, Background, Running, advance, start_running, with_test_clock

from core.runtime.build_worker import prepare
from core.runtime.bundle import Bundle, write_bundle
from core.runtime.collect import collect
from core.runtime.plan import Socket
from core.runtime.toolchain import Toolchain

HOST = Path(__file__).parent / "platform_host.py"


@pytest.fixture(scope="module")
def hosted(
    tools: Toolchain, bundle: Bundle, background: Background, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """The application behind the platform's SDK."""
    place = tmp_path_factory.mktemp("hosted")
    background.run(prepare(tools))
    collected = collect(APPLICATION.parent, project=APPLICATION.parent, extra=["workers-runtime-sdk"])
    made = write_bundle(
        place / "dist",
        tools,
        plan=PLAN,
        main="main",
        files={**collected.files, "platform_host.py": HOST.read_bytes()},
        methods=bundle.manifest["classes"],
        host="platform_host",
    )
    running = start_running(
        tools,
        made,
        background,
        place / "state",
        adjust=with_test_clock,
        sockets={"cron": Socket("127.0.0.1:0", service="core-cron")},
    )
    yield running
    running.stop()


def test_a_request_is_answered_with_the_platforms_address_of_the_client(hosted: Running) -> None:
    assert hosted.get("/").text == "hello"
    # Here it is the platform that sets this header; a client could not.
    headers = {"CF-Connecting-IP": "192.0.2.9", "Edge-Connecting-IP": "6.6.6.6"}
    seen = hosted.request("POST", "/inspect/x?q=1", b"\x00\xff", headers).json()
    assert (seen["ip"], seen["method"], seen["query"], seen["body"]) == ("192.0.2.9", "POST", ["1"], "00ff")
    assert seen["headers"]["edge-connecting-ip"] == "192.0.2.9"


def test_the_env_and_its_bindings_are_there_through_the_sdks_wrappers(hosted: Running) -> None:
    assert hosted.get("/env").json() == {"greeting": 'she said "hi"\n', "limits": {"a": 1}, "token": 6}
    assert hosted.get("/work/7").json() == {"value": "7", "row": {"next": 8, "text": "ä"}}


def test_streams_go_in_and_out(hosted: Running) -> None:
    assert hosted.request("POST", "/upload", b"x" * 100_000).json()["size"] == 100_000
    assert hosted.get("/ticks/3").text == "0;1;2;"
    assert hosted.get("/events").text.count("event: tick\n") == 3


def test_background_work_goes_on(hosted: Running) -> None:
    assert hosted.request("POST", "/later/hosted").status == 202
    hosted.until("/kv/hosted", lambda value: value == "done")


def test_a_queue_and_a_cron_trigger_reach_the_application(hosted: Running) -> None:
    hosted.request("POST", "/jobs/21")
    hosted.until("/kv/job:21", lambda value: value == f"sent 1 {time.strftime('%Y', time.gmtime())}")
    clock = advance(hosted, 0)
    advance(hosted, clock["at"]["worker"] - clock["now"] - 300)
    hosted.until("/kv/cron", lambda cron: cron == "*/5 * * * *")


def test_a_durable_object_counts_and_answers(hosted: Running) -> None:
    assert hosted.request("POST", "/counters/h").json() == {"count": 2, "note": "kept", "name": "h"}
    seen = hosted.get("/counters/rpc/rpc").json()
    assert (seen["same"], seen["fetch"], seen["none"]) == (True, [202, "counter", "POST /some/path text"], None)
    hosted.request("POST", "/counters/h/alarm")
    hosted.until("/counters/h/alarm", lambda woken: woken == 1)
