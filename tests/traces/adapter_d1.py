"""The `d1` programs on the embedded database."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.traces.harness import Adapter, Program, Special

from core.backends.embedded.d1 import EmbeddedD1Database
from core.backends.embedded.store import Store


class D1Adapter(Adapter):
    options_at: ClassVar[Mapping[str, int]] = {"raw": 0}
    store: Store

    async def open(self, program: Program) -> Mapping[str, Any]:
        self.store = Store(self.folder, clock=self.clock)
        return {name: EmbeddedD1Database(self.store, name) for name in ("DB", "DB2")}

    async def close(self) -> None:
        self.store.close()

    def special(self, value: Special, target: Any) -> Any:
        if value.kind == "sql":
            statement = target.prepare(value.value)
            return statement.bind(*value.tag["bind"]) if "bind" in value.tag else statement
        return super().special(value, target)


def adapter(folder: Path | None) -> Adapter:
    """A fresh adapter, over memory or a folder."""
    return D1Adapter(folder)
