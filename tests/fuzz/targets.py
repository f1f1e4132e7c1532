"""The targets of the fuzzers, each a function of bytes that raises when a promise is broken.

A target may meet the errors that are promised for bad input, and nothing else. Where there is a
second, naive way to say what is right, it is compared with that.
"""

from __future__ import annotations

import asyncio
import json
import re
import string
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.support.connections import answered

from core import http
from core.app import App
from core.errors import CoreError
from core.http import cookies, headers, paths
from core.http.conditional import ByteRange, none_match, parse_range
from core.http.dates import read_date
from core.http.escapes import encode_query, parse_query
from core.http.forms import FormLimits, UploadedFile, parse_header, read_form
from core.http.sse import Event, encode_event
from core.middleware.cors import cors
from core.middleware.jwt import jwt_auth
from core.middleware.request_id import request_id
from core.middleware.static import static
from core.request import Request
from core.response import Response
from core.testing import FakeExecutionContext

__all__ = ["TARGETS"]

_loop = asyncio.new_event_loop()


def _fetch(app: App[Any], request: http.Request) -> tuple[int, http.Headers, bytes]:
    async def run() -> tuple[int, http.Headers, bytes]:
        response = await app.fetch(request, None, FakeExecutionContext())
        return response.status, response.headers, await response.bytes()

    return _loop.run_until_complete(run())


def _clean(value: str) -> bool:
    return not any(char in value for char in "\r\n\0")


# -- paths


def _handed_over(path: str) -> http.Request:
    """A request whose path stands as a host writes it, who parses no URL."""
    request = http.Request("https://a.test/")
    request.path = paths.canonical_path(path)
    return request


def _paths() -> Callable[[bytes], None]:
    base = Path(mkdtemp(prefix="core-fuzz-"))
    (base / "public" / "sub").mkdir(parents=True)
    (base / "public" / "a.txt").write_text("fine")
    (base / "public" / ".env").write_text("OUTSIDE")
    (base / "secret.txt").write_text("OUTSIDE")
    app: App[Any] = App()
    passed: list[str] = []

    async def guard(req: Request[Any], res: Response, next: Any) -> None:
        passed.append(req.path)
        await next()

    app.use("/admin", guard)
    app.use("/assets", static(directory=base / "public"))

    @app.get("/admin/:page")
    async def page(req: Request[Any], res: Response) -> None:
        assert passed, f"{req.path} reached /admin/:page around its guard"
        res.json(dict(req.params))

    @app.get("/admin/files/*")
    async def files(req: Request[Any], res: Response) -> None:
        assert passed, f"{req.path} reached /admin/files/* around its guard"
        res.json(dict(req.params))

    def target(data: bytes) -> None:
        text = data.decode("latin-1")
        path = "/" + text
        # What a host hands over is unparsed; what a test writes is a URL.
        makers: list[Callable[[], http.Request]] = [
            lambda: _handed_over(path),
            lambda: http.Request("https://a.test" + path),
            lambda: http.Request("https://a.test/admin/" + text),
            lambda: http.Request("https://a.test/assets/" + text),
        ]
        for make in makers:
            passed.clear()
            try:
                request = make()
            except TypeError:
                continue
            status, _, body = _fetch(app, request)
            assert status in (200, 304, 400, 404), (request.path, status)
            assert b"OUTSIDE" not in body, request.path
            # A canonical path stays as it is, and has no dot segments left.
            assert paths.canonical_path(request.path) == request.path, request.path
            segments = request.path.split("/")
            assert not {".", ".."} & {segment.replace("%2e", ".").replace("%2E", ".") for segment in segments}

    return target


def query(data: bytes) -> None:
    """Query strings: read as browsers do, and back again."""
    text = data.decode("latin-1")
    pairs = parse_query(text)
    assert len(pairs) <= text.count("&") + 1
    assert parse_query(encode_query(pairs)) == pairs


# -- headers


def header(data: bytes) -> None:
    """Names and values: what passes can smuggle nothing."""
    name, _, value = data.decode("latin-1").partition(":")
    try:
        lowered = headers.check_name(name)
    except TypeError:
        assert not re.fullmatch(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", name)
    else:
        assert lowered == name.lower()
        assert _clean(lowered)
        assert " " not in lowered
    try:
        checked = headers.check_value(value)
    except TypeError:
        assert not _clean(value.strip(" \t\r\n"))
    else:
        assert _clean(checked)
        assert checked == checked.strip(" \t")
    res = Response()
    try:
        res.header(name, value).append("Vary", value)
    except TypeError:
        return
    assert all(_clean(stored) for _, stored in res.headers.items())


_app_for_headers: App[Any] = App()
_app_for_headers.use(request_id(), cors(origins=["https://a.test"], credentials=True))
_app_for_headers.use("/me", jwt_auth(secret=lambda req: "a secret of thirty-two characters"))


async def _echo(req: Request[Any], res: Response) -> None:
    res.json({"id": req.id, "cookies": dict(req.cookies)})


_app_for_headers.get("/", _echo)
_app_for_headers.get("/me", _echo)
_app_for_headers.options("/", _echo)


def request_headers(data: bytes) -> None:
    """Headers that middleware reads: whatever they hold, the answer is whole and gives nothing away."""
    value = data.decode("latin-1")
    try:
        given = http.Headers(
            {
                "X-Request-Id": value,
                "Origin": value,
                "Authorization": f"Bearer {value}",
                "Cookie": value,
                "Access-Control-Request-Method": "PUT",
                "Access-Control-Request-Headers": value,
                "If-None-Match": value,
            }
        )
    except TypeError:
        return
    for method, path in (("GET", "/"), ("GET", "/me"), ("OPTIONS", "/")):
        status, answered, _ = _fetch(
            _app_for_headers, http.Request(f"https://a.test{path}", method=method, headers=given)
        )
        assert status == {"/me": 401}.get(path, 204 if method == "OPTIONS" else 200)
        assert re.fullmatch(r"[A-Za-z0-9._:+=/-]{1,128}", answered["x-request-id"])
        assert ("access-control-allow-origin" in answered) is (given["origin"] == "https://a.test")
        assert all(_clean(stored) for _, stored in answered.items())
        assert "Origin" in answered["vary"]


# -- cookies


def cookie(data: bytes) -> None:
    """Cookies: lenient to read, strict to write, and what is written is read."""
    text = data.decode("latin-1")
    for name, value in cookies.parse_cookies(text).items():
        assert name
        assert name == name.strip(" \t")
        assert isinstance(value, str)
    name, _, value = data.decode("utf-8", "replace").partition("=")
    try:
        written = cookies.set_cookie(name, value, secure=True, path="/")
    except ValueError:
        return
    assert _clean(written)
    pair, *attributes = written.split("; ")
    assert attributes == ["Path=/", "Secure"], written
    assert ";" not in pair
    assert cookies.parse_cookies(pair) == {name: value}, (name, value, pair)
    for option in ("path", "domain"):
        try:
            written = cookies.set_cookie("a", "b", **{option: value})  # type: ignore[arg-type]  # one of two names
        except ValueError:
            continue
        assert _clean(written)
        assert written.count(";") == (1 if option == "path" else 2)


# -- bodies


async def _pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


_LIMITS = FormLimits(body=4096, field=512, file=1024, parts=20, headers=6, header_size=256, spool=64)


def multipart(data: bytes) -> None:
    """Forms: in whatever pieces, the same form or a client's error, within the limits."""
    size = (data[0] if data else 0) % 37 + 1
    body = data[1:].replace(b"\n", b"\r\n") if data[:1] < b"\x80" else data[1:]
    outcomes: list[object] = []
    for step in (size, len(body) + 1):
        outcomes.append(_loop.run_until_complete(_read_form("multipart/form-data; boundary=B", body, step)))
    assert outcomes[0] == outcomes[1], outcomes
    kind, parameters = parse_header(body.decode("latin-1"))
    assert kind == kind.strip().lower()
    assert all(name == name.lower() for name in parameters)
    _loop.run_until_complete(_read_form(body[:100].decode("latin-1"), body[100:], size))
    _loop.run_until_complete(_read_form("application/x-www-form-urlencoded", body, size))


async def _read_form(type_: str, body: bytes, step: int) -> object:
    try:
        form = await read_form(type_, _pieces(body, step), _LIMITS)
    except CoreError as error:
        if error.status not in (400, 413, 415):
            raise
        return error.status
    read: list[tuple[str, object]] = []
    for name, value in form.items_in_order:
        if isinstance(value, UploadedFile):
            assert "/" not in value.filename
            assert value.filename.isprintable()
            assert value.size == len(await value.bytes()) <= 1024
            read.append((name, (value.filename, await value.bytes())))
        else:
            assert len(value.encode("utf-8", "replace")) <= 3 * 512
            read.append((name, value))
    assert len(read) <= 20
    return read


# -- ranges and conditions


def ranges(data: bytes) -> None:
    """Ranges, tags and dates: never outside of the bytes there are."""
    size, text = (data[0] if data else 0), data[1:].decode("latin-1")
    for value in (text, f"bytes={text}"):
        part = parse_range(value, size)
        if part is not None:
            assert isinstance(part, ByteRange)
            assert 0 <= part.start <= size
            assert 0 <= part.length <= size - part.start or not part.satisfiable
            assert part.size == size
            assert re.fullmatch(r"bytes (\d+-\d+|\*)/\d+", part.content_range)
    assert none_match(text, '"x"') in (True, False)
    if '"x"' in text and not set(text) - set(string.ascii_letters + '", '):
        none_match(text, '"x"')
    seconds = read_date(text, 1.8e9)
    assert seconds is None or -62135596800 <= seconds <= 253402300799


# -- events


def events(data: bytes) -> None:
    """Server-sent events: a reader of the format gets back one event, whose fields are the ones given."""
    parts = data.decode("utf-8", "replace").split("\x1f", 2)
    text, kind, id = (*parts, "", "")[:3]
    encoded = encode_event(Event(data=text, event=kind, id=id)).decode()
    assert encoded.endswith("\n\n")
    assert encoded.count("\n\n") == 1
    lines = re.split(r"\r\n|\r|\n", encoded)
    assert lines[0] == "event: " + re.sub(r"[\r\n\0]", "", kind)
    assert lines[1] == "id: " + re.sub(r"[\r\n\0]", "", id)
    assert all(line.startswith("data: ") for line in lines[2:-2])
    assert "\n".join(line[6:] for line in lines[2:-2]) == re.sub(r"\r\n|\r", "\n", text)


# -- JSON


def json_text(data: bytes) -> None:
    """JSON: what is read is what the standard library reads, without what is no JSON; and it is written back."""
    try:
        value = http.json.loads(data)
    except ValueError:
        return
    except RecursionError:
        raise AssertionError("deep JSON is a ValueError") from None
    assert json.loads(http.json.dumps(value)) == value


# -- requests on a connection


def connection(data: bytes) -> None:
    """Whatever a client sends, it gets answers, and its connection ends when it sends no more."""
    half = len(data) // 2
    received = _loop.run_until_complete(answered(data[:half], data[half:], ends=True))
    assert not received or re.match(rb"HTTP/1\.1 [1-5][0-9][0-9] ", received), received


TARGETS: dict[str, Callable[[bytes], None]] = {
    "path": _paths(),
    "query": query,
    "header": header,
    "request_headers": request_headers,
    "cookie": cookie,
    "multipart": multipart,
    "range": ranges,
    "events": events,
    "json": json_text,
    "connection": connection,
}
