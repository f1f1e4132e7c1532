"""Forms: urlencoded and multipart bodies, read within limits.

Decided here: how much of everything is taken (`FormLimits`), and which parts are fields or files. Splitting
multipart is python-multipart's (`core-edge[forms]`). Nothing is kept beyond its limit: a body is
refused while it comes in, and files wait in a spooled file, on disk from a size on. RFC 7578.
"""

from __future__ import annotations

import builtins
import logging
import re
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import IO, TYPE_CHECKING, Any, cast

import attrs
from typing_extensions import TypeForm, TypeVar

from core.errors import CoreError, MissingExtraError
from core.http.escapes import parse_query
from core.http.streams import encode
from core.values import Fixed

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartParser

__all__ = ["Form", "FormLimits", "UploadedFile", "read_form"]

T = TypeVar("T")

_is_boundary = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]").fullmatch
_parameter = re.compile(r'[ \t]*;[ \t]*([!#$%&\'*+\-.^_`|~0-9A-Za-z]+)[ \t]*=[ \t]*("(?:[^"\\]|\\.)*"|(?!")[^;]*)')


@attrs.frozen(kw_only=True)
class FormLimits:
    """The limits of a form. More is refused with 413, while it comes in."""

    body: int = 16 * 1024 * 1024
    """Bytes of the whole body."""
    field: int = 1024 * 1024
    """Bytes of one text field."""
    file: int = 16 * 1024 * 1024
    """Bytes of one file."""
    parts: int = 1000
    """Fields and files together."""
    headers: int = 16
    """Headers of one part."""
    header_size: int = 4096
    """Bytes of one header of a part."""
    spool: int = 256 * 1024
    """Bytes from which a file waits on disk."""


_DEFAULT = FormLimits()


class UploadedFile:
    """A file of a form. It is gone when the form is: read it, or store it, in the handler."""

    def __init__(self, file: IO[builtins.bytes], filename: str, content_type: str, size: int) -> None:
        self._file = file
        self.filename = filename
        """The name the client gave, without directories and control characters. It says nothing of the content."""
        self.content_type = content_type
        """The type the client claims."""
        self.size: int = size
        """Bytes."""
        # However the handler ends, the file behind it is closed with the last reference to it.
        weakref.finalize(self, file.close)

    def __repr__(self) -> str:
        return f"<UploadedFile {self.filename!r} {self.size} bytes>"

    def write(self, chunk: builtins.bytes, /) -> None:
        """Add to the end, for whoever makes the file."""
        self.size += self._file.write(chunk)

    async def bytes(self) -> builtins.bytes:
        """The whole content. It can be read again."""
        return self.content()

    def content(self) -> builtins.bytes:
        """The same as `bytes`, at once."""
        self._file.seek(0)
        return self._file.read()

    async def text(self) -> str:
        """The whole content as UTF-8; invalid bytes become U+FFFD."""
        return (await self.bytes()).decode("utf-8", "replace")

    @property
    def length(self) -> int:
        """The size, under the name that a bucket asks for: `await bucket.put(key, file)` stores it as a stream."""
        return self.size

    async def __aiter__(self) -> AsyncIterator[builtins.bytes]:
        at = 0
        while True:
            self._file.seek(at)  # every time: others may read the same file meanwhile
            chunk = self._file.read(64 * 1024)
            if not chunk:
                return
            at += len(chunk)
            yield chunk


class Form(Fixed[str, "str | UploadedFile"]):
    """The fields and files of a form by name; of several under one name, `form[name]` is the first."""

    def __init__(
        self, items: list[tuple[str, str | UploadedFile]], body: bytes | UploadedFile | None = None, /
    ) -> None:
        self.items_in_order = items
        """Every name and value, in the order sent."""
        self._body = body
        for name, value in items:
            self._keep(name, value)

    def __repr__(self) -> str:
        return f"<Form of {', '.join(self) or 'nothing'}>"

    def encode_body(self) -> tuple[bytes, str]:
        """The form as a multipart body (RFC 7578), and its content type with the boundary."""
        from os import urandom

        boundary = f"----core{urandom(16).hex()}"
        pieces: list[bytes] = []
        for name, value in self.items_in_order:
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_escaped(name)}"'
            if isinstance(value, str):
                pieces += [encode(head), b"\r\n\r\n", encode(value), b"\r\n"]
            else:
                kind = re.sub(r"[\r\n]", "", value.content_type)
                head += f'; filename="{_escaped(value.filename)}"\r\nContent-Type: {kind}\r\n\r\n'
                pieces += [encode(head), value.content(), b"\r\n"]
        return b"".join([*pieces, f"--{boundary}--\r\n".encode()]), f"multipart/form-data; boundary={boundary}"

    def get_all(self, name: str, /) -> list[str | UploadedFile]:
        """Every value under `name`, in order."""
        return [value for key, value in self.items_in_order if key == name]

    def text(self, name: str, /) -> str | None:
        """The first text field under `name`, or None."""
        return next((value for key, value in self.items_in_order if key == name and isinstance(value, str)), None)

    def file(self, name: str, /) -> UploadedFile | None:
        """The first file under `name`, or None."""
        return next(iter(self.files(name)), None)

    def files(self, name: str, /) -> list[UploadedFile]:
        """Every file under `name`, in order."""
        return [value for value in self.get_all(name) if isinstance(value, UploadedFile)]

    def parse(self, type_: TypeForm[T], /) -> T:
        """The text fields as a `T`, an attrs class or TypedDict: texts become the annotated scalars, as in a query.

        Raises ValidationError, which is answered with 422, with every mistake.
        """
        from core.validation.structure import structure_texts

        return structure_texts([(name, text) for name, text in self.items_in_order if isinstance(text, str)], type_)


async def read_form(
    content_type: str | None, chunks: AsyncIterable[bytes], limits: FormLimits | None = None, /, *, keep: bool = False
) -> Form:
    """Read a form of the given content type from the pieces of a body, which the form has too with `keep`.

    Raises CoreError(415) for any other type, 400 for a malformed one, 413 past a limit, and MissingExtraError
    for multipart without the extra.
    """
    limits = limits if limits is not None else _DEFAULT
    kind, parameters = parse_header(content_type or "")
    if kind == "application/x-www-form-urlencoded":
        return await _read_urlencoded(chunks, limits, keep)
    if kind == "multipart/form-data":
        boundary = parameters.get("boundary", "")
        if not _is_boundary(boundary):
            raise CoreError(400, "Malformed form: the boundary is missing or not allowed")
        return await _read_multipart(boundary, chunks, limits, keep)
    raise CoreError(415, "Unsupported Media Type")


def parse_header(text: str) -> tuple[str, dict[str, str]]:
    """A value with parameters, such as `Content-Type`: the value in lower case, the parameters by lower-case name.

    A malformed parameter ends them; of two with one name the first counts.
    """
    value, semicolon, rest = text.partition(";")
    parameters: dict[str, str] = {}
    rest, at = semicolon + rest, 0
    while match := _parameter.match(rest, at):
        name, given = match[1].lower(), match[2].strip()
        if given.startswith('"'):
            # Browsers escape a quote as %22; a backslash is older, and only before a quote or itself is it one.
            given = re.sub(r'\\(["\\])', r"\1", given[1:-1])
        parameters.setdefault(name, given)
        at = match.end()
    return value.strip().lower(), parameters


async def _read_urlencoded(chunks: AsyncIterable[bytes], limits: FormLimits, keep: bool) -> Form:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limits.body:
            raise _too_large("the body")
    if body.count(b"&") >= limits.parts:
        raise _too_large("the number of fields")
    items: list[tuple[str, str | UploadedFile]] = []
    for name, value in parse_query(body.decode("utf-8", "replace")):
        if len(name) > limits.header_size or len(value.encode("utf-8", "replace")) > limits.field:
            raise _too_large("a field")
        items.append((name, value))
    return Form(items, bytes(body) if keep else None)


def _too_large(limit: str) -> CoreError:
    return CoreError(413, f"Form too large: {limit}")


async def _read_multipart(boundary: str, chunks: AsyncIterable[bytes], limits: FormLimits, keep: bool) -> Form:
    try:
        from python_multipart.exceptions import FormParserError
        from python_multipart.multipart import MultipartParser
    except ImportError:
        raise MissingExtraError("pip install 'core-edge[forms]'") from None

    # It warns of every malformed part, which a client could send without end; the 400 says enough.
    logging.getLogger(MultipartParser.__module__).setLevel(logging.ERROR)
    reader = _Reader(limits)
    parser: MultipartParser = MultipartParser(
        boundary.encode(),
        cast("Any", reader.callbacks()),
        max_header_count=limits.headers,
        max_header_size=limits.header_size,
    )
    whole = UploadedFile(_spooled(limits), "", "multipart/form-data", 0) if keep else None
    size = 0
    try:
        async for chunk in chunks:
            size += len(chunk)
            if size > limits.body:
                raise _too_large("the body")
            if whole is not None:
                whole.write(chunk)
            parser.write(chunk)
        parser.finalize()
        if not reader.ended:
            raise CoreError(400, "Malformed form: it ended early")
    except FormParserError as error:
        reader.abandon()
        text = str(error)
        if "header" in text.lower() and ("max" in text.lower() or "exceed" in text.lower() or "too" in text.lower()):
            raise _too_large("a part's headers") from None
        raise CoreError(400, "Malformed form") from None
    except BaseException:
        reader.abandon()
        raise
    return Form(reader.items, whole)


def _spooled(limits: FormLimits) -> IO[bytes]:
    from tempfile import SpooledTemporaryFile

    return cast("IO[bytes]", SpooledTemporaryFile(limits.spool))


class _Reader:
    """Takes the parser's events, and keeps their parts within the limits."""

    def __init__(self, limits: FormLimits) -> None:
        self.items: list[tuple[str, str | UploadedFile]] = []
        self.ended = False
        self._limits = limits
        self._parts = 0
        self._size = 0
        self._header_name = b""
        self._header_value = b""
        self._headers: dict[str, str] = {}
        self._name = ""
        self._filename: str | None = None
        self._text = bytearray()
        self._file: IO[bytes] | None = None

    def callbacks(self) -> dict[str, Callable[..., None]]:
        return {name: getattr(self, name) for name in dir(self) if name.startswith("on_")}

    def abandon(self) -> None:
        """Close the files that were begun; nothing of a refused form stays."""
        if self._file is not None:
            self._file.close()
        self.items.clear()

    def on_part_begin(self) -> None:
        self._parts += 1
        if self._parts > self._limits.parts:
            raise _too_large("the number of parts")
        self._headers = {}
        self._header_name = self._header_value = b""
        self._text = bytearray()
        self._size = 0

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def on_header_end(self) -> None:
        name = self._header_name.decode("latin-1").lower()
        self._headers.setdefault(name, self._header_value.decode("utf-8", "replace"))
        self._header_name = self._header_value = b""

    def on_headers_finished(self) -> None:
        kind, parameters = parse_header(self._headers.get("content-disposition", ""))
        if kind != "form-data" or "name" not in parameters:
            raise CoreError(400, "Malformed form: a part has no name")
        self._name = _unescaped(parameters["name"])
        filename = parameters.get("filename")
        self._filename = None if filename is None else _bare_name(_unescaped(filename))
        if self._filename is not None:
            self._file = _spooled(self._limits)

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        if self._file is not None:
            if self._size > self._limits.file:
                raise _too_large("a file")
            self._file.write(data[start:end])
        else:
            if self._size > self._limits.field:
                raise _too_large("a field")
            self._text += data[start:end]

    def on_part_end(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            kind = self._headers.get("content-type", "application/octet-stream")
            self.items.append((self._name, UploadedFile(file, self._filename or "", kind, self._size)))
        else:
            self.items.append((self._name, self._text.decode("utf-8", "replace")))

    def on_end(self) -> None:
        self.ended = True


def _unescaped(name: str) -> str:
    """Return a name with the escapes undone that browsers write for quotes and line breaks."""
    return name.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")


def _escaped(name: str) -> str:
    return name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")


def _bare_name(filename: str) -> str:
    name = filename.replace("\\", "/").rpartition("/")[2]
    bare = "".join(char for char in name if char.isprintable())[:255]
    return "" if bare in (".", "..") else bare
