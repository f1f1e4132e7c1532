"""The embedded object bucket: the platform's semantics over SQLite rows and files."""

from __future__ import annotations

from core.backends.embedded.r2.bucket import EmbeddedR2MultipartUpload, StoredR2Bucket
from core.backends.embedded.r2.storage import EmbeddedR2Bucket

__all__ = ["EmbeddedR2Bucket", "EmbeddedR2MultipartUpload", "StoredR2Bucket"]
