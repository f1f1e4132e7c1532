"""A backup of workerd's state while it writes, restored after a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.commands import PATIENCE, Command, ask

from core.runtime.bundle import Bundle


@pytest.fixture
def serve(tmp_path: Path, bundle: Bundle) -> Iterator[Callable[[str], Command]]:
    """Start `core serve` on free ports, with its state in a folder of that name."""
    started: list[Command] = []

    def serve(state: str) -> Command:
        options = ["--port", "0", "--health", "127.0.0.1:0", "--state", state]
        started.append(Command("serve", str(bundle.folder), *options, folder=tmp_path))
        return started[-1]

    yield serve
    for command in started:
        if command.process.poll() is None:
            command.finish()


def core(folder: Path, *arguments: str) -> None:
    """Run a command that ends by itself."""
    done = subprocess.run(
        [sys.executable, "-m", "core", *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr


def test_a_node_is_restored_from_a_backup_that_was_made_while_it_wrote(
    serve: Callable[[str], Command], tmp_path: Path
) -> None:
    served = serve("state")
    port, _ = served.ports()
    large = "x" * 100_000  # a file beside the database
    for number in range(20):
        assert ask(port, f"/kv/before:{number}", "PUT", large if number == 0 else str(number)).status == 204
        assert ask(port, f"/files/before:{number}", "PUT", 3 * large if number == 0 else str(number)).status == 200
    assert ask(port, "/counters/own", "POST").json()["count"] == 2
    writing = threading.Event()

    def write() -> None:
        number = 0
        while not writing.is_set():
            assert ask(port, f"/kv/during:{number % 5}", "PUT", large).status == 204
            assert ask(port, f"/files/during:{number % 5}", "PUT", 3 * large).status == 200
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        core(tmp_path, "backup", "state", "copy.tar.gz")
    finally:
        writing.set()
        writer.join()
    assert ask(port, "/files/last", "PUT", 3 * large).status == 200
    served.process.send_signal(signal.SIGKILL)
    served.finish(by_itself=True)
    assert not [path for path in (tmp_path / "state" / "r2").rglob("*") if path.stat().st_mode & 0o077]
    port, _ = serve("state").ports()
    assert ask(port, "/files/last").text == 3 * large

    core(tmp_path, "restore", "copy.tar.gz", "again")
    port, _ = serve("again").ports()
    assert ask(port, "/kv/before:0").json() == large
    assert [ask(port, f"/kv/before:{number}").json() for number in range(1, 20)] == [str(n) for n in range(1, 20)]
    assert ask(port, "/counters/own", "POST").json()["count"] == 4
    during = [ask(port, f"/kv/during:{number}").json() for number in range(5)]
    assert set(during) <= {large, None}
    assert ask(port, "/files/before:0").text == 3 * large
    assert [ask(port, f"/files/before:{number}").text for number in range(1, 20)] == [str(n) for n in range(1, 20)]
    files = [ask(port, f"/files/during:{number}") for number in range(5)]
    assert {answer.status for answer in files} <= {200, 404}
    assert {answer.text for answer in files if answer.status == 200} <= {3 * large}
    assert ask(port, "/files/last").status == 404
