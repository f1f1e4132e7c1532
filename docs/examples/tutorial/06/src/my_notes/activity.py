"""The history of somebody's notes: one Durable Object for each account."""

import attrs
from core import Bindings, DurableObject


@attrs.frozen
class Entry:
    number: int
    text: str


class Activity(DurableObject[Bindings]):
    """Numbers what happens, without gaps, and keeps the last twenty entries."""

    async def add(self, text: str) -> Entry:
        # Nothing else runs in this object between the two: two writers never get one number.
        number = (await self.ctx.storage.get("last") or 0) + 1
        await self.ctx.storage.put({"last": number, f"entry:{number:08}": text})
        await self.ctx.storage.delete(f"entry:{number - 20:08}")
        return Entry(number, text)

    async def recent(self) -> list[Entry]:
        kept = await self.ctx.storage.list(prefix="entry:")
        return [Entry(int(key.removeprefix("entry:")), text) for key, text in kept.items()]
