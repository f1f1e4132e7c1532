"""`static`: files and objects below a mount, found by the one canonical path, in whole and in part."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import http
from core.app import App
from core.bindings.r2 import R2Bucket
from core.http.conditional import parse_range
from core.http.dates import http_date, read_date
from core.middleware.static import static
from core.request import Request
from core.response import Response
from core.testing import Client, FakeExecutionContext, FakeR2Bucket

TEXT = b"0123456789" * 10
LARGE = bytes(range(256)) * 2000


@attrs.frozen
class Env:
    MEDIA: R2Bucket


@pytest.fixture
def public(tmp_path: Path) -> Path:
    root = tmp_path / "public"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_bytes(TEXT)
    (root / "large.bin").write_bytes(LARGE)
    (root / "index.html").write_text("<h1>home</h1>")
    (root / "sub" / "index.html").write_text("<h1>sub</h1>")
    (root / "empty.css").write_bytes(b"")
    (root / "with space.txt").write_text("space")
    (root / "ü.txt").write_text("umlaut")
    (root / ".env").write_text("SECRET=1")
    (tmp_path / "secret.txt").write_text("outside")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "inside.txt").symlink_to(root / "a.txt")
    return root


def client_for(directory: Path, **options: Any) -> Client[Any]:
    app: App[Any] = App()
    app.use("/assets", static(directory=directory, **options))

    @app.all("/assets/*")
    async def behind(req: Request[Any], res: Response) -> None:
        res.status(404).json({"behind": req.params["*"]})

    return Client(app, None)


async def filled() -> FakeR2Bucket:
    bucket = FakeR2Bucket()
    await bucket.put("public/a.txt", TEXT)
    await bucket.put(
        "public/large.bin", LARGE, http_metadata={"content_type": "image/x-large", "cache_control": "max-age=9"}
    )
    await bucket.put("public/index.html", b"<h1>home</h1>")
    await bucket.put("public/sub/index.html", b"<h1>sub</h1>")
    await bucket.put("public/empty.css", b"")
    await bucket.put("secret.txt", b"outside")
    return bucket


@pytest.fixture(params=["directory", "bucket"])
async def client(request: pytest.FixtureRequest, public: Path) -> Client[Any]:
    if request.param == "directory":
        return client_for(public)
    app: App[Any] = App()
    app.use("/assets", static(bucket="MEDIA", prefix="public/"))
    return Client(app, Env(await filled()), FakeExecutionContext())


async def test_a_file_with_its_type_tag_and_date(client: Client[Any]) -> None:
    response = await client.get("/assets/a.txt")
    assert (response.status, await response.bytes()) == (200, TEXT)
    assert response.headers["content-type"] == "text/plain;charset=UTF-8"
    assert response.headers["etag"].startswith('"')
    assert read_date(response.headers["last-modified"], 0) is not None
    assert response.headers["accept-ranges"] == "bytes"


async def test_a_large_file_comes_in_pieces_with_its_length(client: Client[Any]) -> None:
    response = await client.get("/assets/large.bin")
    assert response.headers["content-length"] == str(len(LARGE))
    assert await response.bytes() == LARGE


@pytest.mark.parametrize("path", ["/assets", "/assets/", "/assets/index.html"])
async def test_index_stands_for_the_directory(client: Client[Any], path: str) -> None:
    assert await (await client.get(path)).text() == "<h1>home</h1>"
    assert await (await client.get("/assets/sub")).text() == "<h1>sub</h1>"


@pytest.mark.parametrize("path", ["/assets/a.txt", "/assets/large.bin"])
async def test_head_has_the_headers_and_no_body(client: Client[Any], path: str) -> None:
    whole, response = await client.get(path), await client.head(path)
    assert (response.status, await response.bytes()) == (200, b"")
    length = len(await whole.bytes())
    assert response.headers["content-length"] == str(length)
    assert response.headers["etag"] == whole.headers["etag"]


async def test_an_empty_file(client: Client[Any]) -> None:
    response = await client.get("/assets/empty.css")
    assert (response.status, await response.bytes()) == (200, b"")
    assert (await client.get("/assets/empty.css", headers={"Range": "bytes=0-"})).status == 416


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=90-", 90, 100),
        ("bytes=-5", 95, 100),
        ("bytes=95-500", 95, 100),
        ("bytes=-500", 0, 100),
        ("bytes=0-0", 0, 1),
        ("Bytes=99-99", 99, 100),
        ("bytes= 1-2 ", 1, 3),
    ],
)
async def test_a_range_is_answered_with_206_and_the_part(client: Client[Any], asked: str, start: int, end: int) -> None:
    response = await client.get("/assets/a.txt", headers={"Range": asked})
    assert (response.status, await response.bytes()) == (206, TEXT[start:end])
    assert response.headers["content-range"] == f"bytes {start}-{end - 1}/100"


async def test_a_range_of_a_large_file(client: Client[Any]) -> None:
    response = await client.get("/assets/large.bin", headers={"Range": "bytes=1000-400999"})
    assert (response.status, response.headers["content-length"]) == (206, "400000")
    assert await response.bytes() == LARGE[1000:401000]


async def test_the_end_of_a_range_may_be_the_largest_number_of_64_bits(client: Client[Any]) -> None:
    response = await client.get("/assets/a.txt", headers={"Range": f"bytes=1-{2**64 - 1}"})
    assert (response.status, response.headers["content-range"], await response.bytes()) == (
        206,
        "bytes 1-99/100",
        TEXT[1:],
    )


@pytest.mark.parametrize("asked", ["bytes=100-", "bytes=500-600", "bytes=-0"])
async def test_a_range_that_cannot_be_had_is_416(client: Client[Any], asked: str) -> None:
    response = await client.get("/assets/a.txt", headers={"Range": asked})
    assert (response.status, response.headers["content-range"], await response.bytes()) == (416, "bytes */100", b"")


@pytest.mark.parametrize(
    "asked",
    [
        "bytes=0-1,3-4",
        "bytes=" + "0-0," * 1000,
        "items=0-1",
        "bytes=5-2",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=1-2-3",
        "0-1",
        "bytes=٣-",
        "bytes=" + "9" * 50 + "-",
    ],
)
async def test_several_ranges_and_what_is_malformed_give_the_whole(client: Client[Any], asked: str) -> None:
    try:
        response = await client.get("/assets/a.txt", headers={"Range": asked})
    except TypeError:
        return  # no header can carry it
    assert (response.status, await response.bytes()) == (200, TEXT)


def obsolete(date: str, form: str) -> str:
    """A date in one of the two forms that servers once wrote, which are to be read for ever (RFC 9110, 5.6.7)."""
    return datetime.strptime(date, "%a, %d %b %Y %H:%M:%S GMT").strftime(form)


async def test_if_range_decides_whether_a_part_still_fits(client: Client[Any]) -> None:
    first = await client.get("/assets/a.txt")
    for validator, status in (
        (first.headers["etag"], 206),
        (first.headers["last-modified"], 206),
        (obsolete(first.headers["last-modified"], "%A, %d-%b-%y %H:%M:%S GMT"), 206),
        (obsolete(first.headers["last-modified"], "%a %b %e %H:%M:%S %Y"), 206),
        ('"other"', 200),
        ("W/" + first.headers["etag"], 200),
        (http_date(0), 200),
        ("nonsense", 200),
    ):
        response = await client.get("/assets/a.txt", headers={"Range": "bytes=0-1", "If-Range": validator})
        assert response.status == status, validator
        await response.bytes()


async def test_conditions_are_answered_with_304(client: Client[Any]) -> None:
    first = await client.get("/assets/a.txt")
    modified = first.headers["last-modified"]
    for headers, status in (
        ({"If-None-Match": first.headers["etag"]}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"other"'}, 200),
        ({"If-None-Match": '"other"', "If-Modified-Since": modified}, 200),
        ({"If-Modified-Since": modified}, 304),
        ({"If-Modified-Since": http_date(0)}, 200),
        ({"If-Modified-Since": obsolete(modified, "%A, %d-%b-%y %H:%M:%S GMT")}, 304),
        ({"If-Modified-Since": obsolete(modified, "%a %b %e %H:%M:%S %Y")}, 304),
        ({"If-Modified-Since": "Sunday, 01-Jan-95 00:00:00 GMT"}, 200),
        ({"If-Modified-Since": "yesterday"}, 200),
    ):
        response = await client.get("/assets/a.txt", headers=headers)
        assert response.status == status, headers
        assert response.headers["etag"] == first.headers["etag"]
        assert (await response.bytes() == b"") is (status == 304)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_other_methods_go_on(client: Client[Any], method: str) -> None:
    assert (await client.request(method, "/assets/a.txt")).status == 404


async def test_what_is_not_there_goes_on(public: Path) -> None:
    response = await client_for(public).get("/assets/nope.txt")
    assert await response.json() == {"behind": "nope.txt"}


async def test_names_are_decoded_once(public: Path) -> None:
    client = client_for(public)
    assert await (await client.get("/assets/with%20space.txt")).text() == "space"
    assert await (await client.get("/assets/%C3%BC.txt")).text() == "umlaut"
    assert (await client.get("/assets/with%2520space.txt")).status == 404
    assert await (await client.get("/assets/%61.txt")).bytes() == TEXT


TRAVERSALS = [
    "/assets/../secret.txt",
    "/assets/%2e%2e/secret.txt",
    "/assets/%2E%2E%2Fsecret.txt",
    "/assets/..%2fsecret.txt",
    "/assets/..%5csecret.txt",
    "/assets/..\\secret.txt",
    "/assets/sub/../../secret.txt",
    "/assets/sub/%2e%2e/%2e%2e/secret.txt",
    "/assets//secret.txt",
    "/assets/%2Fetc%2Fpasswd",
    "/assets//etc/passwd",
    "/assets/%00/a.txt",
    "/assets/a.txt%00.png",
    "/assets/%252e%252e/secret.txt",
    "/assets/.%2e/secret.txt",
    "/assets/link.txt",
    "/assets/.env",
    "/assets/%2eenv",
    "/assets/./.env",
    "/assets/C:/Windows/win.ini",
    "/assets/a.txt::$DATA",
    "/assets/sub%2findex.html",
    "/assets/sub//index.html",
    "/assets/%ff.txt",
    "/assets/%",
    "/ASSETS/a.txt",
]


@pytest.mark.parametrize("path", TRAVERSALS)
async def test_nothing_spelled_otherwise_gets_out_of_the_directory(public: Path, path: str) -> None:
    response = await client_for(public).get(path)
    text = await response.text()
    assert response.status in (400, 404), text
    assert "outside" not in text
    assert "SECRET" not in text
    assert "root:" not in text


@given(
    st.lists(
        st.sampled_from(
            [
                "..",
                "%2e%2e",
                "%2e.",
                "..%2f",
                "..%5c",
                "\\..",
                "/",
                "//",
                "secret.txt",
                "a.txt",
                "sub",
                ".",
                "%00",
                "%2f",
                "%252e",
                ".",
            ]
        ),
        max_size=8,
    )
)
async def test_no_mixture_of_spellings_gets_out_either(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    base = tmp_path_factory.getbasetemp() / "mixture"
    root = base / "public"
    if not root.exists():
        (root / "sub").mkdir(parents=True)
        (root / "a.txt").write_text("fine")
        (base / "secret.txt").write_text("outside")
    response = await client_for(root).get("/assets/" + "/".join(pieces))
    assert "outside" not in await response.text()


async def test_a_link_that_stays_inside_is_followed(public: Path) -> None:
    assert await (await client_for(public).get("/assets/inside.txt")).bytes() == TEXT


async def test_dotfiles_index_and_cache_control_are_options(public: Path) -> None:
    client = client_for(public, dotfiles=True, index=None, cache_control="public, max-age=60")
    response = await client.get("/assets/.env")
    assert (await response.text(), response.headers["cache-control"]) == ("SECRET=1", "public, max-age=60")
    assert (await client.get("/assets/")).status == 404


async def test_it_may_stand_on_a_route_and_below_several_mounts(public: Path) -> None:
    app: App[Any] = App()
    files = static(directory=public)
    app.get("/one/*", files)
    router = app.Router()
    router.use("/b", files)
    app.use("/a", router)
    app.use("/:tenant/files", files)
    client = Client(app, None)
    for path in ("/one/a.txt", "/a/b/a.txt", "/acme/files/a.txt"):
        assert await (await client.get(path)).bytes() == TEXT, path
    assert (await client.get("/a/a.txt")).status == 404


async def test_what_stands_before_the_mount_cannot_be_stepped_around(public: Path) -> None:
    async def refuse(req: Request[Any], res: Response, next: Any) -> None:
        res.status(401).json({})

    app: App[Any] = App()
    app.use("/assets/sub", refuse)
    app.use("/assets", static(directory=public))
    client = Client(app, None)
    for path in (
        "/assets/sub/index.html",
        "/assets/./sub/index.html",
        "/assets/x/../sub/index.html",
        "/assets/%73ub/index.html",
        "/assets/sub",
        "/assets/%73ub",
        "/assets\\sub\\index.html",
    ):
        assert (await client.get(path)).status == 401, path
    for path in (
        "/assets//sub/index.html",
        "/assets/sub%2findex.html",
        "/assets/SUB/index.html",
        "//assets/sub/index.html",
    ):
        assert (await client.get(path)).status in (401, 404), path


async def test_an_objects_own_headers_are_sent() -> None:
    app: App[Any] = App()
    app.use("/", static(bucket=lambda req: req.env.MEDIA, prefix="public/", cache_control="no-cache"))
    client = Client(app, Env(await filled()))
    response = await client.get("/large.bin")
    assert (response.headers["content-type"], response.headers["cache-control"]) == ("image/x-large", "max-age=9")
    await response.bytes()
    assert (await client.get("/a.txt")).headers["cache-control"] == "no-cache"
    assert (await client.get("/../secret.txt")).status == 404


@given(st.integers(0, 300), st.integers(0, 300) | st.none(), st.integers(0, 300))
def test_a_range_is_what_a_slice_of_the_bytes_would_be(start: int, end: int | None, size: int) -> None:
    data = bytes(size)
    part = parse_range(f"bytes={start}-{'' if end is None else end}", size)
    if end is not None and end < start:
        assert part is None
        return
    assert part is not None
    assert part.length == len(data[start : None if end is None else end + 1])


@given(st.integers(0, 4_000_000_000))
def test_dates_are_read_as_they_are_written(seconds: int) -> None:
    assert read_date(http_date(seconds), 0) == seconds


async def test_a_stream_that_is_not_read_to_its_end_closes_its_file(public: Path) -> None:
    response: http.Response = await client_for(public).get("/assets/large.bin")
    stream = response.stream()
    await anext(stream)
    await stream.aclose()


# -- compressed files, and the page of an application in the browser


async def with_forms(tmp_path: Path, kind: str) -> Client[Any]:
    files = {
        "app.js": b"x" * 100, "app.js.br": b"brotli", "app.js.gz": b"gzip", "plain.txt": b"plain",
        "index.html": b"<h1>app</h1>", "index.html.gz": b"<gz>",
    }  # fmt: skip
    options: dict[str, Any] = {"precompressed": True, "fallback": "index.html"}
    app: App[Any] = App()
    bucket = FakeR2Bucket()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        await bucket.put(name, data)
    place = static(directory=tmp_path, **options) if kind == "directory" else static(bucket="MEDIA", **options)
    app.use("/", place)
    return Client(app, Env(bucket), FakeExecutionContext())


@pytest.mark.parametrize("kind", ["directory", "bucket"])
@pytest.mark.parametrize(
    ("accepted", "coding", "body"),
    [
        ("gzip, br", "br", b"brotli"),
        ("gzip", "gzip", b"gzip"),
        ("gzip, br;q=0", "gzip", b"gzip"),
        ("zstd, *;q=0", None, b"x" * 100),
        ("identity", None, b"x" * 100),
        (None, None, b"x" * 100),
    ],
)
async def test_a_compressed_file_is_sent_to_who_takes_it(
    tmp_path: Path, kind: str, accepted: str | None, coding: str | None, body: bytes
) -> None:
    client = await with_forms(tmp_path, kind)
    headers = {} if accepted is None else {"Accept-Encoding": accepted}
    response = await client.get("/app.js", headers=headers)
    assert (response.status, await response.bytes()) == (200, body)
    assert response.headers.get("content-encoding") == coding
    assert response.headers["content-type"] == "text/javascript;charset=UTF-8"
    assert response.headers["vary"] == "Accept-Encoding"
    known = await client.get("/app.js", headers={**headers, "If-None-Match": response.headers["etag"]})
    assert (known.status, "content-encoding" in known.headers) == (304, False)
    part = await client.get("/app.js", headers={**headers, "Range": "bytes=1-2"})
    assert (part.status, await part.bytes(), part.headers.get("content-encoding")) == (206, body[1:3], coding)


@pytest.mark.parametrize("kind", ["directory", "bucket"])
async def test_a_page_that_is_not_there_is_the_fallback_and_a_script_is_a_404(tmp_path: Path, kind: str) -> None:
    client = await with_forms(tmp_path, kind)
    page = await client.get("/users/7", headers={"Accept": "text/html,application/xhtml+xml"})
    assert (page.status, await page.text()) == (200, "<h1>app</h1>")
    assert page.headers["vary"] == "Accept, Accept-Encoding"
    packed = await client.get("/users/7", headers={"Accept": "text/html", "Accept-Encoding": "gzip"})
    assert (await packed.bytes(), packed.headers["content-type"]) == (b"<gz>", "text/html;charset=UTF-8")
    for headers in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        missing = await client.get("/users/7.js", headers=headers)
        assert (missing.status, missing.headers["vary"]) == (404, "Accept")
    assert (await client.post("/users/7", headers={"Accept": "text/html"})).status == 404
