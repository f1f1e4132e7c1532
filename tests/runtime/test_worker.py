"""The same application inside workerd, over HTTP: every way in and every way out."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import os
import socket
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.runtime.conftest import Running, advance

from core.hosts.workers.isolate import RETRY_DELAYS_BINDING
from core.runtime.options import Front


def test_a_plain_request_is_answered(worker: Running) -> None:
    answer = worker.get("/")
    assert (answer.status, answer.text) == (200, "hello")
    assert ("Content-Type", "text/plain;charset=UTF-8") in answer.headers


def test_the_env_has_texts_json_variables_and_secrets(worker: Running) -> None:
    assert worker.get("/env").json() == {"greeting": 'she said "hi"\n', "limits": {"a": 1}, "token": 6}


def test_a_request_crosses_over_with_everything_that_it_has(worker: Running) -> None:
    answer = worker.request(
        "POST",
        "/inspect/a%2Fb?q=1&q=%C3%A4",
        b"\x00\xff",
        {"X-Two": "ä".encode().decode("latin-1"), "Cookie": "c=d; e=f", "Edge-Connecting-IP": "6.6.6.6"},
    )
    seen = answer.json()
    assert answer.status == 203
    assert [value for name, value in answer.headers if name.lower() == "set-cookie"] == ["a=1", "b=2"]
    assert seen["method"] == "POST"
    assert seen["url"] == f"http://127.0.0.1:{worker.port}/inspect/a%2Fb?q=1&q=%C3%A4"
    assert (seen["path"], seen["name"], seen["query"]) == ("/inspect/a%2Fb", "a/b", ["1", "ä"])
    assert seen["cookies"] == {"c": "d", "e": "f"}
    assert seen["body"] == "00ff"
    assert seen["headers"]["host"] == f"127.0.0.1:{worker.port}"


def test_a_client_cannot_say_who_it_is(worker: Running) -> None:
    headers = {"Edge-Connecting-IP": "6.6.6.6", "CF-Connecting-IP": "6.6.6.6", "X-Real-IP": "6.6.6.6"}
    seen = worker.get("/inspect/x", headers=headers).json()
    assert seen["ip"] is None
    assert "edge-connecting-ip" not in seen["headers"]


def test_behind_a_trusted_proxy_the_header_that_was_named_tells_the_address(start: Any) -> None:
    running = start(front=Front(ip_header="X-Real-IP"))
    headers = {"Edge-Connecting-IP": "6.6.6.6", "X-Real-IP": "192.0.2.7"}
    seen = running.get("/inspect/x", headers=headers).json()
    assert seen["ip"] == "192.0.2.7"
    assert seen["headers"]["edge-connecting-ip"] == "192.0.2.7"
    for told in ("6.6.6.6, 192.0.2.7", "192.0.2.7:80", "nobody"):
        seen = running.get("/inspect/x", headers={"X-Real-IP": told}).json()
        assert seen["ip"] is None, told
        assert "edge-connecting-ip" not in seen["headers"]


def test_an_unknown_path_and_an_error_are_answered_as_everywhere(worker: Running) -> None:
    assert (worker.get("/nowhere").status, worker.get("/nowhere").json()) == (404, {"error": "Not Found"})
    failed = worker.get("/fail")
    assert (failed.status, failed.json()) == (500, {"error": "Internal Server Error"})
    worker.said("RuntimeError: boom")


def test_a_head_request_has_the_headers_of_a_get_and_no_body(worker: Running) -> None:
    answer = worker.request("HEAD", "/")
    assert (answer.status, answer.body) == (200, b"")


def test_an_upload_of_megabytes_comes_in_pieces(worker: Running) -> None:
    answer = worker.request("POST", "/upload", b"x" * 3_000_000).json()
    assert answer["size"] == 3_000_000
    # Of 4 kB each, as the runtime gives them by itself, there are 733, and each costs a call into Python.
    assert 1 < answer["chunks"] < 350


def test_a_body_streams_in_and_out_at_once(worker: Running) -> None:
    with socket.create_connection(("127.0.0.1", worker.port), timeout=120) as connection:
        connection.sendall(b"POST /upper HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        received = b""
        while b"FIRST" not in received:
            piece = connection.recv(4096)
            assert piece, received
            received += piece
        # The second half of the request is sent when the first half of the answer is there.
        connection.sendall(b"6\r\nsecond\r\n0\r\n\r\n")
        while not received.endswith(b"0\r\n\r\n"):
            piece = connection.recv(4096)
            assert piece, received
            received += piece
    assert b"SECOND" in received


@pytest.mark.parametrize("text", ["plain", "Zoë", "\u4e2d", "\U0001f600"])
def test_a_long_body_of_any_script_arrives_whole(worker: Running, text: str) -> None:
    answer = worker.request("POST", "/repeat/20000", json.dumps({"text": text}).encode())
    assert answer.body == (text * 20000).encode()
    assert ("Content-Type", "text/plain;charset=UTF-8") in answer.headers


def test_half_a_character_is_answered_as_the_replacement_character(worker: Running) -> None:
    assert worker.request("POST", "/repeat/2", b'{"text": "a\\ud800"}').text == "a\ufffda\ufffd"


def test_a_streamed_answer_arrives_whole(worker: Running) -> None:
    assert worker.get("/ticks/10").text == "0;1;2;3;4;5;6;7;8;9;"


def test_a_streamed_answer_says_the_length_that_it_was_given(worker: Running) -> None:
    answer = worker.get("/ticks/3?length=6")
    assert ("Content-Length", "6") in answer.headers
    assert answer.text == "0;1;2;"


@pytest.mark.parametrize(("count", "query"), [("1000000", ""), ("1000001", "?length=6888898")])
def test_a_streamed_answer_comes_as_it_is_made_and_a_client_that_goes_away_closes_its_source(
    worker: Running, count: str, query: str
) -> None:
    with socket.create_connection(("127.0.0.1", worker.port), timeout=300) as connection:
        # It takes 14 hours, so what arrives does while it is made.
        connection.sendall(f"GET /ticks/{count}{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        received = b""
        while b"2;" not in received:
            piece = connection.recv(4096)
            assert piece, received
            received += piece
        assert count not in worker.get("/closed").json()
    worker.until("/closed", lambda closed: count in closed)


@pytest.mark.parametrize("how", ["whole", "stream", "by-hand", "passed-on"])
def test_an_encoded_answer_is_encoded_once(worker: Running, how: str) -> None:
    answer = worker.get(f"/zipped/{how}", headers={"Accept-Encoding": "gzip"})
    encoded = ("Content-Encoding", "gzip") in answer.headers
    assert encoded or how == "passed-on"
    assert (gzip.decompress(answer.body) if encoded else answer.body) == b"zipped " * 100


def test_a_stream_that_fails_is_cut_short_and_logged(worker: Running) -> None:
    with pytest.raises((http.client.IncompleteRead, ConnectionError, http.client.RemoteDisconnected)):
        worker.get("/broken")
    worker.said("GET /broken failed in the middle of its body")
    worker.said("the source broke")


def test_server_sent_events_arrive(worker: Running) -> None:
    answer = worker.get("/events")
    assert ("Content-Type", "text/event-stream") in answer.headers
    assert answer.text.count("event: tick\n") == 3
    assert 'data: {"number":2}\n' in answer.text


def test_one_task_drives_a_stream_with_the_context_of_its_handler(worker: Running) -> None:
    assert worker.get("/one-task").text == "the-id;blue;late"


def test_a_websocket_echoes_texts_and_bytes_and_closes_with_a_code(worker: Running) -> None:
    with socket.create_connection(("127.0.0.1", worker.port), timeout=120) as connection:
        key = base64.b64encode(os.urandom(16)).decode()
        connection.sendall(
            f"GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: other, chat.v1\r\n\r\n".encode()
        )
        stream = connection.makefile("rb")
        assert b"101" in stream.readline()
        headers: list[bytes] = []
        while (line := stream.readline()) != b"\r\n":
            headers.append(line.lower())
        assert b"sec-websocket-protocol: chat.v1\r\n" in headers
        assert b"x-room: one\r\n" in headers
        assert b"set-cookie: seen=1\r\n" in headers
        connection.sendall(_frame(1, b"hi"))
        assert _read_frame(stream) == (1, b"echo hi")
        connection.sendall(_frame(2, b"\x00\xff"))
        assert _read_frame(stream) == (2, b"\x00\xff")
        connection.sendall(_frame(1, b"bye"))
        kind, payload = _read_frame(stream)
        assert (kind, struct.unpack("!H", payload[:2])[0], payload[2:]) == (8, 4001, b"as you wish")
    worker.until("/kv/socket", lambda value: value == "closed")


def test_a_request_that_asks_for_no_websocket_is_told_so(worker: Running) -> None:
    assert worker.get("/socket").status == 426


def test_work_goes_on_after_the_answer_even_when_the_client_hangs_up(worker: Running) -> None:
    with socket.create_connection(("127.0.0.1", worker.port), timeout=120) as connection:
        connection.sendall(b"POST /later/hung-up HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        assert b"202" in connection.recv(4096)
    worker.until("/kv/hung-up", lambda value: value == "done")


def test_a_handler_runs_to_its_end_when_its_client_hangs_up(worker: Running) -> None:
    with socket.create_connection(("127.0.0.1", worker.port), timeout=120) as connection:
        connection.sendall(b"GET /slow/abandoned HTTP/1.1\r\nHost: x\r\n\r\n")
        worker.said("slow abandoned began")
    worker.until("/kv/abandoned", lambda value: value == "to the end")


def test_fifty_requests_run_side_by_side(worker: Running) -> None:
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(worker.get, ["/together"] * 50))
    assert {answer.status for answer in answers} == {200}
    assert max(answer.json() for answer in answers) >= 10


def test_fifty_requests_with_bindings_all_get_their_own_answer(worker: Running) -> None:
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(worker.get, [f"/work/{number}" for number in range(1000, 1050)]))
    for number, answer in zip(range(1000, 1050), answers, strict=True):
        assert answer.json() == {"value": str(number), "row": {"next": number + 1, "text": "ä"}}


def test_ten_clients_of_a_cold_worker_are_all_answered(start: Any) -> None:
    running = start()
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(running.get, ["/work/7"] * 10))
    assert [answer.status for answer in answers] == [200] * 10


def test_a_first_client_that_hangs_up_does_not_take_the_boot_with_it(start: Any) -> None:
    running = start()
    with socket.create_connection(("127.0.0.1", running.port), timeout=120) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.02)
    assert running.get("/").text == "hello"


def test_a_queue_delivers_to_its_consumer_and_again_what_was_sent_back(worker: Running) -> None:
    for number in (1, 2, 13):
        assert worker.request("POST", f"/jobs/{number}").status == 202
    year = time.strftime("%Y", time.gmtime())
    worker.until("/kv/job:2", lambda value: value == f"sent 1 {year}")
    worker.until("/kv/job:13", lambda value: value == f"sent 2 {year}")


def test_in_a_cluster_a_batch_waits_for_a_binding_that_is_away(start: Callable[..., Running]) -> None:
    running = start(bindings=[{"name": RETRY_DELAYS_BINDING, "text": '{"jobs": 0}'}])
    assert running.request("POST", "/jobs/503").status == 202
    running.until("/kv/job:503", lambda value: value is not None, seconds=60)
    # Without the wait its two retries would follow at once.
    assert float(running.get("/kv/waited").json()) >= 5


def test_a_durable_object_keeps_its_count_by_name(worker: Running) -> None:
    assert worker.request("POST", "/counters/a").json() == {"count": 2, "note": "kept", "name": "a"}
    assert worker.request("POST", "/counters/a").json() == {"count": 4, "note": "kept", "name": "a"}
    assert worker.request("POST", "/counters/b").json()["count"] == 2


def test_a_hook_sees_the_calls_of_bindings_and_may_answer_them(worker: Running) -> None:
    assert worker.get("/hooked/h").json() == {
        "seen": [
            ["KV", "get", [], ["not there"], {}],
            ["DB", "first", ["SELECT ? AS a", 1], ["a"], {}],
            ["DB", "batch", [], [["SELECT ? AS a", [1]]], {}],
            ["KV", "put_json", [], ["hooked", [1]], {"expiration_ttl": 60}],
            ["COUNTER", "increment", ["h"], [2], {"note": "hooked"}],
        ],
        "answers": ["answered", 1],
        "batch": [{"a": 1}],
    }


def test_calls_to_a_durable_object_carry_values_errors_and_requests(worker: Running) -> None:
    assert worker.get("/counters/rpc/rpc").json() == {
        "same": True,
        "failed": "ValueError: the counter refuses",
        "fetch": [202, "counter", "POST /some/path text"],
        "none": None,
        "row": [7, "00ff", None],
    }


def test_a_durable_object_wakes_by_its_alarm(worker: Running) -> None:
    assert worker.request("POST", "/counters/c/alarm").status == 202
    worker.until("/counters/c/alarm", lambda woken: woken == 1)


def test_a_cron_trigger_comes_up(worker: Running) -> None:
    # The service says when the next one is due; its clock is moved to just before that.
    clock = advance(worker, 0)
    advance(worker, clock["at"]["worker"] - clock["now"] - 300)
    worker.until("/kv/cron", lambda cron: cron == "*/5 * * * *")


def test_synchronous_code_may_wait_for_the_platform(worker: Running) -> None:
    answer = worker.get("/sync")
    assert (answer.status, answer.json()) == (200, "yes")


def test_state_outlives_the_process(start: Any, tmp_path: Any) -> None:
    first = start()
    assert first.request("PUT", "/kv/kept", "across").status == 204
    first.request("POST", "/counters/kept")
    first.stop()
    second = start(state_of=first)
    assert second.get("/kv/kept").json() == "across"
    assert second.request("POST", "/counters/kept").json()["count"] == 4


def _frame(kind: int, payload: bytes) -> bytes:
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
    return bytes([0x80 | kind, 0x80 | len(payload)]) + mask + masked


def _read_frame(stream: Any) -> tuple[int, bytes]:
    first, length = stream.read(2)
    return first & 15, stream.read(length)


@pytest.mark.parametrize("host", ["a:80:90", "[::1", "<svg>", "a%2fb", "user@a", "a?b", "a#b", "a b", "1.2.3.999"])
def test_the_url_of_a_request_whose_host_is_none_is_a_url_all_the_same(worker: Running, host: str) -> None:
    with socket.create_connection(("127.0.0.1", worker.port), timeout=120) as connection:
        connection.sendall(f"GET /inspect/x?q=1 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        received = b""
        while piece := connection.recv(65536):
            received += piece
    seen = json.loads(received.partition(b"\r\n\r\n")[2])
    assert (seen["url"], seen["path"], seen["query"]) == ("http://localhost/inspect/x?q=1", "/inspect/x", ["1"])


@pytest.mark.parametrize("host", ["a/inspect", "a\\inspect"])
def test_a_host_with_a_slash_moves_no_path(worker: Running, host: str) -> None:
    with socket.create_connection(("127.0.0.1", worker.port), timeout=120) as connection:
        connection.sendall(f"GET /x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        received = b""
        while piece := connection.recv(65536):
            received += piece
    assert received.startswith(b"HTTP/1.1 400 ")
    assert json.loads(received.partition(b"\r\n\r\n")[2]) == {"error": "Malformed Host header"}


def test_spans_of_ones_own_are_the_platforms(worker: Running) -> None:
    kinds = [["PlatformSpan", "PlatformSpan"]] * 2
    assert worker.get("/spans").json() == {"kinds": kinds, "failed": "on purpose", "after": ""}
