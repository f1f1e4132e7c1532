"""Every host has its tests, the attacks that name every host, and its page:
a forgotten step names the file to write.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Parts of hosts, or for all of them. `workers` is a folder, and tested inside workerd, in tests/runtime.
PARTS = {
    "__init__",
    "application",
    "asgi_websocket",
    "connection",
    "exchange",
    "in_flight",
    "limits",
    "otel",
    "output",
    "process",
    "server",
}
HOSTS = sorted({file.stem for file in (ROOT / "src" / "core" / "hosts").glob("*.py")} - PARTS)
NAMED_IN = ("tests/attacks/test_hosts.py", "tests/attacks/test_addresses.py", "tests/attacks/test_surrogates.py")


def forgotten(name: str) -> Iterator[str]:
    """The steps that are missing for the host of that name."""
    if not (ROOT / f"tests/hosts/test_{name}.py").exists():
        yield f"write tests/hosts/test_{name}.py with the requests that the other hosts are given"
    for file in (*NAMED_IN, "tests/hosts/test_is_disconnected.py"):
        if f"core.hosts.{name} " not in (ROOT / file).read_text("utf-8"):
            yield f"try core.hosts.{name} beside the other hosts in {file}"
    if f"::: core.hosts.{name}.{name}\n" not in (ROOT / "docs/reference/api/hosts.md").read_text("utf-8"):
        yield f"write `::: core.hosts.{name}.{name}` in docs/reference/api/hosts.md"


@pytest.mark.parametrize("name", HOSTS)
def test_no_step_is_forgotten(name: str) -> None:
    assert list(forgotten(name)) == []


def test_a_new_host_is_refused_with_every_file_to_write() -> None:
    assert list(forgotten("lantern")) == [
        "write tests/hosts/test_lantern.py with the requests that the other hosts are given",
        "try core.hosts.lantern beside the other hosts in tests/attacks/test_hosts.py",
        "try core.hosts.lantern beside the other hosts in tests/attacks/test_addresses.py",
        "try core.hosts.lantern beside the other hosts in tests/attacks/test_surrogates.py",
        "try core.hosts.lantern beside the other hosts in tests/hosts/test_is_disconnected.py",
        "write `::: core.hosts.lantern.lantern` in docs/reference/api/hosts.md",
    ]
