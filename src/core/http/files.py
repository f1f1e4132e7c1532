"""A file as the body of an answer: its content type, its name for whoever keeps it, and the part that is asked for.

`Content-Disposition` is written as RFC 6266 says. Which file it is, is decided elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from typing import IO, Any, Final

import attrs

from core.http.conditional import Representation
from core.http.streams import encode

_WHOLE: Final = 256 * 1024
_PIECE: Final = 64 * 1024

_TYPES = {
    "avif": "image/avif",
    "css": "text/css;charset=UTF-8",
    "csv": "text/csv;charset=UTF-8",
    "gif": "image/gif",
    "htm": "text/html;charset=UTF-8",
    "html": "text/html;charset=UTF-8",
    "ico": "image/vnd.microsoft.icon",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript;charset=UTF-8",
    "json": "application/json",
    "map": "application/json",
    "md": "text/markdown;charset=UTF-8",
    "mjs": "text/javascript;charset=UTF-8",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "otf": "font/otf",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "ttf": "font/ttf",
    "txt": "text/plain;charset=UTF-8",
    "wasm": "application/wasm",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "xml": "application/xml",
    "zip": "application/zip",
}


def content_type(name: str) -> str:
    """The content type that the end of a file's name stands for; `application/octet-stream` for an unknown one."""
    return _TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")


def content_disposition(filename: str, *, inline: bool = False) -> str:
    """The value of `Content-Disposition` for a file that is saved as `filename`, shown at once where it is `inline`.

    The last part of a path counts, so that no name leads out of the folder that a client saves to. A name that is not
    ASCII comes twice: spelled out for old clients, and whole in UTF-8 (RFC 8187). Raises ValueError for an empty name.
    """
    name = re.split(r"[/\\]", filename)[-1]
    name = "".join(char for char in name if char.isprintable()).strip(" .")
    if not name:
        raise ValueError(f"filename={filename!r} is not the name of a file")
    kind = "inline" if inline else "attachment"
    plain = re.sub(r"[^ !#$&+\-.0-9A-Z^_a-z`|~()\[\]{},;@=]", "_", name)
    value = f'{kind}; filename="{plain}"'
    if plain != name:
        escaped = re.sub(rb"[^!#$&+\-.0-9A-Z^_a-z`|~]", lambda found: b"%%%02X" % found[0][0], encode(name))
        value += f"; filename*=UTF-8''{escaped.decode()}"
    return value


@attrs.frozen
class File:
    """A file as it was when it was looked at: its representation, and its bytes where there are few."""

    path: str
    known: Representation
    data: bytes | None

    def part(self, start: int, length: int) -> bytes | AsyncIterator[bytes]:
        """`length` bytes from `start`: at once, or in pieces where the file is large."""
        if self.data is not None:
            return self.data[start : start + length]
        return self._pieces(start, length)

    def _reopened(self) -> IO[bytes]:
        file = open(self.path, "rb")  # noqa: SIM115 - who reads it closes it
        if _representation(file) == self.known:
            return file
        file.close()
        raise OSError("the file was changed before it was sent")

    async def _pieces(self, start: int, length: int) -> AsyncIterator[bytes]:
        import asyncio

        with self._reopened() as file:
            file.seek(start)
            while length:
                piece = file.read(min(_PIECE, length))
                if not piece:
                    raise OSError("the file became shorter while it was sent")
                length -= len(piece)
                yield piece
                await asyncio.sleep(0)  # others have their turn between two pieces


def read(path: str | os.PathLike[str]) -> File:
    """Look at a file, and read it where it is small. Raises OSError where there is none."""
    with open(path, "rb") as file:
        known = _representation(file)
        return File(os.fspath(path), known, file.read(known.size) if known.size <= _WHOLE else None)


def _representation(file: IO[bytes]) -> Representation:
    stat = os.fstat(file.fileno())
    return Representation(f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"', stat.st_mtime, stat.st_size)


def apply_conditions(file: File, whole: object, res: Any, req: Any, *_: object) -> None:
    """A hook of `res`: turn all of `file` into the answer that the conditions and the range of the request ask for.

    `whole` is the body that was sent: a part is cut of no other, such as one that a middleware has compressed.
    """
    # The tag went with an answer that was taken back, and is a weak one where a middleware has changed the body.
    staged: dict[str, str] = res.staged or {}
    if (
        staged.get("etag", "").removeprefix("W/") != file.known.etag
        or res.status_code != 200
        or req.method not in ("GET", "HEAD")
    ):
        return
    now = req.clock.time()
    if file.known.is_known(req.header, now):
        res._status_code, res.body = 304, None
        staged.pop("content-encoding", None)
        staged.pop("content-length", None)
    elif res.body is whole and (part := file.known.part(req.header, now)) is not None:
        res._status_code, res.body = (206, file.part(part.start, part.length)) if part.satisfiable else (416, None)
        staged |= {"content-range": part.content_range, "content-length": str(part.length)}
    else:
        return
    if res.body is None:
        staged.pop("content-type", None)
