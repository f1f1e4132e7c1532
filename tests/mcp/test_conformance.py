"""The official conformance suite against an application of core, behind uvicorn and in workerd: every scenario."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.runtime.toolchain import missing_reason

HERE = Path(__file__).parent / "conformance"
SUITE = HERE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
NODE = next(iter(HERE.glob("node_modules/node-*/bin/node")), None)
"""The suite needs Node.js 22, which its folder brings along."""

NEEDS_A_SESSION = {
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "resources-subscribe",
    "resources-unsubscribe",
    "tools-call-elicitation",
    "tools-call-sampling",
}
"""The scenarios of 2025-11-25 that need a session: asking a client in the middle of a call, and subscriptions.

A server that keeps nothing between two requests cannot have them; 2026-07-28 has taken all of it out.
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NODE is None or not SUITE.exists(), reason="npm ci --prefix tests/mcp/conformance"),
]


@pytest.fixture(scope="module", params=["uvicorn", "workerd"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("conformance")
    shutil.copy(HERE / "server.py", folder)
    if request.param == "uvicorn":
        program = "import uvicorn\nfrom core.hosts.asgi import asgi\nfrom server import Env, app\n"
        command = ["-c", f"{program}uvicorn.run(asgi(app, Env()), port={port}, log_level='warning')"]
    else:
        if reason := missing_reason():
            pytest.skip(reason)
        settings = (
            'main = "server.py"\ncompatibility_date = "2026-04-01"\n[vars]\nMCP_SECRET = "a secret of the server"\n'
        )
        (folder / "wrangler.toml").write_text(f'name = "conformance"\n{settings}')
        command = ["-m", "core.cli", "dev", "--runtime", "workerd", "--port", str(port)]
    with subprocess.Popen([sys.executable, *command], cwd=folder) as server:
        try:
            wait_for(f"http://127.0.0.1:{port}/mcp", server)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5)
        except urllib.error.HTTPError:
            return
        except OSError:
            continue
    raise AssertionError("the server has ended")


def failures(url: str, revision: str) -> tuple[set[str], int]:
    """The scenarios that failed and are scored, and how many passed."""
    assert NODE is not None
    command = [str(NODE), str(SUITE), "server", "--url", url, "--requirements", revision]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    summary = done.stdout.partition("=== SUMMARY ===")[2]
    scored, _, unscored = summary.partition("Not scored")
    results = {name: mark for mark, name in re.findall(r"^([✓✗]) ([\w-]+):", scored, re.MULTILINE)}
    free = set(re.findall(r"^\s+[✓✗] ([\w-]+) \(", unscored, re.MULTILINE))
    assert results, done.stdout + done.stderr
    failed = {name for name, mark in results.items() if mark == "✗"} - free
    return failed, len(results) - len(failed) - len(free)


def test_the_stateless_revision_has_no_failure(address: str) -> None:
    assert failures(address, "2026-07-28") == (set(), 37)


def test_the_revision_before_fails_where_it_needs_a_session(address: str) -> None:
    assert failures(address, "2025-11-25") == (NEEDS_A_SESSION, 24)


@pytest.mark.parametrize("scenario", ["http-header-validation", "http-custom-header-server-validation"])
def test_headers_are_held_against_the_body(address: str, scenario: str) -> None:
    """Two scenarios that are not scored yet, since the suite's own server does not pass them."""
    assert NODE is not None
    command = [
        str(NODE),
        str(SUITE),
        "server",
        "--url",
        address,
        "--scenario",
        scenario,
        "--spec-version",
        "2026-07-28",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
