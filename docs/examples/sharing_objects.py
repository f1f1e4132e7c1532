"""Objects of a bucket: conditional and partial reads, and links that open one of them for a while."""

import attrs

from core import Bindings, CoreError, R2Bucket, Request, Response, Secret, create_app
from core.bindings.r2 import R2ObjectBody
from core.signing import keys_of, sign, unsign


@attrs.frozen
class Env(Bindings):
    FILES: R2Bucket
    LINK_SECRET: Secret


app = create_app(Env)


# --8<-- [start:get]
@app.get("/files/:key")
async def read(req: Request[Env], res: Response) -> None:
    found = await req.env.FILES.get(req.params["key"], only_if=req.to_http().headers)
    if found is None:
        raise CoreError(404, "No such file")
    res.header("ETag", found.http_etag)
    if not isinstance(found, R2ObjectBody):
        unchanged = req.header("If-None-Match") or req.header("If-Modified-Since")
        res.status(304 if unchanged else 412).send()
        return
    res.stream(found.body, content_type="application/octet-stream")


# --8<-- [end:get]


# --8<-- [start:link]
@app.post("/files/:key/link")
async def share(req: Request[Env], res: Response) -> None:
    until = int(req.clock.time()) + 15 * 60
    ticket = sign("file", f"{until}:{req.params['key']}", keys_of(req.env.LINK_SECRET))
    res.status(201).json({"url": f"/shared/{ticket}"})


@app.get("/shared/:ticket")
async def open_link(req: Request[Env], res: Response) -> None:
    text = unsign("file", req.params["ticket"], keys_of(req.env.LINK_SECRET))
    until, _, key = (text or "0:").partition(":")
    found = await req.env.FILES.get(key) if req.clock.time() < int(until) else None
    if found is None:
        raise CoreError(404, "This link does not open anything")
    res.header("Content-Disposition", "attachment").header("Cache-Control", "private, no-store")
    res.stream(found.body, content_type="application/octet-stream")


# --8<-- [end:link]
