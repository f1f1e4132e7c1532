"""The `kv` programs on the embedded namespace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.traces.harness import Adapter, Program

from core.backends.embedded.kv import EmbeddedKVNamespace
from core.backends.embedded.store import Store


class KVAdapter(Adapter):
    options_at: ClassVar[Mapping[str, int]] = {"get": 1, "getWithMetadata": 1, "put": 2, "list": 0}
    store: Store

    async def open(self, program: Program) -> Mapping[str, Any]:
        self.store = Store(self.folder, clock=self.clock)
        return {name: EmbeddedKVNamespace(self.store, name) for name in ("KV", "KV2")}

    async def close(self) -> None:
        self.store.close()

    def options(self, op: str, given: Any) -> dict[str, Any]:
        # A text in the place of the options is the type.
        return {"type": given} if isinstance(given, str) else super().options(op, given)


def adapter(folder: Path | None) -> Adapter:
    """A fresh adapter, over memory or a folder."""
    return KVAdapter(folder)
