"""Files of a directory, or of an object bucket, under a mount.

Decided here: which file a path names. It is found segment by segment in the canonical path, each
segment decoded once, the way that routing and middleware scopes read it; so nothing that is spelled
otherwise (`%2F`, `..`, `//`, `\\`) gets around the middleware before the mount, or out of the directory.
Validators, conditions and ranges follow RFC 9110.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import TypeForm, TypeVar

from core.errors import OptionError
from core.handlers import declare
from core.http import Headers
from core.http.conditional import Representation
from core.http.files import content_type
from core.http.paths import split_path
from core.middleware import options
from core.middleware.compress import accepts_coding
from core.request import AnyRequest, Request
from core.response import Response
from core.types import Middleware, Next

if TYPE_CHECKING:
    from core.bindings.r2 import R2Bucket

__all__ = ["static"]

E = TypeVar("E", default=Any)

# The endings of compressed files, and how `Content-Encoding` calls them, the smallest first.
_CODINGS = ((".br", "br"), (".zst", "zstd"), (".gz", "gzip"))


def static(
    env: TypeForm[E] = options.UNNAMED,
    /,
    *,
    directory: str | os.PathLike[str] | None = None,
    bucket: str | Callable[[Request[E, Any, Any]], R2Bucket] | None = None,
    prefix: str = "",
    index: str | None = "index.html",
    fallback: str | None = None,
    precompressed: bool = False,
    cache_control: str | None = None,
    dotfiles: bool = False,
) -> Middleware[E, object]:
    """Serve the files of a directory, or the objects of a bucket, below where it is mounted.

        app.use("/assets", static(directory="public"))
        app.use("/media", static(bucket="MEDIA", prefix="public/"))

    GET and HEAD only; a request for a missing file goes on to the routes behind it. `ETag`, `Last-Modified`,
    `If-None-Match`, `If-Modified-Since`, `Range` and `If-Range` are honoured. `directory` must exist when this is
    built; links that lead out of it are not followed. `bucket`: by its name on `Env`, or a function of the request;
    `prefix` is put before every key. `index`: the file served for a directory; None for none. `fallback`: the file
    served for one that is missing where a page is asked for (`Accept` names `text/html`), as applications in the
    browser want it: `"index.html"`. `precompressed`: send `app.js.br`, `.zst` or `.gz` in place of `app.js` where the
    file is there and the client takes it. `cache_control`: the header's value. `dotfiles`: whether names that begin
    with a dot are served.

    A directory in your package is part of the worker. One elsewhere is the machine's: on the hosted platform use a
    bucket, or its own static assets. Raises OptionError.
    """
    options.named_env("static", env)
    if (directory is None) == (bucket is None):
        raise OptionError("static() serves one place. Give either directory or bucket")
    if index is not None and "/" in options.text("static", "index", index):
        raise options.refuse("static", "index", index, "must be the name of a file, or None")
    if fallback is not None and (".." in options.text("static", "fallback", fallback) or fallback.startswith("/")):
        raise options.refuse("static", "fallback", fallback, "must be the name of a file below the mount, or None")
    options.text("static", "prefix", prefix, empty=True)
    if cache_control is not None:
        options.header_value("static", "cache_control", cache_control)
    root = ""
    if directory is not None:
        if prefix:
            raise options.refuse("static", "prefix", prefix, "belongs to a bucket. Write it into directory")
        root = os.path.realpath(directory)
        # An empty one, as of a variable that is not set, would be the folder that the process runs in.
        if not os.fspath(directory) or not os.path.isdir(root):
            raise options.refuse(
                "static", "directory", os.fspath(directory), "is not a directory. Make it, or correct the path"
            )
    elif not callable(bucket):
        options.text("static", "bucket", bucket)

    def for_location(place: str, number: int = 1) -> Middleware[E, object]:
        # The place is a prefix such as /assets, or a route such as GET /assets/*, whose segments are not the file's.
        path = place.rpartition(" ")[2].removesuffix("*")
        skipped = sum(1 for part in path.split("/") if part)

        async def serve(req: AnyRequest, res: Response, next: Next, /) -> None:
            names = _names(req, skipped, dotfiles) if req.method in ("GET", "HEAD") else None
            if names is not None:
                send: _Send = partial(_send_file, root)
                if bucket is not None:
                    send = partial(_send_object, options.resolve("static", bucket, req), prefix)
                key = "/".join(names)
                # The file itself, or the index of a directory of that name.
                keys = [each for each in (key, index and (f"{key}/{index}" if key else index)) if each]
                if await _send_first(send, keys, precompressed, cache_control, req, res):
                    return
                if fallback is not None:
                    res.vary("Accept")
                    # Not for the scripts of a page, which would take a page for the missing file.
                    wants_page = "text/html" in (req.header("accept") or "").lower()
                    if wants_page and await _send_first(send, [fallback], precompressed, cache_control, req, res):
                        return
            await next()

        return declare(serve, name="static", serves=True, for_location=for_location)

    return for_location("/")


def _names(req: AnyRequest, skipped: int, dotfiles: bool) -> list[str] | None:
    """The names of a file below the mount, or None for a path that cannot be one."""
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


async def _send_first(
    send: _Send, keys: list[str], precompressed: bool, cache_control: str | None, req: AnyRequest, res: Response
) -> bool:
    """Send the first of `keys` that there is. False where there is none."""
    for key in keys:
        forms = [("", "")]
        if precompressed:
            accepted = req.header("accept-encoding")
            forms = [(end, coding) for end, coding in _CODINGS if accepts_coding(accepted, coding)] + forms
        for end, coding in forms:
            if not await send(key, end, cache_control, req, res):
                continue
            if precompressed:
                res.vary("Accept-Encoding")
            if coding and res.status_code != 304:
                res.header("content-encoding", coding)
            return True
    return False


_Send: TypeAlias = Callable[[str, str, str | None, AnyRequest, Response], Awaitable[bool]]
"""Sends the file `key + end` of a place with the content type of `key`. False where there is none."""


def _file_in(root: str, name: str) -> str | None:
    real = os.path.realpath(os.path.join(root, *name.split("/")))
    # A link may lead anywhere, and on some systems other spellings name the same file.
    inside = os.path.commonpath((root, real)) == root
    return real if inside and os.path.isfile(real) else None


async def _send_file(root: str, key: str, end: str, cache_control: str | None, req: AnyRequest, res: Response) -> bool:
    try:
        real = _file_in(root, f"{key}{end}")
        if real is None:
            return False
        res.file(real, content_type=content_type(real.removesuffix(end)))
    except (OSError, ValueError):
        return False
    if cache_control is not None:
        res.header("cache-control", cache_control)
    return True


async def _send_object(
    bucket: R2Bucket, prefix: str, key: str, end: str, cache_control: str | None, req: AnyRequest, res: Response
) -> bool:
    from core.bindings.r2 import R2Range

    name = f"{prefix}{key}{end}"
    found = await bucket.head(name) if len(name.encode()) <= 1024 else None
    if found is None:
        return False
    known = Representation(found.http_etag, found.uploaded.timestamp(), found.size)
    now = req.clock.time()
    if known.is_known(req.header, now):
        _describe(res, known, cache_control)
        res.status(304).send()
        return True
    part = known.part(req.header, now) if req.method == "GET" else None
    if part is not None and not part.satisfiable:
        _describe(res, known, cache_control)
        res.header("content-range", part.content_range).status(416).send()
        return True
    body: Any = None
    if req.method != "HEAD":
        wanted = None if part is None else R2Range(offset=part.start, length=part.length)
        # The very object whose headers are sent: one that was put meanwhile has another etag, and is another
        # answer.
        body = await bucket.get(name, range=wanted, only_if={"etag_matches": found.etag})
        if body is None or not hasattr(body, "body"):
            return False
    own = Headers()
    found.write_http_metadata(own)
    for header, value in own.items():
        res.header(header, value)
    if "content-type" not in own:
        res.header("content-type", content_type(key))
    _describe(res, known, cache_control if "cache-control" not in own else None)
    if part is not None:
        res.status(206).header("content-range", part.content_range)
    res.header("content-length", str(known.size if part is None else part.length))
    if body is None:
        res.send()
    else:
        res.stream(body.body)
    return True


def _describe(res: Response, known: Representation, cache_control: str | None) -> None:
    for name, value in known.headers.items():
        res.header(name, value)
    if cache_control is not None:
        res.header("cache-control", cache_control)
