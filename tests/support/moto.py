"""An S3 service on this machine, as one process."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import attrs

# moto only looks for the service and the region in it.
CREDENTIALS = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


@attrs.frozen
class S3Service:
    """A service with the bucket `cluster`: its address, and its process."""

    url: str
    process: subprocess.Popen[bytes]

    @property
    def settings(self) -> list[str]:
        """The settings of a cluster that has its bucket here."""
        secret = "aws_secret_access_key=bbbbbbbbbbbbbbbbbbbb"
        return [f"aws_endpoint={self.url}", "aws_region=us-east-1", "aws_access_key_id=a", secret]


@contextmanager
def s3_service(folder: Path) -> Generator[S3Service]:
    """Run one, with its log in a folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (folder / "moto.log").open("wb")
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log
    )
    try:
        end = time.monotonic() + 60
        while True:
            try:
                with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                    connection.request("PUT", "/cluster", headers={"Authorization": CREDENTIALS})
                    assert connection.getresponse().status == 200
                break
            except OSError:
                assert time.monotonic() < end, "moto did not start"
                time.sleep(0.1)
        yield S3Service(f"http://127.0.0.1:{port}", server)
    finally:
        server.kill()
        server.wait(120)
        log.close()
