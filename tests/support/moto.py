"""An S3 service on this machine, as one process: moto, whose writes are made one after the other.

S3 promises that a write with a condition looks and writes in one step. moto looks, and then writes, in the thread of
each request, so that of two writers at the same moment both may find what they saw.

    python -m tests.support.moto PORT
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, nullcontext
from functools import cache
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
        [sys.executable, "-m", "tests.support.moto", str(port)],
        cwd=Path(__file__).parents[2],
        env={
            **os.environ,
            "MOTO_DISABLE_GLOBAL_CORS": "true",
        },  # no browser asks, and each answer would have its headers
        stdout=log,
        stderr=log,
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


def serve(port: int) -> None:
    """Serve until the process ends."""
    from moto.core import errors
    from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
    from werkzeug.serving import run_simple
    from werkzeug.test import run_wsgi_app

    # Each error would make a table of all errors, and keep it in a factory that is thrown away.
    vars(errors)["ErrorLookupFactory"] = cache(errors.ErrorLookupFactory)
    # Not the dispatcher to all services, which looks for their folders at each request: twice the time of an answer.
    service = create_backend_app("s3")
    alone = threading.Lock()

    class Handler(MotoRequestHandler):
        """Keeps connections, and writes no log: with werkzeug's own an answer takes nearly twice as much."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def run_wsgi(self) -> None:
            environ = self.make_environ()
            # The body before the turn, so that nobody waits for a client that sends the half of one.
            given = environ["wsgi.input"]
            is_chunked = environ.get("wsgi.input_terminated")
            body = given.read() if is_chunked else given.read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = io.BytesIO(body)
            with nullcontext() if self.command in ("GET", "HEAD") else alone:
                content, status, headers = run_wsgi_app(service, environ)
                sent = b"".join(content)
            code, _, reason = status.partition(" ")
            self.send_response(int(code), reason)
            for name, value in headers:
                self.send_header(name, value)
            if "Content-Length" not in headers and code not in ("204", "304") and self.command != "HEAD":
                self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None: ...

    run_simple("127.0.0.1", port, service, threaded=True, request_handler=Handler)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
