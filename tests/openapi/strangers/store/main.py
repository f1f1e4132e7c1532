"""A file store: uploads and downloads as streams, forms, parts, ranges, conditions and signed links."""

import mimetypes
from collections.abc import AsyncIterator
from datetime import datetime

import attrs
from attrs.validators import ge, in_, le, max_len

from core import Bindings, CoreError, R2Bucket, Request, Response, Secret, create_app
from core.bindings.r2 import FixedLengthStream, R2Object, R2ObjectBody, R2UploadedPart
from core.http.forms import FormLimits
from core.middleware.bearer_auth import bearer_auth
from core.middleware.body_limit import body_limit
from core.middleware.compress import compress
from core.signing import keys_of, sign, unsign


@attrs.frozen
class Env(Bindings):
    FILES: R2Bucket
    LINK_SECRET: Secret
    TOKEN: Secret


@attrs.frozen
class FileInfo:
    """What is known of a file without its content."""

    key: str
    size: int
    etag: str
    uploaded: datetime
    content_type: str | None
    owner: str | None

    @classmethod
    def of(cls, found: R2Object) -> "FileInfo":
        metadata = found.custom_metadata or {}
        return cls(found.key, found.size, found.etag, found.uploaded, type_of(found), metadata.get("owner"))


def type_of(found: R2Object) -> str | None:
    return found.http_metadata.content_type if found.http_metadata else None


app = create_app(Env)
app.use("/files", compress())
owners = app.authenticated(bearer_auth(token=lambda req: req.env.TOKEN))


def _key(req: Request[Env]) -> str:
    key = req.params["*"]
    if not key or key.endswith("/") or ".." in key:
        raise CoreError(400, "Not the name of a file", code="BAD_KEY", key=key)
    return key


async def _existing(req: Request[Env], key: str) -> R2Object:
    found = await req.env.FILES.head(key)
    if found is None:
        raise CoreError(404, "No such file", code="NO_FILE")
    return found


@attrs.frozen
class Listing:
    prefix: str = ""
    limit: int = attrs.field(default=100, validator=[ge(1), le(1000)])
    cursor: str | None = None


@app.get("/files")
async def list_files(req: Request[Env], res: Response) -> None:
    """All files, by their names."""
    asked = req.query.parse(Listing)
    found = await req.env.FILES.list(prefix=asked.prefix, limit=asked.limit, cursor=asked.cursor)
    res.json({"files": [FileInfo.of(each) for each in found.objects], "cursor": found.cursor, "more": found.truncated})


@owners.put("/files/*", body_limit(max_size=5_000_000))
async def upload(req: Request[Env], res: Response) -> None:
    key = _key(req)
    length = req.header("Content-Length")
    if length is None or not length.isdigit():
        raise CoreError(411, "A file needs a Content-Length", code="NO_LENGTH")
    stored = await req.env.FILES.put(
        key,
        FixedLengthStream(req.stream(), int(length)),
        http_metadata={"content_type": req.header("Content-Type") or "application/octet-stream"},
        custom_metadata={"owner": "token"},
    )
    res.status(201).header("ETag", stored.http_etag).header("Location", f"/files/{key}").json(FileInfo.of(stored))


@app.get("/files/*")
async def download(req: Request[Env], res: Response) -> Response:
    headers = req.to_http().headers
    found = await req.env.FILES.get(_key(req), only_if=headers, range=headers)
    if found is None:
        raise CoreError(404, "No such file", code="NO_FILE")
    res.header("ETag", found.http_etag).header("Accept-Ranges", "bytes")
    if not isinstance(found, R2ObjectBody):
        return res.status(304).send()
    if req.header("Range") and found.range is not None:
        start, length = found.range.offset or 0, found.range.length or found.size
        res.status(206).header("Content-Range", f"bytes {start}-{start + length - 1}/{found.size}")
    return res.stream(found.body, content_type="application/octet-stream")


@owners.delete("/files/*")
async def delete(req: Request[Env], res: Response) -> None:
    await req.env.FILES.delete((await _existing(req, _key(req))).key)
    res.status(204).send()


@app.get("/info/*")
async def info(req: Request[Env], res: Response) -> None:
    res.json(FileInfo.of(await _existing(req, _key(req))))


@attrs.frozen
class Details:
    folder: str = attrs.field(validator=max_len(100))
    visibility: str = attrs.field(default="private", validator=in_(["private", "public"]))
    copies: int = 1


@owners.post("/forms")
async def upload_form(req: Request[Env], res: Response) -> None:
    form = await req.form(FormLimits(file=3_000_000, parts=10))
    details = form.parse(Details)
    file = form.file("file")
    if file is None:
        raise CoreError(422, "A form without a file", code="NO_FILE")
    kind, _ = mimetypes.guess_type(file.filename)
    keys: list[str] = []
    for number in range(details.copies):
        key = f"{details.folder}/{number}"
        await req.env.FILES.put(key, await file.bytes(), http_metadata={"content_type": kind or "text/plain"})
        keys.append(key)
    res.status(201).json({"keys": keys, "size": file.size, "visibility": details.visibility})


# -- large files


@attrs.frozen
class Part:
    part_number: int = attrs.field(alias="partNumber", validator=[ge(1), le(10_000)])
    etag: str


@owners.post("/uploads")
async def begin(req: Request[Env], res: Response) -> None:
    wanted = await req.json(dict[str, str])
    if "key" not in wanted:
        raise CoreError(422, "Which key?", code="NO_KEY")
    upload = await req.env.FILES.create_multipart_upload(wanted["key"])
    res.status(201).json({"id": upload.upload_id, "key": upload.key})


@owners.put("/uploads/:id/:key/:number{[0-9]+}")
async def put_part(req: Request[Env], res: Response) -> None:
    upload = req.env.FILES.resume_multipart_upload(req.params["key"], req.params["id"])
    body = await req.bytes()
    if not body:
        raise CoreError(400, "An empty part")
    part = await upload.upload_part(int(req.params["number"]), body)
    res.json({"partNumber": part.part_number, "etag": part.etag})


@owners.post("/uploads/:id/:key")
async def complete(req: Request[Env], res: Response) -> None:
    parts = await req.json(list[Part])
    upload = req.env.FILES.resume_multipart_upload(req.params["key"], req.params["id"])
    stored = await upload.complete([R2UploadedPart(part.part_number, part.etag) for part in parts])
    res.json(FileInfo.of(stored))


@owners.delete("/uploads/:id/:key")
async def abort(req: Request[Env], res: Response) -> None:
    await req.env.FILES.resume_multipart_upload(req.params["key"], req.params["id"]).abort()
    res.status(204).send()


# -- links

TTL = 15 * 60


@owners.post("/links/*")
async def share(req: Request[Env], res: Response) -> None:
    found = await _existing(req, _key(req))
    until = int(req.clock.time()) + TTL
    ticket = sign("file", f"{until}:{found.key}", keys_of(req.env.LINK_SECRET))
    res.status(201).json({"url": req.url_for(open_link, ticket=ticket), "until": until, "ticket": ticket})


@app.get("/shared/:ticket")
async def open_link(req: Request[Env], res: Response) -> None:
    text = unsign("file", req.params["ticket"], keys_of(req.env.LINK_SECRET))
    if text is None:
        raise CoreError(403, "This link was not made here", code="FORGED")
    until, _, key = text.partition(":")
    if req.clock.time() >= int(until):
        raise CoreError(410, "This link has ended", code="ENDED", until=int(until))
    found = await req.env.FILES.get(key)
    if found is None:
        raise CoreError(404, "The file is gone", code="NO_FILE")
    res.header("Content-Disposition", "attachment").header("Cache-Control", "private, no-store")
    res.stream(found.body, content_type=type_of(found) or "application/octet-stream")


# -- the whole store


async def lines(bucket: R2Bucket) -> AsyncIterator[str]:
    yield "key,size\n"
    for each in (await bucket.list()).objects:
        yield f"{each.key},{each.size}\n"


@app.get("/export.csv")
async def export(req: Request[Env], res: Response) -> None:
    res.stream(lines(req.env.FILES), content_type="text/csv")


@app.get("/usage")
async def usage(req: Request[Env], res: Response) -> None:
    objects = (await req.env.FILES.list()).objects
    by_type: dict[str, int] = {}
    for each in objects:
        kind = type_of(each) or "unknown"
        by_type[kind] = by_type.get(kind, 0) + each.size
    res.json({"files": len(objects), "bytes": sum(each.size for each in objects), "by_type": by_type})


@attrs.frozen
class Move:
    to: str
    overwrite: bool = False


@owners.post("/moves/*")
async def move(req: Request[Env], res: Response) -> None:
    """Give a file another name."""
    key, asked = _key(req), await req.json(Move)
    found = await req.env.FILES.get(key)
    if found is None:
        raise CoreError(404, "No such file", code="NO_FILE")
    if not asked.overwrite and await req.env.FILES.head(asked.to) is not None:
        raise CoreError(409, "There is one of this name", code="EXISTS", key=asked.to)
    moved = await req.env.FILES.put(asked.to, await found.bytes(), http_metadata=found.http_metadata)
    await req.env.FILES.delete(key)
    res.json(FileInfo.of(moved))
