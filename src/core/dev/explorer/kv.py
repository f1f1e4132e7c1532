"""The panel "Key-value": keys in pages, a value with its metadata, and deleting many at once."""

from __future__ import annotations

import json
from typing import Final

import attrs

from core.dev.exchange import shown
from core.dev.explorer.places import Places, binding_of, file_of, key_of
from core.dev.explorer.rows import Listing, decoded, run_on
from core.errors import CoreError
from core.request import Request
from core.response import Response
from core.router import Router


@attrs.frozen
class Entry:
    """A key to write. `base64` is a value that is not text."""

    key: str
    value: str = ""
    base64: str | None = None
    metadata: object = None
    expiration: int | None = None
    expiration_ttl: int | None = None


@attrs.frozen
class Doomed:
    """Keys to delete: these, or all that a search finds."""

    keys: list[str] | None = None
    search: str | None = None


_LISTING: Final = Listing(
    {"key": "CAST(key AS TEXT)", "size": "length(value)", "expiration": "expiration", "metadata": "metadata"},
    "kv",
    where="expiration IS NULL OR expiration > CAST(strftime('%s', 'now') AS INTEGER)",
)

api: Router[Places] = Router()


@api.get("/kv/:binding")
async def _list(req: Request[Places], res: Response) -> None:
    rows, total = await _LISTING.read(req, file_of(req, "kv"))
    for row in rows:
        row["metadata"] = None if row["metadata"] is None else json.loads(row["metadata"])
    res.json({"rows": rows, "total": total})


@api.get("/kv/:binding/value")
async def _get(req: Request[Places], res: Response) -> None:
    namespace, key = binding_of(req, "kv"), key_of(req)
    found = await namespace.get_with_metadata(key, "bytes")
    if found.value is None:
        raise CoreError(404, f"There is no key {key}, or no longer")
    # Of the keys with a prefix, the prefix itself comes first.
    listed = (await namespace.list(prefix=key, limit=1)).keys
    expiration = listed[0].expiration if listed and listed[0].name == key else None
    res.json({**shown(found.value), "key": key, "metadata": found.metadata, "expiration": expiration})


@api.put("/kv/:binding/value")
async def _put(req: Request[Places], res: Response) -> None:
    entry = await req.json(Entry)
    await binding_of(req, "kv").put(
        entry.key,
        entry.value if entry.base64 is None else decoded(entry.base64),
        metadata=entry.metadata,
        expiration=entry.expiration,
        expiration_ttl=entry.expiration_ttl,
    )
    res.json({"ok": True})


@api.post("/kv/:binding/delete")
async def _delete(req: Request[Places], res: Response) -> None:
    doomed = await req.json(Doomed)
    namespace = binding_of(req, "kv")
    for key in doomed.keys or ():
        await namespace.delete(key)
    deleted = len(doomed.keys or ())
    if doomed.keys is None and doomed.search is not None:
        where, values = _LISTING.condition(doomed.search)
        sql = f"DELETE FROM kv WHERE {where}"
        file = file_of(req, "kv")
        deleted = await run_on(req, file, lambda one: one.execute(sql, values).rowcount, mode="rw") or 0
    res.json({"deleted": deleted})
