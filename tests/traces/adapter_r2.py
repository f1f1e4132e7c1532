"""The `r2` programs on the embedded bucket."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.traces.harness import Adapter, Program, Special

from core import http
from core.backends.embedded.r2 import EmbeddedR2Bucket
from core.backends.embedded.store import Store
from core.bindings.r2 import FixedLengthStream, R2UploadedPart


class R2Adapter(Adapter):
    options_at: ClassVar[Mapping[str, int]] = {"get": 1, "put": 2, "list": 0, "createMultipartUpload": 1}
    nested: ClassVar[frozenset[str]] = frozenset({"onlyIf", "range", "httpMetadata"})
    store: Store

    async def open(self, program: Program) -> Mapping[str, Any]:
        self.store = Store(self.folder, clock=self.clock)
        return {name: EmbeddedR2Bucket(self.store, name) for name in ("BUCKET", "BUCKET2")}

    async def close(self) -> None:
        self.store.close()

    def special(self, value: Special, target: Any) -> Any:
        match value.kind:
            case "stream" if value.tag.get("known"):
                return FixedLengthStream(super().special(value, target), len(value.value))
            case "headers":
                return http.Headers(value.value)
            case _:
                return super().special(value, target)

    def arguments(self, op: str, args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        if op == "complete":
            given: list[Any] = args[0]
            parts = [
                R2UploadedPart(**Adapter.options(self, op, part)) if isinstance(part, dict) else part for part in given
            ]
            return [parts], {}
        return super().arguments(op, args)

    def options(self, op: str, given: Any) -> dict[str, Any]:
        # JavaScript passes over options that it does not know; Python has no such custom
        # (docs/reference/differences.md).
        method = getattr(EmbeddedR2Bucket, {"createMultipartUpload": "create_multipart_upload"}.get(op, op))
        known = inspect.signature(method).parameters
        return {name: value for name, value in super().options(op, given).items() if name in known}

    def method(self, target: Any, op: str) -> Callable[..., Any]:
        return super().method(target, "to_json" if op == "toJSON" else op)

    def written(self, target: Any, name: str) -> Any:
        # A checksum alone is bytes; a whole object is written down with hex digits.
        return target.checksums.to_json() if name == "checksums" else super().written(target, name)

    def construct(self, name: str, args: list[Any]) -> Any:
        assert name == "Headers", name
        return http.Headers(args[0] if args else None)


def adapter(folder: Path | None) -> Adapter:
    """A fresh adapter, over memory or a folder."""
    return R2Adapter(folder)
