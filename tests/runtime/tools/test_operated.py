"""The page `before-you-go-live.md`, tried: its proxies with a WebSocket and a stream, and its unit."""

from __future__ import annotations

import http.client
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.commands import PATIENCE, Command, ask, until

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "before-you-go-live.md").read_text()

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]


def block(first: str) -> str:
    """The page's block that begins with a line."""
    found = re.search(rf"```[a-z]*\n({re.escape(first)}.*?)```", PAGE, re.DOTALL)
    assert found is not None, first
    return found[1]


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed here: {', '.join(missing)} (Debian has it)")


def free_port() -> int:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def nginx(folder: Path, port: int, upstream: int) -> list[str]:
    """The page's nginx, without TLS and in a folder of its own."""
    text = block("# nginx: in http { }")
    for old, new in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("    http2 on;\n", ""),
        ("127.0.0.1:8787", f"127.0.0.1:{upstream}"),
    ):
        assert old in text
        text = text.replace(old, new)
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log stderr;\n"
        f"events {{ }}\nhttp {{ access_log off;\n{temporary}{text}\n}}\n"
    )
    return ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder: Path, port: int, upstream: int) -> list[str]:
    """The page's Caddy, without TLS."""
    text = block("# Caddy")
    for old, new in (("shop.example", f"http://127.0.0.1:{port}"), ("127.0.0.1:8787", f"127.0.0.1:{upstream}")):
        assert old in text
        text = text.replace(old, new)
    (folder / "Caddyfile").write_text("{\n    admin off\n}\n" + text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


PROXIES = {"nginx": nginx, "caddy": caddy}


@pytest.fixture(params=[pytest.param(name, marks=needs(name)) for name in PROXIES])
def proxied(serve: Callable[..., Command], shop: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of a proxy in front of a served application."""
    served = serve("--client-address-header", "X-Real-IP", "--forwarded-proto-header", "X-Forwarded-Proto")
    upstream, _ = served.ports()
    port = free_port()
    folder = tmp_path / "proxy"
    folder.mkdir()
    with (folder / "log").open("wb") as log:
        home = {"HOME": str(folder), "PATH": "/usr/sbin:/usr/bin:/bin"}
        process = subprocess.Popen(PROXIES[request.param](folder, port, upstream), stdout=log, stderr=log, env=home)
        try:
            until(lambda: answers(port, process, folder / "log"), bool)
            yield port
        finally:
            process.terminate()
            process.wait(PATIENCE)


def answers(port: int, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return ask(port).status == 200
    except OSError:
        return False


def test_a_proxy_passes_addresses_websockets_and_streams(proxied: int) -> None:
    from websockets.sync.client import connect

    about = ask(proxied, headers={"X-Real-IP": "6.6.6.6", "X-Forwarded-Proto": "https"}).json()
    # What a client says of itself is overwritten.
    assert (about["ip"], about["url"]) == ("127.0.0.1", f"http://127.0.0.1:{proxied}/")
    with connect(f"ws://127.0.0.1:{proxied}/echo") as socket:
        for number in range(20):
            socket.send(f"hello {number}")
            assert socket.recv(PATIENCE) == f"hello {number}"
    connection = http.client.HTTPConnection("127.0.0.1", proxied, timeout=PATIENCE)
    connection.request("GET", "/endless")
    # A stream that never ends arrives while it is sent.
    assert connection.getresponse().read(12) == b"tick" * 3
    connection.close()
    # Caddy 2.6 has no better word for a body that is too large.
    assert ask(proxied, "/fetched", "POST", "x" * 12_000_000).status in (413, 502)


@needs("systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "shop.service"
    text = block("# /etc/systemd/system/shop.service")
    unit.write_text(text.replace("/srv/shop/.venv/bin/core", sys.executable).replace("User=shop", "User=root"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if "shop.service" in line]
    assert (done.returncode, said) == (0, []), done.stderr
