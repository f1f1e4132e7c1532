"""Files of a directory, or of an object bucket, under a mount.

Decided here: which file a path names. It is found segment by segment in the canonical path, each
segment decoded once, the way that routing and middleware scopes read it; so nothing that is spelled
otherwise (`%2F`, `..`, `//`, `\\`) gets around what stands before the mount, or out of the directory.
Validators, conditions and ranges follow RFC 9110.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from typing import IO, TYPE_CHECKING, Any

from typing_extensions import TypeForm, TypeVar

from core.errors import OptionError
from core.handlers import Middleware, Next, declare
from core.http.dates import http_date
from core.http.url import split_path
from core.middleware import options
from core.middleware.conditional import ByteRange, modified_since, none_match, parse_range, unchanged
from core.request import AnyRequest, Request
from core.response import Response

if TYPE_CHECKING:
    from core.bindings.r2 import R2Bucket, R2Object

__all__ = ["static"]

E = TypeVar("E", default=Any)

_PIECE = 64 * 1024
_WHOLE = 256 * 1024

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


def static(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    directory: str | os.PathLike[str] | None = None,
    bucket: str | Callable[[Request[E, Any, Any]], R2Bucket] | None = None,
    prefix: str = "",
    index: str | None = "index.html",
    cache_control: str | None = None,
    dotfiles: bool = False,
) -> Middleware[E, object]:
    """Serve the files of a directory, or the objects of a bucket, below where it is mounted.

        app.use("/assets", static(directory="public"))
        app.use("/media", static(bucket="MEDIA", prefix="public/"))

    GET and HEAD only; what is not there goes on to the routes behind it. `ETag`, `Last-Modified`, `If-None-Match`,
    `If-Modified-Since`, `Range` and `If-Range` are honoured.
    `directory` must exist when this is built; links that lead out of it are not followed. `bucket`: by its name on
    `Env`, or a function of the request; `prefix` is put before every key.
    `index`: the file that stands for a directory; None for none. `cache_control`: the header's value. `dotfiles`:
    whether names that begin with a dot are served.

    The directory is the machine's: on the hosted platform use a bucket, or its own static assets. Raises OptionError.
    """
    options.named_env("static", env)
    if (directory is None) == (bucket is None):
        raise OptionError("static() serves one place. Give either directory or bucket")
    if index is not None and "/" in options.text("static", "index", index):
        raise options.refuse("static", "index", index, "must be the name of a file, or None")
    options.text("static", "prefix", prefix, empty=True)
    if cache_control is not None:
        options.header_value("static", "cache_control", cache_control)
    root = ""
    if directory is not None:
        if prefix:
            raise options.refuse("static", "prefix", prefix, "belongs to a bucket. Write it into directory")
        root = os.path.realpath(directory)
        if not os.path.isdir(root):
            raise options.refuse("static", "directory", os.fspath(directory), "is no directory")
    elif not callable(bucket):
        options.text("static", "bucket", bucket)

    def placed(place: str, number: int = 1) -> Middleware[E, object]:
        # The place is a prefix such as /assets, or a route such as GET /assets/*, whose segments are not the file's.
        path = place.rpartition(" ")[2].removesuffix("*")
        skipped = sum(1 for part in path.split("/") if part)

        async def serve(req: AnyRequest, res: Response, next: Next, /) -> None:
            names = _names(req, skipped, dotfiles) if req.method in ("GET", "HEAD") else None
            if names is not None:
                if bucket is None:
                    sent = _send_file(root, names, index, cache_control, req, res)
                else:
                    store: R2Bucket = options.resolve("static", bucket, req)
                    sent = await _send_object(store, prefix, names, index, cache_control, req, res)
                if sent:
                    return
            await next()

        return declare(serve, name="static", serves=True, placed=placed)

    return placed("/")


def _names(req: AnyRequest, skipped: int, dotfiles: bool) -> list[str] | None:
    """The names of a file below the mount, or None for what can be none."""
    try:
        segments = list(split_path(req.path))[skipped:]
    except ValueError:
        return None
    if segments and segments[-1] == "":
        segments.pop()  # a trailing slash is ignored, as by routing
    for name in segments:
        if not name or name in (".", "..") or "/" in name or "\\" in name or ":" in name or not name.isprintable():
            return None
        if name.startswith(".") and not dotfiles:
            return None
    return segments


# -- directories


def _send_file(
    root: str,
    names: list[str],
    index: str | None,
    cache_control: str | None,
    req: AnyRequest,
    res: Response,
) -> bool:
    path = os.path.join(root, *names)
    if index is not None and os.path.isdir(path):
        path = os.path.join(path, index)
    try:
        real = os.path.realpath(path)
        # A link may lead anywhere, and on some systems other spellings name the same file.
        if os.path.commonpath((root, real)) != root or not os.path.isfile(real):
            return False
        opened = open(real, "rb")  # noqa: SIM115 - the stream closes it
    except (OSError, ValueError):
        return False
    file: IO[bytes] | None = opened
    try:
        stat = os.fstat(opened.fileno())
        size, modified = stat.st_size, stat.st_mtime
        etag = f'"{stat.st_mtime_ns:x}-{size:x}"'
        _describe(res, etag, modified, cache_control)
        if _not_modified(req, etag, modified):
            res.status(304).send()
            return True
        start, length = 0, size
        part = _part(req, etag, modified, size)
        if part is not None:
            res.header("content-range", part.content_range)
            if not part.satisfiable:
                res.status(416).send()
                return True
            start, length = part.start, part.length
            res.status(206)
        res.header("content-type", _type_of(real))
        if length <= _WHOLE or req.method == "HEAD":
            # Of a large file a HEAD needs the length alone.
            if length > _WHOLE:
                res.header("content-length", str(length)).send()
            else:
                opened.seek(start)
                res.send(opened.read(length))
            return True
        res.header("content-length", str(length)).stream(_pieces(opened, start, length))
        file = None
        return True
    finally:
        if file is not None:
            file.close()


async def _pieces(file: Any, start: int, length: int) -> AsyncIterator[bytes]:
    import asyncio

    with file:
        file.seek(start)
        while length:
            piece = file.read(min(_PIECE, length))
            if not piece:
                raise OSError("the file became shorter while it was sent")
            length -= len(piece)
            yield piece
            await asyncio.sleep(0)  # others have their turn between two pieces


def _describe(res: Response, etag: str, modified: float, cache_control: str | None) -> None:
    res.header("etag", etag).header("last-modified", http_date(modified)).header("accept-ranges", "bytes")
    if cache_control is not None:
        res.header("cache-control", cache_control)


def _not_modified(req: AnyRequest, etag: str, modified: float) -> bool:
    tags = req.header("if-none-match")
    if tags is not None:
        return not none_match(tags, etag)  # the date counts only where no tag is given
    return not modified_since(req.header("if-modified-since"), modified, req.clock.time())


def _part(req: AnyRequest, etag: str, modified: float, size: int) -> ByteRange | None:
    fits = unchanged(req.header("if-range"), etag, modified, req.clock.time())
    return parse_range(req.header("range"), size) if fits else None


def _type_of(name: str) -> str:
    extension = os.path.basename(name).rpartition(".")[2].lower()
    return _TYPES.get(extension, "application/octet-stream")


# -- buckets


async def _send_object(
    bucket: R2Bucket,
    prefix: str,
    names: list[str],
    index: str | None,
    cache_control: str | None,
    req: AnyRequest,
    res: Response,
) -> bool:
    from core.bindings.r2 import R2Range

    found: R2Object | None = None
    key = prefix + "/".join(names)
    for candidate in (key, f"{key}/{index}" if names else prefix + (index or "")):
        if candidate and (candidate == key or index is not None) and len(candidate.encode()) <= 1024:
            found = await bucket.head(candidate)
            if found is not None:
                key = candidate
                break
    if found is None:
        return False
    etag, modified, size = found.http_etag, found.uploaded.timestamp(), found.size
    if _not_modified(req, etag, modified):
        _describe(res, etag, modified, cache_control)
        res.status(304).send()
        return True
    part = _part(req, etag, modified, size)
    if part is not None and not part.satisfiable:
        _describe(res, etag, modified, cache_control)
        res.header("content-range", part.content_range).status(416).send()
        return True
    length = size if part is None else part.length
    if req.method == "HEAD":
        _describe_object(res, found, key, etag, modified, cache_control)
        if part is not None:
            res.status(206).header("content-range", part.content_range)
        res.header("content-length", str(length)).send()
        return True
    wanted = None if part is None else R2Range(offset=part.start, length=part.length)
    # The very object whose headers are sent: one that was put meanwhile has another etag, and is another answer.
    body: Any = await bucket.get(key, range=wanted, only_if={"etag_matches": found.etag})
    if body is None or not hasattr(body, "body"):
        return False
    _describe_object(res, found, key, etag, modified, cache_control)
    if part is not None:
        res.status(206).header("content-range", part.content_range)
    res.header("content-length", str(length)).stream(body.body)
    return True


def _describe_object(
    res: Response, found: R2Object, key: str, etag: str, modified: float, cache_control: str | None
) -> None:
    from core.http import Headers

    own = Headers()
    found.write_http_metadata(own)
    for name, value in own.items():
        res.header(name, value)
    if "content-type" not in own:
        res.header("content-type", _type_of(key))
    _describe(res, etag, modified, cache_control if "cache-control" not in own else None)
