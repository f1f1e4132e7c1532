"""The panel "Key-value": keys in pages, a value with its metadata, and deleting many at once."""

from __future__ import annotations

import json
import time
from typing import Any

import attrs

from core.dev.explorer.places import Panel, key_of
from core.dev.explorer.rows import Listing, change
from core.dev.explorer.values import decoded, shown
from core.errors import CoreError
from core.request import AnyRequest
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


class KVPages(Panel):
    """The handlers."""

    def add_to(self, api: Router[Any, Any]) -> None:
        """Add the routes."""
        api.get("/kv/:binding", self._list)
        api.get("/kv/:binding/value", self._get)
        api.put("/kv/:binding/value", self._put)
        api.post("/kv/:binding/delete", self._delete)

    @staticmethod
    def _listing() -> Listing:
        return Listing(
            {
                "key": "CAST(key AS TEXT)",
                "size": "length(value)",
                "expiration": "expiration",
                "metadata": "metadata",
            },
            "kv",
            "key",
            ("key",),
            "expiration IS NULL OR expiration > ?",
            (int(time.time()),),
        )

    async def _list(self, req: AnyRequest, res: Response) -> None:
        found = await self._listing().read(self._caller(req), self._places.file(req, "kv"))
        rows = [
            {"key": key, "size": size, "expiration": expiration, "metadata": _json(metadata)}
            for key, size, expiration, metadata in found.rows
        ]
        res.json({"rows": rows, "total": found.total})

    async def _get(self, req: AnyRequest, res: Response) -> None:
        namespace, key = self._places.binding(req, "kv"), key_of(req)
        found = await namespace.get_with_metadata(key, "bytes")
        if found.value is None:
            raise CoreError(404, f"There is no key {key}, or no longer")
        # Of the keys with a prefix, the prefix itself comes first.
        listed = (await namespace.list(prefix=key, limit=1)).keys
        expiration = listed[0].expiration if listed and listed[0].name == key else None
        res.json({**shown(found.value), "key": key, "metadata": found.metadata, "expiration": expiration})

    async def _put(self, req: AnyRequest, res: Response) -> None:
        entry = await req.json(Entry)
        await self._places.binding(req, "kv").put(
            entry.key,
            entry.value if entry.base64 is None else decoded(entry.base64),
            metadata=entry.metadata,
            expiration=entry.expiration,
            expiration_ttl=entry.expiration_ttl,
        )
        res.json({"ok": True})

    async def _delete(self, req: AnyRequest, res: Response) -> None:
        doomed = await req.json(Doomed)
        namespace = self._places.binding(req, "kv")
        for key in doomed.keys or ():
            await namespace.delete(key)
        deleted = len(doomed.keys or ())
        if doomed.keys is None and doomed.search is not None:
            where, values = self._listing().condition(doomed.search)
            file = self._places.file(req, "kv")
            deleted = await change(self._caller(req), file, f"DELETE FROM kv WHERE {where}", values)
        res.json({"deleted": deleted})


def _json(text: str | None) -> object:
    return None if text is None else json.loads(text)
