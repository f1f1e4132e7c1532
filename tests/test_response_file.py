"""`res.file`: a file of the machine, its name for who keeps it, and the part that is asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from core import App, Request, Response
from core.http.files import content_disposition
from core.http.forms import parse_header
from core.middleware.compress import compress
from core.middleware.logger import logger
from core.testing import Client

TEXT = b"0123456789" * 300
LARGE = bytes(range(256)) * 2000


def client_for(path: Path, *middleware: Any, status: int = 200, **options: Any) -> Client[Any]:
    app: App[Any] = App()
    app.use(*middleware) if middleware else None

    @app.get("/")
    async def send(req: Request[Any], res: Response) -> None:
        res.status(status).file(path, **options)

    return Client(app, None)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    (tmp_path / "report.txt").write_bytes(TEXT)
    return tmp_path / "report.txt"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    (tmp_path / "large.bin").write_bytes(LARGE)
    return tmp_path / "large.bin"


async def test_a_file_comes_with_its_type_its_length_and_its_validators(report: Path) -> None:
    response = await client_for(report, filename="Bericht für 2026.txt").get("/")
    assert (response.status, await response.bytes()) == (200, TEXT)
    assert response.headers["content-type"] == "text/plain;charset=UTF-8"
    assert response.headers["content-length"] == str(len(TEXT))
    assert response.headers["accept-ranges"] == "bytes"
    assert response.headers["content-disposition"] == (
        "attachment; filename=\"Bericht f_r 2026.txt\"; filename*=UTF-8''Bericht%20f%C3%BCr%202026.txt"
    )


async def test_without_a_filename_nothing_says_how_to_keep_it(report: Path) -> None:
    response = await client_for(report, content_type="text/csv").get("/")
    assert ("content-disposition" in response.headers, response.headers["content-type"]) == (False, "text/csv")


@pytest.mark.parametrize(("which", "data"), [("report", TEXT), ("large", LARGE)])
async def test_conditions_and_ranges_are_honoured(which: str, data: bytes, request: pytest.FixtureRequest) -> None:
    client = client_for(request.getfixturevalue(which), filename="x")
    first = await client.get("/")
    assert await first.bytes() == data
    known = await client.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert (known.status, await known.bytes(), known.headers["etag"]) == (304, b"", first.headers["etag"])
    assert "content-length" not in known.headers
    part = await client.get("/", headers={"Range": "bytes=10-19"})
    assert (part.status, await part.bytes(), part.headers["content-length"]) == (206, data[10:20], "10")
    assert part.headers["content-range"] == f"bytes 10-19/{len(data)}"
    beyond = await client.get("/", headers={"Range": f"bytes={len(data)}-"})
    assert (beyond.status, await beyond.bytes()) == (416, b"")
    head = await client.head("/", headers={"Range": "bytes=0-1"})
    assert (head.status, await head.bytes(), head.headers["content-length"]) == (200, b"", str(len(data)))
    assert (await client.head("/", headers={"If-None-Match": "*"})).status == 304


async def test_the_log_has_the_final_status(report: Path) -> None:
    lines: list[str] = []
    client = client_for(report, logger(write=lines.append))
    await client.get("/", headers={"If-None-Match": "*"})
    await client.get("/", headers={"Range": "bytes=0-1"})
    assert [line.split()[2] for line in lines] == ["304", "206"]


async def test_what_a_middleware_changed_is_not_cut(report: Path) -> None:
    response = await client_for(report, compress()).get("/", headers={"Accept-Encoding": "gzip", "Range": "bytes=0-1"})
    assert (response.status, response.headers["content-encoding"]) == (200, "gzip")
    known = await client_for(report, compress()).get(
        "/", headers={"Accept-Encoding": "gzip", "If-None-Match": response.headers["etag"]}
    )
    assert (known.status, "content-encoding" in known.headers) == (304, False)


async def test_another_status_sends_the_whole(report: Path) -> None:
    response = await client_for(report, status=404).get("/", headers={"Range": "bytes=0-1", "If-None-Match": "*"})
    assert (response.status, await response.bytes()) == (404, TEXT)


async def test_a_file_that_is_not_there_is_the_developers_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Response().file(tmp_path / "nope")
    with pytest.raises(OSError, match="irectory"):
        Response().file(tmp_path)
    assert (await client_for(tmp_path / "nope").get("/")).status == 500


async def test_an_error_after_it_takes_it_back(report: Path) -> None:
    app: App[Any] = App()

    @app.get("/")
    async def fails(req: Request[Any], res: Response) -> None:
        res.file(report)
        raise RuntimeError("after it was sent")

    response = await Client(app, None).get("/", headers={"Range": "bytes=0-1", "If-None-Match": "*"})
    assert (response.status, await response.json()) == (500, {"error": "Internal Server Error"})
    assert "etag" not in response.headers


async def test_a_large_file_that_was_changed_meanwhile_is_not_sent(large: Path) -> None:
    response = await client_for(large).get("/")
    os.utime(large, (1, 1))
    with pytest.raises(OSError, match="was changed before it was sent"):
        await response.bytes()


@pytest.mark.parametrize(
    ("filename", "value"),
    [
        ("report.pdf", 'attachment; filename="report.pdf"'),
        ("a b;c=d.txt", 'attachment; filename="a b;c=d.txt"'),
        ('quo"te.txt', "attachment; filename=\"quo_te.txt\"; filename*=UTF-8''quo%22te.txt"),
        ("50%.txt", "attachment; filename=\"50_.txt\"; filename*=UTF-8''50%25.txt"),
        ("日本.txt", "attachment; filename=\"__.txt\"; filename*=UTF-8''%E6%97%A5%E6%9C%AC.txt"),
        ("../../etc/passwd", 'attachment; filename="passwd"'),
        ("C:\\x\\a.txt", 'attachment; filename="a.txt"'),
        ("a\r\nSet-Cookie: b.txt", 'attachment; filename="aSet-Cookie_ b.txt"; filename*=UTF-8\'\'aSet-Cookie%3A%20b.txt'),
        (".env", 'attachment; filename="env"'),
    ],
)  # fmt: skip
def test_names_are_written_as_rfc_6266_says(filename: str, value: str) -> None:
    assert content_disposition(filename) == value
    assert content_disposition(filename, inline=True) == value.replace("attachment", "inline")
    assert parse_header(value)[0] in ("attachment", b"attachment")


@pytest.mark.parametrize("filename", ["", "/", "..", " . ", "\n"])
def test_what_is_not_a_name_is_refused(filename: str, report: Path) -> None:
    with pytest.raises(ValueError, match="is not the name of a file"):
        Response().file(report, filename=filename)
