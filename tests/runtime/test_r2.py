"""Objects in workerd that are larger than anything that holds them on the way."""

from __future__ import annotations

import hashlib
import http.client
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.runtime.conftest import Running, member_of

MEGABYTE = os.urandom(1024 * 1024)
MEGABYTES = 144


def peak(pid: int | str) -> int:
    """The most megabytes that a process has held at once."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024


@pytest.mark.parametrize("clustered", [False, True], ids=["folder", "cluster"])
def test_a_large_object_passes_in_pieces_and_is_there_for_the_next_process(
    start: Callable[..., Running], clustered: bool, bucket: str, tmp_path: Path
) -> None:
    given = {"cluster": member_of(bucket, tmp_path.name)} if clustered else {}
    # workerd does the same for both, which the larger one tries.
    megabytes = 40 if clustered else MEGABYTES
    running = start(**given)
    assert running.request("PUT", "/files/small", b"text").status == 200
    assert running.get("/files/small").body == b"text"
    before = peak(running.node.pid), peak("self")  # the service is in this process

    sent, seen = hashlib.md5(usedforsecurity=False), hashlib.md5(usedforsecurity=False)

    def pieces() -> Iterator[bytes]:
        for _ in range(megabytes):
            sent.update(MEGABYTE)
            yield MEGABYTE

    length = {"Content-Length": str(len(MEGABYTE) * megabytes)}
    assert running.request("PUT", "/files/large", pieces(), length, seconds=300).json() == sent.hexdigest()
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=300)
    connection.request("GET", "/files/large")
    response = connection.getresponse()
    while chunk := response.read(len(MEGABYTE)):
        seen.update(chunk)
    connection.close()
    assert seen.hexdigest() == sent.hexdigest()
    # What workerd has not collected yet is more than what it needs; 112 were seen.
    assert clustered or peak(running.node.pid) - before[0] < MEGABYTES
    assert peak("self") - before[1] < 32

    running.stop()
    again = start(state_of=running, **given)
    assert again.get("/files/small").body == b"text"
