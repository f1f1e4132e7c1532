"""The page `before-you-go-live.md`, tried: its proxies with a WebSocket and a stream, its unit, its container."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import create_connection

import pytest
from tests.support.command_line import run
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
        ("client_header_timeout 10s;", "client_header_timeout 1s;"),
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
    for old, new in (
        ("shop.example", f"http://127.0.0.1:{port}"),
        ("127.0.0.1:8787", f"127.0.0.1:{upstream}"),
        ("read_header 10s", "read_header 1s"),
        ("    servers {", "    admin off\n    servers {"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "Caddyfile").write_text(text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


PROXIES = {"nginx": nginx, "caddy": caddy}


@pytest.fixture(params=[pytest.param(name, marks=needs(name)) for name in PROXIES])
def proxied(serve: Callable[..., Command], shop: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    """The port of a proxy in front of a served application."""
    options = ["--client-address-header", "X-Real-IP", "--forwarded-proto-header", "X-Forwarded-Proto"]
    served = serve("--workers", "1", *options)
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
    # The time for a head, which workerd does not limit.
    with create_connection(("127.0.0.1", proxied), PATIENCE) as half:
        half.sendall(b"GET / HTTP/1.1\r\nHost: a")
        began = time.monotonic()
        while half.recv(4096):
            pass
        assert time.monotonic() - began < 50


def test_the_steps_of_the_container_make_an_application_that_serves(tmp_path: Path) -> None:
    """Each line in its order, on files of `core new` and in an empty environment, which has the framework already."""
    assert run("new", "shop", folder=tmp_path).returncode == 0
    root = tmp_path / "root"
    venv.create(root / "venv", with_pip=True)
    (packages,) = (root / "venv").glob("lib/python*/site-packages")
    (packages / "fetched.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    # Only what is loaded is compiled.
    env = {**os.environ, "PATH": f"{root}/venv/bin:/usr/bin:/bin", "PYTHONUNBUFFERED": "1", "PIP_NO_COMPILE": "1"}

    def moved(text: str) -> str:
        """The step with the container's paths below a folder."""
        return text.replace("/srv/shop", f"{root}/srv/shop").replace("/var/lib/shop", f"{root}/var/lib/shop")

    folder, command, health, copied = root, "", "", False
    for step in block("# Containerfile").replace("\\\n", "").splitlines():
        word, _, rest = step.partition(" ")
        if word == "WORKDIR":
            folder = Path(moved(rest))
            folder.mkdir(parents=True)
        elif word == "COPY":
            *sources, target = rest.split()
            for source in sources:
                found, place = tmp_path / "shop" / source, folder / target
                shutil.copytree(found, place) if found.is_dir() else shutil.copy(found, place)
            copied = True
        elif word == "RUN":
            # A user of its own and a gift to it are for root alone.
            line = f"useradd() {{ :; }}; chown() {{ :; }}; {moved(rest)}"
            done = subprocess.run(["sh", "-ec", line], cwd=folder, env=env, capture_output=True, text=True, check=False)
            if "No matching distribution" in done.stderr:
                pytest.skip("pip has no registry here that has setuptools, which the project is built with")
            assert done.returncode == 0, f"{step}\n{done.stdout}{done.stderr}"
        elif word == "HEALTHCHECK":
            health = rest.partition(" CMD ")[2]
        elif word == "CMD":
            command = rest
        else:
            assert word in ("#", "FROM", "USER", "VOLUME", "EXPOSE"), step
    assert copied
    assert health
    # The files are read only, as they are for the container's user.
    program, *arguments = json.loads(moved(command))
    assert program == "core"
    options = ["-m", "core", *arguments, "--port", "0", "--health", "127.0.0.1:0", "--workers", "1"]
    with (root / "log").open("wb") as log:
        served = subprocess.Popen([root / "venv/bin/python", *options], cwd=folder, env=env, stdout=log, stderr=log)
    try:
        pattern = r"serving on http://0\.0\.0\.0:(\d+), health on http://127\.0\.0\.1:(\d+)"
        found = until(lambda: re.search(pattern, lived(served, root / "log")), bool)
        assert ask(int(found[1]), "/notes").json() == {"notes": []}
        healthy = health.replace("127.0.0.1:8788", f"127.0.0.1:{found[2]}")
        assert subprocess.run(["sh", "-c", healthy], env=env, check=False).returncode == 0
    finally:
        served.terminate()
        assert served.wait(PATIENCE) == 0
    assert (root / "var/lib/shop/d1").is_dir()
    assert not (folder / ".core").exists()


def lived(process: subprocess.Popen[bytes], log: Path) -> str:
    said = log.read_text()
    assert process.poll() is None, said
    return said


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
