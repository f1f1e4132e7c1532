"""An upload in parts, as a program sees it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from core.backends.embedded.r2.arguments import check_part_number, encode_key, source_of, wrong_value
from core.backends.embedded.r2.checksums import ssec_key_md5
from core.backends.embedded.r2.errors import refuse
from core.backends.embedded.r2.parts import chosen_parts
from core.backends.embedded.r2.rows import fields
from core.backends.embedded.r2.storage import R2Storage
from core.bindings.r2 import R2Hash, R2MultipartUpload, R2Object, R2UploadedPart, R2UploadedPartDict, R2Value
from core.calls import BoundHook, Hookable, binding_call, implements
from core.errors import R2TypeError

__all__ = ["EmbeddedR2MultipartUpload"]


@implements(R2MultipartUpload)
class EmbeddedR2MultipartUpload(Hookable):
    """An upload in parts, of one bucket. See `R2MultipartUpload`."""

    __slots__ = ("_hook", "_storage", "key", "upload_id")

    def __init__(self, storage: R2Storage[Any], hook: BoundHook | None, key: str, upload_id: str) -> None:
        self._storage = storage
        self._hook = hook
        self.key: str = key
        self.upload_id: str = upload_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.key!r} in {self._storage.place}>"

    def _call_target(self) -> tuple[str, str]:
        return self.key, self.upload_id

    @binding_call
    async def upload_part(self, part_number: int, value: R2Value, *, ssec_key: R2Hash | None = None) -> R2UploadedPart:
        number = check_part_number(part_number)
        if value is None:
            raise R2TypeError(wrong_value("uploadPart", "R2MultipartUpload"))
        ssec_key_md5(ssec_key)
        source = source_of("uploadPart", value)
        raw = encode_key("uploadPart", self.key)
        taken = await self._storage.take_in("uploadPart", raw, source, ("md5",))
        etag = secrets.token_urlsafe(24)
        try:
            if not await self._storage.write_part(self.upload_id, raw, number, taken, etag):
                refuse("uploadPart", 10024)
        finally:
            self._storage.discard(taken)
        return R2UploadedPart(number, etag)

    @binding_call
    async def complete(self, uploaded_parts: Sequence[R2UploadedPart | R2UploadedPartDict]) -> R2Object:
        chosen = chosen_parts(uploaded_parts)
        raw = encode_key("completeMultipartUpload", self.key)
        return R2Object(**fields(await self._storage.complete(self.upload_id, raw, chosen)))

    @binding_call
    async def abort(self) -> None:
        await self._storage.abort(self.upload_id, encode_key("abortMultipartUpload", self.key))
