"""The embedded object bucket: the platform's semantics over SQLite rows and files."""

from core.backends.embedded.r2.bucket import StoredR2Bucket as StoredR2Bucket
from core.backends.embedded.r2.storage import EmbeddedR2Bucket as EmbeddedR2Bucket
