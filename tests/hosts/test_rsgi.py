"""The RSGI host, behind granian itself: what comes in, what goes out, and what lives on."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

APPLICATION = """\
import asyncio
from pathlib import Path
from core import Request, Response, create_app
from core.hosts.rsgi import rsgi

app = create_app()

@app.all("/echo/*")
async def echo(req: Request, res: Response) -> None:
    res.cookie("a", "1").cookie("b", "2").header("x-own", "yes").json({
        "method": req.method, "path": req.path, "rest": req.params["*"], "query": req.query.text, "url": req.url,
        "ip": req.ip, "header": req.header("edge-connecting-ip"), "cookies": dict(req.cookies),
        "many": req.header("x-many"), "body": await req.text(), "all": req.headers.get("x-many"),
    })

@app.get("/empty")
async def empty(req: Request, res: Response) -> None:
    res.status(204).send()

@app.get("/text")
async def text(req: Request, res: Response) -> None:
    res.text("grüß dich")

@app.get("/stream")
async def stream(req: Request, res: Response) -> None:
    async def chunks():
        for number in range(3):
            yield f"{number};"
            await asyncio.sleep(0.01)
    res.stream(chunks(), content_type="text/plain")

@app.get("/forever")
async def forever(req: Request, res: Response) -> None:
    async def chunks():
        try:
            while True:
                yield b"x" * 1000
                await asyncio.sleep(0.01)
        finally:
            Path("closed").write_text("yes")
    res.stream(chunks())

@app.post("/upload")
async def upload(req: Request, res: Response) -> None:
    size = 0
    async for chunk in req.stream():
        size += len(chunk)
    res.json({"size": size})

@app.post("/json")
async def read_json(req: Request, res: Response) -> None:
    res.json(await req.json())

@app.get("/later")
async def later(req: Request, res: Response) -> None:
    async def work() -> None:
        await asyncio.sleep(0.5)
        Path("worked").write_text("yes")
    req.ctx.wait_until(work())
    res.json({"ok": True})

server = rsgi(app)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rsgi")
    (folder / "served.py").write_text(APPLICATION)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "granian", "--interface", "rsgi", "--port", str(port), "--no-ws", "served:server"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def address(server: tuple[str, subprocess.Popen[bytes]]) -> str:
    return server[0]


def fetch(
    url: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(url, data=body, method=method, headers={k.replace("_", "-"): v for k, v in headers.items()})  # fmt: skip
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            names = {name.lower(): value for name, value in response.headers.items()}
            names["set-cookie"] = "; ".join(response.headers.get_all("set-cookie") or [])
            return response.status, names, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {name.lower(): value for name, value in error.headers.items()}, error.read()


def test_a_request_comes_in_whole_and_the_hosts_word_about_its_address_counts(address: str) -> None:
    status, headers, body = fetch(
        f"{address}/echo/a%20b?x=1&y=%20",
        "POST",
        "grüß".encode(),
        Edge_Connecting_IP="6.6.6.6",
        Cookie="one=1; two=2",
        X_Many="a",
    )

    assert status == 200
    assert headers["x-own"] == "yes"
    assert "a=1" in headers["set-cookie"]
    assert "b=2" in headers["set-cookie"]
    assert json.loads(body) == {
        "method": "POST",
        "path": "/echo/a%20b",
        "rest": "a b",
        "query": "x=1&y=%20",
        "url": f"{address}/echo/a%20b?x=1&y=%20",
        "ip": "127.0.0.1",
        "header": "127.0.0.1",
        "cookies": {"one": "1", "two": "2"},
        "many": "a",
        "body": "grüß",
        "all": "a",
    }


def test_bodies_go_out_as_they_are(address: str) -> None:
    assert fetch(f"{address}/text")[2].decode() == "grüß dich"
    assert fetch(f"{address}/stream")[2] == b"0;1;2;"
    status, headers, body = fetch(f"{address}/empty")
    assert (status, body) == (204, b"")
    assert "content-length" not in headers
    status, headers, body = fetch(f"{address}/text", "HEAD")
    assert (status, body) == (200, b"")
    assert headers["content-length"] == "11"
    assert fetch(f"{address}/nowhere")[0] == 404


def test_a_body_is_read_in_pieces(address: str) -> None:
    assert json.loads(fetch(f"{address}/upload", "POST", b"x" * 3_000_000)[2]) == {"size": 3_000_000}


def test_json_of_more_than_a_mebibyte_is_refused_whether_or_not_its_length_is_told(address: str) -> None:
    assert fetch(f"{address}/json", "POST", b"[1]")[2] == b"[1]"
    port = int(address.rpartition(":")[2])
    # Where the length is told, nothing of the body is waited for; a client that sends it meets a closed connection.
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: 1100002\r\n\r\n")
        assert connection.recv(1000).split(b" ")[1] == b"413"
    for size, status in ((1000, b"200"), (1_100_000, b"413")):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(b"POST /json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.sendall(b"%x\r\n[%b]\r\n0\r\n\r\n" % (size + 2, b" " * size))
            assert connection.recv(1000).split(b" ")[1] == status


def test_a_stream_ends_when_its_client_is_gone(address: str, folder: Path) -> None:
    port = int(address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"GET /forever HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(1000)
    for _ in range(200):
        if (folder / "closed").exists():
            return
        time.sleep(0.05)
    raise AssertionError("the iterator was not closed")


def test_at_the_end_what_wait_until_holds_is_finished(
    server: tuple[str, subprocess.Popen[bytes]], folder: Path
) -> None:
    address, process = server
    fetch(f"{address}/later")
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    assert (folder / "worked").exists()
