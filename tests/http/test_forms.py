"""`req.form()`: fields and files of forms, within limits, and what is malformed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import http
from core.app import App
from core.errors import CoreError
from core.http.forms import Form, FormLimits, UploadedFile, parse_header, read_form
from core.request import Request
from core.response import Response
from core.testing import Client


def multipart(*parts: tuple[str, bytes], boundary: str = "B") -> bytes:
    """A body of parts, each its headers as one text and its content."""
    return (
        b"".join(f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n" for head, content in parts)
        + f"--{boundary}--\r\n".encode()
    )


def field(name: str, value: bytes) -> tuple[str, bytes]:
    return f'Content-Disposition: form-data; name="{name}"', value


def file(name: str, filename: str, content: bytes, type_: str = "text/plain") -> tuple[str, bytes]:
    return f'Content-Disposition: form-data; name="{name}"; filename="{filename}"\r\nContent-Type: {type_}', content


async def pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def read(
    body: bytes, limits: FormLimits | None = None, *, size: int = 7, type_: str = "multipart/form-data; boundary=B"
) -> Form:
    return await read_form(type_, pieces(body, size), limits)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_fields_and_files_in_whatever_pieces_they_come(size: int) -> None:
    form = await read(
        multipart(field("a", b"1"), file("f", "x.txt", b"content\r\n-B\r\nnot"), field("a", "ü".encode())), size=size
    )
    assert (form["a"], form.get_all("a"), form.text("a")) == ("1", ["1", "ü"], "1")
    upload = form.file("f")
    assert upload is not None
    assert (upload.filename, upload.content_type, upload.size) == ("x.txt", "text/plain", 16)
    assert list(form) == ["a", "f"]


async def test_a_malformed_part_writes_no_line_that_a_client_could_repeat_without_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(CoreError):
        await read(b"--B\r\nmalformed")
    assert caplog.records == []


async def test_a_file_can_be_read_whole_again_as_text_and_in_pieces() -> None:
    form = await read(multipart(file("f", "x.bin", b"\xffdata", "application/x-thing")))
    upload = form["f"]
    assert isinstance(upload, UploadedFile)
    assert (upload.filename, upload.content_type, upload.size, upload.length) == ("x.bin", "application/x-thing", 5, 5)
    assert await upload.bytes() == await upload.bytes() == b"\xffdata"
    assert await upload.text() == "\ufffddata"
    assert b"".join([chunk async for chunk in upload]) == b"\xffdata"
    assert (form.text("f"), form.file("nope"), form.get("nope")) == (None, None, None)
    assert (form.files("f"), form.files("nope")) == ([form.file("f")], [])


async def test_a_large_file_waits_on_disk_and_is_closed_with_its_last_reference() -> None:
    form = await read(multipart(file("f", "x", b"x" * 300_000)), size=64_000)
    upload = form.file("f")
    assert upload is not None
    assert upload.size == 300_000
    assert len(await upload.bytes()) == 300_000


@pytest.mark.parametrize(
    ("given_name", "bare"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\\\temp\\\\a.txt", "a.txt"),
        ("/a/b/..", ""),
        (".", ""),
        ("a%22b.txt", 'a"b.txt'),
        ("a%0D%0Ab", "ab"),
        ("x" * 300, "x" * 255),
        ("", ""),
        ("ü.txt", "ü.txt"),
        ("a\x7fb", "ab"),
    ],
)
async def test_a_filename_has_no_directories_and_no_control_characters(given_name: str, bare: str) -> None:
    upload = (await read(multipart(file("f", given_name, b"x")))).file("f")
    assert upload is not None
    assert upload.filename == bare


async def test_urlencoded() -> None:
    form = await read(
        b"a=1&b=%C3%BC+x&a=2&empty=&=noname&flag", type_="application/x-www-form-urlencoded; charset=utf-8"
    )
    assert form.items_in_order == [("a", "1"), ("b", "ü x"), ("a", "2"), ("empty", ""), ("", "noname"), ("flag", "")]


@attrs.frozen
class Person:
    name: str
    age: int
    tags: list[str] = attrs.Factory(list[str])


@attrs.frozen
class Consent:
    news: bool = False
    terms: bool = False


async def test_a_checkbox_is_true_where_it_is_checked() -> None:
    form = await read(b"terms=on", type_="application/x-www-form-urlencoded")
    assert form.parse(Consent) == Consent(news=False, terms=True)


async def test_parse_gives_a_type() -> None:
    form = await read(b"name=Ada&age=36&tags=a&tags=b", type_="application/x-www-form-urlencoded")
    assert form.parse(Person) == Person("Ada", 36, ["a", "b"])
    bad = await read(b"name=Ada&age=old", type_="application/x-www-form-urlencoded")
    with pytest.raises(CoreError) as caught:
        bad.parse(Person)
    assert caught.value.status == 422
    assert caught.value.metadata["issues"] == [{"path": "age", "message": "must be an integer"}]


@pytest.mark.parametrize(
    "type_", ["", "text/plain", "multipart/mixed; boundary=B", "application/json", "multipart/form-datax; boundary=B"]
)
async def test_any_other_type_is_415(type_: str) -> None:
    with pytest.raises(CoreError) as caught:
        await read(b"", type_=type_)
    assert caught.value.status == 415


@pytest.mark.parametrize(
    "type_",
    [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=" + "b" * 71,
        'multipart/form-data; boundary="a\x01"',
        "multipart/form-data; boundary=é",
    ],
)
async def test_a_boundary_that_is_missing_or_not_allowed_is_400(type_: str) -> None:
    with pytest.raises(CoreError, match="Malformed form") as caught:
        await read(multipart(field("a", b"1")), type_=type_)
    assert caught.value.status == 400


MALFORMED = [
    b"",
    b"--B",
    b"--B\r\n",
    b"no boundary at all",
    multipart(field("a", b"1"))[:-6],
    b'--B\r\nContent-Disposition: form-data; name="a"\r\n\r\n',
    multipart(("X: y", b"no disposition")),
    multipart(("Content-Disposition: form-data", b"no name")),
    multipart(('Content-Disposition: attachment; name="a"', b"x")),
    multipart(("Content-Disposition form-data; name=a", b"x")),
    multipart(("\x00: x", b"x")),
    multipart(field("a", b"1"), boundary="C"),
]


@pytest.mark.parametrize("body", MALFORMED)
async def test_what_is_malformed_is_400(body: bytes) -> None:
    for size in (1, 1000):
        with pytest.raises(CoreError, match="Malformed form") as caught:
            await read(body, size=size)
        assert caught.value.status == 400


@pytest.mark.parametrize(
    ("limits", "body", "what"),
    [
        (FormLimits(body=50), multipart(field("a", b"x" * 100)), "the body"),
        (FormLimits(field=10), multipart(field("a", b"x" * 11)), "a field"),
        (FormLimits(file=10), multipart(file("a", "f", b"x" * 11)), "a file"),
        (FormLimits(parts=2), multipart(*[field("a", b"")] * 3), "the number of parts"),
        (
            FormLimits(headers=2),
            multipart(("Content-Disposition: form-data; name=a\r\nA: b\r\nC: d", b"")),
            "a part's headers",
        ),
        (
            FormLimits(header_size=50),
            multipart(("Content-Disposition: form-data; name=a\r\nA: " + "x" * 60, b"")),
            "a part's headers",
        ),
        (
            FormLimits(header_size=50),
            multipart(("Content-Disposition: form-data; name=a\r\n" + "A" * 60 + ": x", b"")),
            "a part's headers",
        ),
    ],
)
async def test_past_a_limit_is_413_that_says_which(limits: FormLimits, body: bytes, what: str) -> None:
    for size in (1, 1000):
        with pytest.raises(CoreError, match=f"Form too large: {what}") as caught:
            await read(body, limits, size=size)
        assert caught.value.status == 413


@pytest.mark.parametrize(
    ("limits", "body", "what"),
    [
        (FormLimits(body=5), b"a=1&b=2", "the body"),
        (FormLimits(field=3), b"a=1234", "a field"),
        (FormLimits(parts=2), b"a&b&c", "the number of fields"),
    ],
)
async def test_urlencoded_past_a_limit_is_413(limits: FormLimits, body: bytes, what: str) -> None:
    with pytest.raises(CoreError, match=f"Form too large: {what}"):
        await read(body, limits, type_="application/x-www-form-urlencoded")


async def test_nothing_is_read_beyond_the_limit() -> None:
    seen = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal seen
        yield b'--B\r\nContent-Disposition: form-data; name="a"; filename="f"\r\n\r\n'
        while True:
            seen += 1
            yield b"x" * 1000

    with pytest.raises(CoreError):
        await read_form("multipart/form-data; boundary=B", endless(), FormLimits(file=10_000))
    assert seen == 11


async def test_through_a_handler() -> None:
    app: App[Any] = App()

    @app.post("/")
    async def upload(req: Request[Any], res: Response) -> None:
        form = await req.form(FormLimits(file=100))
        given = form.file("f")
        res.json({"a": form.text("a"), "size": None if given is None else given.size})

    client = Client(app, None)
    headers = {"Content-Type": "multipart/form-data; boundary=B"}
    response: http.Response = await client.post(
        "/", body=multipart(field("a", b"1"), file("f", "x", b"abc")), headers=headers
    )
    assert await response.json() == {"a": "1", "size": 3}
    assert (await client.post("/", body=multipart(file("f", "x", b"x" * 101)), headers=headers)).status == 413
    assert (await client.post("/", body=b"{}", headers={"Content-Type": "application/json"})).status == 415
    assert (await client.post("/", body=b"x", headers=headers)).status == 400


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"\\%'), min_size=1), st.binary()
        ),
        max_size=6,
    ),
    st.integers(1, 50),
)
async def test_what_was_written_is_read_in_any_pieces(fields: list[tuple[str, bytes]], size: int) -> None:
    parts = [file(name, "f", value) for name, value in fields if b"\r\n--B" not in value and len(name) < 500]
    form = await read(multipart(*parts), size=size) if parts else Form([])
    got = [(name, await value.bytes()) for name, value in form.items_in_order if isinstance(value, UploadedFile)]
    assert got == [(name, value) for name, value in fields if b"\r\n--B" not in value and len(name) < 500]


@given(st.binary(max_size=300), st.integers(1, 40))
async def test_whatever_comes_in_is_a_form_or_a_client_error(data: bytes, size: int) -> None:
    try:
        await read(b"--B\r\n" + data, size=size)
    except CoreError as error:
        if error.status not in (400, 413):
            raise


@pytest.mark.parametrize(
    ("text", "value", "parameters"),
    [
        ('form-data; name="a"; filename="b;c"', "form-data", {"name": "a", "filename": "b;c"}),
        ("form-data; name=a ; x = y", "form-data", {"name": "a", "x": "y"}),
        ('form-data; name="a\\"b\\\\c"', "form-data", {"name": 'a"b\\c'}),
        ('form-data; name="a"; name="b"', "form-data", {"name": "a"}),
        ('form-data; name="unclosed', "form-data", {}),
        ("MULTIPART/Form-Data;BOUNDARY=x", "multipart/form-data", {"boundary": "x"}),
        ("", "", {}),
        (";;;", "", {}),
    ],
)
def test_values_with_parameters(text: str, value: str, parameters: dict[str, str]) -> None:
    assert parse_header(text) == (value, parameters)


# -- read once, remembered


MULTIPART = multipart(field("a", b"1"), file("f", "x.txt", b"content" * 100_000))
BODIES = [("application/x-www-form-urlencoded", b"a=1&b=2"), ("multipart/form-data; boundary=B", MULTIPART)]


def answering(what: Any) -> Client[Any]:
    app: App[Any] = App()

    @app.post("/")
    async def handle(req: Request[Any], res: Response) -> None:
        res.json(await what(req))

    return Client(app, None)


@pytest.mark.parametrize(("content_type", "body"), BODIES)
async def test_a_form_is_read_once_and_so_is_its_body(content_type: str, body: bytes) -> None:
    async def what(req: Request[Any]) -> list[Any]:
        form = await req.form()
        streamed = b"".join([chunk async for chunk in req.stream()])
        assert (await req.form()) is form
        assert await req.bytes() == body == streamed == await req.bytes()
        assert (await req.form()) is form
        upload = form.file("f")
        return [form["a"], None if upload is None else len(await upload.bytes())]

    answer = await answering(what).post("/", body=body, headers={"content-type": content_type})
    assert answer.status == 200
    assert (await answer.json())[0] == "1"


@pytest.mark.parametrize(("content_type", "body"), BODIES)
async def test_other_limits_are_held_against_the_remembered_body(content_type: str, body: bytes) -> None:
    async def what(req: Request[Any]) -> list[Any]:
        await req.form()
        return list(await req.form(FormLimits(body=len(body) - 1)))

    answer = await answering(what).post("/", body=body, headers={"content-type": content_type})
    assert answer.status == 413


async def test_a_form_after_the_whole_body_is_remembered_too() -> None:
    async def what(req: Request[Any]) -> bool:
        await req.bytes()
        return (await req.form()) is (await req.form())

    answer = await answering(what).post("/", body=MULTIPART, headers={"content-type": BODIES[1][0]})
    assert await answer.json() is True


@pytest.mark.parametrize("again", ["form", "bytes", "text", "json"])
async def test_a_form_that_was_refused_is_refused_again(again: str) -> None:
    async def what(req: Request[Any]) -> object:
        with pytest.raises(CoreError):
            await req.form(FormLimits(body=10))
        return await getattr(req, again)()

    answer = await answering(what).post("/", body=MULTIPART, headers={"content-type": BODIES[1][0]})
    assert answer.status == 413


async def test_a_body_that_is_no_form_can_still_be_read() -> None:
    async def what(req: Request[Any]) -> object:
        with pytest.raises(CoreError):
            await req.form()
        return await req.json()

    answer = await answering(what).post("/", body=b"[1]", headers={"content-type": "application/json"})
    assert await answer.json() == [1]


async def test_a_bound_counts_for_a_form_that_was_read() -> None:
    async def what(req: Request[Any]) -> None:
        await req.form()
        req.limit_body(10, CoreError(413, "too much"))

    answer = await answering(what).post("/", body=MULTIPART, headers={"content-type": BODIES[1][0]})
    assert answer.status == 413


# -- the standard values


async def test_a_form_is_a_body_and_is_read_from_one() -> None:
    given = await read(multipart(field("a", 'é"\r\n'.encode()), file("f", "x.txt", b"\x00content", "text/x")))
    for message in (http.Request("https://a.test/", method="POST", body=given), http.Response(given)):
        assert message.headers["content-type"].startswith("multipart/form-data; boundary=")
        form = await message.form_data()
        upload = form.file("f")
        assert upload is not None
        assert (form["a"], upload.filename, upload.content_type) == ('é"\r\n', "x.txt", "text/x")
        assert await upload.bytes() == b"\x00content"
        with pytest.raises(TypeError, match="already been used"):
            await message.form_data()


async def test_a_body_that_is_no_form_has_no_form_data() -> None:
    with pytest.raises(TypeError, match="Unrecognized Content-Type"):
        await http.Response("a=1").form_data()
    with pytest.raises(TypeError, match="Unrecognized Content-Type"):
        await http.Response().form_data()
    with pytest.raises(TypeError, match="Malformed form"):
        await http.Response(b"x", headers={"content-type": "multipart/form-data; boundary=B"}).form_data()
    with pytest.raises(TypeError, match="too large"):
        await http.Response(b"a=1234", headers={"content-type": "application/x-www-form-urlencoded"}).form_data(
            FormLimits(body=3)
        )


def test_the_redirect_of_a_request_is_kept() -> None:
    request = http.Request("https://a.test/")
    assert request.redirect == "follow"
    manual = http.Request(request, redirect="manual")
    assert (manual.redirect, http.Request(manual).redirect, manual.clone().redirect) == ("manual",) * 3
    with pytest.raises(TypeError, match="Invalid redirect value"):
        http.Request("https://a.test/", redirect="error")  # type: ignore[arg-type]  # what is refused
