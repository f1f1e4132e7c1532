"""The panel "Objects": those of a bucket with their metadata, uploads and downloads."""

from __future__ import annotations

import attrs

from core.dev.exchange import shown
from core.dev.explorer.places import Places, binding_of, file_of, json_of, key_of
from core.dev.explorer.rows import Listing
from core.errors import CoreError
from core.request import Request
from core.response import Response
from core.router import Router

_LISTING = Listing(
    {
        "key": "CAST(key AS TEXT)",
        "size": "size",
        "uploaded": "uploaded",
        "type": "json_extract(http_metadata, '$.content_type')",
        "etag": "etag",
    },
    "r2_objects",
)


@attrs.frozen
class Metadata:
    """Metadata of an object, all of it."""

    key: str
    http_metadata: dict[str, str]
    custom_metadata: dict[str, str]


api: Router[Places] = Router()


@api.get("/r2/:binding")
async def _list(req: Request[Places], res: Response) -> None:
    rows, total = await _LISTING.read(req, file_of(req, "r2"))
    res.json({"rows": rows, "total": total})


@api.get("/r2/:binding/object")
async def _get(req: Request[Places], res: Response) -> None:
    found = await binding_of(req, "r2").get(key_of(req))
    if found is None:
        raise CoreError(404, f"There is no object {key_of(req)}, or no longer")
    if req.query.get("download") is not None:
        # Never with its own content type: a page from a bucket must not run beside the explorer.
        res.header("content-disposition", "attachment")
        res.header("content-type", "application/octet-stream")
        res.send(await found.bytes())
        return
    http = {} if found.http_metadata is None else attrs.asdict(found.http_metadata)
    res.json(
        {
            **shown(await found.bytes()),
            "key": found.key,
            "etag": found.etag,
            "uploaded": found.uploaded,
            "httpMetadata": {name: str(value) for name, value in http.items() if value is not None},
            "customMetadata": found.custom_metadata or {},
        }
    )


@api.put("/r2/:binding/object")
async def _put(req: Request[Places], res: Response) -> None:
    content_type = req.query.get("contentType")
    stored = await binding_of(req, "r2").put(
        key_of(req),
        await req.bytes(),
        http_metadata={"content_type": content_type} if content_type else None,
        custom_metadata=json_of(req, "custom", dict[str, str], "an object of strings"),
    )
    res.json({"etag": None if stored is None else stored.etag})


@api.put("/r2/:binding/metadata")
async def _metadata(req: Request[Places], res: Response) -> None:
    """Put an object again, as it is, with other metadata: there is no other way to change it."""
    given = await req.json(Metadata)
    bucket = binding_of(req, "r2")
    found = await bucket.get(given.key)
    if found is None:
        raise CoreError(404, f"There is no object {given.key}, or no longer")
    await bucket.put(
        given.key,
        await found.bytes(),
        http_metadata={
            **{name: value for name, value in given.http_metadata.items() if value and name != "cache_expiry"},
            **({} if (http := found.http_metadata) is None else {"cache_expiry": http.cache_expiry}),
        },
        custom_metadata=given.custom_metadata,
    )
    res.json({"ok": True})


@api.post("/r2/:binding/delete")
async def _delete(req: Request[Places], res: Response) -> None:
    keys = await req.json(list[str], key="keys")
    for begin in range(0, len(keys), 1000):
        await binding_of(req, "r2").delete(keys[begin : begin + 1000])
    res.json({"deleted": len(keys)})
