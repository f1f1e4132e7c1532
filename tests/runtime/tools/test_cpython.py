"""`core serve --python` as its users run it: processes that are killed, replaced and stopped while they are asked."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import pytest
from tests.support.commands import PATIENCE, Command, ask, until
from tests.support.disk import full

SHOP = Path(__file__).parent / "shop"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]


def processes(served: Command) -> dict[str, list[int]]:
    """The processes of a service by what they do."""
    found: dict[str, list[int]] = {"state": [], "web": []}
    for pid in served.children():
        role = re.search('"role": "(state|web)"', Path(f"/proc/{pid}/cmdline").read_text())
        if role is not None:
            found[role[1]].append(pid)
    return found


class Load:
    """Orders, one after the other from several clients, until `stop`: what was acknowledged, and what failed."""

    def __init__(self, port: int, clients: int = 4, *, method: str = "POST", path: str = "/orders/{}") -> None:
        self.acknowledged: list[int] = []
        self.counts: list[int] = []
        self.failed: list[str] = []
        self._port = port
        self._what = method, path
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(index, clients)) for index in range(clients)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def goes_on(self) -> None:
        """Wait until twenty more were acknowledged."""
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged), lambda now: now >= before + 20)

    def _run(self, number: int, step: int) -> None:
        method, path = self._what
        while not self._stop.is_set():
            number += step
            try:
                answer = ask(self._port, path.format(number), method)
            except (OSError, http.client.HTTPException) as error:
                self.failed.append(repr(error))
                continue
            if answer.status < 300:
                self.acknowledged.append(number)
                self.counts.append(answer.json() if method == "POST" else 0)
            else:
                self.failed.append(repr(answer))


def test_what_exists_once_is_in_one_process_and_answers_every_other(serve: Callable[..., Command]) -> None:
    served = serve()
    port, health = served.ports()
    assert ask(health).json() == {"status": "ok", "processes": {"state": "ok", "web 0": "ok", "web 1": "ok"}}
    (state,) = processes(served)["state"]

    about = ask(port).json()
    assert about["process"] != state
    assert about["url"] == f"http://127.0.0.1:{port}/"
    assert about["ip"] == "127.0.0.1"

    counts = [ask(port, f"/orders/{number}", "POST").json() for number in range(1, 6)]
    assert counts == [1, 2, 3, 4, 5]
    until(lambda: ask(port, "/kv/consumer").text, lambda said: said == str(state))
    refused = ask(port, "/refused")
    assert (refused.status, refused.json()) == (409, {"error": "Sold out", "code": "SOLD_OUT"})
    assert dict(refused.headers)["x-why"] == "sold"
    assert ask(port, "/fetched", "POST", "abc").json() == [201, str(state), ["a=1", "b=2"], "ABC"]


@pytest.mark.parametrize("whom", ["state", "web"])
def test_nothing_that_was_acknowledged_is_lost_when_a_process_is_killed(
    serve: Callable[..., Command], whom: str
) -> None:
    served = serve()
    port, _ = served.ports()
    with Load(port) as load:
        for _ in range(3):
            load.goes_on()
            before = set(served.children())
            os.kill(processes(served)[whom][0], signal.SIGKILL)
            until(lambda: set(served.children()), lambda now: len(now) == 3 and now != before)  # noqa: B023
        load.goes_on()
    assert len(set(load.counts)) == len(load.counts)  # no number was given twice
    # A message that was sent is consumed, by the next process if need be.
    missing = until(lambda: ask(port, "/have", "POST", str(load.acknowledged)).json(), lambda said: not said["queue"])
    assert missing == {"object": [], "db": [], "kv": [], "queue": []}
    # What was in the hands of the killed process failed, and nothing else.
    assert len(load.failed) <= 3 * 4, load.failed


def test_a_new_version_takes_over_without_a_failed_request(serve: Callable[..., Command], shop: Path) -> None:
    served = serve()
    port, _ = served.ports()
    main = shop / "main.py"
    text = main.read_text()
    with Load(port) as load, Load(port, 2, method="GET", path="/slow") as slow:
        load.goes_on()
        for version in ("second", "third"):
            main.write_text(text.replace('VERSION = "first"', f'VERSION = "{version}"'))
            already = len(served.lines)
            served.process.send_signal(signal.SIGHUP)
            served.until("replaced the processes", since=already)
            assert {ask(port).json()["version"] for _ in range(20)} == {version}
    assert load.failed == slow.failed == []
    assert sorted(load.counts) == list(range(1, len(load.counts) + 1))

    # A version that cannot be loaded does not take over.
    main.write_text("raise RuntimeError('half a deploy')")
    before = set(served.children())
    served.process.send_signal(signal.SIGHUP)
    served.until("the new version does not serve; the old one goes on")
    served.until("half a deploy")
    assert set(served.children()) == before
    assert ask(port).json()["version"] == "third"


def test_stopping_finishes_what_is_in_flight_and_ends_what_never_ends(
    serve: Callable[..., Command],
) -> None:
    served = serve("--stop-timeout", "2")
    port, health = served.ports()
    children = served.children()
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(ask, port, "/slow")
        endless = pool.submit(ask, port, "/endless")
        served.until("slow began")
        served.until("endless began")
        began = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        served.until("stopping")
        assert ask(health).json() == {"status": "stopping"}
        assert slow.result().text == "done"
        with contextlib.suppress(OSError, http.client.HTTPException):
            endless.result()
    assert served.finish() == 0
    assert time.monotonic() - began < 60
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_a_websocket_is_closed_when_the_server_stops(serve: Callable[..., Command]) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    served = serve("--workers", "1")
    port, _ = served.ports()
    with connect(f"ws://127.0.0.1:{port}/echo") as socket:
        socket.send("hello")
        assert socket.recv() == "hello"
        served.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed):
            socket.recv(PATIENCE)
        assert socket.close_code == 1001
    assert served.finish() == 0


def test_a_websocket_that_its_handler_closes_is_closed(serve: Callable[..., Command]) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    port, _ = serve("--workers", "1").ports()
    with connect(f"ws://127.0.0.1:{port}/echo", close_timeout=1) as socket:
        socket.send("bye")
        with pytest.raises(ConnectionClosed):
            socket.recv(PATIENCE)
        assert socket.close_code == 4000


def test_a_process_that_hangs_is_replaced(serve: Callable[..., Command]) -> None:
    served = serve("--workers", "1", "--hang-timeout", "2")
    port, _ = served.ports()
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(ask, port, "/hang")
        served.until("web 0 is not well: it did not answer within 2 s; starting it again")
        # Where it was is in the log: the request, and the line of the application that it stood at.
        said = "\n".join(served.lines)
        assert re.search(r"web 0 \(process \d+\):\n1 request in flight\nGET /hang \(GET /hang\) runs since \d", said), (
            said
        )
        assert re.search(r'main\.py", line \d+, in hang\n', said), said
        assert ask(port, "/kv/any").text == "nothing"  # it waited in the backlog
        with pytest.raises((OSError, http.client.HTTPException)):
            hanging.result()


HELD = """
import ctypes
@app.get("/held")
async def held(req, res):
    while ctypes.PyDLL(None).sleep(600):  # with the interpreter held, as a library in C may do; a signal wakes it
        pass
"""


def test_a_hang_that_holds_the_interpreter_says_where(serve: Callable[..., Command], shop: Path) -> None:
    main = shop / "main.py"
    main.write_text(main.read_text() + HELD)
    served = serve("--workers", "1", "--hang-timeout", "1")
    port, _ = served.ports()
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(ask, port, "/held")
        served.until("web 0 is not well: it did not answer within 1 s; starting it again")
        assert re.search(r'main\.py", line \d+ in held', "\n".join(served.lines)), served.lines
        with pytest.raises((OSError, http.client.HTTPException)):
            hanging.result()


WAITS = """
@app.get("/waits/:id")
async def waits(req, res):
    req.id = "abc"
    await asyncio.Event().wait()
"""


def test_a_healthy_process_says_where_it_is_when_it_is_asked(serve: Callable[..., Command], shop: Path) -> None:
    main = shop / "main.py"
    main.write_text(main.read_text() + WAITS)
    served = serve("--workers", "1", "--stop-timeout", "1")
    port, _ = served.ports()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as waiting:
        waiting.request("GET", "/waits/7")
        title = "GET /waits/7 (GET /waits/:id), request abc waits since"
        until(lambda: asked_where(served), lambda said: title in said)
        assert re.search(r'main\.py", line \d+, in waits', "\n".join(served.lines))
        served.until(r"^state \(process \d+\):")
        assert ask(port, "/kv/any").text == "nothing"


def asked_where(served: Command) -> str:
    before = len(served.lines)
    served.process.send_signal(signal.SIGUSR1)
    served.until("^thread MainThread", since=before)
    return "\n".join(served.lines[before:])


@pytest.mark.parametrize("log", ["/dev/full", "a closed pipe"])
def test_a_log_that_cannot_be_written_ends_nothing(shop: Path, log: str) -> None:
    port, health = free_port(), free_port()
    command = [sys.executable, "-m", "core", "serve", "--python", "--workers", "1", "--port", str(port)]
    read_end, write_end = os.pipe() if log != "/dev/full" else (-1, os.open(log, os.O_WRONLY))
    with subprocess.Popen(
        [*command, "--health", f"127.0.0.1:{health}"], cwd=shop, stdout=write_end, stderr=write_end
    ) as served:
        os.close(write_end)
        if read_end != -1:
            os.close(read_end)
        try:
            until(lambda: served.poll() is None and answered(port), bool)
            for _ in range(3):
                before = workers(served.pid)
                os.kill(before[-1], signal.SIGKILL)
                until(lambda: workers(served.pid), lambda now: now and now[-1] not in before)  # noqa: B023
                until(lambda: answered(port), bool)
            assert served.poll() is None
        finally:
            served.terminate()
            assert served.wait(PATIENCE) == 0


def workers(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def answered(port: int) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return ask(port, "/kv/any").status == 200
    return False


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def test_a_process_that_takes_too_much_memory_is_replaced(serve: Callable[..., Command]) -> None:
    served = serve("--workers", "1", "--memory", "10M")  # less than any Python takes
    served.until(r"(web 0|state) takes \d+ MiB, more than --memory allows; starting it again")


def test_the_processes_end_with_their_supervisor(serve: Callable[..., Command]) -> None:
    served = serve()
    served.ports()
    children = served.children()
    served.process.kill()
    assert served.finish(by_itself=True) == -signal.SIGKILL
    until(lambda: [child for child in children if Path(f"/proc/{child}").exists()], lambda left: not left)


def test_two_never_share_a_state_folder(serve: Callable[..., Command], shop: Path) -> None:
    first = serve("--workers", "1")
    first.ports()
    second = serve("--workers", "1")
    second.until(f"in use by process {first.process.pid}. Two would damage the state there")
    assert second.finish(by_itself=True) == 1
    assert (shop / ".core" / "python").stat().st_mode & 0o077 == 0
    made = [path for path in (shop / ".core" / "python").rglob("*") if path.is_file() and path.name != ".gitignore"]
    assert made
    assert [path for path in made if path.stat().st_mode & 0o077] == []


def test_a_proxy_is_believed_as_far_as_it_was_named(serve: Callable[..., Command]) -> None:
    def asked(port: int, **headers: str) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("GET", "/", headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    options = ["--forwarded-proto-header", "X-Forwarded-Proto", "--client-address-header", "X-Real-IP"]
    named = serve("--workers", "1", *options)
    port, _ = named.ports()
    seen = asked(port, Host="shop.example", X_Forwarded_Proto="https", X_Real_IP="192.0.2.7")
    assert (seen["url"], seen["ip"]) == ("https://shop.example/", "192.0.2.7")
    seen = asked(port, Host="shop.example", X_Forwarded_Proto="https, http", X_Real_IP="nobody")
    assert (seen["url"], seen["ip"]) == ("http://shop.example/", None)
    named.finish()

    port, _ = serve("--workers", "1", "--public-url", "https://shop.example").ports()
    seen = asked(port, Host="elsewhere.example", X_Forwarded_Proto="ftp", X_Real_IP="192.0.2.7")
    assert (seen["url"], seen["ip"]) == ("https://shop.example/", "127.0.0.1")


WRONG = [
    (["--health", "here"], "--health: 'here' is not HOST:PORT"),
    (["--health", "127.0.0.1:99999"], "99999 is not a port"),
    (["--stop-timeout", "-1"], "-1 is not a time"),
    (["--memory", "lots"], "lots is not a size"),
    (["--max-connections", "0"], "0 is not a number of connections"),
    (["--head-timeout", "soon"], "soon is not a time"),
    (["--public-url", "shop.example"], "shop.example is not an origin"),
    (["--public-url", "https://a.example/path"], "is not an origin"),
    (["--client-address-header", "X Y"], "'X Y' is not the name of a header"),
    (["--public-url", "https://a.example", "--forwarded-proto-header", "x"], "--public-url has the scheme already"),
    (["--cluster", "s3://b/p", "--processes", "2"], "--processes, --cluster is for a bundle in workerd alone"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_a_wrong_option_is_told_in_a_line(shop: Path, options: list[str], said: str) -> None:
    done = run(shop, "serve", "--python", *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_what_keeps_it_from_starting_is_told_in_a_line(shop: Path) -> None:
    done = run(shop, "serve", "--python", "--port", "0", "--health", "192.0.2.1:1")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert re.search("cannot listen on 192.0.2.1:1: .* with --health", done.stderr)
    with (shop / "wrangler.toml").open("a") as file:
        file.write('[secrets]\nrequired = ["TOKEN_A", "TOKEN_B"]\n')
    done = run(shop, "serve", "--python", "--port", "0", "--health", "127.0.0.1:0")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "the environment lacks TOKEN_A, TOKEN_B" in done.stderr


@pytest.mark.parametrize("left", [0, 2000])
def test_a_disk_that_is_full_at_the_start_is_told_in_a_line(shop: Path, left: int) -> None:
    with full(left):
        done = run(shop, "serve", "--python", "--port", "0", "--health", "127.0.0.1:0", "--state", str(shop / "full"))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert str(shop / "full") in done.stderr


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "core", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
