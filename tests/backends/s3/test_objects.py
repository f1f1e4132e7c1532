"""The buckets that a cluster may have: with checks of conditions or without, with credentials from a file."""

from __future__ import annotations

import http.client
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.moto import S3Service, s3_service

from core.backends.s3.objects import BucketError, SharedObjects
from core.errors import MissingExtraError
from core.runtime.plan import Cluster
from core.runtime.r2 import serve_buckets


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Service]:
    with s3_service(tmp_path_factory.mktemp("moto")) as service:
        yield service


@contextmanager
def without_conditions(s3: S3Service, refused: int | None) -> Generator[S3Service]:
    """The same service as older servers are: conditions of a write are not looked at, or are an error.

    Nor do they take an object without bytes.
    """

    class Older(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("if-")}
            without_bytes = self.command == "PUT" and not body
            if without_bytes or (refused is not None and len(headers) < len(self.headers)):
                self.send_response(500 if without_bytes else refused or 501)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            connection = http.client.HTTPConnection(urlsplit(s3.url).netloc, timeout=60)
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = handle_any

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Older)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield S3Service(f"http://127.0.0.1:{server.server_port}", s3.process)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("refused", [None, 501])
async def test_a_bucket_that_checks_no_conditions_is_used_with_a_note(s3: S3Service, refused: int | None) -> None:
    said: list[str] = []
    with without_conditions(s3, refused) as older:
        cluster = Cluster("s3://cluster/older", "k" * 32, "127.0.0.1:0", options=older.settings)
        async with serve_buckets(["files"], Path(), cluster, said.append):
            (note,) = said
        assert "s3://cluster/older does not check If-Match and If-None-Match" in note
        shared = SharedObjects(cluster.bucket, cluster.options)
        await shared.try_conditions()
        assert await shared.write_if("k", b"one", None)
        assert await shared.write_if("k", b"two", None)


async def test_a_bucket_that_checks_conditions_is_used_without_a_note(s3: S3Service) -> None:
    said: list[str] = []
    cluster = Cluster("s3://cluster/newer", "k" * 32, "127.0.0.1:0", options=s3.settings)
    async with serve_buckets(["files"], Path(), cluster, said.append):
        assert said == []


async def test_credentials_may_be_in_the_file_that_workerd_reads(
    s3: S3Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "credentials"
    file.write_text("AWS_ACCESS_KEY_ID=a\nAWS_SECRET_ACCESS_KEY=bbbbbbbbbbbbbbbbbbbb\n")
    monkeypatch.setenv("AWS_CREDENTIALS_FILE", str(file))
    shared = SharedObjects("s3://cluster/file", s3.settings[:2])
    await shared.write("k", b"text")
    found = await shared.read("k")
    assert found is not None
    assert found.data == b"text"


async def test_a_bucket_that_is_not_there_is_an_error(s3: S3Service) -> None:
    shared = SharedObjects("s3://not-there/x", s3.settings)
    with pytest.raises(BucketError):
        await shared.try_conditions()
    with pytest.raises(BucketError):
        await shared.write("k", b"text")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'core-edge\[cluster\]'"):
        SharedObjects("s3://cluster/x")
